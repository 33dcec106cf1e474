"""Rows that can be read only once, in batches: Arrow streams and datasets, and iterators of frames or arrays."""

import io
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from coterie.core.formatting import first_names
from coterie.core.packages import required
from coterie.data import temporary_arrays
from coterie.data.files import FileSource
from coterie.data.frames import frame_to_array, is_frame, is_relation
from coterie.data.memory import memory_source
from coterie.data.tables.numeric_rows import named
from coterie.errors import InputError, ParameterError

CONSUMED = (
    "X has no rows: an iterator or stream can be read only once, and this one may have been used before. Create it "
    "again for each call, or read it once: rows = coterie.data.opened(X)"
)


def is_stream(X: Any) -> bool:
    """Whether `X` gives its rows in batches, and is not a table in memory."""
    if is_relation(X) or _is_dataset(X):
        return True
    if hasattr(X, "__arrow_c_stream__"):
        return not hasattr(X, "shape")  # tables in memory have a shape, streams do not
    return isinstance(X, Iterator)


def batches(X: Any) -> Iterator[Any]:
    """Frames or arrays of rows, in the order of a stream."""
    if isinstance(X, io.IOBase):
        raise InputError("X is an open file: pass its path")
    items, index, rows = iter(_items(X)), 0, 0
    while True:
        try:
            item = next(items, None)
        except (InputError, ParameterError):
            raise
        except Exception as error:
            raise InputError(
                f"X failed after {index} batches with {rows:,} rows: {type(error).__name__}: {error}"
            ) from error
        if item is None:
            break
        batch = _as_table(item)
        if not is_frame(batch) and np.ndim(batch) != 2:
            raise InputError(
                f"batch {index} of X is {type(item).__name__}, but each batch must be a data frame or an array of rows"
            )
        index, rows = index + 1, rows + batch.shape[0]
        if batch.shape[0]:
            yield batch
    if rows == 0:
        raise InputError(CONSUMED)


def read_stream(X: Any) -> np.ndarray[Any, Any]:
    """All rows of a stream: in memory, or in a temporary file if they need more than a quarter of the free memory."""
    rows: temporary_arrays.GrowingArray | None = None
    columns: list[str] | None = None
    try:
        for index, batch in enumerate(batches(X)):
            values, names = _values(batch, columns, index)
            if rows is None:
                rows, columns = temporary_arrays.GrowingArray(values.shape[1], values.dtype), names
            _check_batch(values, rows, index)
            rows.append(values)
        assert rows is not None
        return named(rows.finish(), columns)
    finally:
        if rows is not None:
            rows.close()


def _check_batch(values: np.ndarray[Any, Any], rows: temporary_arrays.GrowingArray, index: int) -> None:
    """Raise an error if a batch does not continue these rows."""
    if values.shape[1] != rows.width:
        raise InputError(f"batch {index} of X has {values.shape[1]} columns, but the first has {rows.width}")
    if rows.dtype == np.float32 and values.dtype != np.float32:
        raise InputError(f"batch {index} of X is float64, but the first is float32: convert all to one type")


def _is_dataset(X: Any) -> bool:
    dataset = sys.modules.get("pyarrow.dataset")
    return dataset is not None and isinstance(X, dataset.Dataset | dataset.Scanner)


def _items(X: Any) -> Iterator[Any]:
    if isinstance(X, FileSource):
        for part in X.parts():
            yield named(part().X, X.columns)
    elif hasattr(X, "__arrow_c_stream__"):
        with required("reading an Arrow stream needs one more package. Run: pip install pyarrow"):
            import pyarrow
        yield from pyarrow.RecordBatchReader.from_stream(X)
    elif _is_dataset(X):
        yield from X.to_batches()
    else:
        yield from X


def _as_table(item: Any) -> Any:
    """A batch as a frame, if it is a record batch; an array, if it is a list of rows."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(item, arrow.RecordBatch):
        table = arrow.Table.from_batches([item])
        try:
            from coterie.data.tables.frame_table import as_polars
        except ModuleNotFoundError:
            return table
        return as_polars(table)  # vectors become columns
    return np.asarray(item) if isinstance(item, list | tuple) else item


def _values(batch: Any, columns: list[str] | None, index: int) -> tuple[np.ndarray[Any, Any], list[str] | None]:
    """The numbers of a batch, and the names of its columns, which must be those of the first batch."""
    if not is_frame(batch):
        if columns is not None:
            raise InputError(f"batch {index} of X has no column names, unlike the first")
        return memory_source(batch).X, None
    if index and columns is None:
        raise InputError(f"batch {index} of X has column names, unlike the first")
    names = [str(name) for name in getattr(batch, "column_names", getattr(batch, "columns", []))]
    if columns is not None and names != columns:
        if sorted(names) != sorted(columns):
            raise InputError(
                f"batch {index} of X has the columns {first_names(names)}, but the first has {first_names(columns)}"
            )
        batch = batch.select(columns) if hasattr(batch, "select") else batch[columns]
    return frame_to_array(batch)
