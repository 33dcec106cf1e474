"""The title of the page, and how the result was computed."""

from typing import Any

from coterie.report.html.formatting import count, short_name
from coterie.report.table import SkippedColumn
from coterie.web import Markup, tag

MAX_NAMES = 40  # columns that are listed


def heading(title: str, result: Any, facts: list[str], version: str) -> Markup:
    """The title, one line of facts, and the columns that were used and skipped."""
    line = [_rows(result), _columns(result), f"scaling: {result.scale}", f"missing: {result.missing}", *facts]
    line += [f"seed {result.seed}", f"coterie {version}"]
    return tag(
        "header",
        tag("h1", title),
        tag("p", " · ".join(line), cls="facts muted"),
        tag("details", tag("summary", "Columns used and skipped"), _column_names(result)),
    )


def contents(keys: dict[str, str]) -> Markup:
    """Links to the sections; `keys` are their ids and titles."""
    return tag("nav", [tag("a", title, href=f"#{key}") for key, title in keys.items()], aria_label="Sections")


def _rows(result: Any) -> str:
    if result.rows_used == result.rows:
        return count(result.rows, "row")
    return f"{result.rows_used:,} of {count(result.rows, 'row')}"


def _columns(result: Any) -> str:
    kinds = {"numeric column": len(result.columns), "categorical column": len(result.categories)}
    counts = [count(number, kind) for kind, number in kinds.items() if number]
    return " and ".join(counts) + (f", {len(result.skipped):,} skipped" if result.skipped else "")


def _column_names(result: Any) -> Markup:
    def listed(names: tuple[str, ...]) -> str:
        rest = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
        return ", ".join(short_name(name) for name in names[:MAX_NAMES]) + rest

    entries = [("numeric", result.columns), ("categorical", result.categories), *_reasons(result.skipped)]
    return tag("dl", [(tag("dt", kind), tag("dd", listed(tuple(names)))) for kind, names in entries if names])


def _reasons(skipped: tuple[SkippedColumn, ...]) -> list[tuple[str, list[str]]]:
    by_reason: dict[str, list[str]] = {}
    for column in skipped:
        by_reason.setdefault(f"skipped: {column.reason}", []).append(column.name)
    return list(by_reason.items())
