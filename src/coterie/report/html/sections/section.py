"""What all sections share."""

from __future__ import annotations

from typing import Any

from coterie.report.html.charts.svg import sideways
from coterie.report.html.report import Absent
from coterie.web import Markup, tag


def section(key: str, title: str, *content: Any) -> Markup:
    """A part of the page, with a title that links lead to."""
    return tag("section", tag("h2", title, id=f"{key}-title"), *content, id=key, aria_labelledby=f"{key}-title")


def boxed(table: Markup, note: str) -> Markup:
    """A table in a box of its own, with what to know about it below."""
    return tag("div", sideways(table), tag("p", note, cls="muted"), cls="panel boxed")


def absent(what: Absent | str) -> Markup:
    """Why there is nothing to see here."""
    text = what.why if isinstance(what, Absent) else what
    return tag("p", f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}", cls="absent panel muted")
