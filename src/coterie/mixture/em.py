"""EM of all mixtures: convergence, repair of components without rows, and results for each row."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.random_numbers import uniform
from coterie.core.rounding import rounding
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.core.ufuncs import entr
from coterie.errors import InputError
from coterie.kernels.plain.gaussian import posterior

EMPTY = 1e-8  # share of the mean component weight below which a component has no rows
FAR_ROW = (
    "X contains a row whose log density is out of the range of float64: it is more than 1e154 standard deviations from "
    "every component. Drop such rows, or clip their values"
)
ROUNDING = 1e-12  # rounding error of a log-likelihood per unit of weight, if its terms are large but their sum is not
MAX_RESEEDS = 2  # maximum number of times that a component is reseeded in one run
BLOCK = 1 << 18  # number of log densities that are computed together


@stored("mixture.Event")
class Event(NamedTuple):
    """A repair of a component during a fit."""

    iteration: int
    component: int
    what: str  # "floored": its covariance was singular; "reseeded": it had no rows


@dataclass(frozen=True)
class LeastLikelyRow(Stats):
    """The row with the lowest density."""

    log_density: float
    row: Any  # (1, d)

    def __add__(self, other: "LeastLikelyRow") -> "LeastLikelyRow":
        return self if self.log_density <= other.log_density else other


@dataclass(frozen=True)
class HalfwayStats(Stats):
    """The statistics of an objective between an M-step and the next E-step."""

    weight: Any  # (k,) of w r
    bound: Any  # J(q, parameters) with q of the last E-step and the parameters of the M-step


class EM:
    """Base class of mixture models: parameters have `weights` (k,) and `events`, statistics have `weight` and `bound`.

    A subclass defines the E-step, the M-step, `log_joint`, `rounding` and `_reseeded`.
    """

    n_components: int
    start: Any  # initial parameters, or a function of (model, source, engine, rng) that returns them
    e_step_kind: str
    tol: float
    is_extrapolated: bool  # compare the estimated remaining gain with the tolerance, not the last one

    maximizes = "log-likelihood"  # name of the quantity that is maximised

    @property
    def converges(self) -> bool:
        return self.e_step_kind != "stochastic"

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Any:
        initial = self.start(self, source, engine, rng) if callable(self.start) else self.start
        return initial._replace(steps=int(rng.integers(2**31)) if self.e_step_kind == "stochastic" else 0)

    def initial_memos(self, source: Any) -> None:
        return None

    def log_joint(self, c: Any, chunk: Chunk) -> np.ndarray:
        """log p(x, z) of each row and component (n, k)."""
        raise NotImplementedError

    def rounding(self, c: Any, stats: Any, objective: float) -> float:
        """Upper bound of the rounding error of the objective."""
        raise NotImplementedError

    def uniform_numbers(self, c: Any, chunk: Chunk) -> np.ndarray | None:
        """Random numbers (n,) of a stochastic E-step; None for the others."""
        return uniform(c.steps, chunk.first, chunk.X.shape[0]) if self.e_step_kind == "stochastic" else None

    def halfway(self, before: Any, after: Any, chunk: Chunk, order: Any = None) -> HalfwayStats:
        """J(q, after) with the responsibilities q of the E-step at `before`: the bound after the M-step.

        If the M-step sorts the components, `order` (k,) are their indices in `before`.
        """
        weight, bound = np.zeros(self.n_components), self._base(chunk)
        for X, w, known, u in blocks(chunk, max(256, BLOCK // self.n_components), self.uniform_numbers(before, chunk)):
            rows = Chunk(X, w, chunk.part, known)
            r, _, _ = posterior(self.log_joint(before, rows), self.e_step_kind, known, u)
            r = r if order is None else r[:, order]
            is_positive, w = r > 0, np.ones(len(r)) if w is None else w
            terms = np.where(is_positive, self.log_joint(after, rows), 0.0) - np.log(np.where(is_positive, r, 1.0))
            weight += w @ r
            bound += float(w @ (r * terms).sum(axis=1))
        return HalfwayStats(weight, bound)

    def _base(self, chunk: Chunk) -> float:
        """The sum over the rows of the part of log densities that `log_joint` leaves out."""
        return 0.0

    def has_converged(
        self,
        before: Any,
        after: Any,
        stats: Any,
        history: Sequence[float],
        stretch: float | None = None,
    ) -> bool:
        """Whether the last step gained less than the tolerance, or the remaining gain is, by Aitken's estimate."""
        if not self.converges or any(event.what == "reseeded" for event in after.events):
            return False
        gains = -np.diff(history[-5:])
        if gains[-1] <= self.rounding(after, stats, history[-1]) / 8:
            return True
        if not self.is_extrapolated and stretch is None:
            is_small = gains[-1] < self.tol * float(stats.weight.sum())
            # if components nearly coincide initially, the first gains are small and increase
            return bool(is_small and len(gains) > 1 and gains[-1] <= gains[-2])
        if len(gains) < 4:  # if components nearly coincide initially, the first gains are small
            return False
        threshold = self.tol / 200 * float(stats.weight.sum())
        if stretch is not None:  # every second step is an extrapolation, so the gains have no common rate
            plain = gains.reshape(2, 2).min(axis=1).max()
            return bool(max(10 * gains.max(), plain * stretch) < threshold)
        with np.errstate(over="ignore"):  # the gain after a reseeded component can follow a gain of 0
            rate = float((gains[1:] / np.maximum(gains[:-1], np.finfo(np.float64).tiny)).max())
        return bool(rate < 1 and gains[-1] * max(1.0, rate / (1 - rate)) < threshold)

    # components without rows

    def repair(self, c: Any, stats: Any, source: Source, engine: Engine, memos: list[Any]) -> Any:
        """Reseed each component without rows at the row with the lowest density."""
        k = self.n_components
        is_empty = (stats.weight < EMPTY * stats.weight.sum() / k) & (c.reseeds < MAX_RESEEDS)
        for j in np.flatnonzero(is_empty):
            row = engine.sum(partial(self._least_likely_row, c), source).row
            others = np.arange(k) != j
            weights = np.where(others, c.weights * (k - 1) / k / max(c.weights[others].sum(), EMPTY), 1 / k)
            reseeds, events = np.broadcast_to(c.reseeds, k) + ~others, (*c.events, Event(0, int(j), "reseeded"))
            c = self._reseeded(c, stats, int(j), row, weights)._replace(steps=c.steps, reseeds=reseeds, events=events)
        return c

    def _least_likely_row(self, c: Any, chunk: Chunk) -> LeastLikelyRow:
        density = self.log_densities(c, chunk)
        if chunk.w is not None:
            density = np.where(chunk.w > 0, density, np.inf)
        row = int(np.argmin(density))
        return LeastLikelyRow(float(density[row]), chunk.X[[row]])

    def _reseeded(self, c: Any, stats: Any, j: int, row: Any, weights: np.ndarray) -> Any:
        """The parameters with component `j` at `row` (1, d), and these weights."""
        raise NotImplementedError

    # results for each row

    def assign(self, c: Any, chunk: Chunk, memo: Any = None) -> np.ndarray:
        """The most probable component of each row; the first of those that are equal up to rounding."""
        size = self._size_of_terms(c, chunk.X.shape[1])
        return self._by_blocks(chunk, lambda part: _most_probable(self._checked_joint(c, part), size))

    def _size_of_terms(self, c: Any, columns: int) -> float:
        """Size of the terms of a log density that nearly cancel; rounding errors are proportional to it."""
        return float(columns)

    def log_densities(self, c: Any, chunk: Chunk) -> np.ndarray:
        return self._by_blocks(chunk, lambda part: posterior(self._checked_joint(c, part))[1])

    def probabilities(self, c: Any, chunk: Chunk) -> np.ndarray:
        return self._by_blocks(chunk, lambda part: posterior(self._checked_joint(c, part))[0])

    def uncertainty(self, c: Any, chunk: Chunk) -> np.ndarray:
        return self._by_blocks(chunk, lambda part: 1 - posterior(self._checked_joint(c, part))[0].max(axis=1))

    def entropy(self, c: Any, chunk: Chunk) -> np.ndarray:
        return self._by_blocks(chunk, lambda part: entr(posterior(self._checked_joint(c, part))[0]).sum(axis=1))

    def _checked_joint(self, c: Any, chunk: Chunk) -> np.ndarray:
        """`log_joint`; `InputError` if a row is so far from all components that its log densities overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            joint = self.log_joint(c, chunk)
            is_finite = np.isfinite(joint.sum())  # faster than maxima of rows
        if not (is_finite or np.isfinite(joint.max(axis=1)).all()):
            raise InputError(FAR_ROW)
        return joint

    def _by_blocks(self, chunk: Chunk, function: Callable[[Chunk], np.ndarray]) -> np.ndarray:
        """`function` of all rows, in blocks whose log densities fit into the cache; floats in the dtype of the rows."""
        n, rows = chunk.X.shape[0], max(256, kernels.values_at_once(chunk.X, BLOCK) // self.n_components)
        results = [function(chunk._replace(X=chunk.X[i : i + rows])) for i in range(0, max(n, 1), rows)]
        result = np.concatenate(results) if len(results) > 1 else results[0]
        if result.dtype.kind != "f":
            return result
        with np.errstate(over="ignore"):  # log densities below the range of float32 are minus infinity
            return result.astype(chunk.X.dtype, copy=False)


def _most_probable(joint: np.ndarray, size: float) -> np.ndarray:
    largest = np.take_along_axis(joint, joint.argmax(axis=1)[:, None], 1)  # faster than the maximum
    tolerance = rounding(joint.dtype) * (size + np.abs(largest))
    return (joint >= largest - tolerance).argmax(axis=1).astype(np.int32)


def blocks(chunk: Chunk, rows: int, u: np.ndarray | None) -> Iterator[list[Any]]:
    """Yield rows, weights, known components and uniform numbers `u` of blocks of at most `rows` rows."""
    if chunk.X.shape[0] <= rows:
        yield [chunk.X, chunk.w, chunk.y, u]
        return
    for start in range(0, chunk.X.shape[0], rows):
        block = slice(start, start + rows)
        yield [None if a is None else a[block] for a in (chunk.X, chunk.w, chunk.y, u)]
