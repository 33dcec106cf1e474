"""The first lines: what the page is about, and how it was made."""

from __future__ import annotations

from typing import Any

from coterie.report.html.words import count, shown
from coterie.report.table import SkippedColumn
from coterie.web import Markup, tag

NAMED = 40  # columns that are named


def heading(title: str, result: Any, facts: list[str], version: str) -> Markup:
    """Title, one line of facts, and which columns took part."""
    line = [_rows(result), _columns(result), f"scaling: {result.scale}", f"missing: {result.missing}", *facts]
    line += [f"seed {result.seed}", f"coterie {version}"]
    return tag(
        "header",
        tag("h1", title),
        tag("p", " · ".join(line), cls="facts muted"),
        tag("details", tag("summary", "Columns used and skipped"), _named(result)),
    )


def contents(keys: dict[str, str]) -> Markup:
    """Links to the sections."""
    return tag("nav", [tag("a", title, href=f"#{key}") for key, title in keys.items()], aria_label="Sections")


def _rows(result: Any) -> str:
    if result.rows_used == result.rows:
        return count(result.rows, "row")
    return f"{result.rows_used:,} of {count(result.rows, 'row')}"


def _columns(result: Any) -> str:
    kinds = {"numeric column": len(result.columns), "column of categories": len(result.categories)}
    told = [_counted(number, kind) for kind, number in kinds.items() if number]
    return " and ".join(told) + (f", {len(result.skipped):,} skipped" if result.skipped else "")


def _counted(number: int, kind: str) -> str:
    return f"{number:,} {kind if number == 1 else kind.replace('column', 'columns')}"


def _named(result: Any) -> Markup:
    def some(names: tuple[str, ...]) -> str:
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        return ", ".join(shown(name) for name in names[:NAMED]) + more

    entries = [("numeric", result.columns), ("of categories", result.categories), *_reasons(result.skipped)]
    return tag("dl", [(tag("dt", kind), tag("dd", some(tuple(names)))) for kind, names in entries if names])


def _reasons(skipped: tuple[SkippedColumn, ...]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for column in skipped:
        found.setdefault(f"skipped: {column.reason}", []).append(column.name)
    return list(found.items())
