"""Tables of mixed columns: numbers by range, categories by equality, holes left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from coterie import kernels
from coterie.core.arguments import as_floats
from coterie.core.errors import InputError
from coterie.core.stored import stored
from coterie.data import opened
from coterie.data.frames import is_frame
from coterie.distances.distance import Array, Distance
from coterie.distances.euclidean import as_column_weights


class Mixed(NamedTuple):
    """A table by kind of column."""

    numbers: Array  # (n, a), NaN where there is none; float32 if all of them are given so
    categories: list[list[Any]]  # b columns of n values, None where there is none
    names: list[str]  # a + b of them
    order: list[int]  # where each of them stood in the table


def _is_consistent(distance: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether every category has a number, and every column a weight."""
    low, ranges, codes, weights = (distance[name] for name in ("low", "range_", "codes", "weights"))
    if low is None:
        return all(part is None for part in (ranges, codes, weights))
    numbered = all(isinstance(column, dict) and all(type(c) is float for c in column.values()) for column in codes)
    return bool(numbered and len(weights) == len(low) + len(codes) and (ranges >= 0).all())


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
    r""":math:`\sum_j w_j \delta_j(x, y) / \sum_j w_j` over the columns both rows have a value in [1]_.

    For numbers :math:`\delta_j = |x_j - y_j| / \mathrm{range}_j`, for categories 0 or 1. Text, categorical and boolean
    columns of a frame are categories; of an array all columns are numbers. NaN and null are values that are missing;
    two rows without any column in common have no distance, which is an error. Missing values break the triangle
    inequality.

    .. [1] Gower (1971), A general coefficient of similarity and some of its properties, Biometrics 27.
    """

    w: Any = None
    low: Any = None  # (a,) least number of each column, once known
    range_: Any = None  # (a,)
    codes: Any = None  # a number for each category, column by column
    weights: Any = None  # (a + b,) numbers first

    name = "gower"
    triangle = False
    definite = False

    def rows(self, X: Any, name: str = "X") -> Mixed:
        X = opened(X)
        return _from_frame(X) if is_frame(X) else _from_array(X, name)

    def fitted(self, X: Mixed, Y: Any = None) -> Self:
        both = [X] if Y is None else [X, Y]
        numbers = np.concatenate([table.numbers for table in both])
        empty = np.isnan(numbers).all(axis=0)
        if empty.any():
            raise InputError(f"column {X.names[int(empty.argmax())]} has no value in any row: drop it")
        low = np.nanmin(numbers, axis=0).astype(np.float64)
        codes = [
            {
                value: float(code)
                for code, value in enumerate(dict.fromkeys(v for column in columns for v in column if v is not None))
            }
            for columns in zip(*(table.categories for table in both), strict=True)
        ]
        w = np.ones(len(X.order)) if self.w is None else as_column_weights(self.w, len(X.order))[X.order]
        with np.errstate(over="ignore"):
            range_ = np.nanmax(numbers, axis=0) - low
        if np.isinf(range_).any():
            column = X.names[int(np.isinf(range_).argmax())]
            raise InputError(f"{column} has values whose differences are too large for numbers: divide it by 2 or more")
        return replace(self, low=low, range_=range_, codes=codes, weights=w)

    def prepare(self, X: Mixed) -> Array:
        found, wanted = (X.numbers.shape[1], len(X.categories)), (len(self.low), len(self.codes))
        if found != wanted:
            raise InputError(
                f"X has {found[0]} columns of numbers and {found[1]} of categories, and the fit had {wanted[0]} and "
                f"{wanted[1]}: give a frame with the columns of the fit"
            )
        units = np.where(self.range_ > 0, self.range_, 1.0)
        codes = [
            [np.nan if value is None else codes.get(value, -1.0) for value in column]
            for codes, column in zip(self.codes, X.categories, strict=True)
        ]
        numbers = (X.numbers - self.low) / units
        rows = np.column_stack([numbers, *codes]) if codes else numbers
        return rows.astype(X.numbers.dtype, copy=False)

    def between(self, A: Array, B: Array, out: Array) -> None:
        kernels.select("pairwise", A, B).gower(A, B, self.weights, len(self.low), out)
        if np.isnan(out).any():
            raise InputError("two rows have no column in which both have a value: drop rows or columns with many holes")


def _from_array(X: Any, name: str) -> Mixed:
    try:
        given = np.asarray(X)
        is_single = given.dtype.newbyteorder("=") == np.float32
        numbers = np.asarray(given, dtype=np.float32) if is_single else as_floats(given)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} holds values that are not real numbers: put them into a frame, whose columns know what they are"
        ) from None
    if numbers.ndim != 2:
        raise InputError(f"{name} must have rows and columns; its shape is {numbers.shape}")
    d = numbers.shape[1]
    return _checked(Mixed(numbers, [], [f"column {j}" for j in range(d)], list(range(d))))


def _from_frame(X: Any) -> Mixed:
    import narwhals.stable.v2 as nw

    table = nw.from_native(X, eager_only=True)
    kinds = [kind.is_numeric() for kind in table.schema.values()]
    order = sorted(range(len(kinds)), key=lambda j: not kinds[j])
    columns = [table[table.columns[j]] for j in order]
    numeric = columns[: sum(kinds)]
    kind = nw.Float32 if numeric and all(column.dtype == nw.Float32 for column in numeric) else nw.Float64
    numbers = np.empty((len(table), len(numeric)), np.float32 if kind == nw.Float32 else np.float64)
    for j, column in enumerate(numeric):
        numbers[:, j] = column.cast(kind).to_numpy()
    categories = [[None if value != value else value for value in c.to_list()] for c in columns[len(numeric) :]]
    return _checked(Mixed(numbers, categories, [str(table.columns[j]) for j in order], order))


def _checked(table: Mixed) -> Mixed:
    infinite = np.isinf(table.numbers).any(axis=0)
    if infinite.any():
        raise InputError(f"column {table.names[int(infinite.argmax())]} contains infinity: clip it, or drop those rows")
    return table
