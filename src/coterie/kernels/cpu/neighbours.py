"""Which of many points is nearest, as vector code: points sit in the lanes, in tiles of (d, wide) numbers.

A tile has `wide` points, a few registers of them. Points that are not there are infinitely far: the first number of an
empty place is infinite, and so is that of the point that looks for its neighbour, for as long as it looks.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

from coterie.kernels.cpu.jit import jit, jit_inner
from coterie.kernels.cpu.simd import aligned
from coterie.kernels.cpu.vectors import REGISTER, Vectors, i32, i64

RUN = 4  # registers of points that a column is subtracted from at a time


@register_jitable
def wide(itemsize):
    """Points in a tile."""
    return RUN * REGISTER // itemsize


@register_jitable
def lanes(itemsize):
    return REGISTER // itemsize


@jit
def packed(X):
    """The rows of X (n, d) as tiles, the last one filled up with empty places."""
    n, d = X.shape
    width = wide(X.itemsize)
    tiles = aligned((n + width - 1) // width * width * d, X)
    for i in range(len(tiles)):
        tiles[i] = np.inf
    for i in range(n):
        put(tiles, i, X[i])
    return tiles


@register_jitable
def place_of(slot, d, width):
    """Where the first number of a point is."""
    return slot // width * width * d + slot % width


@jit_inner
def put(tiles, slot, point):
    d, width = len(point), wide(tiles.itemsize)
    first = place_of(slot, d, width)
    for t in range(d):
        tiles[first + t * width] = point[t]


@jit_inner
def take_out(tiles, slot, last, d):
    """Moves the point at `last` to `slot`, and leaves its place empty."""
    width = wide(tiles.itemsize)
    to, source = place_of(slot, d, width), place_of(last, d, width)
    for t in range(d):
        tiles[to + t * width] = tiles[source + t * width]
    tiles[source] = np.inf


@jit_inner
def first_least(best, index):
    """The least of the lanes and its place, the first if there are several."""
    lane = 0
    for i in range(1, len(best)):
        if best[i] < best[lane] or (best[i] == best[lane] and index[i] + i < index[lane] + lane):
            lane = i
    return best[lane], np.int64(index[lane]) + lane


@intrinsic
def least(typingctx, numbers, start, count, best, index):
    """The least of every lane of ``numbers[start:start + count]`` and where it is, less the lane; `count` in tiles."""
    sig = types.void(numbers, start, count, best, index)

    def codegen(context, b, sig, args):
        v = Vectors("numbers start count best index", context, b, sig, args)
        numbers0 = v.start("numbers", v["start"])
        state = _Least(v)
        with v.repeat(i64(0), v["count"], RUN * v.lanes, state.nothing()) as tile:
            found = [v.load(v.at(numbers0, b.add(tile.t, i64(r * v.lanes)))) for r in range(RUN)]
            tile.new = state.with_(found, tile)
        state.store(tile.new)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def reach(typingctx, tiles, point, near, link, number, count, best, index, d):
    """Brings `near`, squared distances to a growing set, up to date with `point`; then the least of `near`.

    Where the point is nearer than all before, link (i32) = number. count in whole tiles.
    """
    return types.void(tiles, point, near, link, number, count, best, index, d), _join(least_of_all=True)


@intrinsic
def meet(typingctx, tiles, point, near, link, number, count, best, index, d):
    """The same, but with the least of the distances to `point` alone."""
    return types.void(tiles, point, near, link, number, count, best, index, d), _join(least_of_all=False)


@intrinsic
def cheapest(typingctx, tiles, point, weight, own, count, best, index, d):
    """The least of ``w |x - point|^2 / (w + own)``: Ward's cost of joining, less the factor `own`.

    Fractions are compared by products, and divided once at the end.
    """
    sig = types.void(tiles, point, weight, own, count, best, index, d)

    def codegen(context, b, sig, args):
        v = Vectors("tiles point weight own count best index d", context, b, sig, args)
        tiles0, point0, weight0 = v.start("tiles"), v.start("point"), v.start("weight")
        own, where = v.spread(v["own"]), ir.VectorType(i32, v.lanes)
        infinite, one = (ir.Constant(v.type, [value] * v.lanes) for value in (float("inf"), 1.0))
        nothing = [infinite] * RUN + [one] * RUN + [ir.Constant(where, [0] * v.lanes)] * RUN
        with v.repeat(i64(0), v["count"], RUN * v.lanes, nothing) as tile:
            squares = _squares(v, v.at(tiles0, b.mul(tile.t, v["d"])), point0)
            above, below, at = (tile.values[i * RUN : (i + 1) * RUN] for i in range(3))
            for r in range(RUN):
                here = b.add(tile.t, i64(r * v.lanes))
                w = v.load(v.at(weight0, here))
                numerator, denominator = b.fmul(squares[r], w), b.fadd(w, own)
                less = b.fcmp_ordered("<", b.fmul(numerator, below[r]), b.fmul(above[r], denominator))
                above[r], below[r] = b.select(less, numerator, above[r]), b.select(less, denominator, below[r])
                at[r] = b.select(less, v.spread(b.trunc(here, i32)), at[r])
            tile.new = above + below + at
        above, below, at = (tile.new[i * RUN : (i + 1) * RUN] for i in range(3))
        _Least(v).store([b.fdiv(x, y) for x, y in zip(above, below, strict=True)] + at)
        return context.get_dummy_value()

    return sig, codegen


def _join(least_of_all):
    def codegen(context, b, sig, args):
        v = Vectors("tiles point near link number count best index d", context, b, sig, args)
        tiles0, point0, near0, link0 = v.start("tiles"), v.start("point"), v.start("near"), v.start("link")
        number, where = v.spread(b.trunc(v["number"], i32)), ir.VectorType(i32, v.lanes)
        state = _Least(v)
        with v.repeat(i64(0), v["count"], RUN * v.lanes, state.nothing()) as tile:
            squares, found = _squares(v, v.at(tiles0, b.mul(tile.t, v["d"])), point0), []
            for r in range(RUN):
                here = b.add(tile.t, i64(r * v.lanes))
                at_near, at_link = v.at(near0, here), v.at(link0, here)
                before = v.load(at_near)
                nearer = b.fcmp_ordered("<", squares[r], before)
                near = b.select(nearer, squares[r], before)
                v.store(near, at_near)
                v.store(b.select(nearer, number, v.load(at_link, where)), at_link)
                found.append(near if least_of_all else squares[r])
            tile.new = state.with_(found, tile)
        state.store(tile.new)
        return context.get_dummy_value()

    return codegen


def _squares(v, tile, point):
    """Squared distances of a tile's points to `point`."""
    b = v.b
    with v.repeat(i64(0), v["d"], 1, [v.zero] * RUN) as column:
        c = v.spread(b.load(v.at(point, column.t)))
        numbers = v.at(tile, b.mul(column.t, i64(RUN * v.lanes)))
        for r in range(RUN):
            difference = b.fsub(v.load(v.at(numbers, r * v.lanes)), c)
            column.new.append(v.fma(difference, difference, column.values[r]))
    return column.new


class _Least:
    """The least number so far of every lane of a tile, and the place of its vector."""

    def __init__(self, v):
        self.v, self.where = v, ir.VectorType(i32, v.lanes)

    def nothing(self):
        v = self.v
        infinite = ir.Constant(v.type, [float("inf")] * v.lanes)
        return [infinite] * RUN + [ir.Constant(self.where, [0] * v.lanes)] * RUN

    def with_(self, found, tile):
        v, b = self.v, self.v.b
        low, at = tile.values[:RUN], tile.values[RUN:]
        for r in range(RUN):
            less = b.fcmp_ordered("<", found[r], low[r])
            low[r] = b.select(less, found[r], low[r])
            at[r] = b.select(less, v.spread(b.trunc(b.add(tile.t, i64(r * v.lanes)), i32)), at[r])
        return low + at

    def store(self, state):
        v, b = self.v, self.v.b
        low, at = state[0], state[RUN]
        for other, place in zip(state[1:RUN], state[RUN + 1 :], strict=True):
            earlier = b.and_(b.fcmp_ordered("==", other, low), b.icmp_signed("<", place, at))
            less = b.or_(b.fcmp_ordered("<", other, low), earlier)
            low, at = b.select(less, other, low), b.select(less, place, at)
        v.store(low, v.start("best"))
        v.store(at, v.start("index"))
