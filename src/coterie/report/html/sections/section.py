"""Building blocks of all sections."""

from typing import Any

from coterie.report.html.charts.svg import scrollable
from coterie.report.html.report import Absent
from coterie.web import Markup, tag


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
