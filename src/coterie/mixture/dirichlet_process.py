"""Dirichlet process mixtures of any family with a conjugate prior, and the search for the number of components."""

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import machine
from coterie.core.nested_arrays import select
from coterie.core.protocols import Chunk, Conjugate, Engine, Source
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families import Family, Gaussian, Product
from coterie.families.exponential_family import ExponentialFamily, Linear, ObservedStatistics
from coterie.families.normal_prior import Prior
from coterie.mixture.em import Event
from coterie.mixture.family_em import MixtureEM, MixtureStats
from coterie.mixture.family_trials import FamilyTrials
from coterie.mixture.split_merge_search import Move, SplitMergeSearch, State
from coterie.mixture.starts import sample_rows
from coterie.mixture.variational import StickBreaking

SAMPLE_ROWS = 20_000  # maximum number of rows on which the number of components is chosen
MAX_COMPONENTS = 300  # maximum number of components that an ascent starts from
N_STARTS, SHORT_STEPS = 4, 5  # initial partitions into many components, and steps after which the best is chosen
RESOLUTION = 0.0015  # variance of the noise of each value, as a share of the variance of its column
FILL = 30  # number of Gaussians of the size that the prior expects which fill the space of the rows
SHRINKAGE = 0.001  # number of rows that the prior of a mean is worth


@stored("dirichlet_process.Parameters", weights="real K", counts="real K")
class ProcessPosterior(NamedTuple):
    """Posterior of the components, the largest first."""

    weights: np.ndarray  # (k,) mean weights
    counts: np.ndarray  # (k,) expected number of rows
    parts: Any  # statistics of these rows, by the family
    steps: int = 0
    events: tuple[Event, ...] = ()


@stored("dirichlet_process.Family", attributes="family has_missing")
class PosteriorFamily:
    """A family whose parameters are statistics of rows, which define the posterior; log densities are expectations."""

    def __init__(self, family: Any):
        self.family, self.has_missing = family, family.has_missing

    def prepare(self, parts: Any) -> Any:
        return self.family.expected(parts)

    def features(self, X: Any) -> Any:
        return self.family.features(X)

    def scores(self, prepared: Any, features: Any) -> np.ndarray:
        return self.family.scores(prepared, features)

    def row_base(self, X: Any) -> np.ndarray:
        return self.family.row_base(X)

    def statistics(self, prepared: Any, features: Any, resp: np.ndarray) -> Any:
        return self.family.statistics(None, features, resp)

    def draw(self, parts: Any, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.family.draw(self.family.estimate(select(parts, [j])), 0, n, rng)

    def magnitude(self, parts: Any) -> float:
        return 0.0  # posteriors are never that narrow

    def divergence(self, parts: Any) -> float:
        """KL divergence of the posteriors of all components from the prior."""
        return _product(self.family.expected(parts), parts) - float(self.family.log_evidence(parts).sum())


@stored("dirichlet_process.Model", n_components="size<K>", family="<dirichlet_process.Family>")
@dataclass(frozen=True, kw_only=True)
class DirichletProcess(MixtureEM):
    r"""Maximises the evidence lower bound of a Dirichlet process mixture over q(z) q(v) prod_k q(theta_k) [1]_.

    .. math:: L = \sum_i w_i \log \sum_k \exp E_q[\log \pi_k p(x_i; \theta_k)]
              - \mathrm{KL}(q(v) \| p(v)) - \sum_k \mathrm{KL}(q(\theta_k) \| p(\theta_k))

    The posterior of a component follows from the prior and the statistics of its rows. So the E-step is that of EM with
    expected natural parameters, and the M-step only sorts the components, the largest first.

    .. [1] D. M. Blei & M. I. Jordan (2006), Variational inference for Dirichlet process mixtures, Bayesian Analysis 1.
    """

    sticks: StickBreaking

    maximizes = "evidence lower bound"

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Any:
        """The initial posterior, or that of an M-step with the responsibilities of an initial mixture."""
        if isinstance(self.start, ProcessPosterior):
            return self.start
        em = MixtureEM(self.n_components, self.family.family)
        initial = self.start(em, source, engine, rng)
        stats, _ = engine.scan(partial(em.e_step, initial), source, None)
        return self.m_step(initial, stats)

    def _offset(self, c: Any) -> np.ndarray:
        return self.sticks.expected_log(self.sticks.posterior(c.counts))

    def m_step(self, c: Any, stats: MixtureStats) -> Any:
        order = self.order(stats.weight)
        return self.posterior(stats.weight[order], select(stats.family, order))._replace(steps=c.steps + 1)

    def order(self, weight: np.ndarray) -> np.ndarray:
        """Indices that sort the components by weight, the largest first."""
        return np.argsort(-weight, kind="stable")

    def posterior(self, counts: np.ndarray, parts: Any) -> ProcessPosterior:
        return ProcessPosterior(self.sticks.mean(self.sticks.posterior(counts)), counts, parts)

    def repair(self, c: Any, stats: MixtureStats, source: Source, engine: Engine, memos: list[Any]) -> Any:
        """No repair: the posterior of a component without rows is the prior."""
        return c

    def log_prior(self, c: Any, stats: Any = None) -> float:
        """Minus the KL divergence of the posterior from the prior, the penalty of the lower bound."""
        return -self.family.divergence(c.parts) - self.sticks.divergence(self.sticks.posterior(c.counts))


def search(
    family: Family, source: Source, rng: np.random.Generator, *, concentration: float = 1.0, tol: float = 1e-3
) -> tuple[DirichletProcess, tuple[Move, ...]]:
    """Choose the number of components; return the model with its initial posterior, and the moves of the search.

    The first ascent by splits and merges starts from one component, further ones from more than twice as many as the
    best result has. The highest lower bound is kept. The search uses all rows, or a random sample of 20,000. `family`
    has learned its columns.
    """
    family, sticks = with_conjugate_prior(family), StickBreaking(float(concentration))
    with machine.one_blas_thread:
        state, moves = _best_ascent(SplitMergeSearch(family, sticks, sample_rows(source, SAMPLE_ROWS, rng), tol), rng)
    model = DirichletProcess(len(state.counts), PosteriorFamily(family), sticks=sticks, tol=tol)
    return replace(model, start=model.posterior(state.counts, state.parts)), tuple(moves)


def _best_ascent(search: SplitMergeSearch, rng: np.random.Generator) -> tuple[State, list[Move]]:
    """Ascend from one component, then repeatedly from more than twice as many as the best, while that is better."""
    best = search.ascend(search.converged(search.state(np.ones((search.X.shape[0], 1)))), rng)
    max_components = min(MAX_COMPONENTS, int((search.w > 0).sum()))
    while True:
        k = len(best[0].counts)
        result = search.ascend(_many_components(search, min(2 * k + 4, max_components), rng), rng)
        is_better = result[0].bound > best[0].bound + search.threshold
        best = result if is_better else best
        if not is_better or len(result[0].counts) <= k:
            break
    return search.without_empty(best[0]), best[1]


def _many_components(search: SplitMergeSearch, k: int, rng: np.random.Generator) -> State:
    """Up to k components, from the best of several k-means++ starts."""
    trials = FamilyTrials(MixtureEM(k, search.family), Chunk(search.X, search.w, 0), rng)
    states = [search.state(trials.starts("k-means++", 1)[0]) for _ in range(N_STARTS)]
    for _ in range(SHORT_STEPS):
        states = [search.step(state) for state in states]
    return search.without_empty(search.converged(max(states, key=lambda state: state.bound)))


def with_conjugate_prior(family: Any) -> Any:
    """The family with its conjugate prior."""
    if isinstance(family, Product):
        return family.with_families(lambda part, _: with_conjugate_prior(part))
    if not isinstance(family, Conjugate):
        raise ParameterError(
            f"n_components='auto' needs a family with a conjugate prior; {type(family).__name__} has none: "
            "set n_components to a whole number, for example the one with the lowest bic"
        )
    if isinstance(family, Gaussian):
        return NoisyGaussian.of(family)
    with_prior = family.with_prior("default") if family.prior is None else copy(family)
    if hasattr(with_prior, "_large"):  # the evidence is a function of sums, so large counts have no special treatment
        with_prior._large = np.zeros_like(with_prior._large)
    return with_prior


@stored("dirichlet_process.Gaussian", attributes="structure reg_covar prior has_missing _origin _unit _rows")
class NoisyGaussian(Gaussian):
    """Gaussians of rows with a little noise: the statistics are E[T(x + noise)] instead of T(x).

    Without noise, the evidence of many rows supports components of any size, down to the rounding of the values.
    """

    @classmethod
    def of(cls, family: Gaussian) -> "NoisyGaussian":
        if family.structure not in ("full", "VVV", "diag", "VVI"):
            raise ParameterError(
                f"n_components='auto' needs Gaussians of structure 'full' or 'diag'; got {family.structure!r}"
            )
        noisy = cls(family.structure, family.reg_covar, family.prior)
        noisy.__dict__.update({name: value for name, value in vars(family).items() if name.startswith("_")})
        noisy.has_missing = family.has_missing
        if family.prior is None:
            d = len(noisy._unit)
            scale = (d + 1) * FILL ** (-2 / d) * np.diag(noisy._unit**2)
            noisy.prior = Prior(shrinkage=SHRINKAGE, dof=d + 1, scale=scale)
        return noisy

    def prepare(self, params: Any) -> Linear:
        """Log densities that are linear in the statistics, which include the noise."""
        return ExponentialFamily.prepare(self, params)

    def features(self, X: Any) -> Any:
        features = super().features(X)
        d = len(self._unit)
        i, j = np.triu_indices(d) if self.form == "full" else (np.arange(d), np.arange(d))
        noise = np.concatenate([np.zeros(d), np.where(i == j, max(RESOLUTION, self.reg_covar), 0.0)])
        if isinstance(features, ObservedStatistics):
            return features._replace(T=features.T + noise * self.per_statistic(features.observed))
        return features + noise


def _product(expected: Any, stats: Any) -> float:
    """The sum of T . eta - A over all components, from their statistics."""
    if isinstance(expected, Linear):
        constant = expected.constant.reshape(len(expected.constant), -1)
        weight = stats.weight if constant.shape[1] > 1 else stats.weight[:, :1]
        return float((expected.natural * stats.sum_t).sum() + (constant * weight).sum())
    return sum(_product(one, part) for one, part in zip(expected, stats.leaves(), strict=True))
