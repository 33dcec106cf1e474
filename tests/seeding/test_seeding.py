"""Initial centers: the right rows with the right probabilities, for any division into chunks."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.cluster import kmeans_plusplus

from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.errors import ParameterError
from coterie.seeding import METHODS, farthest, forgy, plusplus, random_partition, start

rng = np.random.default_rng(0)
LINE = np.array([[0.0], [1.0], [3.0], [7.0], [15.0]])
LARGE = rng.normal(size=(4000, 6))


def seed(method, X, k, seed=0, w=None, part_rows=None, **options):
    source = MemorySource(X, w, chunk_rows=part_rows)
    return method(source, Serial(), np.random.default_rng(seed), k, 1.0, **options)


def potential(X, centers):
    return ((X[:, None] - centers) ** 2).sum(-1).min(1).sum()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("X", [LARGE, LARGE.astype(np.float32), sparse.csr_array(LARGE * (LARGE > 1))], ids=type)
def test_every_method_gives_k_finite_centers_in_the_type_of_the_data(name, X):
    centers = start(name, MemorySource(X), Serial(), np.random.default_rng(0), 9, 1.0)
    assert centers.shape == (9, 6)
    assert centers.dtype == X.dtype
    assert np.isfinite(centers).all()


@pytest.mark.parametrize("name", ["k-means++", "forgy", "farthest"])
def test_these_methods_choose_rows_and_no_row_twice(name):
    centers = seed(METHODS[name], LARGE, 50, part_rows=300)
    assert len(np.unique(centers, axis=0)) == 50
    assert all((center == LARGE).all(axis=1).any() for center in centers)


@pytest.fixture(scope="module")
def triples():
    """Three centers of `LINE` in parts, with one candidate each, for many seeds."""
    return np.array([seed(plusplus, LINE, 3, s, part_rows=2, n_candidates=1).ravel() for s in range(2500)])


@pytest.mark.parametrize("in_parts", [True, False], ids=["parts", "whole"])
def test_plusplus_samples_by_squared_distance(in_parts, triples):
    """With one candidate, the pair (first, second) has probability 1/n d^2 / sum d^2."""
    runs = len(triples)
    if in_parts:
        drawn = triples[:, :2]
    else:
        drawn = np.array([seed(plusplus, LINE, 2, s, n_candidates=1).ravel() for s in range(runs)])
    squares = (LINE - LINE.T) ** 2
    wanted = squares / squares.sum(axis=1, keepdims=True) / 5
    values = LINE.ravel()
    counted = np.array([[np.sum((drawn[:, 0] == a) & (drawn[:, 1] == b)) for b in values] for a in values])
    assert np.trace(counted) == 0
    off = ~np.eye(5, dtype=bool)
    assert stats.chisquare(counted[off], wanted[off] * runs).pvalue > 1e-3


def test_rejection_sampling_gives_the_third_center_the_right_probabilities(triples):
    given = triples[(np.sort(triples[:, :2], axis=1) == [0.0, 7.0]).all(axis=1)]
    others = np.array([1.0, 3.0, 15.0])
    mass = np.minimum(others**2, (others - 7) ** 2)
    counted = [np.sum(given[:, 2] == value) for value in others]
    assert len(given) > 200
    assert stats.chisquare(counted, mass / mass.sum() * len(given)).pvalue > 1e-3


@pytest.mark.parametrize("k", [5, 30])
def test_plusplus_is_as_good_as_scikit_learns(k):
    centers = rng.normal(size=(k, 6)) * 6
    X = np.repeat(centers, 4000 // k, axis=0) + rng.normal(size=(4000 // k * k, 6))
    ours = [potential(X, seed(plusplus, X, k, s)) for s in range(25)]
    theirs = [potential(X, kmeans_plusplus(X, k, random_state=s)[0]) for s in range(25)]
    assert stats.mannwhitneyu(ours, theirs).pvalue > 1e-3


def test_greedy_candidates_lower_the_potential():
    greedy = [potential(LARGE, seed(plusplus, LARGE, 20, s)) for s in range(10)]
    plain = [potential(LARGE, seed(plusplus, LARGE, 20, s, n_candidates=1)) for s in range(10)]
    assert np.mean(greedy) < np.mean(plain)


def test_weights_are_probabilities():
    w = np.array([0.0, 1.0, 2.0, 3.0, 0.0])
    for method in (partial(plusplus, n_candidates=1), forgy):
        first = np.array([seed(method, LINE, 1, s, w=w, part_rows=2).item() for s in range(3000)])
        counted = [np.sum(first == value) for value in (1.0, 3.0, 7.0)]
        assert sum(counted) == 3000
        assert stats.chisquare(counted, np.array([1, 2, 3]) / 6 * 3000).pvalue > 1e-3


def test_fewer_distinct_rows_than_centers_repeat_one():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    for method in (plusplus, farthest):
        centers = seed(method, X, 4)
        assert len(np.unique(centers, axis=0)) == 2


def test_farthest_chooses_the_extreme_rows_without_randomness():
    assert seed(farthest, LINE, 3, seed=0).ravel().tolist() == [15.0, 0.0, 7.0]
    np.testing.assert_array_equal(seed(farthest, LARGE, 9, 0, part_rows=100), seed(farthest, LARGE, 9, 1))


def test_random_partition_starts_near_the_mean():
    centers = seed(random_partition, LARGE + 5, 4)
    assert np.abs(centers - 5).max() < 0.3
    tiny = seed(random_partition, LINE, 5)  # some of five clusters of five rows are empty: rows stand in
    assert np.isfinite(tiny).all()


def test_fewer_rows_with_a_weight_than_centers_are_repeated():
    w = np.array([0.0, 0.0, 2.0, 0.0, 1.0])
    assert seed(random_partition, LINE, 3, w=w * [0, 0, 1, 0, 0]).ravel().tolist() == [LINE[2, 0]] * 3
    assert sorted(set(seed(forgy, LINE, 4, w=w).ravel())) == sorted(LINE[[2, 4], 0])
    assert seed(forgy, LINE, 4, w=w).shape == (4, 1)


def test_an_unknown_method_is_an_error_that_lists_the_methods():
    with pytest.raises(ParameterError, match=r"'k-means\+\+', 'forgy'.*got 'best'"):
        start("best", MemorySource(LINE), Serial(), rng, 2, 1.0)
