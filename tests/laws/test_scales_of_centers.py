"""Multiplying rows or weights by a power of two changes no center but its exponent."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from coterie import (
    BalancedKMeans,
    BisectingKMeans,
    FuzzyCMeans,
    KernelKMeans,
    KMeans,
    KMedians,
    MiniBatchKMeans,
    SphericalKMeans,
    TimeSeriesKMeans,
    load,
    save,
)
from coterie.core.scale import LENGTHS, Scale, multiplied
from coterie.errors import InputError, RangeWarning
from laws.scales import HOLES, LENGTH, ROWS, SHORT, SPARSE, SQUARE, WEIGHTS, K, check_alike, fitted, times

CENTERS = {"cluster_centers_": LENGTH, "inertia_": SQUARE, "history_": SQUARE}
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
    "time series": (TimeSeriesKMeans(**K), ROWS, CENTERS),
    "time series, euclidean": (TimeSeriesKMeans(**K, metric="euclidean"), ROWS, CENTERS),
}


@SHORT
@pytest.mark.parametrize("name", MODELS)
def test_rows_times_a_power_of_two(name):
    model, X, powers = MODELS[name]
    plain = fitted(model, X)
    for power in (-900, -565, 190, 300, 900):
        scaled = fitted(model, times(X, power))
        check_alike(plain, scaled, powers, power, 0)
        np.testing.assert_array_equal(scaled.predict(times(X, power)), plain.predict(X))
        away = powers["cluster_centers_"][0] * power
        np.testing.assert_array_equal(scaled.transform(times(X, power)), np.ldexp(plain.transform(X), away))


@SHORT
@pytest.mark.parametrize("name", MODELS)
def test_weights_times_a_power_of_two(name):
    model, X, powers = MODELS[name]
    plain = fitted(model, X, WEIGHTS)
    for power in (-1000, -190, 90, 664, 900):
        scaled = fitted(model, X, np.ldexp(WEIGHTS, power))
        check_alike(plain, scaled, powers, 0, power)
        assert scaled.score(X, sample_weight=np.ldexp(WEIGHTS, power)) == np.ldexp(
            plain.score(X, sample_weight=WEIGHTS), power
        )


@SHORT
@pytest.mark.parametrize("name", MODELS)
def test_float32_rows_and_weights(name):
    model, X, powers = MODELS[name]
    X = X.astype(np.float32)
    plain = fitted(model, X, WEIGHTS)
    for rows, weights in ((-100, 0), (-45, 3), (100, -40), (60, 800)):
        scaled = fitted(model, times(X, rows), np.ldexp(WEIGHTS, weights))
        check_alike(plain, scaled, powers, rows, weights)
        assert scaled.cluster_centers_.dtype == np.float32


def test_results_that_no_number_can_hold_are_told_of():
    with pytest.warns(RangeWarning, match="inertia_, history_ cannot be represented in the units of X"):
        model = KMeans(3, random_state=0).fit(np.ldexp(ROWS, 900))
    assert model.inertia_ == np.inf
    with pytest.warns(RangeWarning, match="inertia_ cannot be represented"):
        assert model.score(np.ldexp(ROWS, 900)) == -np.inf


def test_infinite_results_are_not_reported_as_lost():
    distances = multiplied({"distances": np.array([np.inf, 1.0])}, {"distances": LENGTHS}, Scale(900, 0))["distances"]
    np.testing.assert_array_equal(distances, [np.inf, 2.0**900])


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


@pytest.mark.parametrize("name", MODELS)
def test_a_second_fit_forgets_the_scale_of_the_first(name):
    model, X, _ = MODELS[name]
    model, rows = fitted(model, times(X, -950)), times(X, 150)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        model.fit(rows)
    np.testing.assert_array_equal(model.transform(rows), fitted(model, rows).transform(rows))


def test_a_row_without_weight_does_not_decide_the_scale():
    X, w = np.ldexp(ROWS, -560), np.ones(150)
    X[7], w[7] = 2.0**-100, 0.0
    plain = fitted(KMeans(3, random_state=0), np.delete(ROWS, 7, axis=0))
    np.testing.assert_array_equal(
        np.sort(fitted(KMeans(3, random_state=0), X, w).cluster_centers_, axis=0),
        np.ldexp(np.sort(plain.cluster_centers_, axis=0), -560),
    )


def test_an_answer_without_weights_has_none_to_be_multiplied_by():
    plain, scaled = fitted(KMeans(**K), ROWS, WEIGHTS), fitted(KMeans(**K), ROWS, np.ldexp(WEIGHTS, 900))
    assert scaled.score(ROWS) == plain.score(ROWS)
    with pytest.raises(InputError, match="sample_weight has values up to about"):
        plain.score(ROWS, sample_weight=np.ldexp(WEIGHTS, 900))


@pytest.mark.parametrize("model", [FuzzyCMeans(1, fuzzifier=1.01, init="farthest"), KMedians(1), SphericalKMeans(1)])
def test_a_far_row_without_weight_has_no_effect_on_a_trace(model):
    """Its cost in units of the other rows leaves the range of float32."""
    X, w = np.array([[1.0, 2.0], [2.0, 1.0], [1e25, -1e25]], np.float32), np.array([1.0, 1.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = clone(model).set_params(random_state=0).fit_trace(X, sample_weight=w)
    np.testing.assert_allclose(trace.model.cluster_centers_, clone(model).fit(X[:2]).cluster_centers_, rtol=1e-3)


KERNELS = {  # model, rows, power of the rows in values of the kernel
    "linear": (KernelKMeans(**K, kernel="linear"), ROWS, 2),
    "linear sparse": (KernelKMeans(**K, kernel="linear"), SPARSE, 2),
    "rbf": (KernelKMeans(**K), ROWS, 0),
    "rbf sparse": (KernelKMeans(**K), SPARSE, 0),
    "cosine": (KernelKMeans(**K, kernel="cosine"), ROWS, 0),
    "poly": (KernelKMeans(**K, kernel="poly", gamma="scale"), ROWS, 0),
    "sigmoid": (KernelKMeans(**K, kernel="sigmoid", gamma="scale"), ROWS, 0),
    "precomputed": (KernelKMeans(**K, kernel="precomputed"), ROWS @ ROWS.T, 1),
    "landmarks": (KernelKMeans(**K, kernel="linear", approximation="nystrom", n_landmarks=40), ROWS, 2),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_of_rows_and_weights_times_a_power_of_two(name, dtype):
    model, X, degree = KERNELS[name]
    X = X.astype(dtype)
    plain = fitted(model, X, WEIGHTS)
    for rows, weights in ((-900, 0), (300, -900), (900, 600)) if dtype == np.float64 else ((-100, 0), (58, 800)):
        scaled, moved = fitted(model, times(X, rows), np.ldexp(WEIGHTS, weights)), times(X, rows)
        powers = {"inertia_": (degree, 1), "history_": (degree, 1), "gamma_": (-2, 0)}
        if plain.gamma_ is None:
            del powers["gamma_"]
        check_alike(plain, scaled, powers, rows, weights)
        np.testing.assert_array_equal(scaled.predict(moved), plain.predict(X))
        distances = np.ldexp(scaled.transform(moved), -degree * rows // 2)
        np.testing.assert_array_equal(distances, plain.transform(X))


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_a_gamma_in_the_unit_of_the_rows_gives_the_same_clusters(kernel):
    model = KernelKMeans(**K, kernel=kernel, gamma=0.25)
    plain = fitted(model, ROWS)
    for rows in (-400, 400):
        scaled = fitted(clone(model).set_params(gamma=float(np.ldexp(0.25, -2 * rows))), np.ldexp(ROWS, rows))
        check_alike(plain, scaled, {"inertia_": (0, 1), "gamma_": (-2, 0)}, rows, 0)


@pytest.mark.parametrize(
    "X",
    [[row[: 2 + i % 2] for i, row in enumerate(ROWS[:40])], ROWS[:40].reshape(40, 3, 1)],
    ids=["lengths differ", "channels"],
)
def test_series_times_a_power_of_two(X, tmp_path):
    plain = fitted(TimeSeriesKMeans(**K), X)
    for power in (-900, 900):
        moved = [np.ldexp(series, power) for series in X]
        scaled = fitted(TimeSeriesKMeans(**K), moved)
        np.testing.assert_array_equal(scaled.labels_, plain.labels_)
        for center, expected in zip(scaled.cluster_centers_, plain.cluster_centers_, strict=True):
            np.testing.assert_array_equal(center.ravel(), np.ldexp(expected, power).ravel())
        np.testing.assert_array_equal(scaled.transform(moved), np.ldexp(plain.transform(X), power))
        save(scaled, tmp_path / "series.safetensors", overwrite=True)
        np.testing.assert_array_equal(load(tmp_path / "series.safetensors").predict(moved), plain.labels_)


def test_initial_series_and_gamma_are_in_the_units_of_the_rows():
    for options, unit in (({}, {}), ({"metric": "softdtw"}, {"gamma": 2.0**600})):
        plain = fitted(TimeSeriesKMeans(2, init=ROWS[:2], **options), ROWS[:12])
        scaled = fitted(TimeSeriesKMeans(2, init=np.ldexp(ROWS[:2], 300), **options, **unit), np.ldexp(ROWS[:12], 300))
        check_alike(plain, scaled, {"cluster_centers_": LENGTH, "inertia_": SQUARE}, 300, 0)


def test_values_of_soft_dtw_that_float32_cannot_hold_are_told_of():
    X = np.ldexp(ROWS[:12], 80).astype(np.float32)
    model = TimeSeriesKMeans(2, metric="softdtw", n_init=1, max_iter=50, random_state=0).fit(X)
    with pytest.warns(RangeWarning, match="distances cannot be represented in the units of X"):
        assert np.isinf(model.transform(X)).any()
