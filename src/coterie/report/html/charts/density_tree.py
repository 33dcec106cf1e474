"""Reachability plot and condensed tree of density-based clusters."""

from collections.abc import Mapping
from typing import Any

from coterie.core.formatting import count
from coterie.palette import NOISE, colours
from coterie.report.formatting import number, short_name
from coterie.report.html.charts.figure import figure, numbers
from coterie.report.html.charts.svg import SLIM, WIDE, axes, path, tooltip
from coterie.web import Markup, Plane, swatch, tag

HEIGHT, SLIM_HEIGHT = 300.0, 220.0
LEGEND = 30  # maximum number of entries


def reachability_display(data: Mapping[str, Any]) -> Markup:
    """Distances at which rows are connected to the rows before them: valleys are clusters."""
    edges, heights, labels = data["edges"], data["heights"], data["labels"]
    names = [short_name(name) for name in data["names"]]
    rows = [
        [f"{edges[i]:,} to {edges[i + 1] - 1:,}", number(height), "noise" if label < 0 else names[label]]
        for i, (height, label) in enumerate(zip(heights, labels, strict=True))
    ]
    note = "Rows in the order of the tree. Valleys are clusters; the deeper a valley, the denser the cluster."
    drawn, slim = (_reachability(data, names, *size) for size in ((WIDE, HEIGHT), (SLIM, SLIM_HEIGHT)))
    legend = _legend(names)
    table = numbers(["rows", "distance", "cluster"], rows, left=(0, 2))
    return figure("Reachability plot", [legend, drawn], table, note=note, slim=[legend, slim])


def condensed_tree(data: Mapping[str, Any]) -> Markup:
    """Clusters of all densities as boxes: as wide as their rows, as high as the range of densities."""
    names = [short_name(name) for name in data["names"]]
    rows = [
        [f"{stop - start:,}", number(birth), number(death), "–" if label < 0 else names[label]]
        for start, stop, birth, death, label in data["boxes"]
    ]
    note = "A box is a cluster, from the density at which it is split off to its end. Selected ones are coloured."
    drawn, slim = (_condensed(data, names, *size) for size in ((WIDE, HEIGHT), (SLIM, SLIM_HEIGHT)))
    table = numbers(["rows", "density of birth", "density of its end", "cluster"], rows, left=(3,))
    return figure("Condensed tree", drawn, table, note=note, slim=slim)


def _legend(names: list[str]) -> Markup:
    entries = [*list(zip(names, colours(len(names)), strict=True))[:LEGEND], ("noise", NOISE)]
    return tag("ul", [tag("li", swatch(shade), name) for name, shade in entries], cls="legend")


def _reachability(data: Mapping[str, Any], names: list[str], width: float, height: float) -> Markup:
    edges, heights = data["edges"], data["heights"]
    of, drawn_axes = axes(Plane(width, height, (0, edges[-1], 0.0, 1.05 * max(heights) or 1.0)), "rows", "distance")
    layers = []
    for label, shade in enumerate([*colours(len(names)), NOISE]):
        label = -1 if label == len(names) else label
        boxes = [
            _box(of, edges[i], edges[i + 1], 0.0, heights[i]) for i in range(len(heights)) if data["labels"][i] == label
        ]
        tip = "noise" if label < 0 else f"cluster {names[label]}"
        layers.append(tag("path", tooltip(tip), d="".join(boxes), fill=shade, cls="area", data_tip=True))
    return of.svg(f"Reachability plot of {count(edges[-1], 'row')}", drawn_axes, layers)


def _condensed(data: Mapping[str, Any], names: list[str], width: float, height: float) -> Markup:
    n, top = data["edges"][-1], max(death for *_, death, _ in data["boxes"])
    of, drawn_axes = axes(Plane(width, height, (0, n, 0.0, 1.05 * top)), "rows", "density")
    shades = [*colours(len(names)), NOISE]
    boxes = [
        tag("path", tooltip(f"{count(stop - start)}" + ("" if label < 0 else f", cluster {names[label]}")),
            d=_box(of, start, stop, birth, death), fill=shades[label], cls="area", data_tip=True)
        for start, stop, birth, death, label in data["boxes"]
    ]  # fmt: skip
    return of.svg(f"Condensed tree of {count(n, 'row')}", drawn_axes, boxes)


def _box(of: Plane, x0: float, x1: float, y0: float, y1: float) -> str:
    corners = [(of.x(x0), of.y(y0)), (of.x(x0), of.y(y1)), (of.x(x1), of.y(y1)), (of.x(x1), of.y(y0))]
    return path(corners, closed=True)
