"""Tables in files, and those that are not computed yet: read some rows at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import polars as pl
from numpy.lib.format import MAGIC_PREFIX

from coterie.core.errors import InputError, ParameterError
from coterie.data import frames, scratch
from coterie.data.tables import delimited_text as text
from coterie.data.tables import malformed_lines as faults
from coterie.data.tables import vector_columns as nested
from coterie.data.tables.delimited_text import Kind

ROWS = 100_000  # that are read at a time, of few columns
VALUES = 1 << 22  # of many
TEXT = (".csv", ".tsv", ".txt")
LAZY: dict[str, Callable[[Any], pl.LazyFrame]] = {
    ".arrow": pl.scan_ipc,
    ".feather": pl.scan_ipc,
    ".ndjson": pl.scan_ndjson,
    ".jsonl": pl.scan_ndjson,
}
SUFFIXES = (*TEXT, ".parquet", *LAZY, ".npy")

CHOOSE = (
    "Choose others: X=polars.scan_parquet(...).select(...), or scan_csv. Methods that know categories take the table "
    "in memory: X=polars.read_parquet(...)"
)

Read = Callable[[Sequence[str], int], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Scan:
    """A table that is read some rows at a time."""

    schema: dict[str, pl.DataType]  # the type each column turned out to have
    rows: int
    read: Read  # some columns, so many rows at a time, as they are written
    path: Path | None = None  # None if it is not in a file
    kinds: dict[str, Kind] | None = None  # of the fields, where they are written as text
    notes: tuple[str, ...] = ()  # what the reader should know of how it was read

    def batches(
        self, columns: Sequence[str] | None = None, rows: int | None = None, written: bool = False
    ) -> Iterator[pl.DataFrame]:
        """The table in order, `rows` rows at a time and what is left at last; by default so many that they are small.

        Fields of text files come as numbers where the whole column is, or as they are `written`.
        """
        kinds, names = None if written else self.kinds, list(self.schema) if columns is None else columns
        with readable(self.path):
            for batch in self.read(names, _few(len(names)) if rows is None else rows):
                if kinds is None:
                    yield batch
                else:
                    yield batch.with_columns(text.as_kind(column, kinds[column.name]) for column in batch)

    def column(self, name: str) -> pl.Series:
        """One column whole."""
        parts = [batch[name] for batch in self.batches([name])]
        return pl.concat(parts) if parts else pl.Series(name, dtype=self.schema[name])

    @cached_property
    def nothing(self) -> frozenset[str]:
        """Columns without a single value."""
        left = list(self.schema)
        for batch in self.batches():
            left = empty_columns(batch)  # few are
            break
        for batch in self.batches(left) if left else ():
            left = [name for name in empty_columns(batch) if name in left]
        return frozenset(left)


def scan(path: Path) -> Scan:
    """The table in a file; `InputError` if it cannot be read."""
    suffix = path.suffix.lower()
    with readable(path):
        if suffix in TEXT:
            return _scan_text(path)
        if suffix == ".npy":
            return _scan_array(load_array(path, mmap_mode="r"), path)
        if suffix == ".parquet":
            return scan_frame(pl.scan_parquet(path, glob=False), path)
        if suffix in LAZY:
            with path.open("rb") as file:  # Polars would take some names for patterns
                return scan_frame(LAZY[suffix](file), path)
    raise InputError(f'cannot read "{path}" some rows at a time: such tables end in {", ".join(SUFFIXES)}.')


def scan_many(pattern: Path) -> Scan:
    """All Parquet files whose names fit a pattern, one below the other in the order of their names."""
    with readable(pattern):
        return scan_frame(pl.scan_parquet(pattern), pattern)


def scan_frame(lazy: pl.LazyFrame, path: Path | None = None) -> Scan:
    """What a LazyFrame will be, vectors in columns; it is computed for every pass over its rows."""
    with readable(path):
        schema = dict(lazy.collect_schema())
        rows = lazy.select(pl.len()).collect(engine="streaming").item()
        vectors = nested.widths(schema, partial(_first_width, lazy))
        return Scan(nested.kinds(schema, vectors), rows, partial(_read_flat, lazy, schema, vectors), path)


def load_array(path: Path, mmap_mode: Any = None) -> np.ndarray[Any, Any]:
    """The array in an ``.npy`` file."""
    with path.open("rb") as file:
        if file.read(len(MAGIC_PREFIX)) != MAGIC_PREFIX:  # NumPy would speak of pickles, and how to open them
            raise ValueError("it is not an .npy file.")
    found: np.ndarray[Any, Any] = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
    return found


def array_frame(array: np.ndarray[Any, Any], name: str) -> pl.DataFrame:
    """An array as a frame of columns x0, x1 and so on; `name` is that of its file."""
    if array.ndim != 2:
        raise InputError(f"{name} has {array.ndim} dimensions; it needs two, rows and columns.")
    if array.dtype.char not in "efd" and array.dtype.kind not in "iub":
        raise InputError(f"{name} holds {array.dtype.name}, not numbers.")
    native = array.dtype.newbyteorder("=")
    array = array.astype(np.float32 if native == np.float16 else native, copy=False)
    return pl.DataFrame({f"x{j}": array[:, j] for j in range(array.shape[1])})


def matrix(table: Scan, columns: Sequence[str] | None = None, rows: int | None = None) -> np.ndarray[Any, Any]:
    """The columns side by side (n, d), float32 if all of them are; in memory if there is room, else on disk."""
    names = list(table.schema) if columns is None else list(columns)
    dtype = frames.number_type(pl.DataFrame(schema={name: table.schema[name] for name in names}), CHOOSE)
    values = scratch.space((table.rows, len(names)), dtype)
    stop = 0
    for batch in table.batches(names, rows):
        start, stop = stop, stop + batch.height
        if stop > table.rows:
            break
        frames.put(batch, values[start:stop])
    if stop != table.rows:
        raise InputError(f"the table has {table.rows} rows, and others when it is read again: did it change meanwhile?")
    return values


def _few(columns: int) -> int:
    """Rows that are few values, of so many columns."""
    return max(1, min(ROWS, VALUES // max(1, columns)))


def _scan_text(path: Path) -> Scan:
    lazy, layout = text.scanned(path)
    names = lazy.collect_schema().names()
    kinds, lines = text.kinds(_read(lazy, names, _few(len(names))), layout.separator)
    rows = layout.rows(lines, len(names))
    lazy = lazy.head(rows) if rows < lines else lazy
    kinds = {name: kinds.get(name, text.NUMBERS[0]) for name in names}
    return Scan(
        {name: kind.dtype() for name, kind in kinds.items()}, rows, partial(_read, lazy), path, kinds, layout.notes
    )


def _scan_array(array: np.ndarray[Any, Any], path: Path) -> Scan:
    head = array_frame(array if array.ndim == 0 else array[:0], path.name)

    def read(columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        which = [head.columns.index(column) for column in columns]
        for start in range(0, len(array), rows):
            yield array_frame(array[start : start + rows], path.name).select(pl.nth(which))

    return Scan(dict(head.schema), len(array), read, path)


def _first_width(lazy: pl.LazyFrame, name: str) -> int | None:
    there = lazy.select(pl.col(name).filter(pl.col(name).is_not_null())).head(1)
    return nested.width_of_first(there.collect(engine="streaming")[name])


def _read_flat(
    lazy: pl.LazyFrame, schema: dict[str, pl.DataType], vectors: nested.Widths, columns: Sequence[str], rows: int
) -> Iterator[pl.DataFrame]:
    """The same with vectors in columns."""
    if not vectors:
        yield from _read(lazy, columns, rows)
        return
    made, start = nested.names(schema, vectors), 0
    for batch in _read(lazy, list(dict.fromkeys(made[name] for name in columns)), rows):
        yield nested.flat(batch, vectors, start).select(columns)
        start += batch.height


def _read(lazy: pl.LazyFrame, columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
    """So many rows at a time, while the next are made; `LazyFrame.collect_batches` loses errors in Polars 1.34."""
    made: Queue[pl.DataFrame | BaseException | None] = Queue(1)
    stopped = threading.Event()

    def put(batch: pl.DataFrame) -> bool:
        made.put(batch)
        return stopped.is_set()

    def work() -> None:
        try:
            lazy.select(columns).sink_batches(put, chunk_size=rows, maintain_order=True)
            made.put(None)
        except BaseException as error:
            made.put(error)

    threading.Thread(target=work, daemon=True).start()
    batch: pl.DataFrame | BaseException | None = None
    try:
        while isinstance(batch := made.get(), pl.DataFrame):
            yield batch
    finally:
        stopped.set()
        while isinstance(batch, pl.DataFrame):  # left early: what is under way ends first
            batch = made.get()
    if batch is not None:
        raise batch


def empty_columns(batch: pl.DataFrame) -> list[str]:
    """Columns of nothing but null and NaN."""
    return [
        column.name
        for column in batch
        if (column.fill_nan(None) if column.dtype.is_float() else column).null_count() == batch.height
    ]


@contextmanager
def readable(path: Path | None) -> Iterator[None]:
    """What goes wrong with a file as an `InputError` that names it; None is a table that is in none."""
    try:
        yield
    except (InputError, ParameterError):
        raise
    except pl.exceptions.NoDataError as error:
        raise InputError(f"{_called(path)} is empty.") from error
    except (OSError, ValueError, EOFError, pl.exceptions.PolarsError) as error:
        if path is None:
            raise InputError(f"cannot read the table: {first_line(error)}") from error
        fault = faults.found_in(path) if isinstance(error, pl.exceptions.PolarsError) else None
        raise InputError(f'cannot read "{path}": {fault or first_line(error)}') from error


def first_line(error: Exception) -> str:
    """What went wrong with a file, in a line."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said.splitlines()[0] if said else type(error).__name__


def _called(path: Path | None) -> str:
    return "the table" if path is None else "standard input" if str(path) == "-" else path.name
