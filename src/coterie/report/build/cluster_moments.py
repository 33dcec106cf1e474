"""What rows say of their columns and clusters, by passes over parts of them: they may lie on disk.

Parts follow from the shape of the rows alone, so that the results do not depend on where they lie, nor on threads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from coterie.core.protocols import Chunk
from coterie.core.stats import Stats
from coterie.data.memory import MemorySource
from coterie.data.picking import some
from coterie.engines import as_engine

ROWS: int | None = None  # of a part; None: as the shape of all rows says
TYPICAL = 1000  # rows whose medians sums are taken about

Array = NDArray[Any]
Points = Callable[[Array], Array]  # makes points (m, d) of rows (m, d)


@dataclass(frozen=True)
class Moments:
    """Means and spreads of columns, of all rows and of each cluster, by the values that are there."""

    there: Array  # (d,) the weight of these values
    mean: Array  # (d,)
    variance: Array  # (d,)
    means: Array  # (k, d) NaN where a cluster has no value
    total: float  # sum of squares about the mean
    within: float  # and about the means of clusters


def moments(
    S: Array,
    codes: Array | None = None,
    k: int = 1,
    *,
    holes: bool = False,
    weight: Array | None = None,
    points: Points | None = None,
    threads: int | None = None,
) -> Moments:
    """Of rows, or of the `points` they make, in k clusters (-1: in none); `holes` are left out.

    Sums are about a pivot, the medians of some rows: small numbers, and nothing but zeros for a constant column.
    """
    typical = S[some(len(S), TYPICAL)]
    pivot = _medians(typical.astype(np.float64) if points is None else points(typical))
    sums: _Sums = passed(partial(_sums, pivot, k, holes, points), S, codes, weight, threads)
    counted = np.maximum(sums.there, np.finfo(np.float64).tiny)
    own = sums.sum_x / counted
    there = np.broadcast_to(sums.there.sum(axis=0), pivot.shape)
    mean = sums.sum_x.sum(axis=0) / np.maximum(there, np.finfo(np.float64).tiny)
    squares = np.maximum(sums.square_column - there * mean**2, 0.0)
    within = sums.square_cluster[:k] - (sums.there * own**2).sum(axis=1)[:k]
    return Moments(
        there=there,
        mean=pivot + mean,
        variance=squares / np.maximum(there, np.finfo(np.float64).tiny),
        means=np.where(sums.there > 0, pivot + own, np.nan)[:k],
        total=float(squares.sum()),
        within=max(float(within.sum()), 0.0),
    )


def scatter(S: Array, codes: Array, means: Array, points: Points, A: Array, threads: int | None = None) -> Array:
    """Covariances (k, p, p) of the points of each cluster, seen along the directions A (d, p)."""
    sums: _Scatter = passed(partial(_scatter, means, points, A), S, codes, None, threads)
    return sums.sum_xx / np.maximum(sums.rows, 1)[:, None, None]


def closest(
    S: Array, codes: Array, means: Array, points: Points, count: int, threads: int | None = None
) -> list[list[int]]:
    """The `count` rows of each cluster whose points are nearest to its mean; the first ones of equally near ones."""
    found: _Closest = passed(partial(_closest, means, points, count), S, codes, None, threads)
    return [at[away < np.inf].tolist() for at, away in zip(found.at, found.away, strict=True)]


def extremes(S: Array, points: Points, threads: int | None = None) -> tuple[Array, Array]:
    """The lowest and the highest value of each column of the points."""
    found: _Extremes = passed(partial(_extremes, points), S, None, None, threads)
    return found.low, found.high


def passed(
    step: Callable[[Chunk], Any], S: Array, codes: Array | None, weight: Array | None, threads: int | None
) -> Any:
    """What `step` makes of every part of the rows, added up."""
    source = MemorySource(np.asarray(S), weight, chunk_rows=ROWS, y=codes)
    return as_engine("auto", source, threads).sum(step, source)


@dataclass(frozen=True)
class _Sums(Stats):
    there: Any  # (k + 1, d), or (k + 1, 1) where nothing is missing: weight; the last: of rows in no cluster
    sum_x: Any  # (k + 1, d) about a pivot
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
    """The nearest rows so far; `at` counts from the first row of the part."""

    rows: Any
    at: Any  # (k, count)
    away: Any  # (k, count) rising; infinite where there are fewer rows

    def __add__(self, other: Self) -> Self:
        at, away = np.hstack([self.at, self.rows + other.at]), np.hstack([self.away, other.away])
        order = np.argsort(away, axis=1, kind="stable")[:, : self.at.shape[1]]
        return type(self)(self.rows + other.rows, np.take_along_axis(at, order, 1), np.take_along_axis(away, order, 1))


def _sums(pivot: Array, k: int, holes: bool, points: Points | None, chunk: Chunk) -> _Sums:
    moved = (chunk.X if points is None else points(chunk.X)) - pivot
    n = len(moved)
    w = np.ones(n) if chunk.w is None else chunk.w
    codes = np.zeros(n, np.int64) if chunk.y is None else np.where(chunk.y < 0, k, chunk.y)
    own = _members(codes, k + 1, w)
    there = np.bincount(codes, w, k + 1)[:, None]
    if holes:
        missing = np.isnan(moved)
        there = there - own @ missing
        moved[missing] = 0.0
    sum_x = own @ moved
    np.square(moved, out=moved)
    return _Sums(there, sum_x, w @ moved, np.bincount(codes, w * moved.sum(axis=1), k + 1))


def _scatter(means: Array, points: Points, A: Array, chunk: Chunk) -> _Scatter:
    inside, codes = _inside(chunk)
    seen = (points(chunk.X[inside]) - means[codes]) @ A
    own = _members(codes, len(means), np.ones(len(codes)))
    products = [own @ (seen[:, [i]] * seen) for i in range(seen.shape[1])]
    return _Scatter(np.bincount(codes, minlength=len(means)), np.stack(products, axis=1))


def _closest(means: Array, points: Points, count: int, chunk: Chunk) -> _Closest:
    k, codes = len(means), chunk.y
    away = points(chunk.X)
    away -= means[codes]
    squares = np.square(away, out=away).sum(axis=1)
    order = np.lexsort((squares, codes))
    starts = np.searchsorted(codes[order], np.arange(k + 1))
    places = starts[:-1, None] + np.arange(count)
    here = places < starts[1:, None]
    at = order[np.where(here, places, 0)]
    return _Closest(len(codes), at, np.where(here, squares[at], np.inf))


def _extremes(points: Points, chunk: Chunk) -> _Extremes:
    seen = points(chunk.X)
    return _Extremes(seen.min(axis=0), seen.max(axis=0))


def _inside(chunk: Chunk) -> tuple[Any, Array]:
    """Which rows are in a cluster, and in which."""
    inside = chunk.y >= 0
    return (slice(None), chunk.y) if inside.all() else (inside, chunk.y[inside])


def _members(codes: Array, k: int, w: Array) -> Any:
    """(k, n) the weight of each row in its cluster; a product with it runs over the rows in their order."""
    return sparse.csr_array((w, codes, np.arange(len(codes) + 1)), shape=(len(codes), k)).T


def _medians(X: Array) -> Array:
    """Of the values that are there; 0 where none is."""
    known = ~np.isnan(X)
    middles = [np.median(x[own]) if own.any() else 0.0 for x, own in zip(X.T, known.T, strict=True)]
    return np.array(middles, dtype=np.float64)
