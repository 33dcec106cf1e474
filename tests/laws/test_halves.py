"""What must hold between the two halves of an iteration, for every model that can say what a half step costs."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import zoo
from coterie.core import loop
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.families import Gamma, StudentT, VonMisesFisher

chance = np.random.default_rng(7)
TAILS = np.concatenate([chance.standard_t(3, (300, 2)), chance.standard_t(3, (300, 2)) * 2 + 5])
WAITS = np.concatenate([chance.gamma(2.0, 1.0, (300, 2)), chance.gamma(9.0, 2.0, (300, 2))])
AXES = np.concatenate([chance.normal((4, 0, 0), 1, (300, 3)), chance.normal((0, 3, 0), 1, (300, 3))])
DIRECTIONS = AXES / np.linalg.norm(AXES, axis=1, keepdims=True)
MORE = [
    pytest.param(zoo.family_mixture(3, StudentT(), TAILS), TAILS, 200, id="student-t"),
    pytest.param(zoo.family_mixture(3, Gamma(), WAITS), WAITS, 200, id="gamma"),
    pytest.param(zoo.family_mixture(3, VonMisesFisher(), DIRECTIONS), DIRECTIONS, 200, id="von-mises-fisher"),
]
HALVED = [each for each in [*zoo.MODELS, *MORE] if hasattr(each.values[0], "halfway")]
SOFT = [
    each
    for each in HALVED
    if getattr(each.values[0], "e_step_kind", None) == "soft" and each.values[0].maximizes == "log-likelihood"
]
every = pytest.mark.parametrize("model, X, part_rows", HALVED)
weights = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])


def way(model, X, part_rows, weighted=False, max_iter=6):
    """What the loop reports of a fit, and the source."""
    w = np.random.default_rng(3).exponential(size=X.shape[0]) if weighted else None
    source, seen = MemorySource(X, w, chunk_rows=part_rows), []
    loop.fit(model, source, Serial(), rng=np.random.default_rng(1), max_iter=max_iter, callback=seen.append)
    return source, seen


def halfway(model, source, one, other):
    """The objective with the rows divided as at `one`, and the parameters of `other`."""
    order = {"order": model.order(one.stats.weight)} if hasattr(model, "order") and other is not one else {}
    stats = Serial().sum(partial(model.halfway, one.params, other.params, **order), source)
    return model.objective(other.params, stats)


def rounding(X, *values):
    return (1e-11 if X.dtype == np.float64 else 2e-6) * max(1.0, *map(abs, values))


@weights
@every
def test_no_half_step_makes_the_objective_worse(model, X, part_rows, weighted):
    source, seen = way(model, X, part_rows, weighted)
    assert len(seen) > 2
    for one, other in pairwise(seen):
        between = halfway(model, source, one, other)
        much = rounding(X, one.objective, between)
        assert one.objective + much >= between >= other.objective - much, other.iteration


@weights
@every
def test_before_the_update_the_objective_is_that_of_the_pass(model, X, part_rows, weighted):
    """Of mixtures: with the rows divided by the E-step, the bound touches what it bounds."""
    source, seen = way(model, X, part_rows, weighted, max_iter=2)
    for one in seen:
        assert halfway(model, source, one, one) == pytest.approx(one.objective, abs=rounding(X, one.objective))


@pytest.mark.parametrize("model, X, part_rows", SOFT)
def test_the_bound_is_below_the_log_likelihood_by_the_divergence(model, X, part_rows):
    """L(new) - J(q, new) is the divergence of q from the posterior at the new parameters, row by row."""
    source, seen = way(model, X, part_rows, max_iter=3)
    chunk = source.pick(slice(None))
    for one, other in pairwise(seen):
        q, p = (model.probabilities(each.params, chunk).astype(np.float64) for each in (one, other))
        apart = float((q * (np.log(np.where(q > 0, q, 1.0)) - np.log(np.maximum(p, 1e-300)))).sum())
        gap = halfway(model, source, one, other) - other.objective
        assert gap == pytest.approx(apart, abs=100 * rounding(X, one.objective), rel=1e-5)
