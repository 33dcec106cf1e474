"""Gaussian components as the vector code reads them, and its sums as the caller wants them.

Rows and means are counted from the origin in units of `unit`, a power of two of their size, so that squares neither
overflow nor vanish. Centers are means counted so.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np

from coterie.kernels.cpu.simd import aligned, padded, points
from coterie.kernels.cpu.soft import STRIP, TRIANGLE, WIDE
from coterie.kernels.plain import Gaussians

FORMS = {"full": 0, "tied": 1, "diag": 2, "spherical": 3}
BLOCK_BYTES = 1 << 19  # rows that go through together stay in the second-level cache
STRIP_BYTES = 1 << 14  # and a strip of their columns in the first-level one
CANCELLED = 2.0**12  # a sum that leaves so small a part of itself has lost half its digits


class Layout(NamedTuple):
    """Sizes, and where in a `Room` things begin."""

    form: int
    k: int
    columns: int  # d, padded
    rows: int  # of a tile
    stride: int  # from tile to tile
    block: int  # rows of all tiles
    triangle: int  # numbers of a packed factor
    moments: int  # sums of second moments
    few_tiles: int  # of rows put together for one component
    tile: int  # (tiles, stride) the rows, as `simd` and `soft` want them
    white: int  # (columns, rows) a tile made white
    w: int  # (block,) weights
    squares: int  # (k padded, block)
    resp: int  # (k padded, block) posterior times w
    most: int  # (block,) with `total`: log-likelihoods
    total: int  # (block,)
    z: int  # (STRIP, block)
    few: int  # (few_tiles, stride) rows that one component has a share in
    few_w: int  # (block,)
    offset: int  # (k,) a log joint is offset + scale * square
    scale: int  # (k,)
    factor: int  # (...,) in the order it is read in
    center: int  # (k + 1, columns), the last the origin itself


class Room:
    """Room to work in, for one form, one shape and one type."""

    def __init__(self, form: str, k: int, d: int, dtype: np.dtype):
        itemsize, like = dtype.itemsize, np.empty(0, dtype)
        columns, components, rows, strips = whole(d), whole(k), points(itemsize), whole(d) // STRIP
        stride = columns * rows + padded(1, itemsize)  # tiles a power of two apart would share few lines of the cache
        tiles = max(4, min(BLOCK_BYTES // (stride * itemsize), STRIP_BYTES // (STRIP * rows * itemsize)))
        block, products = tiles * rows, components * columns
        few_tiles = tiles // 2 if form == "full" else 0
        triangle = columns + columns * (columns + STRIP) // 2
        moments = strips * (STRIP + len(TRIANGLE)) + STRIP**2 * (strips * (strips - 1) // 2)
        factor = {"full": k * triangle, "tied": triangle + products, "diag": 2 * products, "spherical": products}
        sums = {"full": k * moments, "tied": moments + products, "diag": 2 * products, "spherical": products + k}
        sizes = {
            "tile": tiles * stride,
            "white": columns * rows,
            "w": block,
            "squares": components * block,
            "resp": components * block,
            "most": block,
            "total": block,
            "z": STRIP * block,
            "few": few_tiles * stride,
            "few_w": block,
            "offset": k,
            "scale": k,
            "factor": factor[form],
            "center": (k + 1) * columns,
        }
        *starts, size = accumulate((padded(size, itemsize) for size in sizes.values()), initial=0)
        start = dict(zip(sizes, starts, strict=True))
        self.form = form
        self.layout = Layout(FORMS[form], k, columns, rows, stride, block, triangle, moments, few_tiles, **start)
        self.numbers, self.sums = aligned(size, like), np.empty(sums[form])
        self.rows, self.picked = np.zeros(block, np.int64), np.zeros(block, np.int64)
        self.norm, self.origin = aligned(rows, like), aligned(columns, like)
        self.offset, self.scale, self.factor, center = (
            self.numbers[start[name] : start[name] + sizes[name]] for name in ("offset", "scale", "factor", "center")
        )
        self.center = center.reshape(k + 1, columns)
        if form in ("full", "tied"):
            self.factor_order, self.linear_order, self.moment_order = _factor_order(d), *_moment_order(d)
            self.below = np.tri(d, k=-1, dtype=bool)


def whole(count: int) -> int:
    """`count` rounded up to whole strips."""
    return -(-count // STRIP) * STRIP


@np.errstate(over="ignore")
def pack(g: Gaussians, room: Room) -> tuple[np.ndarray, float]:
    """Puts the components into the room; the centers (k, d) and the unit.

    What is too large for the data's type becomes infinite, and shows in the sums.
    """
    k, d = g.means.shape
    s = room.layout
    room.origin[:d] = g.origin
    center = g.means - room.origin[:d]
    diagonal = np.diagonal(g.factor, axis1=-2, axis2=-1) if g.form in ("full", "tied") else g.factor
    unit = _power_of_two(max(np.abs(center).max(), 1.0 / np.abs(diagonal).min()))
    center /= unit
    room.center[:k, :d] = center
    room.offset[:] = g.offset
    room.scale[:] = -0.5
    if g.form == "full":
        room.factor.reshape(k, -1)[:] = np.take(_packed(g.factor, center, unit), room.factor_order, axis=1)
    elif g.form == "tied":
        room.factor[: s.triangle] = _packed(g.factor[None], np.zeros((1, d)), unit)[0, room.factor_order]
        _put_panels((center @ (g.factor * unit))[:, :, None], s.columns, room.factor[s.triangle :])
    elif g.form == "diag":
        p = g.factor * unit
        _put_panels(np.stack([p, -p * center], axis=2), s.columns, room.factor)
    else:
        room.scale[:] = -0.5 * (g.factor * unit) ** 2
        _put_panels(center[:, :, None], s.columns, room.factor)
    return center, unit


def unpack(room: Room, weight: np.ndarray, center: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """`sum_dx` and `sum_dxx` about the means from the sums taken.

    These are about the centers as rounded to the data's type, and `left` less than about the centers themselves; second
    moments are about the origin on one side (full) or both (tied).
    """
    (k, d), s, sums = center.shape, room.layout, room.sums
    left = room.center[:k, :d] - center
    if room.form == "full":
        sums = sums.reshape(k, -1)
        linear = sums[:, room.linear_order]
        sum_dx = linear + weight[:, None] * left
        sum_dxx = np.take(sums, room.moment_order, axis=1)
        sum_dxx -= linear[:, :, None] * center[:, None, :]
        if left.any():
            sum_dxx += left[:, :, None] * sum_dx[:, None, :]
        np.copyto(sum_dxx, sum_dxx.transpose(0, 2, 1), where=room.below)
    elif room.form == "diag":
        pairs = sums.reshape(-1, s.columns // STRIP, 2, STRIP).transpose(2, 0, 1, 3)
        linear, square = pairs.reshape(2, -1, s.columns)[:, :k, :d]
        sum_dx = linear + weight[:, None] * left
        sum_dxx = square + left * (linear + sum_dx)
    else:
        products = sums[: whole(k) * s.columns].reshape(-1, s.columns // WIDE, STRIP, WIDE)
        sum_dx = products.transpose(0, 2, 1, 3).reshape(-1, s.columns)[:k, :d] - weight[:, None] * center
        if room.form == "tied":
            crossed = (sum_dx + 0.5 * weight[:, None] * center).T @ center
            sum_dxx = sums[-s.moments :][room.moment_order] - (crossed + crossed.T)
        else:
            sum_dxx = sums[-k:] + (left * (2.0 * sum_dx - weight[:, None] * left)).sum(axis=1)
    sum_dx *= unit
    sum_dxx *= unit**2
    return sum_dx, sum_dxx


def cancelled(room: Room, sum_dxx: np.ndarray, unit: float) -> bool:
    """Whether moments about the origin, in float32, say too little about those about the means."""
    if room.form != "tied" or room.numbers.dtype == np.float64:
        return False
    total = room.sums[-room.layout.moments :][np.diagonal(room.moment_order)] * unit**2
    return bool(np.any(total > CANCELLED * np.diagonal(sum_dxx)))


def _packed(factor: np.ndarray, center: np.ndarray, unit: float) -> np.ndarray:
    """For each component -U'c, then U, then a zero."""
    k, d = center.shape
    source = np.zeros((k, d + d * d + 1))
    np.multiply(factor.reshape(k, -1), unit, out=source[:, d:-1])
    source[:, :d] = -np.matmul(center[:, None, :], source[:, d:-1].reshape(k, d, d))[:, 0]
    return source


def _factor_order(d: int) -> np.ndarray:
    """Where `soft.triangle_squares` finds what it reads in a row of `_packed`."""
    order = []
    for first in range(0, d, STRIP):
        t, i = np.arange(first + STRIP)[:, None], first + np.arange(STRIP)
        order += [np.where(i < d, i, -1), np.where((t <= i) & (i < d), d + t * d + i, -1).ravel()]
    return np.concatenate(order)


def _moment_order(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Where sums of x (d,) and of xx' (d, d) lie, as `gaussian.add_moments` takes them."""
    columns, at = whole(d), 0
    linear, moment = np.empty(columns, np.intp), np.empty((columns, columns), np.intp)
    i, t = np.array(TRIANGLE).T
    for first in range(0, columns, STRIP):
        linear[first : first + STRIP] = at + np.arange(STRIP)
        at += STRIP
        moment[first + i, first + t] = moment[first + t, first + i] = at + np.arange(len(i))
        at += len(i)
        others = columns - first - STRIP
        tiles = at + np.arange(STRIP * others).reshape(-1, STRIP, WIDE).transpose(1, 0, 2).reshape(STRIP, others)
        moment[first : first + STRIP, first + STRIP :] = tiles
        moment[first + STRIP :, first : first + STRIP] = tiles.T
        at += STRIP * others
    return linear[:d], moment[:d, :d].copy()


def _put_panels(values: np.ndarray, columns: int, out: np.ndarray) -> None:
    """values (k, d, m) of STRIP components side by side: (columns, m, STRIP)."""
    k, d, m = values.shape
    full = np.zeros((whole(k), columns, m))
    full[:k, :d] = values
    out.reshape(-1, columns, m, STRIP)[:] = full.reshape(-1, STRIP, columns, m).transpose(0, 2, 3, 1)


def _power_of_two(size: float) -> float:
    return 2.0 ** float(np.ceil(np.log2(size))) if 0.0 < size < np.inf else 1.0
