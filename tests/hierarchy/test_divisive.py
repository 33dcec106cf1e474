"""DivisiveClustering: comparison with plain loops, laws, and prediction."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import BisectingKMeans, DivisiveClustering, machine
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.hierarchy import banner_coefficient, check_tree, cut
from coterie.kernels.cpu import diana as compiled
from coterie.kernels.plain import diana as plain
from many_parts import many_parts, many_strips

rng = np.random.default_rng(8)
X = np.concatenate([rng.normal(size=(25, 3)) + shift for shift in (0, 6, 14)])


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


def divided(kernels, D, k, least=0.0):
    split, height, cluster = np.empty(k - 1, np.int64), np.empty(k - 1), np.empty(len(D), np.int64)
    done = kernels.divide(D, least, split, height, cluster)
    return done, split[:done], height[:done], cluster


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "rows",
    [
        rng.normal(size=(70, 3)),
        rng.integers(0, 3, size=(60, 2)).astype(float),
        np.ones((12, 2)),
        np.r_[rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) * 1e-6, [[1e9, 0.0]]],
        np.array([[0.0], [1.0]]),
    ],
    ids=["normal", "ties", "equal", "scales", "two"],
)
def test_compiled_splits_are_the_plain_ones(rows, dtype):
    D = pairwise(rows).astype(dtype)
    for k, least in ((len(D), 0.0), (2, 0.0), (len(D), float(np.median(D)))):
        for ours, theirs in zip(divided(compiled, D, k, least), divided(plain, D, k, least), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_one_split_by_hand():
    """From 0, 1, 2, 8, 9 the row at 9 goes first, then 8; 2 is nearer to 0 and 1."""
    model = DivisiveClustering(2).fit([[0.0], [1.0], [2.0], [8.0], [9.0]])
    assert model.labels_.tolist() == [0, 0, 0, 1, 1]
    assert model.distances_.tolist() == [1.0, 1.0, 2.0, 9.0]
    assert model.divisive_coefficient_ == pytest.approx(1 - (1 + 1 + 2 + 1 + 1) / 9 / 5)


def test_heights_are_diameters_of_what_is_split():
    model = DivisiveClustering(4).fit(X)
    Z, D = check_tree(model.linkage_matrix_), pairwise(X)
    members = {i: [i] for i in range(len(X))}
    for i, (a, b, height, size) in enumerate(Z):
        members[len(X) + i] = members[int(a)] + members[int(b)]
        own = members[len(X) + i]
        assert len(own) == size
        assert D[np.ix_(own, own)].max() == height
    assert (np.diff(Z[:, 2]) >= 0).all()
    assert model.divisive_coefficient_ == banner_coefficient(Z)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 75])
def test_stopping_early_changes_no_cluster(k):
    whole = DivisiveClustering(k).fit(X)
    early = DivisiveClustering(k, compute_full_tree=False).fit(X)
    np.testing.assert_array_equal(whole.labels_, early.labels_)
    np.testing.assert_array_equal(whole.labels_, cut(whole.linkage_matrix_, n_clusters=k))
    assert early.linkage_matrix_ is early.children_ is early.distances_ is early.divisive_coefficient_ is None
    new = rng.normal(size=(40, 3)) * 6 + 6
    np.testing.assert_array_equal(whole.predict(new), early.predict(new))


def test_a_threshold_bounds_all_diameters():
    D = pairwise(X)
    for full in (True, False):
        model = DivisiveClustering(None, distance_threshold=5.0, compute_full_tree=full).fit(X)
        widths = [D[np.ix_(own, own)].max() for j in range(model.n_clusters_) if (own := model.labels_ == j).any()]
        assert len(widths) == model.n_clusters_
        assert max(widths) < 5.0
        assert DivisiveClustering(model.n_clusters_ - 1).fit(X).n_clusters_ == model.n_clusters_ - 1
    assert DivisiveClustering(None, distance_threshold=1e9).fit(X).n_clusters_ == 1


def test_clear_clusters_are_found_and_new_rows_join_them():
    model = DivisiveClustering(3).fit(X)
    assert same_partition(model.labels_, np.repeat([0, 1, 2], 25))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    by_distances = DivisiveClustering(3, metric="precomputed").fit(pairwise(X))
    np.testing.assert_array_equal(by_distances.labels_, model.labels_)
    new = rng.normal(size=(60, 3)) * 6 + 6
    np.testing.assert_array_equal(by_distances.predict(pairwise(new, X)), model.predict(new))


def test_new_rows_follow_the_splits():
    model, new = DivisiveClustering(5).fit(X), rng.normal(size=(60, 3)) * 6 + 6
    D, Z, n = pairwise(new, X), model.linkage_matrix_, len(X)
    members = {i: [i] for i in range(n)}
    for i, (a, b, _, _) in enumerate(Z):
        members[n + i] = members[int(a)] + members[int(b)]
    for row, found in zip(D, model.predict(new), strict=True):
        node = 2 * n - 2
        while node >= 2 * n - 1 - 4:  # the four splits that five clusters take
            node = min(Z[node - n, :2].astype(int), key=lambda part: row[members[part]].mean())
        assert model.labels_[members[node][0]] == found


def test_float32_frames_and_other_metrics():
    frame = pd.DataFrame(X.astype(np.float32), columns=["a", "b", "c"])
    model = DivisiveClustering(3).fit(frame)
    assert same_partition(model.labels_, np.repeat([0, 1, 2], 25))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    other = DivisiveClustering(3, metric="minkowski", metric_params={"p": 3}).fit(X)
    assert other.distances_[-1] == pytest.approx(pairwise(X, metric="minkowski", p=3).max())


def test_threads_change_nothing(monkeypatch):
    many_strips(monkeypatch, 500 * 100)
    rows = rng.normal(size=(500, 4))
    many, one = (DivisiveClustering(4, n_jobs=jobs).fit(rows) for jobs in (3, 1))
    np.testing.assert_array_equal(many.linkage_matrix_, one.linkage_matrix_)
    np.testing.assert_array_equal(many.predict(rows), one.predict(rows))


def test_rows_that_are_all_alike():
    model = DivisiveClustering(2).fit(np.ones((6, 2)))
    assert (model.distances_ == 0).all()
    assert model.divisive_coefficient_ == 0.0
    assert model.n_clusters_ == 2


def test_diana_rejects_weights_and_names_the_method_that_takes_them():
    with pytest.raises(InputError, match=r"sample_weight must be None for method='diana'.*use method='bisecting'"):
        DivisiveClustering().fit(X, sample_weight=np.ones(75))


def test_invalid_input_is_an_error(monkeypatch):
    with pytest.raises(ParameterError, match="one of n_clusters and distance_threshold"):
        DivisiveClustering(2, distance_threshold=1.0).fit(X)
    with pytest.raises(InputError, match="n_samples=3 rows, fewer than n_clusters=4"):
        DivisiveClustering(4).fit(X[:3])
    with pytest.raises(ParameterError, match="method must be 'diana' or 'bisecting'; got 'top'"):
        DivisiveClustering(method="top").fit(X)
    monkeypatch.setattr(machine, "free_memory", lambda: 1000)
    monkeypatch.setattr(machine, "SMALL_OBJECT", 0)
    with pytest.raises(InputError, match="or method='bisecting', which needs no distances"):
        DivisiveClustering().fit(X)


# by K-means

STRATEGIES = pytest.mark.parametrize("strategy", ["biggest_inertia", "largest_cluster"])


def bisected(k=3, rows=X, sample_weight=None, **options):
    options = {"method": "bisecting", "random_state": 0} | options
    return DivisiveClustering(k, **options).fit(rows, sample_weight=sample_weight)


def naive_measures(Z, rows, w, by_weight):
    """Of every merge: the inertia of its rows about their mean, or their weight."""
    members = {i: [i] for i in range(len(rows))}
    for i, (a, b, _, size) in enumerate(Z):
        own = members[len(rows) + i] = members[int(a)] + members[int(b)]
        assert len(own) == size
        mean = np.average(rows[own], axis=0, weights=w[own])
        yield w[own].sum() if by_weight else (w[own] * ((rows[own] - mean) ** 2).sum(axis=1)).sum()


@STRATEGIES
@pytest.mark.parametrize("weighted", [False, True])
def test_heights_are_what_a_cluster_was_split_for(strategy, weighted):
    w = rng.integers(1, 5, size=len(X)).astype(float) if weighted else np.ones(len(X))
    model = bisected(4, sample_weight=w if weighted else None, bisecting_strategy=strategy)
    Z = check_tree(model.linkage_matrix_)
    assert (np.diff(Z[:, 2]) >= 0).all()
    naive = list(naive_measures(Z, X, w, strategy == "largest_cluster"))
    np.testing.assert_allclose(Z[:, 2], naive, rtol=2e-3)  # centers end within `tol` of means
    assert model.divisive_coefficient_ == banner_coefficient(Z)


@STRATEGIES
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_cut_of_the_tree_is_bisecting_k_means(strategy, dtype):
    rows = rng.normal(size=(90, 3)).astype(dtype)
    Z = bisected(1, rows, bisecting_strategy=strategy).linkage_matrix_
    for k in (2, 7, 30, 89):
        flat = BisectingKMeans(k, bisecting_strategy=strategy, random_state=0).fit(rows)
        for full in (True, False):
            model = bisected(k, rows, bisecting_strategy=strategy, compute_full_tree=full)
            assert same_partition(model.labels_, flat.labels_)
            np.testing.assert_array_equal(model.labels_, cut(Z, n_clusters=k))
            assert same_partition(model.predict(rows + 0.5), flat.predict(rows + 0.5))
            np.testing.assert_array_equal(model.predict(rows), model.labels_)
        assert model.linkage_matrix_ is model.children_ is model.distances_ is model.divisive_coefficient_ is None


@STRATEGIES
def test_a_threshold_bounds_what_is_split(strategy):
    Z = bisected(bisecting_strategy=strategy).linkage_matrix_
    threshold = float(Z[-6, 2])
    for full in (True, False):
        options = {"bisecting_strategy": strategy, "distance_threshold": threshold, "compute_full_tree": full}
        model = bisected(None, **options)
        assert model.n_clusters_ == 1 + int((Z[:, 2] >= threshold).sum())
        np.testing.assert_array_equal(model.labels_, cut(Z, n_clusters=model.n_clusters_))
    assert bisected(None, distance_threshold=1e9).n_clusters_ == 1
    assert bisected(None, distance_threshold=0.0).n_clusters_ == len(X)


@STRATEGIES
def test_weight_two_is_the_row_twice(strategy):
    options = {"init": "farthest", "bisecting_strategy": strategy}
    heavy = bisected(5, sample_weight=np.repeat([1.0, 2.0], [40, 35]), **options)
    twice = bisected(5, rows=np.r_[X, X[40:]], **options)
    np.testing.assert_array_equal(heavy.labels_, twice.labels_[:75])
    np.testing.assert_array_equal(heavy.labels_[40:], twice.labels_[75:])
    np.testing.assert_allclose(heavy.distances_[-10:], twice.distances_[-10:], rtol=1e-9)


def test_rows_of_weight_zero_follow_the_others():
    w = np.repeat([1.0, 0.0], [60, 15])
    model = bisected(3, sample_weight=w, init="farthest")
    absent = bisected(3, rows=X[:60], init="farthest")
    np.testing.assert_array_equal(model.labels_, absent.predict(X))
    np.testing.assert_allclose(model.distances_[15:], absent.distances_, rtol=1e-9)
    assert (model.distances_[:15] == 0).all()


def test_sparse_dask_and_float32_rows_give_the_same_clusters():
    da = pytest.importorskip("dask.array")
    dense = bisected(3, init="farthest")
    for rows in (sparse.csr_array(X), X.astype(np.float32), da.from_array(X, chunks=(25, 3)), pd.DataFrame(X)):
        model = bisected(3, rows=rows, init="farthest")
        np.testing.assert_array_equal(model.labels_, dense.labels_)
        np.testing.assert_array_equal(model.predict(rows), dense.labels_)
        np.testing.assert_allclose(model.distances_[-3:], dense.distances_[-3:], rtol=1e-5)


def test_threads_change_no_bisection(monkeypatch):
    rows = rng.normal(size=(800, 9))
    many_parts(monkeypatch, rows)
    many, one = (bisected(4, rows=rows, n_jobs=jobs, compute_full_tree=False) for jobs in (3, 1))
    np.testing.assert_array_equal(many.labels_, one.labels_)
    many, one = (bisected(4, rows=rows, n_jobs=jobs) for jobs in (3, 1))
    np.testing.assert_array_equal(many.linkage_matrix_, one.linkage_matrix_)


def test_rows_that_are_alike_are_one_cluster_with_a_warning():
    rows = np.repeat([[0.1, 0.2], [1.3, 5.7], [9.1, 2.9]], 4, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 3 of 5 clusters have rows: X has too few distinct rows"):
        model = bisected(5, rows=rows)
    assert model.labels_.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert model.n_clusters_ == 3
    assert (check_tree(model.linkage_matrix_)[:9, 2] == 0).all()
    assert (model.distances_[9:] > 0).all()
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    alike = bisected(1, rows=np.ones((6, 2)))
    assert (alike.distances_ == 0).all()
    assert alike.divisive_coefficient_ == 0.0
    assert bisected(None, rows=rows, distance_threshold=0.0).n_clusters_ == 3


@given(
    st.integers(2, 24).flatmap(lambda n: st.lists(st.integers(-3, 3), min_size=2 * n, max_size=2 * n)),
    st.sampled_from([1.0, 1e-140, 1e100]),
)
def test_trees_of_hostile_rows_are_trees(values, scale):
    rows = np.array(values, dtype=float).reshape(-1, 2) * scale + scale
    Z = check_tree(bisected(1, rows=rows).linkage_matrix_)
    assert (np.diff(Z[:, 2]) >= 0).all()
    assert Z[-1, 3] == len(rows)


@pytest.mark.parametrize(
    "metric, params", [("manhattan", None), ("precomputed", None), ("euclidean", {"w": [1, 2, 3]})]
)
def test_bisecting_needs_euclidean_distances(metric, params):
    with pytest.raises(ParameterError, match=r"needs metric='euclidean' without.*'diana' supports any metric"):
        bisected(metric=metric, metric_params=params)


def test_invalid_input_of_bisecting_is_an_error(monkeypatch):
    with pytest.raises(InputError, match="n_samples=3 rows, fewer than n_clusters=4"):
        bisected(4, rows=X[:3])
    with pytest.raises(InputError, match=r"n_samples=2 rows \(of weight above 0\) are fewer than n_clusters=3"):
        bisected(3, rows=X[:4], sample_weight=[1, 1, 0, 0])
    with pytest.raises(InputError, match="n_samples=1: a tree needs at least 2 rows"):
        bisected(None, rows=X[:1], distance_threshold=1.0)
    with pytest.raises(ParameterError, match="bisecting_strategy must be"):
        bisected(bisecting_strategy="worst")
    monkeypatch.setattr(machine, "free_memory", lambda: 20_000)
    monkeypatch.setattr(machine, "SMALL_OBJECT", 0)
    with pytest.raises(InputError, match=r"the tree of 75 clusters would take.*compute_full_tree=False"):
        bisected()
    assert bisected(3, compute_full_tree=False).n_clusters_ == 3


def test_an_interrupt_ends_the_fit():
    def init(rows, k, random_state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bisected(3, init=init, n_init=1)
