"""The coordinate system of an SVG chart: axes, round ticks, and limits that a few far rows do not stretch."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.web.markup import Markup, joined, tag

LETTER = 6.6  # approximate width of a character of a tick label, in pixels
MIN_VALUES = 10  # with fewer values, all are within the limits
FAR_SHARE = 0.02  # maximum share of the values that may be beyond each end
SLACK = 0.3  # space for rows that a sample lacks, as a share of the range of the middle
SQUEEZED = 4.0  # all values are within the limits, unless this makes the axis so many times as long


@dataclass(frozen=True)
class Plane:
    """A chart of `width` by `height` pixels that shows the values in a box [x0, x1, y0, y1] inside its margins.

    Examples
    --------
    >>> from coterie.web import Plane
    >>> plane = Plane(100, 100, (0.0, 1.0, 0.0, 1.0), margins=(10, 10, 10, 10))
    >>> plane.x(0.5), plane.y(1.0)
    (50.0, 10.0)
    """

    width: float
    height: float
    box: Any  # x0, x1, y0, y1
    margins: Any = field(default=(12.0, 16.0, 46.0, 58.0))  # top, right, bottom, left

    @property
    def left(self) -> float:
        return self.margins[3]

    @property
    def right(self) -> float:
        return self.width - self.margins[1]

    @property
    def top(self) -> float:
        return self.margins[0]

    @property
    def bottom(self) -> float:
        return self.height - self.margins[2]

    def x(self, value: float) -> float:
        """Convert a value to pixels from the left."""
        x0, x1 = self.box[:2]
        return round(self.left + (value - x0) / (x1 - x0) * (self.right - self.left), 2)

    def y(self, value: float) -> float:
        """Convert a value to pixels from the top."""
        y0, y1 = self.box[2:]
        return round(self.bottom - (value - y0) / (y1 - y0) * (self.bottom - self.top), 2)

    def path(self, xs: Any, ys: Any) -> str:
        """Return the `d` attribute of a path through points."""
        return "M" + "L".join(f"{self.x(x):g},{self.y(y):g}" for x, y in zip(xs, ys, strict=True))

    def x_axis(self, label: str, values: list[float] | None = None, texts: list[str] | None = None) -> Markup:
        """Return the horizontal axis: line, ticks, tick labels and name."""
        if values is None:
            values = ticks(self.box[0], self.box[1], max(2, int(self.right - self.left) // 90))
        texts = tick_texts(values) if texts is None else texts
        marks = [
            joined(
                tag("line", cls="tick", x1=self.x(v), x2=self.x(v), y1=self.bottom, y2=self.bottom + 5),
                tag("text", text, cls="tick-text", x=self.x(v), y=self.bottom + 19, text_anchor="middle"),
            )
            for v, text in zip(values, texts, strict=True)
        ]
        line = tag("line", cls="axis", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom)
        middle = (self.left + self.right) / 2
        name = tag("text", label, cls="axis-text", x=middle, y=self.bottom + 38, text_anchor="middle")
        return tag("g", line, marks, name, cls="x-axis")

    def y_axis(self, label: str, values: list[float] | None = None, *, grid: bool = False) -> Markup:
        """Return the vertical axis: ticks or grid lines, tick labels and the rotated name."""
        if values is None:
            values = ticks(self.box[2], self.box[3], max(2, int(self.bottom - self.top) // 55))
        end, kind = (self.right, "grid") if grid else (self.left - 5, "tick")
        marks = [
            joined(
                tag("line", cls=kind, x1=self.left, x2=end, y1=self.y(v), y2=self.y(v)),
                tag("text", text, cls="tick-text", x=self.left - 9, y=self.y(v) + 4, text_anchor="end"),
            )
            for v, text in zip(values, tick_texts(values), strict=True)
        ]
        line = None if grid else tag("line", cls="axis", x1=self.left, x2=self.left, y1=self.top, y2=self.bottom)
        middle = (self.top + self.bottom) / 2
        turn = f"translate(14 {middle:g}) rotate(-90)"
        name = tag("text", label, cls="axis-text", transform=turn, text_anchor="middle")
        return tag("g", line, marks, name, cls="y-axis")

    def svg(self, label: str, *content: Any, cls: str = "chart") -> Markup:
        """Return the chart as an SVG element; `label` is its description for screen readers."""
        view = f"0 0 {self.width:g} {self.height:g}"
        return tag("svg", *content, cls=cls, viewBox=view, width=self.width, height=self.height, role="img",
                   aria_label=label)  # fmt: skip

    def fitted(self, texts: list[str]) -> "Plane":
        """Return the plane with a left margin that is wide enough for these labels of the vertical axis."""
        width = 34 + LETTER * max((len(text) for text in texts), default=0)
        return Plane(self.width, self.height, self.box, (*self.margins[:3], max(self.margins[3], width)))


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Return about `count` round numbers from `low` to `high`, in steps of 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return [low] if math.isfinite(low) else []
    rough = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((power * m for m in (1, 2, 5, 10)), key=lambda size: abs(math.log(size / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if last - first > 10 * count:  # steps are smaller than rounding errors
        return [low, high]
    return [float(f"{i * step:.12g}") + 0.0 for i in range(first, last + 1)]


def tick_texts(values: list[float]) -> list[str]:
    """Format the numbers of an axis with as many decimals as their steps need, and thousands separators."""
    steps = np.diff(values) if len(values) > 1 else np.abs(values)
    step, largest = float(np.min(np.abs(steps), initial=np.inf)), float(np.max(np.abs(values), initial=0.0))
    if not 0 < step < math.inf:
        step = 1.0
    for size, letter in ((1e9, "G"), (1e6, "M")):
        if step >= size / 1000 and size <= largest < 1000 * size:
            return [_decimals(value / size, step / size) + letter if value else "0" for value in values]
    if largest >= 1e9 or largest < 1e-4:
        return [f"{value:.4g}".replace("-", "−") for value in values]
    return [_decimals(value, step) for value in values]


def _decimals(value: float, step: float) -> str:
    digits = next((d for d in range(9) if abs(round(step, d) - step) < 1e-6 * step), 9)
    return f"{value:,.{digits}f}".replace("-", "−")


def inner_range(values: Any, low: float | None = None, high: float | None = None) -> tuple[float, float]:
    """Return the minimum and maximum of the values, without a few that are far from all others.

    A value is far if its distance from the middle 96 % of the values is larger than their range. `low` and `high` are
    the minimum and maximum of all rows, if `values` are a sample of them.

    Examples
    --------
    >>> from coterie.web.plane import inner_range
    >>> inner_range([*range(50), 1_000_000])
    (0.0, 49.0)
    >>> inner_range([*range(50), 100])
    (0.0, 100.0)
    """
    x = np.asarray(values, dtype=np.float64)
    slack = SLACK if low is not None or high is not None else 0.0
    low = float(x.min()) if low is None else low
    high = float(x.max()) if high is None else high
    n_far = 0 if len(x) < MIN_VALUES else max(1, int(FAR_SHARE * len(x)))
    if n_far == 0:
        return low, high
    ordered = np.partition(x, [n_far, len(x) - 1 - n_far])
    first, last = float(ordered[n_far]), float(ordered[len(x) - 1 - n_far])
    with np.errstate(over="ignore"):  # an infinite range has all values inside
        width = last - first
        inside = x[(x >= first - width) & (x <= last + width)]
        inner_low = low if low >= first - width else max(first - width, float(inside.min()) - slack * width)
        inner_high = high if high <= last + width else min(last + width, float(inside.max()) + slack * width)
        is_squeezed = width > 0 and high - low > SQUEEZED * (inner_high - inner_low)
    return (inner_low, inner_high) if is_squeezed else (low, high)


def outward(points: Any, low: Any, high: Any) -> Array:
    """Return, for points (m, p), on which side of the limits of each axis they are: -1 below, 1 above, 0 within."""
    points = np.asarray(points, dtype=np.float64)
    return (points > high).astype(np.int64) - (points < low).astype(np.int64)


def beyond_counts(points: Any, low: Any, high: Any) -> Array:
    """Return the number of points (m, p) beyond the limits of either of two axes (p, p)."""
    is_inside = (outward(points, low, high) == 0).astype(np.float64)  # a product of floats is faster
    return len(is_inside) - np.rint(is_inside.T @ is_inside).astype(np.int64)
