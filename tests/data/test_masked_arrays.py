"""Masked values of NumPy are missing values."""

import numpy as np
import pytest

from coterie import HDBSCAN, GaussianMixture, KMeans, choose_k
from coterie.distances import pairwise
from coterie.errors import InputError
from coterie.metrics import silhouette_score

X = np.random.default_rng(0).normal(size=(60, 3))
MASK = (X > 1) & (np.arange(3) == 1)
MASKED = np.ma.masked_array(X, mask=MASK)
HOLES = np.where(MASK, np.nan, X)


@pytest.mark.parametrize("model", [KMeans(2, random_state=0), GaussianMixture(2, random_state=0)], ids=str)
def test_masked_values_are_missing(model):
    model.set_params(missing="ignore")
    expected = model.fit(HOLES).predict(HOLES)
    np.testing.assert_array_equal(model.fit(MASKED).predict(MASKED), expected)


@pytest.mark.parametrize(
    "use",
    [
        KMeans(2).fit,
        GaussianMixture(2).fit,
        HDBSCAN().fit,
        choose_k,
        pairwise,
        lambda rows: silhouette_score(rows, np.arange(60) % 2),
    ],
)
def test_masked_values_are_an_error_where_missing_values_are(use):
    with pytest.raises(InputError, match=r"NaN|missing"):
        use(MASKED)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "?"])
def test_arrays_without_masked_values_are_ordinary_ones(dtype):
    rows = np.round(3 * X).clip(0).astype(dtype)
    model = KMeans(2, random_state=0).fit(np.ma.masked_array(rows))
    assert model.inertia_ == KMeans(2, random_state=0).fit(rows).inertia_
    assert model.cluster_centers_.dtype == (np.float32 if dtype == "f4" else np.float64)
