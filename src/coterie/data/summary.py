"""What is known of the data before the first fit: how many rows count, how wide they lie, and that all is finite."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.data.scale import SAFE, WIDEST, is_suspect, scale_of
from coterie.errors import InputError, ScaleError


class Summary(NamedTuple):
    """How many rows count, and where and how wide they lie."""

    rows: int  # whose weight is not zero
    weight: float  # of all rows
    mean: np.ndarray[Any, Any]  # (d,) of the values that are there
    variance: np.ndarray[Any, Any]  # (d,)
    unit: float  # a power of two of the size of the spread
    gaps: int = 0  # values that are missing


@dataclass(frozen=True)
class Moments(Stats):
    rows: Any
    weight: Any  # of all rows, or (d,) of those that have a value
    sum_x: Any  # (d,) about a pivot
    sum_xx: Any  # (d,)


@dataclass(frozen=True)
class Partial(Stats):
    """Moments of rows with holes."""

    moments: Any
    weight: Any  # of all rows
    gaps: Any  # holes
    empty: Any  # rows that are nothing but holes, and count


@dataclass(frozen=True)
class FirstEmpty(Stats):
    """Where the first row that is nothing but holes, and counts, is."""

    rows: Any
    at: Any  # its number; infinite where there is none

    def __add__(self, other: FirstEmpty) -> FirstEmpty:
        return FirstEmpty(self.rows + other.rows, min(self.at, self.rows + other.at))


@dataclass(frozen=True)
class Holes(Stats):
    """Values that are not finite, column by column."""

    nan: Any  # (d,)
    infinite: Any  # (d,)


def summarize(
    source: Source, engine: Engine, allow_missing: bool = False, to_fit: bool = True, rescales: bool = False
) -> Summary:
    """Mean and variance in one pass; `InputError` names columns with infinite values, or NaN unless `allow_missing`.

    Rows to fit must have a value in every column, be it of one row. If squares of them, or their weights, could leave
    the range of floating-point numbers, it raises a `ScaleError`, which tells their scale: for a caller that
    `rescales` them, well before they do.
    """
    first = source.pick([0])
    pivot = kernels.for_centers(first.X, 1).take(first.X, [0])[0].astype(np.float64)
    pivot = np.where(np.isfinite(pivot), pivot, 0.0)
    gaps = 0
    with np.errstate(all="ignore"):
        if allow_missing:
            found = engine.sum(partial(_moments_of_what_is_there, pivot), source)
            sums, weight, gaps = found.moments, found.weight, found.gaps
            _check_holes(source, engine, found, to_fit)
        else:
            sums = engine.sum(partial(_moments, pivot), source)
            weight = sums.weight
    limit = SAFE[source.dtype.itemsize] if rescales else WIDEST
    if to_fit and is_suspect(limit, pivot, weight, sums.sum_xx):
        scale = scale_of(source, engine, limit)
        if scale is not None:
            raise ScaleError(*scale)
    if not np.isfinite(sums.sum_xx).all():
        raise InputError(_complaint(source, engine.sum(_holes, source), allow_missing))
    there = np.maximum(sums.weight, np.finfo(np.float64).tiny)
    mean = sums.sum_x / there
    variance = np.maximum(sums.sum_xx / there - mean**2, 0.0)
    size = float(np.sqrt(variance.sum()))
    unit = 2.0 ** np.ceil(np.log2(size)) if size > 0 else 1.0
    return Summary(int(sums.rows), float(weight), pivot + mean, variance, float(unit), int(gaps))


def check_finite(source: Source, engine: Engine) -> None:
    """`InputError` naming the columns if a value is infinite or NaN; any other value will do."""
    if engine.sum(_not_finite, source):
        raise InputError(_complaint(source, engine.sum(_holes, source), False))


def _not_finite(chunk: Chunk) -> int:
    X = chunk.X.data if hasattr(chunk.X, "indptr") else chunk.X
    return int(X.size) - int(np.count_nonzero(np.isfinite(X)))


def _moments_of_what_is_there(pivot: np.ndarray[Any, Any], chunk: Chunk) -> Partial:
    there = ~np.isnan(chunk.X)
    if there.all():  # the very numbers that rows get which may have no holes
        sums = _moments(pivot, chunk)
        return Partial(replace(sums, weight=np.full(len(pivot), sums.weight)), sums.weight, 0, 0)
    X = np.where(there, chunk.X.astype(np.float64) - pivot, 0.0)
    w = np.ones(len(X)) if chunk.w is None else chunk.w
    moments = Moments(np.count_nonzero(w), w @ there, w @ X, w @ X**2)
    return Partial(moments, w.sum(), there.size - np.count_nonzero(there), np.count_nonzero(_empty(chunk)))


def _empty(chunk: Chunk) -> np.ndarray[Any, Any]:
    """Whether a row is nothing but holes, and counts (n,)."""
    empty: np.ndarray[Any, Any] = np.isnan(chunk.X).all(axis=1)
    return empty if chunk.w is None else empty & (chunk.w > 0)


def _first_empty(chunk: Chunk) -> FirstEmpty:
    empty = _empty(chunk)
    return FirstEmpty(len(empty), int(np.argmax(empty)) if empty.any() else np.inf)


def _check_holes(source: Source, engine: Engine, found: Partial, to_fit: bool) -> None:
    if found.empty:
        many, first = int(found.empty), int(engine.sum(_first_empty, source).at)
        rows, them = ("1 row of X is", "it, it says") if many == 1 else (f"{many} rows of X are", "them, they say")
        where = f"row {first}" if many == 1 else f"the first is row {first}"
        raise InputError(f"{rows} NaN in every column ({where}, counted from 0): drop {them} nothing")
    nothing = np.flatnonzero(found.moments.weight == 0)
    if to_fit and len(nothing):
        names = ", ".join(column_names(source)[j] for j in nothing[:5])
        raise InputError(f"Input X contains columns that are NaN in every row: {names}. Drop them")


def _moments(pivot: np.ndarray[Any, Any], chunk: Chunk) -> Moments:
    rows = chunk.X.shape[0] if chunk.w is None else np.count_nonzero(chunk.w)
    return Moments(rows, *kernels.for_centers(chunk.X, 1).moments(chunk.X, chunk.w, pivot))


def _holes(chunk: Chunk) -> Holes:
    X = chunk.X.toarray() if hasattr(chunk.X, "toarray") else chunk.X
    return Holes(np.isnan(X).sum(axis=0), np.isinf(X).sum(axis=0))


def column_names(source: Source) -> list[str]:
    """Names of the columns, or their numbers."""
    return getattr(source, "columns", None) or [f"column {j}" for j in range(source.shape[1])]


def _complaint(source: Source, holes: Holes, nan_allowed: bool) -> str:
    names = column_names(source)
    for what, counts, remedy in (
        (
            "NaN",
            holes.nan * (not nan_allowed),
            "drop those rows, fill them in (sklearn.impute), or work around them "
            "(KMeans(missing='ignore'), GaussianMixture(missing='ignore'))",
        ),
        ("infinity", holes.infinite, "drop those rows, or clip them"),
    ):
        where = np.flatnonzero(counts)
        if len(where):
            found = ", ".join(f"{names[j]} ({int(counts[j])})" for j in where[:5])
            more = f" and {len(where) - 5} more columns" if len(where) > 5 else ""
            return f"Input X contains {what}: {found}{more}. Clustering needs finite numbers: {remedy}"
    return "Input X holds values so large that their squares overflow: divide the columns by their size first"
