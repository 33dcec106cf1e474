"""Delimited text: its encoding, its layout, and what its fields are."""

from __future__ import annotations

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

from coterie.data import scratch

SNIFFED_BYTES = 65_536
SNIFFED_LINES = 20
BLOCK = 1 << 22  # bytes that are looked at together
DELIMITERS = (",", ";", "\t", "|")
# Fields in quotes, which may hold delimiters and line breaks; the last one may have been cut. Other quotes are text.
QUOTED = re.compile(r'(?<![^,;\t|\r\n])"(?:[^"]|"")*(?:"|\Z)')
NO_HEADER = "The first line is numbers: it is taken for a row, and columns are called column_1, column_2 and so on."
BLANK = b" \r\n"
UTF_8 = "utf-8-sig"  # with or without a mark before it
OLD_WESTERN = "cp1252"
MISSING_MARKS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


Lines = TypeVar("Lines", pl.DataFrame, pl.LazyFrame)


class Kind(NamedTuple):
    """What the fields of a column are."""

    dtype: type[pl.DataType]
    comma: bool = False  # which stands before decimals


TEXT = Kind(pl.String)
NUMBERS = (Kind(pl.Int64), Kind(pl.Float64), Kind(pl.Float64, comma=True))  # each can be read as all after it


class Layout(NamedTuple):
    """How the fields of a file stand in it."""

    separator: str
    header: bool  # whether the first line names the columns; if it is numbers, it is the first row
    blank: int  # lines at the end that hold nothing

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know."""
        return () if self.header else (NO_HEADER,)

    def rows(self, lines: int, columns: int) -> int:
        """How many of so many lines are rows: blank ones at the end are not, but where they may be a missing value."""
        return lines - self.blank if columns > 1 else lines


def scanned(path: Path) -> tuple[pl.LazyFrame, Layout]:
    """Every line of a file, of fields as they are written, not read yet; and how they stand in it.

    What is not in UTF-8 is recoded into a scratch file first, which Polars then holds open.
    """
    written = encoding(path)
    with path.open("rb") if written == UTF_8 else scratch.file() as file:
        if written != UTF_8:
            _recode(path, written, file)
        layout = _layout(file, path.suffix)
        file.seek(0)
        source = path if written == UTF_8 else file
        lines = _named(pl.scan_csv(source, **_options(layout), glob=False), layout)
        file.seek(0)
        return _without_doubled_quotes(lines, file, layout), layout


def layout(path: Path) -> Layout:
    """How the fields of a file stand in it."""
    return scanned(path)[1]


def frame(content: bytes, suffix: str = "") -> tuple[pl.DataFrame, Layout]:
    """The rows of a file that is read whole, of fields as they are written; and how they stand in it."""
    written = _encoding_of(iter([content]))
    plain = content.decode(written, on_error(written)).encode()
    layout = _layout(io.BytesIO(plain), suffix)
    lines = _named(pl.read_csv(io.BytesIO(plain), **_options(layout)), layout)
    lines = _without_doubled_quotes(lines, io.BytesIO(plain), layout)
    return lines.head(layout.rows(lines.height, lines.width)), layout


def _options(layout: Layout) -> dict[str, Any]:
    return {"separator": layout.separator, "has_header": layout.header, "infer_schema": False}


def _named(lines: Lines, layout: Layout) -> Lines:
    """With names for columns that have none; those of Polars begin with 0 or 1, as its version has it."""
    if layout.header:
        return lines
    names = lines.collect_schema().names()
    return lines.rename({name: f"column_{j}" for j, name in enumerate(names, start=1)})


def _without_doubled_quotes(lines: Lines, file: IO[bytes], layout: Layout) -> Lines:
    """With names as they are meant: Polars leaves quotes within quotes doubled in names, but not in rows."""
    names = lines.collect_schema().names()
    if not layout.header or not any('""' in name for name in names):
        return lines
    options = _options(layout) | {"has_header": False, "n_rows": 1, "truncate_ragged_lines": True}
    fields = [field or "" for field in pl.read_csv(file, **options).row(0)]
    meant = [name.replace(field.replace('"', '""'), field, 1) for name, field in zip(names, fields, strict=True)]
    return lines.rename({name: new for name, new in zip(names, meant, strict=True) if meant.count(new) == 1})


# the encoding


def encoding(path: Path) -> str:
    """Of the text in a file."""
    with path.open("rb") as file:
        return _encoding_of(_blocks(file))


def _encoding_of(blocks: Iterator[bytes]) -> str:
    """By the mark of byte order; else UTF-8 if all of the text is, else that of old Western files."""
    block = next(blocks, b"")
    if block.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # the first begins like UTF-16
        return "utf-32"
    if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in block[:SNIFFED_BYTES]:
        raise ValueError("it is not text.")
    try:
        for _ in codecs.iterdecode(chain([block], blocks), UTF_8):
            pass
    except UnicodeDecodeError:
        return OLD_WESTERN
    return UTF_8


def _recode(path: Path, written: str, to: IO[bytes]) -> None:
    with path.open("rb") as file, scratch.full_disk_in_words(path.stat().st_size):
        for block in codecs.iterdecode(_blocks(file), written, on_error(written)):
            to.write(block.encode())
        to.seek(0)


def on_error(written: str) -> str:
    """What to do about bytes that mean nothing, in an encoding that may be but a guess."""
    return "replace" if written == OLD_WESTERN else "strict"


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(file.read, BLOCK), b"")


# the layout


def _layout(file: IO[bytes], suffix: str) -> Layout:
    """Of text in UTF-8, in a file whose name ends so."""
    start = file.read(SNIFFED_BYTES + len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)[:SNIFFED_BYTES]
    separator = "\t" if suffix.lower() == ".tsv" else _delimiter(start.decode(errors="ignore"))
    return Layout(separator, not _is_numbers(start, separator), _blank_lines(file))


def _is_numbers(start: bytes, separator: str) -> bool:
    """Whether the first line is numbers, and nothing else."""
    how = _options(Layout(separator, header=False, blank=0)) | {"n_rows": 1, "truncate_ragged_lines": True}
    try:
        first = pl.read_csv(io.BytesIO(start), **how)
    except pl.exceptions.PolarsError:
        return False
    fields = pl.Series(first.row(0), dtype=pl.String)
    return _present(fields).null_count() == 0 and _kind(fields, _numbers(separator)) != TEXT


def _blank_lines(file: IO[bytes]) -> int:
    """How many lines at the end are blank."""
    at, end = file.seek(0, os.SEEK_END), b""
    while at > 0 and not end.strip(BLANK):
        at, size = max(0, at - SNIFFED_BYTES), min(at, SNIFFED_BYTES)
        file.seek(at)
        end = file.read(size) + end
    end = end[len(end.rstrip(BLANK)) :]
    return max(0, end.count(b"\n") - end.endswith(b"\n"))


def _delimiter(text: str) -> str:
    """The one that is in every one of the first rows, most often; a comma where none is."""
    lines = [line for line in re.split(r"[\r\n]+", QUOTED.sub('""', text))[:SNIFFED_LINES] if line.strip()]
    lines = lines[: max(1, len(lines) - 1)]  # the last may have been cut
    counts = {mark: min((line.count(mark) for line in lines), default=0) for mark in DELIMITERS}
    return max(DELIMITERS, key=lambda mark: counts[mark])


# the fields


def parsed(column: pl.Series, separator: str) -> pl.Series:
    """The column as integers, else as numbers, where every field but the missing ones is one.

    Where fields are not separated by commas, a comma may stand before decimals.
    """
    return as_kind(column, _kind(column, _numbers(separator)))


def not_numbers(column: pl.Series) -> pl.Series:
    """Which fields are there, but are no number, with a point or a comma before decimals (n,)."""
    present = _present(column)
    spelled = [_cast(present, kind).is_null() for kind in NUMBERS[1:]]
    both = spelled[0] & spelled[1]
    return (both if both.sum() > present.null_count() else spelled[0]) & present.is_not_null()


def kinds(batches: Iterable[pl.DataFrame], separator: str) -> tuple[dict[str, Kind], int]:
    """What `parsed` would make of every column, of batches that follow each other; and the number of their rows."""
    numbers = _numbers(separator)
    found: dict[str, Kind] = {}
    rows = 0
    for batch in batches:
        rows += batch.height
        for column in batch:
            before = found.get(column.name, numbers[0])
            found[column.name] = _kind(column, numbers[numbers.index(before) :]) if before in numbers else TEXT
    return found, rows


def as_kind(column: pl.Series, kind: Kind) -> pl.Series:
    """The fields of a column as that kind; what is missing, or of another kind, is null."""
    present = _present(column)
    return column.set(present.is_null(), None) if kind == TEXT else _cast(present, kind)


def _numbers(separator: str) -> tuple[Kind, ...]:
    return tuple(kind for kind in NUMBERS if separator != "," or not kind.comma)


def _kind(column: pl.Series, numbers: Iterable[Kind]) -> Kind:
    """The first that every field of the column is; text if it is none."""
    present = _present(column)
    missing = present.null_count()
    return next((kind for kind in numbers if _cast(present, kind).null_count() == missing), TEXT)


def _present(column: pl.Series) -> pl.Series:
    """The fields without blanks about them; null where they are missing."""
    text = column.str.strip_chars()
    return text.set(text.is_in(MISSING_MARKS), None)


def _cast(present: pl.Series, kind: Kind) -> pl.Series:
    spelling = present.str.replace(",", ".", literal=True) if kind.comma else present
    return spelling.cast(kind.dtype, strict=False)
