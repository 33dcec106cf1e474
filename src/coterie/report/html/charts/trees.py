"""Dendrograms, and the trees of density-based clusters."""

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.core.formatting import count
from coterie.palette import NOISE, colours
from coterie.report.formatting import number, short_name, text_width
from coterie.report.html.blocks import figure, numbers
from coterie.report.html.charts.svg import SLIM, WIDE, axes, line, path, scrollable, svg_text, tooltip
from coterie.web import Markup, Plane, legend, tag

MIN_WIDTH, HEIGHT, SLIM_HEIGHT = 420.0, 300.0, 220.0
LETTERS = 16  # maximum length of a name


def dendrogram(display: Mapping[str, Any], *, of_centers: bool, method: str, labels: Sequence[str] = ()) -> Markup:
    """Draw the dictionary of a `DendrogramDisplay`: merges at their heights, the cut, and the leaves.

    If `of_centers`, leaves are clusters, not rows. `labels` are the names of the clusters of the cut.
    """
    with_rows = of_centers and len(display["leaves"]) == display["n"]
    names = [short_name(name, LETTERS) for name in display["leaves"]]
    if with_rows:
        names = [f"{name} ({size:,})" for name, size in zip(names, display["sizes"], strict=True)]
    longest = max(text_width(name, 11) for name in names)
    width = min(WIDE, max(MIN_WIDTH, 90.0 + len(names) * max(longest + 24.0, 22.0)))
    slim_width = max(SLIM, 74.0 + 18.0 * len(names))
    drawn, slim = (
        _picture(display, names, of_centers, labels, *size) for size in ((width, HEIGHT), (slim_width, SLIM_HEIGHT))
    )
    slim = slim if slim_width == SLIM else scrollable(slim)
    return figure("", drawn, _table(display, of_centers), note=_note(display, of_centers, method), slim=slim)


def _picture(
    display: Mapping[str, Any], names: Sequence[str], of_centers: bool, labels: Sequence[str], width: float,
    height: float,
) -> Markup:  # fmt: skip
    top = max(max(line) for line in display["y"]) or 1.0
    longest = max(text_width(name, 11) for name in names)
    is_vertical = longest + 8 > (width - 90.0) / len(names)
    below = (longest + 44.0) if is_vertical else 50.0
    plane = Plane(width, height + below, (-0.7, len(names) - 0.3, 0.0, 1.05 * top), (12.0, 12.0, below, 58.0))
    of, drawn_axes = axes(plane, "", "height of the merge", [])
    shades = colours(max(len(labels), display["k"], 1))
    leaf_shades = [_shade(cluster, shades) for cluster in display["leaf_cluster"]]
    cut = None
    if display["height"] is not None:
        y, label = of.y(display["height"]), count(display["k"], "cluster")
        cut = tag("g", line(of.left, y, of.right, y, "choice"), svg_text(of.right, y - 5, label, "end", cls="chosen"))
    axis = "row, or (number of rows in a branch)"
    if of_centers:
        is_whole = len(names) == display["n"]
        axis = "cluster (number of rows)" if is_whole else "cluster, or (number of clusters in a branch)"
    return of.svg(
        f"Tree of {count(display['n'], 'cluster' if of_centers else 'row')}",
        drawn_axes,
        [_bracket(of, display, i, shades) for i in range(len(display["y"]))],
        cut,
        [_leaf(of, j, names[j], is_vertical, shade) for j, shade in enumerate(leaf_shades)],
        svg_text((of.left + of.right) / 2, of.height - 8, axis, cls="axis-text"),
    )


def _shade(cluster: int, shades: Sequence[str]) -> str | None:
    return shades[cluster] if 0 <= cluster < len(shades) else None


def _bracket(of: Plane, display: Mapping[str, Any], i: int, shades: Sequence[str]) -> Markup:
    points = [(of.x(x), of.y(y)) for x, y in zip(display["x"][i], display["y"][i], strict=True)]
    shade = _shade(display["cluster"][i], shades) if display["k"] > 1 else None
    tip = f"merge at height {number(display['y'][i][1])}"
    return tag("path", tooltip(tip), d=path(points), stroke=shade, cls="curve" if shade else "curve ink", data_tip=True)


def _leaf(of: Plane, j: int, name: str, is_vertical: bool, shade: str | None) -> Markup:
    x, y = of.x(j), of.bottom + 16
    swatch = None
    if shade:
        swatch = tag("rect", x=round(x - 5, 1), y=of.bottom + 4, width=10, height=5, rx=2, fill=shade)
        y += 6
    if is_vertical:
        x, y = x + 4, y - 3
        return tag("g", swatch, svg_text(x, y, name, "end", cls="leaf", transform=f"rotate(-90 {x:g} {y:g})"))
    return tag("g", swatch, svg_text(x, y + 2, name, cls="leaf"))


def _note(display: Mapping[str, Any], of_centers: bool, method: str) -> str:
    if of_centers:
        return (
            f"{method} of the {display['n']} centers, weighted by their numbers of rows: "
            "it shows which clusters are near each other, and which would merge first."
        )
    drawn = len(display["y"])
    last = "merge" if drawn == 1 else f"{drawn} merges"
    note = f"All merges by {method}." if drawn == display["n"] - 1 else f"The last {last} by {method}."
    if display["height"] is None:
        return note
    return f"{note} The dashed line cuts the tree into {count(display['k'], 'cluster')}."


def _table(display: Mapping[str, Any], of_centers: bool) -> Markup:
    leaves = [[short_name(name), f"{size:,}"] for name, size in zip(display["leaves"], display["sizes"], strict=True)]
    heights = sorted((line[1] for line in display["y"]), reverse=True)
    merges = [[str(i), number(height)] for i, height in enumerate(heights, start=2)]
    leaf_table = numbers(["cluster" if of_centers else "leaf", "rows"], leaves)
    return tag("div", leaf_table, numbers(["clusters below this merge", "height of the merge"], merges))


def reachability_plot(display: Mapping[str, Any], clusters: Sequence[str]) -> Markup:
    """Draw the dictionary of a `ReachabilityDisplay`: valleys are clusters."""
    edges, heights, labels = display["edges"], display["heights"], display["labels"]
    names = [short_name(name) for name in clusters]
    rows = [
        [f"{edges[i]:,} to {edges[i + 1] - 1:,}", number(height), "noise" if label < 0 else names[label]]
        for i, (height, label) in enumerate(zip(heights, labels, strict=True))
    ]
    note = "Rows in the order of the tree. Valleys are clusters; the deeper a valley, the denser the cluster."
    drawn, slim = (_reachability(display, names, *size) for size in ((WIDE, HEIGHT), (SLIM, SLIM_HEIGHT)))
    clusters = legend(names, colours(len(names)), {"noise": NOISE})
    table = numbers(["rows", "distance", "cluster"], rows, left=(0, 2))
    return figure("Reachability plot", [clusters, drawn], table, note=note, slim=[clusters, slim])


def condensed_tree(display: Mapping[str, Any], clusters: Sequence[str]) -> Markup:
    """Draw the dictionary of a `CondensedTreeDisplay`: clusters of all densities as boxes."""
    names = [short_name(name) for name in clusters]
    boxes = list(zip(*(display[key] for key in ("start", "stop", "birth", "death", "label")), strict=True))
    rows = [
        [f"{stop - start:,}", number(birth), number(death), "–" if label < 0 else names[label]]
        for start, stop, birth, death, label in boxes
    ]
    note = "A box is a cluster, from the density at which it is split off to its end. Selected ones are coloured."
    drawn, slim = (_condensed(boxes, display["n"], names, *size) for size in ((WIDE, HEIGHT), (SLIM, SLIM_HEIGHT)))
    table = numbers(["rows", "density of birth", "density of its end", "cluster"], rows, left=(3,))
    return figure("Condensed tree", drawn, table, note=note, slim=slim)


def _reachability(display: Mapping[str, Any], names: list[str], width: float, height: float) -> Markup:
    edges, heights, labels = display["edges"], display["heights"], display["labels"]
    of, drawn_axes = axes(Plane(width, height, (0, edges[-1], 0.0, 1.05 * max(heights) or 1.0)), "rows", "distance")
    layers = []
    for label, shade in enumerate([*colours(len(names)), NOISE]):
        label = -1 if label == len(names) else label
        boxes = [_box(of, edges[i], edges[i + 1], 0.0, heights[i]) for i in range(len(heights)) if labels[i] == label]
        tip = "noise" if label < 0 else f"cluster {names[label]}"
        layers.append(tag("path", tooltip(tip), d="".join(boxes), fill=shade, cls="area", data_tip=True))
    return of.svg(f"Reachability plot of {count(edges[-1], 'row')}", drawn_axes, layers)


def _condensed(boxes: list[Any], n: int, names: list[str], width: float, height: float) -> Markup:
    top = max(death for *_, death, _ in boxes)
    of, drawn_axes = axes(Plane(width, height, (0, n, 0.0, 1.05 * top)), "rows", "density")
    shades = [*colours(len(names)), NOISE]
    drawn = [
        tag("path", tooltip(f"{count(stop - start)}" + ("" if label < 0 else f", cluster {names[label]}")),
            d=_box(of, start, stop, birth, death), fill=shades[label], cls="area", data_tip=True)
        for start, stop, birth, death, label in boxes
    ]  # fmt: skip
    return of.svg(f"Condensed tree of {count(n, 'row')}", drawn_axes, drawn)


def _box(of: Plane, x0: float, x1: float, y0: float, y1: float) -> str:
    corners = [(of.x(x0), of.y(y0)), (of.x(x0), of.y(y1)), (of.x(x1), of.y(y1)), (of.x(x1), of.y(y0))]
    return path(corners, closed=True)
