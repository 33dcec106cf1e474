"""K-means for time series as EM: assignment by dynamic time warping, then means of the aligned values."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie import seeding
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.rounding import first_below
from coterie.core.scale import in_type
from coterie.core.stats import Stats
from coterie.distances.barycenter import AlignmentSums, align_to_center
from coterie.distances.dtw import bounded_path_costs, kernels_for, path_costs
from coterie.distances.search import nearest_of
from coterie.distances.series import Series, from_table
from coterie.distances.soft_dtw import soft_kernels_for, soft_values
from coterie.distances.windows import NoWindow
from coterie.kmeans.center_model import CenterModel, add_means
from coterie.seeding.costs import Cost

ROUNDING = 1e-12  # relative to the objective, or to the cost of a row: a smaller difference is rounding
PASSES = 32  # typical number of passes of a fit, for the choice of kernels
CLOSE = 1e-2  # averaging ends if the squared movement is below this fraction of the tolerance of the fit


@dataclass(frozen=True)
class DTWStats(Stats):
    """Sums over the values aligned with each time step of each center, relative to the current centers."""

    weight: Any  # (k,) of the series
    sum_dx: Any  # (k, d) of w (x - c)
    aligned: Any  # (k, d) of w, over the aligned values
    cost: Any  # (k,) of w times the cost of the path, or the soft-DTW value
    moved: Any  # series that changed cluster


@dataclass(frozen=True)
class SquaredDTW(Cost):
    """Squared DTW distance to the nearest series."""

    channels: int
    window: Any

    degree = 2

    def table(self, X: np.ndarray, points: np.ndarray) -> np.ndarray:
        rows, point_series = self.series(X), self.series(points)
        costs = np.empty((len(rows), len(point_series)))
        path_costs(rows, point_series, self.window, False, costs)
        return costs

    def spread(
        self, X: Any, w: Any, unit: float, points: np.ndarray, closest: np.ndarray, again: bool = False
    ) -> np.ndarray:
        """Update the closest costs; costs above them are not computed."""
        rows, point_series = self.series(X), self.series(points)
        costs, limit = np.empty((len(point_series), len(rows))), closest.astype(np.float64) * unit**2 * (1 + ROUNDING)
        bounded_path_costs(
            kernels_for(point_series, rows, PASSES), point_series, rows, self.window, False, limit, costs
        )
        costs /= unit**2
        np.minimum(closest, costs[0], out=closest, casting="same_kind")
        return np.minimum(closest, costs) @ (np.ones(len(rows)) if w is None else w)

    def take(self, X: Any, rows: np.ndarray) -> np.ndarray:
        return np.asarray(X[rows])

    def series(self, X: Any) -> Series:
        """The series in the rows of a table, in float64."""
        return from_table(np.ascontiguousarray(X, np.float64), self.channels)


@dataclass(frozen=True)
class DTWLloyd(CenterModel):
    r"""Minimises :math:`\sum_i w_i \min_k \mathrm{dtw}(x_i, c_k)^2`; with `gamma`, the sum of soft-DTW values.

    A row is a series: time steps in order, channels side by side, NaN after its end. The parameters have the same form.
    Warping paths play the role of labels: for given paths, the optimal center is the mean of the aligned values.
    With `gamma` a cell is weighted by its share in all paths. This is EM as well: by Jensen's inequality these means do
    not increase the soft objective. `TimeSeriesKMeans` cites the papers.
    """

    channels: int = 1
    window: Any = NoWindow()  # noqa: RUF009, it has no state
    gamma: float | None = None
    steps: int = 1  # maximum number of averaging steps in one iteration

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        k = self.n_clusters
        if not isinstance(self.start, str):
            return np.array(self.start, dtype=source.dtype)
        if self.start == "k-means++":
            return seeding.plusplus(source, engine, rng, k, self.unit, cost=self.cost)
        return seeding.forgy(source, engine, rng, k, self.unit, self.cost)

    def e_step(
        self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray | None = None
    ) -> tuple[DTWStats, np.ndarray]:
        rows, center_series = self._series(chunk.X), self._series(centers)
        before = np.full(len(rows), -1, np.int32) if labels is None else labels
        new_labels, _ = self._nearest(rows, center_series, before)
        return self._stats(centers, chunk, new_labels, int(np.count_nonzero(new_labels != before))), new_labels

    def m_step(self, centers: np.ndarray, stats: DTWStats) -> np.ndarray:
        return add_means(centers, stats.sum_dx, stats.aligned, stats.aligned > 0)

    def repair(
        self, centers: np.ndarray, stats: DTWStats, source: Source, engine: Engine, memos: list[np.ndarray]
    ) -> np.ndarray:
        """More averaging steps for the same clusters, which are cheaper than new labels; empty clusters are moved."""
        for _ in range(self.steps - 1):
            sums, _ = engine.scan(partial(self._average, centers), source, memos)
            before, centers = centers, self.m_step(centers, sums)
            if squared_step(before, centers) <= CLOSE * self.tol:
                break
        return super().repair(centers, stats, source, engine, memos)

    def halfway(self, before: np.ndarray, after: np.ndarray, chunk: Chunk) -> DTWStats:
        """Statistics of the clusters of the centers `before`, measured from the centers `after`."""
        return self._stats(after, chunk, self.assign(before, chunk))

    def has_converged(self, before: np.ndarray, after: np.ndarray, stats: Any, history: Any, *rest: Any) -> bool:
        decrease = history[-2] - history[-1]
        return bool(squared_step(before, after) <= self.tol or decrease <= ROUNDING * abs(history[-2]))

    def assign(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray | None = None) -> np.ndarray:
        return labels if labels is not None else self._nearest(self._series(chunk.X), self._series(centers), None)[0]

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        """DTW distance to every center; with `gamma`, the soft-DTW values."""
        rows, center_series = self._series(chunk.X), self._series(centers)
        out = np.empty((len(rows), len(center_series)))
        if self.gamma is None:
            path_costs(rows, center_series, self.window, False, out)
            np.sqrt(out, out=out)
        else:
            soft_values(rows, center_series, self.window, self.gamma, out)
        return in_type({"distances": out}, np.result_type(chunk.X.dtype, centers.dtype))["distances"]

    @property
    def cost(self) -> SquaredDTW:
        """Cost for seeding: DTW, because soft-DTW values can be negative and are then no probabilities."""
        return SquaredDTW(self.channels, self.window)

    def _series(self, X: np.ndarray) -> Series:
        return self.cost.series(X)

    def _nearest(self, rows: Series, centers: Series, guess: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        if self.gamma is None:
            return nearest_of(kernels_for(rows, centers, PASSES), rows, centers, self.window, False, guess)
        values = np.empty((len(rows), len(centers)))
        soft_values(rows, centers, self.window, self.gamma, values, PASSES)
        rounding = ROUNDING * (np.abs(values).max(axis=1, keepdims=True) + self.gamma)
        labels = first_below(values, values.min(axis=1, keepdims=True) + rounding)
        return labels, values[np.arange(len(rows)), labels]

    def _stats(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray, moved: int = 0) -> DTWStats:
        rows, center_series, w = self._series(chunk.X), self._series(centers), chunk.weights
        ops = (kernels_for if self.gamma is None else soft_kernels_for)(rows, center_series, PASSES)
        k, d = centers.shape
        sum_dx, aligned, cost = np.zeros((k, d)), np.zeros((k, d)), np.zeros(k)
        for center in range(k):
            members = np.flatnonzero((labels == center) & (w > 0))
            if len(members):
                sums: AlignmentSums = align_to_center(
                    ops, center_series(center), rows[members], w[members], self.window, self.gamma
                )
                size = sums.sum_dx.size
                sum_dx[center, :size] = sums.sum_dx.reshape(-1)
                aligned[center, :size] = np.repeat(sums.weight, self.channels)
                cost[center] = sums.cost
        return DTWStats(np.bincount(labels, w, k), sum_dx, aligned, cost, moved)

    def _average(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray) -> tuple[DTWStats, np.ndarray]:
        return self._stats(centers, chunk, labels), labels

    def assigned_costs(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray) -> np.ndarray:
        """Cost of each series by DTW, at its nearest center."""
        rows, center_series = self._series(chunk.X), self._series(centers)
        ops = kernels_for(rows, center_series, PASSES)
        return nearest_of(ops, rows, center_series, self.window, False, labels)[1]

    def _take(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Series padded with infinity, because NaN does not equal itself."""
        return np.where(np.isnan(X[rows]), np.inf, X[rows])

    def _with_rows(self, centers: np.ndarray, indices: np.ndarray, rows: np.ndarray) -> np.ndarray:
        centers = centers.copy()
        centers[indices] = np.nan
        centers[indices, : rows.shape[1]] = np.where(np.isinf(rows), np.nan, rows)
        return centers


def squared_step(before: np.ndarray, after: np.ndarray) -> float:
    """Squared movement of all centers; infinite if a center has changed its length."""
    if (np.isnan(before) != np.isnan(after)).any():
        return np.inf
    return float(np.nansum((after.astype(np.float64) - before) ** 2))
