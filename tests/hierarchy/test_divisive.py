"""Divisive analysis: the definition by loops, laws of splits, and where new rows go."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import DivisiveClustering, machine
from coterie.core.errors import InputError, ParameterError
from coterie.distances import pairwise
from coterie.hierarchy import banner_coefficient, check_tree, cut
from coterie.kernels.cpu import diana as compiled
from coterie.kernels.plain import diana as plain

rng = np.random.default_rng(8)
X = np.concatenate([rng.normal(size=(25, 3)) + shift for shift in (0, 6, 14)])


def same_partition(a, b):
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))


@parametrize_with_checks([DivisiveClustering(3)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


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


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_threads_change_nothing(n_jobs):
    rows = rng.normal(size=(500, 4))
    many, one = (DivisiveClustering(4, n_jobs=jobs).fit(rows) for jobs in (n_jobs, 1))
    np.testing.assert_array_equal(many.linkage_matrix_, one.linkage_matrix_)
    np.testing.assert_array_equal(many.predict(rows), one.predict(rows))


def test_rows_that_are_all_alike():
    model = DivisiveClustering(2).fit(np.ones((6, 2)))
    assert (model.distances_ == 0).all()
    assert model.divisive_coefficient_ == 0.0
    assert model.n_clusters_ == 2


def test_what_cannot_be(monkeypatch):
    with pytest.raises(ParameterError, match="one of n_clusters and distance_threshold"):
        DivisiveClustering(2, distance_threshold=1.0).fit(X)
    with pytest.raises(InputError, match="n_samples=3 rows cannot make n_clusters=4"):
        DivisiveClustering(4).fit(X[:3])
    with pytest.raises(TypeError):
        DivisiveClustering().fit(X, sample_weight=np.ones(75))
    monkeypatch.setattr(machine, "free_memory", lambda: 1000)
    with pytest.raises(InputError, match="or BisectingKMeans, which needs no distances"):
        DivisiveClustering().fit(X)
