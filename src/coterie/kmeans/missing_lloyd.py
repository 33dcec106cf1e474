"""K-means on rows with holes: distances and means over what was observed, nothing is filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.errors import ParameterError
from coterie.core.protocols import Chunk
from coterie.kmeans.lloyd import Bounds, Costliest, KMeansStats, Lloyd, alike, by_cluster, costliest_of
from coterie.seeding.costs import Cost, ObservedSquares


@dataclass(frozen=True)
class ObservedStats(KMeansStats):
    """Sums over what was observed, and how much weight that is, column by column."""

    seen: Any  # (k, d) of w, where x was observed


@dataclass(frozen=True)
class Observed(Lloyd):
    r"""Minimises :math:`\sum_i w_i \min_k \sum_{j \in o_i} (x_{ij} - c_{kj})^2` over the columns :math:`o_i` observed.

    The objective of k-POD [1]_, minimised directly: a center is, column by column, the mean of those of its rows that
    have a value there. A column that none of them has costs nothing wherever the center is: it stays. Rows are
    compared with a center in different columns, so distances know no triangle inequality, and there are no bounds.

    .. [1] Chi, Chi & Baraniuk (2016), k-POD: a method for k-means clustering of missing data, The American
       Statistician 70.
    """

    fill: Any = None  # (d,) what the holes of a row that becomes a center are filled with

    @property
    def cost(self) -> Cost:
        return ObservedSquares(self.fill)

    def e_step(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> tuple[ObservedStats, Bounds]:
        chunk, centers = alike(chunk, centers)
        memo = memo or self._nothing_known(*chunk.X.shape)
        ops = kernels.select("observed", chunk.X, len(centers))
        return ObservedStats(*ops.lloyd(chunk.X, chunk.w, centers, memo.labels)), memo

    def m_step(self, centers: np.ndarray, stats: ObservedStats) -> np.ndarray:
        there = self._free(stats.seen > 0)
        step = stats.sum_dx / np.where(there, stats.seen, 1)
        return (centers + np.where(there, step, 0)).astype(centers.dtype)

    def halfway(self, before: np.ndarray, after: np.ndarray, chunk: Chunk) -> KMeansStats:
        labels = self.assign(before, chunk)
        chunk, after = alike(chunk, after)
        squares = kernels.select("observed", chunk.X, len(after)).own_squares(chunk.X, after, labels)
        return KMeansStats(*by_cluster(chunk, labels, squares, len(after)), 0)

    def assign(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> np.ndarray:
        if memo is not None:
            return memo.labels
        chunk, centers = alike(chunk, centers)
        return kernels.select("observed", chunk.X, len(centers)).nearest(chunk.X, centers)

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        chunk, centers = alike(chunk, centers)
        return kernels.select("observed", chunk.X, len(centers)).distances(chunk.X, centers)

    def costliest(self, centers: np.ndarray, most: int, chunk: Chunk, memo: Bounds) -> tuple[Costliest, Bounds]:
        ops = kernels.select("observed", chunk.X, len(centers))
        cost = ops.own_squares(chunk.X, centers, memo.labels)
        return costliest_of(chunk, cost, most, lambda X, rows: ops.filled(X[rows], self.fill)), memo

    def _bounded(self, d: int) -> bool:
        return False


def check_options_for_holes(algorithm: str, search: str) -> None:
    """What `KMeans` cannot do with rows that have holes."""
    if algorithm in ("exact", "bounds", "elkan"):
        raise ParameterError(
            f"algorithm={algorithm!r} and missing='ignore' do not go together, for X has NaN: use algorithm='auto', or "
            "fill in X first (sklearn.impute)"
        )
    if search != "none":
        raise ParameterError(
            f"search={search!r} and missing='ignore' do not go together, for X has NaN: use search='none' with more "
            "starts (n_init), or fill in X first (sklearn.impute)"
        )
