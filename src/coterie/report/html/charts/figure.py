"""A chart in a page: its title, the picture, what to see in it, and its numbers in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coterie.report.html.charts.svg import sideways
from coterie.web import Markup, swatch, tag

MOST_LINES = 300  # of a table under a chart


def figure(title: str, drawn: Any, table: Markup, *, note: Any = None, slim: Any = None) -> Markup:
    """The chart as a block; `slim` is the same for small screens, where letters of `drawn` would be too small."""
    return tag(
        "figure",
        tag("h3", title) if title else None,
        tag("div", drawn, cls="drawn" if slim is None else "drawn roomy"),
        tag("div", slim, cls="drawn slim") if slim is not None else None,
        tag("figcaption", note) if note else None,
        tag("details", tag("summary", "Numbers"), sideways(table)),
    )


def numbers(header: Sequence[str], rows: Sequence[Sequence[Any]], left: Sequence[int] = (0,)) -> Markup:
    """A plain table; columns but those in `left` are numbers. Of very many lines the first are shown."""
    cut = len(rows) - MOST_LINES
    more = tag("tr", tag("td", f"… and {cut:,} more", colspan=len(header))) if cut > 0 else None
    kinds = ["left" if j in left else None for j in range(len(header))]
    return tag(
        "table",
        tag(
            "thead",
            tag("tr", [tag("th", name, scope="col", cls=kind) for name, kind in zip(header, kinds, strict=True)]),
        ),
        tag(
            "tbody",
            [_line(row, kinds) for row in rows[:MOST_LINES]],
            more,
        ),
        cls="numbers",
    )


def _line(row: Sequence[Any], kinds: Sequence[str | None]) -> Markup:
    return tag("tr", [tag("td", cell, cls=kind) for cell, kind in zip(row, kinds, strict=True)])


def who(colour: str, name: str) -> Markup:
    """A cluster's colour and its name, which says the same without the colour."""
    return tag("span", swatch(colour), tag("bdi", name), cls="who")
