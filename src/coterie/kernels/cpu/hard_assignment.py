"""Hard assignment to the nearest center, and the sums that move the centers.

Scores are taken in the data's own precision, a tile of rows against a panel of centers at a time, and the two best
of each row are kept. Where they lie further apart than rounding can reach the better one is the label; the few rows
left in doubt are settled in float64 (`exact`). So labels depend on rows and centers alone, not on the kernel.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba.extending import register_jitable

from coterie.kernels.cpu.exact import frame, square, two_nearest
from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.simd import PANEL, add_lanes, add_row, aligned, load_tile, padded, points, score_panel

BLOCK_BYTES = 1 << 18  # tiles that are scored together stay in the second-level cache
FLUSH_ROWS = 8192  # sums in the data's precision move on to float64 this often
PROBE_EVERY = 16  # blocks between two looks at whether the bounds have begun to bite
FEW = 64  # up to so many sums, all of them are taken lane by lane
NEAR = 4.0  # units from the origin within which few sums are taken from the tiles
BITE = 0.4  # share of rows the bounds must settle to be worth asking
LARGEST_BOUND = 2.0**120  # bounds are stored in float32; a smaller bound is always valid

Search = namedtuple(
    "Search",
    (
        "shift",  # (padded d,) origin
        "inverse",  # 1 / unit
        "few",  # whether sums are taken from the tiles
        "panels",  # (panels * d * PANEL,) the centers, negated
        "half",  # (panels * PANEL,) half their squared lengths
        "doubt",  # rounding of two scores: doubt[0] |x| + doubt[1]
        "rows",  # (block,) the rows searched
        "tile",  # (block * padded d,)
        "norm",  # (block,) squared lengths
        "best",  # (block,) best scores
        "second",  # (block,)
        "index",  # (block,) labels
        "squares",  # (k,)
    ),
)


@jit
def lloyd(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,) for one weight for all
    centers,  # in  (k, d)
    before,  # in  (k, d) centers of the last pass
    labels,  # i/o (n,) those of the last pass, -1 where there was none
    lower,  # i/o (n,) no other center was nearer than this, in units of frame(X, before); (0,) to do without bounds
    room,  # i/o (room_for(k, d, itemsize),) to work in
):
    """Weight, sum of w (x - c), sum of w |x - c|^2 of every cluster; rows that changed cluster, rows searched."""
    n, d = X.shape
    k = centers.shape[0]
    s = prepare(X, centers, room)
    block = s.rows.shape[0]
    rounded, part = pad_centers(X, centers, room)
    weight, sum_dx, cost = np.zeros(k), np.zeros((k, d)), np.zeros(k)
    bounded = lower.shape[0] > 0 and not s.few
    drift = drifts(before, centers, s.inverse) if bounded else weight
    # The unit follows the centers: bounds of the last pass are converted from its unit to that of this one.
    ratio = frame(X, before, np.empty(d, X.dtype)) * s.inverse if bounded else 1.0
    biting, since, moved, searched = False, 0, 0, 0
    for i0 in range(0, n, block):
        i1 = min(n, i0 + block)
        probe = i0 // block % PROBE_EVERY == 0
        count = i1 - i0
        if bounded and (biting or probe) and labels[i0] >= 0 and lower[i0] >= 0:
            count = undecided(X, rounded, s, i0, i1, labels, lower, ratio, drift)
            biting = count < (1.0 - BITE) * (i1 - i0)
        if count == i1 - i0 or not biting:
            count = i1 - i0
            for p in range(count):
                s.rows[p] = i0 + p
        search(X, centers, s, count)
        searched += count
        if count == i1 - i0:
            moved += relabel_block(labels, i0, s.index, count)
        else:
            moved += relabel_rows(labels, s.rows, s.index, count)
        if bounded and (biting or probe):
            for p in range(count):
                lower[s.rows[p]] = min(apart(s, p), LARGEST_BOUND)
        elif bounded:
            lower[i0] = -1  # this block's bounds are out of date
        if s.few:
            add_tiles(X, w, i0, s, count, weight, part)
        else:
            add_rows(X, w, i0, i1, labels, rounded, s.inverse, weight, part)
        since += i1 - i0
        if since >= FLUSH_ROWS or i1 == n:
            flush(part, 1.0 / s.inverse, sum_dx, cost)
            since = 0
    return weight, sum_dx, cost, moved, searched


@jit_reassociating
def relabel_block(labels, i0, index, count):
    """New labels of successive rows; how many changed."""
    moved = 0
    for p in range(count):
        moved += labels[i0 + p] != index[p]
        labels[i0 + p] = index[p]
    return moved


@jit
def relabel_rows(labels, rows, index, count):
    """New labels of some rows; how many changed."""
    moved = 0
    for p in range(count):
        moved += labels[rows[p]] != index[p]
        labels[rows[p]] = index[p]
    return moved


@jit
def nearest(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    labels,  # out (n,)
    room,  # i/o as above
):
    """The label of every row."""
    s = prepare(X, centers, room)
    block = s.rows.shape[0]
    for i0 in range(0, X.shape[0], block):
        count = min(X.shape[0] - i0, block)
        for p in range(count):
            s.rows[p] = i0 + p
        search(X, centers, s, count)
        for p in range(count):
            labels[i0 + p] = s.index[p]


@register_jitable
def panel_size(k, d):
    return (k + PANEL - 1) // PANEL * d * PANEL


def room_for(k, d, itemsize):
    """Elements that a pass works in beside its result: panels, padded centers, and sums in the data's precision."""
    height, lanes = padded(d, itemsize), padded(1, itemsize)
    return padded(panel_size(k, d), itemsize) + k * height + k * (height + lanes)


@jit
def cleared(room, at, size):
    for i in range(at, at + size):
        room[i] = 0
    return room[at : at + size]


@jit
def prepare(X, centers, room):
    """All that a search needs: the centers packed into panels, and room for a block of rows."""
    k, d = centers.shape
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    tiles = max(1, min(32 if k * d <= FEW else 8, BLOCK_BYTES // (tile_rows * height * X.itemsize)))
    block = tiles * tile_rows
    shift = aligned(height, X)
    inverse = 1.0 / frame(X, centers, shift)
    few = k * d <= FEW and stay(shift, inverse)
    n_panels = (k + PANEL - 1) // PANEL
    panels = cleared(room, 0, panel_size(k, d))
    half = np.empty(n_panels * PANEL, X.dtype)
    for j in range(k, n_panels * PANEL):
        half[j] = np.inf
    longest = 0.0
    for j in range(k):
        length = pack(centers, j, shift, inverse, panels, j // PANEL * d * PANEL + j % PANEL)
        half[j] = 0.5 * length
        longest = max(longest, length)
    # Each of two scores is off by at most (d + 4) u (|x| |c| + |c|^2 / 2).
    rounding = 1.01 * (d + 4) * 2.0 ** (-24 if X.itemsize == 4 else -53)
    doubt = (X.dtype.type(2.0 * rounding * np.sqrt(longest)), X.dtype.type(rounding * longest))
    return Search(
        shift, inverse, few, panels, half, doubt,
        np.zeros(block, np.int64), aligned(block * height, X), aligned(block, X),
        aligned(block, X), aligned(block, X), np.empty(block, np.int32), np.empty(k),
    )  # fmt: skip


@jit_reassociating
def pack(centers, j, shift, inverse, panels, at):
    """Puts a center into its panel; returns its squared length."""
    length = 0.0
    for t in range(centers.shape[1]):
        c = (np.float64(centers[j, t]) - np.float64(shift[t])) * inverse
        panels[at + t * PANEL] = -c
        length += c * c
    return length


@jit
def stay(shift, inverse):
    """Whether the data is near enough to its origin to be left there, rows in the tiles then being exact."""
    for t in range(shift.shape[0]):
        if abs(shift[t]) * inverse > NEAR:
            return False
    for t in range(shift.shape[0]):
        shift[t] = 0
    return True


@jit
def search(X, centers, s, count):
    """Labels of the rows ``s.rows[:count]`` in `s.index`."""
    d = X.shape[1]
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    filled = (count + tile_rows - 1) // tile_rows * tile_rows
    for p in range(count, filled):
        s.rows[p] = s.rows[count - 1]
    for p in range(0, filled, tile_rows):
        load_tile(X, s.rows, s.shift, X.dtype.type(s.inverse), s.tile, s.norm, p, s.rows.shape[0], d)
    for p in range(filled):
        s.best[p] = np.inf
        s.second[p] = np.inf
    for first in range(0, centers.shape[0], PANEL):
        for p in range(0, filled, tile_rows):
            score_panel(s.tile, p * height, s.panels, first * d, s.half, first, s.best, s.second, s.index, p, d)
    settle(X, centers, s, count)


@jit_reassociating
def doubtful(best, second, norm, doubt, count):
    """How many rows have two scores too close to call."""
    total = 0
    for p in range(count):
        total += not (second[p] - best[p] > doubt[0] * np.sqrt(norm[p]) + doubt[1])
    return total


@jit
def settle(X, centers, s, count):
    """Decides in float64 where the scores could not."""
    if doubtful(s.best, s.second, s.norm, s.doubt, count) == 0:
        return
    for p in range(count):
        if not (s.second[p] - s.best[p] > s.doubt[0] * np.sqrt(s.norm[p]) + s.doubt[1]):
            s.index[p], beyond = two_nearest(X, s.rows[p], centers, s.inverse, s.squares)
            s.second[p] = 0.5 * (beyond * (1.0 - 2.0**-20) - np.float64(s.norm[p]))


@jit
def apart(s, p):
    """A distance below that of row `p` to every center but its own."""
    beyond = np.float64(s.norm[p]) + 2.0 * np.float64(s.second[p])
    rounding = 2.0 * (np.float64(s.doubt[0]) * np.sqrt(np.float64(s.norm[p])) + np.float64(s.doubt[1]))
    rounding += np.float64(s.norm[p]) * (s.shift.shape[0] + 4) * 2.0**-23  # of the norm itself
    return np.sqrt(max(0.0, beyond - rounding)) * (1.0 - 2.0**-20)


@jit
def undecided(X, rounded, s, i0, i1, labels, lower, ratio, drift):
    """Rows of the block whose bound no longer proves their label, in `s.rows`; bounds follow the centers."""
    d = X.shape[1]
    factor = X.dtype.type(s.inverse)
    slack = 1.0 + (d + 8) * 2.0**-22  # squares in the data's precision, which is float32 or better
    lost = d * (2.0**-120 if X.itemsize == 4 else 2.0**-1000)  # more than squares lose to underflow
    count = 0
    for i in range(i0, i1):
        bound = (np.float64(lower[i]) * ratio - drift[labels[i]]) * (1.0 - 2.0**-20)
        if bound > 0.0 and own_square(X, i, rounded, labels[i], factor, d) * slack + lost < bound * bound:
            lower[i] = min(bound, LARGEST_BOUND)
        else:
            s.rows[count] = i
            count += 1
    return count


@jit_reassociating
def own_square(X, i, rounded, j, factor, d):
    total = X.dtype.type(0)
    for t in range(d):
        q = (X[i, t] - rounded[j, t]) * factor
        total += q * q
    return total


@jit
def drifts(before, centers, inverse):
    """For every cluster, how far the farthest-moving other center has gone."""
    k = centers.shape[0]
    drift = np.empty(k)
    most, next_most, who = 0.0, 0.0, -1
    for j in range(k):
        moved = np.sqrt(square(before, j, centers, j, inverse)) * (1.0 + 2.0**-20)
        if moved > most:
            most, next_most, who = moved, most, j
        else:
            next_most = max(next_most, moved)
    for j in range(k):
        drift[j] = next_most if j == who else most
    return drift


@jit
def pad_centers(X, centers, room):
    """Centers with rows of whole vectors, and as many sums with a vector of costs behind each."""
    k, d = centers.shape
    height = padded(d, X.itemsize)
    at = padded(panel_size(k, d), X.itemsize)
    rounded = cleared(room, at, k * height).reshape((k, height))
    for j in range(k):
        for t in range(d):
            rounded[j, t] = centers[j, t]
    wide = height + padded(1, X.itemsize)
    return rounded, cleared(room, at + k * height, k * wide).reshape((k, wide))


@jit
def add_rows(X, w, i0, i1, labels, rounded, inverse, weight, part):
    d = X.shape[1]
    stride = 0 if w.shape[0] == 1 else 1
    factor = X.dtype.type(inverse)
    for i in range(i0, i1):
        j = labels[i]
        wi = w[i * stride]
        weight[j] += wi
        add_row(X, i * d, rounded, j * rounded.shape[1], factor, X.dtype.type(wi), part, j * part.shape[1], d)


@jit
def add_tiles(X, w, i0, s, count, weight, part):
    """What `add_rows` does, for few clusters and columns: every sum in turn, over all rows of the block."""
    k, d = weight.shape[0], X.shape[1]
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    stride = 0 if w.shape[0] == 1 else 1
    ones = stride == 0 and w[0] == 1.0  # then the sums of the lanes are whole numbers, hence exact
    if ones:
        for p in range(count):
            s.best[p] = 1
    else:
        for p in range(count):
            s.best[p] = w[(i0 + p) * stride]
            weight[s.index[p]] += w[(i0 + p) * stride]
    filled = (count + tile_rows - 1) // tile_rows * tile_rows
    for p in range(count, filled):
        s.index[p] = -1
    lanes = padded(1, X.itemsize)
    sums = aligned(3 * lanes, X)
    for j in range(k):
        for t in range(d):
            c = -s.panels[(j // PANEL * d + t) * PANEL + j % PANEL]
            add_lanes(s.tile, t * tile_rows, s.best, s.index, j, c, sums, filled, height)
            sum_w, sum_q, sum_qq = 0.0, 0.0, 0.0
            for lane in range(lanes):
                sum_w += sums[lane]
                sum_q += sums[lanes + lane]
                sum_qq += sums[2 * lanes + lane]
            part[j, t] += sum_q
            part[j, height] += sum_qq
        if ones:
            weight[j] += sum_w


@jit
def flush(part, unit, sum_dx, cost):
    """Moves the partial sums to float64 and clears them."""
    k, d = sum_dx.shape
    lanes = padded(1, part.itemsize)
    height = part.shape[1] - lanes
    for j in range(k):
        for t in range(d):
            sum_dx[j, t] += unit * np.float64(part[j, t])
        for lane in range(lanes):
            cost[j] += unit * unit * np.float64(part[j, height + lane])
        for t in range(part.shape[1]):
            part[j, t] = 0
