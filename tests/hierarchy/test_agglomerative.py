"""AgglomerativeClustering: comparison with scikit-learn, metrics, and prediction."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import AgglomerativeClustering as Reference

from coterie import AgglomerativeClustering
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import cut, linkage
from coterie.hierarchy.linkage_methods import METHODS
from many_parts import many_strips

rng = np.random.default_rng(5)
X = np.concatenate([rng.normal(size=(30, 3)) + shift for shift in (0, 5, 10)])


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


@pytest.mark.parametrize("method", ["ward", "complete", "average", "single"])
@pytest.mark.parametrize("n_clusters", [1, 2, 7, 90])
def test_trees_and_labels_are_those_of_scikit_learn(method, n_clusters):
    ours = AgglomerativeClustering(n_clusters, linkage=method).fit(X)
    theirs = Reference(n_clusters, linkage=method, compute_full_tree=True, compute_distances=True).fit(X)
    np.testing.assert_array_equal(ours.children_, np.sort(theirs.children_))
    np.testing.assert_allclose(ours.distances_, theirs.distances_, rtol=1e-10)
    assert same_partition(ours.labels_, theirs.labels_)
    assert (ours.n_clusters_, ours.n_leaves_, ours.n_connected_components_) == (n_clusters, 90, 1)


@pytest.mark.parametrize("method", ["ward", "average"])
def test_thresholds_are_those_of_scikit_learn(method):
    heights = AgglomerativeClustering(linkage=method).fit(X).distances_
    for threshold in (0.0, heights[50], (heights[70] + heights[71]) / 2, heights[-1], heights[-1] * 2):
        ours = AgglomerativeClustering(None, linkage=method, distance_threshold=float(threshold)).fit(X)
        theirs = Reference(None, linkage=method, distance_threshold=threshold).fit(X)
        assert ours.n_clusters_ == theirs.n_clusters_
        assert same_partition(ours.labels_, theirs.labels_)


@pytest.mark.parametrize("method", METHODS)
def test_the_tree_is_that_of_linkage_and_the_labels_a_cut_of_it(method):
    model = AgglomerativeClustering(4, linkage=method).fit(X)
    np.testing.assert_array_equal(model.linkage_matrix_, linkage(X, method))
    assert model.labels_.dtype == np.int32
    if METHODS[method].is_monotone:
        np.testing.assert_array_equal(model.labels_, cut(model.linkage_matrix_, n_clusters=4))


# new rows


def cluster_distance(method, new, members, tree_shares):
    """The definition of a linkage between one row and a cluster."""
    apart = np.linalg.norm(members - new, axis=1)
    size = len(members)
    if method == "ward":
        return np.sqrt(2 * size / (size + 1)) * np.linalg.norm(new - members.mean(axis=0))
    return {
        "single": apart.min(),
        "complete": apart.max(),
        "average": apart.mean(),
        "weighted": apart @ tree_shares,
        "centroid": np.linalg.norm(new - members.mean(axis=0)),
        "median": np.linalg.norm(new - tree_shares @ members),
    }[method]


def halved_shares(Z, labels, k):
    """Of every row: 1 in its cluster, halved by every merge on the way up to that."""
    n = len(labels)
    nodes = {i: {i: 1.0} for i in range(n)}
    for step in range(n - k):
        a, b = Z[step, :2].astype(int)
        parts = nodes.pop(a), nodes.pop(b)
        nodes[n + step] = {leaf: share / 2 for part in parts for leaf, share in part.items()}
    found = np.empty(n)
    for node in nodes.values():
        for leaf, share in node.items():
            found[leaf] = share
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", METHODS)
def test_new_rows_go_to_the_cluster_the_linkage_calls_nearest(method, dtype):
    new = rng.normal(size=(50, 3)) * 5 + 5
    model = AgglomerativeClustering(6, linkage=method).fit(X.astype(dtype))
    shares = halved_shares(model.linkage_matrix_, model.labels_, 6)
    expected = [
        np.argmin([cluster_distance(method, x, X[model.labels_ == j], shares[model.labels_ == j]) for j in range(6)])
        for x in new
    ]
    np.testing.assert_array_equal(model.predict(new.astype(dtype)), expected)
    by_distances = AgglomerativeClustering(6, linkage=method, metric="precomputed").fit(pairwise(X))
    np.testing.assert_array_equal(by_distances.predict(pairwise(new, X)), expected)


def test_rows_of_the_fit_keep_their_label_by_single_linkage():
    model = AgglomerativeClustering(7, linkage="single").fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


# distances, weights, frames


@pytest.mark.parametrize("method", METHODS)
def test_distances_are_as_good_as_rows(method):
    by_rows = AgglomerativeClustering(5, linkage=method).fit(X)
    by_distances = AgglomerativeClustering(5, linkage=method, metric="precomputed").fit(pairwise(X))
    assert same_partition(by_rows.labels_, by_distances.labels_)
    np.testing.assert_allclose(by_rows.distances_, by_distances.distances_)


@pytest.mark.parametrize("metric, params", [("manhattan", None), ("minkowski", {"p": 3}), ("cosine", None)])
def test_other_metrics(metric, params):
    model = AgglomerativeClustering(3, linkage="average", metric=metric, metric_params=params).fit(X)
    D = pairwise(X, metric=metric, **(params or {}))
    np.testing.assert_allclose(model.distances_, linkage(D, "average", "precomputed")[:, 2])
    np.testing.assert_array_equal(model.predict(X[:5]).shape, (5,))


@pytest.mark.parametrize("method", ["ward", "average", "centroid"])
def test_weight_two_is_the_row_twice(method):
    w = rng.integers(1, 4, size=len(X))
    weighted = AgglomerativeClustering(5, linkage=method).fit(X, sample_weight=w)
    repeated = AgglomerativeClustering(5, linkage=method).fit(np.repeat(X, w, axis=0))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, w), repeated.labels_)
    new = rng.normal(size=(40, 3)) * 5 + 5
    np.testing.assert_array_equal(weighted.predict(new), repeated.predict(new))


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_zero_are_not_in_the_tree(method):
    w = np.arange(90) % 3 + 0.5
    w[::4] = 0
    weighted = AgglomerativeClustering(4, linkage=method).fit(X, sample_weight=w)
    without = AgglomerativeClustering(4, linkage=method).fit(X[w > 0], sample_weight=w[w > 0])
    np.testing.assert_array_equal(weighted.linkage_matrix_, without.linkage_matrix_)
    np.testing.assert_array_equal(weighted.labels_[w > 0], without.labels_)
    np.testing.assert_array_equal(weighted.labels_[w == 0], without.predict(X[w == 0]))
    D = pairwise(X)
    given = AgglomerativeClustering(4, linkage=method, metric="precomputed").fit(D, sample_weight=w)
    np.testing.assert_array_equal(given.predict(D), AgglomerativeClustering.predict(weighted, X))


def test_frames_of_mixed_columns_by_gower():
    frame = pd.DataFrame({"size": [1.0, 1.2, 9.0, 9.3, None], "kind": ["a", "a", "b", "b", "b"]})
    model = AgglomerativeClustering(2, metric="gower", linkage="average").fit(frame)
    assert model.labels_.tolist() == [0, 0, 1, 1, 1]
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    assert model.feature_names_in_.tolist() == ["size", "kind"]


def test_series_of_unequal_length():
    series = [np.sin(np.linspace(0, 6, n)) + level for level in (0, 5) for n in (20, 25, 30, 22)]
    for options in ({}, {"connectivity": np.ones((8, 8))}):
        model = AgglomerativeClustering(2, metric="dtw", linkage="average", **options).fit(series)
        assert model.labels_.tolist() == [0] * 4 + [1] * 4
        assert model.predict(series[::3]).tolist() == [0, 0, 1]


def test_a_function_as_metric():
    def halved(x, y):
        return abs(x[0] - y[0]) / 2

    model = AgglomerativeClustering(3, metric=halved, linkage="complete").fit(X)
    np.testing.assert_allclose(model.distances_, linkage(X[:, :1], "complete", "manhattan")[:, 2] / 2)


def test_rows_in_a_file(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    model = AgglomerativeClustering(3).fit(tmp_path / "rows.npy")
    np.testing.assert_array_equal(model.linkage_matrix_, linkage(X, "ward"))
    assert model.n_features_in_ == 3
    assert model.predict(str(tmp_path / "rows.npy")).shape == (90,)
    assert AgglomerativeClustering(3).fit(tmp_path / "rows.npy", sample_weight=np.arange(90) % 2).n_leaves_ == 45


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("method", ["ward", "complete"])
def test_threads_change_nothing(method, n_jobs, monkeypatch):
    many_strips(monkeypatch, 60)
    one, many = (AgglomerativeClustering(3, linkage=method, n_jobs=jobs).fit(X) for jobs in (1, n_jobs))
    np.testing.assert_array_equal(one.linkage_matrix_, many.linkage_matrix_)
    np.testing.assert_array_equal(one.predict(X), many.predict(X))


def test_equal_rows_merge_at_height_zero():
    model = AgglomerativeClustering(2).fit(np.repeat([[0.0, 1.0], [3.0, 1.0]], 5, axis=0))
    assert model.labels_.tolist() == [0] * 5 + [1] * 5
    assert (model.distances_[:8] == 0).all()


@pytest.mark.parametrize("connectivity", [None, np.eye(90, k=1)])
def test_memory_stores_the_tree(tmp_path, connectivity):
    options = {"connectivity": connectivity, "linkage": "average"}
    model = AgglomerativeClustering(3, memory=str(tmp_path), **options).fit(X)
    stored_trees = list(tmp_path.rglob("output.pkl"))
    assert len(stored_trees) == 1
    again = AgglomerativeClustering(5, memory=str(tmp_path), n_jobs=1, **options).fit(X)
    assert list(tmp_path.rglob("output.pkl")) == stored_trees
    expected = AgglomerativeClustering(5, **options).fit(X)
    np.testing.assert_array_equal(model.linkage_matrix_, expected.linkage_matrix_)
    np.testing.assert_array_equal(again.labels_, expected.labels_)


def test_options_of_scikit_learn_without_effect():
    expected = AgglomerativeClustering(3).fit(X)
    model = AgglomerativeClustering(3, compute_full_tree=False, compute_distances=True).fit(X)
    np.testing.assert_array_equal(model.distances_, expected.distances_)
    with pytest.raises(ParameterError, match="compute_full_tree must be True if distance_threshold is set"):
        AgglomerativeClustering(None, distance_threshold=1.0, compute_full_tree=False).fit(X)
    assert set(Reference().get_params()) <= set(model.get_params())


def test_the_callback_gets_the_progress():
    seen = []
    AgglomerativeClustering(callback=lambda state: seen.append((state.done, state.total))).fit(X)
    assert seen[-1] == (89, 89)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1"),
        ({"n_clusters": None}, "one of n_clusters and distance_threshold must be set, and the other must be None"),
        ({"distance_threshold": 1.0}, "one of n_clusters and distance_threshold"),
        ({"n_clusters": None, "distance_threshold": -1.0}, "distance_threshold must be a finite number of at least 0"),
        ({"linkage": "nearest"}, "linkage must be 'single'"),
        ({"metric": "manhattan"}, "method='ward' needs centers of clusters, which metric='manhattan' does not define"),
        ({"metric": "euclid"}, "metric must be one of"),
        ({"metric": "precomputed", "metric_params": {"p": 1}}, "takes no metric_params"),
    ],
)
def test_invalid_options_are_errors(options, message):
    with pytest.raises(ParameterError, match=message):
        AgglomerativeClustering(**options).fit(X)


def test_invalid_data_are_errors():
    with pytest.raises(InputError, match="n_samples=2 rows, fewer than n_clusters=3: use n_clusters <= 2"):
        AgglomerativeClustering(3).fit(X[:2])
    with pytest.raises(InputError, match="n_samples=1: a tree needs at least 2 rows"):
        AgglomerativeClustering(1).fit(X[:1])
    with pytest.raises(InputError, match="not symmetric"):
        AgglomerativeClustering(metric="precomputed", linkage="average").fit(np.triu(pairwise(X)))
    with pytest.raises(InputError, match="zero for every row"):
        AgglomerativeClustering().fit(X, sample_weight=np.zeros(90))
    with pytest.raises(InputError, match="n_samples=1: a tree needs at least 2 rows"):
        AgglomerativeClustering(1).fit(X, sample_weight=np.arange(90) == 7)
    model = AgglomerativeClustering(metric="precomputed", linkage="average").fit(pairwise(X))
    with pytest.raises(InputError, match="90 objects of the fit"):
        model.predict(X)
