"""Search of K-medoids: replace some medoids at random, and continue with swaps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from coterie import KMedoids
from coterie.errors import ParameterError
from coterie.medoids import distance_table, fasterpam, medoid_search
from coterie.medoids.distance_table import StoredDistances, weighted_sample
from coterie.medoids.fasterpam import SwapResult

pytestmark = pytest.mark.whole_search
rng = np.random.default_rng(0)
ROWS = rng.normal(size=(90, 2)) * [1.0, 4.0] + 6.0 * rng.integers(4, size=(90, 1))


def test_the_default_is_as_good_as_the_best_of_many_starts():
    for seed, k in enumerate((2, 5, 9)):
        many = KMedoids(k, search="none", n_init=30, random_state=1).fit(ROWS).inertia_
        assert KMedoids(k, random_state=seed).fit(ROWS).inertia_ <= 1.005 * many


def test_a_search_is_never_worse_than_its_starts():
    for seed in range(3):
        plain = KMedoids(6, search="none", n_init=3, random_state=seed).fit(ROWS).inertia_
        assert KMedoids(6, n_init=3, random_state=seed).fit(ROWS).inertia_ <= plain


def test_the_best_of_all_descents_is_taken_and_jumps_begin_there():
    table, losses, initial = StoredDistances(cdist(ROWS, ROWS), np.arange(90)), iter([5.0, 3.0, 4.0, 3.5, 2.0]), []
    new = np.array([1, 2, 3])

    def descend(medoids):
        initial.append(medoids)
        return SwapResult(medoids, next(losses), (), True)

    start = SwapResult(np.array([50, 60, 70]), 4.5, (), True)
    best = medoid_search.jump_and_descend(start, table, np.ones(90), 4, np.random.default_rng(0), lambda: new, descend)
    assert best.loss == 3.0
    assert best.medoids is initial[1]
    assert len(initial) == 4
    assert initial[3] is new


def test_any_number_of_threads_gives_the_same_medoids():
    one, two = (KMedoids(5, random_state=2, n_jobs=n).fit(ROWS).medoid_indices_ for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_jump_replaces_some_medoids_by_rows_that_are_none():
    table, w = StoredDistances(cdist(ROWS, ROWS), np.arange(90)), np.ones(90)
    w[:40] = 0
    for seed in range(20):
        new_medoids = medoid_search.random_jump(np.array([50, 60, 70]), table, w, np.random.default_rng(seed))
        assert len(set(new_medoids.tolist())) == 3
        assert len(set(new_medoids.tolist()) - {50, 60, 70}) > 0
        assert new_medoids.min() >= 40


def test_a_search_ends_where_every_row_is_on_a_medoid():
    corners = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], (4, 1))
    for kind in ("auto", "fast"):
        assert KMedoids(3, search=kind, random_state=0).fit(corners).inertia_ == 0


def distances_used(effort, n):
    sample = (medoid_search.STARTS + effort.sample_jumps) * effort.sample**2 if effort.sample else 0
    return medoid_search.ROUNDS * (sample + (effort.starts + effort.jumps) * n * n)


def test_a_large_table_is_searched_by_a_sample_with_the_same_work():
    assert medoid_search.effort_of("auto", (600, 600), 5) == (medoid_search.STARTS, medoid_search.JUMPS, 0, 0)
    assert medoid_search.effort_of("auto", (60, 60), 5).jumps == medoid_search.LONG_JUMPS
    assert medoid_search.effort_of("fast", (20_000, 20_000), 5).jumps == medoid_search.LONG_JUMPS
    for n in (1500, 3000, 4500):
        effort = medoid_search.effort_of("auto", (n, n), 5)
        assert effort.jumps > 0
        assert n > effort.sample > 0
        assert distances_used(effort, n) <= medoid_search.WORK
    assert medoid_search.effort_of("auto", (20_000, 20_000), 5).jumps == 0
    assert medoid_search.effort_of("auto", (20_000, 20_000), 5).sample_jumps == medoid_search.JUMPS
    assert medoid_search.effort_of("auto", (1_500, 1_500), 150).sample == 0  # too few rows for each medoid


def test_rows_of_a_sample_have_the_weight_of_the_rows_nearest_to_them():
    D, w = cdist(ROWS, ROWS), np.arange(90) % 4 + 1.0
    reduced, weights, rows = weighted_sample(StoredDistances(D, np.arange(90)), w, 20, np.random.default_rng(0))
    nearest = D[rows].argmin(axis=0)
    np.testing.assert_array_equal(reduced.D, D[np.ix_(rows, rows)])
    np.testing.assert_array_equal(weights, [w[nearest == i].sum() for i in range(20)])


def test_a_sample_can_have_rows_of_negligible_weight():
    w = np.where(np.arange(90) < 5, 1.0, 5e-324)
    sampled = weighted_sample(StoredDistances(cdist(ROWS, ROWS), np.arange(90)), w, 20, np.random.default_rng(0))
    assert len(np.unique(sampled[2])) == 20
    assert sampled[1].sum() == pytest.approx(5.0)


def test_batches_of_a_sample_give_the_same_weights(monkeypatch):
    table, w = StoredDistances(cdist(ROWS, ROWS), np.arange(90)), np.ones(90)
    whole = weighted_sample(table, w, 20, np.random.default_rng(0))
    monkeypatch.setattr(distance_table, "BATCH", 7)
    parts = weighted_sample(table, w, 20, np.random.default_rng(0))
    np.testing.assert_array_equal(parts[1], whole[1])
    np.testing.assert_array_equal(parts[0].D, whole[0].D)


def swaps(table, w, medoids):
    return fasterpam.descend(table, fasterpam.Deviations(table, w, medoids), 100, 1, lambda *_: False)


def test_candidates_near_the_medoids_lower_the_loss_of_all_rows():
    D, w, medoids = cdist(ROWS, ROWS), np.arange(90) % 3 + 1.0, np.array([3, 40, 77])
    table, rng = StoredDistances(D, np.arange(90)), np.random.default_rng(0)
    for count in (90, 9):
        near, loss = medoid_search.descend_nearby(table, w, medoids, 2.0, count, 5.0, rng, swaps)
        assert loss == pytest.approx(w @ D[near].min(axis=0))
        assert loss < w @ D[medoids].min(axis=0)
        nearest = np.argsort(D[medoids], axis=1)[:, :10]
        assert set(near.tolist()) <= set(nearest.ravel().tolist())


def test_the_best_few_results_of_a_sample_are_compared_with_all_rows():
    """Those that differ, and are not much worse than the best."""
    for losses, best in (
        ([10.0, 10.0, 10.2, 99.0, 10.1, 10.3, 10.35, 10.25], [10.0, 10.1, 10.2, 10.25]),
        ([99.0, 10.2, 10.0, 10.5], [10.0, 10.2]),
    ):
        found = medoid_search._distinct([SwapResult(np.arange(3), loss, (), True) for loss in losses])
        assert [result.loss for result in found] == best


@pytest.mark.parametrize("options", [{}, {"objective": "silhouette"}, {"metric": "precomputed"}], ids=str)
def test_a_sample_leads_to_the_clusters_of_all_rows(options, monkeypatch):
    monkeypatch.setattr(medoid_search, "WORK", 1 << 14)
    for name in ("SAMPLE", "SAMPLE_DISTANCES"):
        monkeypatch.setattr(medoid_search, name, 40)
    X = cdist(ROWS, ROWS) if options else ROWS
    options = {"metric": "precomputed"} | options if options else {}
    searched = KMedoids(3, random_state=0, **options)
    assert medoid_search.effort_of("auto", (90, 90), 3).sample == 40
    many = KMedoids(3, search="none", n_init=30, random_state=1, **options).fit(X)
    assert searched.fit(X).history_[-1] <= 1.005 * many.history_[-1]
    assert searched.converged_


def test_initialisations_of_the_user_come_before_the_sample(monkeypatch):
    monkeypatch.setattr(medoid_search, "WORK", 1 << 14)
    for name in ("SAMPLE", "SAMPLE_DISTANCES"):
        monkeypatch.setattr(medoid_search, name, 40)
    runs = set()
    KMedoids(3, n_init=4, random_state=0, callback=lambda progress: runs.add(progress.run)).fit(ROWS)
    assert runs == set(range(5))


def test_a_wrong_search_is_rejected():
    with pytest.raises(ParameterError, match="search must be"):
        KMedoids(2, search="global").fit(ROWS)


def test_a_jump_selects_no_medoid_although_objects_are_far_from_themselves():
    table, medoids = StoredDistances(np.ones((4, 4)), np.arange(4)), np.array([0, 1, 2])
    for seed in range(10):
        new_medoids = medoid_search.random_jump(medoids, table, np.ones(4), np.random.default_rng(seed))
        assert sorted(new_medoids.tolist()) in ([0, 1, 3], [0, 2, 3], [1, 2, 3])
