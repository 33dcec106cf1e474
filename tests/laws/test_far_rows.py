"""Rows far from those of the fit: predictions are numbers, and do not depend on the other rows of the batch."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from coterie import GaussianMixture
from coterie.errors import InputError
from persistence.fitted import SINGLE, UNFITTED, X, fitted

SIZES = (1e6, 1e18, 1e20, 1e37, 1e100, 1e140, 1e160, 1e300)
METHODS = ("predict", "transform", "predict_proba", "score_samples", "score")
NAMES = [
    name
    for name, (model, rows) in UNFITTED.items()
    if any(rows is each for each in (X, SINGLE)) and not isinstance(model, Pipeline) and hasattr(model, "predict")
]


def result(model, method, rows):
    """The last row of the result, or the kind of error."""
    try:
        values = np.atleast_1d(np.asarray(getattr(model, method)(rows)))
    except InputError as error:
        return type(error)
    assert not np.isnan(values).any(), (method, rows[-1])
    return values[-1]


def far_rows(rows):
    """Rows at increasing distance, as far as their type goes."""
    largest = float(np.finfo(rows.dtype).max)
    return [np.array([[0, size, -size]], rows.dtype) for size in SIZES if size < largest]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*cannot be represented")
def test_a_far_row_has_the_same_predictions_alone_and_beside_others(name):
    model, rows = fitted(name)
    for far in far_rows(rows):
        for method in [each for each in METHODS if hasattr(model, each)]:
            alone, beside = (result(model, method, batch) for batch in (far, np.concatenate([rows[:5], far])))
            if alone is InputError or beside is InputError:
                assert alone is beside, (method, far)
            elif method != "score":  # a mean or sum over all rows, which only must not be NaN
                np.testing.assert_allclose(alone, beside, rtol=1e-6 if rows.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("structure", ["full", "diag", "tied", "spherical"])
def test_far_rows_in_single_precision_belong_to_the_component_of_double_precision(structure):
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(80, 2)) + np.repeat([[0, 0], [0, 5]], 40, axis=0)).astype(np.float32)
    model = GaussianMixture(2, covariance_type=structure, random_state=0).fit(rows)
    far = np.array([[0, 1e20], [0, -1e20], [1e19, 0]], np.float32)
    np.testing.assert_array_equal(model.predict(far), model.predict(far.astype(np.float64)))
    np.testing.assert_allclose(model.predict_proba(far), model.predict_proba(far.astype(np.float64)), atol=1e-6)


def test_a_row_without_a_log_density_is_an_error():
    rows = np.random.default_rng(0).normal(size=(80, 2)) * 1e-30
    model = GaussianMixture(2, random_state=0).fit(rows)
    for method in METHODS:
        if hasattr(model, method):
            with pytest.raises(InputError, match="standard deviations from every component"):
                getattr(model, method)(np.array([[1e130, 0.0]]))
