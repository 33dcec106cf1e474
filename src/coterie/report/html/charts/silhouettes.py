"""How well each row fits its cluster, cluster by cluster: by distances, or by probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.palette import colours
from coterie.report.html.charts.figure import figure, numbers, who
from coterie.report.html.charts.svg import SLIM, WIDE, line, path, tip, words
from coterie.report.html.words import count, percent, shown, text_width, two_places
from coterie.web import Markup, Plane, tag

TOP, BOTTOM, RIGHT = 26.0, 46.0, 96.0
SLIM_RIGHT = 14.0  # on small screens the share of doubtful rows is in the table alone
LETTERS, FEW_LETTERS = 18, 9  # of a name
HEADER = "cluster · mean · rows"
CORNERS, FEW_CORNERS = 90, 40  # of an outline


@dataclass(frozen=True)
class _Words:
    """What is said of the values."""

    what: str  # they are, in the plural
    below: str  # which of them are doubtful
    axis: str
    scale: str  # what its ends mean
    none: str  # if no row is doubtful
    some: str  # if some are, after their share


SILHOUETTES = _Words(
    "silhouettes",
    "below 0",
    "silhouette",
    "1 is deep in its own cluster, 0 between two, below 0 nearer to another one.",
    "No row is below 0: none is nearer, in the mean, to another cluster than to its own.",
    "of the rows are below 0: nearer, in the mean, to another cluster than to their own.",
)
CERTAINTY = _Words(
    "probabilities",
    "below 0.9",
    "probability",
    "How probable the clusters of rows are: 1 is certain, 1/K is no better than a guess.",
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
    drawn, slim = _drawn(display, told, WIDE, LETTERS), _drawn(display, told, SLIM, FEW_LETTERS)
    return figure(told.what.capitalize(), drawn, _table(display, told), note=_note(display, told), slim=slim)


def _drawn(display: Mapping[str, Any], told: _Words, width: float, letters: int) -> Markup:
    areas = [_Area(display, j, told, letters) for j in display["shown"]]
    right = RIGHT if width == WIDE else SLIM_RIGHT
    heights = _heights([area.size for area in areas])
    low = min([0.0, *(min(area.outline) for area in areas)])
    left = max(text_width(HEADER, 11.0) + 12.0, 34.0 + max(text_width(area.called) for area in areas))
    height = TOP + sum(heights) + BOTTOM
    box = (max(-1.0, low - 0.05) if low < 0 else -0.02, 1.0, 0.0, 1.0)
    of = Plane(width, height, box, (TOP, right, BOTTOM, left))
    tops = [TOP + sum(heights[:i]) for i in range(len(heights))]
    return of.svg(
        f"{told.what.capitalize()} of {count(len(areas), 'cluster')}; the mean is {two_places(display['mean'])}",
        words(left - 8, TOP - 10, HEADER, "end", cls="small"),
        words(of.right + 8, TOP - 10, f"rows {told.below}", "start", cls="small") if right == RIGHT else None,
        of.x_axis(told.axis),
        line(of.x(0), TOP, of.x(0), of.bottom, "axis"),
        [area.drawn(of, top, tall) for area, top, tall in zip(areas, tops, heights, strict=True)],
        _mean(of, display["mean"]),
    )


class _Area:
    """One cluster of the display."""

    def __init__(self, display: Mapping[str, Any], j: int, told: _Words, letters: int):
        self.told = told
        self.colour = colours(len(display["names"]))[j]
        self.name = shown(display["names"][j], letters)
        self.size, self.mean, self.below = display["sizes"][j], display["means"][j], display["below"][j]
        corners = CORNERS if letters == LETTERS else FEW_CORNERS
        self.outline: Sequence[float] = _thin(display["outlines"][j], corners)

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
            words(of.right + 8, middle, percent(self.below), "start", cls="tick-text") if of.width == WIDE else None,
            data_tip=True,
        )


def _thin(values: Sequence[float], most: int) -> list[float]:
    if len(values) <= most:
        return list(values)
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def _heights(sizes: Sequence[int]) -> list[float]:
    """By the number of rows, none too low for its name."""
    room = min(460.0, max(150.0, 74.0 * len(sizes)))
    return [max(18.0, room * size / sum(sizes)) for size in sizes]


def _mean(of: Plane, mean: float) -> Markup:
    x, told = of.x(mean), f"mean {two_places(mean)}"
    half = text_width(told) / 2
    middle = min(max(x, of.left + half), of.right - half)  # between the words of the margins
    text = words(middle, of.top - 10, told, cls="chosen")
    return tag("g", line(x, of.top, x, of.bottom, "choice"), text)


def _note(display: Mapping[str, Any], told: _Words) -> str:
    sizes, below = display["sizes"], display["below"]
    share = sum(n * (b or 0.0) for n, b in zip(sizes, below, strict=True)) / max(sum(sizes), 1)
    said = f"{told.scale} {f'{percent(share)} {told.some}' if share > 0 else told.none}"
    if len(display["shown"]) < len(display["names"]):
        said += f" Drawn are the {len(display['shown'])} clusters with the lowest means, of {len(display['names'])}."
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
