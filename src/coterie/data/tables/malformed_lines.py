"""Where a file that cannot be read is at fault, in words: it is gone through once more, line by line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from coterie.data.tables import delimited_text as text

LINES = (".csv", ".tsv", ".txt")
JSON = (".ndjson", ".jsonl")


def found_in(path: Path) -> str | None:
    """What is wrong with a file of lines; None where nothing is found, or for other files."""
    suffix = path.suffix.lower()
    if suffix in LINES:
        return _ragged_line(path)
    return _bad_json(path) if suffix in JSON else None


def line_of(path: Path, row: int) -> int | None:
    """The line, from 1, on which a row of a text file begins; None for other files."""
    if path.suffix.lower() not in LINES or not path.is_file():
        return None
    layout, encoding = text.layout(path), text.encoding(path)
    with path.open(encoding=encoding, errors=text.on_error(encoding), newline="") as file:
        lines = csv.reader(file, delimiter=layout.separator)
        try:
            for _ in range(row + layout.header):
                next(lines)
        except (csv.Error, StopIteration):  # Polars reads some files otherwise
            return None
        return lines.line_num + 1


def _ragged_line(path: Path) -> str | None:
    """The first line with more fields than the first."""
    encoding, separator = text.encoding(path), text.layout(path).separator
    with path.open(encoding=encoding, errors=text.on_error(encoding), newline="") as file:
        lines = csv.reader(file, delimiter=separator)
        try:
            wanted = len(next(lines, []))
            for fields in lines:
                if len(fields) > wanted:
                    return f"line {lines.line_num} has {len(fields)} fields, the first has {wanted}"
        except csv.Error as error:
            return f"line {lines.line_num}: {error}"
    return None


def _bad_json(path: Path) -> str | None:
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            try:
                value = json.loads(line) if line.strip() else {}
            except json.JSONDecodeError as error:
                return f"line {number} is not JSON: {error.msg}"
            if not isinstance(value, dict):
                return f"line {number} is no object in braces, {{...}}, with a value for each column"
    return None
