"""Summary of the data before a fit: number of rows, mean and variance, and a check that all values are finite."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.arrays import as_dense, is_sparse
from coterie.core.protocols import Chunk, ClusterEngine, Engine, Source
from coterie.core.scale import UNIT
from coterie.core.stats import FirstRow, Stats
from coterie.data.scale_check import MAX_EXPONENT, SAFE, may_be_unsafe, measure_scale
from coterie.errors import InputError, ScaleError


class Summary(NamedTuple):
    """Moments of the data."""

    rows: int  # number of rows with positive weight
    weight: float  # of all rows
    mean: np.ndarray[Any, Any]  # (d,) of the values that are not missing
    variance: np.ndarray[Any, Any]  # (d,)
    unit: float  # the power of two just above the total standard deviation
    n_missing: int = 0  # number of missing values

    def tolerance(self, tol: float) -> float:
        """Squared movement of all centers at which a fit converges: `tol` times the mean variance of the columns."""
        return float(tol) * float(self.variance.mean())


@dataclass(frozen=True)
class Moments(Stats):
    """Sums of one pass."""

    rows: Any  # number of rows with positive weight
    weight: Any  # of all rows
    present: Any  # weight of the rows with a value: (d,), or a number if none is missing
    sum_x: Any  # (d,) about a pivot
    sum_xx: Any  # (d,)
    n_missing: Any = 0  # missing values
    n_empty: Any = 0  # rows with positive weight of which all values are missing


@dataclass(frozen=True)
class InvalidCounts(Stats):
    """Numbers of values that are not finite, by column."""

    nan: Any  # (d,)
    infinite: Any  # (d,)


def summarize(
    source: Source, engine: Engine, allow_missing: bool = False, to_fit: bool = True, rescales: bool = False,
    allow_empty_columns: bool = False,
) -> Summary:  # fmt: skip
    """Mean and variance in one pass; `InputError` if columns contain infinite values, or NaN unless `allow_missing`.

    For a fit, each column must have a value in at least one row, unless `allow_empty_columns`. If squares of rows, or
    sums of weights, could overflow or underflow, it raises a `ScaleError` with their scale; the limit is lower for a
    caller that `rescales` them. Rows to predict must have squares, whatever rows are beside them.
    """
    if isinstance(engine, ClusterEngine):  # it stores the rows; faults are handled from here on
        engine.place(source)
    pivot = as_dense(source.pick([0]).X)[0].astype(np.float64)
    pivot[~np.isfinite(pivot)] = 0.0
    with np.errstate(all="ignore"):
        sums = engine.sum(partial(_missing_moments if allow_missing else _moments, pivot), source)
    _check_missing(source, engine, sums, to_fit and not allow_empty_columns)
    limit = SAFE[source.dtype.itemsize] if rescales and to_fit else MAX_EXPONENT
    scale = measure_scale(source, engine, limit) if may_be_unsafe(limit, pivot, sums.weight, sums.sum_xx) else UNIT
    if to_fit and any(scale):
        raise ScaleError(*scale)
    if not np.isfinite(sums.sum_xx).all() or scale.rows > 0:
        raise InputError(_invalid_message(source, engine.sum(_count_invalid, source), allow_missing))
    column_weight = np.maximum(sums.present, np.finfo(np.float64).tiny)
    mean = sums.sum_x / column_weight
    variance = np.maximum(sums.sum_xx / column_weight - mean**2, 0.0)
    size = float(np.sqrt(variance.sum()))
    unit = 2.0 ** np.ceil(np.log2(size)) if size > 0 else 1.0
    return Summary(int(sums.rows), float(sums.weight), pivot + mean, variance, float(unit), int(sums.n_missing))


def check_finite(source: Source, engine: Engine) -> None:
    """Raise `InputError` with the names of columns that contain infinite values or NaN."""
    if engine.sum(_count_not_finite, source):
        raise InputError(_invalid_message(source, engine.sum(_count_invalid, source), False))


def _count_not_finite(chunk: Chunk) -> int:
    X = chunk.X.data if is_sparse(chunk.X) else chunk.X
    return int(X.size) - int(np.count_nonzero(np.isfinite(X)))


def _missing_moments(pivot: np.ndarray[Any, Any], chunk: Chunk) -> Moments:
    is_present = ~np.isnan(chunk.X)
    if is_present.all():  # the same bits as for rows that must not have missing values
        return _moments(pivot, chunk)
    X = np.where(is_present, chunk.X.astype(np.float64) - pivot, 0.0)
    w = chunk.weights
    n_missing, n_empty = is_present.size - np.count_nonzero(is_present), np.count_nonzero(_is_empty(chunk))
    return Moments(np.count_nonzero(w), w.sum(), w @ is_present, w @ X, w @ X**2, n_missing, n_empty)


def _is_empty(chunk: Chunk) -> np.ndarray[Any, Any]:
    """Whether all values of a row with positive weight are missing (n,)."""
    is_empty: np.ndarray[Any, Any] = np.isnan(chunk.X).all(axis=1)
    return is_empty if chunk.w is None else is_empty & (chunk.w > 0)


def _first_empty(chunk: Chunk) -> FirstRow:
    return FirstRow.of(_is_empty(chunk))


def _check_missing(source: Source, engine: Engine, result: Moments, needs_values: bool) -> None:
    if result.n_empty:
        n_empty, first = int(result.n_empty), int(engine.sum(_first_empty, source).index)
        rows = f"row {first} of X is" if n_empty == 1 else f"{n_empty} rows of X, the first at index {first}, are"
        raise InputError(f"{rows} NaN in every column: drop {'this row' if n_empty == 1 else 'these rows'}")
    empty_columns = np.flatnonzero(result.present == 0)
    if needs_values and result.n_missing and len(empty_columns):
        names = ", ".join(column_names(source)[j] for j in empty_columns[:5])
        raise InputError(f"Input X contains columns that are NaN in every row: {names}. Drop them")


def _moments(pivot: np.ndarray[Any, Any], chunk: Chunk) -> Moments:
    rows = chunk.X.shape[0] if chunk.w is None else np.count_nonzero(chunk.w)
    weight, sum_x, sum_xx = kernels.for_centers(chunk.X, 1).moments(chunk.X, chunk.w, pivot)
    return Moments(rows, weight, weight, sum_x, sum_xx)


def _count_invalid(chunk: Chunk) -> InvalidCounts:
    X = as_dense(chunk.X)
    return InvalidCounts(np.isnan(X).sum(axis=0), np.isinf(X).sum(axis=0))


def column_names(source: Source) -> list[str]:
    """Names of the columns, or their numbers."""
    return getattr(source, "columns", None) or [f"column {j}" for j in range(source.shape[1])]


def _invalid_message(source: Source, invalid: InvalidCounts, allow_missing: bool) -> str:
    names = column_names(source)
    for kind, counts, remedy in (
        (
            "NaN",
            invalid.nan * (not allow_missing),
            "drop these rows, impute values (sklearn.impute), or ignore them "
            "(KMeans(missing='ignore'), GaussianMixture(missing='ignore'))",
        ),
        ("infinity", invalid.infinite, "drop these rows, or clip the values"),
    ):
        columns = np.flatnonzero(counts)
        if len(columns):
            listed = ", ".join(f"{names[j]} ({int(counts[j])})" for j in columns[:5])
            others = f" and {len(columns) - 5} more columns" if len(columns) > 5 else ""
            return f"Input X contains {kind}: {listed}{others}. Clustering needs finite numbers: {remedy}"
    return "Input X contains values so large that their squares overflow: divide the columns by their size first"
