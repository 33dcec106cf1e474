"""Nearest neighbours by brute force, as vector code: points are in the lanes, in tiles (d, tile_width).

A tile is a few registers of points. The first coordinate of an empty slot is infinite, so that it is never nearest. So
is that of the point whose neighbour is searched, during the search.
"""

import numpy as np
from llvmlite import ir
from numba.extending import register_jitable

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.simd import aligned
from coterie.kernels.cpu.vectors import REGISTER, i32, i64, vector_code

RUN = 4  # registers of points of a tile


@register_jitable
def tile_width(itemsize):
    """Number of points of a tile."""
    return RUN * REGISTER // itemsize


@register_jitable
def lanes(itemsize):
    """Number of points of a register."""
    return REGISTER // itemsize


@jit
def pack(X):
    """Rows of X (n, d) as tiles; the last one is padded with empty slots."""
    n, d = X.shape
    width = tile_width(X.itemsize)
    tiles = aligned((n + width - 1) // width * width * d, X)
    for i in range(len(tiles)):
        tiles[i] = np.inf
    for i in range(n):
        put(tiles, i, X[i])
    return tiles


@register_jitable
def offset(slot, d, width):
    """Index of the first coordinate of the point at `slot`."""
    return slot // width * width * d + slot % width


@jit
def put(tiles, slot, point):
    """Write a point to a slot."""
    d, width = len(point), tile_width(tiles.itemsize)
    first = offset(slot, d, width)
    for t in range(d):
        tiles[first + t * width] = point[t]


@jit
def move_last(tiles, slot, last, d):
    """Move the point at slot `last` to `slot`, and make `last` empty."""
    width = tile_width(tiles.itemsize)
    to, source = offset(slot, d, width), offset(last, d, width)
    for t in range(d):
        tiles[to + t * width] = tiles[source + t * width]
    tiles[source] = np.inf


@jit
def first_minimum(best, index):
    """Minimum over the lanes, and its first index."""
    lane = 0
    for i in range(1, len(best)):
        if best[i] < best[lane] or (best[i] == best[lane] and index[i] + i < index[lane] + lane):
            lane = i
    return best[lane], np.int64(index[lane]) + lane


@vector_code
def lane_minima(v, numbers, start, count, best, index):
    """Minimum of each lane of ``numbers[start:start + count]``, and its index minus the lane; count in whole tiles."""
    b = v.b
    numbers0 = v.start(numbers, start)
    state = _Minimum(v)
    with v.repeat(i64(0), count, RUN * v.lanes, state.initial()) as tile:
        values = [v.load(v.at(numbers0, b.add(tile.t, i64(r * v.lanes)))) for r in range(RUN)]
        tile.new = state.updated(values, tile)
    state.store(tile.new)


@vector_code
def distances_to_point(v, tiles, first, out, count, d):
    """Euclidean distances of the points of all tiles to the one whose coordinates begin at `first`.

    `count` is whole tiles. These are the bits of `pairwise.differences`.
    """
    b = v.b
    tiles0, point0, out0 = v.start(tiles), v.start(tiles, first), v.start(out)
    with v.repeat(i64(0), count, RUN * v.lanes, []) as tile:
        squares = _squares(v, v.at(tiles0, b.mul(tile.t, d)), point0, RUN * v.lanes)
        for r in range(RUN):
            v.store(v.call("sqrt", squares[r]), v.at(out0, b.add(tile.t, i64(r * v.lanes))))


def _update_and_minimize(of_all):
    """An intrinsic that updates `near`, squared distances to a growing set, with `point`; then finds a minimum by lane.

    If the point is nearer than all before, link (i32) is set to `number`. `count` is whole tiles. The minimum is that
    of `near` if `of_all`, otherwise that of the distances to `point` only.
    """

    @vector_code
    def update(v, tiles, point, near, link, number, count, best, index, d):
        b = v.b
        tiles0, point0, near0, link0 = v.start(tiles), v.start(point), v.start(near), v.start(link)
        new_link, index_type = v.spread(b.trunc(number, i32)), ir.VectorType(i32, v.lanes)
        state = _Minimum(v)
        with v.repeat(i64(0), count, RUN * v.lanes, state.initial()) as tile:
            squares, values = _squares(v, v.at(tiles0, b.mul(tile.t, d)), point0), []
            for r in range(RUN):
                slot = b.add(tile.t, i64(r * v.lanes))
                at_near, at_link = v.at(near0, slot), v.at(link0, slot)
                previous = v.load(at_near)
                is_nearer = b.fcmp_ordered("<", squares[r], previous)
                nearest = b.select(is_nearer, squares[r], previous)
                v.store(nearest, at_near)
                v.store(b.select(is_nearer, new_link, v.load(at_link, index_type)), at_link)
                values.append(nearest if of_all else squares[r])
            tile.new = state.updated(values, tile)
        state.store(tile.new)

    return update


update_nearest, nearest_to_point = _update_and_minimize(of_all=True), _update_and_minimize(of_all=False)


@vector_code
def ward_minima(v, tiles, point, weight, w_point, count, best, index, d):
    """Minimum of ``w |x - point|^2 / (w + w_point)`` by lane: Ward's distance without the factor `w_point`.

    Fractions are compared by products, and divided only at the end.
    """
    b = v.b
    tiles0, point0, weight0 = v.start(tiles), v.start(point), v.start(weight)
    w_point, index_type = v.spread(w_point), ir.VectorType(i32, v.lanes)
    initial = [v.constant(np.inf)] * RUN + [v.constant(1.0)] * RUN + [v.constant(0, index_type)] * RUN
    with v.repeat(i64(0), count, RUN * v.lanes, initial) as tile:
        squares = _squares(v, v.at(tiles0, b.mul(tile.t, d)), point0)
        above, below, at = (tile.values[i * RUN : (i + 1) * RUN] for i in range(3))
        for r in range(RUN):
            slot = b.add(tile.t, i64(r * v.lanes))
            w = v.load(v.at(weight0, slot))
            numerator, denominator = b.fmul(squares[r], w), b.fadd(w, w_point)
            is_less = b.fcmp_ordered("<", b.fmul(numerator, below[r]), b.fmul(above[r], denominator))
            above[r], below[r] = b.select(is_less, numerator, above[r]), b.select(is_less, denominator, below[r])
            at[r] = b.select(is_less, v.spread(b.trunc(slot, i32)), at[r])
        tile.new = above + below + at
    above, below, at = (tile.new[i * RUN : (i + 1) * RUN] for i in range(3))
    _Minimum(v).store([b.fdiv(x, y) for x, y in zip(above, below, strict=True)] + at)


def _squares(v, tile, point, stride=1):
    """Squared distances of the points of a tile to `point`, whose coordinates are `stride` numbers apart."""
    b = v.b
    with v.repeat(i64(0), v["d"], 1, [v.zero] * RUN) as column:
        c = v.spread(b.load(v.at(point, b.mul(column.t, i64(stride)))))
        numbers = v.at(tile, b.mul(column.t, i64(RUN * v.lanes)))
        for r in range(RUN):
            column.new.append(v.add_square(b.fsub(v.load(v.at(numbers, r * v.lanes)), c), column.values[r]))
    return column.new


class _Minimum:
    """Running minimum of each lane of a tile, and the index of its vector."""

    def __init__(self, v):
        self.v, self.index_type = v, ir.VectorType(i32, v.lanes)

    def initial(self):
        """Infinity, at index 0."""
        v = self.v
        return [v.constant(np.inf)] * RUN + [v.constant(0, self.index_type)] * RUN

    def updated(self, values, tile):
        """Minimum of the state of the loop and `values`."""
        v, b = self.v, self.v.b
        low, at = tile.values[:RUN], tile.values[RUN:]
        for r in range(RUN):
            is_less = b.fcmp_ordered("<", values[r], low[r])
            low[r] = b.select(is_less, values[r], low[r])
            at[r] = b.select(is_less, v.spread(b.trunc(b.add(tile.t, i64(r * v.lanes)), i32)), at[r])
        return low + at

    def store(self, state):
        """Reduce to one vector, and write it to `best` and `index`."""
        v, b = self.v, self.v.b
        low, at = state[0], state[RUN]
        for other, place in zip(state[1:RUN], state[RUN + 1 :], strict=True):
            is_first = b.and_(b.fcmp_ordered("==", other, low), b.icmp_signed("<", place, at))
            is_less = b.or_(b.fcmp_ordered("<", other, low), is_first)
            low, at = b.select(is_less, other, low), b.select(is_less, place, at)
        v.store(low, v.start(v["best"]))
        v.store(at, v.start(v["index"]))
