"""Delimited text files: encoding, separator, header, and types of the columns."""

import codecs
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import polars as pl

from coterie.data import temporary_arrays
from coterie.data.tables.text_cleaning import (
    DELIMITERS,
    QUOTED,
    SNIFFED_LINES,
    Cleaning,
    CleanText,
    clean,
    delimiter,
    detect_cleaning,
)

SNIFFED_BYTES = 65_536
MISPLACED_QUOTE = "has a double quote without its partner: delete it, or write the missing one."
BLOCK = 1 << 22  # bytes read at a time
NO_HEADER = (
    "The first line contains only numbers: it is read as a row, and columns are named column_1, column_2 and so on."
)
BLANK = b" \r\n"
DUPLICATED = "_duplicated_"  # in the names of Polars
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
    cleaning_notes: tuple[str, ...] = ()  # about lines that are not rows

    @property
    def notes(self) -> tuple[str, ...]:
        return self.cleaning_notes if self.header else (*self.cleaning_notes, NO_HEADER)

    def rows(self, lines: int, columns: int) -> int:
        """Number of rows: blank lines at the end are not rows, except in one column, where they are missing values."""
        return lines - self.blank if columns > 1 else lines


def scan_text(path: Path, header_row: int | None = None) -> tuple[pl.LazyFrame, Layout]:
    """A LazyFrame of all lines with fields as text, and the layout; other text than plain UTF-8 is converted first."""
    encoding = detect_encoding(path)
    cleaned = cleaned_text(path, encoding, header_row)
    is_plain = encoding == UTF_8 and cleaned is None
    with path.open("rb") if is_plain else temporary_arrays.temporary_file() as file:
        if not is_plain:
            with path.open("rb") as original, temporary_arrays.convert_disk_errors(path.stat().st_size):
                blocks = codecs.iterdecode(_blocks(original), encoding, decode_errors(encoding))
                for block in blocks if cleaned is None else [cleaned.text]:
                    file.write(block.encode())
                file.seek(0)
        layout = _layout(file, path.suffix)._replace(cleaning_notes=() if cleaned is None else cleaned.notes)
        file.seek(0)
        lines = pl.scan_csv(path if is_plain else file, **_options(layout), glob=False)
        return _name_columns(lines, file, layout), layout


def detect_layout(path: Path, header_row: int | None = None) -> Layout:
    """Separator, header and blank lines of a file."""
    return scan_text(path, header_row)[1]


def cleaned_text(path: Path, encoding: str, header_row: int | None = None) -> CleanText | None:
    """The text of a file with lines that are not rows, or in another dialect, as plain CSV; None if it is plain.

    `header_row` is the line of the column names, counted from 1; None: it is found.
    """
    with path.open("rb") as file:
        return _clean(file, path.suffix, encoding, header_row)


def read_text(
    content: bytes, suffix: str = "", header_row: int | None = None, noun: str = "line"
) -> tuple[pl.DataFrame, Layout]:
    """All rows of a file with fields as text, and the layout of the file; `noun` is what notes call a line."""
    encoding = _encoding_of(iter([content]))
    text = content.decode(encoding, decode_errors(encoding))
    cleaned = _clean(io.BytesIO(content), suffix, encoding, header_row, noun) or CleanText(text, [], ())
    plain = cleaned.text.encode()
    layout = _layout(io.BytesIO(plain), suffix)._replace(cleaning_notes=cleaned.notes)
    lines = _name_columns(pl.read_csv(io.BytesIO(plain), **_options(layout)), io.BytesIO(plain), layout)
    return lines.head(layout.rows(lines.height, lines.width)), layout


def _clean(file: IO[bytes], suffix: str, encoding: str, header_row: int | None, noun: str = "line") -> CleanText | None:
    cleaning = _cleaning(file, suffix, encoding, header_row)
    if not cleaning.is_needed:
        return None
    file.seek(0)
    return clean(file.read().decode(encoding, decode_errors(encoding)), cleaning, _marks(suffix), noun)


def _marks(suffix: str) -> Sequence[str]:
    """The delimiters that a file with that suffix may have."""
    return "\t" if suffix.lower() == ".tsv" else DELIMITERS


def _cleaning(file: IO[bytes], suffix: str, encoding: str, header_row: int | None) -> Cleaning:
    """What is not plain about a file, by its first and last bytes."""
    size = file.seek(0, os.SEEK_END)
    is_cut = encoding in (UTF_8, WESTERN)  # the last bytes of other encodings cannot be decoded alone
    file.seek(0)
    head = file.read(SNIFFED_BYTES if is_cut else size).decode(encoding, errors="replace")
    file.seek(max(0, size - SNIFFED_BYTES) if is_cut else 0)
    tail = file.read().decode(encoding, errors="replace")
    is_whole = (size if is_cut else len(head)) <= SNIFFED_BYTES
    return detect_cleaning(head[:SNIFFED_BYTES], tail[-SNIFFED_BYTES:], is_whole, header_row, _marks(suffix))


def plain_layout(file: IO[bytes], suffix: str) -> Layout | None:
    """Layout of UTF-8 text without lines that are not rows; None for text that `scan_text` must convert first."""
    file.seek(0)
    head = file.read(SNIFFED_BYTES)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in head:
        return None
    if _cleaning(file, suffix, UTF_8, None).is_needed:
        return None
    file.seek(0)
    return _layout(file, suffix)


def column_names(first_line: bytes, layout: Layout) -> list[str]:
    """Names of the columns, from the first line of plain text."""
    lines = pl.read_csv(io.BytesIO(first_line), **_options(layout))
    return _name_columns(lines, io.BytesIO(first_line), layout).columns


def _options(layout: Layout) -> dict[str, Any]:
    return {"separator": layout.separator, "has_header": layout.header, "infer_schema": False}


def _name_columns(lines: Rows, file: IO[bytes], layout: Layout) -> Rows:
    """Give every column a name of its own: ``unnamed_1`` without a name, ``a_2`` for the second ``a``.

    Doubled quotes in names become single ones; Polars does so in rows only. Without header, the names of Polars start
    with 0 or 1, depending on its version.
    """
    names = lines.collect_schema().names()
    if not layout.header:
        return lines.rename({name: f"column_{j}" for j, name in enumerate(names, start=1)})
    if not any('""' in name or not name.strip() or DUPLICATED in name for name in names):
        return lines
    options = _options(layout) | {"has_header": False, "n_rows": 1, "truncate_ragged_lines": True}
    file.seek(0)
    fields = [field or "" for field in pl.read_csv(file, **options).row(0)]
    new: list[str] = []
    for j, field in enumerate(fields, start=1):
        name, number = field if field.strip() else f"unnamed_{j}", 2
        while name in new or (name != field and name in fields):
            name, number = f"{field}_{number}", number + 1
        new.append(name)
    return lines.rename(dict(zip(names, new, strict=True)))


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
        raise ValueError("it is not text: save it as UTF-8.")
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
    separator = _delimiter(start.decode(errors="ignore"), _marks(suffix))
    return Layout(separator, not _is_numbers(start, separator), _blank_lines(file))


def _is_numbers(start: bytes, separator: str) -> bool:
    """Whether all fields of the first line are numbers."""
    options = _options(Layout(separator, header=False, blank=0)) | {"n_rows": 1, "truncate_ragged_lines": True}
    try:
        first = pl.read_csv(io.BytesIO(start), **options)
    except pl.exceptions.PolarsError:
        return False
    if first.is_empty():
        if len(start) < SNIFFED_BYTES:
            raise ValueError(f"line 1 {MISPLACED_QUOTE}")
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


def _delimiter(text: str, marks: Sequence[str] = DELIMITERS) -> str:
    """The most frequent of `marks` that occurs in each of the first rows; the first of them if there is none."""
    lines = [line for line in re.split(r"[\r\n]+", QUOTED.sub('""', text))[:SNIFFED_LINES] if line.strip()]
    return delimiter(lines[: max(1, len(lines) - 1)], marks)  # the last one may be truncated


def parse(column: pl.Series, separator: str) -> pl.Series:
    """The column as numbers if all fields are; a comma is a decimal separator unless it separates fields."""
    return convert(column, widened_types({}, column.to_frame(), separator)[column.name])


def is_not_number(column: pl.Series) -> pl.Series:
    """Mask (n,) of fields that are neither missing nor numbers, with a decimal point or comma."""
    present = _present(column)
    is_null = [_cast(present, field_type).is_null() for field_type in NUMBERS[1:]]
    both = is_null[0] & is_null[1]
    return (both if both.sum() > present.null_count() else is_null[0]) & present.is_not_null()


def field_types(batches: Iterable[pl.DataFrame], separator: str) -> tuple[dict[str, FieldType], int]:
    """The type that `parse` gives to every column, over all batches; and the number of rows."""
    types: dict[str, FieldType] = {}
    rows = 0
    for batch in batches:
        rows += batch.height
        types = widened_types(types, batch, separator)
    return types, rows


def widened_types(types: dict[str, FieldType], batch: pl.DataFrame, separator: str) -> dict[str, FieldType]:
    """The first types that the fields of a batch have as well as those of earlier batches, which gave `types`."""
    numbers = _numbers(separator)
    widened = {}
    for column in batch:
        previous = types.get(column.name, numbers[0])
        candidates = numbers[numbers.index(previous) :] if previous in numbers and not has_codes(column) else ()
        widened[column.name] = _field_type(column, candidates)
    return widened


def has_codes(column: pl.Series) -> bool:
    """Whether a field has digits after a leading zero, as 02115 has: a number would lose the zero."""
    return bool(column.str.contains(r"^\s*0[0-9]+\s*$").any())


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
