"""Trees with decreasing heights: the threshold follows scikit-learn, a cut at a height follows SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster import hierarchy as scipy_tree
from sklearn.cluster import AgglomerativeClustering as Reference
from sklearn.neighbors import kneighbors_graph

from coterie import AgglomerativeClustering
from coterie.hierarchy import cut

GRAPH_METHODS = ["ward", "complete", "average"]
SEEDS = range(4)


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


def rows(seed):
    return np.random.default_rng(seed).normal(size=(80, 3))


def between(heights):
    """Thresholds that rounding of a height cannot cross: amid neighbouring heights, and beyond all."""
    steps = np.sort(heights)
    middle = (steps[1:] + steps[:-1]) / 2
    return [0.0, *middle[np.diff(steps) > 1e-9 * steps[-1]][::6].tolist(), 2 * float(steps[-1])]


def neighbours(X, seed):
    """Each row with three others drawn at random: merges uncover neighbours that are nearer."""
    rng = np.random.default_rng(seed)
    graph = kneighbors_graph(X, 1, include_self=False).tolil()
    graph[np.repeat(np.arange(len(X)), 3), rng.integers(len(X), size=3 * len(X))] = 1
    graph[np.arange(len(X) - 1), np.arange(1, len(X))] = 1  # connected
    return graph.tocsr()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("method", GRAPH_METHODS)
@pytest.mark.filterwarnings("ignore:the number of connected components")
def test_thresholds_with_a_graph_are_those_of_scikit_learn(method, seed):
    X = rows(seed)
    graph = neighbours(X, seed)
    heights = AgglomerativeClustering(linkage=method, connectivity=graph).fit(X).distances_
    assert method != "ward" or (np.diff(heights) < 0).any()  # the others know distances along edges alone, and rise
    for threshold in between(heights):
        options = {"linkage": method, "connectivity": graph, "distance_threshold": threshold}
        ours, theirs = AgglomerativeClustering(None, **options).fit(X), Reference(None, **options).fit(X)
        assert ours.n_clusters_ == theirs.n_clusters_
        assert same_partition(ours.labels_, theirs.labels_)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("method", ["centroid", "median"])
def test_thresholds_of_other_linkages_count_merges_as_scikit_learn_does(method, seed):
    X = rows(seed)
    heights = AgglomerativeClustering(linkage=method).fit(X).distances_
    assert (np.diff(heights) < 0).any()
    for threshold in between(heights):
        model = AgglomerativeClustering(None, linkage=method, distance_threshold=threshold).fit(X)
        assert model.n_clusters_ == 1 + np.count_nonzero(heights >= threshold)
        same = AgglomerativeClustering(model.n_clusters_, linkage=method).fit(X)
        np.testing.assert_array_equal(model.labels_, same.labels_)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("method", [*GRAPH_METHODS, "centroid", "median"])
def test_a_cut_at_a_height_is_that_of_scipy(method, seed):
    X = rows(seed)
    graph = neighbours(X, seed) if method in GRAPH_METHODS else None
    Z = AgglomerativeClustering(linkage=method, connectivity=graph).fit(X).linkage_matrix_
    for height in [*Z[::7, 2].tolist(), *between(Z[:, 2])]:
        assert same_partition(cut(Z, height=height), scipy_tree.fcluster(Z, height, "distance"))


def test_a_threshold_undoes_as_many_of_the_last_merges_as_are_at_it_or_above():
    """Rows 0 and 1 merge at 2, then row 2 joins them at the centroid distance √3 < 2, row 3 comes last."""
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, np.sqrt(3.0) + 1e-6], [0.0, -9.0]])
    model = AgglomerativeClustering(None, linkage="centroid", distance_threshold=1.9).fit(X)
    assert model.distances_[1] < 1.9 < model.distances_[0]
    assert model.labels_.tolist() == [0, 0, 1, 2]
    assert cut(model.linkage_matrix_, height=1.9).tolist() == [0, 1, 2, 3]
