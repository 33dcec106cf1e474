"""Layout of Gaussian components for vector code, and conversion of its sums.

Rows and means are relative to the origin and divided by `unit`, a power of two of their size, so that squares neither
overflow nor underflow. Centers are means in these units.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.simd import aligned, arena, padded, points
from coterie.kernels.cpu.soft_simd import PRODUCT_COLUMNS, STRIP, TRIANGLE
from coterie.kernels.plain import Gaussians

FORMS = {"full": 0, "tied": 1, "diag": 2, "spherical": 3}
BLOCK_BYTES = 1 << 19  # size of a block of rows, which stays in the second-level cache
STRIP_BYTES = 1 << 14  # size of a strip of its columns, which stays in the first-level cache
MAX_CANCELLATION = 2.0**12  # a difference smaller by this factor has lost half of its digits in float32


class Layout(NamedTuple):
    """Sizes, and the start of each array in the buffer of a `Workspace`."""

    form: int
    k: int
    columns: int  # d, padded
    rows: int  # of a tile
    stride: int  # from one tile to the next
    block: int  # rows of all tiles
    triangle: int  # size of a packed factor
    moments: int  # number of sums of a component with full covariance
    few_tiles: int  # tiles for the selected rows of one component
    tile: int  # (tiles, stride) rows in the layout of `simd` and `soft_simd`
    white: int  # (columns, rows) whitened tile
    w: int  # (block,) weights
    squares: int  # (k padded, block)
    resp: int  # (k padded, block) posteriors times w
    log_max: int  # (block,) maximum of log p(x, z); log p(x) is log_max + log(total)
    total: int  # (block,)
    z: int  # (STRIP, block)
    few: int  # (few_tiles, stride) rows with a positive posterior of one component
    few_w: int  # (block,)
    offset: int  # (k,) log p(x, z) is offset + scale * square
    scale: int  # (k,)
    factor: int  # (...,) in the order in which it is read
    center: int  # (k + 1, columns), the last one is the origin


class Arrays(NamedTuple):
    """Arrays of a pass."""

    buffer: Any  # in a `Layout`
    rows: Any  # (block,) indices of the rows of a block
    selected: Any  # (block,) indices of the selected rows of one component
    norm: Any  # (rows of a tile,) not used
    origin: Any  # (columns,)
    weight: Any  # (k,)
    sums: Any  # (..,) see `unpack`
    factor_order: Any  # (triangle,) of full and tied covariances: see `_factor_order`
    linear_order: Any  # (d,) likewise, see `_moment_order`
    moment_order: Any  # (d, d)


class Workspace:
    """Layout and arrays of a pass, for one form, shape and dtype."""

    def __init__(self, form: str, k: int, d: int, dtype: np.dtype):
        itemsize, like = dtype.itemsize, np.empty(0, dtype)
        columns, components, rows, strips = pad(d), pad(k), points(itemsize), pad(d) // STRIP
        stride = columns * rows + padded(1, itemsize)  # not a power of two: tiles would compete for cache lines
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
            "log_max": block,
            "total": block,
            "z": STRIP * block,
            "few": few_tiles * stride,
            "few_w": block,
            "offset": k,
            "scale": k,
            "factor": factor[form],
            "center": (k + 1) * columns,
        }
        buffer, start, arrays = arena(sizes, like)
        self.form, order = form, d if form in ("full", "tied") else 0  # of matrices
        self.layout = Layout(FORMS[form], k, columns, rows, stride, block, triangle, moments, few_tiles, **start)
        self.offset, self.scale, self.factor = (arrays[name] for name in ("offset", "scale", "factor"))
        self.center = arrays["center"].reshape(k + 1, columns)
        self.is_below_diagonal = np.tri(order, k=-1, dtype=bool)
        self.arrays = Arrays(
            buffer, *np.zeros((2, block), np.int64), aligned(rows, like), aligned(columns, like), np.empty(k),
            np.empty(sums[form]), _factor_order(order), *_moment_order(order),
        )  # fmt: skip


def pad(count: int) -> int:
    """`count` rounded up to a multiple of STRIP."""
    return -(-count // STRIP) * STRIP


@np.errstate(over="ignore")
def pack(g: Gaussians, work: Workspace) -> tuple[np.ndarray, float]:
    """Store the components in the workspace; return the centers (k, d) and the unit.

    Values that overflow the dtype of the data become infinite, which is detected in the sums.
    """
    k, d = g.means.shape
    s, origin = work.layout, work.arrays.origin
    origin[:d] = g.origin
    center = g.means - origin[:d]
    diagonal = np.diagonal(g.factor, axis1=-2, axis2=-1) if g.form in ("full", "tied") else g.factor
    unit = _power_of_two(max(np.abs(center).max(), 1.0 / np.abs(diagonal).min()))
    center /= unit
    work.center[:k, :d] = center
    work.offset[:] = g.offset
    work.scale[:] = -0.5
    if g.form == "full":
        work.factor.reshape(k, -1)[:] = np.take(_packed(g.factor, center, unit), work.arrays.factor_order, axis=1)
    elif g.form == "tied":
        work.factor[: s.triangle] = _packed(g.factor[None], np.zeros((1, d)), unit)[0, work.arrays.factor_order]
        _write_panels((center @ (g.factor * unit))[:, :, None], s.columns, work.factor[s.triangle :])
    elif g.form == "diag":
        p = g.factor * unit
        _write_panels(np.stack([p, -p * center], axis=2), s.columns, work.factor)
    else:
        work.scale[:] = -0.5 * (g.factor * unit) ** 2
        _write_panels(center[:, :, None], s.columns, work.factor)
    return center, unit


def unpack(work: Workspace, weight: np.ndarray, center: np.ndarray, unit: float) -> tuple[np.ndarray, np.ndarray]:
    """`sum_dx` and `sum_dxx` about the means from the sums in the workspace.

    These are about the centers rounded to the dtype of the data, which differ from the centers by `rounding`. Second
    moments are about the origin in one factor (full) or both (tied).
    """
    (k, d), s, b, sums = center.shape, work.layout, work.arrays, work.arrays.sums
    rounding = work.center[:k, :d] - center
    if work.form == "full":
        sums = sums.reshape(k, -1)
        linear = sums[:, b.linear_order]
        sum_dx = linear + weight[:, None] * rounding
        sum_dxx = np.take(sums, b.moment_order, axis=1)
        sum_dxx -= linear[:, :, None] * center[:, None, :]
        if rounding.any():
            sum_dxx += rounding[:, :, None] * sum_dx[:, None, :]
        np.copyto(sum_dxx, sum_dxx.transpose(0, 2, 1), where=work.is_below_diagonal)
    elif work.form == "diag":
        pairs = sums.reshape(-1, s.columns // STRIP, 2, STRIP).transpose(2, 0, 1, 3)
        linear, square = pairs.reshape(2, -1, s.columns)[:, :k, :d]
        sum_dx = linear + weight[:, None] * rounding
        sum_dxx = square + rounding * (linear + sum_dx)
    else:
        products = sums[: pad(k) * s.columns].reshape(-1, s.columns // PRODUCT_COLUMNS, STRIP, PRODUCT_COLUMNS)
        sum_dx = products.transpose(0, 2, 1, 3).reshape(-1, s.columns)[:k, :d] - weight[:, None] * center
        if work.form == "tied":
            cross = (sum_dx + 0.5 * weight[:, None] * center).T @ center
            sum_dxx = sums[-s.moments :][b.moment_order] - (cross + cross.T)
        else:
            sum_dxx = sums[-k:] + (rounding * (2.0 * sum_dx - weight[:, None] * rounding)).sum(axis=1)
    sum_dx *= unit
    sum_dxx *= unit**2
    return sum_dx, sum_dxx


def has_cancelled(work: Workspace, sum_dxx: np.ndarray, unit: float) -> bool:
    """Whether moments about the means lose too many digits, because those about the origin are in float32."""
    b = work.arrays
    if work.form != "tied" or b.buffer.dtype == np.float64:
        return False
    total = b.sums[-work.layout.moments :][np.diagonal(b.moment_order)] * unit**2
    return bool(np.any(total > MAX_CANCELLATION * np.diagonal(sum_dxx)))


def _packed(factor: np.ndarray, center: np.ndarray, unit: float) -> np.ndarray:
    """For each component -U'c, then U, then a zero: (k, d + d * d + 1)."""
    k, d = center.shape
    source = np.zeros((k, d + d * d + 1))
    np.multiply(factor.reshape(k, -1), unit, out=source[:, d:-1])
    source[:, :d] = -np.matmul(center[:, None, :], source[:, d:-1].reshape(k, d, d))[:, 0]
    return source


def _factor_order(d: int) -> np.ndarray:
    """Indices into a row of `_packed` in the order in which `soft_simd.triangle_squares` reads it."""
    order = [np.empty(0, np.intp)]
    for first in range(0, d, STRIP):
        t, i = np.arange(first + STRIP)[:, None], first + np.arange(STRIP)
        order += [np.where(i < d, i, -1), np.where((t <= i) & (i < d), d + t * d + i, -1).ravel()]
    return np.concatenate(order)


def _moment_order(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the sums of x (d,) and of xx' (d, d) in those of `gaussian.add_moments`."""
    columns, at = pad(d), 0
    linear, moment = np.empty(columns, np.intp), np.empty((columns, columns), np.intp)
    i, t = np.array(TRIANGLE).T
    for first in range(0, columns, STRIP):
        linear[first : first + STRIP] = at + np.arange(STRIP)
        at += STRIP
        moment[first + i, first + t] = moment[first + t, first + i] = at + np.arange(len(i))
        at += len(i)
        others = columns - first - STRIP
        tiles = np.arange(STRIP * others).reshape(-1, STRIP, PRODUCT_COLUMNS).transpose(1, 0, 2)
        tiles = at + tiles.reshape(STRIP, others)
        moment[first : first + STRIP, first + STRIP :] = tiles
        moment[first + STRIP :, first : first + STRIP] = tiles.T
        at += STRIP * others
    return linear[:d], moment[:d, :d].copy()


def _write_panels(values: np.ndarray, columns: int, out: np.ndarray) -> None:
    """Write values (k, d, m) in panels of STRIP components: (columns, m, STRIP)."""
    k, d, m = values.shape
    full = np.zeros((pad(k), columns, m))
    full[:k, :d] = values
    out.reshape(-1, columns, m, STRIP)[:] = full.reshape(-1, STRIP, columns, m).transpose(0, 2, 3, 1)


def _power_of_two(size: float) -> float:
    return 2.0 ** float(np.ceil(np.log2(size))) if 0.0 < size < np.inf else 1.0
