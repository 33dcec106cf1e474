"""Markers, text and axes, which all charts use."""

from collections.abc import Sequence
from typing import Any

from coterie.report.formatting import short_name
from coterie.web import Markup, Plane, tag, tick_texts, ticks

TEXT = 12.0  # font size
WIDE, SLIM = 820.0, 320.0  # widths of charts: of the full page, and of small screens
FLAT = 1e-6  # relative range below which values count as equal: rounding errors, or less than ticks can show


def axis_limits(values: Sequence[float], margin: float = 0.06) -> tuple[float, float]:
    """Limits of an axis: the range of the values plus a margin, never empty."""
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    if high - low <= FLAT * size:
        return low - (0.1 * size or 1.0), high + (0.1 * size or 1.0)
    return low - margin * (high - low), high + margin * (high - low)


def whole_ticks(low: int, high: int, count: int = 10) -> list[float]:
    """Integer ticks: all integers if at most `count` fit, else multiples of 2, 5, 10, ..."""
    size = 1
    while (high - low) / size >= count:
        size = size * 5 // 2 if str(size).startswith("2") else size * 2  # 1, 2, 5, 10, 20, ...
    return [float(k) for k in range(low, high + 1) if size == 1 or k % size == 0]


def axes(plane: Plane, across: str, up: str, values: list[float] | None = None) -> tuple[Plane, Markup]:
    """The plane with space for the numbers of its vertical axis, and both axes; `values` are the horizontal ticks."""
    low, high = plane.box[2:]
    marks = ticks(low, high, max(2, int(plane.bottom - plane.top) // 55))
    fitted = plane.fitted(tick_texts(marks))
    lower = None if values is None else [f"{value:g}" for value in values]
    return fitted, tag("g", fitted.y_axis(up, marks, grid=True), fitted.x_axis(across, values, lower))


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> Markup:
    return tag("line", x1=round(x1, 1), y1=round(y1, 1), x2=round(x2, 1), y2=round(y2, 1), cls=cls)


def svg_text(
    x: float, y: float, text: str, anchor: str = "middle", cls: str | None = None, **attributes: Any
) -> Markup:
    return tag("text", text, x=round(x, 1), y=round(y, 1), text_anchor=anchor, cls=cls, **attributes)


def name_text(x: float, y: float, full: str, max_length: int, anchor: str, **attributes: Any) -> Markup:
    """A name from a table; if it is cut, a tooltip shows more of it."""
    text = short_name(full, max_length)
    if text == full:
        return svg_text(x, y, text, anchor, **attributes)
    full_name = tooltip(short_name(full, 300))
    return tag("text", full_name, text, x=round(x, 1), y=round(y, 1), text_anchor=anchor, data_tip=True, **attributes)


def path(points: Sequence[tuple[float, float]], closed: bool = False) -> str:
    """The SVG path of a polyline, or of a polygon if `closed`."""
    coordinates = " ".join(f"{round(x, 1):g},{round(y, 1):g}" for x, y in points)
    return f"M{coordinates}{'Z' if closed else ''}" if coordinates else ""


def tooltip(text: str) -> Markup:
    """A tooltip that works without JavaScript."""
    return tag("title", text)


def marker(shape: int, x: float, y: float, tip: str, **style: Any) -> Markup:
    """A marker with one of five shapes, which distinguish curves without colours."""
    r = 3.6
    corners = (
        (),
        ((-r, -r), (r, -r), (r, r), (-r, r)),
        ((0, -1.3 * r), (1.2 * r, r), (-1.2 * r, r)),
        ((0, -1.4 * r), (1.4 * r, 0), (0, 1.4 * r), (-1.4 * r, 0)),
        ((0, 1.3 * r), (1.2 * r, -r), (-1.2 * r, -r)),
    )[shape % 5]
    if not corners:
        return tag("circle", tooltip(tip), cx=round(x, 1), cy=round(y, 1), r=r, data_tip=True, **style)
    return tag("path", tooltip(tip), d=path([(x + a, y + b) for a, b in corners], closed=True), data_tip=True, **style)


def scrollable(content: Markup) -> Markup:
    """Content that may be wider than the screen; a shade at the right shows that it can be scrolled."""
    return tag("div", tag("div", content, cls="whole"), cls="scroll")


def picture(width: float, height: float, label: str, *content: Any, cls: str = "") -> Markup:
    """A chart without axes; `label` is the text for screen readers."""
    return Plane(round(width), round(height), (0, 1, 0, 1)).svg(label, *content, cls=f"chart {cls}".strip())
