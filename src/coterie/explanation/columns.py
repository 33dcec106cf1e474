"""Columns of a table as rules need them: a sample for the search, and masks of conditions over all rows."""

from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

import numpy as np

from coterie.core.arrays import Array
from coterie.core.frames import microseconds, open_frame
from coterie.errors import InputError
from coterie.explanation.rules import Condition, as_microseconds, has_times

MAX_LEVELS = 200  # a text column with more values in the sample is not categorical


@dataclass(frozen=True)
class Column:
    """One column of the sample."""

    name: str
    values: Array  # (m,) float64 with NaN for missing values; of categories: indices of `levels`, -1 if missing
    levels: tuple[str, ...] | None = None  # None for numbers
    dtype: Any = np.float64  # precision in which thresholds are compared
    is_date: bool = False  # numbers are microseconds since 1970
    has_times: bool = False  # dates are not all whole days


@dataclass(frozen=True)
class ArrayColumns:
    """Columns of an array of numbers."""

    X: Array  # (n, d)
    names: list[str]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Number of columns."""
        return len(self.names)

    def sample(self, rows: Array) -> list[Column]:
        """The columns that rules can use, for some rows."""
        dtype = np.float32 if self.X.dtype == np.float32 else np.float64
        return [Column(name, self.X[rows, j].astype(np.float64), None, dtype) for j, name in enumerate(self.names)]

    def satisfies(self, condition: Condition) -> Array:
        """Whether each row satisfies the condition (n,)."""
        return _satisfies(self.X[:, self.names.index(condition.column)], condition)


@dataclass(frozen=True)
class FrameColumns:
    """Columns of a data frame of any library: numbers and dates; text, categories and booleans are categorical."""

    frame: Any  # of narwhals

    @property
    def n(self) -> int:
        return len(self.frame)

    @property
    def d(self) -> int:
        return len(self.frame.columns)

    def sample(self, rows: Array) -> list[Column]:
        import narwhals.stable.v2 as nw

        columns = []
        for series in self.frame[rows].iter_columns():
            if series.dtype.is_numeric():
                values = series.cast(nw.Float64).to_numpy()
                columns.append(Column(str(series.name), values, None, _frame_precision(series)))
            elif series.dtype in (nw.Date, nw.Datetime):
                values = microseconds(series)
                columns.append(Column(str(series.name), values, is_date=True, has_times=has_times(values)))
            elif series.dtype in (nw.Boolean, nw.String, nw.Categorical, nw.Enum, nw.Object):
                column = _categorical(series)
                columns += [] if column is None else [column]
        return columns

    def satisfies(self, condition: Condition) -> Array:
        import narwhals.stable.v2 as nw

        names = {str(name): name for name in self.frame.columns}
        series = self.frame.get_column(names[condition.column])
        if condition.values and isinstance(condition.values[0], str):
            is_value = _texts(series).is_in(list(condition.values))
            return (is_value & ~series.is_null()).fill_null(False).to_numpy().astype(bool)
        if series.dtype in (nw.Date, nw.Datetime):
            return _satisfies(microseconds(series), condition)
        dtype = nw.Float32 if _frame_precision(series) is np.float32 else nw.Float64
        return _satisfies(series.cast(dtype).to_numpy(), condition)


Columns: TypeAlias = ArrayColumns | FrameColumns  # rows of a table with named columns


def as_columns(X: Any) -> Columns:
    """The columns of an array or a data frame in memory."""
    from scipy import sparse

    from coterie.data import opened
    from coterie.data.frames import is_frame

    if hasattr(X, "__dask_graph__"):
        raise InputError("X is a Dask collection, and rules need rows in memory: pass a sample, such as X.compute().")
    if is_frame(X):
        return FrameColumns(open_frame(X))
    rows = opened(X)
    if sparse.issparse(rows):
        raise InputError("X is sparse, and rules need dense columns: pass some of its columns as an array.")
    names = getattr(rows, "columns", None)
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise InputError(f"X must be a table of numbers or a data frame; got {rows.dtype} of shape {rows.shape}.")
    rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    return ArrayColumns(rows, list(names) if names is not None else [f"column {j}" for j in range(rows.shape[1])])


def _satisfies(x: Array, condition: Condition) -> Array:
    """Whether numbers satisfy a condition; thresholds are compared in the precision of the column."""
    scalar = x.dtype.type if x.dtype.kind == "f" else np.float64
    if condition.values:
        return np.asarray(x == scalar(_as_number(condition.values[0])))
    mask = ~np.isnan(x)
    if condition.lower is not None:
        mask &= x > scalar(_as_number(condition.lower))
    if condition.upper is not None:
        mask &= x <= scalar(_as_number(condition.upper))
    return mask


def _as_number(value: Any) -> Any:
    return as_microseconds(value) if isinstance(value, date) else value


def _frame_precision(series: Any) -> Any:
    import narwhals.stable.v2 as nw

    return np.float32 if series.dtype == nw.Float32 else np.float64


def _texts(series: Any) -> Any:
    import narwhals.stable.v2 as nw

    if series.dtype != nw.Object:
        return series.cast(nw.String)
    texts = [None if value is None else str(value) for value in series]
    return nw.new_series(series.name, texts, nw.String, backend=series.implementation)


def _categorical(series: Any) -> Column | None:
    """A categorical column; None if it has too many values, or just one."""
    is_missing = series.is_null().to_numpy().astype(bool)
    texts = np.asarray(_texts(series).to_numpy(), object)
    texts[is_missing] = ""
    levels, codes = np.unique(texts.astype(str), return_inverse=True)
    present = np.unique(codes[~is_missing])
    if not 2 <= len(present) <= min(MAX_LEVELS, max(2, len(texts) // 2)):
        return None
    index = np.full(len(levels), -1)
    index[present] = np.arange(len(present))
    return Column(str(series.name), np.where(is_missing, -1, index[codes]), tuple(levels[present].tolist()))
