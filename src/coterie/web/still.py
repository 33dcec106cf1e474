"""Static figure of clusters on two axes: points as PNG, everything else as SVG."""

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.errors import ParameterError
from coterie.palette import NOISE, as_rgb
from coterie.web.markup import Markup, joined, tag
from coterie.web.plane import Plane, outward

WIDTH, HEIGHT = 880, 520
MARGINS = ((12.0, 16.0, 12.0, 16.0), (12.0, 16.0, 46.0, 16.0), (12.0, 16.0, 46.0, 58.0))  # by the number of axes
ARROW = 9.0  # length of arrows that point to rows beyond the border
NUMBERED = 60  # maximum number of clusters with numbered centers
OPACITY = 0.75  # of a disc
MANY = 20  # with more clusters, ellipses have thin lines


def still(
    axes: Sequence[str], points: Any, rgb: Any, box: Any, *, shades: Any = None, centers: Any = (),
    ellipses: Any = None, names: Sequence[str] = (), colors: Sequence[str] = (), label: str = "",
) -> Markup:  # fmt: skip
    """Return an SVG of points (m, 2) with colours (m, 3), ellipses [cx, cy, a, b, angle] and numbered centers.

    `shades`, RGBA pixels of any size that cover the box, replace the points. `axes` are up to two names; with one,
    there is no vertical axis, and without names there is a frame. Arrows point to points beyond the box.
    """
    plane = Plane(WIDTH, HEIGHT, box, MARGINS[len(axes)])
    area = {"x": plane.left, "y": plane.top, "width": plane.right - plane.left, "height": plane.bottom - plane.top}
    points, rgb, (x0, x1, y0, y1) = np.asarray(points, dtype=np.float64).reshape(-1, 2), np.asarray(rgb), plane.box
    sides = outward(points, [x0, y0], [x1, y1])
    if shades is None:
        wide, high = round(plane.right - plane.left), round(plane.bottom - plane.top)
        is_inside = ~sides.any(axis=1)
        x, y = points[is_inside].T
        across, down = (x - x0) / (x1 - x0) * wide, (y1 - y) / (y1 - y0) * high
        shades = raster(across, down, rgb[is_inside], wide, high, dot_radius(len(points), wide * high))
    image = tag(
        "image",
        href=f"data:image/png;base64,{b64encode(png(shades)).decode('ascii')}",
        **area,
        preserveAspectRatio="none",
    )
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


def png(pixels: Any) -> bytes:
    """Return a PNG file of RGBA pixels (height, width, 4), from the top; with a palette if 256 colours are enough."""
    pixels = np.asarray(pixels)
    if pixels.ndim != 3 or pixels.shape[2] != 4 or pixels.dtype != np.uint8 or 0 in pixels.shape:
        raise ParameterError(
            f"pixels must be uint8 with the shape (height, width, 4); got {pixels.dtype} {pixels.shape}"
        )
    height, width = pixels.shape[:2]
    words = np.ascontiguousarray(pixels).view("<u4").reshape(height, width)
    shades = np.unique(words)
    if len(shades) <= 256:
        table = shades.view(np.uint8).reshape(-1, 4)
        parts = [(b"PLTE", table[:, :3].tobytes()), (b"tRNS", table[:, 3].tobytes())]
        kind, rows = 3, np.searchsorted(shades, words).astype(np.uint8)
    else:
        parts, kind, rows = [], 6, pixels.reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # 0: the row has no filter
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    chunks = [(b"IHDR", header), *parts, (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    file = b"\x89PNG\r\n\x1a\n"
    for name, content in chunks:
        file += struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    return file


def raster(x: Any, y: Any, rgb: Any, width: int, height: int, radius: float = 1.6) -> np.ndarray:
    """Draw discs at (x, y), in pixels from the upper left, as RGBA (height, width, 4).

    Where discs overlap, the colour is their mean and the opacity is that of all discs on top of each other. The image
    does not depend on the order of the discs. `web/src/raster.ts` does the same in the browser.
    """
    column, line = (np.floor(np.asarray(values, dtype=np.float64)).astype(np.int64) for values in (x, y))
    colours = np.asarray(rgb, dtype=np.float64).reshape(-1, 3)
    reach = range(-int(radius + 0.5), int(radius + 0.5) + 1)
    is_drawn = np.zeros(height * width, bool)  # most pixels of an image are empty
    discs = []  # for each pixel of a disc: the share that it covers, the discs, and the pixels
    for dx, dy in ((dx, dy) for dy in reach for dx in reach):
        share = min(1.0, radius + 0.5 - float(np.hypot(dx, dy)))
        if share > 0:
            inside = (column + dx >= 0) & (column + dx < width) & (line + dy >= 0) & (line + dy < height)
            place = (line[inside] + dy) * width + column[inside] + dx
            is_drawn[place] = True
            discs.append((share, inside, place))
    index = np.cumsum(is_drawn) - 1  # of each pixel among the drawn ones
    light = np.zeros((4, int(np.count_nonzero(is_drawn))))  # red, green, blue and coverage
    for share, inside, place in discs:
        for channel in range(3):
            light[channel] += share * np.bincount(index[place], colours[inside, channel], minlength=light.shape[1])
        light[3] += share * np.bincount(index[place], minlength=light.shape[1])
    # Few distinct colours, so that the file is small
    colour = np.clip(np.rint(light[:3] / light[3] * 17) * 15, 0, 255)
    alpha = np.clip(np.rint((1 - (1 - OPACITY) ** light[3]) * 8) * 31.875, 0, 255)
    pixels = np.zeros((height * width, 4), np.uint8)
    pixels[is_drawn] = np.concatenate([np.where(alpha > 0, colour, 0.0), alpha[None]]).T
    return pixels.reshape(height, width, 4)
