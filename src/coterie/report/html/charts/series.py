"""Time series of each cluster: lines, and the center of the cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.core.formatting import count
from coterie.palette import colours
from coterie.report.formatting import number, short_name
from coterie.report.html.blocks import cluster_name, figure, numbers
from coterie.report.html.charts.svg import axis_limits, path, svg_text, tooltip
from coterie.web import Markup, Plane, tag, tick_texts, ticks

PANEL, HEIGHT = 300.0, 178.0
LETTERS = 22


def series(display: Mapping[str, Any], times: Sequence[str]) -> Markup:
    """Draw the dictionary of a `SeriesDisplay`, a panel for each cluster; `times` are the names of time points."""
    shown = display["shown"]
    values = [value for j in shown for line in [*display["lines"][j], display["centers"][j] or []] for _, value in line]
    limits, last = axis_limits(values), max(1, max(longest for _, longest in display["lengths"]) - 1)
    plane = Plane(PANEL, HEIGHT, (0.0, float(last), *limits), (26.0, 10.0, 24.0, 30.0))
    marks = ticks(*limits, 4)
    plane = plane.fitted(tick_texts(marks))
    panels = [_panel(display, j, plane, marks, times) for j in shown]
    note = f"Thin lines are series, the thick line is the {display['center']} of the cluster."
    if any(len(display["lines"][j]) < display["sizes"][j] for j in shown):
        note += f" Of a larger cluster, {max(map(len, display['lines']))} series are drawn, a random sample."
    if len(shown) < len(display["names"]):
        note += f" Only the {len(shown)} largest of {len(display['names'])} clusters are shown."
    return figure("Series", tag("div", panels, cls="strips"), _table(display), note=note)


def _panel(display: Mapping[str, Any], j: int, of: Plane, marks: list[float], times: Sequence[str]) -> Markup:
    colour, name = colours(len(display["names"]))[j], short_name(display["names"][j], LETTERS)
    size, center = display["sizes"][j], display["centers"][j]
    title = f"{name} · {count(size, 'series', 'series')}"
    grid = [
        tag("g", tag("line", x1=of.left, x2=of.right, y1=of.y(v), y2=of.y(v), cls="grid"),
            svg_text(of.left - 6, of.y(v) + 4, text, "end", cls="tick-text"))
        for v, text in zip(marks, tick_texts(marks), strict=True)
    ]  # fmt: skip
    last = round(of.box[1])
    ends = [
        svg_text(of.left, of.bottom + 16, _time(times, 0), "start", cls="tick-text"),
        svg_text(of.right, of.bottom + 16, _time(times, last), "end", cls="tick-text"),
    ]
    lines = "".join(_path(of, line) for line in display["lines"][j])
    opacity = round(min(0.8, max(0.5, 10 / max(len(display["lines"][j]), 1))), 2)
    thick = None
    if center is not None:
        d = _path(of, center)
        tip = f"cluster {name}: {display['center']} of {count(size, 'series', 'series')}"
        thick = tag(
            "g", tooltip(tip), tag("path", d=d, cls="curve halo"), tag("path", d=d, cls="curve ink"), data_tip=True
        )
    return of.svg(
        f"{count(size, 'series', 'series')} of cluster {name}",
        tag("rect", x=2, y=5, width=10, height=10, rx=2.5, fill=colour),
        svg_text(18, 14, title, "start", cls="strong"),
        grid,
        ends,
        tag("path", d=lines, stroke=colour, stroke_opacity=opacity, cls="curve strand"),
        thick,
    )


def _path(of: Plane, line: Sequence[Sequence[float]]) -> str:
    return path([(of.x(time), of.y(value)) for time, value in line])


def _time(times: Sequence[str], i: int) -> str:
    return short_name(times[i], 14) if i < len(times) else f"{i:,}"


def _table(display: Mapping[str, Any]) -> Markup:
    shades = colours(len(display["names"]))
    rows = []
    for j in display["shown"]:
        values = [value for _, value in display["centers"][j] or ()]
        summary = [min(values), sum(values) / len(values), max(values)] if values else [None] * 3
        shortest, longest = display["lengths"][j]
        rows.append([
            cluster_name(shades[j], short_name(display["names"][j])), f"{display['sizes'][j]:,}", f"{shortest:,}",
            f"{longest:,}", *map(number, summary),
        ])  # fmt: skip
    center = display["center"]
    header = ["cluster", "series", "shortest", "longest", *(f"{center}: {each}" for each in ("min", "mean", "max"))]
    return numbers(header, rows)
