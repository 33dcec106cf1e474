"""FasterPAM: compiled kernels against the definition of the loss."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from coterie.distances import pairwise
from coterie.kernels.cpu import medoids as kernels
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


LOSS = {False: deviation, True: silhouette_loss}
SILHOUETTE = pytest.mark.parametrize("silhouette", LOSS)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [2, 3, 6])
@SILHOUETTE
def test_changes_are_those_of_the_loss(silhouette, k, dtype):
    table, w = distance_table(45, dtype=dtype), rng.random(45)
    medoids = rng.choice(45, k, replace=False)
    here, D = fasterpam.State(table, w, medoids, silhouette), table.D
    now = LOSS[silhouette](D, w, medoids)
    assert here.loss == pytest.approx(now, rel=1e-6)
    change, best = np.empty(45), np.empty(45, np.int64)
    here.evaluate(D, change, best)
    for c in np.setdiff1d(np.arange(45), medoids):
        after = [LOSS[silhouette](D, w, [*np.delete(medoids, s), c]) for s in range(k)]
        assert change[c] == pytest.approx(min(after) - now, rel=1e-5, abs=1e-5 if dtype == np.float32 else 1e-10)
        assert after[best[c]] == pytest.approx(min(after), rel=1e-6)


@SILHOUETTE
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_state_stays_that_of_its_medoids(silhouette, k):
    table, w = distance_table(70), rng.random(70)
    here = fasterpam.State(table, w, np.arange(k), silhouette)
    for part in batches(table.shape, 8):
        here.improve(table.rows(part), part.start, 1)
        order = np.argsort(table.D[here.medoids], axis=0, kind="stable")[:3]
        np.testing.assert_array_equal(here.slots[: len(order)], order)
        np.testing.assert_array_equal(here.near[:k], np.sort(table.D[here.medoids], axis=0)[:3])
        assert (here.near[k:] == np.inf).all()
        fresh = fasterpam.State(table, w, here.medoids, silhouette)
        np.testing.assert_array_equal(here.removal, fresh.removal)
        assert here.loss == fresh.loss == pytest.approx(LOSS[silhouette](table.D, w, here.medoids))


def assert_no_swap_helps(D, w, medoids, loss_of):
    loss = loss_of(D, w, medoids)
    for c in range(len(D)):
        for s in range(len(medoids)):
            others = [*np.delete(medoids, s), c]
            if len(set(others)) == len(medoids):
                assert loss_of(D, w, others) >= loss - 1e-9 * loss


@SILHOUETTE
@pytest.mark.parametrize("n, k", [(30, 2), (30, 4), (400, 7)])
def test_a_descent_falls_and_ends_where_no_swap_helps(silhouette, n, k):
    table, w = distance_table(n), rng.random(n) + 0.1
    found = fasterpam.descend(table, fasterpam.State(table, w, np.arange(k), silhouette), 100, 1, lambda *_: None)
    assert found.converged
    assert (np.diff(found.history) <= 1e-9).all()
    assert found.loss == pytest.approx(LOSS[silhouette](table.D, w, found.medoids))
    assert_no_swap_helps(table.D, w, found.medoids, LOSS[silhouette])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@SILHOUETTE
def test_many_descents_in_one_call_end_where_no_swap_helps(silhouette, dtype):
    D, w = distance_table(75, dtype=dtype).D, rng.random(75) + 0.1
    for k in (2, 5):
        medoids = np.array([rng.choice(75, k, replace=False) for _ in range(4)])
        loss, passes = np.empty(4), np.empty(4)
        kernels.descents(D, w, silhouette, medoids, 100, loss, passes)
        for r in range(4):
            assert loss[r] == pytest.approx(LOSS[silhouette](D, w, medoids[r]), rel=1e-6)
            assert_no_swap_helps(D.astype(np.float64), w, medoids[r], LOSS[silhouette])
        assert (passes >= 1).all()


def test_descents_end_after_the_maximum_number_of_passes():
    D, passes = distance_table(200).D, np.empty(1)
    kernels.descents(D, np.ones(200), False, np.arange(6)[None], 1, np.empty(1), passes)
    assert passes[0] == 1


def test_candidates_can_be_fewer_than_objects():
    D, w = distance_table(60).D, rng.random(60)
    rows = np.sort(rng.choice(60, 20, replace=False))
    medoids, loss = np.array([[0, 7, 9]]), np.empty(1)
    kernels.descents(D[rows], w, False, medoids, 100, loss, np.empty(1))
    assert loss[0] == pytest.approx(deviation(D, w, rows[medoids[0]]))
    best = min(deviation(D[rows], w, [*np.delete(medoids[0], s), c]) for c in range(20) for s in range(3))
    assert loss[0] <= best * (1 + 1e-12)


def test_medoids_are_drawn_in_proportion_to_their_weighted_distance():
    D, w = np.array([[0.0, 3.0, 1.0], [3.0, 0.0, 2.0], [1.0, 2.0, 0.0]]), np.array([1.0, 1.0, 6.0])
    u = (np.arange(900) + 0.5) / 900
    first = np.empty((900, 1), np.int64)
    kernels.draw(D, np.arange(3), w, first, np.zeros(900, np.int64), u[:, None])
    np.testing.assert_allclose(np.bincount(first[:, 0]) / 900, [1 / 8, 1 / 8, 6 / 8], atol=0.002)
    second = np.zeros((900, 2), np.int64)
    kernels.draw(D, np.arange(3), w, second, np.ones(900, np.int64), np.stack([u, u], axis=1))
    assert (second[:, 0] == 0).all()  # it is not drawn again
    np.testing.assert_allclose(np.bincount(second[:, 1]) / 900, [0, 3 / 9, 6 / 9], atol=0.002)


@pytest.mark.parametrize("D", [np.zeros((9, 9)), np.ones((9, 9))], ids=["equal", "far from themselves"])
def test_no_medoid_is_drawn_twice(D):
    medoids = np.empty((40, 9), np.int64)
    u = rng.random((40, 9))
    u[0], u[1] = 0.0, np.nextafter(1.0, 0.0)
    kernels.draw(D, np.arange(9), rng.random(9), medoids, np.zeros(40, np.int64), u)
    assert (np.sort(medoids, axis=1) == np.arange(9)).all()


def test_tiny_tables_reach_the_best_there_is():
    for seed in range(5):
        D = pairwise(np.random.default_rng(seed).normal(size=(12, 2)))
        table, w = StoredDistances(D, np.arange(12)), np.ones(12)
        best = min(deviation(D, w, each) for each in combinations(range(12), 3))
        found = min(
            fasterpam.descend(
                table, fasterpam.State(table, w, medoid_search.random(table, w, 3, rng, 1)), 50, 1, lambda *_: None
            ).loss
            for _ in range(10)
        )
        assert found == pytest.approx(best)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(n_jobs):
    table, w = distance_table(700, dtype=np.float32), rng.random(700)
    one = fasterpam.descend(table, fasterpam.State(table, w, np.arange(9)), 100, 1, lambda *_: None)
    many = fasterpam.descend(table, fasterpam.State(table, w, np.arange(9)), 100, n_jobs, lambda *_: None)
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
    np.testing.assert_array_equal(computed.stored(2).D, computed.rows(slice(0, 300)))
    np.testing.assert_array_equal(computed.rows(slice(3, 9)), computed.rows(np.arange(3, 9)))
