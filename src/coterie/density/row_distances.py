"""Distances of rows to all rows of a fit, a few rows at a time."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.distances.distance import Distance, check_symmetric
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import check_values, put_symmetric, strips

MATRIX_ROWS = 2048  # up to this number of rows, all distances are stored
MIN_STRIP_ROWS = 128  # rows of a table of Euclidean distances, which is faster for several panels of rows
MIN_TABLE_ROWS = 72  # a table has at least this number of rows, so that the same kernel computes all of them


class RowDistances:
    """Distances between the rows of a fit: computed when they are needed, or a matrix.

    They are in a unit in which they do not overflow; `to_scale` converts them to that of the rows.
    """

    def __init__(self, distance: Distance | None, A: Any, n_jobs: int | None):
        if distance is not None:
            check_symmetric(distance, "density-based clusters need d(x, y) = d(y, x)")
        self._original, self.distance = distance, None if distance is None else distance.up_to_scale()
        self.A, self.n, self.n_jobs = A, len(A), n_jobs
        self.dtype = np.dtype(np.float32 if A.dtype == np.float32 else np.float64)
        self.D: Array | None = A if distance is None else None

    def __len__(self) -> int:
        return self.n

    @property
    def is_euclidean(self) -> bool:
        """Whether distances are those of `Euclidean`, squared or not, of the prepared rows."""
        return isinstance(self.distance, Euclidean)

    def store_if_small(self) -> None:
        """Compute and store all distances, if there are few rows."""
        if self.D is None and self.n <= MATRIX_ROWS:
            D = np.concatenate(list(self.in_threads(lambda part, table: table, np.arange(self.n))))
            put_symmetric(D, D)
            self.D = D

    def sorted(self, order: Array) -> "RowDistances":
        """The same distances of the rows in another order."""
        return RowDistances(self._original, self.A[order], self.n_jobs)

    def table(self, rows: Array, columns: Array | None = None) -> Array:
        """Distances of the rows with these indices to all rows, or to `columns` in ascending order, in a new array."""
        if self.D is not None:
            return self.D[rows] if columns is None else self.D[np.ix_(rows, columns)]
        assert self.distance is not None
        is_all = columns is None or len(columns) == self.n
        min_rows = MIN_TABLE_ROWS
        if columns is not None:
            min_rows = max(min_rows, kernels.SMALL // max(1, len(columns) * self.A.shape[1]) + 1)
        padded = rows if len(rows) >= min_rows else np.resize(rows, min_rows)
        others = self.A if is_all else self.A[columns]
        table = self.distance.table(self.A[padded], others, self.dtype)[: len(rows)]
        if is_all:
            table[np.arange(len(rows)), rows] = 0
        else:
            assert columns is not None
            place = np.searchsorted(columns, rows)
            inside = np.flatnonzero(columns[np.minimum(place, len(columns) - 1)] == rows)
            table[inside, place[inside]] = 0
        if not self.is_euclidean:
            check_values(table, "distances")
        return table

    def strips(self, rows: Any) -> list[tuple[Any]]:
        """Parts of `rows` whose tables have a moderate size, all of about the same length."""
        work = 1 if self.distance is None else self.distance.work
        count = len(strips(len(rows), self.n, work))
        if self.is_euclidean:
            count = min(count, -(-len(rows) // MIN_STRIP_ROWS))
        bounds = np.linspace(0, len(rows), count + 1).astype(int)
        return [(rows[start:stop],) for start, stop in itertools.pairwise(bounds)]

    def strips_in_threads(self, function: Callable[[Array], Any], rows: Array) -> Iterator[Any]:
        """Yield ``function(part)`` for strips of `rows`, in their order."""
        with machine.one_blas_thread:
            yield from machine.in_threads(function, self.strips(rows), self.n_jobs)

    def in_threads(self, function: Callable[[Array, Array], Any], rows: Array) -> Iterator[Any]:
        """Yield ``function(part, table)`` for strips of `rows`, in their order."""
        return self.strips_in_threads(lambda part: function(part, self.table(part)), rows)

    def to_scale(self, values: Any) -> Array:
        """Distances in the unit of the rows, as float64."""
        converted: Array = np.array(values, np.float64)
        if self._original is not None:
            self._original.put_to_scale(converted)
        return converted


# Rows in groups, whose distances have lower bounds: groups that are too far from a row are left out of its search.

MIN_ROWS = 8192  # for fewer rows, all are in one group
GROUP_ROWS = 128  # mean number of rows of a group, if there are fewer groups than the maximum
MAX_GROUPS = 128
SAMPLE = 2048  # rows from which the first centers are chosen
CHUNK = 4096  # rows that are compared with all centers at a time


@dataclass(frozen=True)
class RowGroups:
    """Groups of rows that are stored one after another. Without bounds, there is one group of all rows."""

    start: Array  # (g + 1,) first row of each group, and the number of rows
    bounds: Array  # (n, g) lower bounds of the computed distances of each row to all rows of each group

    def __len__(self) -> int:
        return len(self.start) - 1

    def of(self, rows: Array) -> Array:
        """The group of each row."""
        groups: Array = np.searchsorted(self.start, rows, side="right") - 1
        return groups

    def columns(self, is_needed: Array) -> Array:
        """The rows of the groups that are needed (g,), in ascending order."""
        columns: Array = np.flatnonzero(np.repeat(is_needed, np.diff(self.start)))
        return columns


def group_rows(distances: RowDistances) -> tuple[RowDistances, RowGroups, Array]:
    """Sort rows into groups: the sorted rows, their groups, and the index (n,) of each among the original ones.

    Groups are the rows nearest to each of a few rows. Only Euclidean distances have bounds.
    """
    n, distance = len(distances), distances.distance
    if n < MIN_ROWS or not (isinstance(distance, Euclidean) and distance.root):
        return distances, RowGroups(np.array([0, n]), np.zeros((n, 1), distances.dtype)), np.arange(n)
    pivots, nearest = _pivots(distances, min(MAX_GROUPS, n // GROUP_ROWS)), np.empty(n, np.int64)

    def assign(rows: Array) -> None:
        nearest[rows] = distances.table(rows, pivots).argmin(axis=1)

    for _ in distances.strips_in_threads(assign, np.arange(n)):
        pass
    used, group = np.unique(nearest, return_inverse=True)
    order = np.argsort(group, kind="stable")
    start = np.searchsorted(group[order], np.arange(len(used) + 1))
    sorted_rows = distances.sorted(order)
    with machine.one_blas_thread:
        bounds = _bounds(sorted_rows, start)
    return sorted_rows, RowGroups(start, bounds), order


def _pivots(distances: RowDistances, count: int) -> Array:
    """Rows that represent all: half of them far from each other, the others spread over the table."""
    sample = np.unique(np.linspace(0, len(distances) - 1, SAMPLE).astype(np.int64))
    table = distances.table(sample, sample)
    nearest, chosen = table[0].copy(), [0]
    for _ in range(count // 2 - 1):
        chosen.append(int(nearest.argmax()))
        np.minimum(nearest, table[chosen[-1]], out=nearest)
    spread = np.linspace(0, len(sample) - 1, count - len(chosen)).astype(np.int64)
    pivots: Array = sample[np.unique([*chosen, *spread])]
    return pivots


def _bounds(distances: RowDistances, start: Array) -> Array:
    r"""Lower bounds (n, g) of the distances of rows to groups, from their means :math:`m_h`.

    With the unit vector u from the mean of the group of x to :math:`m_h`, the distance to y is at least
    :math:`u^T y - u^T x`. It is also at least :math:`\lVert x - m_h \rVert - \lVert y - m_h \rVert`. The first bound is
    the better one for many columns, because groups are narrow in each direction.
    """
    d, g = distances.A.shape[1], len(start) - 1
    middle = distances.A.mean(axis=0, dtype=np.float64)
    means = np.stack([distances.A[a:b].mean(axis=0, dtype=np.float64) for a, b in pairwise(start)]) - middle
    squares = (means**2).sum(axis=1)
    gap = np.sqrt(np.maximum(squares[:, None] - 2 * means @ means.T + squares, 0.0))

    def products(h: int, first: int, last: int) -> tuple[Array, Array, Array]:
        """Squares of rows of group h, their products with the means, and these less the product with their own."""
        rows = distances.A[first:last] - middle
        along = rows @ means.T
        return (rows**2).sum(axis=1), along, along - along[:, h, None]

    radius, largest = np.zeros(g), 0.0
    parts = [(h, i, min(i + CHUNK, b)) for h, (a, b) in enumerate(pairwise(start)) for i in range(a, b, CHUNK)]
    front = np.full(
        (g, g), np.inf
    )  # by group of y and of x: minimum of the products of y with the difference of the means
    for h, first, last in parts:
        sizes, along, side = products(h, first, last)
        largest = max(largest, float(sizes.max()))
        radius[h] = max(radius[h], np.sqrt(max((sizes - 2 * along[:, h]).max() + squares[h], 0.0)))
        front[h] = np.minimum(front[h], -side.max(axis=0))
    bounds = np.empty((len(distances), g), distances.dtype)
    error = 16.0 * (d + 16) * np.finfo(np.float64).eps * largest
    share = 8.0 * (d + 16) * float(np.finfo(np.float32 if distances.dtype.itemsize == 4 else np.float64).eps)
    with np.errstate(divide="ignore", invalid="ignore"):  # the gap of a group to itself is 0
        for h, first, last in parts:
            sizes, along, side = products(h, first, last)
            by_side = (front[:, h] - side - error) / gap[h]
            to_means = np.sqrt(np.maximum(sizes[:, None] - 2 * along + squares - error, 0.0))
            by_radius = to_means - radius - np.sqrt(error)
            bounds[first:last] = np.fmax(np.fmax(by_side, by_radius), 0.0) * (1 - share)
    return bounds
