"""Rows of one column, as bars in the colours of their clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie.palette import NOISE, colours
from coterie.report.html.charts.figure import figure, numbers
from coterie.report.html.charts.svg import SLIM, WIDE, axes, path, tip, words
from coterie.report.html.words import count, number, shown
from coterie.web import Markup, Plane, swatch, tag

HEIGHT, SLIM_HEIGHT = 340.0, 260.0
LEGEND = 30


def bars(cloud: Mapping[str, Any]) -> Markup:
    """Of the dictionary of a `Cloud` of one column: how many rows there are in each step, stacked by cluster."""
    names = [*(shown(name) for name in cloud["names"]), "no cluster"]
    shades = colours(len(cloud["names"]))
    legend = tag(
        "ul",
        [tag("li", swatch(shade), name) for name, shade in list(zip(names, shades, strict=False))[:LEGEND]],
        cls="legend",
    )
    key = legend if len(names) > 2 else None
    drawn, slim = _drawn(cloud, names, WIDE, HEIGHT), _drawn(cloud, names, SLIM, SLIM_HEIGHT)
    note = "One column: bars instead of a map. A number stands at the mean of each cluster."
    return figure("", [key, drawn], _table(cloud, names), note=note, slim=[key, slim])


def _drawn(cloud: Mapping[str, Any], names: list[str], width: float, height: float) -> Markup:
    edges, counts = cloud["bars"]["edges"], cloud["bars"]["counts"]
    totals = [sum(column) for column in zip(*counts, strict=True)]
    shades = [*colours(len(cloud["names"])), NOISE]
    plane = Plane(width, height, (edges[0], edges[-1], 0.0, 1.12 * max([*totals, 1])))
    of, drawn_axes = axes(plane, shown(cloud["axes"][0]), "rows")
    base = [0] * len(totals)
    layers = []
    for own, name, shade in zip(counts, names, shades, strict=True):
        if any(own):
            layers.append(_layer(of, edges, base, own, name, shade))
        base = [below + more for below, more in zip(base, own, strict=True)]
    label = f"{count(sum(totals), 'row')} along {shown(cloud['axes'][0])}"
    return of.svg(label, drawn_axes, layers, _numbered(of, cloud))


def _layer(of: Plane, edges: list[float], base: list[int], own: list[int], name: str, shade: str) -> Markup:
    """One outline for all bars of a cluster: no seams between them."""
    runs = []
    for i, more in enumerate(own):
        if more:
            x0, x1, y0, y1 = of.x(edges[i]), of.x(edges[i + 1]), of.y(base[i]), of.y(base[i] + more)
            runs.append(path([(x0, y0), (x0, y1), (x1, y1), (x1, y0)], closed=True))
    told = f"cluster {name}: {count(sum(own), 'row')}"
    return tag("path", tip(told), d="".join(runs), fill=shade, cls="area", data_tip=True)


def _numbered(of: Plane, cloud: Mapping[str, Any]) -> list[Markup]:
    places = zip(cloud["names"], cloud["sizes"], cloud["centers"], colours(len(cloud["names"])), strict=True)
    found = []
    for name, size, center, shade in places:
        if size and len(cloud["names"]) > 1:
            x, text = of.x(center[0]), shown(name, 6)
            half = 6.0 + 3.4 * len(text)
            box = tag("rect", x=round(x - half, 1), y=of.top, width=2 * half, height=18, rx=9, stroke=shade)
            found.append(tag("g", box, words(x, of.top + 13, text), cls="number"))
    return found[:LEGEND]


def _table(cloud: Mapping[str, Any], names: list[str]) -> Markup:
    edges, counts = cloud["bars"]["edges"], cloud["bars"]["counts"]
    shown_names = [j for j in range(len(names)) if any(counts[j])][:12]
    rows = [
        [f"{number(edges[i])} to {number(edges[i + 1])}", *(f"{counts[j][i]:,}" for j in shown_names)]
        for i in range(len(edges) - 1)
    ]
    return numbers(["from … to", *(names[j] for j in shown_names)], rows)
