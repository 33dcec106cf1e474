"""The tree of merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coterie.palette import colours
from coterie.report.html.charts.figure import figure, numbers
from coterie.report.html.charts.svg import SLIM, WIDE, axes, line, path, sideways, tip, words
from coterie.report.html.words import count, number, shown, text_width
from coterie.web import Markup, Plane, tag

LEAST, HEIGHT, SLIM_HEIGHT = 420.0, 300.0, 220.0
LETTERS = 16  # of a name


def tree(display: Mapping[str, Any], *, of_centers: bool, method: str, labels: Sequence[str] = ()) -> Markup:
    """Of the dictionary of a `DendrogramDisplay`: brackets at the heights of merges, the cut, leaves with their rows.

    `of_centers`: leaves are clusters, not rows. `labels` are the clusters of the cut, by the tree's own numbers.
    """
    drawn, slim = _drawn(display, of_centers, labels), _slim(display, of_centers, labels)
    return figure("", drawn, _table(display, of_centers), note=_note(display, of_centers, method), slim=slim)


def _drawn(display: Mapping[str, Any], of_centers: bool, labels: Sequence[str]) -> Markup:
    names = _names(display, of_centers)
    longest = max(text_width(name, 11) for name in names)
    across = min(WIDE, max(LEAST, 90.0 + len(names) * max(longest + 24.0, 22.0)))
    return _picture(display, names, of_centers, labels, across, HEIGHT)


def _slim(display: Mapping[str, Any], of_centers: bool, labels: Sequence[str]) -> Markup:
    names = _names(display, of_centers)
    across = max(SLIM, 74.0 + 18.0 * len(names))
    drawn = _picture(display, names, of_centers, labels, across, SLIM_HEIGHT)
    return drawn if across == SLIM else sideways(drawn)


def _names(display: Mapping[str, Any], of_centers: bool) -> list[str]:
    whole = of_centers and len(display["leaves"]) == display["n"]
    return [_leaf(name, size, whole) for name, size in zip(display["leaves"], display["sizes"], strict=True)]


def _picture(
    display: Mapping[str, Any],
    names: Sequence[str],
    of_centers: bool,
    labels: Sequence[str],
    across: float,
    height: float,
) -> Markup:
    top = max(max(line) for line in display["y"]) or 1.0
    longest = max(text_width(name, 11) for name in names)
    wide = (across - 90.0) / len(names)
    upright = longest + 8 > wide
    below = (longest + 44.0) if upright else 50.0
    m = len(display["leaves"])
    plane = Plane(across, height + below, (-0.7, m - 0.3, 0.0, 1.05 * top), (12.0, 12.0, below, 58.0))
    of, drawn_axes = axes(plane, "", "height of the merge", [])
    shades = colours(max(len(labels), display["k"], 1))
    return of.svg(
        f"Tree of {count(display['n'], 'cluster' if of_centers else 'row')}",
        drawn_axes,
        [_bracket(of, display, i, shades) for i in range(len(display["y"]))],
        _cut(of, display),
        [_named(of, j, name, upright, _shade(display["leaf_cluster"][j], shades)) for j, name in enumerate(names)],
        words((of.left + of.right) / 2, of.height - 8, _beneath(display, of_centers), cls="axis-text"),
    )


def _beneath(display: Mapping[str, Any], of_centers: bool) -> str:
    if not of_centers:
        return "row, or (rows of a branch)"
    return "cluster (its rows)" if len(display["leaves"]) == display["n"] else "cluster, or (clusters of a branch)"


def _leaf(name: str, size: int, with_rows: bool) -> str:
    text = shown(name, LETTERS)
    return f"{text} ({size:,})" if with_rows else text


def _shade(cluster: int, shades: Sequence[str]) -> str | None:
    return shades[cluster] if 0 <= cluster < len(shades) else None


def _bracket(of: Plane, display: Mapping[str, Any], i: int, shades: Sequence[str]) -> Markup:
    places = [(of.x(x), of.y(y)) for x, y in zip(display["x"][i], display["y"][i], strict=True)]
    shade = _shade(display["cluster"][i], shades) if display["k"] > 1 else None
    told = f"merge at height {number(display['y'][i][1])}"
    return tag("path", tip(told), d=path(places), stroke=shade, cls="curve" if shade else "curve ink", data_tip=True)


def _cut(of: Plane, display: Mapping[str, Any]) -> Markup | None:
    if display["height"] is None:
        return None
    y = of.y(display["height"])
    told = count(display["k"], "cluster")
    return tag("g", line(of.left, y, of.right, y, "choice"), words(of.right, y - 5, told, "end", cls="chosen"))


def _named(of: Plane, j: int, name: str, upright: bool, shade: str | None) -> Markup:
    x, y = of.x(j), of.bottom + 16
    swatch = None
    if shade:
        swatch = tag("rect", x=round(x - 5, 1), y=of.bottom + 4, width=10, height=5, rx=2, fill=shade)
        y += 6
    if upright:
        x, y = x + 4, y - 3
        return tag("g", swatch, words(x, y, name, "end", cls="leaf", transform=f"rotate(-90 {x:g} {y:g})"))
    return tag("g", swatch, words(x, y + 2, name, cls="leaf"))


def _note(display: Mapping[str, Any], of_centers: bool, method: str) -> str:
    if of_centers:
        return (
            f"{method} of the {display['n']} centers, each with the weight of its rows: which clusters are neighbours, "
            "and which would merge first with fewer of them."
        )
    drawn = len(display["y"])
    last = "merge" if drawn == 1 else f"{drawn} merges"
    told = f"All merges by {method}." if drawn == display["n"] - 1 else f"The last {last} by {method}."
    return (
        told
        if display["height"] is None
        else f"{told} The dashed line cuts the tree into {count(display['k'], 'cluster')}."
    )


def _table(display: Mapping[str, Any], of_centers: bool) -> Markup:
    leaves = [[shown(name), f"{size:,}"] for name, size in zip(display["leaves"], display["sizes"], strict=True)]
    heights = sorted((line[1] for line in display["y"]), reverse=True)
    merges = [[str(i + 1), number(height)] for i, height in enumerate(heights)]
    return tag(
        "div",
        numbers(["cluster" if of_centers else "leaf", "rows"], leaves),
        numbers(["clusters below this merge", "its height"], [[str(int(i) + 1), h] for i, h in merges]),
    )
