"""Columns of vectors, such as embeddings: lists of numbers of equal length become one column per element."""

from collections.abc import Callable

import polars as pl

from coterie.errors import InputError

Widths = dict[str, int]  # length of the vectors of each vector column


def widths(schema: dict[str, pl.DataType], first_width: Callable[[str], int | None]) -> Widths:
    """The vector columns of a table; `first_width` is the length of the first list of a column."""
    result = {}
    for name, dtype in schema.items():
        inner = dtype.inner if isinstance(dtype, pl.Array | pl.List) else None
        if isinstance(inner, pl.DataType) and (inner.is_numeric() or inner == pl.Boolean):
            width = dtype.shape[0] if isinstance(dtype, pl.Array) else first_width(name)
            if width is not None and width > 0:
                result[name] = width
    return result


def first_width(lists: pl.Series) -> int | None:
    """Length of the first list that is not missing."""
    first = lists.drop_nulls().head(1).list.len()
    return int(first[0]) if len(first) else None


def flatten(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with vectors as columns; the frame itself if it has none."""
    schema = dict(frame.schema)
    vectors = widths(schema, lambda name: first_width(frame[name]))
    flat_names(schema, vectors)  # rejects duplicate names
    return flatten_batch(frame, vectors) if vectors else frame


def flat_names(schema: dict[str, pl.DataType], vectors: Widths) -> dict[str, str]:
    """Names of the columns after flattening (``vector_0``, ``vector_1``, ...), each with its original column."""
    origins: dict[str, str] = {}
    for name in schema:
        for new in _element_names(name, vectors[name]) if name in vectors else [name]:
            if new in origins or (new != name and new in schema):
                raise InputError(
                    f"column {name!r} holds lists, which become {new!r} and others: one of these columns exists already"
                )
            origins[new] = name
    return origins


def flatten_batch(frame: pl.DataFrame, vectors: Widths, start: int = 0) -> pl.DataFrame:
    """A batch with vectors as columns; its first row is row `start` of the table."""
    columns: list[pl.Series] = []
    for column in frame:
        if column.name in vectors:
            width = vectors[column.name]
            arrays = _as_array(column, width, start)
            elements = arrays.arr.to_struct(_element_names(column.name, width)).struct.unnest().get_columns()
            is_missing = arrays.is_null()  # Polars 1 converts them to zeros
            columns += [each.set(is_missing, None) for each in elements] if is_missing.any() else elements
        else:
            columns.append(column)
    return pl.DataFrame(columns)


def flat_schema(schema: dict[str, pl.DataType], vectors: Widths) -> dict[str, pl.DataType]:
    """Types of the columns after flattening."""
    return {
        new: schema[name].inner if name in vectors else schema[name]  # type: ignore[attr-defined]
        for new, name in flat_names(schema, vectors).items()
    }


def _as_array(column: pl.Series, width: int, start: int) -> pl.Series:
    if isinstance(column.dtype, pl.Array):
        return column
    wrong = (column.list.len() != width).fill_null(False)
    if wrong.any():
        row = int(wrong.arg_true()[0])
        raise InputError(
            f"column {column.name!r} has a list of {len(column[row])} numbers in row {start + row} (counted from 0), "
            f"and of {width} in the first row: all lists must have the same length"
        )
    return column.list.to_array(width)


def _element_names(name: str, width: int) -> list[str]:
    return [f"{name}_{j}" for j in range(width)]
