"""Distances of rows to all rows of a fit, a few rows at a time."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.distances.distance import Distance, check_symmetric
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import strips
from coterie.distances.precomputed import check_values, put_symmetric

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
