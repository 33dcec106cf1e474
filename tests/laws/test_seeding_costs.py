"""Every model seeds by the cost that it minimises."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import zoo
from coterie import seeding
from coterie.core.stats import Stats
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial, Threads
from coterie.kmeans.fuzzy_c_means import Fuzzy
from coterie.seeding.costs import LARGEST_FUZZIFIER


def seeds_by_another_cost(model):
    """Soft DTW can be negative, and memberships of a very large m underflow: neither can be drawn by."""
    is_soft = getattr(model, "gamma", None) is not None
    return is_soft or (isinstance(model, Fuzzy) and model.m > LARGEST_FUZZIFIER)


MODELS = [each for each in zoo.MODELS if hasattr(each.values[0], "cost") and not seeds_by_another_cost(each.values[0])]


class Potential(Stats):
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Potential(self.value + other.value)


def of_spread(cost, unit, centers, chunk):
    """The potential after one center after the other was chosen, as k-means++ has it."""
    closest = np.full(chunk.X.shape[0], np.inf, chunk.X.dtype)
    for center in centers:
        total = cost.spread(chunk.X, chunk.w, unit, center[None].astype(chunk.X.dtype), closest)[0]
    return Potential(total)


def of_add(cost, unit, centers, chunk):
    """The potential after all centers were added at once, as k-means|| has it."""
    closest = np.full(chunk.X.shape[0], np.inf)
    cost.add(chunk.X, unit, centers.astype(chunk.X.dtype), closest)
    return Potential(closest.sum() if chunk.w is None else chunk.w @ closest)


@pytest.mark.parametrize("model, X, part_rows", MODELS)
def test_the_potential_of_seeds_is_the_objective_of_the_model(model, X, part_rows):
    """Up to one factor for all seeds: half of a square is a cosine distance."""
    w = np.random.default_rng(5).integers(0, 4, X.shape[0]).astype(np.float64)
    source, unit, rtol = MemorySource(X, w, chunk_rows=part_rows), 4.0, 1e-9 if X.dtype == np.float64 else 1e-4
    ratios = []
    for seed in range(3):
        centers = seeding.forgy(source, Serial(), np.random.default_rng(seed), model.n_clusters, unit, model.cost)
        stats, _ = Serial().scan(partial(model.e_step, centers), source, model.initial_memos(source))
        found = [Serial().sum(partial(of, model.cost, unit, centers), source).value for of in (of_spread, of_add)]
        np.testing.assert_allclose(found[0], found[1], rtol=rtol)
        ratios.append(found[0] * unit**model.cost.degree / model.objective(centers, stats))
    np.testing.assert_allclose(ratios, ratios[0], rtol=rtol)
    assert round(ratios[0], 3) in (1.0, 2.0)


@pytest.mark.parametrize("model, X, part_rows", MODELS)
def test_weight_two_is_the_row_twice_for_seeds(model, X, part_rows):
    twice = X[np.repeat(np.arange(X.shape[0]), 2)]
    points = model.cost.take(X, np.arange(3)).astype(X.dtype)
    one, two = (np.full(rows.shape[0], np.inf, X.dtype) for rows in (X, twice))
    heavy = model.cost.spread(X, np.full(X.shape[0], 2.0), 1.0, points, one)
    np.testing.assert_allclose(heavy, model.cost.spread(twice, None, 1.0, points, two), rtol=1e-5)


@pytest.mark.parametrize("method", ["k-means++", "k-means||", "farthest"])
@pytest.mark.parametrize("model, X, part_rows", [each for each in MODELS if "series" not in each.id])
def test_seeds_are_the_same_bits_on_any_number_of_threads(model, X, part_rows, method):
    source = MemorySource(X, None, chunk_rows=part_rows)
    seeds = [
        seeding.start(method, source, engine, np.random.default_rng(0), 3, 1.0, cost=model.cost)
        for engine in (Serial(), Threads(3))
    ]
    np.testing.assert_array_equal(*seeds)
    assert np.isfinite(seeds[0]).all()
    assert seeds[0].dtype == X.dtype
