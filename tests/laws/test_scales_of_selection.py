"""Multiplying rows or weights by a power of two changes no choice of K, and only the units of results."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from coterie import (
    AgglomerativeClustering,
    BisectingKMeans,
    FuzzyCMeans,
    GaussianMixture,
    KernelKMeans,
    KMeans,
    KMedians,
    KMedoids,
    MiniBatchKMeans,
    Mixture,
    SphericalKMeans,
    TimeSeriesKMeans,
)
from coterie.errors import RangeWarning, ScaleError
from coterie.mixture import Prior
from coterie.selection import (
    choose_k,
    g_means,
    gap_statistic,
    mixture_table,
    stability,
    sweep,
    tendency,
    x_means,
)
from laws.scales import HOLES, ROWS, SHORT, SPARSE, WEIGHTS, times

R = {"random_state": 0}
KS = [1, 2, 3, 5]
SHARED_FITS = {  # estimator, rows, powers of rows and weights in the objective; None for a log-likelihood
    "kmeans": (KMeans(**R), ROWS, (2, 1)),
    "kmeans one column": (KMeans(**R), ROWS[:, :1], (2, 1)),
    "kmeans sparse": (KMeans(**R), SPARSE, (2, 1)),
    "kmeans missing": (KMeans(**R, missing="ignore"), HOLES, (2, 1)),
    "kmeans frozen": (KMeans(**R, frozen_centers=ROWS[:1]), ROWS, (2, 1)),
    "medians": (KMedians(**R), ROWS, (1, 1)),
    "spherical": (SphericalKMeans(**R), ROWS, (0, 1)),
    "fuzzy": (FuzzyCMeans(**R), ROWS, (2, 1)),
    "minibatch": (MiniBatchKMeans(**R), ROWS, (2, 1)),
    "bisecting": (BisectingKMeans(**R), ROWS, (2, 1)),
    "medoids": (KMedoids(**R), ROWS, (1, 1)),
    "ward": (AgglomerativeClustering(), ROWS, (2, 1)),
    "kernel": (KernelKMeans(**R, kernel="linear"), ROWS, (2, 1)),
    "time series": (TimeSeriesKMeans(**R), ROWS[:50], (2, 1)),
    "gaussian": (GaussianMixture(**R), ROWS, None),
    "gaussian missing": (GaussianMixture(**R, missing="ignore"), HOLES[:100], None),
    "mixture": (Mixture(**R), ROWS[:60], None),
}


@pytest.fixture(autouse=True)
def no_warnings_of_range():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        yield


def moved_options(estimator, power):
    """The estimator with its options in the units of the rows."""
    frozen = getattr(estimator, "frozen_centers", None)
    return estimator if frozen is None else type(estimator)(**R, frozen_centers=np.ldexp(frozen, power))


def log_volume(X, w, power):
    """Sum of the logarithms of the unit of all observed values."""
    return float(w @ np.count_nonzero(~np.isnan(X), axis=1)) * power * np.log(2)


def check_sweeps_alike(plain, scaled, X, w, powers, rows, weights):
    np.testing.assert_array_equal(scaled.ks, plain.ks)
    moved = times(X, rows)
    for labels, expected, model, same in zip(scaled.labels, plain.labels, scaled.models, plain.models, strict=True):
        np.testing.assert_array_equal(labels, expected)
        np.testing.assert_array_equal(model.predict(moved), same.predict(X))
    if powers is None:
        shift = log_volume(X, np.ones(len(X)) if w is None else w, rows)
        np.testing.assert_allclose(np.ldexp(scaled.objectives, -weights) - shift, plain.objectives, rtol=1e-6)
        return
    with np.errstate(over="ignore", under="ignore"):
        expected = np.ldexp(plain.objectives, powers[0] * rows + powers[1] * weights)
    np.testing.assert_allclose(scaled.objectives, expected, rtol=1e-9)


@SHORT
@pytest.mark.parametrize("name", SHARED_FITS)
def test_sweeps_of_rows_times_a_power_of_two(name):
    estimator, X, powers = SHARED_FITS[name]
    plain = sweep(estimator, X, KS)
    for power in (-900, 300, 900):
        scaled = sweep(moved_options(estimator, power), times(X, power), KS)
        check_sweeps_alike(plain, scaled, X, None, powers, power, 0)
        assert scaled.X.shape == X.shape


@pytest.mark.filterwarnings("ignore:GaussianMixture did not converge")  # one of five components collapses slowly
@SHORT
@pytest.mark.parametrize("name", [name for name in SHARED_FITS if name != "ward"])
def test_sweeps_with_weights_times_a_power_of_two(name):
    estimator, X, powers = SHARED_FITS[name]
    w = WEIGHTS[: X.shape[0]]
    plain = sweep(estimator, X, KS, sample_weight=w)
    for power in (-900,) if "missing" in name else (-900, 900):
        scaled = sweep(estimator, X, KS, sample_weight=np.ldexp(w, power))
        check_sweeps_alike(plain, scaled, X, w, powers, 0, power)


@pytest.mark.filterwarnings("ignore:GaussianMixture did not converge")
def test_mixtures_of_a_sweep_that_start_from_fewer_components():
    estimator = GaussianMixture(init_params="random", max_iter=5, random_state=3)
    plain, scaled = (sweep(estimator, np.ldexp(ROWS, power), [1, 2, 3, 4]) for power in (0, -600))
    assert not np.array_equal(plain.labels[3], estimator.set_params(n_components=4).fit(ROWS).labels_)
    check_sweeps_alike(plain, scaled, ROWS, None, None, -600, 0)


def test_models_of_a_sweep_have_the_options_and_columns_of_the_estimator():
    frame = pd.DataFrame(np.ldexp(ROWS, -600), columns=["a", "b", "c"])
    frozen = np.ldexp(ROWS[:1], -600)
    model = sweep(KMeans(**R, frozen_centers=frozen), frame, [3]).model(3)
    np.testing.assert_array_equal(model.frozen_centers, frozen)
    assert model.n_clusters == 3
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.cluster_centers_[:1], frozen)


@pytest.mark.parametrize("power", [-900, -450, 450, 900])
def test_indices_of_a_sweep_have_no_unit(power):
    plain, scaled = (sweep(KMeans(**R), np.ldexp(ROWS, p), [2, 3, 4]) for p in (0, power))
    for name in ("silhouette", "calinski_harabasz", "davies_bouldin", "dunn"):
        np.testing.assert_allclose(scaled.curve(name).values, plain.curve(name).values, rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [{}, {"power": 1.0, "reference": "pca"}, {"estimator": KMedians(**R, search="none")}],
    ids=["kmeans", "pca", "medians"],
)
def test_the_gap_statistic_has_no_unit(options):
    options = {"n_references": 3, "random_state": 0, **options}
    plain = gap_statistic(ROWS, [1, 2, 3], sample_weight=WEIGHTS, **options)
    for rows, weights in ((-900, 0), (-450, 30), (300, 900), (900, -900)):
        scaled = gap_statistic(np.ldexp(ROWS, rows), [1, 2, 3], sample_weight=np.ldexp(WEIGHTS, weights), **options)
        np.testing.assert_allclose(scaled.gap, plain.gap, rtol=1e-6, atol=1e-9)
        shift = (plain.power * rows + weights) * np.log(2)
        np.testing.assert_allclose(scaled.log_w - shift, plain.log_w, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(scaled.expected - shift, plain.expected, rtol=1e-6, atol=1e-9)
        assert scaled.recommended == plain.recommended


def test_the_estimator_of_a_gap_statistic_has_options_in_the_units_of_the_rows():
    def gap(power):
        estimator = KMeans(**R, frozen_centers=np.ldexp(ROWS[:1], power))
        return gap_statistic(np.ldexp(ROWS, power), [2, 3], n_references=3, estimator=estimator, **R).gap

    np.testing.assert_allclose(gap(-900), gap(0), rtol=1e-6)


@pytest.mark.parametrize("power", [-900, -450, 450, 900])
def test_the_test_for_clusters_has_no_unit(power):
    plain, scaled = (tendency(np.ldexp(ROWS, p), [2, 3, 4], n_references=4, **R) for p in (0, power))
    np.testing.assert_allclose(scaled.silhouettes, plain.silhouettes, rtol=1e-9)
    assert scaled.p_value == pytest.approx(plain.p_value, rel=1e-6)


@pytest.mark.parametrize("split, X", [(x_means, ROWS), (g_means, ROWS), (g_means, SPARSE)])
def test_splits_of_rows_times_a_power_of_two(split, X):
    plain = split(X, **R)
    shift = X.shape[0] * X.shape[1] * np.log(2)
    assert plain.n_clusters > 1
    for power in (-900, 300, 900):
        scaled, moved = split(times(X, power), **R), times(X, power)
        np.testing.assert_array_equal(scaled.labels, plain.labels)
        np.testing.assert_array_equal(scaled.model.predict(moved), plain.labels)
        np.testing.assert_array_equal(scaled.centers, np.ldexp(plain.centers, power))
        with np.errstate(over="ignore", under="ignore"):
            assert scaled.inertia == np.ldexp(plain.inertia, 2 * power)
        assert scaled.bic - 2 * power * shift == pytest.approx(plain.bic, rel=1e-6)
        for test, expected in zip(scaled.history, plain.history, strict=True):
            assert test.statistic == pytest.approx(expected.statistic, rel=1e-6)
            assert test.split == expected.split
        np.testing.assert_array_equal(type(scaled.model)(**scaled.model.get_params()).fit(moved).labels_, plain.labels)


@SHORT
@pytest.mark.parametrize("starts", ["auto", "sweep"])
def test_tables_of_mixtures_of_rows_and_weights_times_a_power_of_two(starts):
    def table(rows, weights):
        X, w = np.ldexp(ROWS, rows), np.ldexp(WEIGHTS, weights)
        start = sweep(KMeans(**R), X, [1, 3], sample_weight=w) if starts == "sweep" else "auto"
        return mixture_table(X, [1, 3], structures=["EII", "VVV"], sample_weight=w, starts=start, **R)

    plain, total = table(0, 0), WEIGHTS.sum()
    for rows, weights in ((-900, 0), (300, -900), (900, 40)):
        scaled = table(rows, weights)
        shift = log_volume(ROWS, WEIGHTS, rows)
        likelihood = np.ldexp(scaled.log_likelihood, -weights) + shift
        np.testing.assert_allclose(likelihood, plain.log_likelihood, rtol=1e-6)
        penalty = plain.n_parameters * (np.log(total) + weights * np.log(2))
        np.testing.assert_allclose(scaled.bic, -2 * scaled.log_likelihood + penalty, rtol=1e-6)
        if not weights:
            np.testing.assert_allclose(scaled.icl - 2 * shift, plain.icl, rtol=1e-6)
            assert [str(choice) for choice in scaled.best()] == [str(choice) for choice in plain.best()]
            for key, model in plain.models.items():
                np.testing.assert_array_equal(scaled.models[key].predict(np.ldexp(ROWS, rows)), model.labels_)


@pytest.mark.parametrize("power", [-900, -450, 450, 900])
def test_stability_has_no_unit(power):
    plain, scaled = (stability(KMeans(), np.ldexp(ROWS, p), [2, 3], n_resamples=4, **R) for p in (0, power))
    np.testing.assert_array_equal(scaled.values, plain.values)


@SHORT
def test_the_choice_of_k_of_rows_times_a_power_of_two():
    options = {"ks": [1, 2, 3, 4], "budget": "quick", **R}
    options["criteria"] = [
        "tendency", "silhouette", "calinski_harabasz", "davies_bouldin", "dunn", "elbow", "gap", "prediction_strength",
        "stability", "dendrogram", "x_means", "g_means", "dirichlet", "bic", "icl",
    ]  # fmt: skip
    plain = choose_k(ROWS, **options)
    for power in (-900, -450, 450, 900):
        scaled = choose_k(np.ldexp(ROWS, power), **options)
        np.testing.assert_allclose(scaled.support, plain.support, rtol=1e-6, atol=1e-9)
        for vote, expected in zip(scaled.votes, plain.votes, strict=True):
            if vote.criterion != "elbow" or abs(power) < 500:  # the objectives of the elbow can leave the range
                assert vote.k == expected.k
        np.testing.assert_array_equal(scaled.sweep.model(3).labels_, plain.sweep.model(3).labels_)


def test_an_elbow_needs_objectives_that_can_be_represented():
    result = choose_k(np.ldexp(ROWS, 900), [1, 2, 3, 4], criteria=["silhouette", "elbow"], **R)
    (vote,) = (vote for vote in result.votes if vote.criterion == "elbow")
    assert vote.k is None
    assert vote.note == "the objective cannot be represented in the units of X"


@pytest.mark.parametrize(
    "call",
    [
        lambda X, w: choose_k(X, [2, 3], criteria="calinski_harabasz", sample_weight=w),
        lambda X, w: tendency(X, [2, 3], sample_weight=w),
        lambda X, w: x_means(X, sample_weight=w),
        lambda X, w: g_means(X, sample_weight=w),
        lambda X, w: stability(KMeans(), X, [2, 3], sample_weight=w),
        lambda X, w: mixture_table(X, [2, 3], prior="default", sample_weight=w),
    ],
    ids=["choose_k", "tendency", "x_means", "g_means", "stability", "mixture_table"],
)
@pytest.mark.parametrize("power", [-600, 600])
def test_weights_that_are_numbers_of_rows_have_a_scale(call, power):
    with pytest.raises(ScaleError, match=r"sample_weight has values up to about 2\^"):
        call(ROWS, np.ldexp(WEIGHTS, power))


@pytest.mark.parametrize("power", [60, 190])
def test_whole_weights_too_large_to_be_counted_are_shares(power):
    """A bootstrap draws as many rows as the sum of whole weights, up to 2^53."""
    result = stability(KMeans(), ROWS, [3], n_resamples=3, sample_weight=np.ldexp(WEIGHTS, power), **R)
    assert np.isfinite(result.values).all()


@pytest.mark.parametrize(
    "call", [lambda model, X: sweep(model, X, [1, 2]), lambda model, X: mixture_table(X, [2], prior=model.prior)]
)
def test_a_prior_in_the_units_of_the_rows_has_a_scale(call):
    prior = Prior(1.0, np.zeros(3), 0.01, 5.0, np.eye(3))
    with pytest.raises(ScaleError, match="divide X by a power of two first"):
        call(GaussianMixture(prior=prior), np.ldexp(ROWS, 600))


@pytest.mark.parametrize("call", [choose_k, tendency, gap_statistic, x_means, g_means, mixture_table])
def test_missing_values_of_rows_out_of_range_are_an_error(call):
    with pytest.raises(ValueError, match="Input X contains NaN"):
        call(np.ldexp(HOLES, 900))
