"""Moments of columns and clusters, by passes over parts of the rows, which may be on disk.

Parts depend on the shape of the rows alone, so that results do not depend on where rows are stored, nor on threads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from coterie.core.arrays import Array
from coterie.core.protocols import Chunk
from coterie.core.stats import Stats
from coterie.data.memory import MemorySource
from coterie.data.row_sample import sample_rows
from coterie.engines import as_engine
from coterie.kernels.membership import membership
from coterie.preparation.fit_preparation import PreparedTable

ROWS: int | None = None  # rows of a part; None: depends on the shape
SMALLEST = 2.0**-900  # sum of squares of which none is too small; also that of a constant column is smaller
PIVOT_ROWS = 1000  # rows whose medians are the pivot of the sums

Points = Callable[[Array], Array]  # converts rows (m, d) to points (m, d)


@dataclass(frozen=True)
class Moments:
    """Means and standard deviations of columns, and means of clusters, of the values that are not missing."""

    present: Array  # (d,) weight of the values that are not missing
    mean: Array  # (d,)
    deviation: Array  # (d,) standard deviation
    means: Array  # (k, d) NaN where a cluster has no value
    total: float  # sum of squares about the mean
    within: float  # sum of squares about the means of clusters


def moments(
    X: Array, codes: Array | None = None, k: int = 1, *, has_missing: bool = False, weight: Array | None = None,
    points: Points | None = None, threads: int | None = None,
) -> Moments:  # fmt: skip
    """Moments of rows, or of their `points`, in k clusters (code -1: none); missing values are ignored.

    Sums are taken about a pivot, the medians of some rows: numbers are small, and a constant column has only zeros.
    """
    sample = X[sample_rows(len(X), PIVOT_ROWS)]
    columns = (sample.astype(np.float64) if points is None else points(sample)).T
    pivot = np.array([np.nanmedian(x) if not np.isnan(x).all() else 0.0 for x in columns], dtype=np.float64)

    def sums_in(unit: Array) -> _Sums:
        with np.errstate(over="ignore", invalid="ignore"):
            result: _Sums = _sum_over_rows(
                partial(_sums, pivot, unit, k, has_missing, points), X, codes, weight, threads
            )
        return result

    unit = np.ones(len(pivot))
    sums = sums_in(unit)
    if not np.isfinite(sums.square_column).all() or (sums.square_column < SMALLEST).any():
        largest = np.maximum(*np.abs(extremes(X, points or np.asarray, threads)))
        unit = 2.0 ** np.minimum(np.frexp(np.nan_to_num(largest))[1], 1023)
        sums = sums_in(unit)
    cluster_means = sums.sum_x / np.maximum(sums.present, np.finfo(np.float64).tiny)
    present = np.broadcast_to(sums.present.sum(axis=0), pivot.shape)
    divisor = np.maximum(present, np.finfo(np.float64).tiny)
    mean = sums.sum_x.sum(axis=0) / divisor
    squares = np.maximum(sums.square_column - present * mean**2, 0.0)
    within = sums.square_cluster[:k] - (sums.present * cluster_means**2).sum(axis=1)[:k]
    return Moments(
        present=present,
        mean=pivot + mean * unit,
        deviation=np.sqrt(squares / divisor) * unit,
        means=np.where(sums.present > 0, pivot + cluster_means * unit, np.nan)[:k],
        total=float(squares.sum()),
        within=max(float(within.sum()), 0.0),
    )


def observed_moments(
    prepared: PreparedTable, labels: Array, k: int, threads: int | None = None
) -> tuple[Moments, Array]:
    """Moments in the units of the table, and differences of clusters from all rows in standard deviations (k, d).

    Missing values are left out, also if they were filled. The differences in a transformed column are those of the
    transformed values.
    """
    compute = partial(
        moments, prepared.observed, labels, k, has_missing=prepared.has_missing, weight=prepared.weight, threads=threads
    )
    in_units = transformed = compute()
    if prepared.preparation.transforms:
        transformed = compute(points=prepared.preparation.transformed_points)
    deviation = np.broadcast_to(transformed.deviation, transformed.means.shape)
    differences = np.zeros_like(transformed.means)
    np.divide(transformed.means - transformed.mean, deviation, out=differences, where=deviation > 0)
    return in_units, np.nan_to_num(differences)


def scatter(X: Array, codes: Array, means: Array, points: Points, A: Array, threads: int | None = None) -> Array:
    """Covariances (k, p, p) of the points of each cluster, projected on the directions A (d, p)."""
    sums: _Scatter = _sum_over_rows(partial(_scatter, means, points, A), X, codes, None, threads)
    return sums.sum_xx / np.maximum(sums.rows, 1)[:, None, None]


def closest(
    X: Array, codes: Array, means: Array, points: Points, count: int, threads: int | None = None
) -> list[list[int]]:
    """The `count` rows of each cluster that are nearest to its mean; of equally near rows the first."""
    result: _Closest = _sum_over_rows(partial(_closest, means, points, count), X, codes, None, threads)
    return [rows[distances < np.inf].tolist() for rows, distances in zip(result.indices, result.distances, strict=True)]


def extremes(X: Array, points: Points, threads: int | None = None) -> tuple[Array, Array]:
    """Minimum and maximum of each column of the points."""
    result: _Extremes = _sum_over_rows(partial(_extremes, points), X, None, None, threads)
    return result.low, result.high


def _sum_over_rows(
    step: Callable[[Chunk], Any], X: Array, codes: Array | None, weight: Array | None, threads: int | None
) -> Any:
    """The sum of `step` over all parts of the rows."""
    source = MemorySource(np.asarray(X), weight, chunk_rows=ROWS, y=codes)
    return as_engine("auto", source, threads).sum(step, source)


@dataclass(frozen=True)
class _Sums(Stats):
    present: Any  # (k + 1, d), or (k + 1, 1) without missing values: weight; the last row is for code -1
    sum_x: Any  # (k + 1, d) about the pivot
    square_column: Any  # (d,)
    square_cluster: Any  # (k + 1,)


@dataclass(frozen=True)
class _Scatter(Stats):
    rows: Any  # (k,)
    sum_xx: Any  # (k, p, p) about means


@dataclass(frozen=True)
class _Extremes(Stats):
    low: Any  # (p,)
    high: Any  # (p,)

    def __add__(self, other: Self) -> Self:
        return type(self)(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


@dataclass(frozen=True)
class _Closest(Stats):
    """The nearest rows so far; `indices` count from the first row of the part."""

    rows: Any
    indices: Any  # (k, count)
    distances: Any  # (k, count) squared, ascending; infinite where there are fewer rows

    def __add__(self, other: Self) -> Self:
        indices = np.hstack([self.indices, self.rows + other.indices])
        distances = np.hstack([self.distances, other.distances])
        order = np.argsort(distances, axis=1, kind="stable")[:, : self.indices.shape[1]]
        nearest = np.take_along_axis(indices, order, 1), np.take_along_axis(distances, order, 1)
        return type(self)(self.rows + other.rows, *nearest)


def _sums(pivot: Array, unit: Array, k: int, has_missing: bool, points: Points | None, chunk: Chunk) -> _Sums:
    """Sums of the differences from the pivot, in units in which their squares do not overflow."""
    moved = ((chunk.X if points is None else points(chunk.X)) - pivot) / unit
    n = len(moved)
    w = np.ones(n) if chunk.w is None else chunk.w
    codes = np.zeros(n, np.int64) if chunk.y is None else np.where(chunk.y < 0, k, chunk.y)
    members = membership(codes, k + 1, w)
    present = np.bincount(codes, w, k + 1)[:, None]
    if has_missing:
        is_missing = np.isnan(moved)
        present = present - members @ is_missing
        moved[is_missing] = 0.0
    sum_x = members @ moved
    np.square(moved, out=moved)
    return _Sums(present, sum_x, w @ moved, np.bincount(codes, w * moved.sum(axis=1), k + 1))


def _scatter(means: Array, points: Points, A: Array, chunk: Chunk) -> _Scatter:
    is_inside = chunk.y >= 0
    inside, codes = (slice(None), chunk.y) if is_inside.all() else (is_inside, chunk.y[is_inside])
    projected = (points(chunk.X[inside]) - means[codes]) @ A
    members = membership(codes, len(means))
    with np.errstate(over="ignore"):  # an ellipse of which the units have no number is not drawn
        products = [members @ (projected[:, [i]] * projected) for i in range(projected.shape[1])]
    return _Scatter(np.bincount(codes, minlength=len(means)), np.stack(products, axis=1))


def _closest(means: Array, points: Points, count: int, chunk: Chunk) -> _Closest:
    k, codes = len(means), chunk.y
    differences = points(chunk.X)
    differences -= means[codes]
    squares = np.square(differences, out=differences).sum(axis=1)
    order = np.lexsort((squares, codes))
    starts = np.searchsorted(codes[order], np.arange(k + 1))
    positions = starts[:-1, None] + np.arange(count)
    exists = positions < starts[1:, None]
    indices = order[np.where(exists, positions, 0)]
    return _Closest(len(codes), indices, np.where(exists, squares[indices], np.inf))


def _extremes(points: Points, chunk: Chunk) -> _Extremes:
    values = points(chunk.X)
    return _Extremes(np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0))
