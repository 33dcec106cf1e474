"""K-means as EM: assign each row to its nearest center, then compute the means."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie import kernels, seeding
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.seeding.costs import SQUARES, Cost

NO_BOUNDS = np.zeros(0, np.float32)
BOUNDS_FROM = 512  # clusters x columns; below, computing all distances is as fast as maintaining the bounds


@stored("statistics.KMeans", weight="real K", sum_dx="real K D", cost="real K")
@dataclass(frozen=True)
class KMeansStats(Stats):
    """Sums relative to the current centers: the numbers stay small for data far from the origin."""

    weight: Any  # (k,)
    sum_dx: Any  # (k, d) of w (x - c)
    cost: Any  # (k,) of w |x - c|^2
    moved: Any  # rows that changed cluster


class Bounds(NamedTuple):
    """State of one part of the data between two passes. Without it a pass takes longer; the result is the same."""

    centers: np.ndarray | None  # (k, d) of the last pass; None before the first
    labels: np.ndarray  # (n,)
    lower: np.ndarray  # (n,) lower bound of the distances to all other centers; (0,) without bounds


@dataclass(frozen=True)
class Costliest(Stats):
    """The rows with the largest cost, without duplicates."""

    cost: Any  # (m,) descending
    rows: Any  # (m, d)

    def __add__(self, other: Costliest) -> Costliest:
        count = max(len(self.cost), len(other.cost))
        cost, rows = np.concatenate([self.cost, other.cost]), np.concatenate([self.rows, other.rows])
        return costliest(cost, rows, count)


@dataclass(frozen=True)
class Lloyd:
    r"""Minimises :math:`\sum_i w_i \min_k \|x_i - c_k\|^2` [1]_.

    A pass stores the labels. With `bounds` it also stores a lower bound of the distance to every other center [2]_. If
    the bound proves the label, no other distance is computed. Both variants give identical results.

    .. [1] Lloyd (1982), Least squares quantization in PCM, IEEE Trans. Inf. Theory 28.
    .. [2] Hamerly (2010), Making k-means even faster, SDM.
    """

    n_clusters: int
    start: Any = "k-means++"  # name of an initialisation method, or the initial centers
    unit: float = 1.0  # power of two near the scale of the data
    tol: float = 0.0  # converged if the squared movement of all centers is at most this
    bounds: bool = True
    frozen: Any = None  # (f, d) the first centers, which do not move
    n_total: int = 0  # rows of the whole table if these are a part of it: compiled kernels pay off for a large table

    converges = True

    @property
    def cost(self) -> Cost:
        """Cost of a row at a set of centers, for seeding."""
        return SQUARES

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        if self.frozen is None:
            return seeding.start(self.start, source, engine, rng, self.n_clusters, self.unit, cost=self.cost)
        frozen = self.frozen.astype(source.dtype)
        free = self.n_clusters - len(frozen)
        others = seeding.start(self.start, source, engine, rng, free, self.unit, frozen, self.cost)
        return np.concatenate([frozen, others])

    def initial_memos(self, source: Source) -> list[Bounds | None]:
        labels = source.allocate(-1, np.int32)
        uses_bounds = self._uses_bounds(source.shape[1])
        lower: list[Any] = source.allocate(0, np.float32) if uses_bounds else [NO_BOUNDS] * len(labels)
        return [
            None if part_labels is None else Bounds(None, part_labels, part_lower)
            for part_labels, part_lower in zip(labels, lower, strict=True)
        ]

    def e_step(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> tuple[KMeansStats, Bounds]:
        chunk, centers = same_dtype(chunk, centers)
        memo = memo or self._initial_bounds(*chunk.X.shape)
        ops = kernels.for_centers(chunk.X, len(centers), self.n_total)
        before = centers if memo.centers is None else memo.centers
        sums = ops.lloyd(chunk.X, chunk.w, centers, before, memo.labels, memo.lower)
        return KMeansStats(*sums), memo._replace(centers=centers)

    def m_step(self, centers: np.ndarray, stats: Any) -> np.ndarray:
        filled = self._free(stats.weight > 0)
        step = stats.sum_dx / np.where(filled, stats.weight, 1)[:, None]
        return (centers + np.where(filled[:, None], step, 0)).astype(centers.dtype)

    def repair(
        self, centers: np.ndarray, stats: Any, source: Source, engine: Engine, memos: list[Bounds]
    ) -> np.ndarray:
        """Move an empty cluster to the row with the largest cost. It stays if every row equals a center."""
        empty = np.flatnonzero(self._free(stats.weight == 0))
        if len(empty) == 0:
            return centers
        costliest, _ = engine.scan(partial(self.costliest, centers, len(empty)), source, memos)
        count = min(len(empty), int(np.count_nonzero(costliest.cost > 0)))
        centers = centers.copy()
        centers[empty[:count]] = costliest.rows[:count]
        return centers

    def costliest(self, centers: np.ndarray, count: int, chunk: Chunk, memo: Bounds) -> tuple[Costliest, Bounds]:
        """Rows with the largest cost at the center they were last assigned to.

        The labels are not updated first, because only a few rows are needed.
        """
        ops = kernels.for_centers(chunk.X, len(centers), self.n_total)
        return costliest_of(chunk, ops.assigned_squares(chunk.X, centers, memo.labels), count, ops.take), memo

    def halfway(self, before: np.ndarray, after: np.ndarray, chunk: Chunk) -> KMeansStats:
        """Statistics of the clusters of the centers `before`, measured from the centers `after`."""
        labels = self.assign(before, chunk)
        chunk, after = same_dtype(chunk, after)
        squares = kernels.for_centers(chunk.X, len(after), self.n_total).assigned_squares(chunk.X, after, labels)
        return KMeansStats(*by_cluster(chunk, labels, squares, len(after)), 0)

    def objective(self, centers: np.ndarray, stats: KMeansStats) -> float:
        return float(stats.cost.sum())

    def has_converged(
        self, before: np.ndarray, after: np.ndarray, stats: KMeansStats, history: Sequence[float], stretch: float | None
    ) -> bool:
        step = after.astype(np.float64) - before
        return bool(stats.moved == 0 or (step**2).sum() <= self.tol)

    def carry(self, before: np.ndarray, after: np.ndarray, stats: KMeansStats) -> KMeansStats:
        """Statistics after the M-step: differences from a mean add up to zero, the weights remain."""
        return replace(stats, sum_dx=np.zeros_like(stats.sum_dx), cost=np.zeros_like(stats.cost), moved=0)

    def assign(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> np.ndarray:
        if memo is not None:
            return memo.labels
        chunk, centers = same_dtype(chunk, centers)
        return kernels.for_centers(chunk.X, len(centers), self.n_total).nearest(chunk.X, centers)

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        chunk, centers = same_dtype(chunk, centers)
        return kernels.for_centers(chunk.X, len(centers), self.n_total).distances(chunk.X, centers)

    def _free(self, mask: np.ndarray) -> np.ndarray:
        """Entries of `mask` (k,) or (k, d) whose centers may move."""
        if self.frozen is not None:
            mask[: len(self.frozen)] = False
        return mask

    def _uses_bounds(self, d: int) -> bool:
        return self.bounds and self.n_clusters * d >= BOUNDS_FROM

    def _initial_bounds(self, n: int, d: int) -> Bounds:
        return Bounds(None, np.full(n, -1, np.int32), np.zeros(n, np.float32) if self._uses_bounds(d) else NO_BOUNDS)


def costliest(cost: np.ndarray, rows: np.ndarray, count: int) -> Costliest:
    """The `count` rows with the largest cost; equal rows count once."""
    order = np.argsort(-cost, kind="stable")
    _, first = np.unique(rows[order], axis=0, return_index=True)
    selected = order[np.sort(first)[:count]]
    return Costliest(cost[selected], rows[selected])


def costliest_of(
    chunk: Chunk, cost: np.ndarray, count: int, take: Callable[[Any, np.ndarray], np.ndarray]
) -> Costliest:
    """The `count` rows of a chunk with the largest cost. The cost of a row is `cost` (n,) times its weight."""
    if chunk.w is not None:
        cost = cost * chunk.w
    candidates = np.argsort(-cost, kind="stable")[: 4 * count]
    return costliest(cost[candidates], take(chunk.X, candidates), count)


def by_cluster(chunk: Chunk, labels: np.ndarray, cost: np.ndarray, k: int) -> tuple[np.ndarray, float, np.ndarray]:
    """Weight, zero differences, and cost of each cluster. The cost of a row is `cost` (n,) times its weight."""
    w = np.ones(len(labels)) if chunk.w is None else chunk.w
    return np.bincount(labels, w, k), 0.0, np.bincount(labels, w * cost, k)


def warn_of_empty_clusters(stats: KMeansStats, remedy: str, frozen: int = 0) -> None:
    """Warn if some clusters have no rows. Fixed centers may have none."""
    weight = stats.weight[frozen:]
    filled, k = int(np.count_nonzero(weight)), len(weight)
    if filled < k:
        warnings.warn(
            f"only {filled} of {k} clusters have rows: {remedy}",
            ConvergenceWarning,
            stacklevel=3,
        )


def same_dtype(chunk: Chunk, centers: np.ndarray) -> tuple[Chunk, np.ndarray]:
    """Rows and centers in their common dtype."""
    dtype = np.result_type(chunk.X.dtype, centers.dtype)
    if chunk.X.dtype != dtype:
        chunk = chunk._replace(X=chunk.X.astype(dtype))
    return chunk, centers.astype(dtype, copy=False)
