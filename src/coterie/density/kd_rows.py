"""Rows with few columns in a k-d tree: lists of nearest neighbours, and core distances."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.arrays import Array
from coterie.density.row_distances import RowDistances
from coterie.hierarchy.linkage_from_rows import scale_to_unit

MAX_COLUMNS = 16  # maximum number of columns for which a k-d tree is tried
MIN_ROWS = 2048  # for fewer rows, all distances are computed
SAMPLE, SAMPLE_NEIGHBOURS = 256, 8  # rows and neighbours of a search that shows whether a k-d tree pays
MAX_VISITED = 0.05  # maximum share of the leaves that a search visits
PARTS = 64  # of the rows, which threads process
MAX_LISTS = 1 << 22  # entries of longer lists in memory at a time


@dataclass(frozen=True)
class KDRows:
    """Points in the order of the leaves of their k-d tree. Distances of points are squares in a unit of their own."""

    tree: Any
    points: Array  # (n, d)
    order: Array  # (n,) row of each point
    distance: Any  # of the rows
    exponent: int  # rows were divided by 2^exponent

    @property
    def parts(self) -> list[tuple[int, int]]:
        return parts_of(len(self.order))

    def distances(self, squares: Array) -> Array:
        """Squares of points as distances of rows."""
        values: Array = squares * self.distance.factor
        if self.distance.root:
            return np.asarray(np.ldexp(np.sqrt(values), self.exponent))
        return np.asarray(np.ldexp(values, 2 * self.exponent))

    def square_of(self, distance: float) -> float:
        """A distance of rows as a square of points."""
        if self.distance.root:
            return float(np.ldexp(distance, -self.exponent)) ** 2 / float(self.distance.factor)
        return float(np.ldexp(distance, -2 * self.exponent)) / float(self.distance.factor)

    def of_rows(self, values: Array) -> Array:
        """Values of points in the order of the rows."""
        result = np.empty_like(values)
        result[self.order] = values
        return result

    def nearest_lists(self, index: Array, value: Array, n_jobs: int | None) -> None:
        """Write the k nearest other points of each point: index (n, k), value (n, k)."""
        from coterie.kernels.cpu.kd_density import nearest_lists

        def put(start: int, stop: int) -> None:
            nearest_lists(self.tree, self.points, np.arange(start, stop), index[start:stop], value[start:stop])

        machine.run_in_threads(put, self.parts, n_jobs)

    def core_squares(self, index: Array, value: Array, weight: Array, min_weight: float) -> Array:
        """Squared core distances (n,) from lists of neighbours; those with too little weight are extended.

        `weight` (n,) is that of the points.
        """
        from coterie.kernels.cpu.kd_density import nearest_lists

        n, k = index.shape
        if (weight == 1).all():
            others = int(np.ceil(min_weight)) - 1
            return value[:, others - 1].copy() if others > 0 else np.zeros(n)
        core, rows = np.empty(n), np.arange(n)
        is_enough = _put_core(core, rows, index, value, weight, min_weight)
        while not is_enough.all():
            k, rows = min(n - 1, 4 * k), rows[~is_enough]
            is_enough = np.empty(len(rows), bool)
            step = max(1, MAX_LISTS // k)
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                index, value = np.empty((len(part), k), np.int32), np.empty((len(part), k))
                nearest_lists(self.tree, self.points, part, index, value)
                is_enough[start : start + step] = _put_core(core, part, index, value, weight, min_weight)
        return core


def parts_of(n: int) -> list[tuple[int, int]]:
    """Parts of `n` rows or points, which depend on their number only."""
    return list(pairwise(n * i // PARTS for i in range(PARTS + 1)))


def kd_rows(distances: RowDistances) -> KDRows | None:
    """The rows in a k-d tree; None if distances are not Euclidean, or a search would visit too many leaves."""
    n, d = len(distances), distances.A.shape[1] if distances.is_euclidean else 0
    if n <= MIN_ROWS or not 0 < d <= MAX_COLUMNS:
        return None
    from coterie.kernels.cpu import kd_density

    X, exponent = scale_to_unit(distances.A)
    tree, points, order = kd_density.sorted_tree(X)
    sample = np.arange(0, n, max(1, n // SAMPLE))
    index, value = np.empty((len(sample), SAMPLE_NEIGHBOURS), np.int32), np.empty((len(sample), SAMPLE_NEIGHBOURS))
    visited = kd_density.nearest_lists(tree, points, sample, index, value)
    if visited > MAX_VISITED * len(sample) * len(tree.first):
        return None
    return KDRows(tree, points, order, distances.distance, exponent)


def _put_core(core: Array, rows: Array, index: Array, value: Array, weight: Array, min_weight: float) -> Array:
    """Store the core distances of `rows` whose lists have enough weight; whether each list has."""
    within = np.cumsum(np.column_stack([weight[rows], weight[index]]), axis=1) >= min_weight
    squares = np.column_stack([np.zeros(len(rows)), value])
    core[rows] = np.take_along_axis(squares, within.argmax(axis=1)[:, None], 1)[:, 0]
    return within[:, -1]
