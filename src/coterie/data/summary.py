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
    """How many rows count, and how wide they lie."""

    rows: int  # whose weight is not zero
    variance: np.ndarray[Any, Any]  # (d,)
    unit: float  # a power of two of the size of the spread


@dataclass(frozen=True)
class Moments(Stats):
    rows: Any
    weight: Any
    sum_x: Any  # (d,) about a pivot
    sum_xx: Any  # (d,)


@dataclass(frozen=True)
class Holes(Stats):
    """Values that are not finite, column by column."""

    nan: Any  # (d,)
    infinite: Any  # (d,)


def summarize(source: Source, engine: Engine) -> Summary:
    """Variance in one pass; `InputError` naming the columns if a value is NaN or infinite."""
    first = source.pick([0])
    pivot = kernels.of(first.X, 1).take(first.X, [0])[0].astype(np.float64)
    pivot = np.where(np.isfinite(pivot), pivot, 0.0)
    with np.errstate(all="ignore"):
        sums = engine.sum(partial(_moments, pivot), source)
    if not np.isfinite(sums.sum_xx).all():
        raise InputError(_complaint(source, engine.sum(_holes, source)))
    mean = sums.sum_x / sums.weight
    variance = np.maximum(sums.sum_xx / sums.weight - mean**2, 0.0)
    size = float(np.sqrt(variance.sum()))
    unit = 2.0 ** np.ceil(np.log2(size)) if size > 0 else 1.0
    return Summary(int(sums.rows), variance, float(unit))


def _moments(pivot: np.ndarray[Any, Any], chunk: Chunk) -> Moments:
    rows = chunk.X.shape[0] if chunk.w is None else np.count_nonzero(chunk.w)
    return Moments(rows, *kernels.of(chunk.X, 1).moments(chunk.X, chunk.w, pivot))


def _holes(chunk: Chunk) -> Holes:
    X = chunk.X.toarray() if hasattr(chunk.X, "toarray") else chunk.X
    return Holes(np.isnan(X).sum(axis=0), np.isinf(X).sum(axis=0))


def _complaint(source: Source, holes: Holes) -> str:
    names = getattr(source, "columns", None) or [f"column {j}" for j in range(source.shape[1])]
    for what, counts, remedy in (
        ("NaN", holes.nan, "drop those rows, or fill them in (sklearn.impute)"),
        ("infinity", holes.infinite, "drop those rows, or clip them"),
    ):
        where = np.flatnonzero(counts)
        if len(where):
            found = ", ".join(f"{names[j]} ({int(counts[j])})" for j in where[:5])
            more = f" and {len(where) - 5} more columns" if len(where) > 5 else ""
            return f"Input X contains {what}: {found}{more}. Clustering needs finite numbers: {remedy}"
    return "Input X holds values so large that their squares overflow: divide the columns by their size first"
