"""Mixtures that find how many components they have: a Dirichlet process of any family with a conjugate prior."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import machine
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stored import stored
from coterie.errors import InputError, ParameterError
from coterie.families import Family, Gaussian, Product
from coterie.families.linear import ExponentialFamily, Linear, ObservedStatistics
from coterie.families.normal_prior import Prior
from coterie.mixture.beliefs import Sticks
from coterie.mixture.em import Event
from coterie.mixture.family_em import MixtureEM, MixtureStats
from coterie.mixture.family_starts import Trials
from coterie.mixture.moves import Move, Search, State, chosen

SAMPLE = 20_000  # rows on which the number of components is sought
MANY = 300  # components that a climb starts from at most
STARTS, SHORT = 4, 5  # divisions among many components, and steps after which the best of them is taken
RESOLUTION = 0.0015  # of a column's variance: Gaussians finer than that are not looked for
FILL = 30  # Gaussians that would fill the space of the rows, each as wide as the prior takes one to be
SHRINKAGE = 0.001  # rows that the prior of a mean counts for


@stored("dirichlet_process.Parameters", weights="real K", counts="real K")
class Process(NamedTuple):
    """What is believed of the components, the largest first."""

    weights: np.ndarray  # (k,) mean weights
    counts: np.ndarray  # (k,) rows of each that the beliefs rest on
    parts: Any  # the family's statistics of these rows
    steps: int = 0
    events: tuple[Event, ...] = ()


@stored("dirichlet_process.Family", attributes="family has_missing")
class Believed:
    """A family whose components are known by the statistics that beliefs of them rest on.

    In place of log densities it has expected ones.
    """

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
        return self.family.draw(self.family.estimate(chosen(parts, [j])), 0, n, rng)

    def magnitude(self, parts: Any) -> float:
        return 0.0  # beliefs are never so thin

    def divergence(self, parts: Any) -> float:
        """KL of the beliefs of all components from the prior."""
        return _product(self.family.expected(parts), parts) - float(self.family.log_evidence(parts).sum())


@stored("dirichlet_process.Model", n_components="size<K>", family="<dirichlet_process.Family>")
@dataclass(frozen=True, kw_only=True)
class DirichletProcess(MixtureEM):
    r"""Maximises the evidence lower bound of a Dirichlet process mixture over q(z) q(v) prod_k q(theta_k) [1]_.

    .. math:: L = \sum_i w_i \log \sum_k \exp E_q[\log \pi_k p(x_i; \theta_k)]
              - \mathrm{KL}(q(v) \| p(v)) - \sum_k \mathrm{KL}(q(\theta_k) \| p(\theta_k))

    What is believed of a component is the prior and the statistics of its rows; so the E-step is that of EM with
    expected natural parameters, and the M-step only puts the larger components first.

    .. [1] D. M. Blei & M. I. Jordan (2006), Variational inference for Dirichlet process mixtures, Bayesian Analysis 1.
    """

    sticks: Sticks

    climbs = "lower bound of the log evidence"

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Process:
        """Beliefs as given, or those after rows that are divided as the parameters of a start divide them."""
        if isinstance(self.start, Process):
            return self.start
        plain = MixtureEM(self.n_components, self.family.family)
        guess = self.start(plain, source, engine, rng)
        stats, _ = engine.scan(partial(plain.e_step, guess), source, None)
        return self.m_step(guess, stats)

    def _offset(self, c: Any) -> np.ndarray:
        return self.sticks.expected_log(self.sticks.after(c.counts))

    def m_step(self, c: Any, stats: MixtureStats) -> Any:
        order = self.order(stats.weight)
        return self.believed(stats.weight[order], chosen(stats.family, order))._replace(steps=c.steps + 1)

    def order(self, weight: np.ndarray) -> np.ndarray:
        """Which component becomes the first, the second and so on of the next step."""
        return np.argsort(-weight, kind="stable")

    def believed(self, counts: np.ndarray, parts: Any) -> Process:
        return Process(self.sticks.mean(self.sticks.after(counts)), counts, parts)

    def repair(self, c: Any, stats: MixtureStats, source: Source, engine: Engine, memos: list[Any]) -> Any:
        """A component without rows is as it was believed to be before any: nothing to put right."""
        return c

    def log_prior(self, c: Any, stats: Any = None) -> float:
        """Minus the divergence of all beliefs from the prior: what the bound pays."""
        return -self.family.divergence(c.parts) - self.sticks.divergence(self.sticks.after(c.counts))


def search(
    family: Family, source: Source, rng: np.random.Generator, *, concentration: float = 1.0, tol: float = 1e-3
) -> tuple[DirichletProcess, tuple[Move, ...]]:
    """The model with as many components as were found, which starts where they were; and the moves that led there.

    Two climbs by splits and merges, one from a single component and one from more than twice as many as that
    finds; the higher bound wins. They see all rows, or a sample of 20,000. `family` has learned its columns.
    """
    family, sticks = with_conjugate_prior(family), Sticks(float(concentration))
    with machine.one_blas_thread:
        state, moves = _best_climb(Search(family, sticks, _sample(source, rng), tol), rng)
    model = DirichletProcess(len(state.counts), Believed(family), sticks=sticks, tol=tol)
    return replace(model, start=model.believed(state.counts, state.parts)), tuple(moves)


def _best_climb(search: Search, rng: np.random.Generator) -> tuple[State, list[Move]]:
    """From one component, then from ever more than twice as many as the best has, while that finds better."""
    best = search.climb(search.settled(search.whole()), rng)
    most = min(MANY, int((search.w > 0).sum()))
    while True:
        k = len(best[0].counts)
        found = search.climb(_many(search, min(2 * k + 4, most), rng), rng)
        better = found[0].bound > best[0].bound + search.enough
        best = found if better else best
        if not better or len(found[0].counts) <= k:
            break
    return search.without_empty(best[0]), best[1]


def _many(search: Search, k: int, rng: np.random.Generator) -> State:
    """Rows in up to k components about rows far apart: the best of some starts."""
    trials = Trials(MixtureEM(k, search.family), Chunk(search.X, search.w, 0), rng)
    states = [search.divided(trials.posteriors("k-means++", 1)[:, 0]) for _ in range(STARTS)]
    for _ in range(SHORT):
        states = [search.step(state) for state in states]
    return search.without_empty(search.settled(max(states, key=lambda state: state.bound)))


def _sample(source: Source, rng: np.random.Generator) -> Chunk:
    """Rows of weight above 0: all, if they are few."""
    n = source.shape[0]
    chunk = source.pick(slice(None) if n <= SAMPLE else np.sort(rng.choice(n, SAMPLE, replace=False)))
    if chunk.w is None:
        return chunk._replace(part=0)
    counting = np.flatnonzero(chunk.w)
    if len(counting) == 0:
        raise InputError(f"none of the {SAMPLE} rows drawn to start on has weight: drop rows of weight 0")
    return Chunk(chunk.X[counting], chunk.w[counting], 0)


def with_conjugate_prior(family: Any) -> Any:
    """The family with a prior that beliefs can be made of."""
    if isinstance(family, Product):
        found = copy(family)
        found._groups = [(with_conjugate_prior(part), columns) for part, columns in family.families]
        return found
    if not hasattr(family, "log_evidence"):
        raise ParameterError(
            f"n_components='auto' needs a family with a conjugate prior; {type(family).__name__} has none: "
            "give a number, chosen by bic"
        )
    if isinstance(family, Gaussian):
        return Blurred.of(family)
    found = family.with_prior("default") if family.prior is None else copy(family)
    if hasattr(found, "_large"):
        found._large = np.zeros_like(found._large)  # the evidence is made of sums, which are linear
    return found


@stored("dirichlet_process.Gaussian", attributes="structure reg_covar prior has_missing _origin _unit _rows")
class Blurred(Gaussian):
    """Gaussians of rows that are known up to a little noise: E[T(x + noise)] takes the place of T(x).

    Without it the evidence of many rows finds structure however fine, down to the rounding of the values.
    """

    @classmethod
    def of(cls, family: Gaussian) -> Blurred:
        if family.structure not in ("full", "VVV", "diag", "VVI"):
            raise ParameterError(
                f"n_components='auto' needs Gaussians of structure 'full' or 'diag'; got {family.structure!r}"
            )
        found = cls(family.structure, family.reg_covar, family.prior)
        vars(found).update({name: value for name, value in vars(family).items() if name.startswith("_")})
        found.has_missing = family.has_missing
        if family.prior is None:
            d = len(found._unit)
            scale = (d + 1) * FILL ** (-2 / d) * np.diag(found._unit**2)
            found.prior = Prior(shrinkage=SHRINKAGE, dof=d + 1, scale=scale)
        return found

    def prepare(self, params: Any) -> Linear:
        """Linear in the statistics, which have the noise in them."""
        return ExponentialFamily.prepare(self, params)

    def features(self, X: Any) -> Any:
        found = super().features(X)
        d = len(self._unit)
        i, j = np.triu_indices(d) if self.form == "full" else (np.arange(d), np.arange(d))
        noise = np.concatenate([np.zeros(d), np.where(i == j, max(RESOLUTION, self.reg_covar), 0.0)])
        if isinstance(found, ObservedStatistics):
            return found._replace(T=found.T + noise * self.per_statistic(found.observed))
        return found + noise


def _product(expected: Any, stats: Any) -> float:
    """The sum of T . eta - A over what statistics were taken of."""
    if isinstance(expected, Linear):
        constant = expected.constant.reshape(len(expected.constant), -1)
        weight = stats.weight if constant.shape[1] > 1 else stats.weight[:, :1]
        return float((expected.natural * stats.sum_t).sum() + (constant * weight).sum())
    return sum(_product(one, part) for one, part in zip(expected, stats.leaves(), strict=True))
