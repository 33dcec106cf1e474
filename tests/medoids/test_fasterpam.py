"""FasterPAM: compiled kernels against NumPy, the loss against its definition."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from coterie.distances import pairwise
from coterie.kernels.cpu import medoids as cpu
from coterie.kernels.plain import medoids as plain
from coterie.medoids import fasterpam, medoid_search
from coterie.medoids.distance_table import ComputedDistances, StoredDistances, batches

rng = np.random.default_rng(5)


def distance_table(n, d=3, dtype=np.float64):
    D = pairwise(rng.normal(size=(n, d)).astype(dtype))
    return StoredDistances(D, np.arange(n))


def deviation(D, w, medoids):
    return w @ D[list(medoids)].min(axis=0)


def silhouette_loss(D, w, medoids):
    two = np.sort(D[list(medoids)], axis=0)[:2].astype(np.float64)
    return w @ np.divide(two[0], two[1], out=np.zeros(len(w)), where=two[0] > 0)


LOSS = {fasterpam.Deviations: deviation, fasterpam.Silhouettes: silhouette_loss}
KINDS = list(LOSS)


def state(kind, table, w, medoids, ops):
    """State with these kernels for any shape."""
    result = kind.__new__(kind)
    result.medoids, result.w, result.ops = np.array(medoids), w, ops
    result.distances = np.ascontiguousarray(table.rows(result.medoids).T)
    result.near = np.full((kind.depth, table.shape[1]), np.inf, table.dtype)
    result.slots = np.full(result.near.shape, -1, np.int32)
    result.removal = np.empty(len(medoids))
    result._update(0)
    return result


@pytest.mark.parametrize("ops", [cpu, plain])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_changes_are_those_of_the_loss(kind, k, dtype, ops):
    table, w = distance_table(45, dtype=dtype), rng.random(45)
    medoids = rng.choice(45, k, replace=False)
    here, D = state(kind, table, w, medoids, ops), table.D
    now = LOSS[kind](D, w, medoids)
    assert here.loss == pytest.approx(now, rel=1e-6)
    change, best = np.empty(45), np.empty(45, np.int64)
    here._evaluate(D, change, best)
    for c in np.setdiff1d(np.arange(45), medoids):
        after = [LOSS[kind](D, w, [*np.delete(medoids, s), c]) for s in range(k)]
        assert change[c] == pytest.approx(min(after) - now, rel=1e-5, abs=1e-5 if dtype == np.float32 else 1e-10)
        assert after[best[c]] == pytest.approx(min(after), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_state_stays_that_of_its_numpy_twin(kind):
    table, w = distance_table(70), rng.random(70)
    one, other = (state(kind, table, w, np.arange(5), ops) for ops in (cpu, plain))
    for _ in range(8):
        for part in batches(table.shape, 8):
            assert one.improve(table.rows(part), part.start, 1) == other.improve(table.rows(part), part.start, 1)
        np.testing.assert_array_equal(one.medoids, other.medoids)
        np.testing.assert_array_equal(one.near, other.near)
        np.testing.assert_allclose(one.removal, other.removal, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, k", [(30, 2), (30, 4), (400, 7)])
def test_a_descent_falls_and_ends_where_no_swap_helps(kind, n, k):
    table, w = distance_table(n), rng.random(n) + 0.1
    found = fasterpam.descend(table, kind(table, w, np.arange(k)), 100, 1, lambda *_: None)
    assert found.converged
    assert (np.diff(found.history) <= 1e-9).all()
    assert found.loss == pytest.approx(LOSS[kind](table.D, w, found.medoids))
    for c in range(n):
        for s in range(k):
            others = [*np.delete(found.medoids, s), c]
            if len(set(others)) == k:
                assert LOSS[kind](table.D, w, others) >= found.loss - 1e-9 * found.loss


def test_tiny_tables_reach_the_best_there_is():
    for seed in range(5):
        D = pairwise(np.random.default_rng(seed).normal(size=(12, 2)))
        table, w = StoredDistances(D, np.arange(12)), np.ones(12)
        best = min(deviation(D, w, each) for each in combinations(range(12), 3))
        found = min(
            fasterpam.descend(
                table, fasterpam.Deviations(table, w, medoid_search.random(table, w, 3, rng, 1)), 50, 1, print
            ).loss
            for _ in range(10)
        )
        assert found == pytest.approx(best)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(n_jobs):
    table, w = distance_table(700, dtype=np.float32), rng.random(700)
    one = fasterpam.descend(table, fasterpam.Deviations(table, w, np.arange(9)), 100, 1, lambda *_: None)
    many = fasterpam.descend(table, fasterpam.Deviations(table, w, np.arange(9)), 100, n_jobs, lambda *_: None)
    np.testing.assert_array_equal(one.medoids, many.medoids)
    assert one.history == many.history


def test_the_silhouette_chooses_the_number_of_clusters():
    corners = np.array([[0, 0], [30, 0], [0, 30], [30, 30], [15, 60]])
    X = corners[np.arange(200) % 5] + rng.normal(size=(200, 2))
    table, w = StoredDistances(pairwise(X), np.arange(200)), np.ones(200)
    found = fasterpam.descend_to_two(table, w, medoid_search.plusplus(table, w, 12, rng, 1), 100, 1, lambda *_: None)
    assert sorted(found.medoids % 5) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("method", medoid_search.METHODS)
@pytest.mark.parametrize("k", [1, 4, 25])
def test_starts_are_different_rows(method, k):
    table = distance_table(25)
    chosen = medoid_search.METHODS[method](table, np.ones(25), k, np.random.default_rng(0), 2)
    assert len(set(chosen.tolist())) == k
    assert (chosen >= 0).all()
    assert (chosen < 25).all()


def test_starts_of_rows_that_are_all_alike_are_different_rows():
    table = StoredDistances(np.zeros((9, 9)), np.arange(9))
    for method in medoid_search.METHODS.values():
        assert len(set(method(table, np.ones(9), 4, rng, 1).tolist())) == 4


def test_build_is_greedy():
    table, w = distance_table(40), rng.random(40)
    chosen = medoid_search.build(table, w, 4, rng, 1)
    for i in range(4):
        losses = [deviation(table.D, w, [*chosen[:i], c]) for c in range(40)]
        assert losses[chosen[i]] == pytest.approx(min(losses))


def test_computed_and_stored_distances_are_equal():
    from coterie.distances import as_distance

    X = rng.normal(size=(300, 4))
    computed = ComputedDistances(as_distance("euclidean"), X, X, np.arange(300))
    np.testing.assert_array_equal(computed.compute_all(2).D, computed.rows(slice(0, 300)))
    np.testing.assert_array_equal(computed.rows(slice(3, 9)), computed.rows(np.arange(3, 9)))
