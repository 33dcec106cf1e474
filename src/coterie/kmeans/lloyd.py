"""K-means as EM: hard assignment to the nearest center, then means."""

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
BOUNDS_FROM = 512  # clusters x columns below which a search costs no more than the bound that would save it


@stored("statistics.KMeans", weight="real K", sum_dx="real K D", cost="real K")
@dataclass(frozen=True)
class KMeansStats(Stats):
    """Sums about the centers they were taken with: small numbers, whatever the origin of the data."""

    weight: Any  # (k,)
    sum_dx: Any  # (k, d) of w (x - c)
    cost: Any  # (k,) of w |x - c|^2
    moved: Any  # rows that changed cluster


class Bounds(NamedTuple):
    """What one part remembers between two passes. Losing it costs time, never the result."""

    centers: np.ndarray | None  # (k, d) those of that pass; None before the first
    labels: np.ndarray  # (n,)
    lower: np.ndarray  # (n,) no other center was nearer than this; (0,) without bounds


@dataclass(frozen=True)
class Costliest(Stats):
    """The rows that cost most, no two alike."""

    cost: Any  # (m,) descending
    rows: Any  # (m, d)

    def __add__(self, other: Costliest) -> Costliest:
        most = max(len(self.cost), len(other.cost))
        cost, rows = np.concatenate([self.cost, other.cost]), np.concatenate([self.rows, other.rows])
        return costliest(cost, rows, most)


@dataclass(frozen=True)
class Lloyd:
    r"""Minimises :math:`\sum_i w_i \min_k \|x_i - c_k\|^2` [1]_.

    A pass remembers the labels, and with `bounds` how far every other center is at least [2]_: where the bound proves
    the label, no other distance is taken. Both give the same bits.

    .. [1] Lloyd (1982), Least squares quantization in PCM, IEEE Trans. Inf. Theory 28.
    .. [2] Hamerly (2010), Making k-means even faster, SDM.
    """

    n_clusters: int
    start: Any = "k-means++"  # the name of a method, or centers
    unit: float = 1.0  # a power of two of the size of the data
    tol: float = 0.0  # the squared step of all centers that ends a fit
    bounds: bool = True
    frozen: Any = None  # (f, d) the first centers, which stay where they are
    n_total: int = 0  # rows of the whole table, if these are a part of it: kernels of a large table are compiled

    converges = True

    @property
    def cost(self) -> Cost:
        """What a row costs at centers, for seeding."""
        return SQUARES

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        if self.frozen is None:
            return seeding.start(self.start, source, engine, rng, self.n_clusters, self.unit, cost=self.cost)
        frozen = self.frozen.astype(source.dtype)
        free = self.n_clusters - len(frozen)
        others = seeding.start(self.start, source, engine, rng, free, self.unit, frozen, self.cost)
        return np.concatenate([frozen, others])

    def initial_memos(self, source: Source) -> list[Bounds | None]:
        labels = source.room(-1, np.int32)
        lower = source.room(0, np.float32) if self._bounded(source.shape[1]) else [NO_BOUNDS] * len(labels)
        return [None if mine is None else Bounds(None, mine, low) for mine, low in zip(labels, lower, strict=True)]

    def e_step(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> tuple[KMeansStats, Bounds]:
        chunk, centers = alike(chunk, centers)
        memo = memo or self._nothing_known(*chunk.X.shape)
        ops = kernels.for_centers(chunk.X, len(centers), self.n_total)
        before = centers if memo.centers is None else memo.centers
        sums = ops.lloyd(chunk.X, chunk.w, centers, before, memo.labels, memo.lower)
        return KMeansStats(*sums), memo._replace(centers=centers)

    def m_step(self, centers: np.ndarray, stats: KMeansStats) -> np.ndarray:
        filled = self._free(stats.weight > 0)
        step = stats.sum_dx / np.where(filled, stats.weight, 1)[:, None]
        return (centers + np.where(filled[:, None], step, 0)).astype(centers.dtype)

    def repair(
        self, centers: np.ndarray, stats: KMeansStats, source: Source, engine: Engine, memos: list[Bounds]
    ) -> np.ndarray:
        """An empty cluster starts anew at the row that costs most; where all rows sit on centers it stays."""
        empty = np.flatnonzero(self._free(stats.weight == 0))
        if len(empty) == 0:
            return centers
        found, _ = engine.scan(partial(self.costliest, centers, len(empty)), source, memos)
        useful = min(len(empty), int(np.count_nonzero(found.cost > 0)))
        centers = centers.copy()
        centers[empty[:useful]] = found.rows[:useful]
        return centers

    def costliest(self, centers: np.ndarray, most: int, chunk: Chunk, memo: Bounds) -> tuple[Costliest, Bounds]:
        """By the distance to the center the row was last nearest to: no new search for the sake of a few rows."""
        ops = kernels.for_centers(chunk.X, len(centers), self.n_total)
        return costliest_of(chunk, ops.own_squares(chunk.X, centers, memo.labels), most, ops.take), memo

    def halfway(self, before: np.ndarray, after: np.ndarray, chunk: Chunk) -> KMeansStats:
        """What rows cost that stay in the clusters of the centers `before`, with these already at `after`."""
        labels = self.assign(before, chunk)
        chunk, after = alike(chunk, after)
        squares = kernels.for_centers(chunk.X, len(after), self.n_total).own_squares(chunk.X, after, labels)
        return KMeansStats(*by_cluster(chunk, labels, squares, len(after)), 0)

    def objective(self, centers: np.ndarray, stats: KMeansStats) -> float:
        return float(stats.cost.sum())

    def has_converged(
        self, before: np.ndarray, after: np.ndarray, stats: KMeansStats, history: Sequence[float], stretch: float | None
    ) -> bool:
        step = after.astype(np.float64) - before
        return bool(stats.moved == 0 or (step**2).sum() <= self.tol)

    def carry(self, before: np.ndarray, after: np.ndarray, stats: KMeansStats) -> KMeansStats:
        """Means leave no sum of differences behind; the weights remain."""
        return replace(stats, sum_dx=np.zeros_like(stats.sum_dx), cost=np.zeros_like(stats.cost), moved=0)

    def assign(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> np.ndarray:
        if memo is not None:
            return memo.labels
        chunk, centers = alike(chunk, centers)
        return kernels.for_centers(chunk.X, len(centers), self.n_total).nearest(chunk.X, centers)

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        chunk, centers = alike(chunk, centers)
        return kernels.for_centers(chunk.X, len(centers), self.n_total).distances(chunk.X, centers)

    def _free(self, which: np.ndarray) -> np.ndarray:
        """Those of the centers `which` that may move."""
        if self.frozen is not None:
            which[: len(self.frozen)] = False
        return which

    def _bounded(self, d: int) -> bool:
        return self.bounds and self.n_clusters * d >= BOUNDS_FROM

    def _nothing_known(self, n: int, d: int) -> Bounds:
        return Bounds(None, np.full(n, -1, np.int32), np.zeros(n, np.float32) if self._bounded(d) else NO_BOUNDS)


def costliest(cost: np.ndarray, rows: np.ndarray, most: int) -> Costliest:
    """The `most` costliest of these rows, equal rows counted once."""
    order = np.argsort(-cost, kind="stable")
    _, first = np.unique(rows[order], axis=0, return_index=True)
    kept = order[np.sort(first)[:most]]
    return Costliest(cost[kept], rows[kept])


def costliest_of(chunk: Chunk, cost: np.ndarray, most: int, take: Callable[[Any, np.ndarray], np.ndarray]) -> Costliest:
    """The `most` costliest rows of a chunk, each of which costs `cost` (n,) times its weight."""
    if chunk.w is not None:
        cost = cost * chunk.w
    candidates = np.argsort(-cost, kind="stable")[: 4 * most]
    return costliest(cost[candidates], take(chunk.X, candidates), most)


def by_cluster(chunk: Chunk, labels: np.ndarray, cost: np.ndarray, k: int) -> tuple[np.ndarray, float, np.ndarray]:
    """Weight, no differences, and cost of each cluster, for rows that cost `cost` (n,) times their weight."""
    w = np.ones(len(labels)) if chunk.w is None else chunk.w
    return np.bincount(labels, w, k), 0.0, np.bincount(labels, w * cost, k)


def warn_of_empty_clusters(stats: KMeansStats, remedy: str, frozen: int = 0) -> None:
    weight = stats.weight[frozen:]  # a center that was told to stay may stay without rows
    filled, k = int(np.count_nonzero(weight)), len(weight)
    if filled < k:
        warnings.warn(
            f"only {filled} of {k} clusters have rows: {remedy}",
            ConvergenceWarning,
            stacklevel=3,
        )


def alike(chunk: Chunk, centers: np.ndarray) -> tuple[Chunk, np.ndarray]:
    """Rows and centers in one type, the wider of the two."""
    dtype = np.result_type(chunk.X.dtype, centers.dtype)
    if chunk.X.dtype != dtype:
        chunk = chunk._replace(X=chunk.X.astype(dtype))
    return chunk, centers.astype(dtype, copy=False)
