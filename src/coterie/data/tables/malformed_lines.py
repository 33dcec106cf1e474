"""Finds the line of a text file that cannot be read, by a second pass over the file."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import polars as pl

from coterie.data.tables import delimited_text
from coterie.data.tables.delimited_text import MISPLACED_QUOTE
from coterie.data.tables.suffixes import JSON_LINES, TEXT
from coterie.data.tables.text_cleaning import QUOTED


def malformed_line(path: Path) -> str | None:
    """Description of the first malformed line; None if there is none, or for binary files."""
    suffix = path.suffix.lower()
    if suffix in TEXT:
        try:
            separator = delimited_text.detect_layout(path).separator
        except pl.exceptions.PolarsError:  # not even the names of the columns can be read
            return f"the header {MISPLACED_QUOTE}"
        return _ragged_line(path, separator) or _misplaced_quote(path, separator) or _quote_within_field(path)
    return _invalid_json(path) if suffix in JSON_LINES else None


def line_number(path: Path, row: int, header_row: int | None = None) -> int | None:
    """The line, counted from 1, at which a row of a text file begins; None for other files."""
    if path.suffix.lower() not in TEXT or not path.is_file():
        return None
    layout = delimited_text.detect_layout(path, header_row)
    with _open_lines(path, header_row) as (file, number):
        lines = csv.reader(file, delimiter=layout.separator)
        try:
            for _ in range(row + layout.header):
                next(lines)
        except (csv.Error, StopIteration):  # Polars interprets some files differently
            return None
        return number(lines.line_num + 1)


def _ragged_line(path: Path, separator: str) -> str | None:
    """The first line with more fields than the first line."""
    with _open_lines(path) as (file, number):
        lines = csv.reader(file, delimiter=separator)
        try:
            expected = len(next(lines, []))
            for fields in lines:
                if len(fields) > expected:
                    line = number(lines.line_num)
                    return f"line {line} has {len(fields)} fields, the first has {expected}: {_remedy(separator)}"
        except csv.Error as error:
            return f"line {number(lines.line_num)}: {error}"
    return None


def _misplaced_quote(path: Path, separator: str) -> str | None:
    """The first row with a quote that is not closed, or that is followed by more text."""
    with _open_lines(path) as (file, number):
        lines, begin = csv.reader(file, delimiter=separator, strict=True), 1
        try:
            for _ in lines:
                begin = lines.line_num + 1
        except csv.Error:
            return f"line {number(begin)} {MISPLACED_QUOTE}"
    return None


def _quote_within_field(path: Path) -> str | None:
    """The first line with a quote in a field that is not in quotes: Polars reads them in some places of a file only."""
    with _open_lines(path) as (file, number):
        text = QUOTED.sub(lambda field: "\n" * field.group().count("\n"), file.read())
    place = text.find('"')
    if place < 0:
        return None
    line = number(text.count("\n", 0, place) + 1)
    return f"line {line} has a double quote within a field: put the field in double quotes, and write that quote twice."


def _remedy(separator: str) -> str:
    name = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}[separator]
    return f"delete what is too many, or put fields that contain {name} in double quotes."


@contextmanager
def _open_lines(path: Path, header_row: int | None = None) -> Iterator[tuple[IO[str], Callable[[int], int]]]:
    """The lines of a text file as they are parsed, and a function from their numbers to those of lines of the file."""
    encoding = delimited_text.detect_encoding(path)
    cleaned = delimited_text.cleaned_text(path, encoding, header_row)
    if cleaned is not None:
        numbers = cleaned.line_numbers
        yield io.StringIO(cleaned.text, newline=""), lambda line: numbers[min(line, len(numbers)) - 1]
        return
    with path.open(encoding=encoding, errors=delimited_text.decode_errors(encoding), newline="") as file:
        yield file, lambda line: line


def _invalid_json(path: Path) -> str | None:
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            try:
                value = json.loads(line) if line.strip() else {}
            except json.JSONDecodeError as error:
                return f"line {number} is not JSON: {error.msg}"
            except RecursionError:
                return f"line {number} is nested too deeply."
            if not isinstance(value, dict):
                return f"line {number} is not a JSON object, {{...}}, with a value for each column"
    return None
