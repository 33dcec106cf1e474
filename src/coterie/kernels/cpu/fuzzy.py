"""One pass of fuzzy c-means, compiled; for the definition see `plain.fuzzy`.

Rows are processed in blocks, as in `gaussian`: squares, memberships, sums. So no n x k array exists. Differences of
rows and centers are computed directly, which loses no digits wherever the origin is. Memberships are multiplied by k,
and computed from ratios to the minimum square of the row, so that they neither overflow nor underflow for any m.
"""

from typing import NamedTuple

import numpy as np
from llvmlite import ir

from coterie.kernels.cpu.hard_assignment import is_center
from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.simd import VECTORS, aligned, arena, load_tile, padded, points
from coterie.kernels.cpu.soft_simd import (
    STRIP,
    _add_sums,
    _exp,
    _load_rows,
    _store_rows,
    center_squares,
    layout_access,
    sum_over_tiles,
)
from coterie.kernels.cpu.sums import sum_of
from coterie.kernels.cpu.vectors import i64, vector_code
from coterie.kernels.plain import MAX_POWER

BLOCK_BYTES = 1 << 18  # size of a block of rows with their memberships, which stays in the second-level cache
PAIR = 2  # centers whose sums are computed together
# Range of m, by itemsize: otherwise rounding, multiplied by m or 1 / (m - 1), would be too large.
RANGE = {4: (1.0625, 16.0), 8: (1.0, 1e4)}
TINY = {4: 2.0**-90, 8: 2.0**-960}  # squares below this have lost digits to underflow, by itemsize


class Layout(NamedTuple):
    """Sizes, and the start of each array in the buffer of a `Workspace`."""

    k: int
    columns: int  # d, padded
    rows: int  # of a tile
    stride: int  # from one tile to the next
    block: int  # rows of all tiles
    tile: int  # (tiles, stride)
    w: int  # (block,) weights
    squares: int  # (k padded, block)
    shares: int  # (k padded, block) w (k u)^m
    minimum: int  # (block,) minimum square of each row
    cost: int  # (block,)
    panels: int  # (k padded / STRIP, columns, STRIP) centers in the layout of `center_squares`
    center: int  # (k padded, columns)


class Workspace:
    """Arrays of a pass, for one shape and one dtype."""

    def __init__(self, k: int, d: int, dtype: np.dtype):
        itemsize, like = dtype.itemsize, np.empty(0, dtype)
        columns, centers, rows = (-(-d // STRIP) * STRIP, -(-k // STRIP) * STRIP, points(itemsize))
        stride = columns * rows + padded(1, itemsize)  # not a power of two: tiles would compete for cache lines
        tiles = max(2, min(16, BLOCK_BYTES // ((stride + 2 * centers * rows) * itemsize)))
        block = tiles * rows
        sizes = {
            "tile": tiles * stride,
            "w": block,
            "squares": centers * block,
            "shares": centers * block,
            "minimum": block,
            "cost": block,
            "panels": centers * columns,
            "center": centers * columns,
        }
        self.buffer, start, arrays = arena(sizes, like)
        self.layout, self.sums = Layout(k, columns, rows, stride, block, **start), np.empty((centers, columns))
        self.rows, self.norm, self.origin = np.zeros(block, np.int64), aligned(rows, like), aligned(columns, like)
        self.panels = arrays["panels"].reshape(-1, columns, STRIP)
        self.center = arrays["center"].reshape(-1, columns)

    def store_centers(self, centers: np.ndarray, inverse: float) -> None:
        """Store the centers in units, by the same operations as the rows: a row equal to a center stays equal."""
        k, d = centers.shape
        with np.errstate(over="ignore"):  # infinite values are detected in the sums
            self.center[:k, :d] = centers * centers.dtype.type(inverse)
        self.panels[:] = self.center.reshape(-1, STRIP, self.center.shape[1]).transpose(0, 2, 1)


@jit
def fuzzy(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,) if all weights are equal
    centers,  # in  (k, d)
    inverse,  # in  1 / unit
    m,  # in  above 1
    tiny,  # in  TINY of the dtype
    s,  # in  Layout
    buffer,  # i/o buffer of a Workspace
    rows,  # i/o (block,)
    norm,  # i/o (rows of a tile,)
    origin,  # in  (columns,) zeros
    weight,  # out (k,)
    sums,  # out (k padded, columns) of w (k u)^m (x - c), in units
):
    """The cost, in squared units; and whether the precision of the data was sufficient."""
    n, d = X.shape
    weight[:] = 0.0
    sums[:] = 0.0
    flat = sums.reshape(sums.size)
    power, exponent = X.dtype.type(1.0 / (m - 1.0)), X.dtype.type(m - 1.0)
    cost = 0.0
    for i0 in range(0, n, s.block):
        count = min(s.block, n - i0)
        tiles = (count + s.rows - 1) // s.rows
        for p in range(tiles * s.rows):
            rows[p] = i0 + min(p, count - 1)
            buffer[s.w + p] = 0 if p >= count else w[0 if w.shape[0] == 1 else i0 + p]
        for t in range(tiles):
            tile = s.tile + t * s.stride
            load_tile(X, rows[t * s.rows :], origin, X.dtype.type(inverse), buffer[tile:], norm, 0, s.block, d)
            for j in range(0, s.k, STRIP):
                squares = s.squares + j * s.block + t * s.rows
                center_squares(buffer, tile, s.panels + j * s.columns, squares, s.block, s.columns)
            if m == 2.0:
                memberships_m2(buffer, s, t * s.rows)
            else:
                memberships_any_m(buffer, s, t * s.rows, power, exponent)
        if not all_above(buffer[s.minimum : s.minimum + count], tiny):
            for p in range(count):
                if not buffer[s.minimum + p] >= tiny:
                    wi = w[0 if w.shape[0] == 1 else i0 + p]
                    if not assign_to_equal_centers(X, i0 + p, wi, centers, m, buffer, s, p, weight):
                        return 0.0, False
        cost += sum_of(buffer[s.cost : s.cost + count])
        for j in range(s.k):
            weight[j] += sum_of(buffer[s.shares + j * s.block : s.shares + j * s.block + count])
        for e in range(0, s.columns, STRIP):
            for j in range(0, s.k, PAIR):
                at, shares = j * s.columns + e, s.shares + j * s.block
                add_differences(
                    buffer, s.tile + e * s.rows, s.stride, shares, s.block, s.center + at, s.columns, flat, at, tiles
                )
    return cost, True


@jit
def assign_to_equal_centers(X, i, wi, centers, m, buffer, s, p, weight):
    """Assign a row that equals some centers to these only; return False if its squares are 0 by underflow."""
    if buffer[s.minimum + p] != 0:
        return False
    n_equal = 0
    for j in range(s.k):
        n_equal += buffer[s.squares + j * s.block + p] == 0 and is_center(X, i, centers, j)
    if n_equal == 0:
        return False
    share = wi * min((s.k / n_equal) ** m, MAX_POWER)  # differences and cost are zero
    for j in range(s.k):
        if buffer[s.squares + j * s.block + p] == 0 and is_center(X, i, centers, j):
            weight[j] += share
    return True


@jit_reassociating
def all_above(values, bound):
    """Whether no value is below `bound` or NaN."""
    n_below = 0
    for i in range(values.shape[0]):
        n_below += not values[i] >= bound
    return n_below == 0


@vector_code
def memberships_m2(v, buffer, layout, at):
    """`shares`, `minimum` and `cost` of the rows of a tile, from `at` on, for m = 2."""
    b = v.b
    _memberships(v, share=lambda ratio: ratio, gain=lambda mean: b.fdiv(v.constant(1.0), mean))


@vector_code
def memberships_any_m(v, buffer, layout, at, power, exponent):
    """The same for any m; `power` is 1 / (m - 1), `exponent` is m - 1."""
    b = v.b
    power, exponent = v.spread(power), v.spread(exponent)

    def share(ratio):
        return _exp(v, b.fmul(power, _log(v, ratio)))

    def gain(mean):
        return b.fdiv(v.constant(1.0), _exp(v, b.fmul(exponent, _log(v, mean))))

    _memberships(v, share, gain)


def _memberships(v, share, gain):
    """Memberships u of a tile: k u = r / r', with q = minimum / square, r = share(q), and r' the mean over the centers.

    Since (k u)^(m - 1) = q gain(r'), no other power is needed. The cost of a row is w minimum gain(r').
    """
    b = v.b
    field, rows_of = layout_access(v)
    k, block = field("k"), field("block")
    squares0, shares0 = rows_of("squares"), rows_of("shares")
    smallest = v.constant(np.finfo(np.float32 if v.bits == 32 else np.float64).tiny)

    def squares(j):
        return _load_rows(v, v.at(squares0, b.mul(j, block)))

    with v.repeat(i64(0), k, 1, [v.constant(np.inf)] * VECTORS) as first:
        first.new = [v.lower(x, low) for x, low in zip(squares(first.t), first.values, strict=True)]
    minimum = first.new
    with v.repeat(i64(0), k, 1, [v.zero] * VECTORS) as second:
        above = [b.select(b.fcmp_ordered("<", x, smallest), smallest, x) for x in squares(second.t)]
        ratios = [b.fdiv(low, x) for low, x in zip(minimum, above, strict=True)]
        r = [share(q) for q in ratios]
        products = [b.fmul(x, q) for x, q in zip(r, ratios, strict=True)]
        _store_rows(v, products, v.at(shares0, b.mul(second.t, block)))
        second.new = [b.fadd(x, total) for x, total in zip(r, second.values, strict=True)]
    count = v.spread(b.sitofp(k, v.element))
    # If a row equals a center, all products are zero, and the mean is not used.
    is_off_center = [b.fcmp_ordered(">", low, v.zero) for low in minimum]
    means = [
        b.select(is_off, b.fdiv(total, count), v.constant(1.0))
        for is_off, total in zip(is_off_center, second.new, strict=True)
    ]
    gains = [b.fmul(w, gain(mean)) for w, mean in zip(_load_rows(v, rows_of("w")), means, strict=True)]
    factors = [b.fdiv(x, mean) for x, mean in zip(gains, means, strict=True)]
    with v.repeat(i64(0), k, 1, []) as third:
        row = v.at(shares0, b.mul(third.t, block))
        _store_rows(v, [b.fmul(x, y) for x, y in zip(_load_rows(v, row), factors, strict=True)], row)
    _store_rows(v, minimum, rows_of("minimum"))
    _store_rows(v, [b.fmul(x, low) for x, low in zip(gains, minimum, strict=True)], rows_of("cost"))


def _log(v, x):
    """log(x) of positive, normal x: from the exponent, and 2 artanh((y - 1) / (y + 1)) of the mantissa y."""
    b = v.b
    mantissa, bias, degree = (52, 1023, 8) if v.bits == 64 else (23, 127, 3)
    kind = ir.IntType(v.bits)
    whole = ir.VectorType(kind, v.lanes)

    # Subtracting sqrt(1/2) puts y between that and sqrt(2).
    root = int(np.array(np.sqrt(0.5), np.float64 if v.bits == 64 else np.float32).view(f"i{v.bits // 8}"))
    one = bias << mantissa
    bits = b.add(b.bitcast(x, whole), v.constant(one - root, whole))
    exponent = b.sub(b.ashr(bits, v.constant(mantissa, whole)), v.constant(bias, whole))
    y = b.bitcast(b.add(b.and_(bits, v.constant((1 << mantissa) - 1, whole)), v.constant(root, whole)), v.type)
    s = b.fdiv(b.fsub(y, v.constant(1.0)), b.fadd(y, v.constant(1.0)))
    ss = b.fmul(s, s)
    value = v.constant(_ATANH[degree][-1])
    for c in _ATANH[degree][-2::-1]:
        value = v.fma(value, ss, v.constant(c))
    tail = b.fmul(b.fmul(s, ss), value)  # of 2 atanh(s) = 2 s + s^3 (2/3 + ...)
    log2 = v.constant(np.log(2.0))
    return v.fma(b.sitofp(exponent, v.type), log2, v.fma(s, v.constant(2.0), tail))


def _atanh_series(degree):
    """Coefficients in s^2 of (2 atanh(s) - 2 s) / s^3 for |s| up to (sqrt(2) - 1) / (sqrt(2) + 1)."""

    def remainder(square):
        terms = np.arange(1, 30)
        return (2.0 / (2 * terms + 1) * np.asarray(square)[..., None] ** (terms - 1)).sum(axis=-1)

    largest = ((np.sqrt(2.0) - 1) / (np.sqrt(2.0) + 1)) ** 2
    fit = np.polynomial.Chebyshev.interpolate(remainder, degree, [0.0, 1.01 * largest])
    return fit.convert(kind=np.polynomial.Polynomial).coef


_ATANH = {degree: _atanh_series(degree) for degree in (3, 8)}


@vector_code
def add_differences(v, buffer, column, stride, shares, block, center, columns, sums, at, tiles):
    """Add z (x - c) for PAIR centers and a strip of columns; sums (PAIR, STRIP) have the stride `columns`.

    column: start of the strip in the first tile; shares (PAIR, block); center and sums begin at `center` and `at`.
    """
    b = v.b
    z0, c0 = v.start(buffer, shares), v.start(buffer, center)
    pairs = [(j, i) for j in range(PAIR) for i in range(STRIP)]
    c = [v.spread(b.load(v.at(v.at(c0, b.mul(columns, i64(j))), i))) for j, i in pairs]

    def step(row, x, totals):
        z = [v.load(v.at(z0, b.add(b.mul(block, i64(j)), row))) for j in range(PAIR)]
        return [v.fma(z[j], b.fsub(x[i], mean), total) for (j, i), mean, total in zip(pairs, c, totals, strict=True)]

    totals = sum_over_tiles(v, STRIP, len(pairs), step)
    for j in range(PAIR):
        pointer = v.at(v.start(sums, at), b.mul(columns, i64(j)))
        _add_sums(v, totals[j * STRIP : (j + 1) * STRIP], pointer)
