"""Tables in files: read as a whole, or in batches of rows."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from coterie import machine
from coterie.core.formatting import format_bytes, join_words
from coterie.data import temporary_arrays
from coterie.data.tables import delimited_text, malformed_lines
from coterie.data.tables.file_formats import FRAMES
from coterie.data.tables.read_errors import STANDARD_INPUT, check_table_file, readable, table_name
from coterie.data.tables.scan import ROWS, Scan, scan
from coterie.data.tables.sql import is_database, read_sql
from coterie.data.tables.suffixes import ARRAYS, BATCHED, BINARY, EXCEL, TEXT
from coterie.data.tables.table_size import check_rows, frame_size
from coterie.data.tables.workbooks import read_workbook
from coterie.data.tables.writer import write
from coterie.errors import InputError, ParameterError

# Upper bounds of the memory that a table takes, in multiples of the file size. Text needs memory for its fields, its
# numbers and the matrix.
MEMORY_FACTORS = {".parquet": 8, ".arrow": 2, ".feather": 2, ".npy": 3}
TEXT_MEMORY_FACTOR = 4
ROW = 16  # bytes of a row that is read in batches: its label, and one column at a time


@dataclass(frozen=True)
class Table(ABC):
    """A table in a file; of text files also the original fields, so that ``007`` is written as it was read."""

    path: Path
    schema: dict[str, pl.DataType]
    n_rows: int
    notes: tuple[str, ...]  # how the file was interpreted
    header_row: int | None = field(default=None, kw_only=True)  # as requested; None: found in the file
    has_lines: bool = field(default=True, kw_only=True)  # whether rows begin at lines, if the file is a text file

    @property
    def name(self) -> str:
        return table_name(self.path)

    @property
    def is_array(self) -> bool:
        """Whether the file is an array: columns have no names, and the same unit."""
        return self.path.suffix.lower() in ARRAYS

    @property
    def columns(self) -> list[str]:
        return list(self.schema)

    def place_of(self, row: int) -> str:
        """Where a row is, in words: the line of a text file at which it begins, or its number."""
        line = malformed_lines.line_number(self.path, row, self.header_row) if self.has_lines else None
        return f"{self.name}, " + (f"row {row:,} (from 0)" if line is None else f"line {line:,}")

    @cached_property
    def head(self) -> pl.DataFrame:
        """The first rows."""
        return next(self.batches(self.columns))

    @cached_property
    def empty_columns(self) -> frozenset[str]:
        """Columns in which every value is missing: null or NaN."""
        candidates = _without_values(self.head)
        for batch in self.batches(candidates) if candidates else ():
            candidates = [name for name in _without_values(batch) if name in candidates]
        return frozenset(candidates)

    def column(self, name: str) -> pl.Series:
        """One column of all rows."""
        return pl.concat(batch[name] for batch in self.batches([name]))

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """All rows of these columns in batches."""

    @abstractmethod
    def raw_batches(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """All rows in batches; for text files with the original text of every field."""

    @abstractmethod
    def with_text(self, columns: Sequence[str]) -> "Table":
        """The table with the original text of these columns, also if it is numbers; the same for other files."""

    def allocate(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
        """An uninitialised matrix for the rows, in memory or on disk."""
        return np.empty(shape, dtype)

    def frame(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """These columns of all rows; by default all columns."""
        return pl.concat(self.batches(self.columns if columns is None else columns))


@dataclass(frozen=True)
class WholeTable(Table):
    """A table in memory."""

    raw: pl.DataFrame
    typed: pl.DataFrame

    def column(self, name: str) -> pl.Series:
        return self.typed[name]

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        return self.typed.select(columns).iter_slices(ROWS)

    def raw_batches(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        return iter([self.raw if columns is None else self.raw.select(columns)])

    def with_text(self, columns: Sequence[str]) -> "WholeTable":
        typed = self.typed.with_columns(
            delimited_text.convert(self.raw[name], delimited_text.TEXT)
            for name in columns
            if self.raw[name].dtype == pl.String
        )
        return replace(self, typed=typed, schema=dict(typed.schema))


@dataclass(frozen=True)
class BatchedTable(Table):
    """A table with `batch_rows` rows in memory at a time; its matrix is on disk."""

    scan: Scan
    batch_rows: int

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        return self._checked(self.scan.batches(columns, self.batch_rows))

    def raw_batches(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        return self._checked(self.scan.batches(columns, self.batch_rows, raw=True))

    def with_text(self, columns: Sequence[str]) -> "BatchedTable":
        scan = self.scan.with_text(columns)
        return replace(self, scan=scan, schema=scan.schema)

    def allocate(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
        return temporary_arrays.mapped_zeros(shape, dtype)

    def _checked(self, batches: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The batches; an error if they do not have as many rows as in the first pass."""
        remaining = self.n_rows
        for batch in batches:
            remaining -= batch.height
            if remaining < 0:
                break
            yield batch
        if remaining != 0:
            raise InputError(f"{self.name} changed while it was read: run the command again.")


def read(
    path: Path, batch_rows: int | None = None, *, sheet: str | None = None, header_row: int | None = None,
    sql: str | None = None,
) -> Table:  # fmt: skip
    """The table in a file; with `batch_rows`, or if it is too large for memory, it is read in batches.

    `sheet` is the name of a sheet of a workbook. `header_row` is the line of a text file, or the row of a sheet, that
    has the column names, counted from 1. `sql` is a query in a database, or about the table ``data`` in a file.
    """
    suffix, is_query = path.suffix.lower(), sql is not None or is_database(path)
    if path != STANDARD_INPUT and not is_query:
        check_table_file(path)
    if sheet is not None and suffix not in EXCEL:
        raise ParameterError(f"--sheet is for {join_words(EXCEL, 'and')}: leave it out.")
    if header_row is not None and suffix not in (*TEXT, *EXCEL) and path != STANDARD_INPUT:
        raise ParameterError(f"--header-row is for {join_words((*TEXT, *EXCEL), 'and')}: leave it out.")
    if is_query:
        return _query(path, batch_rows, sql, sheet, header_row)
    if batch_rows is not None and (path == STANDARD_INPUT or suffix not in BATCHED):
        raise ParameterError(
            f"--batch-rows is for {join_words(BATCHED, 'or')}: {suffix or 'standard input'} is read as a whole. "
            "Leave it out."
        )
    notes: tuple[str, ...] = ()
    with readable(path):
        can_batch = path != STANDARD_INPUT and suffix in BATCHED
        if batch_rows is None and can_batch and _memory_needed(path) > machine.free_memory():
            batch_rows, size = ROWS, format_bytes(path.stat().st_size)
            notes = (
                f"{path.name} ({size}) was read {ROWS:,} rows at a time: as a whole it might not fit into memory.",
            )
        table: Table
        if batch_rows is None:
            table = _read_whole(path, sheet, header_row)
        else:
            source = scan(path, header_row)
            check_rows(path, source.n_rows, len(source.schema), float(ROW * source.n_rows))
            batch_rows, notes = min(batch_rows, max(1, source.n_rows)), (*notes, *source.notes)
            table = BatchedTable(path, source.schema, source.n_rows, notes, source, batch_rows, header_row=header_row)
    if table.n_rows == 0:
        raise InputError(f"{table.name} has no rows.")
    return table


def _without_values(batch: pl.DataFrame) -> list[str]:
    """Columns with no values other than null and NaN."""
    return [
        column.name
        for column in batch
        if (column.fill_nan(None) if column.dtype.is_float() else column).null_count() == batch.height
    ]


def _memory_needed(path: Path) -> float:
    """Upper bound of the bytes that a table takes, with the numbers and the matrix."""
    suffix, size = path.suffix.lower(), path.stat().st_size
    decoded = 2 * frame_size(path) if suffix in BINARY else 0.0
    return max(decoded, size * MEMORY_FACTORS.get(suffix, TEXT_MEMORY_FACTOR))


def _query(
    path: Path, batch_rows: int | None, sql: str | None, sheet: str | None, header_row: int | None
) -> WholeTable:
    """The result of a query; DuckDB reads text files and sheets as they are after cleaning."""
    if batch_rows is not None:
        raise ParameterError("--batch-rows is not for databases, whose rows are read as a whole: leave it out.")
    notes: tuple[str, ...] = ()
    if path.suffix.lower() in (*TEXT, *EXCEL) and not is_database(path):
        table = read(path, sheet=sheet, header_row=header_row)
        with TemporaryDirectory() as folder:
            write(table.batches(table.columns), Path(folder, "data.csv"))
            frame, notes = read_sql(Path(folder, "data.csv"), sql), table.notes
    else:
        frame = read_sql(path, sql)
    if frame.height == 0:
        raise InputError("the query returned no rows.")
    return WholeTable(path, dict(frame.schema), frame.height, notes, frame, frame, has_lines=False)


def _read_whole(path: Path, sheet: str | None, header_row: int | None) -> WholeTable:
    suffix = path.suffix.lower()
    notes: tuple[str, ...] = ()
    if path == STANDARD_INPUT or suffix in TEXT:
        content = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
        raw, layout = delimited_text.read_text(content, suffix, header_row)
        typed = raw.with_columns(delimited_text.parse(column, layout.separator) for column in raw)
        notes = layout.notes
    elif suffix in EXCEL:
        raw, typed, notes = read_workbook(path, sheet, header_row)
    else:
        raw = typed = FRAMES[suffix](path)
    return WholeTable(path, dict(typed.schema), typed.height, notes, raw, typed, header_row=header_row)
