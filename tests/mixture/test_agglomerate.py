"""The hierarchy against one that weighs every pair anew, and the laws it keeps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from sklearn.metrics import adjusted_rand_score

from coterie.mixture import agglomerate as module
from coterie.mixture.agglomerate import agglomerate, cut


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def stripes(rng, n=60):
    """Parallel and long: the ends of one are farther apart than two of them."""
    rows = [np.column_stack([rng.uniform(-10, 10, n), 0.3 * rng.normal(size=n) + 4 * j]) for j in range(3)]
    return np.concatenate(rows), np.repeat(np.arange(3), n)


def needles(rng, n=60, length=15, apart=20):
    """Three directions in space, a needle along each, their middles apart."""
    places = apart * np.array([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
    rows = [rng.normal(size=(n, 3)) * (1 + (length - 1) * np.eye(3)[j]) + places[j] for j in range(3)]
    return np.concatenate(rows), np.repeat(np.arange(3), n)


def long_needles(rng):
    return needles(rng, length=30, apart=14)


def as_linkage(merges):
    sizes = [1] * (len(merges) + 1)
    for i, j in merges:
        sizes.append(sizes[i] + sizes[j])
    steps = np.arange(len(merges), dtype=float)
    return np.column_stack([merges.astype(float), steps, sizes[len(merges) + 1 :]])


def naive(X, w):
    """Every pair of clusters in every step, each scatter from its rows."""
    Z = module._principal_components(X, w)
    d = Z.shape[1]

    def scatter(rows):
        dx = Z[rows] - np.average(Z[rows], axis=0, weights=w[rows])
        return (w[rows, None] * dx).T @ dx

    t = np.trace(scatter(np.arange(len(Z)))) / (w.sum() * d)

    def term(rows):
        W, n = scatter(rows), w[rows].sum()
        return n * np.log(np.linalg.det((W + 0.3 * t * np.eye(d)) / n))

    clusters, merges = {i: [i] for i in range(len(Z))}, []
    while len(clusters) > 1:
        pairs = [(i, j) for i in clusters for j in clusters if i < j]
        costs = [term(clusters[i] + clusters[j]) - term(clusters[i]) - term(clusters[j]) for i, j in pairs]
        i, j = pairs[int(np.argmin(costs))]
        merges.append((i, j))
        clusters[len(Z) + len(merges) - 1] = clusters.pop(i) + clusters.pop(j)
    return np.array(merges)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_merges_are_those_of_weighing_every_pair_anew(d, rng):
    X, w = rng.normal(size=(25, d)) ** 3, rng.uniform(0.5, 2, 25)
    np.testing.assert_array_equal(agglomerate(X), naive(X, np.ones(25)))
    np.testing.assert_array_equal(agglomerate(X, w), naive(X, w))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [stripes, long_needles])
def test_long_clusters_that_ward_breaks_are_found_whole(shape, seed):
    X, truth = shape(np.random.default_rng(seed))
    ward = fcluster(linkage(X / X.std(axis=0), "ward"), 3, "maxclust")
    assert adjusted_rand_score(truth, ward) < 0.7
    assert adjusted_rand_score(truth, cut(agglomerate(X), 3)) == 1


def test_round_clusters_are_found(rng):
    truth = np.repeat(np.arange(4), 40)
    X = rng.normal(size=(160, 5)) + 6 * rng.normal(size=(4, 5))[truth]
    assert adjusted_rand_score(truth, cut(agglomerate(X), 4)) == 1


@pytest.mark.parametrize("n, d", [(1, 3), (2, 3), (3, 5), (60, 1), (80, 3), (10, 20)])
def test_merges_form_a_tree(n, d, rng):
    merges = agglomerate(rng.normal(size=(n, d)))
    assert merges.shape == (n - 1, 2)
    assert n == 1 or is_valid_linkage(as_linkage(merges))
    np.testing.assert_array_equal(np.sort(merges.ravel()), np.arange(2 * n - 2))


def test_every_cut_has_as_many_clusters_as_asked_and_refines_the_one_before(rng):
    merges = agglomerate(rng.normal(size=(40, 3)))
    coarser = np.zeros(40, np.int32)
    for k in range(1, 41):
        labels = cut(merges, k)
        assert labels.dtype == np.int32
        np.testing.assert_array_equal(np.unique(labels), np.arange(k))
        _, first = np.unique(labels, return_index=True)
        np.testing.assert_array_equal(first, np.sort(first))
        assert len(set(zip(labels, coarser, strict=True))) == k
        coarser = labels


def test_cuts_are_those_of_scipy(rng):
    merges = agglomerate(rng.normal(size=(50, 2)))
    for k in (2, 5, 20):
        assert adjusted_rand_score(cut(merges, k), fcluster(as_linkage(merges), k, "maxclust")) == 1


@pytest.mark.parametrize("k", [0, 6])
def test_a_cut_into_more_clusters_than_rows_or_none_is_rejected(k, rng):
    with pytest.raises(ValueError, match="5 rows can be cut into 1 to 5"):
        cut(agglomerate(rng.normal(size=(5, 2))), k)


def test_neither_the_units_nor_the_origin_of_columns_matter(rng):
    X, _ = needles(rng, n=30)
    moved = X * [1e-6, 3.0, 1e9] + [1e-3, -50, 1e12]
    np.testing.assert_array_equal(agglomerate(moved), agglomerate(X))


def test_columns_that_say_nothing_new_do_not_matter(rng):
    X, _ = needles(rng, n=30)
    wanted = agglomerate(X)
    with_constant = np.column_stack([np.full(90, 0.1), X, np.zeros(90)])
    np.testing.assert_array_equal(agglomerate(with_constant), wanted)
    dependent = agglomerate(np.column_stack([X, X[:, 0] - X[:, 1]]))
    assert is_valid_linkage(as_linkage(dependent))


def test_equal_rows_are_merged_first(rng):
    rows = rng.normal(size=(20, 3))
    which = np.concatenate([np.arange(20), rng.integers(20, size=30)])
    merges = agglomerate(rows[which])
    assert is_valid_linkage(as_linkage(merges))
    assert adjusted_rand_score(which, cut(merges, 20)) == 1


def test_weight_two_is_the_row_twice(rng):
    X, w = rng.normal(size=(40, 3)), rng.integers(1, 4, 40)
    once, twice = agglomerate(X, w.astype(float)), np.repeat(np.arange(40), w)
    again = agglomerate(X[twice])
    for k in range(1, 41):
        assert adjusted_rand_score(cut(once, k)[twice], cut(again, k)) == 1


def test_rows_without_weight_leave_the_clusters_of_the_others_alone(rng):
    X, truth = needles(rng)
    w = (rng.random(len(X)) < 0.7).astype(float)
    labels = cut(agglomerate(X, w), 3)
    assert adjusted_rand_score(truth[w > 0], labels[w > 0]) == 1


def test_rows_all_alike_have_some_tree():
    merges = agglomerate(np.full((7, 3), 0.1))
    assert is_valid_linkage(as_linkage(merges))
    assert len(np.unique(cut(merges, 4))) == 4


def test_one_column_parts_at_the_gaps(rng):
    X = np.concatenate([rng.normal(size=40) * 0.1, rng.normal(size=40) * 0.1 + 5, rng.normal(size=40) * 0.1 + 9])
    labels = cut(agglomerate(X[:, None]), 3)
    np.testing.assert_array_equal(labels, np.repeat([0, 1, 2], 40))


def test_sizes_at_the_ends_of_the_range_do_no_harm(rng):
    X, _ = needles(rng, n=20)
    extreme = agglomerate(X * [1e-250, 1.0, 1e250])
    np.testing.assert_array_equal(extreme, agglomerate(X))
