"""What must hold for mixtures of every family beside what holds for every model."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from scipy import special

import zoo
from coterie.core import loop
from coterie.core.protocols import Chunk
from coterie.core.stats import Stats
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.mixture.family_em import leaf_arrays

SOFT = [p for p in zoo.FAMILIES if p.values[0].e_step_kind == "soft"]


def start(model, X):
    return model.init(MemorySource(X), Serial(), np.random.default_rng(1))


def some_weights(X):
    return np.random.default_rng(2).exponential(size=X.shape[0])


def two_steps(model, X, w=None):
    before = start(model, X)
    stats, _ = model.e_step(before, Chunk(X, w, 0))
    return before, model.m_step(before, stats), stats


def nearby(c, rng, size):
    """Parameters a little off: all numbers, each in its own proportion, probabilities scaled back to add up."""

    def moved(params):
        if isinstance(params, tuple):
            return type(params)(*map(moved, params)) if hasattr(params, "_fields") else tuple(map(moved, params))
        return params * np.exp(size * rng.normal(size=params.shape))

    weights = c.weights * np.exp(size * rng.normal(size=len(c.weights)))
    return c._replace(weights=weights / weights.sum(), parts=moved(c.parts))


@pytest.mark.parametrize("model, X, part_rows", SOFT)
def test_the_bound_right_after_an_e_step_is_the_log_likelihood(model, X, part_rows):
    w, c = some_weights(X), start(model, X)
    stats, _ = model.e_step(c, Chunk(X, w, 0))
    resp = model.probabilities(c, Chunk(X.astype(np.float64), w, 0))
    assert stats.bound == stats.log_likelihood
    entropy = w @ special.entr(resp).sum(axis=1)
    assert model.expected(c, c, stats) + entropy == pytest.approx(stats.log_likelihood, rel=1e-9)
    densities = model.log_densities(c, Chunk(X.astype(np.float64), w, 0))
    assert w @ densities == pytest.approx(stats.log_likelihood, rel=1e-9)


@pytest.mark.parametrize("model, X, part_rows", zoo.FAMILIES)
def test_no_parameters_nearby_explain_the_statistics_better_than_those_of_the_m_step(model, X, part_rows):
    before, after, stats = two_steps(model, X, some_weights(X))

    def value(c):
        return model.expected(c, before, stats) + model.log_prior(c, stats)

    rng, best = np.random.default_rng(3), value(after)
    assert best >= value(before)
    for size in (1e-4, 1e-2, 0.3):
        for _ in range(10):
            other = nearby(after, rng, size)
            other = other._replace(parts=feasible(model.family, other.parts, after.parts))
            assert value(other) <= best + 1e-12 * abs(best)


def feasible(family, parts, like):
    """Probabilities that add up to one, none below the floor, and no rates below theirs."""
    if family.name == "product":
        groups = zip(family.families, parts, like, strict=True)
        return tuple(feasible(each, some, same) for (each, _), some, same in groups)
    found = []
    for field, value in zip(parts._fields, parts, strict=True):
        value = np.maximum(value, 1e-10)
        if field == "probability" and hasattr(family, "_levels"):
            value = np.concatenate([p / p.sum(axis=1, keepdims=True) for p in family.split(value)], axis=1)
        elif field == "probability" and family.name == "multinomial":
            value = value / value.sum(axis=1, keepdims=True)
        elif field == "probability":
            value = np.minimum(value, 1 - 1e-10)
        found.append(value)
    return type(like)(*found)


@pytest.mark.parametrize("model, X, part_rows", zoo.FAMILIES)
def test_statistics_survive_the_way_to_a_vector_and_back(model, X, part_rows):
    before, _, stats = two_steps(model, X, some_weights(X))
    again = model.from_vector(before, model.to_vector(before, stats))
    np.testing.assert_array_equal(again.weight, stats.weight)
    for a, b in zip(leaf_arrays(again.family), leaf_arrays(stats.family), strict=True):
        np.testing.assert_array_equal(a, b)
    empty = model.to_vector(before, stats)
    empty[0] = 0.0
    assert model.from_vector(before, empty) is None


@pytest.mark.parametrize("model, X, part_rows", zoo.FAMILIES)
def test_accelerated_fits_never_go_up(model, X, part_rows):
    source, rng = MemorySource(X, chunk_rows=part_rows), np.random.default_rng(1)
    history = np.array(loop.fit(model, source, Serial(), rng=rng, max_iter=30, accelerate=True).history)
    assert np.all(np.diff(history) <= 1e-12 * np.abs(history[:-1]))


@pytest.mark.parametrize("model, X, part_rows", zoo.FAMILIES)
def test_what_no_parameter_changes_is_the_same_whether_remembered_or_not(model, X, part_rows):
    c = start(model, X)
    fresh, memo = model.e_step(c, Chunk(X, None, 0))
    again, _ = model.e_step(c, Chunk(X, None, 0), memo)
    for field in fields(fresh):
        a, b = getattr(fresh, field.name), getattr(again, field.name)
        for x, y in zip(*(leaf_arrays(v) if isinstance(v, Stats) else [v] for v in (a, b)), strict=True):
            np.testing.assert_array_equal(x, y)
