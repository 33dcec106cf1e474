"""Data frames of any library in memory, as narwhals frames."""

import sys
from decimal import Decimal
from typing import Any

import numpy as np

from coterie.errors import InputError

NUMBERS = (int, float, Decimal, np.integer, np.floating)  # of cells; `bool` is an `int`, but not a number


def open_frame(X: Any) -> Any:
    """A narwhals frame of `X`, whose names of columns are text.

    Columns of pandas with the type object are numbers if all of their cells are.
    """
    import narwhals.stable.v2 as nw

    check_columns(X)
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        X = pyarrow.Table.from_batches([X])
    if hasattr(X, "set_axis") and not all(isinstance(name, str) for name in X.columns):
        X = X.set_axis([str(name) for name in X.columns], axis=1)
    try:
        table = nw.from_native(X, eager_only=True)
    except TypeError:
        raise InputError(
            f"X must be a pandas, Polars or Arrow table; got {type(X).__name__}: read files with "
            "polars.read_parquet or similar, and call .collect() on a LazyFrame"
        ) from None
    objects = [column for column in table.iter_columns() if column.dtype == nw.Object]
    numeric = [numbers for column in objects if (numbers := _as_numbers(column)) is not None]
    return table.with_columns(*numeric) if numeric else table


def _as_numbers(column: Any) -> Any:
    """The column as float64, if each of its cells is a number or missing; otherwise None."""
    import narwhals.stable.v2 as nw

    cells = [None if is_missing(cell) else cell for cell in column.to_list()]
    present = [cell for cell in cells if cell is not None]
    if not present or not all(isinstance(cell, NUMBERS) and not isinstance(cell, bool) for cell in present):
        return None
    values = [np.nan if cell is None else float(cell) for cell in cells]
    return nw.new_series(column.name, values, nw.Float64, backend=column.implementation)


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or NA."""
    if cell is None or type(cell).__name__ == "NAType":  # NA of pandas has no truth value
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):  # such as an array
        return False


def check_columns(X: Any) -> None:
    """Raise an error if `X` is a series, or if two columns have the same name."""
    if hasattr(X, "to_frame"):
        raise InputError("X is a series, but a table is expected: pass X.to_frame()")
    names = [str(name) for name in getattr(X, "column_names", getattr(X, "columns", []))]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise InputError(
            f"X has more than one column called {', '.join(map(repr, duplicates))}: rename or drop the others"
        )


def microseconds(series: Any) -> np.ndarray[Any, Any]:
    """Microseconds since 1970 of a series of dates of narwhals (n,), NaN for missing ones; time zones are dropped."""
    import narwhals.stable.v2 as nw

    local = series if series.dtype == nw.Date else series.dt.replace_time_zone(None)
    values = local.cast(nw.Datetime("us")).dt.timestamp("us").cast(nw.Float64).to_numpy()
    return np.where(series.is_null().to_numpy().astype(bool), np.nan, values)
