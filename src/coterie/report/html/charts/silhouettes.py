"""How well rows fit their clusters: silhouettes, or probabilities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.core.formatting import count
from coterie.palette import colours
from coterie.report.formatting import number, percent, short_name, text_width, two_places
from coterie.report.html.blocks import cluster_name, figure, numbers
from coterie.report.html.charts.svg import SLIM, WIDE, line, path, svg_text, tooltip
from coterie.web import Markup, Plane, tag

TOP, BOTTOM, RIGHT = 26.0, 46.0, 96.0
SLIM_RIGHT = 14.0  # on small screens only the table has the share of low values
LETTERS, FEW_LETTERS = 18, 9  # maximum length of a name: wide and slim
POINTS, FEW_POINTS = 90, 40  # of an outline: wide and slim


@dataclass(frozen=True)
class Texts:
    """The texts of a chart."""

    title: str  # name of the values, in the plural
    below: str  # which values are low
    axis: str  # label of the axis
    scale: str  # meaning of the values
    none: str  # sentence if no row has a low value
    some: str  # sentence if some have, after their share


SILHOUETTES = Texts(
    "Silhouettes",
    "below 0",
    "silhouette",
    "1: far inside its cluster; 0: between two clusters; below 0: nearer to another cluster.",
    "No row is below 0: on average, every row is nearest to its own cluster.",
    "of the rows are below 0: on average, they are nearer to another cluster than to their own.",
)
CERTAINTY = Texts(
    "Probabilities",
    "below 0.9",
    "probability",
    "Probability of each row for its cluster: 1 is certain, 1/K is no better than a random guess.",
    "Every row has a probability of at least 0.9.",
    "of the rows have a probability below 0.9: they lie between components.",
)


def areas(display: Mapping[str, Any], texts: Texts) -> Markup:
    """Draw the dictionary of a `SilhouetteDisplay` or `Certainty`: an area for each cluster, and a line at the mean."""
    drawn, slim = _drawn(display, texts, WIDE, LETTERS), _drawn(display, texts, SLIM, FEW_LETTERS)
    return figure(texts.title, drawn, _table(display, texts), note=_note(display, texts), slim=slim)


def _unit(display: Mapping[str, Any]) -> str:
    """What the size of a cluster is."""
    return "weight" if display.get("weighted") else "rows"


def _size(size: float) -> str:
    return f"{size:,.0f}" if float(size).is_integer() else number(size)


def _drawn(display: Mapping[str, Any], texts: Texts, width: float, letters: int) -> Markup:
    unit = _unit(display)
    header = f"cluster · mean · {unit}"
    areas = [_Area(display, j, texts, letters) for j in display["shown"]]
    right = RIGHT if width == WIDE else SLIM_RIGHT
    total = min(460.0, max(150.0, 74.0 * len(areas)))
    n_rows = sum(area.size for area in areas)
    heights = [max(18.0, total * area.size / n_rows) for area in areas]  # at least the height of a name
    low = min([0.0, *(min(area.outline) for area in areas)])
    left = max(text_width(header, 11.0) + 12.0, 34.0 + max(text_width(area.label) for area in areas))
    height = TOP + sum(heights) + BOTTOM
    box = (max(-1.0, low - 0.05) if low < 0 else -0.02, 1.0, 0.0, 1.0)
    of = Plane(width, height, box, (TOP, right, BOTTOM, left))
    tops = [TOP + sum(heights[:i]) for i in range(len(heights))]
    return of.svg(
        f"{texts.title} of {count(len(areas), 'cluster')}; the mean is {two_places(display['mean'])}",
        svg_text(left - 8, TOP - 10, header, "end", cls="small"),
        svg_text(of.right + 8, TOP - 10, f"{unit} {texts.below}", "start", cls="small") if right == RIGHT else None,
        of.x_axis(texts.axis),
        line(of.x(0), TOP, of.x(0), of.bottom, "axis"),
        [area.drawn(of, top, tall) for area, top, tall in zip(areas, tops, heights, strict=True)],
        _mean(of, display["mean"]),
    )


class _Area:
    """One cluster of the display."""

    def __init__(self, display: Mapping[str, Any], j: int, texts: Texts, letters: int):
        self.texts = texts
        self.colour = colours(len(display["names"]))[j]
        self.name = short_name(display["names"][j], letters)
        self.size, self.mean, self.below = display["sizes"][j], display["means"][j], display["below"][j]
        self.unit = _unit(display)
        values, n_points = display["outlines"][j], POINTS if letters == LETTERS else FEW_POINTS
        self.outline: Sequence[float] = values
        if len(values) > n_points:
            self.outline = [values[round(i * (len(values) - 1) / (n_points - 1))] for i in range(n_points)]

    @property
    def label(self) -> str:
        return f"{self.name} · {two_places(self.mean)} · {_size(self.size)}"

    def drawn(self, of: Plane, top: float, tall: float) -> Markup:
        inner, last = tall - 3.0, max(len(self.outline) - 1, 1)
        values = self.outline if len(self.outline) > 1 else [self.outline[0]] * 2
        edge = [(of.x(value), top + inner * i / last) for i, value in enumerate(values)]
        zero, middle = of.x(0), top + inner / 2 + 4
        tip = (
            f"cluster {self.name}: mean {two_places(self.mean)}, {self.unit} {_size(self.size)}, "
            f"{percent(self.below)} of {self.unit} {self.texts.below}"
        )
        return tag(
            "g",
            tooltip(tip),
            tag("path", d=path([(zero, top), *edge, (zero, top + inner)], closed=True), fill=self.colour, cls="area"),
            tag("rect", x=of.left - 20, y=round(middle - 9, 1), width=10, height=10, rx=2.5, fill=self.colour),
            svg_text(of.left - 26, middle, self.label, "end"),
            svg_text(of.right + 8, middle, percent(self.below), "start", cls="tick-text") if of.width == WIDE else None,
            data_tip=True,
        )


def _mean(of: Plane, mean: float) -> Markup:
    x, label = of.x(mean), f"mean {two_places(mean)}"
    half = text_width(label) / 2
    middle = min(max(x, of.left + half), of.right - half)  # not over the texts of the margins
    text = svg_text(middle, of.top - 10, label, cls="chosen")
    return tag("g", line(x, of.top, x, of.bottom, "choice"), text)


def _note(display: Mapping[str, Any], texts: Texts) -> str:
    sizes, below = display["sizes"], display["below"]
    share = sum(n * (b or 0.0) for n, b in zip(sizes, below, strict=True)) / max(sum(sizes), 1)
    some = texts.some.replace("of the rows", "of the weight of the rows") if display.get("weighted") else texts.some
    note = f"{texts.scale} {f'{percent(share)} {some}' if share > 0 else texts.none}"
    if len(display["shown"]) < len(display["names"]):
        note += f" Shown are the {len(display['shown'])} of {len(display['names'])} clusters with the lowest means."
    if display["sampled"] is not None:
        note += f" Computed on a random sample of {display['sampled']:,} of {display['n']:,} rows from all clusters."
    return note


def _table(display: Mapping[str, Any], texts: Texts) -> Markup:
    shades = colours(len(display["names"]))
    clusters = zip(shades, *(display[key] for key in ("names", "sizes", "means", "below")), strict=True)
    rows = [
        [cluster_name(shade, short_name(name)), _size(size), two_places(mean), percent(below)]
        for shade, name, size, mean, below in clusters
    ]
    unit = _unit(display)
    return numbers(["cluster", unit, "mean", f"{unit} {texts.below}"], rows)
