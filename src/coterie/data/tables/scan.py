"""Tables read in batches of rows: from files, and from LazyFrames."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import polars as pl

from coterie.data import frames, temporary_arrays
from coterie.data.tables import delimited_text, vector_columns
from coterie.data.tables.array_files import array_frame, load_array
from coterie.data.tables.delimited_text import FieldType
from coterie.data.tables.file_formats import FRAMES
from coterie.data.tables.lazy_frames import scanned
from coterie.data.tables.read_errors import readable, unknown_suffix
from coterie.data.tables.readings import present
from coterie.data.tables.suffixes import BINARY, JSON_LINES, TEXT
from coterie.data.tables.written_numbers import DIGITS, split_numbers
from coterie.errors import InputError

ROWS = 100_000  # rows of a batch, if there are few columns
VALUES = 1 << 22  # values of a batch, if there are many
HEAD = 1000  # cells of a column in which an amount is looked for
CHOOSE = (
    "Or choose other columns: X=polars.scan_parquet(...).select(...), or scan_csv. Methods that know categories take "
    "the table in memory: X=polars.read_parquet(...)"
)

Read = Callable[[Sequence[str], int], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Scan:
    """A table that is read in batches of rows."""

    schema: dict[str, pl.DataType]
    n_rows: int
    read: Read  # (columns, rows of a batch) -> batches; fields of text files stay text
    path: Path | None = None  # None if the table is not in a file
    field_types: dict[str, FieldType] | None = None  # of text files
    notes: tuple[str, ...] = ()  # how the file was interpreted

    def batches(
        self, columns: Sequence[str] | None = None, rows: int | None = None, raw: bool = False
    ) -> Iterator[pl.DataFrame]:
        """Batches of `rows` rows; unless `raw`, fields of numeric columns of text files become numbers."""
        types, names = None if raw else self.field_types, list(self.schema) if columns is None else columns
        with readable(self.path):
            for batch in self.read(names, batch_rows(len(names)) if rows is None else rows):
                if types is None:
                    yield batch
                else:
                    yield batch.with_columns(delimited_text.convert(column, types[column.name]) for column in batch)

    def with_text(self, columns: Sequence[str]) -> "Scan":
        """The table with the original text of these columns, also if it is numbers; the same for other files."""
        if self.field_types is None:
            return self
        text: dict[str, pl.DataType] = {name: pl.String() for name in columns}
        types = self.field_types | dict.fromkeys(columns, delimited_text.TEXT)
        return replace(self, schema=self.schema | text, field_types=types)


def scan(path: Path, header_row: int | None = None) -> Scan:
    """The table in a file; formats that cannot be read in batches are read as a whole."""
    suffix = path.suffix.lower()
    with readable(path):
        if suffix in TEXT:
            return _scan_text(path, header_row)
        if suffix == ".npy":
            return _scan_array(load_array(path, mmap_mode="r"), path)
        if suffix in (*BINARY, *JSON_LINES):
            with scanned(path) as lazy:
                return scan_frame(lazy, path)
        if suffix in FRAMES:
            frame = FRAMES[suffix](path)
            return Scan(
                dict(frame.schema), frame.height, lambda names, rows: frame.select(names).iter_slices(rows), path
            )
    raise unknown_suffix(path)


def scan_frame(lazy: pl.LazyFrame, path: Path | None = None) -> Scan:
    """The result of a LazyFrame with vectors as columns; it is computed for every pass over its rows."""
    with readable(path):
        schema = dict(lazy.collect_schema())
        n_rows = lazy.select(pl.len()).collect(engine="streaming").item()

        def first_width(name: str) -> int | None:
            first = lazy.select(pl.col(name).filter(pl.col(name).is_not_null())).head(1)
            return vector_columns.first_width(first.collect(engine="streaming")[name])

        widths = vector_columns.widths(schema, first_width)
        return Scan(vector_columns.flat_schema(schema, widths), n_rows, partial(_read_flat, lazy, schema, widths), path)


def matrix(table: Scan) -> np.ndarray[Any, Any]:
    """The rows as an array (n, d), float32 if all columns are; in memory if it fits, otherwise on disk."""
    texts = [name for name, dtype in table.schema.items() if not (dtype.is_numeric() or dtype == pl.Boolean)]
    dtype = frames.common_dtype(pl.DataFrame(schema=table.schema), _remedy(table, texts) if texts else CHOOSE)
    values = temporary_arrays.empty((table.n_rows, len(table.schema)), dtype)
    if not frames.copy_batches(table.batches(), values):
        raise InputError(
            f"the table had {table.n_rows} rows, and a different number when it was read again: did it change?"
        )
    return values


def _remedy(table: Scan, texts: Sequence[str]) -> str:
    """What to do about columns that are not numbers: a job reads some of them, and stores how.

    An estimator does not: it would have to store the rule, because a file that `predict` gets later can suggest another
    one, such as another decimal separator.
    """
    data = "X" if table.path is None else f'"{table.path}"'
    amount = _written_amount(table, texts)
    found = "" if amount is None else f'"{amount[1]}" in column {amount[0]!r} is not a plain number. '
    return (
        f"{found}coterie.Job({data}, k=3).run() reads amounts, percentages, dates and yes/no as numbers, and its model "
        f"file stores how. {CHOOSE}"
    )


def _written_amount(table: Scan, texts: Sequence[str]) -> tuple[str, str] | None:
    """A column of amounts such as ``$1,001.35``, and a cell of it; None if there is none."""
    for column in next(table.batches(texts, HEAD), pl.DataFrame()):
        cells = present(column).drop_nulls() if column.dtype == pl.String else column.clear()
        if len(cells) and any(split_numbers(cells).fits(decimal).all() for decimal in DIGITS):
            is_plain = cells.cast(pl.Float64, strict=False).is_not_null()
            return column.name, cells[int((~is_plain).arg_max() or 0)]
    return None


def batch_rows(n_columns: int) -> int:
    """Rows of a batch with this number of columns."""
    return max(1, min(ROWS, VALUES // max(1, n_columns)))


def _scan_text(path: Path, header_row: int | None) -> Scan:
    lazy, layout = delimited_text.scan_text(path, header_row)
    names = lazy.collect_schema().names()
    types, lines = delimited_text.field_types(_read(lazy, names, batch_rows(len(names))), layout.separator)
    n_rows = layout.rows(lines, len(names))
    lazy = lazy.head(n_rows) if n_rows < lines else lazy
    types = {name: types.get(name, delimited_text.NUMBERS[0]) for name in names}
    schema = {name: field_type.dtype() for name, field_type in types.items()}
    return Scan(schema, n_rows, partial(_read, lazy), path, types, layout.notes)


def _scan_array(array: np.ndarray[Any, Any], path: Path) -> Scan:
    head = array_frame(array if array.ndim == 0 else array[:0], path.name)

    def read(columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
        indices = [head.columns.index(column) for column in columns]
        for start in range(0, len(array), rows):
            yield array_frame(array[start : start + rows], path.name).select(pl.nth(indices))

    return Scan(dict(head.schema), len(array), read, path)


def _read_flat(
    lazy: pl.LazyFrame, schema: dict[str, pl.DataType], widths: vector_columns.Widths, columns: Sequence[str], rows: int
) -> Iterator[pl.DataFrame]:
    """Batches with vectors as columns."""
    if not widths:
        yield from _read(lazy, columns, rows)
        return
    origins, start = vector_columns.flat_names(schema, widths), 0
    for batch in _read(lazy, list(dict.fromkeys(origins[name] for name in columns)), rows):
        yield vector_columns.flatten_batch(batch, widths, start).select(columns)
        start += batch.height


def _read(lazy: pl.LazyFrame, columns: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
    """Batches, computed one ahead in a thread; `LazyFrame.collect_batches` loses errors in Polars 1.34."""
    queue: Queue[pl.DataFrame | BaseException | None] = Queue(1)
    stopped = threading.Event()

    def put(batch: pl.DataFrame) -> bool:
        queue.put(batch)
        return stopped.is_set()

    def work() -> None:
        try:
            lazy.select(columns).sink_batches(put, chunk_size=rows, maintain_order=True)
            queue.put(None)
        except BaseException as error:
            queue.put(error)

    threading.Thread(target=work, daemon=True).start()
    batch: pl.DataFrame | BaseException | None = None
    try:
        while isinstance(batch := queue.get(), pl.DataFrame):
            yield batch
    finally:
        stopped.set()
        while isinstance(batch, pl.DataFrame):  # the caller stopped early: let the thread end first
            batch = queue.get()
    if batch is not None:
        raise batch
