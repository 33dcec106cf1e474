"""Cells of a table that a fitted model cannot use."""

from collections.abc import Iterable

import polars as pl

from coterie.core.formatting import truncate
from coterie.data.tables import delimited_text, malformed_lines
from coterie.data.tables.reader import Table
from coterie.errors import InputError
from coterie.preparation.column_selection import check_categories, column_kind

LONGEST = 40  # characters of a value that a message quotes


def check_types(table: Table, numbers: Iterable[str], categories: Iterable[str]) -> None:
    """Reject columns of other types than those that the model was fitted to; name the first invalid cell."""
    for name in numbers:
        dtype = table.schema[name]
        if dtype.base_type() in delimited_text.TEXT_TYPES:
            _check_cells(table, name)
        elif not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
            raise InputError(
                f'column "{name}" of {table.name} holds {column_kind(table, name)}; the model needs numbers.'
            )
    for name in categories:
        check_categories(table, name)


def _check_cells(table: Table, name: str) -> None:
    start = 0
    for batch in table.batches([name]):
        is_invalid = delimited_text.is_not_number(batch[name].cast(pl.String))
        if is_invalid.any():
            row = int(is_invalid.arg_max() or 0)
            line = malformed_lines.line_number(table.path, start + row)
            where = f"row {start + row:,} (from 0)" if line is None else f"line {line:,}"
            value = truncate(str(batch[name][row]), LONGEST)
            raise InputError(
                f'{table.name}, {where}: column "{name}" has the value "{value}", but the model needs numbers there. '
                "Correct the cell; or empty it, and use --missing drop."
            )
        start += batch.height
