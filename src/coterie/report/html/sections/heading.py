"""The title of the page, and how the result was computed."""

from typing import Any

from coterie.core.formatting import count
from coterie.diagnosis.findings import join_names
from coterie.report.formatting import short_name
from coterie.web import Markup, tag

MAX_NAMES = 40  # columns that are listed


def heading(title: str, result: Any, facts: list[str], version: str) -> Markup:
    """The title, one line of facts, and the columns that were used and skipped."""
    rows = count(result.rows) if result.rows_used == result.rows else f"{result.rows_used:,} of {count(result.rows)}"
    kinds = {"numeric column": len(result.columns), "categorical column": len(result.categories)}
    columns = " and ".join(count(size, kind) for kind, size in kinds.items() if size)
    columns += f", {len(result.skipped):,} skipped" if result.skipped else ""
    line = [rows, columns, f"scaling: {result.scale}", f"missing: {result.missing}", *facts, f"seed {result.seed}"]
    entries = {"numeric": list(result.columns), "categorical": list(result.categories)}
    entries["missing values"] = [f"{name}: {n:,}" for name, n in result.missing_values.items()]
    for column in result.skipped:
        entries.setdefault(f"skipped: {column.reason}", []).append(column.name)
    names = []
    for kind, each in entries.items():
        text = join_names([short_name(name) for name in each], MAX_NAMES)
        names += [(tag("dt", kind), tag("dd", text))] if each else []
    return tag(
        "header",
        tag("h1", title),
        tag("p", " · ".join([*line, f"coterie {version}"]), cls="facts muted"),
        tag("details", tag("summary", "Columns used and skipped"), tag("dl", names)),
    )
