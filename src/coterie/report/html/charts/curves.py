"""Criteria as curves over the number of clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.report.formatting import number, short_name, text_width
from coterie.report.html.blocks import figure, numbers
from coterie.report.html.charts.svg import axes, axis_limits, line, marker, path, svg_text, tooltip, whole_ticks
from coterie.web import Markup, Plane, tag

WIDTH, HEIGHT = 330.0, 250.0  # of one of three charts in a row, or of one chart on a small screen
DASHES = ("", "6 3", "2 3")
SMALL, RADIUS = 11.0, 4.0  # of small text, and of a mark
PLACES = 12  # along a threshold, where its text may be
SHAPES = 5  # number of marker shapes; further curves are dashed


@dataclass(frozen=True)
class Line:
    """One curve: its name, its values at `ks`, and their errors."""

    name: str
    ks: Sequence[int]
    values: Sequence[float]
    errors: Sequence[float] | None = None
    colour: str | None = None

    @property
    def widths(self) -> Sequence[float]:
        """Half the length of each error bar."""
        return self.errors or [0.0] * len(self.values)


@dataclass(frozen=True)
class ChosenK:
    """The K that a criterion selects, and the text beside it."""

    k: int
    text: str


def curves(
    title: str, axis: str, lines: Sequence[Line], *, choice: ChosenK | None = None, note: Any = None, **options: Any
) -> Markup:  # fmt: skip
    """Curves over K as a figure with a note and a table of all numbers; other options are those of `drawn_curves`."""
    ks = sorted({k for curve in lines for k in curve.ks})
    drawn = drawn_curves(title, axis, lines, choice=choice, **options)
    return figure(title, drawn, _table(lines, ks, choice), note=note)


def drawn_curves(
    title: str, axis: str, lines: Sequence[Line], *, choice: ChosenK | None = None, also: ChosenK | None = None,
    threshold: tuple[float, str] | None = None, dots: Sequence[tuple[int, float]] = (),
    along: str = "number of clusters K",
) -> list[Markup | None]:  # fmt: skip
    """The legend, if there are several curves, and the picture: error bars, and a dashed line at the selected K.

    `also` is the K of a second rule that is not used in the choice; its line is fainter.
    """
    values = [value for _, value in dots] + ([] if threshold is None else [threshold[0]])
    for curve in lines:
        values += [end for v, e in zip(curve.values, curve.widths, strict=True) for end in (v - e, v + e)]
    ks = sorted({k for curve in lines for k in curve.ks})
    margin = max(0.35, 0.03 * (ks[-1] - ks[0]))
    low, high = axis_limits(values)
    high += 0.1 * (high - low)  # space for the text of the choice
    plane = Plane(WIDTH, HEIGHT, (ks[0] - margin, ks[-1] + margin, low, high))
    of, drawn_axes = axes(plane, along, axis, whole_ticks(ks[0], ks[-1]))
    label = f"{title} for K from {ks[0]} to {ks[-1]}" if len(ks) > 1 else f"{title} for K = {ks[0]}"
    marks = [(of.x(k), of.y(value)) for k, value in dots] + [point for curve in lines for point in _along(of, curve)]
    selected = [] if choice is None else [(of.x(choice.k), of.y(low + part / 40 * (high - low))) for part in range(41)]
    ring = None  # around the value at the selected K, if there is only one curve
    if choice is not None and len(lines) == 1 and choice.k in list(lines[0].ks):
        value = lines[0].values[list(lines[0].ks).index(choice.k)]
        ring = tag("circle", tooltip(choice.text), cx=of.x(choice.k), cy=of.y(value), r=7.5, cls="ring")
    drawn = of.svg(
        label if choice is None else f"{label}; {choice.text}",
        drawn_axes,
        None if threshold is None else _threshold(of, *threshold, [*marks, *selected]),
        [tag("circle", cx=of.x(k), cy=of.y(value), r=2.4, cls="faint") for k, value in dots],
        _choice(of, also, "also", 15.0) if also is not None and (choice is None or also.k != choice.k) else None,
        _choice(of, choice),
        [_curve(of, j, curve, len(lines) > 1) for j, curve in enumerate(lines)],
        ring,
    )
    return [_legend(lines) if len(lines) > 1 else None, drawn]


def _along(of: Plane, curve: Line) -> list[tuple[float, float]]:
    """Points along a curve, and the ends of its error bars."""
    x, values, widths = np.array(curve.ks, float), np.array(curve.values), np.array(curve.widths)
    between = np.linspace(x[0], x[-1], 10 * len(x))
    points = [*zip(between, np.interp(between, x, values), strict=True)]
    points += [
        (k, end) for k, value, width in zip(x, values, widths, strict=True) for end in (value - width, value + width)
    ]
    return [(of.x(k), of.y(value)) for k, value in points]


def _threshold(of: Plane, value: float, text: str, marks: Sequence[tuple[float, float]]) -> Markup:
    """A line at a value, with its text where it covers no mark: above or below the line, rather at its right end."""
    y, width = of.y(value), text_width(text, SMALL)
    steps = np.linspace(of.right - width, of.left + 2, PLACES).tolist()
    places = [(x, base) for x in steps for base in (y - 4, y + 4 + SMALL)]
    places = [place for place in places if of.top + SMALL <= place[1] <= of.bottom] or places[:1]

    def covered(place: tuple[float, float]) -> int:
        x, base = place
        return sum(
            x - RADIUS < mark_x < x + width + RADIUS and base - SMALL - RADIUS < mark_y < base + RADIUS
            for mark_x, mark_y in marks
        )

    x, base = min(places, key=covered)
    return tag("g", line(of.left, y, of.right, y, "threshold"), svg_text(x, base, text, "start", cls="small"))


def _curve(of: Plane, j: int, curve: Line, with_name: bool) -> Markup:
    style = {"stroke": curve.colour, "cls": "curve" if curve.colour else "curve ink"}
    fill = {"fill": curve.colour, "cls": "mark" if curve.colour else "mark ink"}
    name = f"{short_name(curve.name)}, " if with_name else ""
    points, bars, markers = [], [], []
    for k, value, error in zip(curve.ks, curve.values, curve.widths, strict=True):
        x, y, tip = of.x(k), of.y(value), f"{name}K = {k}: {number(value)}"
        points.append((x, y))
        if error:
            low, high, tip = of.y(value - error), of.y(value + error), f"{tip} ± {number(error)}"
            d = f"M{x - 4:g},{low:g}h8M{x - 4:g},{high:g}h8M{x:g},{low:g}V{high:g}"
            bars.append(tag("path", d=d, cls="error"))
        markers.append(marker(j, x, y, tip, **fill))
    curve_path = tag("path", d=path(points), stroke_dasharray=DASHES[j // SHAPES % len(DASHES)] or None, **style)
    return tag("g", bars, curve_path, markers)


def _choice(of: Plane, choice: ChosenK | None, cls: str = "", lower: float = 0.0) -> Markup | None:
    if choice is None:
        return None
    x, width = of.x(choice.k), text_width(choice.text)
    # The text of the fainter line is on the left if it fits.
    is_right = x + 6 + width <= of.right and not (cls and x - 6 - width >= of.left)
    start = x + 6 if is_right else max(of.left, x - 6 - width)
    text = svg_text(start, of.top + 9 + lower, choice.text, "start", cls=f"chosen {cls}".strip())
    return tag("g", line(x, of.top, x, of.bottom, f"choice {cls}".strip()), text)


def _legend(lines: Sequence[Line]) -> Markup:
    """The legend above the chart, so that the size of the chart does not depend on it."""
    entries = []
    for j, curve in enumerate(lines):
        symbol = marker(j, 6, 6, curve.name, fill=curve.colour)
        box = tag("svg", symbol, width=12, height=12, cls="swatch", aria_hidden="true")
        entries.append(tag("li", box, short_name(curve.name)))
    return tag("ul", *entries, cls="legend")


def _table(lines: Sequence[Line], ks: Sequence[int], choice: ChosenK | None) -> Markup:
    header = ["K"]
    columns: list[Mapping[int, str]] = []
    for curve in lines:
        header.append(short_name(curve.name))
        columns.append({k: number(v) for k, v in zip(curve.ks, curve.values, strict=True)})
        if curve.errors:
            header.append("± error")
            columns.append({k: number(e) for k, e in zip(curve.ks, curve.errors, strict=True)})
    mark = None if choice is None else choice.k
    rows = [[f"{k} ◀" if k == mark else str(k), *(column.get(k, "–") for column in columns)] for k in ks]
    return numbers(header, rows, left=())
