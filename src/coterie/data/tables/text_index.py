"""Row numbers and byte positions of a text file, so that some of its rows can be read without the others.

A newline ends a row if the number of quotes before it is even: quotes within quoted fields are doubled, so this is
exact. It is known only from the beginning of the file, which is therefore read once, in order, when it is opened. In
NDJSON every newline ends a row, because strings of JSON contain none.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO

import numpy as np
import polars as pl

from coterie.data.tables import delimited_text
from coterie.data.tables.delimited_text import SNIFFED_BYTES, FieldType
from coterie.errors import InputError

BLOCK = 1 << 20  # bytes between two positions that are stored
MAX_ROW = 1 << 26  # bytes of a row
NEWLINE, QUOTE = 10, 34
REMEDY = "save it as plain UTF-8 text with one header line, or use cache='disk'"


@dataclass(frozen=True)
class TextIndex:
    """Positions at which rows of a text file begin. It is small, and picklable."""

    rows: np.ndarray  # (m + 1,) numbers of the first rows of blocks, then the number of rows
    positions: np.ndarray  # (m + 1,) of these rows in the file, then the end of the last block

    def cut(self, start: int, stop: int) -> TextIndex:
        """The index without blocks that do not contain any of these rows."""
        first, last = self._blocks(start, stop)
        return replace(self, rows=self.rows[first : last + 1], positions=self.positions[first : last + 1])

    def read(self, file: IO[bytes], columns: Sequence[str], start: int, stop: int) -> pl.DataFrame:
        """Rows `start` to `stop`."""
        first, last = self._blocks(start, stop)
        begin, end = int(self.positions[first]), int(self.positions[last])
        file.seek(begin)
        frame = self._parse(file.read(end - begin), columns)
        return frame.slice(start - int(self.rows[first]), stop - start)

    def _blocks(self, start: int, stop: int) -> tuple[int, int]:
        """The first block that contains some of these rows, and the one after the last."""
        first = int(np.searchsorted(self.rows, start, side="right")) - 1
        last = int(np.searchsorted(self.rows, stop, side="left"))
        return min(first, len(self.rows) - 2), min(last, len(self.rows) - 1)

    def _parse(self, content: bytes, columns: Sequence[str]) -> pl.DataFrame:
        raise NotImplementedError


@dataclass(frozen=True)
class DelimitedIndex(TextIndex):
    """Index of a file of delimited text."""

    separator: str
    types: Mapping[str, FieldType]  # of all columns, in the order of the file

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: field_type.dtype() for name, field_type in self.types.items()}

    def _parse(self, content: bytes, columns: Sequence[str]) -> pl.DataFrame:
        frame = _read_fields(content, self.separator, list(self.types)).select(columns)
        return frame.with_columns(delimited_text.convert(column, self.types[column.name]) for column in frame)


@dataclass(frozen=True)
class JsonIndex(TextIndex):
    """Index of a file with a JSON object in each line."""

    schema: Mapping[str, pl.DataType]

    def _parse(self, content: bytes, columns: Sequence[str]) -> pl.DataFrame:
        return pl.read_ndjson(io.BytesIO(content), schema=dict(self.schema)).select(columns)


def index_delimited(file: IO[bytes], suffix: str) -> DelimitedIndex:
    """Read a file of delimited text once, and find the types of its columns and the positions of its rows."""
    layout = delimited_text.plain_layout(file, suffix)
    if layout is None:
        raise InputError(f"it is not plain UTF-8 text, or has lines that are not rows: {REMEDY}")
    check_last_line(file, suffix)
    file.seek(0)
    begin = len(codecs.BOM_UTF8) if file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8 else 0
    first_row = next(_row_blocks(file, begin, has_quotes=True, end=0), b"")
    names = delimited_text.column_names(first_row, layout)
    types: dict[str, FieldType] = {}
    rows, positions = [0], [begin + len(first_row) * layout.header]
    for content in _row_blocks(file, positions[0], has_quotes=True):
        try:
            content.decode()
        except UnicodeDecodeError:
            raise InputError(f"it is not UTF-8: {REMEDY}") from None
        frame = _read_fields(content, layout.separator, names)
        types = delimited_text.widened_types(types, frame, layout.separator)
        rows.append(rows[-1] + frame.height)
        positions.append(positions[-1] + len(content))
    n_rows = layout.rows(rows[-1], len(names))
    types = {name: types.get(name, delimited_text.NUMBERS[0]) for name in names}
    return DelimitedIndex(np.minimum(rows, n_rows), np.array(positions), layout.separator, types)


def index_json(file: IO[bytes]) -> JsonIndex:
    """Read a file of JSON objects once, and find the types of its columns and the positions of its rows."""
    schema: dict[str, pl.DataType] = {}
    rows, positions = [0], [0]
    for content in _row_blocks(file, 0, has_quotes=False):
        frame = pl.read_ndjson(io.BytesIO(content), infer_schema_length=None) if content.strip() else pl.DataFrame()
        schema = _common_schema(schema, dict(frame.schema))
        rows.append(rows[-1] + frame.height)
        positions.append(positions[-1] + len(content))
    return JsonIndex(np.array(rows), np.array(positions), schema)


def _common_schema(first: dict[str, pl.DataType], second: dict[str, pl.DataType]) -> dict[str, pl.DataType]:
    """Types of columns that can hold the values of both."""
    result = first | {name: dtype for name, dtype in second.items() if first.get(name, pl.Null()) == pl.Null()}
    for name, dtype in second.items():
        if dtype not in (result[name], pl.Null()):
            is_number = dtype.is_numeric() and result[name].is_numeric()
            result[name] = pl.Float64() if is_number else pl.String()
    return result


def _row_blocks(file: IO[bytes], begin: int, has_quotes: bool, end: int = -1) -> Iterator[bytes]:
    """The file from `begin` on in blocks of whole rows; with ``end=0`` the first block is one row."""
    file.seek(begin)
    pending, position = b"", begin
    for content in iter(lambda: file.read(BLOCK), b""):
        pending += content
        ends = _row_ends(pending, has_quotes)
        if len(ends):
            yield pending[: ends[end]]
            pending, position = pending[ends[end] :], position + int(ends[end])
        elif len(pending) > MAX_ROW:
            raise InputError(f"no row ends within {MAX_ROW:,} bytes after byte {position:,}: is a quote not closed?")
    if pending:
        yield pending


def _row_ends(content: bytes, has_quotes: bool) -> np.ndarray:
    """Positions after the newlines that end rows; `content` begins with a row."""
    values = np.frombuffer(content, np.uint8)
    newlines = np.flatnonzero(values == NEWLINE)
    if has_quotes and QUOTE in content:
        n_quotes = np.searchsorted(np.flatnonzero(values == QUOTE), newlines)
        newlines = newlines[n_quotes % 2 == 0]
    return newlines + 1


def _read_fields(content: bytes, separator: str, names: Sequence[str]) -> pl.DataFrame:
    """The fields of whole rows. A header is added, because Polars takes the number of columns from the first line."""
    header = separator.join(map(str, range(len(names)))).encode()
    frame = pl.read_csv(io.BytesIO(header + b"\n" + content), separator=separator, infer_schema=False)
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def check_last_line(file: IO[bytes], suffix: str) -> None:
    """Raise an error if the last line has no newline and fewer fields than the first: the file is not complete.

    Only plain text without quotes in these lines is checked.
    """
    layout = delimited_text.plain_layout(file, suffix)
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    first = file.read(SNIFFED_BYTES).partition(b"\n")[0]
    file.seek(max(0, size - SNIFFED_BYTES))
    last = file.read().rpartition(b"\n")[2]
    if layout is None or not last.strip() or b'"' in first + last:
        return
    expected, n_fields = (line.count(layout.separator.encode()) + 1 for line in (first, last))
    if n_fields < expected:
        raise InputError(f"its last line has {n_fields} of {expected} fields and no end: is the file complete?")
