"""Text tables."""

from typing import Any

from coterie.core.formatting import table_lines


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
