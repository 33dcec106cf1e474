"""EM for mixtures of any family: responsibilities, then the estimate of each component by the family."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.arrays import column_sums, is_sparse
from coterie.core.nested_arrays import by_array
from coterie.core.protocols import Chunk
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.kernels.plain.gaussian import posterior
from coterie.mixture.em import EM, EMPTY, ROUNDING, Event, blocks

BLOCK = 1 << 16  # number of values in a block of rows and their log densities, which stay in the cache


@stored("mixture.Parameters", weights="real K")
class Mix(NamedTuple):
    """Parameters of a mixture."""

    weights: np.ndarray  # (k,)
    parts: Any  # parameters of all components, by the family
    steps: int = 0  # number of M-steps so far
    reseeds: np.ndarray | int = 0  # (k,) number of times that each component was reseeded
    events: tuple[Event, ...] = ()  # of the last step


@stored("statistics.Mixture")
@dataclass(frozen=True)
class MixtureStats(Stats):
    """Sums over the rows, weighted with the responsibilities r of the E-step."""

    weight: Any  # (k,) of w r
    family: Any  # statistics of the family
    log_likelihood: Any
    bound: Any  # J(q, parameters): equal to the log-likelihood after a soft E-step
    base: Any  # the part of both that does not depend on the parameters


@stored("mixture.Model", n_components="size<K>", family="family")
@dataclass(frozen=True)
class MixtureEM(EM):
    r"""Maximises :math:`\sum_i w_i \log \sum_k \pi_k p(x_i; \theta_k)` plus the log densities of the priors [1]_.

    The family defines p, its statistics and their estimates. Components are independent of each other.

    .. [1] Dempster, Laird & Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39.
    """

    n_components: int
    family: Any  # a Family, or another object with the same methods
    concentration: Any = 1.0  # of the Dirichlet prior of the weights: a number, or (k,)
    start: Any = None  # a Mix, or a function of (model, source, engine, rng) that returns one
    e_step_kind: str = "soft"
    tol: float = 1e-3
    is_extrapolated: bool = False

    @property
    def missing(self) -> bool:
        return self.family.has_missing

    def reference(self) -> Mix:
        """Equal components, as parameters before the first M-step."""
        return Mix(np.full(self.n_components, 1 / self.n_components), None)

    # E-step

    def e_step(self, c: Mix, chunk: Chunk, memo: float | None = None) -> tuple[MixtureStats, float]:
        """The memo is the part of the log-likelihood that does not depend on the parameters."""
        base = self._base(chunk) if memo is None else memo
        prepared, offset = self.family.prepare(c.parts), self._offset(c)
        posteriors = kernels.select("posteriors", chunk.X, self.n_components).posteriors
        total: Any = None
        for X, w, known, u in blocks(chunk, self._block_rows(chunk.X), self.uniform_numbers(c, chunk)):
            features = self.family.features(X)
            scores = self.family.scores(prepared, features)
            resp, likelihood, bound = posteriors(scores, offset, w, self.e_step_kind, known, u)
            sums = self.family.statistics(prepared, features, resp)
            stats = MixtureStats(column_sums(resp), sums, likelihood, bound, 0.0)
            total = stats.in_main_memory() if total is None else total + stats.in_main_memory()
        likelihood, bound = total.log_likelihood + base, total.bound + base
        return replace(total, log_likelihood=likelihood, bound=bound, base=base), base

    def stats_for(self, c: Mix, chunk: Chunk) -> MixtureStats:
        """Statistics with the responsibilities `chunk.y` (n, k)."""
        resp = chunk.y if chunk.w is None else chunk.w[:, None] * chunk.y
        prepared = None if c.parts is None else self.family.prepare(c.parts)
        sums = self.family.statistics(prepared, self.family.features(chunk.X), resp)
        return MixtureStats(resp.sum(axis=0), sums, 0.0, 0.0, 0.0).in_main_memory()

    def _base(self, chunk: Chunk) -> float:
        base = self.family.row_base(chunk.X)
        return float(base.sum() if chunk.w is None else chunk.w @ base)

    def _offset(self, c: Mix) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(c.weights)

    def _block_rows(self, X: Any) -> int:
        rows = max(256, kernels.values_at_once(X, BLOCK) // (X.shape[1] + 2 * self.n_components))
        # Blocks of sparse rows are not smaller than their statistics, which are dense.
        return max(rows, X.shape[1]) if is_sparse(X) else rows

    # M-step

    def m_step(self, c: Mix, stats: MixtureStats) -> Mix:
        parts = self.family.estimate(stats.family, c.parts)
        return c._replace(weights=self.share(stats.weight), parts=parts, steps=c.steps + 1, events=())

    def share(self, weight: np.ndarray) -> np.ndarray:
        """The MAP estimate of the mixing weights (..., k), from the weight of the rows of each component."""
        share = np.maximum(weight + (np.asarray(self.concentration) - 1.0), 0.0)
        return share / share.sum(axis=-1, keepdims=True)

    def _reseeded(self, c: Mix, stats: MixtureStats, j: int, row: Any, weights: np.ndarray) -> Mix:
        """Component `j` is the estimate for the row and an average row."""
        average = by_array(lambda x: x.sum(axis=0)[None], stats.family).scaled(1 / float(stats.weight.sum()))
        return c._replace(weights=weights, parts=_replaced(c.parts, j, self.around(row, average)))

    def around(self, X: Any, average: Any) -> Any:
        """Parameters of a component for each row of `X`, estimated from that row and an average row."""
        return self.family.estimate(stats_around(self.family, X, average))

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
        """E[log p(x, z)] at `c`; the statistics of the responsibilities were computed with `about`."""
        offset = np.where(stats.weight > 0, self._offset(c), 0.0)
        return float(stats.weight @ offset + self.family.expected_log_prob(c.parts, stats.family) + stats.base)

    def rounding(self, c: Mix, stats: MixtureStats, objective: float) -> float:
        total = float(stats.weight.sum())
        size = abs(objective) + abs(float(stats.base)) + total  # the objective may be close to 0
        size += float(stats.weight @ np.broadcast_to(self.family.magnitude(c.parts), stats.weight.shape))
        return 16 * float(np.finfo(np.float64).eps) * size + ROUNDING * total

    # statistics as a vector, for acceleration; they do not depend on the parameters

    def to_vector(self, c: Mix, stats: MixtureStats) -> np.ndarray:
        return np.concatenate([stats.weight, *map(np.ravel, leaf_arrays(stats.family))])

    def from_vector(self, c: Mix, vector: np.ndarray) -> MixtureStats | None:
        weight, template = vector[: self.n_components], self.family.blank(c.parts)
        if weight.min() <= EMPTY * weight.sum():
            return None
        ends = np.cumsum([len(weight), *(array.size for array in leaf_arrays(template))])
        values = iter(np.split(vector, ends)[1:])
        sums = by_array(lambda array: next(values).reshape(array.shape), template)
        return MixtureStats(weight, sums, np.nan, np.nan, np.nan) if self.family.possible(sums) else None

    def carry(self, before: Mix, after: Mix, stats: MixtureStats) -> MixtureStats:
        return stats

    # results for each row

    def log_joint(self, c: Mix, chunk: Chunk) -> np.ndarray:
        """log p(x, z) of each row and component (n, k), without the part that does not depend on the parameters."""
        return self.family.scores(self.family.prepare(c.parts), self.family.features(chunk.X)) + self._offset(c)

    def _size_of_terms(self, c: Mix, columns: int) -> float:
        return super()._size_of_terms(c, columns) + float(np.max(self.family.magnitude(c.parts)))

    def log_densities(self, c: Mix, chunk: Chunk) -> np.ndarray:
        def log_density(part: Chunk) -> np.ndarray:
            return posterior(self._checked_joint(c, part))[1] + self.family.row_base(part.X)

        return self._by_blocks(chunk, log_density)

    def draw(self, c: Mix, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Sample `counts` rows of each component, sorted by component."""
        return np.concatenate([self.family.draw(c.parts, j, int(n), rng) for j, n in enumerate(counts)])


def stats_around(family: Any, X: Any, average: Any) -> Any:
    """Statistics of a component for each row of `X`: the sum of that row and an average row."""
    n = X.shape[0]
    return family.statistics(None, family.features(X), np.eye(n)) + repeated(average, n)


def repeated(stats: Any, n: int) -> Any:
    """The statistics of one component, repeated for `n` components."""
    return by_array(lambda x: np.repeat(x, n, axis=0), stats)


def leaf_arrays(stats: Any) -> list[Any]:
    """The arrays of nested statistics."""
    return [array for x in stats.leaves() for array in (leaf_arrays(x) if isinstance(x, Stats) else [x])]


def _replaced(params: Any, j: int, component: Any) -> Any:
    """Parameters whose component `j` is replaced by the only component of `component`."""
    return by_array(lambda old, new: np.concatenate([old[:j], new, old[j + 1 :]]), params, component)
