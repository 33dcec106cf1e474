"""Blocks of a page: sections, and charts with their title, caption and a table of their numbers."""

from collections.abc import Sequence
from typing import Any

from coterie.report.html.charts.svg import scrollable
from coterie.report.html.report import Absent
from coterie.web import Markup, swatch, tag

MAX_ROWS = 300  # rows of the table of a chart


def section(key: str, title: str, *content: Any) -> Markup:
    """A section with a title; links refer to it by `key`."""
    return tag("section", tag("h2", title, id=f"{key}-title"), *content, id=key, aria_labelledby=f"{key}-title")


def boxed(table: Markup, note: str) -> Markup:
    """A table in a box, with a note below it."""
    return tag("div", scrollable(table), tag("p", note, cls="muted"), cls="panel boxed")


def absent(reason: Absent | str) -> Markup:
    """A paragraph that states why a part of the report is not available."""
    text = reason.reason if isinstance(reason, Absent) else reason
    return tag("p", f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}", cls="absent panel muted")


def figure(title: str, drawn: Any, table: Markup, *, note: Any = None, slim: Any = None) -> Markup:
    """The chart as a block; `slim` is its variant for small screens, where the text of `drawn` would be too small."""
    return tag(
        "figure",
        tag("h3", title) if title else None,
        tag("div", drawn, cls="drawn" if slim is None else "drawn roomy"),
        tag("div", slim, cls="drawn slim") if slim is not None else None,
        tag("figcaption", note) if note else None,
        tag("details", tag("summary", "Numbers"), scrollable(table)),
    )


def numbers(header: Sequence[str], rows: Sequence[Sequence[Any]], left: Sequence[int] = (0,)) -> Markup:
    """A plain table; columns in `left` are aligned left. Only the first `MAX_ROWS` rows are shown."""
    n_hidden = len(rows) - MAX_ROWS
    last = tag("tr", tag("td", f"… and {n_hidden:,} more", colspan=len(header))) if n_hidden > 0 else None
    classes = ["left" if j in left else None for j in range(len(header))]
    head = [tag("th", name, scope="col", cls=each) for name, each in zip(header, classes, strict=True)]
    body = [
        tag("tr", [tag("td", cell, cls=each) for cell, each in zip(row, classes, strict=True)])
        for row in rows[:MAX_ROWS]
    ]
    return tag("table", tag("thead", tag("tr", head)), tag("tbody", body, last), cls="numbers")


def cluster_name(colour: str, name: str) -> Markup:
    """The colour of a cluster and its name."""
    return tag("span", swatch(colour), tag("bdi", name), cls="who")
