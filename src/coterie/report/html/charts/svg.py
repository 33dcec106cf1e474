"""Marks, words and axes of a picture: what all charts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coterie.report.html.words import shown
from coterie.web import Markup, Plane, tag, tick_texts, ticks

TEXT = 12.0  # height of letters
WIDE, SLIM = 820.0, 320.0  # of pictures across the page, and of the same on small screens
FLAT = 1e-6  # of the size of values: they differ by rounding, or by no more than a tick could tell


def reach(values: Sequence[float], margin: float = 0.06) -> tuple[float, float]:
    """The ends of an axis for these values: a little wider than they are, and never of no width."""
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    if high - low <= FLAT * size:
        return low - (0.1 * size or 1.0), high + (0.1 * size or 1.0)
    return low - margin * (high - low), high + margin * (high - low)


def whole_ticks(low: int, high: int, count: int = 10) -> list[float]:
    """Whole numbers, every one where there is room."""
    size = 1
    while (high - low) / size >= count:
        size = size * 5 // 2 if str(size).startswith("2") else size * 2  # 1, 2, 5, 10, 20, ...
    return [float(k) for k in range(low, high + 1) if size == 1 or k % size == 0]


def axes(plane: Plane, across: str, up: str, values: list[float] | None = None) -> tuple[Plane, Markup]:
    """The plane with room for the numbers of its vertical axis, and both axes; `values` are the ticks of the lower."""
    low, high = plane.box[2:]
    marks = ticks(low, high, max(2, int(plane.bottom - plane.top) // 55))
    fitted = plane.fitted(tick_texts(marks))
    lower = None if values is None else [f"{value:g}" for value in values]
    return fitted, tag("g", fitted.y_axis(up, marks, grid=True), fitted.x_axis(across, values, lower))


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> Markup:
    return tag("line", x1=round(x1, 1), y1=round(y1, 1), x2=round(x2, 1), y2=round(y2, 1), cls=cls)


def words(x: float, y: float, text: str, anchor: str = "middle", cls: str | None = None, **more: Any) -> Markup:
    return tag("text", text, x=round(x, 1), y=round(y, 1), text_anchor=anchor, cls=cls, **more)


def name(x: float, y: float, full: str, most: int, anchor: str, **more: Any) -> Markup:
    """A name from somebody's table, cut where it is long, and told whole when pointed at."""
    text = shown(full, most)
    if text == full:
        return words(x, y, text, anchor, **more)
    whole = tip(shown(full, 300))
    return tag("text", whole, text, x=round(x, 1), y=round(y, 1), text_anchor=anchor, data_tip=True, **more)


def path(points: Sequence[tuple[float, float]], closed: bool = False) -> str:
    """Straight lines from one point to the next."""
    places = " ".join(f"{round(x, 1):g},{round(y, 1):g}" for x, y in points)
    return f"M{places}{'Z' if closed else ''}" if places else ""


def tip(text: str) -> Markup:
    """What is told of a mark when it is pointed at, without a script."""
    return tag("title", text)


def marker(shape: int, x: float, y: float, tell: str, **look: Any) -> Markup:
    """A small mark of one of five shapes, so that curves are told apart without their colours."""
    r = 3.6
    corners = (
        (),
        ((-r, -r), (r, -r), (r, r), (-r, r)),
        ((0, -1.3 * r), (1.2 * r, r), (-1.2 * r, r)),
        ((0, -1.4 * r), (1.4 * r, 0), (0, 1.4 * r), (-1.4 * r, 0)),
        ((0, 1.3 * r), (1.2 * r, -r), (-1.2 * r, -r)),
    )[shape % 5]
    if not corners:
        return tag("circle", tip(tell), cx=round(x, 1), cy=round(y, 1), r=r, data_tip=True, **look)
    return tag("path", tip(tell), d=path([(x + a, y + b) for a, b in corners], closed=True), data_tip=True, **look)


def sideways(drawn: Markup) -> Markup:
    """What is wider than the screen, with a shade at the right for as long as there is more to scroll to."""
    return tag("div", tag("div", drawn, cls="whole"), cls="scroll")


def picture(width: float, height: float, label: str, *content: Any, cls: str = "") -> Markup:
    """A picture without axes; `label` is what is read out instead of it."""
    return Plane(round(width), round(height), (0, 1, 0, 1)).svg(label, *content, cls=f"chart {cls}".strip())
