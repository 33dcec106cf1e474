"""Fuzzy assignment to centers, and the sums that move them; `plain.fuzzy` says what they are.

Rows go through in blocks, as in `gaussian`: squares, memberships, sums, so that no n x k array exists. Differences are
taken of rows and centers as they are: near ones then lose nothing to rounding, wherever the origin. A membership is
counted in units of 1 / k and taken from ratios to the row's least square, so that neither large nor small m lets it
overflow or vanish where it matters.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.simd import VECTORS, aligned, load_tile, padded, points
from coterie.kernels.cpu.soft import STRIP, _add_sums, _exp, _load_rows, _store_rows, _strip, center_squares
from coterie.kernels.cpu.vectors import Vectors, i64
from coterie.kernels.plain import MOST

BLOCK_BYTES = 1 << 18  # rows that go through together, with their memberships, stay in the second-level cache
PAIR = 2  # centers whose sums are taken together
# For other m the rounding of the data's type, times m or 1 / (m - 1), would show.
RANGE = {4: (1.0625, 16.0), 8: (1.0, 1e4)}
TINY = {4: 2.0**-90, 8: 2.0**-960}  # squares below have lost digits to underflow


class Layout(NamedTuple):
    """Sizes, and where in a `Room` things begin."""

    k: int
    columns: int  # d, padded
    rows: int  # of a tile
    stride: int  # from tile to tile
    block: int  # rows of all tiles
    tile: int  # (tiles, stride)
    w: int  # (block,) weights
    squares: int  # (k padded, block)
    shares: int  # (k padded, block) w (k u)^m
    least: int  # (block,) the least square of each row
    cost: int  # (block,)
    panels: int  # (k padded / STRIP, columns, STRIP) the centers as `center_squares` reads them
    center: int  # (k padded, columns)


class Room:
    """Room to work in, for one shape and one type."""

    def __init__(self, k: int, d: int, dtype: np.dtype):
        itemsize, like = dtype.itemsize, np.empty(0, dtype)
        columns, centers, rows = (-(-d // STRIP) * STRIP, -(-k // STRIP) * STRIP, points(itemsize))
        stride = columns * rows + padded(1, itemsize)  # tiles a power of two apart would share few lines of the cache
        tiles = max(2, min(16, BLOCK_BYTES // ((stride + 2 * centers * rows) * itemsize)))
        block = tiles * rows
        sizes = {
            "tile": tiles * stride,
            "w": block,
            "squares": centers * block,
            "shares": centers * block,
            "least": block,
            "cost": block,
            "panels": centers * columns,
            "center": centers * columns,
        }
        *starts, size = accumulate((padded(size, itemsize) for size in sizes.values()), initial=0)
        start = dict(zip(sizes, starts, strict=True))
        self.layout = Layout(k, columns, rows, stride, block, **start)
        self.numbers, self.sums = aligned(size, like), np.empty((centers, columns))
        self.rows, self.norm, self.origin = np.zeros(block, np.int64), aligned(rows, like), aligned(columns, like)
        panels, center = (self.numbers[start[name] :][: sizes[name]] for name in ("panels", "center"))
        self.panels, self.center = panels.reshape(-1, columns, STRIP), center.reshape(-1, columns)

    def put(self, centers: np.ndarray, inverse: float) -> None:
        """The centers, in units; by the same operations as the rows, so that a row on a center stays on it."""
        k, d = centers.shape
        with np.errstate(over="ignore"):  # what becomes infinite shows in the sums
            self.center[:k, :d] = centers * centers.dtype.type(inverse)
        self.panels[:] = self.center.reshape(-1, STRIP, self.center.shape[1]).transpose(0, 2, 1)


@jit
def fuzzy(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,) for one weight for all
    centers,  # in  (k, d)
    inverse,  # in  1 / unit
    m,  # in  above 1
    tiny,  # in  TINY of the type
    s,  # in  Layout
    room,  # i/o numbers of a Room
    rows,  # i/o (block,)
    norm,  # i/o (rows of a tile,)
    origin,  # in  (columns,) zeros
    weight,  # out (k,)
    sums,  # out (k padded, columns) of w (k u)^m (x - c), in units
):
    """The cost, in squared units; whether the data's type was enough."""
    n, d = X.shape
    weight[:] = 0.0
    sums[:] = 0.0
    flat = sums.reshape(sums.size)
    power, less = X.dtype.type(1.0 / (m - 1.0)), X.dtype.type(m - 1.0)
    cost = 0.0
    for i0 in range(0, n, s.block):
        count = min(s.block, n - i0)
        tiles = (count + s.rows - 1) // s.rows
        for p in range(tiles * s.rows):
            rows[p] = i0 + min(p, count - 1)
            room[s.w + p] = 0 if p >= count else w[0 if w.shape[0] == 1 else i0 + p]
        for t in range(tiles):
            tile = s.tile + t * s.stride
            load_tile(X, rows[t * s.rows :], origin, X.dtype.type(inverse), room[tile:], norm, 0, s.block, d)
            for j in range(0, s.k, STRIP):
                squares = s.squares + j * s.block + t * s.rows
                center_squares(room, tile, s.panels + j * s.columns, squares, s.block, s.columns)
            if m == 2.0:
                weigh_by_inverse(room, s, t * s.rows)
            else:
                weigh_by_power(room, s, t * s.rows, power, less)
        if not all_above(room[s.least : s.least + count], tiny):
            for p in range(count):
                if not room[s.least + p] >= tiny:
                    wi = w[0 if w.shape[0] == 1 else i0 + p]
                    if not alone(X, i0 + p, wi, centers, m, room, s, p, weight):
                        return 0.0, False
        cost += added(room[s.cost : s.cost + count])
        for j in range(s.k):
            weight[j] += added(room[s.shares + j * s.block : s.shares + j * s.block + count])
        for e in range(0, s.columns, STRIP):
            for j in range(0, s.k, PAIR):
                at, shares = j * s.columns + e, s.shares + j * s.block
                add_differences(
                    room, s.tile + e * s.rows, s.stride, shares, s.block, s.center + at, s.columns, flat, at, tiles
                )
    return cost, True


@jit
def alone(X, i, wi, centers, m, room, s, p, weight):
    """A row on centers belongs to them alone; False if it is only so near one that its squares vanish."""
    if room[s.least + p] != 0:
        return False
    shared = 0
    for j in range(s.k):
        shared += equal(X, i, centers, j, room[s.squares + j * s.block + p])
    if shared == 0:
        return False
    share = wi * min((s.k / shared) ** m, MOST)  # of differences and cost that are zero
    for j in range(s.k):
        if equal(X, i, centers, j, room[s.squares + j * s.block + p]):
            weight[j] += share
    return True


@jit
def equal(X, i, centers, j, square):
    same = square == 0
    for t in range(X.shape[1]):
        same &= X[i, t] == centers[j, t]
    return same


@jit_reassociating
def all_above(values, bound):
    below = 0
    for i in range(values.shape[0]):
        below += not values[i] >= bound
    return below == 0


@jit_reassociating
def added(values):
    total = 0.0
    for i in range(values.shape[0]):
        total += np.float64(values[i])
    return total


@intrinsic
def weigh_by_inverse(typingctx, room, layout, at):
    """`shares`, `least` and `cost` of a tile's rows, from `at` on, for m = 2."""
    sig = types.void(room, layout, at)

    def codegen(context, b, sig, args):
        v = Vectors("room layout at", context, b, sig, args)
        _weigh(v, share=lambda ratio: ratio, gain=lambda mean: b.fdiv(_constant(v, 1.0), mean))
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def weigh_by_power(typingctx, room, layout, at, power, less):
    """The same for any m; power: 1 / (m - 1), less: m - 1."""
    sig = types.void(room, layout, at, power, less)

    def codegen(context, b, sig, args):
        v = Vectors("room layout at power less", context, b, sig, args)
        power, less = v.spread(v["power"]), v.spread(v["less"])

        def share(ratio):
            return _exp(v, b.fmul(power, _log(v, ratio)))

        def gain(mean):
            return b.fdiv(_constant(v, 1.0), _exp(v, b.fmul(less, _log(v, mean))))

        _weigh(v, share, gain)
        return context.get_dummy_value()

    return sig, codegen


def _weigh(v, share, gain):
    """With q = least / square, r = share(q) and r' the mean of r over the centers: k u = r / r'.

    As (k u)^(m - 1) = q gain(r'), no other power is needed. The cost of a row is w least gain(r').
    """
    b = v.b
    fields = v.args["layout"][0].fields

    def of_layout(name):
        return b.extract_value(v["layout"], fields.index(name))

    def of_rows(name):
        return v.start("room", b.add(of_layout(name), v["at"]))

    k, block = of_layout("k"), of_layout("block")
    squares0, shares0 = of_rows("squares"), of_rows("shares")
    smallest = _constant(v, np.finfo(np.float32 if v.bits == 32 else np.float64).tiny)

    def squares(j):
        return _load_rows(v, v.at(squares0, b.mul(j, block)))

    with v.repeat(i64(0), k, 1, [_constant(v, np.inf)] * VECTORS) as first:
        first.new = [v.lower(x, low) for x, low in zip(squares(first.t), first.values, strict=True)]
    least = first.new
    with v.repeat(i64(0), k, 1, [v.zero] * VECTORS) as second:
        above = [b.select(b.fcmp_ordered("<", x, smallest), smallest, x) for x in squares(second.t)]
        ratios = [b.fdiv(low, x) for low, x in zip(least, above, strict=True)]
        r = [share(q) for q in ratios]
        products = [b.fmul(x, q) for x, q in zip(r, ratios, strict=True)]
        _store_rows(v, products, v.at(shares0, b.mul(second.t, block)))
        second.new = [b.fadd(x, total) for x, total in zip(r, second.values, strict=True)]
    count = v.spread(b.sitofp(k, v.element))
    # A row on a center: all products are zero, and any mean will do.
    off = [b.fcmp_ordered(">", low, v.zero) for low in least]
    means = [
        b.select(away, b.fdiv(total, count), _constant(v, 1.0)) for away, total in zip(off, second.new, strict=True)
    ]
    gains = [b.fmul(w, gain(mean)) for w, mean in zip(_load_rows(v, of_rows("w")), means, strict=True)]
    factors = [b.fdiv(x, mean) for x, mean in zip(gains, means, strict=True)]
    with v.repeat(i64(0), k, 1, []) as third:
        row = v.at(shares0, b.mul(third.t, block))
        _store_rows(v, [b.fmul(x, y) for x, y in zip(_load_rows(v, row), factors, strict=True)], row)
    _store_rows(v, least, of_rows("least"))
    _store_rows(v, [b.fmul(x, low) for x, low in zip(gains, least, strict=True)], of_rows("cost"))


def _log(v, x):
    """log(x) of positive, normal x: the exponent, and twice the inverse hyperbolic tangent of (y - 1) / (y + 1)."""
    b = v.b
    mantissa, bias, degree = (52, 1023, 8) if v.bits == 64 else (23, 127, 3)
    kind = ir.IntType(v.bits)
    whole = ir.VectorType(kind, v.lanes)

    def integer(value):
        return ir.Constant(whole, [value] * v.lanes)

    # Counting from sqrt(1/2) puts y between that and sqrt(2).
    root = int(np.array(np.sqrt(0.5), np.float64 if v.bits == 64 else np.float32).view(f"i{v.bits // 8}"))
    one = bias << mantissa
    bits = b.add(b.bitcast(x, whole), integer(one - root))
    exponent = b.sub(b.ashr(bits, integer(mantissa)), integer(bias))
    y = b.bitcast(b.add(b.and_(bits, integer((1 << mantissa) - 1)), integer(root)), v.type)
    s = b.fdiv(b.fsub(y, _constant(v, 1.0)), b.fadd(y, _constant(v, 1.0)))
    ss = b.fmul(s, s)
    value = _constant(v, _ATANH[degree][-1])
    for c in _ATANH[degree][-2::-1]:
        value = v.fma(value, ss, _constant(v, c))
    tail = b.fmul(b.fmul(s, ss), value)  # of 2 atanh(s) = 2 s + s^3 (2/3 + ...)
    log2 = _constant(v, np.log(2.0))
    return v.fma(b.sitofp(exponent, v.type), log2, v.fma(s, _constant(v, 2.0), tail))


def _atanh_series(degree):
    """Coefficients in s^2 of (2 atanh(s) - 2 s) / s^3 for |s| up to (sqrt(2) - 1) / (sqrt(2) + 1)."""

    def rest(square):
        terms = np.arange(1, 30)
        return (2.0 / (2 * terms + 1) * np.asarray(square)[..., None] ** (terms - 1)).sum(axis=-1)

    largest = ((np.sqrt(2.0) - 1) / (np.sqrt(2.0) + 1)) ** 2
    fit = np.polynomial.Chebyshev.interpolate(rest, degree, [0.0, 1.01 * largest])
    return fit.convert(kind=np.polynomial.Polynomial).coef


_ATANH = {degree: _atanh_series(degree) for degree in (3, 8)}


def _constant(v, value):
    return ir.Constant(v.type, [float(value)] * v.lanes)


@intrinsic
def add_differences(typingctx, room, column, stride, shares, block, center, columns, sums, at, tiles):
    """Adds z (x - c) for PAIR centers and a strip of columns, (PAIR, STRIP) `columns` apart.

    column: the strip's first, of the first tile; shares (PAIR, block); center, and sums from `at` on, likewise.
    """
    sig = types.void(room, column, stride, shares, block, center, columns, sums, at, tiles)

    def codegen(context, b, sig, args):
        v = Vectors("room column stride shares block center columns sums at tiles", context, b, sig, args)
        x0, z0, c0 = (v.start("room", v[name]) for name in ("column", "shares", "center"))
        places = [(j, i) for j in range(PAIR) for i in range(STRIP)]
        c = [v.spread(b.load(v.at(v.at(c0, b.mul(v["columns"], i64(j))), i))) for j, i in places]
        with v.repeat(i64(0), v["tiles"], 1, [v.zero] * len(places)) as part:
            totals = part.values
            for r in range(VECTORS):
                row = b.add(b.mul(part.t, i64(VECTORS * v.lanes)), i64(r * v.lanes))
                x = _strip(v, v.at(x0, b.mul(part.t, v["stride"])), r, STRIP)
                z = [v.load(v.at(z0, b.add(b.mul(v["block"], i64(j)), row))) for j in range(PAIR)]
                totals = [
                    v.fma(z[j], b.fsub(x[i], mean), total)
                    for (j, i), mean, total in zip(places, c, totals, strict=True)
                ]
            part.new = totals
        for j in range(PAIR):
            pointer = v.at(v.start("sums", v["at"]), b.mul(v["columns"], i64(j)))
            _add_sums(v, part.new[j * STRIP : (j + 1) * STRIP], pointer)
        return context.get_dummy_value()

    return sig, codegen
