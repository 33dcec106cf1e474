"""From chosen columns to a matrix: missing values, constant columns, scale."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.core.errors import InputError
from coterie.jobs import Missing, Scale
from coterie.jobs.columns import Choice
from coterie.jobs.table import ARRAY, Table
from coterie.report.result import SkippedColumn

CONSTANT = "constant"
NAMED_TO_EXCLUDE = 3

Matrix = NDArray[np.floating]


@dataclass(frozen=True)
class Prepared:
    """The rows and columns that take part.

    `X` is in the table's own units and `scaled` is what the algorithm sees; `kept` marks the rows of the
    table that the rows of both stand for.
    """

    X: Matrix  # (n, d)
    scaled: Matrix  # (n, d)
    kept: NDArray[np.bool_]  # (rows of the table,)
    columns: tuple[str, ...]
    skipped: tuple[SkippedColumn, ...]
    scale: Scale
    missing: str
    warnings: tuple[str, ...]


def prepare(table: Table, choice: Choice, missing: Missing, scale: Scale) -> Prepared:
    """Fill or drop missing values, drop constant columns, scale the rest."""
    X = _matrix(table, choice.used)
    _refuse_infinite(X, choice.used)
    X, kept, treatment = _without_missing(X, choice.used, missing)
    varies = np.ptp(X, axis=0) > 0
    constant = [name for name, varied in zip(choice.used, varies, strict=True) if not varied]
    if not varies.any():
        raise InputError(f"every column is constant ({', '.join(constant)}): all rows are alike.")
    X = X[:, varies]
    columns = tuple(name for name in choice.used if name not in constant)
    scale = _resolved(scale, table)
    scaled, scale_warnings = _scaled(X, columns, scale)
    return Prepared(
        X=X,
        scaled=scaled,
        kept=kept,
        columns=columns,
        skipped=(*choice.skipped, *(SkippedColumn(name, CONSTANT) for name in constant)),
        scale=scale,
        missing=treatment,
        warnings=(*(f'column "{name}" is constant and was dropped.' for name in constant), *scale_warnings),
    )


def _matrix(table: Table, columns: tuple[str, ...]) -> Matrix:
    frame = table.typed.select(columns)
    single = all(kind == pl.Float32 for kind in frame.dtypes)
    numbers = frame.cast(pl.Float32 if single else pl.Float64).fill_null(np.nan)
    return numbers.to_numpy(order="c")


def _refuse_infinite(X: Matrix, columns: tuple[str, ...]) -> None:
    counts = np.isinf(X).sum(axis=0)
    if counts.any():
        raise InputError(
            f"some values are infinite ({_by_column(columns, counts)}).\n"
            f"  Correct them, or --exclude {_to_exclude(columns, counts)}."
        )


def _without_missing(X: Matrix, columns: tuple[str, ...], missing: Missing) -> tuple[Matrix, NDArray[np.bool_], str]:
    absent = np.isnan(X)
    complete = np.asarray(~absent.any(axis=1))
    everything = np.ones(len(X), dtype=bool)
    if complete.all():
        return X, everything, "none"
    if missing == "error":
        raise InputError(_missing_choices(absent, columns))
    if missing == "drop":
        if not complete.any():
            counts = _by_column(columns, absent.sum(axis=0))
            raise InputError(f"no row is complete ({counts}). Try --missing median.")
        return X[complete], complete, f"dropped {_rows(len(X) - int(complete.sum()))}"
    middle = np.nanmean(X, axis=0) if missing == "mean" else np.nanmedian(X, axis=0)
    filled = np.where(absent, middle, X).astype(X.dtype)
    return filled, everything, f"{int(absent.sum()):,} filled with the {missing} of the column"


def _missing_choices(absent: NDArray[np.bool_], columns: tuple[str, ...]) -> str:
    n = len(absent)
    incomplete = int(absent.any(axis=1).sum())
    counts = absent.sum(axis=0)
    return (
        f"{incomplete:,} of {_rows(n)} have missing values ({_by_column(columns, counts)}).\n"
        f"  Choose one: --missing drop (keeps {_rows(n - incomplete)}), --missing median, "
        f"or --exclude {_to_exclude(columns, counts)}."
    )


def _by_column(columns: tuple[str, ...], counts: NDArray[np.integer]) -> str:
    return ", ".join(f"{columns[j]}: {counts[j]:,}" for j in _worst_first(counts))


def _to_exclude(columns: tuple[str, ...], counts: NDArray[np.integer]) -> str:
    worst = [columns[j] for j in _worst_first(counts)]
    return ",".join(worst[:NAMED_TO_EXCLUDE]) + (",…" if len(worst) > NAMED_TO_EXCLUDE else "")


def _worst_first(counts: NDArray[np.integer]) -> list[int]:
    return [j for j in np.argsort(-counts, kind="stable").tolist() if counts[j]]


def _rows(n: int) -> str:
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def _resolved(scale: Scale, table: Table) -> Scale:
    if scale != "auto":
        return scale
    return "none" if table.path.suffix.lower() == ARRAY else "standard"


def _scaled(X: Matrix, columns: tuple[str, ...], scale: Scale) -> tuple[Matrix, tuple[str, ...]]:
    if scale == "none":
        return X, ()
    if scale == "minmax":
        return (X - X.min(axis=0)) / np.ptp(X, axis=0), ()
    deviation = X.std(axis=0, dtype=np.float64)
    if scale == "standard":
        return _standardised(X, X.mean(axis=0, dtype=np.float64), deviation), ()
    low, middle, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    spread = high - low
    warnings = tuple(
        f'half of column "{name}" is one value: it was scaled by its standard deviation.'
        for name, width in zip(columns, spread, strict=True)
        if width == 0
    )
    return _standardised(X, middle, np.where(spread > 0, spread, deviation)), warnings


def _standardised(X: Matrix, middle: NDArray[np.float64], spread: NDArray[np.float64]) -> Matrix:
    return ((X - middle) / spread).astype(X.dtype)
