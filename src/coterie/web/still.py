"""Static figure of clusters on two axes: points as PNG, everything else as SVG."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.palette import NOISE, as_rgb
from coterie.web.markup import Markup, joined, tag
from coterie.web.plane import Plane
from coterie.web.png import data_uri, png, raster

WIDTH, HEIGHT = 880, 520
NUMBERED = 60  # maximum number of clusters with numbered centers
MANY = 20  # with more clusters, ellipses have thin lines


def still(
    axes: Sequence[str], points: Any, rgb: Any, box: Any, *, shades: Any = None, centers: Any = (),
    ellipses: Any = None, names: Sequence[str] = (), colors: Sequence[str] = (), label: str = "", width: int = WIDTH,
    height: int = HEIGHT,
) -> Markup:  # fmt: skip
    """Return an SVG of points (m, 2) with colours (m, 3), ellipses [cx, cy, a, b, angle] and numbered centers.

    `shades`, RGBA pixels of any size that cover the box, replace the points. `axes` are one or two names; with one,
    there is no vertical axis.
    """
    plane = Plane(width, height, box) if len(axes) > 1 else Plane(width, height, box, (12.0, 16.0, 46.0, 16.0))
    area = {"x": plane.left, "y": plane.top, "width": plane.right - plane.left, "height": plane.bottom - plane.top}
    if shades is None:
        wide, high = round(plane.right - plane.left), round(plane.bottom - plane.top)
        (x, y), (x0, x1, y0, y1) = np.asarray(points, dtype=np.float64).reshape(-1, 2).T, plane.box
        across, down = (x - x0) / (x1 - x0) * wide, (y1 - y) / (y1 - y0) * high
        shades = raster(across, down, rgb, wide, high, dot_radius(len(x), wide * high))
    image = tag("image", href=data_uri(png(shades)), **area, preserveAspectRatio="none")
    named = list(zip(centers, names, colors, strict=False))[:NUMBERED]
    outlined = [(e, color) for e, color in zip(ellipses or (), colors, strict=False) if e is not None]
    return plane.svg(
        label,
        image,
        plane.x_axis(axes[0]),
        plane.y_axis(axes[1]) if len(axes) > 1 else None,
        tag(
            "svg",
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


def _outline(plane: Plane, ellipse: Any, color: str, thin: bool) -> Markup:
    cx, cy, a, b, angle = ellipse
    turn = np.linspace(0, 2 * np.pi, 33 if thin else 65)
    xs = cx + a * np.cos(turn) * np.cos(angle) - b * np.sin(turn) * np.sin(angle)
    ys = cy + a * np.cos(turn) * np.sin(angle) + b * np.sin(turn) * np.cos(angle)
    d = plane.path(xs, ys) + "Z"
    halo = None if thin else tag("path", cls="halo", d=d)
    return joined(halo, tag("path", cls="ellipse thin" if thin else "ellipse", d=d, stroke=color))


def _number(plane: Plane, center: Any, name: str, color: str) -> Markup:
    x, y = plane.x(center[0]), plane.y(center[1])
    shown = f"{name[:9]}…" if len(name) > 10 else name
    half = max(10.0, 4.0 * len(shown) + 4.0)
    return tag(
        "g",
        tag("title", name),
        tag("rect", x=x - half, y=y - 10, width=2 * half, height=20, rx=10, stroke=color),
        tag("text", shown, x=x, y=y + 4, text_anchor="middle"),
        cls="number",
    )
