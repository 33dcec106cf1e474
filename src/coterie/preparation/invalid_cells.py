"""Cells of a table that a fitted model cannot use."""

from collections.abc import Iterable

import polars as pl

from coterie.core.errors import InputError
from coterie.data.tables import delimited_text as text
from coterie.data.tables import malformed_lines as faults
from coterie.data.tables.reader import Table
from coterie.preparation.column_selection import kind_of, require_names

LONGEST = 40  # characters of a value that a message quotes
WORDS = (pl.String, pl.Categorical, pl.Enum)


def check_kinds(table: Table, numbers: Iterable[str], categories: Iterable[str]) -> None:
    """Reject columns that hold something else than the model was fitted to; a single bad cell is named."""
    for name in numbers:
        kind = table.schema[name]
        if kind.base_type() in WORDS:
            _check_cells(table, name)
        elif not (kind.is_numeric() or kind in (pl.Boolean, pl.Null)):
            raise InputError(f'column "{name}" of {table.name} holds {kind_of(table, name)}; the model needs numbers.')
    for name in categories:
        require_names(table, name)


def _check_cells(table: Table, name: str) -> None:
    start = 0
    for frame in table.batches([name]):
        wrong = text.not_numbers(frame[name].cast(pl.String))
        if wrong.any():
            at = int(wrong.arg_max() or 0)
            raise InputError(_bad_cell(table, name, start + at, str(frame[name][at])))
        start += frame.height


def _bad_cell(table: Table, name: str, row: int, value: str) -> str:
    line = faults.line_of(table.path, row)
    where = f"row {row:,} (from 0)" if line is None else f"line {line:,}"
    value = value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
    return (
        f'{table.name}, {where}: column "{name}" has the value "{value}", but the model needs numbers there. '
        "Correct the cell; or empty it, and use --missing drop."
    )
