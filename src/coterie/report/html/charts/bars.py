"""Histogram of a single column, stacked by cluster."""

from collections.abc import Mapping
from typing import Any

from coterie.core.formatting import count
from coterie.palette import NOISE, colours
from coterie.report.formatting import number, short_name
from coterie.report.html.blocks import figure, numbers
from coterie.report.html.charts.svg import SLIM, WIDE, axes, path, svg_text, tooltip
from coterie.web import Markup, Plane, beyond_text, legend, tag
from coterie.web.still import ARROW, arrow

HEIGHT, SLIM_HEIGHT = 340.0, 260.0
LABELS = 30  # maximum number of clusters with labels


def bars(cloud: Mapping[str, Any]) -> Markup:
    """Draw the dictionary of a `Cloud` of one column: numbers of rows in each bin, stacked by cluster."""
    names = [*(short_name(name) for name in cloud["names"]), "no cluster"]
    clusters = legend(names[:-1], colours(len(names) - 1)) if len(names) > 2 else None
    drawn, slim = _drawn(cloud, names, WIDE, HEIGHT), _drawn(cloud, names, SLIM, SLIM_HEIGHT)
    edges, counts = cloud["bars"]["edges"], cloud["bars"]["counts"]
    shown = [j for j in range(len(names)) if any(counts[j])][:12]
    rows = [
        [f"{number(edges[i])} to {number(edges[i + 1])}", *(f"{counts[j][i]:,}" for j in shown)]
        for i in range(len(edges) - 1)
    ]
    table = numbers(["from … to", *(names[j] for j in shown)], rows)
    note = "The data has one column, so a histogram replaces the map. Labels are at the means of the clusters."
    if cloud["beyond"]:
        note += f" {beyond_text(cloud['beyond'])}."
    return figure("", [clusters, drawn], table, note=note, slim=[clusters, slim])


def _drawn(cloud: Mapping[str, Any], names: list[str], width: float, height: float) -> Markup:
    edges, counts = cloud["bars"]["edges"], cloud["bars"]["counts"]
    totals = [sum(column) for column in zip(*counts, strict=True)]
    shades = [*colours(len(cloud["names"])), NOISE]
    plane = Plane(width, height, (edges[0], edges[-1], 0.0, 1.12 * max([*totals, 1])))
    of, drawn_axes = axes(plane, short_name(cloud["axes"][0]), "rows")
    base = [0] * len(totals)
    layers = []
    for sizes, name, shade in zip(counts, names, shades, strict=True):
        if any(sizes):
            layers.append(_layer(of, edges, base, sizes, name, shade))
        base = [below + size for below, size in zip(base, sizes, strict=True)]
    label = f"{count(sum(totals), 'row')} along {short_name(cloud['axes'][0])}"
    return of.svg(label, drawn_axes, layers, _arrows(of, cloud), _mean_labels(of, cloud))


def _arrows(of: Plane, cloud: Mapping[str, Any]) -> list[Markup]:
    """Arrows at the ends of the axis to rows beyond them."""
    low, high = of.box[:2]
    ends = {-1: sum(x < low for (x,) in cloud["points"]), 1: sum(x > high for (x,) in cloud["points"])}
    y = of.bottom - ARROW
    return [
        tag("path", d=arrow(of.left if side < 0 else of.right, y, side, 0), fill=NOISE, cls="far")
        for side, n_rows in ends.items()
        if cloud["beyond"] and n_rows
    ]


def _layer(of: Plane, edges: list[float], base: list[int], sizes: list[int], name: str, shade: str) -> Markup:
    """One path for all bars of a cluster, so that no gaps show between them."""
    boxes = []
    for i, size in enumerate(sizes):
        if size:
            x0, x1, y0, y1 = of.x(edges[i]), of.x(edges[i + 1]), of.y(base[i]), of.y(base[i] + size)
            boxes.append(path([(x0, y0), (x0, y1), (x1, y1), (x1, y0)], closed=True))
    tip = f"cluster {name}: {count(sum(sizes), 'row')}"
    return tag("path", tooltip(tip), d="".join(boxes), fill=shade, cls="area", data_tip=True)


def _mean_labels(of: Plane, cloud: Mapping[str, Any]) -> list[Markup]:
    clusters = zip(cloud["names"], cloud["sizes"], cloud["centers"], colours(len(cloud["names"])), strict=True)
    labels = []
    for name, size, center, shade in clusters:
        if size and len(cloud["names"]) > 1:
            text = short_name(name, 6)
            half = 6.0 + 3.4 * len(text)
            x = min(max(of.x(center[0]), of.left), of.right)
            box = tag("rect", x=round(x - half, 1), y=of.top, width=2 * half, height=18, rx=9, stroke=shade)
            labels.append(tag("g", box, svg_text(x, of.top + 13, text), cls="number"))
    return labels[:LABELS]
