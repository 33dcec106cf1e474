"""Connectivity constraints: comparison with scikit-learn, and with a loop over all edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import AgglomerativeClustering as Reference
from sklearn.feature_extraction.image import grid_to_graph
from sklearn.neighbors import kneighbors_graph

from coterie import AgglomerativeClustering
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import linkage
from coterie.kernels.cpu import graph_linkage as compiled
from coterie.kernels.plain import graph_linkage as plain

METHODS = ["ward", "complete", "average", "single"]
rng = np.random.default_rng(2)


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


def fitted(X, graph, method, k=3, **options):
    return AgglomerativeClustering(k, linkage=method, connectivity=graph, **options).fit(X)


def reference(X, graph, method, k=3, **options):
    return Reference(
        k, linkage=method, connectivity=graph, compute_full_tree=True, compute_distances=True, **options
    ).fit(X)


def check_alike(ours, theirs):
    np.testing.assert_array_equal(ours.children_, np.sort(theirs.children_))
    np.testing.assert_allclose(ours.distances_, theirs.distances_, rtol=1e-9, atol=1e-12)
    assert same_partition(ours.labels_, theirs.labels_)
    assert ours.n_connected_components_ == theirs.n_connected_components_


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n, neighbours", [(20, 4), (400, 8)])
def test_trees_are_those_of_scikit_learn(n, neighbours, method):
    X = rng.normal(size=(n, 3))
    graph = kneighbors_graph(X, neighbours)
    for k in (2, n // 3):
        check_alike(fitted(X, graph, method, k), reference(X, graph, method, k))


@pytest.mark.parametrize("method", METHODS)
def test_decreasing_heights_are_cut_by_the_order_of_merges(method):
    X = rng.normal(size=(900, 2))
    graph = grid_to_graph(30, 30)
    ours = fitted(X, graph, method, 40)
    check_alike(ours, reference(X, graph, method, 40))
    if method == "ward":
        assert (np.diff(ours.distances_) < 0).any()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n, neighbours", [(30, 1), (300, 2)])
def test_connected_components_are_joined_by_their_nearest_rows(n, neighbours, method):
    X = rng.normal(size=(n, 3))
    graph = kneighbors_graph(X, neighbours)
    with pytest.warns(UserWarning, match="the nearest rows of each pair of components"):
        ours = fitted(X, graph, method)
    with pytest.warns(UserWarning, match="connected components"):
        theirs = reference(X, graph, method)
    check_alike(ours, theirs)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("edges", ["few", "many"])
def test_compiled_merges_are_the_plain_ones(method, edges, ties):
    n = 60
    for seed in range(4):
        draw = np.random.default_rng(seed)
        X = draw.integers(0, 4, size=(n, 2)).astype(float) if ties else draw.normal(size=(n, 2))
        pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
        near = draw.random(len(pairs)) < (0.5 if edges == "many" else 0.05)
        ends = pairs[near | (pairs[:, 1] == pairs[:, 0] + 1)]
        length, weight = np.linalg.norm(X[ends[:, 0]] - X[ends[:, 1]], axis=1), draw.integers(1, 3, size=n) * 1.0
        Z = np.empty((2, n - 1, 4))
        for kernels, tree in zip((plain, compiled), Z, strict=True):
            if method == "single":
                order = np.argsort(length, kind="stable")
                kernels.kruskal(ends[order], length[order], tree)
            elif method == "ward":
                kernels.merge_shortest_edges(ends, kernels.WARD, length * 0, weight, X.copy(), tree)
            else:
                rule = kernels.COMPLETE if method == "complete" else kernels.AVERAGE
                kernels.merge_shortest_edges(ends, rule, length.copy(), weight, np.empty((n, 0)), tree)
        np.testing.assert_array_equal(*Z)


@pytest.mark.parametrize("method", METHODS)
def test_a_graph_of_all_edges_is_no_constraint(method):
    X = rng.normal(size=(60, 3))
    w = rng.integers(1, 4, size=60)
    model = AgglomerativeClustering(3, linkage=method, connectivity=np.ones((60, 60))).fit(X, sample_weight=w)
    expected = linkage(X, method, sample_weight=w)
    np.testing.assert_array_equal(model.children_, expected[:, :2])
    np.testing.assert_allclose(model.linkage_matrix_, expected)


@pytest.mark.parametrize("method", ["complete", "average", "single"])
def test_any_metric_and_given_distances(method):
    X = rng.normal(size=(50, 3))
    graph = kneighbors_graph(X, 6)
    by_rows = fitted(X, graph, method, metric="manhattan")
    check_alike(by_rows, reference(X, graph, method, metric="manhattan"))
    by_distances = fitted(pairwise(X, metric="manhattan"), graph, method, metric="precomputed")
    np.testing.assert_allclose(by_rows.linkage_matrix_, by_distances.linkage_matrix_)


def test_graphs_come_in_many_forms():
    X = rng.normal(size=(30, 2))
    graph = kneighbors_graph(X, 5)
    expected = fitted(X, graph, "ward").linkage_matrix_
    upper = sparse.triu(graph.maximum(graph.T)) + sparse.eye_array(30)
    for form in (
        graph.toarray(),
        graph.tocoo(),
        sparse.lil_array(graph),
        upper,
        lambda rows: kneighbors_graph(rows, 5),
    ):
        np.testing.assert_array_equal(fitted(X, form, "ward").linkage_matrix_, expected)


def test_rows_of_weight_zero_are_not_in_the_graph():
    X = rng.normal(size=(60, 2))
    w = (np.arange(60) % 4 > 0).astype(float)
    graph = kneighbors_graph(X, 12)
    model = AgglomerativeClustering(3, connectivity=graph).fit(X, sample_weight=w)
    kept = np.flatnonzero(w)
    np.testing.assert_array_equal(
        model.linkage_matrix_, fitted(X[kept], graph.tocsr()[kept][:, kept], "ward").linkage_matrix_
    )


def test_rows_without_any_edge():
    X = rng.normal(size=(12, 2))
    with pytest.warns(UserWarning, match="connectivity has 12 connected components"):
        model = fitted(X, sparse.csr_array((12, 12)), "single")
    np.testing.assert_allclose(model.linkage_matrix_, linkage(X, "single"))


def test_invalid_graphs_are_errors():
    X = rng.normal(size=(30, 2))
    graph = kneighbors_graph(X, 3)
    with pytest.raises(InputError, match=r"connectivity has shape \(30, 30\)"):
        fitted(X[:20], graph, "ward")
    for wrong in ("graph", np.full((30, 30), np.nan), 3):
        with pytest.raises(InputError, match="connectivity must be a sparse matrix"):
            fitted(X, wrong, "ward")
    with pytest.raises(ParameterError, match="connectivity requires linkage 'ward', 'complete', 'average', 'single'"):
        fitted(X, graph, "median")
    with pytest.raises(ParameterError, match="computes means: it requires rows"):
        fitted(pairwise(X), graph, "ward", metric="precomputed")
