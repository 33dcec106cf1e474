"""Columns of vectors, such as embeddings: lists of numbers of one length, as a column for each place in them."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from coterie.core.errors import InputError

Widths = dict[str, int]  # how long the vectors of a column are


def widths(schema: dict[str, pl.DataType], first: Callable[[str], int | None]) -> Widths:
    """The columns of vectors of a table; `first` finds how long the first list of a column is."""
    found = {}
    for name, kind in schema.items():
        if isinstance(kind, pl.Array | pl.List) and _is_number(kind.inner):
            width = kind.shape[0] if isinstance(kind, pl.Array) else first(name)
            if width is not None and width > 0:
                found[name] = width
    return found


def width_of_first(lists: pl.Series) -> int | None:
    """How long the first list is that is there."""
    first = lists.drop_nulls().head(1).list.len()
    return int(first[0]) if len(first) else None


def flattened(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame in memory with its vectors in columns; itself if it has none."""
    schema = dict(frame.schema)
    found = widths(schema, lambda name: width_of_first(frame[name]))
    names(schema, found)  # refuses names that are there twice
    return flat(frame, found) if found else frame


def names(schema: dict[str, pl.DataType], found: Widths) -> dict[str, str]:
    """The columns there will be, ``vector_0``, ``vector_1`` and so on, and of which column each is."""
    made: dict[str, str] = {}
    for name in schema:
        for new in _places(name, found[name]) if name in found else [name]:
            if new in made or (new != name and new in schema):
                raise InputError(f"column {name!r} is of lists, which become {new!r} and others: one is there already")
            made[new] = name
    return made


def flat(frame: pl.DataFrame, found: Widths, start: int = 0) -> pl.DataFrame:
    """The vectors of a frame, whose first row is number `start` of its table, in columns."""
    columns: list[pl.Series] = []
    for column in frame:
        if column.name in found:
            columns += _columns(_even(column, found[column.name], start), _places(column.name, found[column.name]))
        else:
            columns.append(column)
    return pl.DataFrame(columns)


def kinds(schema: dict[str, pl.DataType], found: Widths) -> dict[str, pl.DataType]:
    """The types of the columns there will be."""
    return {
        new: schema[name].inner if name in found else schema[name]  # type: ignore[attr-defined]
        for new, name in names(schema, found).items()
    }


def _even(column: pl.Series, width: int, start: int) -> pl.Series:
    if isinstance(column.dtype, pl.Array):
        return column
    others = (column.list.len() != width).fill_null(False)
    if others.any():
        at = int(others.arg_true()[0])
        raise InputError(
            f"column {column.name!r} has a list of {len(column[at])} numbers in row {start + at} (counted from 0), and "
            f"of {width} in the first: lists of one length can be columns"
        )
    return column.list.to_array(width)


def _columns(vectors: pl.Series, places: list[str]) -> list[pl.Series]:
    made = vectors.arr.to_struct(places).struct.unnest().get_columns()
    missing = vectors.is_null()  # Polars 1 makes zeros of them
    return [column.set(missing, None) for column in made] if missing.any() else made


def _places(name: str, width: int) -> list[str]:
    return [f"{name}_{j}" for j in range(width)]


def _is_number(kind: object) -> bool:
    return isinstance(kind, pl.DataType) and (kind.is_numeric() or kind == pl.Boolean)
