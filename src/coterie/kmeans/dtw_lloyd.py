"""K-means of series: hard assignment by dynamic time warping, then the mean of all that meets each moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie import seeding
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import in_type
from coterie.core.stats import Stats
from coterie.distances.barycenter import Met, meet
from coterie.distances.dtw import costs_within, kernels_for, least_costs
from coterie.distances.search import nearest_of
from coterie.distances.series import Series, from_table
from coterie.distances.soft_dtw import soft_kernels_for, soft_values
from coterie.distances.windows import Everywhere
from coterie.kmeans.lloyd import Costliest, costliest_of
from coterie.seeding.costs import Cost

ALIKE = 1e-12  # a share of the objective: what it falls by less is rounding
PASSES = 32  # of a fit, about, for the choice of kernels
CLOSE = 1e-2  # of the tolerance of a fit: smaller squared steps of the averages are not worth another


@dataclass(frozen=True)
class WarpedStats(Stats):
    """Sums over what meets the moments of each center, about the centers they were taken with."""

    weight: Any  # (k,) of the series
    sum_dx: Any  # (k, d) of w (x - c)
    met: Any  # (k, d) of w
    cost: Any  # (k,) of w times the cost of the path, or the soft value
    moved: Any  # series that changed cluster


@dataclass(frozen=True)
class WarpedSquares(Cost):
    """Squares of DTW to the nearest series."""

    channels: int
    window: Any

    degree = 2

    def table(self, X: np.ndarray, points: np.ndarray) -> np.ndarray:
        rows, among = self._series(X), self._series(points)
        costs = np.empty((len(rows), len(among)))
        least_costs(rows, among, self.window, False, costs)
        return costs

    def spread(
        self, X: Any, w: Any, unit: float, points: np.ndarray, closest: np.ndarray, again: bool = False
    ) -> np.ndarray:
        """Costs above the closest so far are not needed."""
        rows, among = self._series(X), self._series(points)
        costs, limit = np.empty((len(among), len(rows))), closest.astype(np.float64) * unit**2 * (1 + ALIKE)
        costs_within(kernels_for(among, rows, PASSES), among, rows, self.window, False, limit, costs)
        costs /= unit**2
        np.minimum(closest, costs[0], out=closest, casting="same_kind")
        potential: np.ndarray = np.minimum(closest, costs) @ (np.ones(len(rows)) if w is None else w)
        return potential

    def take(self, X: Any, rows: np.ndarray) -> np.ndarray:
        return np.asarray(X[rows])

    def _series(self, X: Any) -> Series:
        return from_table(np.ascontiguousarray(X, np.float64), self.channels)


@dataclass(frozen=True)
class Warped:
    r"""Minimises :math:`\sum_i w_i \min_k \mathrm{dtw}(x_i, c_k)^2`; with `gamma`, of soft values.

    A row is a series, moment after moment, its channels side by side, NaN after its end; so are the parameters. Paths
    play the part of labels: for given paths the mean of all that meets a moment is best [1]_. With `gamma` a cell
    counts by its share in all paths, which is EM as well: by Jensen's inequality these means do not raise the soft
    objective.

    .. [1] Petitjean, Ketterlin & Gançarski (2011), A global averaging method for dynamic time warping, Pattern
       Recognition 44.
    """

    n_clusters: int
    start: Any = "k-means++"  # the name of a method, or centers
    unit: float = 1.0  # a power of two of the size of the data
    tol: float = 0.0  # the squared step of all centers that ends a fit
    channels: int = 1
    window: Any = Everywhere()  # noqa: RUF009, it has no state
    gamma: float | None = None
    steps: int = 1  # of averaging in one iteration, at most

    converges = True

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        k = self.n_clusters
        if not isinstance(self.start, str):
            return np.array(self.start, dtype=source.dtype)
        if self.start == "k-means++":
            return seeding.plusplus(source, engine, rng, k, self.unit, cost=self.cost)
        return seeding.forgy(source, engine, rng, k, self.unit, self.cost)

    def begin(self, source: Source) -> list[np.ndarray | None]:
        return source.room(-1, np.int32)

    def e_step(
        self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray | None = None
    ) -> tuple[WarpedStats, np.ndarray]:
        rows, among = self._series(chunk.X), self._series(centers)
        before = np.full(len(rows), -1, np.int32) if labels is None else labels
        found, _ = self._nearest(rows, among, before)
        return self._stats(centers, chunk, found, int(np.count_nonzero(found != before))), found

    def m_step(self, centers: np.ndarray, stats: WarpedStats) -> np.ndarray:
        met = stats.met > 0
        return (centers + np.where(met, stats.sum_dx / np.where(met, stats.met, 1.0), 0.0)).astype(centers.dtype)

    def repair(
        self, centers: np.ndarray, stats: WarpedStats, source: Source, engine: Engine, memos: list[np.ndarray]
    ) -> np.ndarray:
        """More steps of averaging for the same clusters, which are cheaper than new labels; empty ones start anew."""
        for _ in range(self.steps - 1):
            again, _ = engine.scan(partial(self._average, centers), source, memos)
            before, centers = centers, self.m_step(centers, again)
            if squared_step(before, centers) <= CLOSE * self.tol:
                break
        empty = np.flatnonzero(stats.weight == 0)
        if len(empty) == 0:
            return centers
        found, _ = engine.scan(partial(self._costliest, centers, len(empty)), source, memos)
        useful = min(len(empty), int(np.count_nonzero(found.cost > 0)))
        return replaced(centers, empty[:useful], found.rows[:useful])

    def halfway(self, before: np.ndarray, after: np.ndarray, chunk: Chunk) -> WarpedStats:
        """What series cost that stay in the clusters of the centers `before`, with these already at `after`."""
        return self._stats(after, chunk, self.assign(before, chunk))

    def objective(self, centers: np.ndarray, stats: WarpedStats) -> float:
        return float(stats.cost.sum())

    def settled(
        self,
        before: np.ndarray,
        after: np.ndarray,
        stats: WarpedStats,
        history: Sequence[float],
        stretch: float | None = None,
    ) -> bool:
        fallen = history[-2] - history[-1]
        return bool(squared_step(before, after) <= self.tol or fallen <= ALIKE * abs(history[-2]))

    def assign(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray | None = None) -> np.ndarray:
        return labels if labels is not None else self._nearest(self._series(chunk.X), self._series(centers), None)[0]

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        """DTW to every center; with `gamma`, the soft values."""
        rows, among = self._series(chunk.X), self._series(centers)
        out = np.empty((len(rows), len(among)))
        if self.gamma is None:
            least_costs(rows, among, self.window, False, out)
            np.sqrt(out, out=out)
        else:
            soft_values(soft_kernels_for(rows, among), rows, among, self.window, self.gamma, out)
        return in_type({"distances": out}, np.result_type(chunk.X.dtype, centers.dtype))["distances"]

    @property
    def cost(self) -> WarpedSquares:
        """Soft values can be negative, so that rows cannot be drawn by them: seeds go by DTW."""
        return WarpedSquares(self.channels, self.window)

    def _series(self, X: np.ndarray) -> Series:
        return from_table(np.ascontiguousarray(X, np.float64), self.channels)

    def _nearest(self, rows: Series, centers: Series, guess: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        if self.gamma is None:
            return nearest_of(kernels_for(rows, centers, PASSES), rows, centers, self.window, False, guess)
        values = np.empty((len(rows), len(centers)))
        soft_values(soft_kernels_for(rows, centers, PASSES), rows, centers, self.window, self.gamma, values)
        labels = values.argmin(axis=1)
        return labels.astype(np.int32), values[np.arange(len(rows)), labels]

    def _stats(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray, moved: int = 0) -> WarpedStats:
        rows, among = self._series(chunk.X), self._series(centers)
        w = np.ones(len(rows)) if chunk.w is None else chunk.w
        ops = (kernels_for if self.gamma is None else soft_kernels_for)(rows, among, PASSES)
        k, d = centers.shape
        sum_dx, met, cost = np.zeros((k, d)), np.zeros((k, d)), np.zeros(k)
        for center in range(k):
            own = np.flatnonzero((labels == center) & (w > 0))
            if len(own):
                found: Met = meet(ops, among(center), rows[own], w[own], self.window, self.gamma)
                size = found.sum_dx.size
                sum_dx[center, :size] = found.sum_dx.reshape(-1)
                met[center, :size] = np.repeat(found.weight, self.channels)
                cost[center] = found.cost
        return WarpedStats(np.bincount(labels, w, k), sum_dx, met, cost, moved)

    def _average(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray) -> tuple[WarpedStats, np.ndarray]:
        return self._stats(centers, chunk, labels), labels

    def _costliest(
        self, centers: np.ndarray, most: int, chunk: Chunk, labels: np.ndarray
    ) -> tuple[Costliest, np.ndarray]:
        """Series that cost most, by DTW; infinity stands for NaN, which would not be equal to itself."""
        rows, among = self._series(chunk.X), self._series(centers)
        _, cost = nearest_of(kernels_for(rows, among, PASSES), rows, among, self.window, False, labels)
        return costliest_of(chunk, cost, most, lambda X, rows: np.where(np.isnan(X[rows]), np.inf, X[rows])), labels


def replaced(centers: np.ndarray, which: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Centers `which` become series that end in infinity."""
    centers = centers.copy()
    centers[which] = np.nan
    centers[which, : rows.shape[1]] = np.where(np.isinf(rows), np.nan, rows)
    return centers


def squared_step(before: np.ndarray, after: np.ndarray) -> float:
    """Of all centers together; infinite where one has become another series."""
    if (np.isnan(before) != np.isnan(after)).any():
        return np.inf
    return float(np.nansum((after.astype(np.float64) - before) ** 2))
