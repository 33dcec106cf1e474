"""The search of the relatives of K-means: a center is swapped for a row, and the model goes on from there."""

from __future__ import annotations

import numpy as np
import pytest

from coterie import FuzzyCMeans, KMedians, SphericalKMeans
from coterie.core.errors import ParameterError
from coterie.core.protocols import Chunk
from coterie.data.memory import MemorySource
from coterie.kmeans import swaps
from coterie.kmeans.fuzzy import Fuzzy
from coterie.kmeans.lloyd import Lloyd
from coterie.kmeans.median_models import Euclidean, Manhattan
from coterie.seeding import costs

rng = np.random.default_rng(0)
GRID = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0)), axis=-1).reshape(-1, 2) * 8 + 20
NINE = np.repeat(GRID, 10, axis=0) + rng.normal(size=(90, 2))
RELATIVES = [KMedians(9), KMedians(9, metric="l2"), SphericalKMeans(9), FuzzyCMeans(9)]
MODELS = [Lloyd(4), Manhattan(4), Euclidean(4), Fuzzy(4, 1.7)]


def cost(estimator):
    return estimator.objective_ if hasattr(estimator, "objective_") else estimator.inertia_


def quiet(progress):
    return False


@pytest.mark.parametrize("cost", [costs.SQUARES, costs.Manhattan(), costs.Shared(2.5)], ids=str)
def test_what_rows_cost_without_a_center_is_what_they_cost_at_the_others(cost):
    table = rng.exponential(size=(30, 4))
    for j, found in enumerate(swaps.left_out(cost, table)):
        wanted = np.full(30, np.inf)
        for other in np.delete(table, j, axis=1).T:
            wanted = cost.beside(wanted, other)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_swaps_are_in_the_order_of_what_they_cost_and_none_is_tried_twice():
    totals, owner = np.array([[5.0, 1.0, 2.0], [4.0, 9.0, 3.0]]), np.array([0, 1, 1])
    assert swaps.different(totals, owner, most=4.5) == [(0, 1), (1, 2), (1, 0)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_search_ends_no_worse_than_it_begins(model):
    for seed in range(2):
        search = swaps.Search(model, Chunk(NINE, None, 0), 1.0, np.random.default_rng(seed), 100, quiet)
        search._start(2)
        first = search.best
        again = swaps.Search(model, Chunk(NINE, None, 0), 1.0, np.random.default_rng(seed), 100, quiet)
        assert again.run(2, swaps.EFFORTS["auto"]).objective <= first.objective


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
    """Swaps between equal rows gain nothing, and must not be taken for ever."""
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


def test_a_start_that_is_given_is_not_searched_unless_asked_for():
    start = NINE[:9]
    plain = KMedians(9, init=start).fit(NINE)
    assert cost(plain) == cost(KMedians(9, init=start, search="none").fit(NINE))
    assert cost(KMedians(9, init=start, search="fast", random_state=0).fit(NINE)) < 0.9 * cost(plain)


def test_a_large_table_is_searched_by_a_sample_that_cannot_lose_a_small_cluster():
    large = np.concatenate([rng.normal(size=(20_000, 8)), rng.normal(size=(3, 8)) + 1e5])
    estimator = KMedians(2, random_state=0)
    assert len(large) > swaps.largest(swaps.EFFORTS["auto"], MemorySource(large), 2)
    assert np.bincount(estimator.fit(large).labels_).min() == 3


def test_a_callback_can_end_the_search():
    told = []

    def stop(progress):
        told.append(progress)
        return True

    found = KMedians(9, random_state=0, callback=stop).fit(NINE)
    assert len(told) == 1
    assert cost(found) == told[0].objective


def test_the_descent_is_told_from_the_seeds_where_the_search_finds_nothing_better():
    found = KMedians(2, random_state=0).fit(NINE)
    assert found.history_[0] > found.history_[-1] == found.objective_


def test_a_wrong_search_is_refused():
    with pytest.raises(ParameterError, match="search must be"):
        KMedians(2, search="global").fit(NINE)
