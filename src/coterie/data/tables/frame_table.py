"""Data frames and arrays in memory as tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from coterie.core.arrays import is_sparse
from coterie.core.frames import open_frame
from coterie.data.frames import is_frame, is_relation
from coterie.data.tables.array_files import array_frame
from coterie.data.tables.read_errors import DATA_FRAME, first_line, readable
from coterie.data.tables.reader import WholeTable
from coterie.data.tables.vector_columns import flatten
from coterie.data.tensors import as_array
from coterie.errors import InputError


@dataclass(frozen=True)
class FrameTable(WholeTable):
    """A data frame, or an array, in memory."""

    array: bool = False  # columns have no names, and the same unit

    @property
    def is_array(self) -> bool:
        return self.array


@dataclass(frozen=True)
class SampleTable(FrameTable):
    """A random sample of the rows of files, in memory."""

    title: str = ""  # name of the files

    @property
    def name(self) -> str:
        return self.title


def sample_table(frame: pl.DataFrame, title: str) -> SampleTable:
    """The table of some rows of files that are elsewhere."""
    return SampleTable(DATA_FRAME, dict(frame.schema), frame.height, (), frame, frame, title=title)


def frame_table(data: Any) -> FrameTable:
    """The table of a data frame of any library, or of an array of rows."""
    frame = as_polars(data)
    if frame.height == 0:
        raise InputError("the data frame has no rows.")
    is_array = not is_frame_like(data)
    return FrameTable(DATA_FRAME, dict(frame.schema), frame.height, (), frame, frame, is_array)


def is_frame_like(data: Any) -> bool:
    """Whether `data` is a data frame, a Polars LazyFrame, or a relation of DuckDB."""
    return isinstance(data, pl.LazyFrame) or is_frame(data) or is_relation(data)


def as_polars(data: Any) -> pl.DataFrame:
    """A data frame of any library, or an array of rows, as a Polars frame."""
    if not is_frame_like(data):
        if is_sparse(data):
            raise InputError("X is sparse, but a table is expected: pass X.toarray(), or fewer columns")
        return array_frame(np.asarray(as_array(data)), "X")
    with readable(None):
        if isinstance(data, pl.LazyFrame):
            data = data.collect()
        elif is_relation(data):
            data = pl.DataFrame(data)
        if not isinstance(data, pl.DataFrame):
            data = _to_polars(open_frame(data))
        return flatten(data)


def _to_polars(table: Any) -> pl.DataFrame:
    """A narwhals frame as a Polars frame; columns of words and numbers become text, as in a file."""
    try:
        frame: pl.DataFrame = table.to_polars()
    except Exception:  # of pyarrow or pandas, of many types
        return pl.DataFrame([_column(column) for column in table.iter_columns()])
    return frame


def _column(column: Any) -> pl.Series:
    try:
        series: pl.Series = column.to_polars()
    except Exception as error:
        cells = zip(column.to_list(), column.is_null().to_list(), strict=True)
        values = [None if is_null else value for value, is_null in cells]
        if not all(isinstance(value, str | int | float | None) for value in values):
            raise InputError(
                f"cannot read the column {column.name!r} ({column.dtype}): {first_line(error)}. Convert it to "
                "numbers or text, or drop it"
            ) from error
        return pl.Series(column.name, [None if value is None else str(value) for value in values], pl.String)
    return series
