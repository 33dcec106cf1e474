"""What must hold for every mixture beside what holds for every model."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy import special

import zoo
from coterie.core import loop
from coterie.core.protocols import Chunk
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.families import forms
from coterie.mixture.gaussian_em import GaussianEM

SOFT = [p for p in zoo.MIXTURES if p.values[0].e_step_kind == "soft"]
COMPLETE = [p for p in zoo.MIXTURES if not p.values[0].missing]
ONE_FOR_ALL_OR_EACH = ("VVV", "VVI", "VII", "EEE", "EEI", "EII")
OVERLAP = np.random.default_rng(5).normal(size=(900, 2)) + np.repeat([[0.0, 0.0], [1.6, 0.8], [0.5, 2.2]], 300, axis=0)
FREE = [p for p in zoo.MIXTURES if p.values[0].structure.name in ONE_FOR_ALL_OR_EACH]


def start(model, X):
    return model.init(MemorySource(X), Serial(), np.random.default_rng(1))


def two_steps(model, X, w=None):
    """Parameters before and after an M-step, and the statistics that it was made of."""
    before = start(model, X)
    stats, _ = model.e_step(before, Chunk(X, w, 0))
    return before, model.m_step(before, stats), stats


def elsewhere(model, c):
    """Other components of the same form: statistics about their means have no reason to vanish."""
    return c._replace(means=c.means + 0.3 * model.unit * np.random.default_rng(7).normal(size=c.means.shape))


def some_weights(X):
    return np.random.default_rng(2).exponential(size=X.shape[0])


def precision(X):
    return 1e-9 if X.dtype == np.float64 else 1e-4


def assert_close(a, b, rtol):
    for name in ("weight", "sum_dx", "sum_dxx"):
        x, y = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * np.abs(y).max(), err_msg=name)


# statistics, restated


@pytest.mark.parametrize("model, X, part_rows", zoo.MIXTURES)
def test_statistics_survive_the_way_to_a_vector_and_back(model, X, part_rows):
    before, _, stats = two_steps(model, X, some_weights(X))
    assert_close(model.from_vector(before, model.to_vector(before, stats)), stats, 1e-9)


@pytest.mark.parametrize("model, X, part_rows", zoo.MIXTURES)
def test_the_vector_of_statistics_does_not_depend_on_the_means_they_were_taken_about(model, X, part_rows):
    before, after, stats = two_steps(model, X, some_weights(X))
    after = elsewhere(model, after)
    carried = model.carry(before, after, stats)
    vector = model.to_vector(before, stats)
    np.testing.assert_allclose(model.to_vector(after, carried), vector, rtol=1e-9, atol=1e-9 * np.abs(vector).max())
    assert_close(model.from_vector(after, vector), carried, 1e-9)


@pytest.mark.parametrize("model, X, part_rows", zoo.MIXTURES)
def test_a_vector_that_no_rows_could_have_is_rejected(model, X, part_rows):
    before, _, stats = two_steps(model, X)
    k, d = before.means.shape
    empty, flat = np.repeat(model.to_vector(before, stats)[None], 2, axis=0)
    empty[0] = 0.0  # the weight of a component
    flat[k + k * d :] = 0.0  # all squares
    assert model.from_vector(before, empty) is None
    assert model.from_vector(before, flat) is None


@pytest.mark.parametrize("model, X, part_rows", COMPLETE)
def test_statistics_are_carried_as_if_taken_with_the_new_means(model, X, part_rows):
    w = some_weights(X)
    before, after, stats = two_steps(model, X, w)
    after = elsewhere(model, after)
    resp = model.probabilities(before, Chunk(X, w, 0))
    if model.e_step_kind == "hard":
        resp = (resp.argmax(axis=1)[:, None] == np.arange(model.n_components)).astype(float)
    carried = model.carry(before, after, stats)
    assert_close(carried, model.stats_for(after, Chunk(X, w, 0, resp)), precision(X))
    assert (carried.log_likelihood, carried.bound) == (stats.log_likelihood, stats.bound)


@pytest.mark.parametrize("model, X, part_rows", zoo.MIXTURES)
def test_about_the_means_of_the_m_step_the_sums_are_those_that_the_prior_asks_for(model, X, part_rows):
    before, after, stats = two_steps(model, X, some_weights(X))
    left = model.carry(before, after, stats).sum_dx
    pull = model.penalty.shrinkage * (after.means - model.penalty.mean)
    np.testing.assert_allclose(left, pull, atol=1e-9 * np.abs(stats.sum_dx).max())


# the lower bound J


def hidden_entropy(model, c, X):
    """The entropy of what is missing of each row, given its component (n, k)."""
    covariances = forms.dense(model.form, c.covariances, *c.means.shape)
    holes, which = np.unique(np.isnan(X), axis=0, return_inverse=True)
    entropy = np.zeros((len(holes), len(covariances)))
    for pattern, hidden in enumerate(holes):
        if hidden.any():
            within = np.linalg.inv(covariances)[:, hidden][:, :, hidden]  # its inverse is the conditional covariance
            entropy[pattern] = 0.5 * (hidden.sum() * np.log(2 * np.pi * np.e) - np.linalg.slogdet(within)[1])
    return entropy[which.ravel()]


@pytest.mark.parametrize("model, X, part_rows", SOFT)
def test_the_bound_right_after_an_e_step_is_the_log_likelihood(model, X, part_rows):
    w = some_weights(X)
    c = start(model, X)
    stats, _ = model.e_step(c, Chunk(X, w, 0))
    resp = model.probabilities(c, Chunk(X, w, 0)).astype(np.float64)
    entropy = special.entr(resp).sum(axis=1)
    if model.missing:
        entropy += (resp * hidden_entropy(model, c, X)).sum(axis=1)
    assert stats.bound == stats.log_likelihood
    assert model.expected(c, c, stats) + w @ entropy == pytest.approx(stats.log_likelihood, rel=precision(X))
    assert w @ model.log_densities(c, Chunk(X, w, 0)) == pytest.approx(stats.log_likelihood, rel=precision(X))


def test_the_bound_of_a_hard_e_step_is_that_of_the_components_chosen():
    model = zoo.mixture(3, "VVV", OVERLAP, e_step_kind="hard")
    c, chunk = start(model, OVERLAP), Chunk(OVERLAP, None, 0)
    stats, _ = model.e_step(c, chunk)
    assert stats.bound == pytest.approx(model.log_joint(c, chunk).max(axis=1).sum(), rel=1e-12)
    assert stats.bound == pytest.approx(model.expected(c, c, stats), rel=1e-9)
    assert stats.bound < stats.log_likelihood - 10


@pytest.mark.parametrize("model, X, part_rows", SOFT)
def test_a_step_raises_the_likelihood_at_least_as_much_as_the_bound(model, X, part_rows):
    before, after, stats = two_steps(model, X)
    then, _ = model.e_step(after, Chunk(X, None, 0))
    prior = model.log_prior(after, stats) - model.log_prior(before, stats)
    bound = model.expected(after, before, stats) - model.expected(before, before, stats) + prior
    likelihood = then.log_likelihood - stats.log_likelihood + prior
    rounding = precision(X) * abs(stats.log_likelihood)
    assert bound > 0
    assert likelihood >= bound - rounding


# the M-step


def nearby(model, c, rng):
    """Parameters a little off, of the same structure: one change for all covariances, or one each."""
    k, d = c.means.shape
    size = rng.choice([1e-4, 1e-2, 0.3])
    many = 1 if model.structure.name[0] == "E" else k
    weights = c.weights * np.exp(size * rng.normal(size=k))
    means = c.means + size * model.unit * rng.normal(size=(k, d))
    found = c.covariances
    if model.form == "spherical":
        found = found * np.exp(size * rng.normal(size=many))
    elif model.form == "diag":
        found = found * np.exp(size * rng.normal(size=(many, d)))
    else:
        turn = np.eye(d) + size * rng.normal(size=(d, d) if model.form == "tied" else (many, d, d)) / np.sqrt(d)
        found = turn @ found @ np.swapaxes(turn, -1, -2)
    part = rng.integers(4)  # all at once, or one alone
    return model.components(
        weights / weights.sum() if part in (0, 1) else c.weights,
        means if part in (0, 2) else c.means,
        found if part in (0, 3) else c.covariances,
    )


@pytest.mark.parametrize("model, X, part_rows", FREE)
def test_no_parameters_nearby_explain_the_statistics_better_than_those_of_the_m_step(model, X, part_rows):
    before, after, stats = two_steps(model, X, some_weights(X))

    def value(c):
        return model.expected(c, before, stats) + model.log_prior(c, stats)

    rng, best = np.random.default_rng(3), value(after)
    others = [value(nearby(model, after, rng)) for _ in range(60)]
    assert best > value(before)
    assert max(others) <= best + 1e-12 * abs(best)
    assert min(others) < best - 1e-3  # the changes are not too small to be seen


@pytest.mark.parametrize("part", ["weights", "means", "covariances"])
@pytest.mark.parametrize("structure", ["VVV", "EEE", "VVI", "VII"])
def test_what_is_fixed_stays_and_the_rest_is_the_best_beside_it(structure, part):
    model = zoo.mixture(3, structure, zoo.SMALL, fixed=frozenset([part]))
    before, after, stats = two_steps(model, zoo.SMALL)
    np.testing.assert_array_equal(getattr(after, part), getattr(before, part))
    held = {part: getattr(after, part)}

    def value(c):
        return model.expected(c, before, stats) + model.log_prior(c, stats)

    rng, best = np.random.default_rng(4), value(after)
    others = [value(model.with_parts(nearby(model, after, rng), held)) for _ in range(60)]
    assert best > value(before)
    assert max(others) <= best + 1e-12 * abs(best)


# acceleration

GAPPY = np.where(np.random.default_rng(6).random(OVERLAP.shape) < 0.1, np.nan, OVERLAP)
GAPPY = GAPPY[~np.isnan(GAPPY).all(axis=1)]
SLOW = [
    *(pytest.param(name, OVERLAP, {}, id=name) for name in ("EII", "VII", "EEI", "VVI", "EEE", "VEV", "EVE", "VVV")),
    pytest.param("EEE", GAPPY, {"missing": True}, id="missing"),
    pytest.param("VVV", OVERLAP, {"prior": zoo.PRIOR}, id="prior"),
]


def descend(model, X, accelerate):
    model = replace(model, tol=1e-7, is_extrapolated=True)
    rng = np.random.default_rng(1)
    return loop.fit(model, MemorySource(X), Serial(), rng=rng, max_iter=20_000, accelerate=accelerate)


@pytest.mark.parametrize("structure, X, options", SLOW)
def test_acceleration_never_raises_the_objective_and_ends_where_plain_steps_end_but_sooner(structure, X, options):
    model = zoo.mixture(3, structure, X, "kmeans", **options)
    plain, fast = descend(model, X, False), descend(model, X, True)
    assert plain.converged
    assert fast.converged
    assert fast.history[0] == plain.history[0]
    assert fast.objective == pytest.approx(plain.objective, abs=1e-4)
    assert fast.passes < plain.passes / 2
    history = np.array(fast.history)
    assert len(history) > 5
    assert np.all(np.diff(history) <= 1e-12 * np.abs(history[:-1]))


@pytest.mark.parametrize("model, X, part_rows", zoo.MIXTURES)
def test_accelerated_fits_of_every_mixture_never_go_up(model, X, part_rows):
    source, rng = MemorySource(X, chunk_rows=part_rows), np.random.default_rng(1)
    history = np.array(loop.fit(model, source, Serial(), rng=rng, max_iter=30, accelerate=True).history)
    rounding = 1e-12 if X.dtype == np.float64 else 1e-6
    assert np.all(np.diff(history) <= rounding * np.abs(history[:-1]))


class Misled(GaussianEM):
    """What is extrapolated makes no sense: components get the weights and sums of others."""

    def from_vector(self, c, vector):
        found = super().from_vector(c, vector)
        return None if found is None else replace(found, weight=found.weight[::-1], sum_dx=-found.sum_dx)


def test_a_step_ahead_that_leads_astray_is_not_taken():
    """Whatever is extrapolated, the loop goes on from the plain step where that is better."""
    model = zoo.mixture(3, "EEI", OVERLAP, "kmeans")
    misled = Misled(**{field.name: getattr(model, field.name) for field in fields(model)})
    plain, found = descend(model, OVERLAP, False), descend(misled, OVERLAP, True)
    assert np.all(np.diff(found.history) <= 1e-12 * np.abs(found.history[:-1]))
    assert found.objective == pytest.approx(plain.objective, abs=1e-3)
    assert found.passes > len(found.history)  # some steps were tried in vain
