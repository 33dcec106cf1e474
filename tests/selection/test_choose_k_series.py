"""`choose_k` for time series: criteria in the metric of the estimator."""

import numpy as np
import pytest

import coterie
from coterie import KMedoids, TimeSeriesKMeans, choose_k
from coterie.distances import dtw, soft_dtw
from coterie.errors import InputError, ParameterError
from coterie.metrics import silhouette_score
from coterie.selection.choose_k_by_distances import series_distances


def shifted(n, k, seed=0, noise=0.05):
    """Pulses of k forms at random times, in series of different lengths."""
    rng = np.random.default_rng(seed)
    forms = [np.repeat([0, 4.0, 0], [1, 3, 1]), np.array([0, -3.0, 3, 0, 0]), np.array([0, 2.0, 5, 2, -4])][:k]
    series = []
    for i in range(n):
        x = rng.normal(0, noise, rng.integers(18, 25))
        at = rng.integers(1, 11)
        x[at : at + 5] += forms[i % k]
        series.append(x)
    return series


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "estimator",
    [TimeSeriesKMeans(), KMedoids(metric="dtw"), coterie.AgglomerativeClustering(metric="dtw", linkage="average")],
    ids=["kmeans", "medoids", "average"],
)
def test_the_number_of_shapes_is_found(k, estimator):
    result = choose_k(shifted(36, k), range(1, 5), estimator=estimator, budget="quick", random_state=0)
    assert result.recommended == k
    assert result.tendency.clustered


def test_silhouettes_are_those_of_the_metric():
    X = shifted(30, 2)
    result = choose_k(X, [2, 3], estimator=TimeSeriesKMeans(window=4), budget="quick", random_state=0)
    D = np.array([[dtw(a, b, window=4) for b in X] for a in X])
    expected = silhouette_score(D, result.sweep.labels[0], metric="precomputed")
    assert result.results["silhouette"].values[0] == pytest.approx(expected, rel=1e-9)


def test_distances_of_soft_dtw_are_roots_of_divergences():
    X = shifted(8, 2)
    width = max(map(len, X))
    table = np.array([np.pad(x, (0, width - len(x)), constant_values=np.nan) for x in X])
    D = series_distances(TimeSeriesKMeans(metric="softdtw", gamma=0.5), table)
    expected = [[max(soft_dtw(a, b, gamma=0.5, divergence=True), 0.0) ** 0.5 for b in X] for a in X]
    np.testing.assert_allclose(D, expected, atol=1e-7)


@pytest.mark.parametrize("metric", ["softdtw", "euclidean"])
def test_other_metrics_of_series(metric):
    X = np.array([x[:18] for x in shifted(24, 2)])
    X = X if metric == "softdtw" else np.sin(np.linspace(0, 5, 18)) * np.repeat([[1.0], [9.0]], 12, axis=0) + 0.01 * X
    result = choose_k(X, [2, 3], estimator=TimeSeriesKMeans(metric=metric, gamma=0.1), budget="quick", random_state=0)
    assert result.recommended == 2


def test_series_without_clusters_are_not_clear():
    rng = np.random.default_rng(0)
    walks = [rng.normal(size=rng.integers(20, 30)).cumsum() for _ in range(40)]
    result = choose_k(walks, [1, 2, 3], estimator=TimeSeriesKMeans(window=5), budget="quick", random_state=0)
    assert not result.tendency.clustered
    assert result.strength != "clear"


def test_weights_of_zero_leave_series_out():
    X = shifted(30, 2)
    weighted = choose_k(
        [*X, np.full(5, 1e3), np.full(9, -1e3)], [2, 3], estimator=TimeSeriesKMeans(), budget="quick", random_state=0,
        sample_weight=np.r_[np.ones(30), 0.0, 0.0],
    )  # fmt: skip
    alone = choose_k(X, [2, 3], estimator=TimeSeriesKMeans(), budget="quick", random_state=0, sample_weight=np.ones(30))
    assert (weighted.n, weighted.recommended) == (30, alone.recommended)


def test_criteria_that_need_rows_of_numbers_are_rejected():
    with pytest.raises(ParameterError, match=r"criteria for series are tendency, .*; got 'gap', which needs"):
        choose_k(shifted(20, 2), estimator=TimeSeriesKMeans(), criteria=["silhouette", "gap"])
    with pytest.raises(InputError, match="2 channels, and K can be chosen for one"):
        choose_k(np.zeros((9, 5, 2)), estimator=TimeSeriesKMeans())


def test_a_sample_of_many_long_series_is_used():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [9.0]], 60, axis=0) + rng.normal(size=(120, 400)).cumsum(axis=1) * 0.01
    result = choose_k(
        X, [2], estimator=TimeSeriesKMeans(window=1), criteria="silhouette", budget="quick", random_state=0
    )
    assert (result.rows, result.n) == (60, 120)
