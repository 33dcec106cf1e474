"""Search of K-medoids: replace some medoids at random, and continue with swaps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from coterie import KMedoids
from coterie.errors import ParameterError
from coterie.medoids import medoid_search
from coterie.medoids.distance_table import StoredDistances
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


def test_a_large_table_is_not_searched():
    assert medoid_search.effort_of("auto", (600, 600)) == (medoid_search.STARTS, medoid_search.JUMPS)
    assert medoid_search.effort_of("auto", (60, 60)).jumps == medoid_search.LONG_JUMPS
    assert medoid_search.effort_of("auto", (20_000, 20_000)) == medoid_search.NO_SEARCH
    assert medoid_search.effort_of("fast", (20_000, 20_000)).jumps == medoid_search.LONG_JUMPS


def test_a_wrong_search_is_rejected():
    with pytest.raises(ParameterError, match="search must be"):
        KMedoids(2, search="global").fit(ROWS)


def test_a_jump_selects_no_medoid_although_objects_are_far_from_themselves():
    table, medoids = StoredDistances(np.ones((4, 4)), np.arange(4)), np.array([0, 1, 2])
    for seed in range(10):
        new_medoids = medoid_search.random_jump(medoids, table, np.ones(4), np.random.default_rng(seed))
        assert sorted(new_medoids.tolist()) in ([0, 1, 3], [0, 2, 3], [1, 2, 3])
