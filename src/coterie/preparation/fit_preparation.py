"""Fit a preparation to a table: missing values, constant columns, categories and scales."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie.algorithms import Algorithm
from coterie.core.formatting import count
from coterie.core.progress import Callback, silent
from coterie.data.tables.reader import Table
from coterie.errors import InputError, ParameterError
from coterie.preparation import DUPLICATE_SHARE, Missing, PreparationOptions, Scale, SkippedColumn
from coterie.preparation.column_selection import ColumnSelection, nearly_numeric_warnings, select_columns
from coterie.preparation.preparation import Preparation, PreparedRows, RawRows
from coterie.preparation.scaling import Matrix, Vector, blocks, extremes, fill_rows, fit_scale, means, quantiles

CONSTANT = "constant"


@dataclass(frozen=True)
class PreparedTable:
    """Rows for an algorithm, and the preparation that was fitted."""

    rows: PreparedRows
    preparation: Preparation
    weight: NDArray[np.float64] | None  # (n,)
    skipped: tuple[SkippedColumn, ...]
    warnings: tuple[str, ...]


def prepare(table: Table, options: PreparationOptions, method: Algorithm, callback: Callback = silent) -> PreparedTable:
    """Select columns, fit a preparation for `method`, and apply it."""
    _check_missing(options.missing, method)
    scale = _resolve_scale(options.scale, table, method)
    selection = select_columns(table, options, mixed=method.mixed)
    unscaled = _unscaled(table, selection, options.missing, method)
    raw = unscaled.read_rows(table, callback)
    weight = None if options.weight is None else row_weights(table, options.weight, raw.row_mask)
    filled, raw = _fill(unscaled, raw, weight)
    if len(raw.X) == 1:
        raise InputError(f"{table.name} has only one row to cluster: clustering needs at least two rows.")
    varying, raw, constant = _drop_constant(filled, raw, table, weight)
    shift, spread, no_range = fit_scale(raw.X[:, : len(varying.numbers)], scale, weight)
    fitted = replace(varying, scale=scale, shift=tuple(shift.tolist()), spread=tuple(spread.tolist()))
    rows = fitted.finish(table, raw)
    equal_quartiles = [varying.numbers[j] for j in no_range]
    return PreparedTable(
        rows=rows,
        preparation=fitted,
        weight=weight,
        skipped=(*selection.skipped, *(SkippedColumn(name, CONSTANT) for name in constant)),
        warnings=(
            *nearly_numeric_warnings(table, selection.skipped),
            *(f'column "{name}" is constant and was dropped.' for name in constant),
            *(
                f'half of column "{name}" is one value: it was scaled by its standard deviation.'
                for name in equal_quartiles
            ),
            *_duplicate_warnings(rows.X),
        ),
    )


def row_weights(table: Table, name: str, row_mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights of the rows in `row_mask`."""
    column = table.column(name)
    if not column.dtype.is_numeric():
        raise InputError(f'column "{name}" is not numeric: a weight is a number of at least 0.')
    weights = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
    invalid = int((~(weights >= 0) | np.isinf(weights)).sum())
    if invalid:
        raise InputError(f'{count(invalid)} have no weight in column "{name}": a weight is a number of at least 0.')
    weights = weights[row_mask]
    if not weights.any():
        raise InputError(f'column "{name}" is 0 in every row that is used: at least one weight must be positive.')
    return weights


def _check_missing(missing: Missing, method: Algorithm) -> None:
    if missing == "ignore" and not method.handles_missing:
        raise ParameterError(f"--missing ignore is not for {method.title}: use drop, mean or median.")
    if missing in ("mean", "median") and (method.mixed or method.series):  # series may have different lengths
        other = "drop or ignore" if method.handles_missing else "drop"
        raise ParameterError(f"--missing {missing} is not for {method.title}: use {other}.")


def _resolve_scale(scale: Scale, table: Table, method: Algorithm) -> Scale:
    if scale == "auto":
        return "none" if table.is_array or method.mixed or method.series else "standard"
    if (method.mixed or method.series) and scale != "none":
        raise ParameterError(f"--scale {scale} is not for {method.title}: use none.")
    return scale


def _unscaled(table: Table, selection: ColumnSelection, missing: Missing, method: Algorithm) -> Preparation:
    """A preparation that leaves numbers as they are."""
    dtypes = [table.schema[name] for name in selection.numbers]
    return Preparation(
        selection.numbers,
        {
            name: tuple(sorted(table.column(name).cast(pl.String).drop_nulls().unique().to_list()))
            for name in selection.categories
        },
        missing,
        fill=(),
        scale="none",
        shift=(0.0,) * len(selection.numbers),
        spread=(1.0,) * len(selection.numbers),
        single=bool(dtypes) and all(dtype == pl.Float32 for dtype in dtypes),
        mixed=method.mixed,
        series=method.series,
    )


def _fill(preparation: Preparation, raw: RawRows, weight: Vector | None) -> tuple[Preparation, RawRows]:
    """Fill missing numbers with the mean or median of their column."""
    numbers = raw.X[:, : len(preparation.numbers)]
    if preparation.missing == "mean":
        values = means(numbers, numbers.dtype, weight)
    elif preparation.missing == "median":
        values = quantiles(numbers, [0.5], weight)[0].astype(numbers.dtype)
    else:
        return preparation, raw
    fill_rows(numbers, values)
    return replace(preparation, fill=tuple(values.tolist())), replace(raw, has_missing=False)


def _drop_constant(
    preparation: Preparation, raw: RawRows, table: Table, weight: Vector | None
) -> tuple[Preparation, RawRows, list[str]]:
    """Drop constant columns, except of series; also return their names."""
    n_numbers = len(preparation.numbers)
    if preparation.series or n_numbers == 0:
        return preparation, raw, []
    low, high = extremes(raw.X[:, :n_numbers], weight)
    constant = [name for name, same in zip(preparation.numbers, low >= high, strict=True) if same]
    if len(constant) == n_numbers and not preparation.categories:
        raise InputError(f"every column is constant ({', '.join(constant)}): all rows are equal.")
    if not constant:
        return preparation, raw, []
    varying = np.flatnonzero(low < high)
    reduced = replace(
        preparation,
        numbers=tuple(preparation.numbers[j] for j in varying),
        fill=tuple(preparation.fill[j] for j in varying) if preparation.fill else (),
        shift=(0.0,) * len(varying),
        spread=(1.0,) * len(varying),
    )
    columns = np.concatenate([varying, np.arange(n_numbers, raw.X.shape[1])])
    X = table.allocate((len(raw.X), len(columns)), raw.X.dtype)
    for old, new in zip(blocks(raw.X), blocks(X, like=raw.X), strict=True):
        new[:] = old[:, columns]
    return reduced, replace(raw, X=X), constant


def _duplicate_warnings(X: Matrix) -> tuple[str, ...]:
    hashes = pl.concat([pl.from_numpy(block).hash_rows() for block in blocks(X)])
    n = len(hashes)
    duplicates = n - hashes.n_unique()
    if duplicates / n <= DUPLICATE_SHARE:
        return ()
    return (
        f"{duplicates:,} of {count(n)} ({duplicates / n:.1%}) are duplicates of an earlier row in the columns "
        "used. They pull centers towards them, and may look like clusters. Drop them if they are copies by mistake.",
    )
