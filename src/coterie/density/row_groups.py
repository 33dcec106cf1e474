"""Rows in groups, whose distances have lower bounds: groups that are too far from a row are left out of its search.

Rows are projected to a few directions in which the groups differ most. Distances of projected rows are never larger
than those of the rows, and groups are smaller there, so the triangle inequality gives good bounds for many columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.density.row_distances import RowDistances
from coterie.distances.euclidean import Euclidean

MIN_ROWS = 4096  # for fewer rows, all are in one group
GROUP_ROWS = 128  # mean number of rows of a group, if there are fewer groups than the maximum
MAX_GROUPS = 256
MAX_DIRECTIONS = 32
SAMPLE = 2048  # rows from which the first centers are chosen
CHUNK = 4096  # rows that are projected at a time


@dataclass(frozen=True)
class RowGroups:
    """Groups of rows that are stored one after another. Without bounds, there is one group of all rows."""

    start: Array  # (g + 1,) first row of each group, and the number of rows
    to_center: Array  # (n, g) distance of each projected row to each center
    radius: Array  # (g,) maximum distance of the projected rows of a group to its center
    rounding: float  # maximum relative rounding error of a distance

    def __len__(self) -> int:
        return len(self.radius)

    def of(self, rows: Array) -> Array:
        """The group of each row."""
        groups: Array = np.searchsorted(self.start, rows, side="right") - 1
        return groups

    def lower_bounds(self, rows: Array) -> Array:
        """Lower bounds (m, g) of the computed distances of rows to all rows of each group."""
        error = self.to_center.dtype.type(self.rounding)
        bounds: Array = self.to_center[rows] * (1 - error) ** 2 - self.radius * (1 + error)
        return bounds

    def columns(self, is_needed: Array) -> Array:
        """The rows of the groups that are needed (g,), in ascending order."""
        sizes = np.diff(self.start)
        columns: Array = np.flatnonzero(np.repeat(is_needed, sizes))
        return columns


def group_rows(distances: RowDistances) -> tuple[RowDistances, RowGroups, Array]:
    """Sort rows into groups: the sorted rows, their groups, and the index (n,) of each among the original ones.

    Only Euclidean distances have bounds by projection.
    """
    n, distance = len(distances), distances.distance
    if n < MIN_ROWS or not (isinstance(distance, Euclidean) and distance.root):
        return distances, _one_group(n, distances.dtype), np.arange(n)
    projected, centers = _project(distances, min(MAX_GROUPS, n // GROUP_ROWS))
    if projected.shape[1] == 0:
        return distances, _one_group(n, distances.dtype), np.arange(n)
    used, group = np.unique(_to_centers(projected, centers, distances.dtype).argmin(axis=1), return_inverse=True)
    order = np.argsort(group, kind="stable")
    projected, group = projected[order], group[order]
    start = np.searchsorted(group, np.arange(len(used) + 1))
    means = np.add.reduceat(projected, start[:-1]) / np.diff(start)[:, None]
    to_center = _to_centers(projected, means, distances.dtype)
    radius = np.maximum.reduceat(to_center[np.arange(n), group], start[:-1])
    rounding = (
        4.0
        * (distances.A.shape[1] + 16)
        * float(np.finfo(np.float32 if distances.dtype.itemsize == 4 else np.float64).eps)
    )
    return distances.sorted(order), RowGroups(start, to_center, radius, rounding), order


def _one_group(n: int, dtype: Any) -> RowGroups:
    return RowGroups(np.array([0, n]), np.zeros((n, 1), dtype), np.full(1, np.inf, dtype), 0.0)


def _project(distances: RowDistances, count: int) -> tuple[Array, Array]:
    """Rows (n, q) and first centers (c, q) in the principal directions of the centers; q = 0 if all are equal."""
    centers = distances.A[_pivots(distances, count)].astype(np.float64)
    middle = centers.mean(axis=0)
    centers -= middle
    values, vectors = np.linalg.eigh(centers @ centers.T)
    is_large = values > values[-1] * 1e-6
    is_large[:-MAX_DIRECTIONS] = False
    basis = np.linalg.qr(centers.T @ vectors[:, is_large])[0]
    projected = np.empty((len(distances), basis.shape[1]))
    for first in range(0, len(projected), CHUNK):
        projected[first : first + CHUNK] = (distances.A[first : first + CHUNK] - middle) @ basis
    return projected, centers @ basis


def _to_centers(rows: Array, centers: Array, dtype: Any) -> Array:
    """Distances of projected rows to centers (n, c)."""
    from coterie.kernels.cpu.pairwise import differences

    table = np.empty((len(rows), len(centers)))
    differences(rows, centers, 1, 1.0, table)
    return table.astype(dtype)


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
