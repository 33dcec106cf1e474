"""Tables of results: rows of plain values, and their text."""

from typing import Any

import numpy as np

from coterie.core.formatting import table_lines


def as_rows(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """One dict for each row of these arrays or lists, by name, with the numbers of Python."""
    values = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def aligned(rows: list[dict[str, Any]]) -> str:
    """Format rows as a table with a header and right-aligned columns; None is a dash."""
    cells = [[_cell(value) for value in row.values()] for row in rows]
    return "\n".join(table_lines([list(rows[0]), *cells])) if rows else ""


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
