"""Multiplying rows or weights by a power of two changes no label, and only the exponent of results."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from coterie import (
    AgglomerativeClustering,
    BalancedKMeans,
    BayesianGaussianMixture,
    BisectingKMeans,
    DivisiveClustering,
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
    load,
    metrics,
    save,
)
from coterie.diagnosis import diagnose
from coterie.distances import pairwise
from coterie.errors import InputError, RangeWarning
from coterie.selection import choose_k, g_means, gap_statistic, sweep, x_means

SHORT = pytest.mark.usefixtures("short_searches")  # of any length, a search finds the same at any scale

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
            expected = np.ldexp(getattr(plain, name), int(by_rows * rows + by_weights * weights))
        np.testing.assert_array_equal(getattr(scaled, name), expected, err_msg=name)


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


@pytest.mark.parametrize(
    "call",
    [
        lambda X: MiniBatchKMeans(3).partial_fit(X),
        lambda X: KMeans(3).fit_trace(X),
        lambda X: KernelKMeans(3).fit(X),
        lambda X: GaussianMixture(3, missing="ignore").fit(X),
        lambda X: DivisiveClustering(3, method="bisecting").fit(X),
        lambda X: TimeSeriesKMeans(3).fit(X),
        lambda X: Mixture("auto", "gaussian").fit(X),
        lambda X: Mixture(2, "poisson").fit(np.abs(X)),
        lambda X: gap_statistic(X, range(1, 3)),
        lambda X: sweep(KMeans(), X, range(1, 3)),
        lambda X: choose_k(X, range(2, 4), random_state=0),
        lambda X: x_means(X),
        lambda X: g_means(X),
    ],
)
def test_what_cannot_be_rescaled_says_so(call):
    with pytest.raises(InputError, match=r"X has values up to about 2\^-59\d: .* divide X by a power of two first"):
        call(np.ldexp(ROWS, -600))


@pytest.mark.parametrize("power", [-1000, -600, 600])
def test_a_diagnosis_does_not_depend_on_the_scale(power):
    plain, scaled = (diagnose(rows, random_state=0) for rows in (ROWS, np.ldexp(ROWS, power)))
    for name, check in plain.checks.items():
        assert scaled.checks[name].value == pytest.approx(check.value, rel=1e-6), name


LABELS = rng.integers(0, 3, 150)
INDICES = {  # power of the rows
    "inertia": (metrics.inertia, 2),
    "bcss": (metrics.bcss, 2),
    "tss": (lambda X, labels, **how: metrics.tss(X, **how), 2),
    "calinski_harabasz": (metrics.calinski_harabasz_score, 0),
    "davies_bouldin": (metrics.davies_bouldin_score, 0),
    "silhouette": (metrics.silhouette_score, 0),
    "silhouette of squares": (
        lambda X, labels, **how: metrics.silhouette_score(X, labels, metric="sqeuclidean", **how),
        0,
    ),
    "silhouette, manhattan": (
        lambda X, labels, **how: metrics.silhouette_score(X, labels, metric="manhattan", **how),
        0,
    ),
    "silhouette, simplified": (
        lambda X, labels, **how: metrics.silhouette_score(X, labels, approximation="simplified", **how),
        0,
    ),
    "dunn": (metrics.dunn_score, 0),
    "dunn of means": (
        lambda X, labels, **how: metrics.dunn_score(X, labels, intercluster="centroid", intracluster="centroid", **how),
        0,
    ),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("n", [150, 20], ids=["compiled", "plain"])
def test_indices_of_rows_times_a_power_of_two(name, n):
    index, power = INDICES[name]
    X, labels, w = ROWS[:n], LABELS[:n], WEIGHTS[:n]
    for rows in (-450, 450, *(() if power else (-900, 900))):
        assert index(np.ldexp(X, rows), labels) == np.ldexp(index(X, labels), power * rows)
    for rows in (-60, 60):
        single = X.astype(np.float32)
        assert index(np.ldexp(single, rows), labels) == np.ldexp(index(single, labels), power * rows)
    if power:
        assert index(X, labels, sample_weight=np.ldexp(w, 900)) == np.ldexp(index(X, labels, sample_weight=w), 900)


def test_davies_bouldin_does_not_see_the_scale_of_weights():
    expected = metrics.davies_bouldin_score(ROWS, LABELS, sample_weight=WEIGHTS)
    for power in (-1000, 900):
        assert metrics.davies_bouldin_score(ROWS, LABELS, sample_weight=np.ldexp(WEIGHTS, power)) == expected


@pytest.mark.parametrize("index", [metrics.silhouette_score, metrics.dunn_score])
def test_weights_that_are_numbers_of_rows_have_a_scale(index):
    with pytest.raises(InputError, match="sample_weight has values up to about"):
        index(ROWS, LABELS, sample_weight=np.ldexp(WEIGHTS, 900))


METRICS = {  # power of the rows
    "euclidean": 1, "sqeuclidean": 2, "manhattan": 1, "chebyshev": 1, "minkowski": 1, "mahalanobis": 0, "cosine": 0,
    "correlation": 0, "gower": 0, "dtw": 1,
}  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n", [150, 20], ids=["compiled", "plain"])
def test_distances_of_rows_times_a_power_of_two(metric, n):
    power, options = METRICS[metric], {"p": 3} if metric == "minkowski" else {}
    for dtype, scales in ((np.float64, (-450, 450)), (np.float32, (-58, 58))):
        X = ROWS[:n].astype(dtype)
        expected = pairwise(X, metric=metric, **options)
        for rows in scales:
            found = pairwise(np.ldexp(X, rows), metric=metric, **options)
            np.testing.assert_array_equal(found, np.ldexp(expected, power * rows))
    if power < 2:
        found = pairwise(np.ldexp(ROWS, -900), np.ldexp(ROWS[:3], -900), metric=metric, **options)
        np.testing.assert_array_equal(found, np.ldexp(pairwise(ROWS, ROWS[:3], metric=metric, **options), -900 * power))


@pytest.mark.parametrize("power", [-600, 600])
def test_squared_distances_that_no_number_can_hold_are_an_error(power):
    with pytest.raises(InputError, match="whose squared distances float64 cannot represent: use metric='euclidean'"):
        pairwise(np.ldexp(ROWS, power), metric="sqeuclidean")


@pytest.mark.parametrize("options", [{"p": 1}, {"p": 2}, {"p": 3}, {"p": np.inf}], ids=str)
def test_minkowski_distances_of_any_p_have_no_scale(options):
    expected = pairwise(ROWS, metric="minkowski", **options)
    for power in (-900, 900):
        scaled = pairwise(np.ldexp(ROWS, power), metric="minkowski", **options)
        np.testing.assert_array_equal(scaled, np.ldexp(expected, power))


@pytest.mark.parametrize("power", [-900, -300, 300, 900])
def test_mahalanobis_distances_with_a_covariance_in_another_unit(power):
    cov = np.cov(ROWS.T)
    expected = pairwise(ROWS, metric="mahalanobis", cov=cov)
    for rows, unit in ((power, 0), (0, power)):
        scaled = pairwise(np.ldexp(ROWS, rows), metric="mahalanobis", cov=np.ldexp(cov, unit))
        np.testing.assert_allclose(scaled, np.ldexp(expected, rows - unit // 2), rtol=1e-12)
    with pytest.raises(InputError, match="divide X by a power of two first"):
        pairwise(np.ldexp(ROWS, 900), metric="mahalanobis", cov=np.ldexp(cov, -900))


@pytest.mark.parametrize("n", [150, 20], ids=["compiled", "plain"])
@pytest.mark.parametrize("metric", METRICS)
def test_distances_at_the_ends_of_the_range_are_right_or_an_error(metric, n):
    """No NaN, no infinity and no warning leaves: the rows here have values up to the largest number there is."""
    for dtype in (np.float64, np.float32):
        limits = np.finfo(dtype)
        X = (ROWS[:n] / np.abs(ROWS[:n]).max()).astype(dtype)
        X[:2] = [[1], [-1]] * np.array([1, 1, 0.5], dtype)
        for power in (limits.maxexp, limits.maxexp - 1, limits.maxexp - 4, limits.minexp - 8, limits.minexp + 8):
            rows = np.ldexp(X * dtype(1 - limits.eps), power)
            try:
                distances = pairwise(rows, metric=metric)
            except InputError as error:
                assert "divide" in str(error)  # noqa: PT017
                continue
            expected = pairwise(np.ldexp(rows, -power), metric=metric)
            ratio = np.ldexp(distances.astype(np.longdouble), -METRICS[metric] * power)
            few_digits = METRICS[metric] and power < limits.minexp  # distances are rounded as much as the rows
            np.testing.assert_allclose(ratio, expected, atol=(2**10 if few_digits else 16) * float(limits.eps))


MEDOIDS = {"cluster_centers_": (1, 0), "inertia_": (1, 1), "history_": (1, 1)}
SILHOUETTES = {"inertia_": (1, 1), "history_": (0, 1), "silhouette_": (0, 0)}
TREES = {"distances_": (1, 0)}
BY_DISTANCE = {  # model, powers of what it finds
    "medoids": (KMedoids(**K), MEDOIDS),
    "medoids, manhattan": (KMedoids(**K, metric="manhattan"), MEDOIDS),
    "medoids, cosine": (KMedoids(**K, metric="cosine"), {"inertia_": (0, 1)}),
    "medoids by silhouettes": (KMedoids(**K, objective="silhouette"), SILHOUETTES),
    **{
        f"agglomerative, {linkage}": (AgglomerativeClustering(4, linkage=linkage), TREES)
        for linkage in ("ward", "average", "single", "complete", "centroid", "median", "weighted")
    },
    "agglomerative, manhattan": (AgglomerativeClustering(4, linkage="average", metric="manhattan"), TREES),
    "agglomerative, mahalanobis": (AgglomerativeClustering(4, metric="mahalanobis"), {"distances_": (0, 0)}),
    "agglomerative, graph": (
        AgglomerativeClustering(4, connectivity=np.eye(150, k=1) + np.eye(150, k=3) + np.eye(150, k=50)), TREES,
    ),
    "divisive": (DivisiveClustering(4), TREES),
}  # fmt: skip


@SHORT
@pytest.mark.parametrize("name", BY_DISTANCE)
def test_distances_find_the_same_clusters_at_any_scale(name):
    model, powers = BY_DISTANCE[name]
    for dtype, scales in ((np.float64, (-900, 450, 900)), (np.float32, (-90, 45, 90))):
        X = ROWS.astype(dtype)
        plain = fitted(model, X)
        for rows in scales:
            scaled = fitted(model, np.ldexp(X, rows))
            check_alike(plain, scaled, powers, rows, 0)
            np.testing.assert_array_equal(scaled.predict(np.ldexp(X, rows)), plain.predict(X))


@SHORT
@pytest.mark.parametrize("name", [name for name in BY_DISTANCE if name != "divisive"])
def test_weights_of_any_scale_with_distances(name):
    model, powers = BY_DISTANCE[name]
    positive = WEIGHTS + 1  # new rows, and rows without weight, join a tree as rows of weight 1
    plain = fitted(model, ROWS, positive)
    for weights in (-1000, 900):
        # what Ward's method calls a height grows with the root of the weights
        ward = "ward" in name or name in ("agglomerative, mahalanobis", "agglomerative, graph")
        expected = {"distances_": (0, 0.5)} if ward else powers
        scaled = fitted(model, ROWS, np.ldexp(positive, weights))
        check_alike(plain, scaled, {key: (a, b) for key, (a, b) in expected.items()}, 0, weights)


@pytest.mark.parametrize("model", [KMedoids(**K), AgglomerativeClustering(4, linkage="average"), DivisiveClustering(4)])
def test_given_distances_of_any_scale(model):
    D = pairwise(ROWS)
    model = type(model)(**{**model.get_params(), "metric": "precomputed"})
    plain = fitted(model, D)
    for power in (-900, 900):
        np.testing.assert_array_equal(fitted(model, np.ldexp(D, power)).labels_, plain.labels_)
    assert metrics.silhouette_score(np.ldexp(D, 900), LABELS, metric="precomputed") == metrics.silhouette_score(
        D, LABELS, metric="precomputed"
    )


C = {"n_components": 3, "random_state": 0}
POSITIVE = np.abs(ROWS) + 0.1
GAUSSIAN = {"means_": 1, "covariances_": 2, "precisions_": -2, "precisions_cholesky_": -1}
MIXTURES = {  # model, rows, powers of parameters
    "gaussian": (GaussianMixture(**C), ROWS, GAUSSIAN),
    "gaussian tied": (GaussianMixture(**C, covariance_type="tied", init_params="k-means++"), ROWS, GAUSSIAN),
    "gaussian missing": (GaussianMixture(**C, missing="ignore"), HOLES, GAUSSIAN),
    "bayesian": (BayesianGaussianMixture(**C), ROWS, {**GAUSSIAN, "mean_prior_": 1, "covariance_prior_": 2}),
    "family gaussian": (Mixture(family="gaussian", **C), ROWS, {"mean": 1, "covariance": 2}),
    "student_t": (Mixture(family="student_t", **C), ROWS, {"location": 1, "scale": 2, "dof": 0}),
    "exponential": (Mixture(family="exponential", **C), POSITIVE, {"rate": -1}),
    "gamma": (Mixture(family="gamma", **C), POSITIVE, {"shape": 0, "rate": -1}),
}
NEAR = {"rtol": 1e-6, "atol": 1e-9}  # log densities have the unit of the rows in them, and so does their rounding


def parameter(model, name):
    return getattr(model, name) if hasattr(model, name) else getattr(model.components_, name)


@pytest.mark.parametrize("name", [name for name in MIXTURES if name not in ("gaussian missing", "gamma")])
def test_mixtures_of_rows_times_a_power_of_two(name):
    model, X, powers = MIXTURES[name]
    plain = fitted(model, X)
    for rows in (-480, 60, 480):
        scaled, moved = fitted(model, np.ldexp(X, rows)), np.ldexp(X, rows)
        np.testing.assert_array_equal(scaled.labels_, plain.labels_)
        np.testing.assert_array_equal(scaled.predict(moved), plain.labels_)
        for key, power in powers.items():
            np.testing.assert_allclose(np.ldexp(parameter(scaled, key), -power * rows), parameter(plain, key), **NEAR)
        unit = X.shape[1] * rows * np.log(2)
        np.testing.assert_allclose(scaled.score_samples(moved) + unit, plain.score_samples(X), **NEAR)
        assert scaled.score(moved) + unit == pytest.approx(plain.score(X), abs=1e-6)
        total = 1 if name == "bayesian" else len(X)
        assert scaled.lower_bound_ + unit * len(X) / total == pytest.approx(plain.lower_bound_, rel=1e-6)
        if name != "bayesian":
            assert scaled.bic(moved) - 2 * unit * len(X) == pytest.approx(plain.bic(X), rel=1e-6)
            assert scaled.log_likelihood_ == pytest.approx(scaled.score(moved) * len(X), rel=1e-9)
            assert scaled.history_.log_likelihood[-1] == pytest.approx(scaled.log_likelihood_, rel=1e-9)
        drawn = scaled.sample(200)[0]
        np.testing.assert_allclose(np.ldexp(drawn, -rows), plain.sample(200)[0], rtol=1e-5, atol=1e-5)


def test_gamma_components_of_rows_times_a_power_of_two():
    """Logarithms of the rows have their unit in them: of starts that lead to one optimum, rounding chooses."""
    model, X, _ = MIXTURES["gamma"]
    plain = fitted(model, X)
    order = np.argsort(plain.components_.rate[:, 0])
    for rows in (-480, 60, 480):
        scaled = fitted(model, np.ldexp(X, rows))
        same = np.argsort(scaled.components_.rate[:, 0])
        np.testing.assert_array_equal(np.argsort(same)[scaled.labels_], np.argsort(order)[plain.labels_])
        np.testing.assert_allclose(scaled.components_.shape[same], plain.components_.shape[order], rtol=1e-3)
        np.testing.assert_allclose(
            np.ldexp(scaled.components_.rate[same], rows), plain.components_.rate[order], rtol=1e-3
        )


@pytest.mark.parametrize("name", [name for name in MIXTURES if name != "bayesian"])
def test_mixtures_with_weights_times_a_power_of_two(name):
    model, X, powers = MIXTURES[name]
    plain = fitted(model, X, WEIGHTS)
    for power in (-1000, -20, 90, 900):
        w = np.ldexp(WEIGHTS, power)
        scaled = fitted(model, X, w)
        np.testing.assert_array_equal(scaled.labels_, plain.labels_)
        for key in powers:
            np.testing.assert_array_equal(parameter(scaled, key), parameter(plain, key))
        assert scaled.log_likelihood_ == np.ldexp(plain.log_likelihood_, power)
        assert scaled.lower_bound_ == plain.lower_bound_
        assert scaled.score(X, sample_weight=w) == pytest.approx(plain.score(X, sample_weight=WEIGHTS), rel=1e-12)
        assert scaled.score(X) == pytest.approx(plain.score(X), rel=1e-12)


def test_cdf_and_quantile_are_in_the_units_of_the_rows():
    X = ROWS[:, :1]
    plain, scaled = (
        fitted(GaussianMixture(2, random_state=0), X),
        fitted(GaussianMixture(2, random_state=0), np.ldexp(X, 700)),
    )
    np.testing.assert_allclose(scaled.cdf(np.ldexp(X[:5, 0], 700)), plain.cdf(X[:5, 0]), rtol=1e-9)
    np.testing.assert_allclose(np.ldexp(scaled.quantile([0.1, 0.8]), -700), plain.quantile([0.1, 0.8]), rtol=1e-9)


@pytest.mark.parametrize("model", [BayesianGaussianMixture(2), GaussianMixture(2, prior="default")])
def test_priors_make_weights_numbers_of_rows(model):
    with pytest.raises(InputError, match="sample_weight has values up to about"):
        model.fit(ROWS, sample_weight=np.ldexp(WEIGHTS, 900))


def test_an_answer_without_weights_has_none_to_be_multiplied_by():
    plain, scaled = fitted(KMeans(**K), ROWS, WEIGHTS), fitted(KMeans(**K), ROWS, np.ldexp(WEIGHTS, 900))
    assert scaled.score(ROWS) == plain.score(ROWS)
    with pytest.raises(InputError, match="sample_weight has values up to about"):
        plain.score(ROWS, sample_weight=np.ldexp(WEIGHTS, 900))


@pytest.mark.parametrize("model", [GaussianMixture(2), BayesianGaussianMixture(2)], ids=["em", "variational"])
def test_precisions_that_float32_cannot_hold_are_told_of(model):
    X = np.ldexp(ROWS, -54 - int(np.ceil(np.log2(np.abs(ROWS).max())))).astype(np.float32)
    X[:, 1:] *= np.float32(2.0**-20)  # the largest value is safe, squares of the others are not
    with pytest.warns(RangeWarning, match="precisions_ cannot be represented in float32, the dtype of X"):
        small = model.set_params(random_state=0).fit(X)
    assert np.isfinite(small.means_).all()
    np.testing.assert_array_equal(small.predict(X), small.labels_)


def test_values_of_soft_dtw_that_float32_cannot_hold_are_told_of():
    X = np.ldexp(ROWS[:12], 80).astype(np.float32)
    model = TimeSeriesKMeans(2, metric="softdtw", n_init=1, max_iter=2, random_state=0).fit(X)
    with pytest.warns(RangeWarning, match="distances cannot be represented in float32"):
        assert np.isinf(model.transform(X)).any()


@pytest.mark.parametrize("seed", [4, 6, 10])
@pytest.mark.parametrize("power", [-40, 40])
def test_the_scale_of_float32_rows_does_not_decide_when_a_mixture_converges(power, seed):
    """Densities of large rows are small; rounding must not count their logarithms as noise of the objective."""
    X = np.random.default_rng(seed).normal(size=(40, 2)).astype(np.float32)
    model = GaussianMixture(2, init_params="random", random_state=0, max_iter=300)
    plain, scaled = clone(model).fit(X), clone(model).fit(np.ldexp(X, power))
    assert scaled.n_iter_ == plain.n_iter_
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)


def test_parameters_of_families_too_large_for_their_type_are_told_of():
    X = np.ldexp(np.random.default_rng(6).normal(size=(30, 2)), 700)
    with pytest.warns(RangeWarning, match="covariance"):
        Mixture(2, "gaussian", random_state=0).fit(X)


@pytest.mark.parametrize("model", [FuzzyCMeans(1, fuzzifier=1.01, init="farthest"), KMedians(1), SphericalKMeans(1)])
def test_a_far_row_without_weight_has_no_effect_on_a_trace(model):
    """Its cost in units of the other rows leaves the range of float32."""
    X, w = np.array([[1.0, 2.0], [2.0, 1.0], [1e25, -1e25]], np.float32), np.array([1.0, 1.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = clone(model).set_params(random_state=0).fit_trace(X, sample_weight=w)
    np.testing.assert_allclose(trace.model.cluster_centers_, clone(model).fit(X[:2]).cluster_centers_, rtol=1e-3)
