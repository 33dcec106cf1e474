"""Delimited text files: encoding, separator, header, and types of the columns."""

import codecs
import io
import os
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import polars as pl

from coterie.data import temporary_arrays

SNIFFED_BYTES = 65_536
SNIFFED_LINES = 20
BLOCK = 1 << 22  # bytes read at a time
DELIMITERS = (",", ";", "\t", "|")
# Quoted fields, which may contain delimiters and line breaks; the last one may be truncated. Other quotes are text.
QUOTED = re.compile(r'(?<![^,;\t|\r\n])"(?:[^"]|"")*(?:"|\Z)')
NO_HEADER = (
    "The first line contains only numbers: it is read as a row, and columns are named column_1, column_2 and so on."
)
BLANK = b" \r\n"
UTF_8 = "utf-8-sig"  # with or without a byte order mark
WESTERN = "cp1252"
MISSING_MARKS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
TEXT_TYPES = (pl.String, pl.Categorical, pl.Enum)

Rows = TypeVar("Rows", pl.DataFrame, pl.LazyFrame)


class FieldType(NamedTuple):
    """Type of the fields of a column."""

    dtype: type[pl.DataType]
    comma: bool = False  # whether the decimal separator is a comma


TEXT = FieldType(pl.String)
# Fields of each type can also be read as all types after it.
NUMBERS = (FieldType(pl.Int64), FieldType(pl.Float64), FieldType(pl.Float64, comma=True))


class Layout(NamedTuple):
    """Separator, header and blank lines of a text file."""

    separator: str
    header: bool  # whether the first line contains column names; a line of numbers is the first row
    blank: int  # blank lines at the end

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.header else (NO_HEADER,)

    def rows(self, lines: int, columns: int) -> int:
        """Number of rows: blank lines at the end are not rows, except in one column, where they are missing values."""
        return lines - self.blank if columns > 1 else lines


def scan_text(path: Path) -> tuple[pl.LazyFrame, Layout]:
    """A LazyFrame of all lines with fields as text, and the layout; a file that is not UTF-8 is converted first."""
    encoding = detect_encoding(path)
    with path.open("rb") if encoding == UTF_8 else temporary_arrays.temporary_file() as file:
        if encoding != UTF_8:
            with path.open("rb") as original, temporary_arrays.convert_disk_errors(path.stat().st_size):
                for block in codecs.iterdecode(_blocks(original), encoding, decode_errors(encoding)):
                    file.write(block.encode())
                file.seek(0)
        layout = _layout(file, path.suffix)
        file.seek(0)
        source = path if encoding == UTF_8 else file
        lines = _name_columns(pl.scan_csv(source, **_options(layout), glob=False), layout)
        file.seek(0)
        return _unescape_names(lines, file, layout), layout


def detect_layout(path: Path) -> Layout:
    """Separator, header and blank lines of a file."""
    return scan_text(path)[1]


def read_text(content: bytes, suffix: str = "") -> tuple[pl.DataFrame, Layout]:
    """All rows of a file with fields as text, and the layout of the file."""
    encoding = _encoding_of(iter([content]))
    plain = content.decode(encoding, decode_errors(encoding)).encode()
    layout = _layout(io.BytesIO(plain), suffix)
    lines = _name_columns(pl.read_csv(io.BytesIO(plain), **_options(layout)), layout)
    lines = _unescape_names(lines, io.BytesIO(plain), layout)
    return lines.head(layout.rows(lines.height, lines.width)), layout


def _options(layout: Layout) -> dict[str, Any]:
    return {"separator": layout.separator, "has_header": layout.header, "infer_schema": False}


def _name_columns(lines: Rows, layout: Layout) -> Rows:
    """Name the columns of a file without header; the names of Polars start with 0 or 1, depending on its version."""
    if layout.header:
        return lines
    names = lines.collect_schema().names()
    return lines.rename({name: f"column_{j}" for j, name in enumerate(names, start=1)})


def _unescape_names(lines: Rows, file: IO[bytes], layout: Layout) -> Rows:
    """Replace doubled quotes in column names by single ones; Polars does so in rows only."""
    names = lines.collect_schema().names()
    if not layout.header or not any('""' in name for name in names):
        return lines
    options = _options(layout) | {"has_header": False, "n_rows": 1, "truncate_ragged_lines": True}
    fields = [field or "" for field in pl.read_csv(file, **options).row(0)]
    unescaped = [name.replace(field.replace('"', '""'), field, 1) for name, field in zip(names, fields, strict=True)]
    return lines.rename({name: new for name, new in zip(names, unescaped, strict=True) if unescaped.count(new) == 1})


def detect_encoding(path: Path) -> str:
    with path.open("rb") as file:
        return _encoding_of(_blocks(file))


def _encoding_of(blocks: Iterator[bytes]) -> str:
    """The encoding of the byte order mark; without one UTF-8 if all bytes are valid, otherwise Windows-1252."""
    block = next(blocks, b"")
    if block.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # must come first: it starts like UTF-16
        return "utf-32"
    if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in block[:SNIFFED_BYTES]:
        raise ValueError("it is not text.")
    try:
        for _ in codecs.iterdecode(chain([block], blocks), UTF_8):
            pass
    except UnicodeDecodeError:
        return WESTERN
    return UTF_8


def decode_errors(encoding: str) -> str:
    """How to treat invalid bytes: Windows-1252 is a guess, so they are replaced there."""
    return "replace" if encoding == WESTERN else "strict"


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(file.read, BLOCK), b"")


def _layout(file: IO[bytes], suffix: str) -> Layout:
    """Layout of UTF-8 text; `suffix` is that of the file name."""
    start = file.read(SNIFFED_BYTES + len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)[:SNIFFED_BYTES]
    separator = "\t" if suffix.lower() == ".tsv" else _delimiter(start.decode(errors="ignore"))
    return Layout(separator, not _is_numbers(start, separator), _blank_lines(file))


def _is_numbers(start: bytes, separator: str) -> bool:
    """Whether all fields of the first line are numbers."""
    options = _options(Layout(separator, header=False, blank=0)) | {"n_rows": 1, "truncate_ragged_lines": True}
    try:
        first = pl.read_csv(io.BytesIO(start), **options)
    except pl.exceptions.PolarsError:
        return False
    fields = pl.Series(first.row(0), dtype=pl.String)
    return _present(fields).null_count() == 0 and _field_type(fields, _numbers(separator)) != TEXT


def _blank_lines(file: IO[bytes]) -> int:
    """Number of blank lines at the end."""
    position, end = file.seek(0, os.SEEK_END), b""
    while position > 0 and not end.strip(BLANK):
        position, size = max(0, position - SNIFFED_BYTES), min(position, SNIFFED_BYTES)
        file.seek(position)
        end = file.read(size) + end
    end = end[len(end.rstrip(BLANK)) :]
    return max(0, end.count(b"\n") - end.endswith(b"\n"))


def _delimiter(text: str) -> str:
    """The most frequent separator that occurs in each of the first rows; a comma if there is none."""
    lines = [line for line in re.split(r"[\r\n]+", QUOTED.sub('""', text))[:SNIFFED_LINES] if line.strip()]
    lines = lines[: max(1, len(lines) - 1)]  # the last one may be truncated
    counts = {mark: min((line.count(mark) for line in lines), default=0) for mark in DELIMITERS}
    return max(DELIMITERS, key=lambda mark: counts[mark])


def parse(column: pl.Series, separator: str) -> pl.Series:
    """The column as numbers if all fields are; a comma is a decimal separator unless it separates fields."""
    return convert(column, _field_type(column, _numbers(separator)))


def is_not_number(column: pl.Series) -> pl.Series:
    """Mask (n,) of fields that are neither missing nor numbers, with a decimal point or comma."""
    present = _present(column)
    is_null = [_cast(present, field_type).is_null() for field_type in NUMBERS[1:]]
    both = is_null[0] & is_null[1]
    return (both if both.sum() > present.null_count() else is_null[0]) & present.is_not_null()


def field_types(batches: Iterable[pl.DataFrame], separator: str) -> tuple[dict[str, FieldType], int]:
    """The type that `parse` gives to every column, over all batches; and the number of rows."""
    numbers = _numbers(separator)
    types: dict[str, FieldType] = {}
    rows = 0
    for batch in batches:
        rows += batch.height
        for column in batch:
            previous = types.get(column.name, numbers[0])
            types[column.name] = (
                _field_type(column, numbers[numbers.index(previous) :]) if previous in numbers else TEXT
            )
    return types, rows


def convert(column: pl.Series, field_type: FieldType) -> pl.Series:
    """The fields of a column converted to a type; missing values and fields of other types are null."""
    present = _present(column)
    return column.set(present.is_null(), None) if field_type == TEXT else _cast(present, field_type)


def _numbers(separator: str) -> tuple[FieldType, ...]:
    return tuple(each for each in NUMBERS if separator != "," or not each.comma)


def _field_type(column: pl.Series, numbers: Iterable[FieldType]) -> FieldType:
    """The first type that every field of the column has; text if there is none."""
    present = _present(column)
    missing = present.null_count()
    return next((each for each in numbers if _cast(present, each).null_count() == missing), TEXT)


def _present(column: pl.Series) -> pl.Series:
    """The fields without surrounding blanks; null where they are missing."""
    text = column.str.strip_chars()
    return text.set(text.is_in(MISSING_MARKS), None)


def _cast(present: pl.Series, field_type: FieldType) -> pl.Series:
    text = present.str.replace(",", ".", literal=True) if field_type.comma else present
    return text.cast(field_type.dtype, strict=False)
