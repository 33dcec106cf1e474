"""Multiplying rows by a power of two changes no distance, medoid or tree but its exponent."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import AgglomerativeClustering, DivisiveClustering, KMedoids, load, metrics, save
from coterie.distances import pairwise
from coterie.errors import InputError
from laws.scales import LABELS, ROWS, SHORT, WEIGHTS, K, check_alike, fitted

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


HEIGHTS = {"biggest_inertia": (2, 1), "largest_cluster": (0, 1)}


@pytest.mark.parametrize("strategy", HEIGHTS)
def test_bisections_of_rows_and_weights_times_a_power_of_two(strategy, tmp_path):
    model = DivisiveClustering(4, method="bisecting", bisecting_strategy=strategy, random_state=0)
    for dtype, scales in ((np.float64, ((-900, 0), (450, -900), (900, 600))), (np.float32, ((-100, 0), (60, 800)))):
        X = ROWS[:40].astype(dtype)
        plain = fitted(model, X, WEIGHTS[:40] + 1)
        for rows, weights in scales:
            scaled, moved = fitted(model, np.ldexp(X, rows), np.ldexp(WEIGHTS[:40] + 1, weights)), np.ldexp(X, rows)
            check_alike(plain, scaled, {"distances_": HEIGHTS[strategy]}, rows, weights)
            assert scaled.divisive_coefficient_ == plain.divisive_coefficient_
            save(scaled, tmp_path / "tree.safetensors", overwrite=True)
            np.testing.assert_array_equal(load(tmp_path / "tree.safetensors").predict(moved), plain.labels_)


@pytest.mark.parametrize("compute_full_tree", [True, False])
def test_a_threshold_is_in_the_units_of_the_heights(compute_full_tree):
    height = float(fitted(DivisiveClustering(2, method="bisecting", random_state=0), ROWS).distances_[-5])
    for power in (0, 300):
        options = {"method": "bisecting", "compute_full_tree": compute_full_tree, "random_state": 0}
        threshold = float(np.ldexp(height, 2 * power))
        model = DivisiveClustering(None, distance_threshold=threshold, **options).fit(np.ldexp(ROWS, power))
        assert model.n_clusters_ == 6


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
