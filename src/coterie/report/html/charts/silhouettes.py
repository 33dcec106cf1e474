"""How well each row fits its cluster, cluster by cluster: by distances, or by probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.palette import colours
from coterie.report.html.charts.figure import figure, numbers, who
from coterie.report.html.charts.svg import line, path, tip, words
from coterie.report.html.words import count, percent, shown, text_width, two_places
from coterie.web import Markup, Plane, tag

WIDTH = 900.0
TOP, BOTTOM, RIGHT = 26.0, 46.0, 96.0
LETTERS = 18  # of a name
HEADER = "cluster · mean · rows"
CORNERS = 90  # of an outline


@dataclass(frozen=True)
class _Words:
    """What is said of the values."""

    what: str  # they are, in the plural
    below: str  # which of them are doubtful
    axis: str
    none: str  # if no row is doubtful
    some: str  # if some are, after their share


SILHOUETTES = _Words(
    "silhouettes",
    "below 0",
    "silhouette: 1 is deep in its own cluster, 0 between two, below 0 nearer to another one",
    "No row is below 0: none is nearer, in the mean, to another cluster than to its own.",
    "of the rows are below 0: nearer, in the mean, to another cluster than to their own.",
)
CERTAINTY = _Words(
    "probabilities",
    "below 0.9",
    "probability of the row's own cluster: 1 is certain, 1/K is no better than a guess",
    "Every row belongs to its cluster with a probability of 0.9 or more.",
    "of the rows belong to their cluster with a probability below 0.9: they lie between components.",
)


def silhouettes(display: Mapping[str, Any]) -> Markup:
    """Of the dictionary of a `SilhouetteDisplay`: an area for each cluster, names at the left, the mean a line."""
    return _areas(display, SILHOUETTES)


def certainty(display: Mapping[str, Any]) -> Markup:
    """Of the dictionary of a `Certainty`: the same, of probabilities."""
    return _areas(display, CERTAINTY)


def _areas(display: Mapping[str, Any], told: _Words) -> Markup:
    areas = [_Area(display, j, told) for j in display["shown"]]
    heights = _heights([area.size for area in areas])
    low = min([0.0, *(min(area.outline) for area in areas)])
    left = max(text_width(HEADER, 11.0) + 12.0, 34.0 + max(text_width(area.called) for area in areas))
    height = TOP + sum(heights) + BOTTOM
    of = Plane(WIDTH, height, (max(-1.0, low - 0.05) if low < 0 else -0.02, 1.0, 0.0, 1.0), (TOP, RIGHT, BOTTOM, left))
    tops = [TOP + sum(heights[:i]) for i in range(len(heights))]
    drawn = of.svg(
        f"{told.what.capitalize()} of {count(len(areas), 'cluster')}; the mean is {two_places(display['mean'])}",
        words(left - 8, TOP - 10, HEADER, "end", cls="small"),
        words(WIDTH - RIGHT + 8, TOP - 10, f"rows {told.below}", "start", cls="small"),
        of.x_axis(told.axis),
        line(of.x(0), TOP, of.x(0), of.bottom, "axis"),
        [area.drawn(of, top, tall) for area, top, tall in zip(areas, tops, heights, strict=True)],
        _mean(of, display["mean"]),
    )
    title = told.what.capitalize()
    return figure(title, drawn, _table(display, told), note=_note(display, told), wide=True)


class _Area:
    """One cluster of the display."""

    def __init__(self, display: Mapping[str, Any], j: int, told: _Words):
        self.told = told
        self.colour = colours(len(display["names"]))[j]
        self.name = shown(display["names"][j], LETTERS)
        self.size, self.mean, self.below = display["sizes"][j], display["means"][j], display["below"][j]
        self.outline: Sequence[float] = _thin(display["outlines"][j])

    @property
    def called(self) -> str:
        return f"{self.name} · {two_places(self.mean)} · {self.size:,}"

    def drawn(self, of: Plane, top: float, tall: float) -> Markup:
        inner, last = tall - 3.0, max(len(self.outline) - 1, 1)
        values = self.outline if len(self.outline) > 1 else [self.outline[0]] * 2
        edge = [(of.x(value), top + inner * i / last) for i, value in enumerate(values)]
        zero, middle = of.x(0), top + inner / 2 + 4
        told = (
            f"cluster {self.name}: mean {two_places(self.mean)}, {count(self.size, 'row')}, "
            f"{percent(self.below)} of them {self.told.below}"
        )
        return tag(
            "g",
            tip(told),
            tag("path", d=path([(zero, top), *edge, (zero, top + inner)], closed=True), fill=self.colour, cls="area"),
            tag("rect", x=of.left - 20, y=round(middle - 9, 1), width=10, height=10, rx=2.5, fill=self.colour),
            words(of.left - 26, middle, self.called, "end"),
            words(of.right + 8, middle, percent(self.below), "start", cls="tick-text"),
            data_tip=True,
        )


def _thin(values: Sequence[float]) -> list[float]:
    if len(values) <= CORNERS:
        return list(values)
    return [values[round(i * (len(values) - 1) / (CORNERS - 1))] for i in range(CORNERS)]


def _heights(sizes: Sequence[int]) -> list[float]:
    """By the number of rows, none too low for its name."""
    room = min(460.0, max(150.0, 74.0 * len(sizes)))
    return [max(18.0, room * size / sum(sizes)) for size in sizes]


def _mean(of: Plane, mean: float) -> Markup:
    x = of.x(mean)
    at_end = x > of.right - 40  # where the words of the right margin begin
    text = words(x, of.top - 10, f"mean {two_places(mean)}", "end" if at_end else "middle", cls="chosen")
    return tag("g", line(x, of.top, x, of.bottom, "choice"), text)


def _note(display: Mapping[str, Any], told: _Words) -> str:
    sizes, below = display["sizes"], display["below"]
    share = sum(n * (b or 0.0) for n, b in zip(sizes, below, strict=True)) / max(sum(sizes), 1)
    said = f"{percent(share)} {told.some}" if share > 0 else told.none
    if len(display["shown"]) < len(display["names"]):
        said += f" Drawn are the {len(display['shown'])} clusters of the lowest means, of {len(display['names'])}."
    if display["sampled"] is not None:
        said += f" Measured on {display['sampled']:,} of {display['n']:,} rows, drawn from every cluster."
    return said


def _table(display: Mapping[str, Any], told: _Words) -> Markup:
    shades = colours(len(display["names"]))
    rows = [
        [who(shades[j], shown(name)), f"{size:,}", two_places(mean), percent(below)]
        for j, (name, size, mean, below) in enumerate(
            zip(display["names"], display["sizes"], display["means"], display["below"], strict=True)
        )
    ]
    return numbers(["cluster", "rows", "mean", f"rows {told.below}"], rows)
