"""Compiled EM runs against EM in NumPy."""

from dataclasses import replace

import numpy as np
import pytest

from coterie import GaussianMixture
from coterie.core.nested_arrays import select
from coterie.core.protocols import Chunk
from coterie.families.structures import STRUCTURES
from coterie.kernels import plain
from coterie.mixture import Prior
from coterie.mixture.gaussian_em import GaussianStats
from coterie.mixture.gaussian_trials import GaussianTrials

N, K = 90, 3


def rows(d, rng):
    means = rng.normal(scale=3.0, size=(K, d))
    return means[rng.integers(K, size=N)] + rng.normal(size=(N, d)) @ rng.normal(size=(d, d)) + 50.0


def trials_of(X, structure, w=None, known=None, **options):
    mixture = GaussianMixture(K, covariance_type=structure, **options)
    source, _, summary = mixture._open(X, w, first=True)
    model = replace(mixture._model(summary, source.dtype), sweeps=300)
    trials = GaussianTrials(model, Chunk(X, np.ones(N) if w is None else w, 0, known), np.random.default_rng(0))
    trials.em = replace(trials.em, sweeps=300)
    return trials


def naive(trials, resp, steps):
    """Parameters and objectives of EM by the NumPy kernels, for one run."""
    em, X, w, known = trials.em, trials.X, trials.w, trials.known
    c = em.reference()
    if known is not None:
        resp = np.where((known >= 0)[:, None], known[:, None] == np.arange(K), resp)
    sums = plain.weighted_sums(X, w[:, None] * resp, em.gaussians(c))
    c = em.m_step(c, GaussianStats(*sums, 0.0, 0.0))
    objectives = []
    for step in range(steps + 1):
        stats = GaussianStats(*plain.em(X, w, em.gaussians(c), em.e_step_kind, known))
        objectives.append(em.objective(c, stats))
        if step < steps:
            c = em.m_step(c, stats)
    return c, np.array(objectives)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"e_step": "hard"},
        {"prior": "default"},
        {"prior": Prior(concentration=2.0, shrinkage=3.0)},
        {"w": 1},
        {"known": 1},
    ],
    ids=["soft", "hard", "default prior", "prior", "weights", "known components"],
)
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_steps_are_those_of_numpy(structure, d, options):
    rng = np.random.default_rng(d)
    X, options = rows(d, rng), dict(options)
    if "w" in options:
        options["w"] = rng.integers(1, 4, size=N).astype(float)
    if "known" in options:
        options["known"] = np.where(rng.random(N) < 0.2, rng.integers(K, size=N), -1)
    trials = trials_of(X, structure, **options)
    resp = rng.dirichlet(np.ones(K), size=(2, N))
    runs, objective, gains, _ = trials.advance(trials.first(resp), 4)
    for run in range(2):
        expected, objectives = naive(trials, resp[run], 4)
        tolerance = 1e-8 if structure not in ("EVE", "VVE") else 2e-3  # their M-step has several optima
        size = np.abs(objectives).max() * tolerance
        np.testing.assert_allclose(objective[run], objectives[-1], atol=size)
        np.testing.assert_allclose(gains[:, run], -np.diff(objectives)[-2:], atol=size)
        if structure not in ("EVE", "VVE"):
            c = trials._components(select(runs, [run]))
            for name in ("weights", "means", "covariances", "factor", "log_det"):
                np.testing.assert_allclose(getattr(c, name)[0], getattr(expected, name), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_responsibilities_are_those_of_numpy(structure):
    rng = np.random.default_rng(0)
    X = rows(3, rng)
    for known in (None, np.where(rng.random(N) < 0.2, rng.integers(K, size=N), -1)):
        for e_step in ("soft", "hard"):
            trials = trials_of(X, structure, known=known, e_step=e_step)
            runs = trials.first(rng.dirichlet(np.ones(K), size=(2, N)))
            resp, bound = trials.responsibilities(runs)
            c = trials._components(runs)
            for run in range(2):
                gaussians = trials.em.gaussians(select(c, run))
                expected, _, terms = plain.gaussian.posterior(plain.log_joint(trials.X, gaussians), e_step, known)
                np.testing.assert_allclose(resp[run], expected, atol=1e-9)
                np.testing.assert_allclose(bound[run], terms, atol=1e-8)


def test_a_run_does_not_depend_on_the_others():
    rng = np.random.default_rng(0)
    trials = trials_of(rows(4, rng), "VVV")
    starts = trials.first(rng.dirichlet(np.ones(K), size=(5, N)))
    together = trials.advance(starts, 7)
    for run in range(5):
        alone = trials.advance(select(starts, [run]), 7)
        assert np.array_equal(alone[0].factor[0], together[0].factor[run])
        assert alone[1][0] == together[1][run]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_rows_without_variance_give_finite_runs(structure):
    X = np.c_[np.repeat([0.0, 1.0, 5.0], N // 3), np.zeros(N), np.arange(N) % 2]
    trials = trials_of(X, structure, reg_covar=0.0)
    resp = (np.repeat([0, 1, 2], N // 3)[:, None] == np.arange(K)).astype(float)
    runs, objective, *_ = trials.advance(trials.first(np.stack([resp, np.full((N, K), 1 / K)])), 5)
    assert np.isfinite(objective).all()
    assert all(np.isfinite(array).all() for array in runs)
