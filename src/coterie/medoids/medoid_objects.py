"""What is clustered: rows that can be measured, or things of which only the distances are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.stored import stored
from coterie.distances.distance import Distance
from coterie.distances.precomputed import as_cross, as_square
from coterie.medoids.distance_table import Array, Kept, Made


@stored("medoids.Rows", distance="<distance.*>", A="float K D | bool K D | <series.Series>", numbers="none | real K D")
@dataclass(frozen=True)
class Rows:
    """Rows and the distance between them."""

    distance: Distance
    A: Any  # prepared
    numbers: Any = None  # (n, d) as they were given, if they were rows of numbers

    def __len__(self) -> int:
        return len(self.A)

    def table(self, which: Array) -> Made:
        A = self.A[which]
        return Made(self.distance, A, A, np.arange(len(which)))

    def medoids(self, which: Array) -> Rows:
        return Rows(self.distance, self.A[which], None if self.numbers is None else self.numbers[which])

    def others(self, X: Any, check: Callable[[], None]) -> Rows:
        """New rows, once `check` finds their columns to be those of the fit."""
        rows = self.distance.rows(X)
        check()
        return Rows(self.distance, self.distance.prepare(rows))

    def to(self, medoids: Rows, start: int, stop: int) -> Array:
        """Distances to all medoids."""
        A = self.A[start:stop]
        made = np.empty((len(A), len(medoids)), np.result_type(A.dtype, medoids.A.dtype))
        self.distance.between(A, medoids.A, made)
        return made


@dataclass(frozen=True)
class Things:
    """Objects by their distances (rows) to the objects of the fit (columns)."""

    D: Array

    numbers = None
    distance = None

    def __len__(self) -> int:
        return len(self.D)

    def table(self, which: Array) -> Kept:
        D = self.D if len(which) == len(self.D) else np.ascontiguousarray(self.D[np.ix_(which, which)])
        return Kept(D, np.arange(len(which)))

    def medoids(self, which: Array) -> Columns:
        return Columns(which, self.D.shape[1])

    def to(self, medoids: Columns, start: int, stop: int) -> Array:
        return self.D[start:stop, medoids.which]


@stored("medoids.Columns", which="index<D K", count="size<D>")
@dataclass(frozen=True)
class Columns:
    """Medoids by their numbers among the objects of the fit."""

    which: Array
    count: int  # of all those objects

    numbers = None

    def others(self, X: Any, check: Callable[[], None]) -> Things:
        return Things(as_cross(X, self.count))


def as_objects(X: Any, distance: Distance | None) -> Rows | Things:
    """`X` by this distance; without one, `X` is the distances."""
    if distance is None:
        return Things(as_square(X))
    rows = distance.rows(X)
    distance = distance.fitted(rows)
    return Rows(distance, distance.prepare(rows), rows if isinstance(rows, np.ndarray) and rows.ndim == 2 else None)
