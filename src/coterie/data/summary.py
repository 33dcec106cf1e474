"""What is known of the data before the first fit: how many rows count, how wide they lie, and that all is finite."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.errors import InputError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats


class Summary(NamedTuple):
    """How many rows count, and where and how wide they lie."""

    rows: int  # whose weight is not zero
    weight: float  # of all rows
    mean: np.ndarray[Any, Any]  # (d,) of the values that are there
    variance: np.ndarray[Any, Any]  # (d,)
    unit: float  # a power of two of the size of the spread


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
    empty: Any  # rows that are nothing but holes


@dataclass(frozen=True)
class Holes(Stats):
    """Values that are not finite, column by column."""

    nan: Any  # (d,)
    infinite: Any  # (d,)


def summarize(source: Source, engine: Engine, holes: bool = False, to_fit: bool = True) -> Summary:
    """Mean and variance in one pass; `InputError` naming the columns if a value is infinite, or NaN unless `holes`.

    Rows to fit must have a value in every column, be it of one row.
    """
    first = source.pick([0])
    pivot = kernels.of(first.X, 1).take(first.X, [0])[0].astype(np.float64)
    pivot = np.where(np.isfinite(pivot), pivot, 0.0)
    with np.errstate(all="ignore"):
        if holes:
            found = engine.sum(partial(_moments_of_what_is_there, pivot), source)
            sums, weight = found.moments, found.weight
            _check_holes(source, found, to_fit)
        else:
            sums = engine.sum(partial(_moments, pivot), source)
            weight = sums.weight
    if not np.isfinite(sums.sum_xx).all():
        raise InputError(_complaint(source, engine.sum(_holes, source), holes))
    there = np.maximum(sums.weight, np.finfo(np.float64).tiny)
    mean = sums.sum_x / there
    variance = np.maximum(sums.sum_xx / there - mean**2, 0.0)
    size = float(np.sqrt(variance.sum()))
    unit = 2.0 ** np.ceil(np.log2(size)) if size > 0 else 1.0
    return Summary(int(sums.rows), float(weight), pivot + mean, variance, float(unit))


def _moments_of_what_is_there(pivot: np.ndarray[Any, Any], chunk: Chunk) -> Partial:
    X = chunk.X.astype(np.float64) - pivot
    there = ~np.isnan(X)
    w = np.ones(len(X)) if chunk.w is None else chunk.w
    X = np.where(there, X, 0.0)
    moments = Moments(np.count_nonzero(w), w @ there, w @ X, w @ X**2)
    return Partial(moments, w.sum(), np.count_nonzero(w * ~there.any(axis=1)))


def _check_holes(source: Source, found: Partial, to_fit: bool) -> None:
    if found.empty:
        raise InputError(f"{int(found.empty)} rows of X are NaN in every column: drop them, they say nothing")
    nothing = np.flatnonzero(found.moments.weight == 0)
    if to_fit and len(nothing):
        names = ", ".join(_names(source)[j] for j in nothing[:5])
        raise InputError(f"Input X contains columns that are NaN in every row: {names}. Drop them")


def _moments(pivot: np.ndarray[Any, Any], chunk: Chunk) -> Moments:
    rows = chunk.X.shape[0] if chunk.w is None else np.count_nonzero(chunk.w)
    return Moments(rows, *kernels.of(chunk.X, 1).moments(chunk.X, chunk.w, pivot))


def _holes(chunk: Chunk) -> Holes:
    X = chunk.X.toarray() if hasattr(chunk.X, "toarray") else chunk.X
    return Holes(np.isnan(X).sum(axis=0), np.isinf(X).sum(axis=0))


def _names(source: Source) -> list[str]:
    return getattr(source, "columns", None) or [f"column {j}" for j in range(source.shape[1])]


def _complaint(source: Source, holes: Holes, nan_allowed: bool) -> str:
    names = _names(source)
    for what, counts, remedy in (
        (
            "NaN",
            holes.nan * (not nan_allowed),
            "drop those rows, fill them in (sklearn.impute), or work around them (GaussianMixture(missing='ignore'))",
        ),
        ("infinity", holes.infinite, "drop those rows, or clip them"),
    ):
        where = np.flatnonzero(counts)
        if len(where):
            found = ", ".join(f"{names[j]} ({int(counts[j])})" for j in where[:5])
            more = f" and {len(where) - 5} more columns" if len(where) > 5 else ""
            return f"Input X contains {what}: {found}{more}. Clustering needs finite numbers: {remedy}"
    return "Input X holds values so large that their squares overflow: divide the columns by their size first"
