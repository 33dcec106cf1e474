"""Search by swaps of centers for rows, for `KMedians`, `FuzzyCMeans` and `SphericalKMeans`."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import FuzzyCMeans, KMedians, SphericalKMeans
from coterie.base import in_memory
from coterie.core.loop import Progress
from coterie.core.protocols import Chunk
from coterie.data.memory import MemorySource
from coterie.errors import ParameterError
from coterie.kmeans import swap_search
from coterie.kmeans.fuzzy_c_means import Fuzzy
from coterie.kmeans.lloyd import Lloyd
from coterie.kmeans.median_models import Euclidean, Manhattan
from coterie.seeding import costs

pytestmark = pytest.mark.whole_search
rng = np.random.default_rng(0)
GRID = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0)), axis=-1).reshape(-1, 2) * 8 + 20
NINE = np.repeat(GRID, 10, axis=0) + rng.normal(size=(90, 2))
RELATIVES = [KMedians(9), KMedians(9, metric="l2"), SphericalKMeans(9), FuzzyCMeans(9)]
MODELS = [Lloyd(4), Manhattan(4), Euclidean(4), Fuzzy(4, m=1.7)]
NINE_CENTERS = [Lloyd(9), Manhattan(9), Euclidean(9), Fuzzy(9, m=1.7)]


def cost(estimator):
    return estimator.objective_ if hasattr(estimator, "objective_") else estimator.inertia_


def quiet(progress):
    return False


@pytest.mark.parametrize("cost", [costs.SQUARES, costs.Manhattan(), costs.Shared(2.5), costs.Shared(2.0)], ids=str)
def test_what_rows_cost_without_a_center_is_what_they_cost_at_the_others(cost):
    table = rng.exponential(size=(30, 4))
    for j, without in enumerate(swap_search.costs_without(cost, table)):
        expected = np.full(30, np.inf)
        for other in np.delete(table, j, axis=1).T:
            expected = cost.beside(expected, other)
        np.testing.assert_allclose(without, expected, rtol=1e-12)


def test_swaps_are_in_the_order_of_what_they_cost_and_none_is_tried_twice():
    totals, owner = np.array([[5.0, 1.0, 2.0], [4.0, 9.0, 3.0]]), np.array([0, 1, 1])
    assert swap_search.distinct_swaps(totals, owner, limit=4.5) == [(0, 1), (1, 2), (1, 0)]


def poor_start(model):
    """Two centers in the first cluster and none in the last one: no descent leaves that optimum, but a swap does."""
    start = GRID.copy()
    start[-1] = GRID[0] + [0.1, 0.1]
    search = swap_search.Search(model, Chunk(NINE, None, 0), 1.0, np.random.default_rng(0), 100, quiet)
    result = search._descend(model, start, quiet)
    search.best = swap_search.Solution(result.params, result.objective, start)
    return search, search._descend(model, GRID, quiet).objective


@pytest.mark.parametrize("model", NINE_CENTERS, ids=lambda model: type(model).__name__)
def test_swaps_lead_out_of_a_poor_optimum(model):
    search, least = poor_start(model)
    assert search.best.objective > 1.2 * least
    search._swap(1, swap_search.EFFORTS["auto"]._replace(jumps=0))
    assert search.best.objective <= 1.001 * least


def test_jumps_alone_lead_out_of_a_poor_optimum(monkeypatch):
    search, least = poor_start(Manhattan(9))
    monkeypatch.setattr(search, "_round", lambda solution: None)
    search._swap(1, swap_search.EFFORTS["auto"]._replace(jumps=40))
    assert search.best.objective <= 1.001 * least


def test_a_large_table_has_few_jumps(monkeypatch):
    search, _ = poor_start(Manhattan(9))
    jumps = []
    monkeypatch.setattr(search, "_round", lambda solution: None)
    monkeypatch.setattr(search, "_jump_from", lambda solution: jumps.append(solution) or solution)
    search._swap(1, swap_search.Effort(1 << 18, 1, 1, 100, 6, NINE.size * 9 * 3))
    assert len(jumps) == 4
    search._swap(1, swap_search.Effort(1 << 18, 1, 1, 100, 6, 1))
    assert len(jumps) == 5
    search._swap(1, swap_search.Effort(1 << 18, 1, 1, 100, 40, 1 << 30))
    assert len(jumps) == 5 + 9 + 3


def test_jumps_continue_while_they_find_something_better(monkeypatch):
    search, _ = poor_start(Manhattan(9))
    monkeypatch.setattr(search, "_round", lambda solution: None)
    gains = iter([0.9, 1.0, 1.0, 0.9, 1.0, 1.0, 1.0, 0.9])  # three jumps without a gain end the search before the last

    def jump_from(solution):
        return solution._replace(objective=next(gains) * solution.objective)

    monkeypatch.setattr(search, "_jump_from", jump_from)
    search._swap(1, swap_search.Effort(1 << 18, 1, 1, 100, 3, 1 << 30))
    assert list(gains) == [0.9]


def test_a_search_that_gains_again_and_again_ends_after_its_rounds(monkeypatch):
    search, _ = poor_start(Manhattan(9))
    monkeypatch.setattr(search, "_round", lambda solution: None)
    monkeypatch.setattr(search, "_jump_from", lambda solution: solution._replace(objective=0.9 * solution.objective))
    search._swap(1, swap_search.Effort(1 << 18, 1, 1, 20, 3, 1 << 30))
    assert search.steps == 20


@pytest.mark.parametrize("model", NINE_CENTERS, ids=lambda model: type(model).__name__)
def test_a_jump_that_leads_back_to_the_best_continues_with_swaps_that_were_not_tried(model, monkeypatch):
    search, _ = poor_start(model)
    best, improved = search.best, []
    monkeypatch.setattr(search, "_improve", lambda solution, *rest: improved.append(solution))
    for objective in (best.objective, (1 + 1e-8) * best.objective, 1.1 * best.objective):
        jump = swap_search.Solution(best.centers.copy(), objective, best.start)
        monkeypatch.setattr(search, "_jump_from", lambda solution, jump=jump: jump)
        search._swap(1, swap_search.EFFORTS["auto"]._replace(jumps=1))
    assert all(solution is best for solution in improved[:4])
    assert improved[5] is jump


def test_swaps_of_many_rows_are_compared_by_a_sample_of_them(monkeypatch):
    """Each solution has another sample, and the swapped rows are rows of the table."""
    monkeypatch.setattr(swap_search, "SWAP_ROWS", 30)
    monkeypatch.setattr(swap_search, "SWAP_SAMPLE", 3)
    search, least = poor_start(Manhattan(9))
    samples = [search._swap_rows().X for _ in range(2)]
    assert len(samples[0]) == 30
    assert not np.array_equal(*samples)
    jump = search._jump_from(search.best)
    assert jump.objective >= (1 - 1e-9) * least
    for centers in search.swaps(search.best):
        new = centers[(centers != search.best.centers).any(axis=1)]
        assert all((row == NINE).all(axis=1).any() for row in new)
    search._swap(1, swap_search.EFFORTS["auto"])
    assert search.best.objective <= 1.001 * least


def test_worse_solutions_are_never_taken(monkeypatch):
    search, _ = poor_start(Manhattan(9))
    best = search.best
    monkeypatch.setattr(search, "swaps", lambda solution: iter([best.centers, np.repeat(NINE[:1], 9, axis=0)]))
    monkeypatch.setattr(search, "max_iter", 1)
    assert search._round(best) is None
    worse = swap_search.Solution(best.centers, 2 * best.objective, best.centers)
    monkeypatch.setattr(search, "_round", lambda solution: worse)
    monkeypatch.setattr(search, "max_steps", 3)
    search._improve(worse, 1, 0)
    assert search.best is best


def test_callbacks_see_the_objective_of_all_rows():
    told = []
    search = swap_search.Search(Manhattan(9), Chunk(NINE, None, 0), 10.0, np.random.default_rng(0), 100, told.append)
    best = search.run(1, swap_search.EFFORTS["auto"])
    assert told[-1].objective == pytest.approx(10.0 * best.objective)
    assert {progress.run for progress in told} == {0, 1}


def neighborhood(cost, k=4, seed=0):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(25, 2)), rng.integers(0, 4, size=25).astype(float)
    return swap_search.Neighborhood(cost, Chunk(X, w, 0), rng.normal(size=(k, 2))), X, w


def brute_force(cost, X, w, centers):
    """Cost of all rows with these centers."""
    together = np.full(len(X), np.inf)
    for column in cost.table(X, centers).T:
        together = cost.beside(together, column)
    return float(w @ together)


@pytest.mark.parametrize("cost", [costs.SQUARES, costs.Manhattan(), costs.Euclidean(), costs.Shared(2.5)], ids=str)
def test_totals_are_the_weighted_costs_after_each_swap(cost):
    around, X, w = neighborhood(cost)
    totals = around._totals(around.without, cost.table(X, X[:3]))
    assert around.total == pytest.approx(brute_force(cost, X, w, around.centers))
    for j in range(4):
        for i in range(3):
            centers = around.centers.copy()
            centers[j] = X[i]
            assert totals[j, i] == pytest.approx(brute_force(cost, X, w, centers))


@pytest.mark.parametrize("cost", [costs.Manhattan(), costs.Shared(2.5)], ids=str)
def test_a_chain_goes_on_with_the_swap_that_is_cheapest_after_the_first(cost):
    for seed in range(5):
        around, X, w = neighborhood(cost, seed=seed)
        owner = around.at_centers.argmin(axis=1)
        chain = around._chain((1, 0), 2, cost.table(X, X), owner)
        assert chain[0] == (1, 0)
        costs_of_pairs = {}
        for j in (0, 2, 3):
            for i in range(1, len(X)):
                centers = around.centers.copy()
                centers[1], centers[j] = X[0], X[i]
                costs_of_pairs[j, i] = brute_force(cost, X, w, centers)
        assert costs_of_pairs[chain[1]] == pytest.approx(min(costs_of_pairs.values()))


def test_no_swap_is_proposed_twice_and_none_ends_at_a_row_without_weight():
    around, X, w = neighborhood(costs.Manhattan())
    owner, proposals, lengths = around.at_centers.argmin(axis=1), [], set()
    for seed in range(10):
        for removed, rows in around.chains(np.random.default_rng(seed)):
            numbers = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in rows]
            assert w[numbers].all()
            assert len(set(removed)) == len(set(numbers)) == len(rows)
            proposals.append(frozenset(zip(removed, owner[numbers].tolist(), strict=True)))
            lengths.add(len(rows))
    assert len(set(proposals)) == len(proposals)
    assert lengths == {1, 2, 3}


def test_jumps_remove_centers_that_are_missed_little():
    twins = np.concatenate([GRID, GRID[:1] + 0.01])
    around = swap_search.Neighborhood(costs.Manhattan(), Chunk(NINE, None, 0), twins)
    drawn = [around.removed(1, np.random.default_rng(seed))[0] for seed in range(200)]
    counts = np.bincount(drawn, minlength=10)
    assert min(counts[0], counts[9]) > 2 * counts[1:9].max()


def test_a_descent_is_given_up_once_it_cannot_catch_up():
    watch = swap_search.AbandonHopeless(10.0, patience=2.0)
    objectives = [100.0, 60.0, 40.0, 34.0]  # 40 - 2 * 20 <= 10, yet 34 - 2 * 6 > 10
    assert [watch(Progress("iteration", i, objective=value)) for i, value in enumerate(objectives)] == [
        False,
        False,
        False,
        True,
    ]
    patient = swap_search.AbandonHopeless(10.0, patience=2.0, after=3)
    assert not any(patient(Progress("iteration", i, objective=value)) for i, value in enumerate(objectives))


def test_a_row_of_weight_two_is_that_row_twice():
    w = np.random.default_rng(0).integers(1, 9, size=len(NINE))
    weighted = KMedians(6, random_state=0).fit(NINE, sample_weight=w)
    repeated = KMedians(6, random_state=0).fit(np.repeat(NINE, w, axis=0))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=5e-3)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_search_ends_no_worse_than_it_begins(model):
    for seed in range(2):
        search = swap_search.Search(model, Chunk(NINE, None, 0), 1.0, np.random.default_rng(seed), 100, quiet)
        search._start(2)
        first = search.best
        again = swap_search.Search(model, Chunk(NINE, None, 0), 1.0, np.random.default_rng(seed), 100, quiet)
        assert again.run(2, swap_search.EFFORTS["auto"]).objective <= first.objective


@pytest.mark.parametrize("estimator", RELATIVES, ids=str)
def test_the_default_is_as_good_as_the_best_of_many_starts(estimator):
    many = cost(estimator.set_params(search="none", n_init=25, random_state=1).fit(NINE))
    found = cost(estimator.set_params(search="auto", n_init="auto", random_state=0).fit(NINE))
    assert found <= 1.005 * many


@pytest.mark.parametrize("estimator", RELATIVES, ids=str)
def test_any_number_of_threads_gives_the_same_bits(estimator):
    fits = [estimator.set_params(random_state=3, n_jobs=n).fit(NINE).cluster_centers_.copy() for n in (1, 2)]
    np.testing.assert_array_equal(*fits)


@pytest.mark.parametrize("estimator", RELATIVES, ids=str)
@pytest.mark.parametrize("k", [1, 3, 4])
def test_a_search_ends_where_many_rows_are_equal(estimator, k):
    """Swaps between equal rows gain nothing, and must not be repeated forever."""
    corners = np.tile([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, 1.0]], (5, 1))
    w = np.arange(20) % 3 + 1.0
    found = estimator.set_params(n_clusters=k, search="fast", random_state=0).fit(corners, sample_weight=w)
    assert np.isfinite(cost(found))
    if k == 4:
        assert cost(found) < 1e-9


def test_rows_without_weight_are_not_searched():
    w = np.ones(len(NINE))
    w[:10] = 0
    far = np.where(w[:, None] > 0, NINE, 1e6)
    found = KMedians(8, random_state=0).fit(far, sample_weight=w)
    np.testing.assert_allclose(found.objective_, KMedians(8, random_state=0).fit(NINE[10:]).objective_, rtol=5e-3)


def test_the_rows_of_a_search_all_have_weight():
    w = np.arange(90) % 3
    for most in (90, 40):
        rows, is_sample = swap_search._rows(MemorySource(NINE, w.astype(float)), most, np.random.default_rng(0))
        assert is_sample == (most < 90)
        assert len(rows.X) == len(rows.w) <= most
        assert rows.w.all()


def test_the_start_of_a_large_table_is_the_cheaper_one_of_two():
    source, engine = in_memory(Chunk(NINE, None, 0))
    for centers, is_taken in ((GRID, True), (np.repeat(GRID[:1], 9, axis=0) + 1e3, False)):
        start = swap_search._better_start(Manhattan(9), source, engine, np.random.default_rng(0), centers)
        assert (start is centers) == is_taken


def test_fuzzy_centers_are_not_swapped_for_rows_themselves():
    """A row on a center has membership 1 in it, and would keep the center in place."""
    search, _ = poor_start(Fuzzy(9, m=1.7))
    centers = search._swapped(GRID.copy(), [2], NINE[[-1]])
    np.testing.assert_array_equal(np.delete(centers, 2, axis=0), np.delete(GRID, 2, axis=0))
    assert not (centers[2] == NINE).all(axis=1).any()


def test_initial_centers_are_not_searched_by_default():
    start = NINE[:9]
    plain = KMedians(9, init=start).fit(NINE)
    assert cost(plain) == cost(KMedians(9, init=start, search="none").fit(NINE))
    assert cost(KMedians(9, init=start, search="fast", random_state=0).fit(NINE)) < 0.9 * cost(plain)


def test_a_middle_sized_table_has_a_shorter_search(monkeypatch):
    monkeypatch.setattr(swap_search, "SAMPLE", 1)
    for values, n_init, kind in ((1, "auto", "auto"), (2, "auto", "short"), (3, "auto", "sample"), (2, 5, "none")):
        limits = {"auto": NINE.size * 9 if values == 1 else 1, "short": NINE.size * 9 if values == 2 else 1}
        efforts = {kind: swap_search.EFFORTS[kind]._replace(values=limit) for kind, limit in limits.items()}
        monkeypatch.setattr(swap_search, "EFFORTS", swap_search.EFFORTS | efforts)
        assert KMedians(9, n_init=n_init)._search_for(MemorySource(NINE)) == kind


def test_a_large_table_is_searched_by_a_sample_that_cannot_lose_a_small_cluster():
    large = np.concatenate([rng.normal(size=(20_000, 8)), rng.normal(size=(3, 8)) + 1e5])
    estimator = KMedians(2, random_state=0)
    assert len(large) > swap_search.max_rows(swap_search.EFFORTS["auto"], MemorySource(large), 2)
    assert np.bincount(estimator.fit(large).labels_).min() == 3


def test_a_callback_can_end_the_search():
    told = []

    def stop(progress):
        told.append(progress)
        return True

    found = KMedians(9, random_state=0, callback=stop).fit(NINE)
    assert len(told) == 1
    assert cost(found) == told[0].objective


def test_the_callback_sees_the_descent_from_the_seeds_if_the_search_finds_nothing_better():
    found = KMedians(2, random_state=0).fit(NINE)
    assert found.history_[0] > found.history_[-1] == found.objective_


def test_a_wrong_search_is_rejected():
    with pytest.raises(ParameterError, match="search must be"):
        KMedians(2, search="global").fit(NINE)
