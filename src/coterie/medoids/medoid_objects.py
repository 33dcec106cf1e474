"""Objects to cluster: rows with a distance, or objects of which only the distances are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.distances.distance import Distance
from coterie.distances.pairwise import as_cross, as_square
from coterie.medoids.distance_table import ComputedDistances, StoredDistances


@stored("medoids.Rows", distance="<distance.*>", A="float K D | bool K D | <series.Series>", numbers="none | real K D")
@dataclass(frozen=True)
class Rows:
    """Rows and the distance between them."""

    distance: Distance
    A: Any  # prepared by the distance
    numbers: Any = None  # (n, d) original rows if they are numeric, otherwise None

    def __len__(self) -> int:
        return len(self.A)

    def table(self, indices: Array) -> ComputedDistances:
        A = self.A[indices]
        return ComputedDistances(self.distance, A, A, np.arange(len(indices)))

    def medoids(self, indices: Array) -> Rows:
        return Rows(self.distance, self.A[indices], None if self.numbers is None else self.numbers[indices])

    def new_rows(self, X: Any, check: Callable[[], None]) -> Rows:
        """New rows, after `check` has compared their columns with those of the fit."""
        rows = self.distance.rows(X)
        check()
        return Rows(self.distance, self.distance.prepare(rows))

    def to(self, medoids: Rows, start: int, stop: int) -> Array:
        """Distances to all medoids."""
        return self.distance.table(self.A[start:stop], medoids.A)


@dataclass(frozen=True)
class DistanceRows:
    """Objects known by their distances (rows) to the objects of the fit (columns)."""

    D: Array

    numbers = None
    distance = None

    def __len__(self) -> int:
        return len(self.D)

    def table(self, indices: Array) -> StoredDistances:
        D = self.D if len(indices) == len(self.D) else np.ascontiguousarray(self.D[np.ix_(indices, indices)])
        return StoredDistances(D, np.arange(len(indices)))

    def medoids(self, indices: Array) -> Columns:
        return Columns(indices, self.D.shape[1])

    def to(self, medoids: Columns, start: int, stop: int) -> Array:
        return self.D[start:stop, medoids.indices]


@stored("medoids.Columns", indices="index<D K", count="size<D>")
@dataclass(frozen=True)
class Columns:
    """Medoids known by their indices among the objects of the fit."""

    indices: Array
    count: int  # number of objects of the fit

    numbers = None

    def new_rows(self, X: Any, check: Callable[[], None]) -> DistanceRows:
        return DistanceRows(as_cross(X, self.count))


def as_objects(X: Any, distance: Distance | None) -> Rows | DistanceRows:
    """Objects of `X` with this distance; without a distance, `X` contains the distances."""
    if distance is None:
        return DistanceRows(as_square(X))
    rows = distance.rows(X)
    distance = distance.fitted(rows)
    return Rows(distance, distance.prepare(rows), rows if isinstance(rows, np.ndarray) and rows.ndim == 2 else None)
