"""Mixtures of any family as EM: posterior probabilities, then the family's own estimate of each component."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.kernels.plain.gaussian import posterior
from coterie.mixture.em import DEAD, EM, RESEEDS, ROUNDING, Event, Worst, blocks
from coterie.seeding.plusplus import uniform

BLOCK = 1 << 16  # numbers of a block of rows and their densities, which stay in the cache


@stored("mixture.Parameters", weights="real K")
class Mix(NamedTuple):
    """The parameters of a mixture."""

    weights: np.ndarray  # (k,)
    parts: Any  # the family's parameters of all components
    steps: int = 0  # M-steps that led here
    reseeds: np.ndarray | int = 0  # (k,) times each component started anew
    events: tuple[Event, ...] = ()  # of the last step


@stored("statistics.Mixture")
@dataclass(frozen=True)
class MixtureStats(Stats):
    """Sums under the E-step's posterior r."""

    weight: Any  # (k,) of w r
    family: Any  # the family's own statistics
    log_likelihood: Any
    bound: Any  # J(q, parameters): the log-likelihood itself after a soft E-step
    base: Any  # what both have of densities that no parameter changes


@stored("mixture.Model", n_components="size<K>", family="family")
@dataclass(frozen=True)
class MixtureEM(EM):
    r"""Maximises :math:`\sum_i w_i \log \sum_k \pi_k p(x_i; \theta_k)` plus the log densities of the priors [1]_.

    The family says what p, its statistics and their estimates are; components know nothing of each other.

    .. [1] Dempster, Laird & Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39.
    """

    n_components: int
    family: Any  # a Family, or what a subclass uses in its place
    concentration: Any = 1.0  # of a Dirichlet density of the weights: a number, or (k,)
    start: Any = None  # a Mix, or a function of (model, source, engine, rng) that finds one
    e_step_kind: str = "soft"
    tol: float = 1e-3

    @property
    def missing(self) -> bool:
        return self.family.has_missing

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Mix:
        found = self.start if isinstance(self.start, Mix) else self.start(self, source, engine, rng)
        return found._replace(steps=int(rng.integers(2**31)) if self.e_step_kind == "stochastic" else 0)

    def nowhere(self) -> Mix:
        """What a first M-step starts from."""
        return Mix(np.full(self.n_components, 1 / self.n_components), None)

    # E-step

    def e_step(self, c: Mix, chunk: Chunk, memo: float | None = None) -> tuple[MixtureStats, float]:
        """What no parameter changes is taken once: it is all that a part remembers."""
        base = self._base(chunk) if memo is None else memo
        u = uniform(c.steps, chunk.part, chunk.X.shape[0]) if self.e_step_kind == "stochastic" else None
        prepared, offset = self.family.prepare(c.parts), self._offset(c)
        posteriors = kernels.select("posteriors", chunk.X.shape[0], self.n_components).posteriors
        total: Any = None
        for X, w, known, u_block in blocks(chunk, self._block_rows(chunk.X), u):
            features = self.family.features(X)
            scores = self.family.scores(prepared, features)
            resp, likelihood, bound = posteriors(scores, offset, w, self.e_step_kind, known, u_block)
            sums = self.family.statistics(prepared, features, resp)
            stats = MixtureStats(np.ones(len(resp)) @ resp, sums, likelihood, bound, 0.0)
            total = stats if total is None else total + stats
        likelihood, bound = total.log_likelihood + base, total.bound + base
        return replace(total, log_likelihood=likelihood, bound=bound, base=base), base

    def given(self, c: Mix, chunk: Chunk) -> MixtureStats:
        """Statistics under the posterior that `chunk.y` (n, k) is."""
        resp = chunk.y if chunk.w is None else chunk.w[:, None] * chunk.y
        prepared = None if c.parts is None else self.family.prepare(c.parts)
        sums = self.family.statistics(prepared, self.family.features(chunk.X), resp)
        return MixtureStats(resp.sum(axis=0), sums, 0.0, 0.0, 0.0)

    def _base(self, chunk: Chunk) -> float:
        base = self.family.row_base(chunk.X)
        return float(base.sum() if chunk.w is None else chunk.w @ base)

    def _offset(self, c: Mix) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(c.weights)

    def _block_rows(self, X: Any) -> int:
        rows = max(256, BLOCK // (X.shape[1] + 2 * self.n_components))
        if hasattr(X, "indptr"):
            rows = max(rows, X.shape[1])  # what rows have is then no less than the statistics of a block
        return rows

    # M-step

    def m_step(self, c: Mix, stats: MixtureStats) -> Mix:
        weights = self.share(stats.weight)
        return c._replace(
            weights=weights, parts=self.family.estimate(stats.family, c.parts), steps=c.steps + 1, events=()
        )

    def share(self, weight: np.ndarray) -> np.ndarray:
        """The most probable mixing weights (..., k) for components of that weight."""
        share = np.maximum(weight + (np.asarray(self.concentration) - 1.0), 0.0)
        return share / share.sum(axis=-1, keepdims=True)

    def repair(self, c: Mix, stats: MixtureStats, source: Source, engine: Engine, memos: list[Any]) -> Mix:
        """A component that lost all its rows starts anew at the row that the mixture explains worst."""
        k, rows = self.n_components, source.shape[0]
        dead = (stats.weight < DEAD * stats.weight.sum() / k) & (np.broadcast_to(c.reseeds, k) < RESEEDS)
        for j in np.flatnonzero(dead):
            worst = engine.sum(partial(self._worst, c), source)
            parts = self.around(worst.row, together(stats.family).scaled(1 / rows), float(stats.weight.sum()) / rows)
            c = self._reseeded(c, int(j), parts)
        return c

    def _worst(self, c: Mix, chunk: Chunk) -> Worst:
        density = self.log_densities(c, chunk)
        if chunk.w is not None:
            density = np.where(chunk.w > 0, density, np.inf)
        row = int(np.argmin(density))
        return Worst(float(density[row]), chunk.X[[row]])

    def _reseeded(self, c: Mix, j: int, one: Any) -> Mix:
        """Component `j` with the parameters `one`, and an average component's weight."""
        k = self.n_components
        others = np.arange(k) != j
        weights = np.where(others, c.weights * (k - 1) / k / max(c.weights[others].sum(), DEAD), 1 / k)
        parts = replaced(c.parts, j, one)
        reseeds = np.broadcast_to(c.reseeds, k) + ~others
        return Mix(weights, parts, c.steps, reseeds, (*c.events, Event(0, j, "reseeded")))

    def around(self, X: Any, average: Any, weight: float) -> Any:
        """Parameters of a component for each row of `X`, each made of that row and an average one, of this weight."""
        n = X.shape[0]
        own = self.family.statistics(None, self.family.features(X), weight * np.eye(n))
        return self.family.estimate(own + repeated(average, n))

    # objective

    def objective(self, c: Mix, stats: MixtureStats) -> float:
        return -float(stats.bound + self.log_prior(c, stats))

    def log_prior(self, c: Mix, stats: Any = None) -> float:
        density = self.family.log_prior(c.parts)
        concentration = np.asarray(self.concentration)
        if np.all(concentration == 1.0):
            return density
        return density + float(((concentration - 1.0) * np.log(np.maximum(c.weights, np.finfo(np.float64).tiny))).sum())

    def expected(self, c: Mix, about: Mix, stats: MixtureStats) -> float:
        """E[log p(x, z)] at `c` under the posterior whose statistics were taken with `about`."""
        offset = np.where(stats.weight > 0, self._offset(c), 0.0)
        return float(stats.weight @ offset + self.family.expected_log_prob(c.parts, stats.family) + stats.base)

    def rounding(self, c: Mix, stats: MixtureStats, objective: float) -> float:
        total = float(stats.weight.sum())
        size = abs(objective) + abs(float(stats.base)) + total  # a row's logarithm may be near 0
        size += float(stats.weight @ np.broadcast_to(self.family.magnitude(c.parts), stats.weight.shape))
        return 16 * float(np.finfo(np.float64).eps) * size + ROUNDING * total

    # statistics as a vector, for acceleration; they do not depend on the parameters

    def to_vector(self, c: Mix, stats: MixtureStats) -> np.ndarray:
        return np.concatenate([stats.weight, *(np.ravel(leaf) for leaf in flat(stats.family))])

    def from_vector(self, c: Mix, vector: np.ndarray) -> MixtureStats | None:
        weight, rest = vector[: self.n_components], vector[self.n_components :]
        if weight.min() <= DEAD * weight.sum():
            return None
        sums, _ = filled(self.family.blank(c.parts), rest)
        return MixtureStats(weight, sums, np.nan, np.nan, np.nan) if self.family.possible(sums) else None

    def carry(self, before: Mix, after: Mix, stats: MixtureStats) -> MixtureStats:
        return stats

    # answers, row by row

    def log_joint(self, c: Mix, chunk: Chunk) -> np.ndarray:
        """log p(x, z) of every row and component (n, k), less what no parameter changes."""
        return self.family.scores(self.family.prepare(c.parts), self.family.features(chunk.X)) + self._offset(c)

    def log_densities(self, c: Mix, chunk: Chunk) -> np.ndarray:
        def answer(part: Chunk) -> np.ndarray:
            return posterior(self.log_joint(c, part))[1] + self.family.row_base(part.X)

        return self._by_blocks(chunk, answer)

    def draw(self, c: Mix, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """So many rows of each component, one component after the other."""
        return np.concatenate([self.family.draw(c.parts, j, int(n), rng) for j, n in enumerate(counts)])

    def _by_blocks(self, chunk: Chunk, answer: Any) -> np.ndarray:
        found = super()._by_blocks(chunk, answer)
        return found.astype(chunk.X.dtype, copy=False) if found.dtype.kind == "f" else found


# arrays of components, however they are nested


def picked(params: Any, which: Any) -> Any:
    """The parameters of some components."""
    if isinstance(params, tuple):
        return _rebuilt(params, [picked(each, which) for each in params])
    return params[which]


def replaced(params: Any, j: int, one: Any) -> Any:
    """Parameters whose component `j` is the only one of `one`."""
    if isinstance(params, tuple):
        return _rebuilt(params, [replaced(each, j, new) for each, new in zip(params, one, strict=True)])
    params = params.copy()
    params[j] = one[0]
    return params


def _rebuilt(like: Any, values: list[Any]) -> Any:
    return type(like)(*values) if hasattr(like, "_fields") else tuple(values)


def flat(stats: Any) -> list[Any]:
    """The arrays that statistics are made of."""
    return [leaf for each in stats.leaves() for leaf in (flat(each) if isinstance(each, Stats) else [each])]


def filled(stats: Any, values: np.ndarray) -> tuple[Any, np.ndarray]:
    """Statistics like these with `values` in place of theirs, and the values left over."""
    found = []
    for leaf in stats.leaves():
        if isinstance(leaf, Stats):
            leaf, values = filled(leaf, values)
        else:
            leaf, values = values[: leaf.size].reshape(leaf.shape), values[leaf.size :]
        found.append(leaf)
    return type(stats)(*found), values


def together(stats: Any) -> Any:
    """Statistics of all components as those of one."""
    return type(stats)(*(together(x) if isinstance(x, Stats) else x.sum(axis=0)[None] for x in stats.leaves()))


def repeated(stats: Any, n: int) -> Any:
    """Statistics of one component as those of n alike."""
    return type(stats)(*(repeated(x, n) if isinstance(x, Stats) else np.repeat(x, n, axis=0) for x in stats.leaves()))
