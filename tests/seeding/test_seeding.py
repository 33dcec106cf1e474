"""Initial centers: the right rows with the right probabilities, for any division into chunks."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.cluster import kmeans_plusplus

from coterie import kernels
from coterie.core.protocols import Chunk
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.errors import ParameterError
from coterie.seeding import METHODS, farthest, forgy, greedy_rows, plusplus, random_partition, start

scalable_module = sys.modules["coterie.seeding.scalable"]  # the package has a function of this name
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


def greedy_of(X, k, s, w=None, **options):
    return X[greedy_rows(Chunk(X, w, 0), np.random.default_rng(s), k, 1.0, **options)]


@pytest.fixture(params=["NumPy", "compiled"], scope="module")
def rounds(request):
    """The rounds for any cost, and the compiled ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "SMALL", 0 if request.param == "compiled" else 1 << 30)
        yield


@pytest.fixture(scope="module")
def triples(rounds):
    """Three centers of `LINE`, with one candidate each, for many seeds."""
    return np.array([greedy_of(LINE, 3, s, n_candidates=1).ravel() for s in range(2500)])


def test_plusplus_samples_by_squared_distance(triples):
    """With one candidate, the pair (first, second) has probability 1/n d^2 / sum d^2."""
    runs, drawn = len(triples), triples[:, :2]
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
def test_plusplus_is_as_good_as_scikit_learns(k, rounds):
    centers = rng.normal(size=(k, 6)) * 6
    X = np.repeat(centers, 4000 // k, axis=0) + rng.normal(size=(4000 // k * k, 6))
    ours = [potential(X, greedy_of(X, k, s)) for s in range(25)]
    theirs = [potential(X, kmeans_plusplus(X, k, random_state=s)[0]) for s in range(25)]
    assert stats.mannwhitneyu(ours, theirs).pvalue > 1e-3


def test_greedy_candidates_lower_the_potential(rounds):
    several = [potential(LARGE, greedy_of(LARGE, 20, s)) for s in range(10)]
    plain = [potential(LARGE, greedy_of(LARGE, 20, s, n_candidates=1)) for s in range(10)]
    assert np.mean(several) < np.mean(plain)


def test_weights_are_probabilities(rounds):
    w = np.array([0.0, 1.0, 2.0, 3.0, 0.0])
    for method in (plusplus, forgy):
        first = np.array([seed(method, LINE, 1, s, w=w, part_rows=2).item() for s in range(3000)])
        counted = [np.sum(first == value) for value in (1.0, 3.0, 7.0)]
        assert sum(counted) == 3000
        assert stats.chisquare(counted, np.array([1, 2, 3]) / 6 * 3000).pvalue > 1e-3


@pytest.mark.parametrize("is_weighted", [False, True])
def test_weights_are_the_same_as_equal_rows_for_candidates(rounds, is_weighted):
    """The best of many candidates is the row that lowers the weighted potential most."""
    w = np.array([1.0, 1.0, 1.0, 50.0, 1.0])
    X, weight = (LINE, w) if is_weighted else (np.repeat(LINE, w.astype(int), axis=0), None)
    chosen = np.array([[0.0]])
    assert {greedy_of(X, 1, s, weight, n_candidates=64, chosen=chosen).item() for s in range(20)} == {7.0}


def test_compiled_rounds_and_those_for_any_cost_choose_the_same_rows(monkeypatch):
    """They use the same random numbers; costs differ by rounding only."""
    for k, w, chosen in ((30, None, None), (9, rng.exponential(size=len(LARGE)), LARGE[:3] + 0.5), (600, None, None)):
        found = []
        for small in (0, 1 << 62):
            monkeypatch.setattr(kernels, "SMALL", small)
            found.append(greedy_of(LARGE, k, 3, w, chosen=chosen))
        np.testing.assert_array_equal(*found)


def test_parts_do_not_change_the_rows_that_are_chosen():
    for name in ("k-means++", "k-means||"):
        whole, *others = (seed(METHODS[name], LARGE, 20, part_rows=rows) for rows in (None, 97, 1000))
        for centers in others:
            np.testing.assert_allclose(centers, whole, rtol=1e-11, atol=1e-12)


def test_large_tables_use_a_sample(monkeypatch):
    """Above the limit, the result is that of k-means||; kernels for the rows of one GPU are not concerned."""
    by_size = {}
    for limit in (LARGE.size * 20, LARGE.size * 20 - 1):
        monkeypatch.setattr(scalable_module, "MAX_WORK", limit)
        by_size[limit] = seed(METHODS["k-means++"], LARGE, 20)
    small, large = by_size.values()
    np.testing.assert_array_equal(small, greedy_of(LARGE, 20, 0))
    np.testing.assert_array_equal(large, seed(METHODS["k-means||"], LARGE, 20))


def test_fewer_distinct_rows_than_centers_repeat_one():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    for method in (plusplus, METHODS["k-means||"], farthest):
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
    with pytest.raises(ParameterError, match=r"'auto', 'k-means\+\+', 'forgy'.*got 'best'"):
        start("best", MemorySource(LINE), Serial(), rng, 2, 1.0)
