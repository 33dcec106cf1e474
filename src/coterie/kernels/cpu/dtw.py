"""Dynamic time warping, compiled; for the definitions and arguments see `kernels.plain.dtw`.

Each lane of a vector has one series: a *tile* is `lanes` series of B, transposed to (time points, channels, lanes). One
row of the tables of accumulated costs is stored for all of them, and updated with each time point of a series of A.
"""

import numpy as np
from numba.extending import register_jitable

from coterie.kernels.cpu.jit import jit, jit_finite
from coterie.kernels.cpu.simd import aligned
from coterie.kernels.cpu.vectors import REGISTER, i64, vector_code
from coterie.kernels.plain.dtw import warping_path  # one step for each time point: compiling it is not worthwhile

__all__ = ["accumulated_costs", "align", "envelope", "lower_bounds", "path_costs", "warping_path"]

VECTORS = 2  # vectors of a tile: the latency from one cell to the next is long enough for two
TABLES = 1 << 25  # bytes of tables that an alignment stores, unless a few rows need more
CHECK_EVERY = 8  # time points after which to check whether all lanes are above their limits


@register_jitable
def lanes(itemsize):
    """Number of series of a tile."""
    return VECTORS * REGISTER // itemsize


def _minimum(v, above, across, left):
    return v.lower(v.lower(above, across), left)


def sweep(v, local, minimum=_minimum, outside=float("inf")):
    """Compute the next row of the tables of a tile, in the cells from `low` to `high` - 1.

    A cell is the minimum of the cells above, diagonal and left, plus its cost `local(v, index)`. Rows begin with a
    column of the value `outside`. `before` and `after` are the indices at which the two rows begin; they can be equal.
    """
    b = v.b
    width = VECTORS * v.lanes
    above0, after0 = v.start(v["rows"], v["before"]), v.start(v["rows"], v["after"])
    corner = v.at(above0, b.mul(v["low"], i64(width)))
    across = [v.load(v.at(corner, r * v.lanes)) for r in range(VECTORS)]
    with v.loop(v["low"], v["high"], 1, [*across, *[v.constant(outside)] * VECTORS]) as cell:
        cost = local(v, cell.t)
        offset = b.mul(b.add(cell.t, i64(1)), i64(width))
        above = [v.load(v.at(v.at(above0, offset), r * v.lanes)) for r in range(VECTORS)]
        cells = []
        for r in range(VECTORS):
            across, left = cell.values[r], cell.values[VECTORS + r]
            cells.append(b.fadd(cost[r], minimum(v, above[r], across, left)))
            v.store(cells[r], v.at(v.at(after0, offset), r * v.lanes))
        cell.new = [*above, *cells]


def one_channel(local_cost):
    def local(v, j):
        x = v.spread(v.b.load(v.start(v["x"], v["x_at"])))
        y0 = v.start(v["tile"], v.b.mul(j, i64(VECTORS * v.lanes)))
        return [local_cost(v, v.b.fsub(x, v.load(v.at(y0, r * v.lanes)))) for r in range(VECTORS)]

    return local


def many_channels(local_cost):
    def local(v, j):
        b, width = v.b, VECTORS * v.lanes
        x0, y0 = v.start(v["x"], v["x_at"]), v.start(v["tile"], b.mul(b.mul(j, v["channels"]), i64(width)))
        with v.repeat(i64(0), v["channels"], 1, [v.zero] * VECTORS) as channel:
            x, y = v.spread(b.load(v.at(x0, channel.t))), v.at(y0, b.mul(channel.t, i64(width)))
            for r in range(VECTORS):
                cost = local_cost(v, b.fsub(x, v.load(v.at(y, r * v.lanes))))
                channel.new.append(b.fadd(channel.values[r], cost))
        return channel.new

    return local


def square(v, difference):
    return v.b.fmul(difference, difference)


def _absolute(v, difference):
    return v.call("fabs", difference)


def _row_of_costs(local):
    """An intrinsic that computes the next row by `sweep`, with these costs of cells."""

    @vector_code
    def row(v, tile, x, x_at, channels, rows, before, after, low, high):
        sweep(v, local)

    return row


squares_one_channel, squares_many_channels = _row_of_costs(one_channel(square)), _row_of_costs(many_channels(square))
absolute_costs = _row_of_costs(many_channels(_absolute))


@jit
def _row(tile, x, x_at, rows, before, after, low, high, absolute):
    channels = x.shape[1]
    if absolute:
        absolute_costs(tile, x, x_at * channels, channels, rows, before, after, low, high)
    elif channels == 1:
        squares_one_channel(tile, x, x_at, channels, rows, before, after, low, high)
    else:
        squares_many_channels(tile, x, x_at * channels, channels, rows, before, after, low, high)


@jit
def pack(B, start, length, first, tile):
    """Copy series from `first` on into the tile; return the length of the longest."""
    width, channels = lanes(B.itemsize), B.shape[1]
    longest = 0
    for lane in range(min(width, len(start) - first)):
        begin = start[first + lane]
        longest = max(longest, length[first + lane])
        for t in range(length[first + lane]):
            for channel in range(channels):
                tile[(t * channels + channel) * width + lane] = B[begin + t, channel]
    return longest


@jit
def path_costs(A, a_start, a_length, B, b_start, b_length, low, high, absolute, limit, out):
    width, longest = lanes(B.itemsize), b_length.max()
    tile, row = aligned(longest * B.shape[1] * width, B), aligned((longest + 1) * width, B)
    for first in range(0, len(b_start), width):
        n_series = min(width, len(b_start) - first)
        m = pack(B, b_start, b_length, first, tile)
        for i in range(len(a_start)):
            is_above = _last_row(A, a_start[i], a_length[i], m, low, high, absolute, limit, first, n_series, tile, row)
            for lane in range(n_series):
                cost = row[b_length[first + lane] * width + lane]
                exceeds = is_above or (len(limit) > 0 and cost > limit[first + lane])
                out[i, first + lane] = np.inf if exceeds else cost


@jit
def _last_row(A, start, n, m, low, high, absolute, limit, first, n_series, tile, row):
    """Compute the last row of the tables of a series and a tile of m time points.

    Returns true if it stopped early because all lanes are above their limits.
    """
    width = lanes(A.itemsize)
    for index in range((m + 1) * width):
        row[index] = 0 if index < width else np.inf
    for i in range(n):
        _row(tile, A, start + i, row, 0, 0, low[i], min(high[i], m), absolute)
        for lane in range(width):
            row[low[i] * width + lane] = np.inf  # for the next row, the cells to the left are outside of the window
        if (
            len(limit)
            and i % CHECK_EVERY == CHECK_EVERY - 1
            and i < n - 1
            and _all_above(row, low[i], min(high[i], m), limit, first, n_series)
        ):
            return True
    return False


@jit
def _all_above(row, low, high, limit, first, n_series):
    """Whether all cells of a row are above the limits of their lanes."""
    width = lanes(row.itemsize)
    for lane in range(n_series):
        is_above = True
        for j in range(high, low, -1):
            if row[j * width + lane] <= limit[first + lane]:
                is_above = False
                break
        if not is_above:
            return False
    return True


@jit
def align(center, B, b_start, b_length, w, low, high, sum_dx, weight, cost):
    """Align series with `center`.

    Tables that are too large to store are computed in blocks of rows: first the row before each block, then, backwards,
    all rows of a block.
    """
    n, width, longest = len(center), lanes(B.itemsize), b_length.max()
    width_max = 0
    for i in range(n):
        width_max = max(width_max, min(high[min(i + 1, n - 1)], longest) - low[i])  # the window of the next row
    stride = (width_max + 2) * width  # of a row of the tables: its window between two columns of infinity
    height = min(n, max(TABLES // (stride * B.itemsize), int(np.sqrt(n)) + 1))
    blocks = (n + height - 1) // height
    tile, rows = aligned(longest * B.shape[1] * width, B), aligned((height + 1) * stride, B)
    edges = np.full((blocks, stride), np.inf, B.dtype)
    for lane in range(width):
        edges[0, lane] = 0
    position = np.empty((2, width), np.int64)  # time points that the backtracking of each lane has reached
    for first in range(0, len(b_start), width):
        n_series = min(width, len(b_start) - first)
        m = pack(B, b_start, b_length, first, tile)
        for block in range(blocks - 1):
            _compute_block(center, m, low, high, tile, rows, edges[block], block * height, (block + 1) * height)
            for index in range(stride):
                edges[block + 1, index] = rows[height * stride + index]
        for lane in range(n_series):
            position[0, lane], position[1, lane] = n - 1, b_length[first + lane] - 1
        for block in range(blocks - 1, -1, -1):
            begin, end = block * height, min(n, (block + 1) * height)
            _compute_block(center, m, low, high, tile, rows, edges[block], begin, end)
            for lane in range(n_series):
                q = first + lane
                if end == n:
                    cost[q] = rows[(n - begin) * stride + (b_length[q] - low[n - 1]) * width + lane]
                _backtrack(center, B, b_start[q], w[q], low, high, rows, stride, begin, lane, position, sum_dx, weight)


@jit
def _compute_block(center, m, low, high, tile, rows, edge, begin, end):
    """Compute rows `begin` to `end` - 1 of the tables from the previous one, `edge`.

    A row begins with the column before its window.
    """
    width, stride = lanes(center.itemsize), len(edge)
    for index in range((end - begin + 1) * stride):
        rows[index] = edge[index] if index < stride else np.inf
    before = -low[begin - 1] * width if begin > 0 else 0
    for i in range(begin, end):
        after = (i - begin + 1) * stride - low[i] * width
        _row(tile, center, i, rows, before, after, low[i], min(high[i], m), False)
        before = after


@jit
def _backtrack(center, B, start, w, low, high, rows, stride, begin, lane, position, sum_dx, weight):
    """Backtrack a lane to the first row of a block, and add the aligned time points to the sums of the center."""
    width, channels = lanes(B.itemsize), B.shape[1]
    i, j = position[0, lane], position[1, lane]
    while i >= begin:
        weight[i] += w
        for channel in range(channels):
            sum_dx[i, channel] += w * (B[start + j, channel] - center[i, channel])
        above = across = left = np.inf
        if i > 0:
            row = (i - begin) * stride + (j - low[i - 1]) * width + lane
            if low[i - 1] <= j < high[i - 1]:
                above = rows[row + width]
            if low[i - 1] <= j - 1 < high[i - 1]:
                across = rows[row]
        if j > low[i]:
            left = rows[(i - begin + 1) * stride + (j - low[i]) * width + lane]
        if i == 0 and j == 0:
            i = -1
        elif across <= above and across <= left:
            i, j = i - 1, j - 1
        elif above <= left:
            i -= 1
        else:
            j -= 1
    position[0, lane], position[1, lane] = i, j


@jit
def accumulated_costs(x, y, low, high, absolute):
    n, m = len(x), len(y)
    table = np.full((n, m), np.inf, x.dtype)
    for i in range(n):
        for j in range(low[i], min(high[i], m)):
            previous = np.inf if i + j > 0 else 0.0
            if i > 0:
                previous = min(previous, table[i - 1, j])
                if j > 0:
                    previous = min(previous, table[i - 1, j - 1])
            if j > 0:
                previous = min(previous, table[i, j - 1])
            cost = x.dtype.type(0)
            for channel in range(x.shape[1]):
                difference = x[i, channel] - y[j, channel]
                cost += abs(difference) if absolute else difference * difference
            table[i, j] = cost + x.dtype.type(previous)
    return table


@jit
def envelope(x, low, high):
    n, (longest, channels) = len(low), x.shape
    lower, upper = np.empty((n, channels), x.dtype), np.empty((n, channels), x.dtype)
    for i in range(n):
        for channel in range(channels):
            minimum = largest = x[low[i], channel]
            for j in range(low[i] + 1, min(high[i], longest)):
                minimum, largest = min(minimum, x[j, channel]), max(largest, x[j, channel])
            lower[i, channel], upper[i, channel] = minimum, largest
    return lower, upper


@jit_finite
def lower_bounds(x, lower, upper, B, b_start, b_length, absolute, out):
    n, channels = x.shape
    for q in range(len(b_start)):
        begin, m = b_start[q], b_length[q]
        total = 0.0
        for t in range(1, m - 1):
            for channel in range(channels):
                y = B[begin + t, channel]
                difference = max(y - upper[t, channel], lower[t, channel] - y)
                difference = max(difference, 0)
                total += difference if absolute else difference * difference
        for channel in range(channels):
            difference = abs(B[begin, channel] - x[0, channel])
            total += difference if absolute else difference * difference
            if m > 1:
                difference = abs(B[begin + m - 1, channel] - x[n - 1, channel])
                total += difference if absolute else difference * difference
        out[q] = total
