"""Dynamic time warping, compiled; `kernels/plain/dtw.py` says what each kernel means.

One series sits in each lane: a *tile* is `WIDE` series of B, transposed to (moments, channels, WIDE), and a row of the
table of least costs is kept for all of them at once. A series of A goes through the tile moment by moment.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from coterie.kernels.cpu.jit import jit, jit_finite, jit_inner
from coterie.kernels.cpu.simd import aligned
from coterie.kernels.cpu.vectors import REGISTER, Vectors, i64
from coterie.kernels.plain.dtw import path  # a step a moment: nothing to gain

__all__ = ["accumulated", "align", "between", "bounds", "envelope", "path"]

VECTORS = 2  # in a tile: the way from a cell to the next is long enough for two
TABLES = 1 << 25  # bytes of tables that an alignment keeps, if a few rows are no more
LOOK = 8  # moments after which it is seen whether all lanes are above their limits


@register_jitable
def lanes(itemsize):
    """Series in a tile."""
    return VECTORS * REGISTER // itemsize


def _least(v, above, across, left):
    return v.lower(v.lower(above, across), left)


def sweep(kinds, local, least=_least, outside=float("inf"), more=""):
    """Code that takes the tables of a tile from one row to the next, through the cells from `low` to `high` - 1.

    A cell is the least of those above, across and to the left, and what `local(v, place)` says it costs itself. Rows
    begin with a column of what is `outside`; `before` and `after`, where the two rows start, may be the same place.
    """

    def codegen(context, b, sig, args):
        v = Vectors("tile x x_at channels rows before after low high" + more, context, b, sig, args)
        wide = VECTORS * v.lanes
        above0, after0 = v.start("rows", v["before"]), v.start("rows", v["after"])
        beyond = ir.Constant(v.type, [outside] * v.lanes)
        corner = v.at(above0, b.mul(v["low"], i64(wide)))
        across = [v.load(v.at(corner, r * v.lanes)) for r in range(VECTORS)]
        with v.loop(v["low"], v["high"], 1, [*across, *[beyond] * VECTORS]) as cell:
            own = local(v, cell.t)
            place = b.mul(b.add(cell.t, i64(1)), i64(wide))
            above = [v.load(v.at(v.at(above0, place), r * v.lanes)) for r in range(VECTORS)]
            made = []
            for r in range(VECTORS):
                across, left = cell.values[r], cell.values[VECTORS + r]
                made.append(b.fadd(own[r], least(v, above[r], across, left)))
                v.store(made[r], v.at(v.at(after0, place), r * v.lanes))
            cell.new = [*above, *made]
        return context.get_dummy_value()

    return types.void(*kinds), codegen


def one_channel(price):
    def local(v, j):
        x = v.spread(v.b.load(v.start("x", v["x_at"])))
        y0 = v.start("tile", v.b.mul(j, i64(VECTORS * v.lanes)))
        return [price(v, v.b.fsub(x, v.load(v.at(y0, r * v.lanes)))) for r in range(VECTORS)]

    return local


def many_channels(price):
    def local(v, j):
        b, wide = v.b, VECTORS * v.lanes
        x0, y0 = v.start("x", v["x_at"]), v.start("tile", b.mul(b.mul(j, v["channels"]), i64(wide)))
        with v.repeat(i64(0), v["channels"], 1, [v.zero] * VECTORS) as channel:
            x, y = v.spread(b.load(v.at(x0, channel.t))), v.at(y0, b.mul(channel.t, i64(wide)))
            for r in range(VECTORS):
                own = price(v, b.fsub(x, v.load(v.at(y, r * v.lanes))))
                channel.new.append(b.fadd(channel.values[r], own))
        return channel.new

    return local


def square(v, difference):
    return v.b.fmul(difference, difference)


def _magnitude(v, difference):
    signature = ir.FunctionType(v.type, [v.type])
    function = cgutils.get_or_insert_function(v.b.module, signature, f"llvm.fabs.v{v.lanes}f{v.bits}")
    return v.b.call(function, [difference])


@intrinsic
def squares_of_one(typingctx, tile, x, x_at, channels, rows, before, after, low, high):
    return sweep((tile, x, x_at, channels, rows, before, after, low, high), one_channel(square))


@intrinsic
def squares_of_many(typingctx, tile, x, x_at, channels, rows, before, after, low, high):
    return sweep((tile, x, x_at, channels, rows, before, after, low, high), many_channels(square))


@intrinsic
def magnitudes_of_any(typingctx, tile, x, x_at, channels, rows, before, after, low, high):
    return sweep((tile, x, x_at, channels, rows, before, after, low, high), many_channels(_magnitude))


@jit_inner
def _row(tile, x, x_at, rows, before, after, low, high, absolute):
    channels = x.shape[1]
    if absolute:
        magnitudes_of_any(tile, x, x_at * channels, channels, rows, before, after, low, high)
    elif channels == 1:
        squares_of_one(tile, x, x_at, channels, rows, before, after, low, high)
    else:
        squares_of_many(tile, x, x_at * channels, channels, rows, before, after, low, high)


@jit_inner
def pack(B, start, length, first, tile):
    """Series from `first` on into the tile, as many as it holds; how long the longest is."""
    wide, channels = lanes(B.itemsize), B.shape[1]
    longest = 0
    for lane in range(min(wide, len(start) - first)):
        begin = start[first + lane]
        longest = max(longest, length[first + lane])
        for t in range(length[first + lane]):
            for channel in range(channels):
                tile[(t * channels + channel) * wide + lane] = B[begin + t, channel]
    return longest


@jit
def between(A, a_start, a_length, B, b_start, b_length, low, high, absolute, limit, out):
    wide, most = lanes(B.itemsize), b_length.max()
    tile, row = aligned(most * B.shape[1] * wide, B), aligned((most + 1) * wide, B)
    for first in range(0, len(b_start), wide):
        used = min(wide, len(b_start) - first)
        m = pack(B, b_start, b_length, first, tile)
        for i in range(len(a_start)):
            over = _through(A, a_start[i], a_length[i], m, low, high, absolute, limit, first, used, tile, row)
            for lane in range(used):
                cost = row[b_length[first + lane] * wide + lane]
                above = over or (len(limit) > 0 and cost > limit[first + lane])
                out[i, first + lane] = np.inf if above else cost


@jit_inner
def _through(A, start, n, m, low, high, absolute, limit, first, used, tile, row):
    """A series through a tile of m moments: the last row of its tables; true if it ended early, above all limits."""
    wide = lanes(A.itemsize)
    for place in range((m + 1) * wide):
        row[place] = 0 if place < wide else np.inf
    for i in range(n):
        _row(tile, A, start + i, row, 0, 0, low[i], min(high[i], m), absolute)
        for lane in range(wide):
            row[low[i] * wide + lane] = np.inf  # for the next row, what is to the left of this one is outside
        if (
            len(limit)
            and i % LOOK == LOOK - 1
            and i < n - 1
            and _all_over(row, low[i], min(high[i], m), limit, first, used)
        ):
            return True
    return False


@jit_inner
def _all_over(row, low, high, limit, first, used):
    wide = lanes(row.itemsize)
    for lane in range(used):
        over = True
        for j in range(high, low, -1):
            if row[j * wide + lane] <= limit[first + lane]:
                over = False
                break
        if not over:
            return False
    return True


@jit
def align(center, B, b_start, b_length, w, low, high, sum_dx, met, cost):
    """Tables too large to keep are made in blocks of rows: first what each block begins with, then, going back, all."""
    n, wide, most = len(center), lanes(B.itemsize), b_length.max()
    reach = 0
    for i in range(n):
        reach = max(reach, min(high[min(i + 1, n - 1)], most) - low[i])  # as far as the next row looks back
    stride = (reach + 2) * wide  # of a row of the tables: its window between columns of infinity
    height = min(n, max(TABLES // (stride * B.itemsize), int(np.sqrt(n)) + 1))
    blocks = (n + height - 1) // height
    tile, rows = aligned(most * B.shape[1] * wide, B), aligned((height + 1) * stride, B)
    edges = np.full((blocks, stride), np.inf, B.dtype)
    for lane in range(wide):
        edges[0, lane] = 0
    at = np.empty((2, wide), np.int64)  # the moments that each lane has come back to
    for first in range(0, len(b_start), wide):
        used = min(wide, len(b_start) - first)
        m = pack(B, b_start, b_length, first, tile)
        for block in range(blocks - 1):
            _block(center, m, low, high, tile, rows, edges[block], block * height, (block + 1) * height)
            for place in range(stride):
                edges[block + 1, place] = rows[height * stride + place]
        for lane in range(used):
            at[0, lane], at[1, lane] = n - 1, b_length[first + lane] - 1
        for block in range(blocks - 1, -1, -1):
            begin, end = block * height, min(n, (block + 1) * height)
            _block(center, m, low, high, tile, rows, edges[block], begin, end)
            for lane in range(used):
                q = first + lane
                if end == n:
                    cost[q] = rows[(n - begin) * stride + (b_length[q] - low[n - 1]) * wide + lane]
                _back(center, B, b_start[q], w[q], low, high, rows, stride, begin, lane, at, sum_dx, met)


@jit_inner
def _block(center, m, low, high, tile, rows, edge, begin, end):
    """Rows of the tables from `begin` to `end` - 1, after the one before them: `edge`.

    A row begins with the column before its window.
    """
    wide, stride = lanes(center.itemsize), len(edge)
    for place in range((end - begin + 1) * stride):
        rows[place] = edge[place] if place < stride else np.inf
    before = -low[begin - 1] * wide if begin > 0 else 0
    for i in range(begin, end):
        after = (i - begin + 1) * stride - low[i] * wide
        _row(tile, center, i, rows, before, after, low[i], min(high[i], m), False)
        before = after


@jit_inner
def _back(center, B, start, w, low, high, rows, stride, begin, lane, at, sum_dx, met):
    """From where a lane is back to the first row of a block, adding up what meets each moment of the center."""
    wide, channels = lanes(B.itemsize), B.shape[1]
    i, j = at[0, lane], at[1, lane]
    while i >= begin:
        met[i] += w
        for channel in range(channels):
            sum_dx[i, channel] += w * (B[start + j, channel] - center[i, channel])
        above = across = left = np.inf
        if i > 0:
            row = (i - begin) * stride + (j - low[i - 1]) * wide + lane
            if low[i - 1] <= j < high[i - 1]:
                above = rows[row + wide]
            if low[i - 1] <= j - 1 < high[i - 1]:
                across = rows[row]
        if j > low[i]:
            left = rows[(i - begin + 1) * stride + (j - low[i]) * wide + lane]
        if i == 0 and j == 0:
            i = -1
        elif across <= above and across <= left:
            i, j = i - 1, j - 1
        elif above <= left:
            i -= 1
        else:
            j -= 1
    at[0, lane], at[1, lane] = i, j


@jit
def accumulated(x, y, low, high, absolute):
    n, m = len(x), len(y)
    table = np.full((n, m), np.inf, x.dtype)
    for i in range(n):
        for j in range(low[i], min(high[i], m)):
            before = np.inf if i + j > 0 else 0.0
            if i > 0:
                before = min(before, table[i - 1, j])
                if j > 0:
                    before = min(before, table[i - 1, j - 1])
            if j > 0:
                before = min(before, table[i, j - 1])
            own = x.dtype.type(0)
            for channel in range(x.shape[1]):
                apart = x[i, channel] - y[j, channel]
                own += abs(apart) if absolute else apart * apart
            table[i, j] = own + x.dtype.type(before)
    return table


@jit
def envelope(x, low, high):
    n, (most, channels) = len(low), x.shape
    lower, upper = np.empty((n, channels), x.dtype), np.empty((n, channels), x.dtype)
    for i in range(n):
        for channel in range(channels):
            least = largest = x[low[i], channel]
            for j in range(low[i] + 1, min(high[i], most)):
                least, largest = min(least, x[j, channel]), max(largest, x[j, channel])
            lower[i, channel], upper[i, channel] = least, largest
    return lower, upper


@jit_finite
def bounds(x, lower, upper, B, b_start, b_length, absolute, out):
    n, channels = x.shape
    for q in range(len(b_start)):
        begin, m = b_start[q], b_length[q]
        total = 0.0
        for t in range(1, m - 1):
            for channel in range(channels):
                y = B[begin + t, channel]
                apart = max(y - upper[t, channel], lower[t, channel] - y)
                apart = max(apart, 0)
                total += apart if absolute else apart * apart
        for channel in range(channels):
            apart = abs(B[begin, channel] - x[0, channel])
            total += apart if absolute else apart * apart
            if m > 1:
                apart = abs(B[begin + m - 1, channel] - x[n - 1, channel])
                total += apart if absolute else apart * apart
        out[q] = total
