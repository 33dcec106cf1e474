"""Gower distance, for tables with numeric and categorical columns and with missing values."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from coterie import kernels
from coterie.core.arguments import as_floats
from coterie.core.arrays import Array
from coterie.core.frames import is_missing, microseconds, open_frame
from coterie.core.stored import stored
from coterie.data import opened
from coterie.data.frames import is_frame
from coterie.distances.distance import Distance
from coterie.distances.euclidean import as_column_weights, check_common_columns
from coterie.errors import InputError

DAY = 86_400e6  # microseconds


class Mixed(NamedTuple):
    """The numeric and the categorical columns of a table."""

    numbers: Array  # (n, a), NaN for missing values; float32 if all numeric columns are
    categories: list[list[Any]]  # b columns of n values, None for missing values
    names: list[str]  # of all a + b columns
    order: list[int]  # position of each column in the table


def _is_consistent(distance: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether every category has a code, and every column a weight."""
    low, ranges, codes, weights = (distance[name] for name in ("low", "range_", "codes", "weights"))
    if low is None:
        return all(part is None for part in (ranges, codes, weights))
    are_codes = all(isinstance(column, dict) and all(type(c) is float for c in column.values()) for column in codes)
    return bool(are_codes and len(weights) == len(low) + len(codes) and (ranges >= 0).all())


@stored(
    "distance.Gower",
    check=_is_consistent,
    low="none | real a",
    range_="none | real a",
    codes="none | list *",
    weights="none | real *",
)
@dataclass(frozen=True)
class Gower(Distance):
    r"""Gower distance :math:`\sum_j w_j \delta_j(x, y) / \sum_j w_j` over the columns without missing values [1]_.

    For numeric columns :math:`\delta_j = |x_j - y_j| / \mathrm{range}_j`, for categorical columns 0 or 1. Text,
    categorical and boolean columns of a data frame are categorical; dates and durations are numbers. All columns of an
    array are numeric. NaN and null are missing values. Two rows without a common column raise an error. With missing
    values the triangle inequality does not hold.

    .. [1] Gower (1971), A general coefficient of similarity and some of its properties, Biometrics 27.
    """

    w: Any = None
    low: Any = None  # (a,) minimum of each numeric column, after `fitted`
    range_: Any = None  # (a,) range of each numeric column
    codes: Any = None  # for each categorical column, a dict from category to number
    weights: Any = None  # (a + b,) numeric columns first

    name = "gower"
    triangle = False
    definite = False

    def rows(self, X: Any, name: str = "X") -> Mixed:
        X = opened(X)
        return _from_frame(X) if is_frame(X) else _from_array(X, name)

    def fitted(self, X: Mixed, Y: Any = None) -> Self:
        tables = [X] if Y is None else [X, Y]
        numbers = np.concatenate([table.numbers for table in tables])
        is_empty = np.isnan(numbers).all(axis=0)
        if is_empty.any():
            raise InputError(f"column {X.names[int(is_empty.argmax())]} has no value in any row: drop it")
        low = np.nanmin(numbers, axis=0).astype(np.float64)
        codes = [
            {
                value: float(code)
                for code, value in enumerate(dict.fromkeys(v for column in columns for v in column if v is not None))
            }
            for columns in zip(*(table.categories for table in tables), strict=True)
        ]
        w = as_column_weights(self.w, len(X.order))[X.order]
        with np.errstate(over="ignore"):
            range_ = np.nanmax(numbers, axis=0) - low
        if np.isinf(range_).any():
            column = X.names[int(np.isinf(range_).argmax())]
            raise InputError(f"{column} has values whose differences overflow: divide this column by 2 or more")
        return replace(self, low=low, range_=range_, codes=codes, weights=w)

    def prepare(self, X: Mixed) -> Array:
        counts, expected = (X.numbers.shape[1], len(X.categories)), (len(self.low), len(self.codes))
        if counts != expected:
            raise InputError(
                f"X has {counts[0]} numeric and {counts[1]} categorical columns, but the fit had {expected[0]} and "
                f"{expected[1]}: pass a data frame with the columns of the fit"
            )
        units = np.where(self.range_ > 0, self.range_, 1.0)
        codes = [
            [np.nan if value is None else codes.get(value, -1.0) for value in column]
            for codes, column in zip(self.codes, X.categories, strict=True)
        ]
        numbers = (X.numbers - self.low) / units
        rows = np.column_stack([numbers, *codes]) if codes else numbers
        return np.ascontiguousarray(rows, X.numbers.dtype)  # sums of plain kernels depend on the order in memory

    def between(self, A: Array, B: Array, out: Array) -> None:
        kernels.select("pairwise", A, B).gower(A, B, self.weights, len(self.low), out)
        check_common_columns(out)


def _from_array(X: Any, name: str) -> Mixed:
    try:
        values = np.asarray(X)
        is_float32 = values.dtype.newbyteorder("=") == np.float32
        numbers = np.asarray(values, dtype=np.float32) if is_float32 else as_floats(values)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} contains values that are not real numbers: pass a data frame, whose columns have types"
        ) from None
    if numbers.ndim != 2:
        raise InputError(f"{name} must have two dimensions, rows and columns; its shape is {numbers.shape}")
    d = numbers.shape[1]
    return _checked(Mixed(numbers, [], [f"column {j}" for j in range(d)], list(range(d))))


def _from_frame(X: Any) -> Mixed:
    import narwhals.stable.v2 as nw

    table = open_frame(X)
    columns = list(table.iter_columns())
    is_category = [_is_category(column) for column in columns]
    order = sorted(range(len(columns)), key=lambda j: is_category[j])
    columns = [columns[j] for j in order]
    numeric = columns[: len(columns) - sum(is_category)]
    dtype = np.float32 if numeric and all(column.dtype == nw.Float32 for column in numeric) else np.float64
    numbers = np.empty((len(table), len(numeric)), dtype)
    for j, column in enumerate(numeric):
        numbers[:, j] = _as_numbers(column)
    categories = [[None if is_missing(value) else value for value in c.to_list()] for c in columns[len(numeric) :]]
    return _checked(Mixed(numbers, categories, [table.columns[j] for j in order], order))


def _is_category(column: Any) -> bool:
    """Whether a column is compared by equality; an error if its type is not supported."""
    import narwhals.stable.v2 as nw

    kind = column.dtype
    if kind.is_numeric() or kind in (nw.Date, nw.Datetime, nw.Duration):
        return False
    is_category = kind in (nw.String, nw.Categorical, nw.Enum, nw.Boolean, nw.Object)
    if not is_category or not all(isinstance(value, Hashable) for value in column.to_list()):
        raise InputError(
            f"column {column.name!r} ({kind}) is neither numbers, dates nor categories: convert it to one of these, or "
            "leave it out"
        )
    return True


def _as_numbers(column: Any) -> Array:
    """Numbers, days since 1970, or days of durations."""
    import narwhals.stable.v2 as nw

    if column.dtype.is_numeric():
        return column.cast(nw.Float32 if column.dtype == nw.Float32 else nw.Float64).to_numpy()
    if column.dtype == nw.Duration:
        spans = column.dt.total_microseconds().cast(nw.Float64).to_numpy()
        return np.where(column.is_null().to_numpy().astype(bool), np.nan, spans) / DAY
    return microseconds(column) / DAY


def _checked(table: Mixed) -> Mixed:
    infinite = np.isinf(table.numbers).any(axis=0)
    if infinite.any():
        column = table.names[int(infinite.argmax())]
        raise InputError(f"column {column} contains infinity: clip the values, or drop these rows")
    return table
