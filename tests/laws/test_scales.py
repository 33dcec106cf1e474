"""Multiplying rows or weights by a power of two changes no label, and only the exponent of results."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from coterie import (
    BalancedKMeans,
    BisectingKMeans,
    FuzzyCMeans,
    KernelKMeans,
    KMeans,
    KMedians,
    MiniBatchKMeans,
    SphericalKMeans,
    load,
    save,
)
from coterie.core.errors import InputError, RangeWarning

rng = np.random.default_rng(5)
ROWS = rng.normal(size=(150, 3)) + 4 * rng.integers(0, 3, (150, 1))
HOLES = np.where(rng.random(ROWS.shape) < 0.1, np.nan, ROWS)
HOLES[:, 0] = ROWS[:, 0]
SPARSE = sparse.csr_array(np.where(rng.random(ROWS.shape) < 0.3, 0.0, ROWS))
WEIGHTS = rng.integers(0, 4, 150).astype(float)
LENGTH, SQUARE = (1, 0), (2, 1)  # powers of the scales of rows and weights

CENTERS = {"cluster_centers_": LENGTH, "inertia_": SQUARE, "history_": SQUARE}
K = {"n_clusters": 4, "random_state": 0}
MODELS = {  # model, rows, powers of what it finds
    "kmeans": (KMeans(**K), ROWS, CENTERS),
    "kmeans search": (KMeans(**K, search="fast", search_budget=2), ROWS, CENTERS),
    "kmeans one column": (KMeans(**K), ROWS[:, :1], CENTERS),
    "kmeans scalable": (KMeans(**K, init="k-means||"), ROWS, CENTERS),
    "kmeans sparse": (KMeans(**K), SPARSE, CENTERS),
    "kmeans missing": (KMeans(**K, missing="ignore"), HOLES, CENTERS),
    "kmeans weights of columns": (KMeans(**K, metric_weights=[1, 4, 0]), ROWS, CENTERS),
    "minibatch": (MiniBatchKMeans(**K), ROWS, {**CENTERS, "history_": (2, 0), "counts_": (0, 1)}),
    "bisecting": (BisectingKMeans(**K), ROWS, CENTERS),
    "balanced": (BalancedKMeans(**K), ROWS, CENTERS),
    "spherical": (SphericalKMeans(**K), ROWS, {"cluster_centers_": (0, 0), "inertia_": (0, 1), "history_": (0, 1)}),
    "medians": (KMedians(**K), ROWS, {"cluster_centers_": LENGTH, "objective_": (1, 1), "history_": (1, 1)}),
    "geometric medians": (KMedians(**K, metric="l2"), ROWS, {"cluster_centers_": LENGTH, "objective_": (1, 1)}),
    "fuzzy": (FuzzyCMeans(**K), ROWS, {"cluster_centers_": LENGTH, "objective_": SQUARE, "history_": SQUARE}),
}


def times(values, power, dtype=None):
    """Values times a power of two, exactly."""
    if sparse.issparse(values):
        return type(values)((np.ldexp(values.data, power), values.indices, values.indptr), shape=values.shape)
    return np.ldexp(values, power)


def fitted(model, X, w=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        return type(model)(**model.get_params()).fit(X, sample_weight=w)


def check_alike(plain, scaled, powers, rows, weights):
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    for name, (by_rows, by_weights) in powers.items():
        with np.errstate(over="ignore", under="ignore"):
            expected = np.ldexp(getattr(plain, name), by_rows * rows + by_weights * weights)
        np.testing.assert_array_equal(getattr(scaled, name), expected, err_msg=name)


@pytest.mark.parametrize("name", MODELS)
def test_rows_times_a_power_of_two(name):
    model, X, powers = MODELS[name]
    plain = fitted(model, X)
    for power in (-900, -565, 90, 300, 900):
        scaled = fitted(model, times(X, power))
        check_alike(plain, scaled, powers, power, 0)
        np.testing.assert_array_equal(scaled.predict(times(X, power)), plain.predict(X))
        away = powers["cluster_centers_"][0] * power
        np.testing.assert_array_equal(scaled.transform(times(X, power)), np.ldexp(plain.transform(X), away))


@pytest.mark.parametrize("name", MODELS)
def test_weights_times_a_power_of_two(name):
    model, X, powers = MODELS[name]
    plain = fitted(model, X, WEIGHTS)
    for power in (-1000, -90, 90, 664, 900):
        scaled = fitted(model, X, np.ldexp(WEIGHTS, power))
        check_alike(plain, scaled, powers, 0, power)
        assert scaled.score(X, sample_weight=np.ldexp(WEIGHTS, power)) == np.ldexp(
            plain.score(X, sample_weight=WEIGHTS), power
        )


@pytest.mark.parametrize("name", MODELS)
def test_float32_rows_and_weights(name):
    model, X, powers = MODELS[name]
    X = X.astype(np.float32)
    plain = fitted(model, X, WEIGHTS)
    for rows, weights in ((-100, 0), (-28, 3), (100, -40), (60, 800)):
        scaled = fitted(model, times(X, rows), np.ldexp(WEIGHTS, weights))
        check_alike(plain, scaled, powers, rows, weights)
        assert scaled.cluster_centers_.dtype == np.float32


def test_results_that_no_number_can_hold_are_told_of():
    with pytest.warns(RangeWarning, match="inertia_, history_ cannot be represented in the units of X"):
        model = KMeans(3, random_state=0).fit(np.ldexp(ROWS, 900))
    assert model.inertia_ == np.inf
    with pytest.warns(RangeWarning, match="inertia_ cannot be represented"):
        assert model.score(np.ldexp(ROWS, 900)) == -np.inf


def test_names_options_and_files_survive(tmp_path):
    frame = pd.DataFrame(np.ldexp(ROWS, -500), columns=["a", "b", "c"])
    given = np.ldexp(ROWS[:3], -500)
    plain = fitted(KMeans(3, init=ROWS[:3]), ROWS)
    scaled = fitted(KMeans(3, init=given), frame)
    check_alike(plain, scaled, {"cluster_centers_": LENGTH}, -500, 0)
    assert list(scaled.feature_names_in_) == ["a", "b", "c"]
    assert scaled.init is given
    save(scaled, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(frame), plain.labels_)
    scaled.fit(ROWS)
    np.testing.assert_array_equal(scaled.predict(ROWS), scaled.labels_)


def test_a_row_without_weight_does_not_decide_the_scale():
    X, w = np.ldexp(ROWS, -400), np.ones(150)
    X[7], w[7] = 1.0, 0.0
    plain = fitted(KMeans(3, random_state=0), np.delete(ROWS, 7, axis=0))
    np.testing.assert_array_equal(
        np.sort(fitted(KMeans(3, random_state=0), X, w).cluster_centers_, axis=0),
        np.ldexp(np.sort(plain.cluster_centers_, axis=0), -400),
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda X: MiniBatchKMeans(3).partial_fit(X),
        lambda X: KMeans(3).fit_trace(X),
        lambda X: KernelKMeans(3).fit(X),
    ],
)
def test_what_cannot_be_rescaled_says_so(call):
    with pytest.raises(InputError, match=r"X has values up to about 2\^-59\d: .* divide X by a power of two first"):
        call(np.ldexp(ROWS, -600))
