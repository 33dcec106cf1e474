"""Static figure of clusters on two axes: points as PNG, everything else as SVG."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.palette import NOISE, as_rgb
from coterie.web.limits import outward
from coterie.web.markup import Markup, joined, tag
from coterie.web.plane import Plane
from coterie.web.png import data_uri, png, raster

WIDTH, HEIGHT = 880, 520
MARGINS = ((12.0, 16.0, 12.0, 16.0), (12.0, 16.0, 46.0, 16.0), (12.0, 16.0, 46.0, 58.0))  # by the number of axes
ARROW = 9.0  # length of arrows that point to rows beyond the border
NUMBERED = 60  # maximum number of clusters with numbered centers
MANY = 20  # with more clusters, ellipses have thin lines


def still(
    axes: Sequence[str], points: Any, rgb: Any, box: Any, *, shades: Any = None, centers: Any = (),
    ellipses: Any = None, names: Sequence[str] = (), colors: Sequence[str] = (), label: str = "", width: int = WIDTH,
    height: int = HEIGHT,
) -> Markup:  # fmt: skip
    """Return an SVG of points (m, 2) with colours (m, 3), ellipses [cx, cy, a, b, angle] and numbered centers.

    `shades`, RGBA pixels of any size that cover the box, replace the points. `axes` are up to two names; with one,
    there is no vertical axis, and without names there is a frame. Arrows point to points beyond the box.
    """
    plane = Plane(width, height, box, MARGINS[len(axes)])
    area = {"x": plane.left, "y": plane.top, "width": plane.right - plane.left, "height": plane.bottom - plane.top}
    points, rgb, (x0, x1, y0, y1) = np.asarray(points, dtype=np.float64).reshape(-1, 2), np.asarray(rgb), plane.box
    sides = outward(points, [x0, y0], [x1, y1])
    if shades is None:
        wide, high = round(plane.right - plane.left), round(plane.bottom - plane.top)
        is_inside = ~sides.any(axis=1)
        x, y = points[is_inside].T
        across, down = (x - x0) / (x1 - x0) * wide, (y1 - y) / (y1 - y0) * high
        shades = raster(across, down, rgb[is_inside], wide, high, dot_radius(len(points), wide * high))
    image = tag("image", href=data_uri(png(shades)), **area, preserveAspectRatio="none")
    named = list(zip(centers, names, colors, strict=False))[:NUMBERED]
    outlined = [(e, color) for e, color in zip(ellipses or (), colors, strict=False) if e is not None]
    return plane.svg(
        label,
        image,
        plane.x_axis(axes[0]) if axes else tag("rect", **area, cls="rim"),
        plane.y_axis(axes[1]) if len(axes) > 1 else None,
        tag(
            "svg",
            _arrows(plane, points, rgb, sides),
            [_outline(plane, ellipse, color, len(colors) > MANY) for ellipse, color in outlined],
            [_number(plane, center, name, color) for center, name, color in named],
            **area,
            viewBox=" ".join(f"{value:g}" for value in area.values()),
        ),
        cls="chart still",
    )


def point_colours(labels: Any, colors: Sequence[str]) -> np.ndarray:
    """Return the colours (m, 3) of the clusters of labels (m,); grey for -1."""
    return as_rgb([*colors, NOISE])[np.asarray(labels, dtype=np.int64)]


def ellipses_of(centers: Any, covariances: Any, deviations: float = 2.0) -> list[list[float]]:
    r"""Return ellipses of covariances (k, 2, 2), each as [cx, cy, a, b, angle].

    `a` is the longer half axis, and `angle` its direction in radians.
    """
    ellipses = []
    for (cx, cy), spread in zip(
        np.asarray(centers, dtype=np.float64), np.asarray(covariances, dtype=np.float64), strict=True
    ):
        difference, covariance = (spread[0, 0] - spread[1, 1]) / 2, spread[0, 1]
        mean, radius = (spread[0, 0] + spread[1, 1]) / 2, float(np.hypot(difference, covariance))
        a, b = (deviations * float(np.sqrt(max(value, 0.0))) for value in (mean + radius, mean - radius))
        ellipses.append([float(cx), float(cy), a, b, 0.5 * float(np.arctan2(covariance, difference))])
    return ellipses


def dot_radius(count: int, area: float) -> float:
    """Return the radius of points in pixels, which grows with the area per point; same as in `web/src/raster.ts`."""
    return float(np.clip(0.18 * np.sqrt(area / max(count, 1)), 1.0, 3.5))


def _arrows(plane: Plane, points: Array, rgb: Array, sides: Array) -> list[Markup]:
    """Return arrows at the border, one path for each colour; same as in `web/src/plane.ts`."""
    corners: dict[str, list[str]] = {}
    low, high = np.array(plane.box).reshape(2, 2).T
    for i in np.flatnonzero(sides.any(axis=1)).tolist():
        x, y = np.clip(points[i], low, high)
        color = "#" + "".join(f"{round(255 * value):02x}" for value in rgb[i])
        corners.setdefault(color, []).append(arrow(plane.x(x), plane.y(y), sides[i, 0], -sides[i, 1]))
    return [tag("path", cls="far", d="".join(paths), fill=color) for color, paths in corners.items()]


def arrow(x: float, y: float, dx: int, dy: int) -> str:
    """Return the SVG path of an arrow whose tip is at (x, y), in pixels; (dx, dy) is its direction, of -1, 0 and 1."""
    size = ARROW / float(np.hypot(dx, dy))
    (bx, by), (wx, wy) = (x - dx * size, y - dy * size), (0.5 * dy * size, 0.5 * dx * size)
    return f"M{x:.1f},{y:.1f}L{bx - wx:.1f},{by + wy:.1f}L{bx + wx:.1f},{by - wy:.1f}Z"


def _outline(plane: Plane, ellipse: Any, color: str, thin: bool) -> Markup:
    cx, cy, a, b, angle = ellipse
    turn = np.linspace(0, 2 * np.pi, 33 if thin else 65)
    xs = cx + a * np.cos(turn) * np.cos(angle) - b * np.sin(turn) * np.sin(angle)
    ys = cy + a * np.cos(turn) * np.sin(angle) + b * np.sin(turn) * np.cos(angle)
    d = plane.path(xs, ys) + "Z"
    halo = None if thin else tag("path", cls="halo", d=d)
    return joined(halo, tag("path", cls="ellipse thin" if thin else "ellipse", d=d, stroke=color))


def _number(plane: Plane, center: Any, name: str, color: str) -> Markup:
    longest = min(max(int((plane.right - plane.left) // 40), 10), 24)  # letters: more on a wide plane
    shown = f"{name[: longest - 1]}…" if len(name) > longest else name
    half = max(10.0, 4.0 * len(shown) + 4.0)
    x0, x1, y0, y1 = plane.box
    is_inside = x0 <= center[0] <= x1 and y0 <= center[1] <= y1
    rest = 2.0 if is_inside else ARROW + 4.0  # from the border, where arrows are
    x = min(max(plane.x(center[0]), plane.left + half + rest), plane.right - half - rest)
    y = min(max(plane.y(center[1]), plane.top + 10.0 + rest), plane.bottom - 10.0 - rest)
    return tag(
        "g",
        tag("title", name),
        tag("rect", x=x - half, y=y - 10, width=2 * half, height=20, rx=10, stroke=color),
        tag("text", shown, x=x, y=y + 4, text_anchor="middle"),
        cls="number",
    )
