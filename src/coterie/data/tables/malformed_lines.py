"""Finds the line of a text file that cannot be read, by a second pass over the file."""

import csv
import json
from pathlib import Path

from coterie.data.tables import delimited_text
from coterie.data.tables.file_formats import TEXT

JSON = (".ndjson", ".jsonl")


def malformed_line(path: Path) -> str | None:
    """Description of the first malformed line; None if there is none, or for binary files."""
    suffix = path.suffix.lower()
    if suffix in TEXT:
        return _ragged_line(path)
    return _invalid_json(path) if suffix in JSON else None


def line_number(path: Path, row: int) -> int | None:
    """The line, counted from 1, at which a row of a text file begins; None for other files."""
    if path.suffix.lower() not in TEXT or not path.is_file():
        return None
    layout, encoding = delimited_text.detect_layout(path), delimited_text.detect_encoding(path)
    with path.open(encoding=encoding, errors=delimited_text.decode_errors(encoding), newline="") as file:
        lines = csv.reader(file, delimiter=layout.separator)
        try:
            for _ in range(row + layout.header):
                next(lines)
        except (csv.Error, StopIteration):  # Polars interprets some files differently
            return None
        return lines.line_num + 1


def _ragged_line(path: Path) -> str | None:
    """The first line with more fields than the first line."""
    encoding, separator = delimited_text.detect_encoding(path), delimited_text.detect_layout(path).separator
    with path.open(encoding=encoding, errors=delimited_text.decode_errors(encoding), newline="") as file:
        lines = csv.reader(file, delimiter=separator)
        try:
            expected = len(next(lines, []))
            for fields in lines:
                if len(fields) > expected:
                    return f"line {lines.line_num} has {len(fields)} fields, the first has {expected}"
        except csv.Error as error:
            return f"line {lines.line_num}: {error}"
    return None


def _invalid_json(path: Path) -> str | None:
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            try:
                value = json.loads(line) if line.strip() else {}
            except json.JSONDecodeError as error:
                return f"line {number} is not JSON: {error.msg}"
            if not isinstance(value, dict):
                return f"line {number} is not a JSON object, {{...}}, with a value for each column"
    return None
