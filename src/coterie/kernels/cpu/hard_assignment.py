"""K-means of dense rows: assignment to the nearest center, and sums of clusters.

Scores are computed in the precision of the data, for a tile of rows and a panel of centers at a time. The two best
scores of each row are stored. If they differ by more than rounding can explain, the better one gives the label. The
other rows are ambiguous: `resolve` computes squared distances from differences of the unshifted values, which do not
cancel. If these are too close as well, the label is computed in float64 (`exact_distance`). So labels depend on rows
and centers only, not on the kernel.
"""

from collections import namedtuple

import numpy as np
from numba.extending import register_jitable

from coterie.kernels.cpu import low_precision
from coterie.kernels.cpu.exact_distance import choose_unit, sort_columns, square, two_nearest
from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.score_rounding import bound_rounding, tolerance
from coterie.kernels.cpu.simd import (
    FEW_COLUMNS,
    PANEL,
    add_row,
    aligned,
    in_whole_panels,
    load_few_columns,
    load_tile,
    lowest_bit,
    mark_uncertain,
    padded,
    points,
    reset_best,
    score_panel,
    score_rest,
    square_panel,
)

BLOCK_BYTES = 1 << 18  # size of a block of tiles, which stays in the second-level cache
FLUSH_ROWS = 8192  # number of rows after which sums in the precision of the data are added to float64
PROBE_EVERY = 16  # number of blocks between two tests of whether bounds are useful
MIN_SKIPPED = 0.4  # share of rows that bounds must skip to be useful
MIN_SKIPPED_LOW = 0.5  # the same if all rows could be scored in low precision instead
MAX_LEFT = 0.3  # share of rows left by bounds up to which they are not scored in low precision, for tighter bounds
MAX_ONE_BY_ONE = 6  # up to this number of ambiguous rows, float64 is faster than a tile
MAX_AMBIGUOUS = 0.25  # share of ambiguous rows above which other blocks are compared by differences at once
SMALL_PANELS = 1 << 14  # bytes
NEAR = 4.0  # see `is_near_origin`
LARGEST_SQUARE = 2.0**100  # squared distances below this have not overflowed
LARGEST_BOUND = 2.0**120  # bounds are stored in float32; a smaller bound is always valid

Search = namedtuple(
    "Search",
    (
        "shift",  # (padded d,) origin
        "inverse",  # 1 / unit
        "panels",  # (panels * d * PANEL,) negated centers
        "half",  # (panels * PANEL,) half of their squared norms, less the rounding of scores
        "rounding",  # score_rounding.Rounding
        "block",  # number of rows of a block; the arrays below have room for another tile
        "rows",  # (block,) indices of the rows
        "tiles",  # (tiles,) first rows of tiles that are scored in the precision of the data
        "tile",  # (block * padded d,)
        "norm",  # (block,) squared norms
        "best",  # (block,) best scores
        "second",  # (block,) second best scores
        "index",  # (block,) labels
        "second_square",  # (block,) lower bound of the squared distances to other centers; -1: use `second`
        "ambiguous",  # (block,) positions of ambiguous rows in the block
        "squares",  # (k,) squared distances of a row in float64
        "differences",  # Differences
    ),
)

Differences = namedtuple(
    "Differences",
    (
        "origin",  # (padded d,) zeros: differences of unshifted values are accurate
        "panels",  # (panels * d * PANEL,) negated centers
        "start",  # (panels * PANEL,) initial values of squares: 0, or infinity for padding
        "is_packed",  # (1,) whether the panels are filled
        "is_default",  # (1,) whether so many rows are ambiguous that scores are not computed any more
    ),
)


@jit
def lloyd(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,) if all weights are equal
    centers,  # in  (k, d)
    previous,  # in  (k, d) centers of the previous pass
    labels,  # i/o (n,) labels of the previous pass, or -1
    lower,  # i/o (n,) lower bounds of distances to the other centers, in units of choose_unit(X, previous); (0,): none
    buffer,  # i/o (buffer_size(k, d, itemsize),) work space
    low,  # i/o low_precision.LowPrecision, or None
):
    """Sums of w, w (x - c) and w |x - c|^2 of each cluster; numbers of labels that changed, and of rows searched."""
    n, d = X.shape
    k = centers.shape[0]
    s = prepare(X, centers, False, buffer)
    if low is not None:
        low_precision.begin(low, s.half, k)
    block = s.block
    rounded, part = pad_centers(X, centers, buffer)
    weight, sum_dx, cost = np.zeros(k), np.zeros((k, d)), np.zeros(k)
    use_bounds = lower.shape[0] > 0
    drift = max_drifts(previous, centers, s.inverse) if use_bounds else weight
    # The unit depends on the centers: bounds are converted from the unit of the previous pass.
    ratio = choose_unit(X, previous, np.empty(d, X.dtype)) * s.inverse if use_bounds else 1.0
    bounds_help, n_since_flush, moved, searched = False, 0, 0, 0
    for i0 in range(0, n, block):
        i1 = min(n, i0 + block)
        probe = i0 // block % PROBE_EVERY == 0
        count = i1 - i0
        if use_bounds and (bounds_help or probe) and labels[i0] >= 0 and lower[i0] >= 0:
            count = update_bounds(X, rounded, s, i0, i1, labels, lower, ratio, drift)
            bounds_help = count < (1.0 - (MIN_SKIPPED if low is None else MIN_SKIPPED_LOW)) * (i1 - i0)
        if count == i1 - i0 or not bounds_help:
            count = i1 - i0
            for p in range(count):
                s.rows[p] = i0 + p
        if use_bounds:
            for p in range(count):
                s.second_square[p] = -1.0
        if low is None or count < MAX_LEFT * (i1 - i0):
            search(X, centers, s, count, None)
        else:
            search(X, centers, s, count, low)
        searched += count
        if count == i1 - i0:
            moved += relabel_block(labels, i0, s.index, count)
        else:
            moved += relabel_rows(labels, s.rows, s.index, count)
        if use_bounds and (bounds_help or probe):
            for p in range(count):
                lower[s.rows[p]] = min(lower_bound(s, p), LARGEST_BOUND)
        elif use_bounds:
            lower[i0] = -1  # the bounds of this block are not up to date
        add_rows(X, w, i0, i1, labels, rounded, s.inverse, weight, part)
        n_since_flush += i1 - i0
        if n_since_flush >= FLUSH_ROWS or i1 == n:
            flush(part, 1.0 / s.inverse, sum_dx, cost)
            n_since_flush = 0
    return weight, sum_dx, cost, moved, searched


@jit_reassociating
def relabel_block(labels, i0, index, count):
    """Set labels of successive rows; return how many changed."""
    of_block = labels[i0 : i0 + count]  # its indices cannot be negative, so the loop is vectorised
    moved = 0
    for p in range(count):
        moved += of_block[p] != index[p]
        of_block[p] = index[p]
    return moved


@jit
def relabel_rows(labels, rows, index, count):
    """Set labels of the given rows; return how many changed."""
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
    buffer,  # i/o as above
    low,  # i/o as above
):
    """Labels of all rows."""
    s = prepare(X, centers, False, buffer)
    if low is not None:
        low_precision.begin(low, s.half, centers.shape[0])
    block = s.block
    for i0 in range(0, X.shape[0], block):
        count = min(X.shape[0] - i0, block)
        for p in range(count):
            s.rows[p] = i0 + p
        search(X, centers, s, count, low)
        relabel_block(labels, i0, s.index, count)


@register_jitable
def panel_size(k, d):
    """Size of the panels of k centers."""
    return (k + PANEL - 1) // PANEL * d * PANEL


def buffer_size(k, d, itemsize):
    """Size of the work space of a pass: panels, padded centers, sums in the precision of the data; unshifted panels,
    and the tiles of a block with three numbers for each row.
    """
    height, lanes = padded(d, itemsize), padded(1, itemsize)
    sums = k * height + k * (height + lanes)
    return 2 * padded(panel_size(k, d), itemsize) + sums + block_size(k, d, itemsize) * (height + 3)


@register_jitable
def block_size(k, d, itemsize):
    """Number of rows of a block and one more tile."""
    tile_rows = points(itemsize)
    max_tiles = 32 if has_small_panels(k, d, itemsize) else 8
    return tile_rows + max(1, min(max_tiles, BLOCK_BYTES // (tile_rows * padded(d, itemsize) * itemsize))) * tile_rows


@jit
def zeros(buffer, at, size):
    """``buffer[at:at + size]``, set to zero."""
    view = buffer[at : at + size]
    for i in range(size):
        view[i] = 0
    return view


@jit
def prepare(X, centers, may_keep_origin, buffer):
    """Panels of the centers, and arrays for a block of rows."""
    k, d = centers.shape
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    size = block_size(k, d, X.itemsize)
    block = size - tile_rows
    shift = aligned(height, X)
    inverse = 1.0 / choose_unit(X, centers, shift)
    if may_keep_origin and is_near_origin(centers, shift):
        for t in range(d):
            shift[t] = 0
    n_panels = (k + PANEL - 1) // PANEL
    panels = zeros(buffer, 0, panel_size(k, d))
    half = np.empty(n_panels * PANEL, X.dtype)
    for j in range(k, n_panels * PANEL):
        half[j] = np.inf
    rounding, share = bound_rounding(X)
    for j in range(k):
        half[j] = share * pack(centers, j, shift, inverse, panels, j // PANEL * d * PANEL + j % PANEL)
    start = np.zeros(n_panels * PANEL, X.dtype)
    for j in range(k, n_panels * PANEL):
        start[j] = np.inf
    memory = buffer[buffer.shape[0] - size * (height + 3) - padded(panel_size(k, d), X.itemsize) :]
    at = size * height
    return Search(
        shift, inverse, panels, half, rounding,
        block, np.zeros(size, np.int64), np.zeros(size // tile_rows, np.int64), memory[:at], memory[at : at + size],
        memory[at + size : at + 2 * size], memory[at + 2 * size : at + 3 * size], np.empty(size, np.int32),
        np.empty(size), np.empty(block, np.int64), np.empty(k),
        Differences(aligned(height, X), memory[at + 3 * size :], start, np.zeros(1, np.bool_), np.zeros(1, np.bool_)),
    )  # fmt: skip


@jit_reassociating
def pack(centers, j, shift, inverse, panels, at):
    """Write a center to its panel; return its squared norm."""
    norm = 0.0
    for t in range(centers.shape[1]):
        c = (np.float64(centers[j, t]) - np.float64(shift[t])) * inverse
        panels[at + t * PANEL] = -c
        norm += c * c
    return norm


@jit
def is_near_origin(centers, shift):
    """Whether most centers are so near 0, relative to their distances from `shift`, that 0 is as good an origin."""
    k, d = centers.shape
    sizes, offset = np.zeros((k, 1)), 0.0
    for t in range(d):
        offset = max(offset, abs(np.float64(shift[t])))
        for j in range(k):
            sizes[j, 0] = max(sizes[j, 0], abs(np.float64(centers[j, t]) - np.float64(shift[t])))
    sort_columns(sizes)
    return offset <= NEAR * sizes[k // 2, 0]


@register_jitable
def has_small_panels(k, d, itemsize):
    """Whether all panels stay in the first-level cache, so that each tile is compared with all of them at once."""
    return k * d * itemsize <= SMALL_PANELS


@jit
def search(X, centers, s, count, low):
    """Write the labels of the rows ``s.rows[:count]`` to `s.index`."""
    k, d = centers.shape
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    n_padded = (count + tile_rows - 1) // tile_rows * tile_rows
    for p in range(count, n_padded):
        s.rows[p] = s.rows[count - 1]
    if s.differences.is_default[0]:
        compare_by_differences(X, centers, s, np.int64(0), n_padded)
        return
    n_whole = in_whole_panels(k)
    step = tile_rows if has_small_panels(k, d, X.itemsize) else s.block
    for start in range(0, n_padded, step):
        stop = min(n_padded, start + step)
        n_tiles = 0
        for p in range(start, stop, tile_rows):
            if low is not None and low_precision.is_due(low.state) and low_precision.label_tile(X, centers, s, low, p):
                continue
            last = p + tile_rows - 1
            if d <= FEW_COLUMNS and last < count and s.rows[last] - s.rows[p] == last - p:  # consecutive, no padding
                load_few_columns(X, s.rows[p], s.shift, X.dtype.type(s.inverse), s.tile, s.norm, p, d)
            else:
                load_tile(X, s.rows, s.shift, X.dtype.type(s.inverse), s.tile, s.norm, p, s.block, d)
            reset_best(s.best, s.second, p)
            s.tiles[n_tiles] = p
            n_tiles += 1
        for first in range(0, n_whole if n_tiles > 0 else 0, PANEL):
            for i in range(n_tiles):
                p, at = s.tiles[i], first * d
                score_panel(s.tile, p * height, s.panels, at, s.half, first, s.best, s.second, s.index, p, d)
        if n_whole < k:
            for i in range(n_tiles):
                p, at = s.tiles[i], n_whole * d
                score_rest(s.tile, p * height, s.panels, at, s.half, n_whole, k, s.best, s.second, s.index, p, d)
    n_ambiguous, number, r = 0, X.dtype.type, s.rounding
    for p in range(0, count, tile_rows):
        bits = mark_uncertain(s.best, s.second, s.norm, p, number(r.norm), number(r.quick), number(r.tiny))
        if bits != 0:
            n_ambiguous = append_ambiguous(s, p, bits, count, n_ambiguous)
    if n_ambiguous > 0:
        resolve(X, centers, s, n_ambiguous)
    s.differences.is_default[0] = n_ambiguous > MAX_AMBIGUOUS * count


@jit
def append_ambiguous(s, start, bits, count, n_ambiguous):
    """Append the positions of ambiguous rows among those from `start` on whose bits are set; return the new number."""
    while bits != 0:
        p = start + lowest_bit(bits)
        bits &= bits - 1
        if p < count and not (s.second[p] - s.best[p] > tolerance(s, p)):
            s.ambiguous[n_ambiguous] = p
            n_ambiguous += 1
    return n_ambiguous


@jit
def resolve(X, centers, s, n_ambiguous):
    """Labels of the rows at positions ``s.ambiguous[:n_ambiguous]``, and bounds of their distances to other centers."""
    tile_rows = points(X.itemsize)
    for start in range(0, n_ambiguous, tile_rows):
        count = min(n_ambiguous - start, tile_rows)
        if count > MAX_ONE_BY_ONE:
            for i in range(tile_rows):
                s.rows[s.block + i] = s.rows[s.ambiguous[start + min(i, count - 1)]]
            compare_by_differences(X, centers, s, s.block, s.block + tile_rows)
        for i in range(count):
            p = s.ambiguous[start + i]
            if count > MAX_ONE_BY_ONE:
                s.index[p] = s.index[s.block + i]
                s.second_square[p] = s.second_square[s.block + i]
            else:
                compare_in_float64(X, centers, s, p)


@jit
def compare_in_float64(X, centers, s, p):
    """Label of one row by definition, and bound of its distances to other centers."""
    s.index[p], second_square = two_nearest(X, s.rows[p], centers, s.inverse, s.squares)
    s.second_square[p] = second_square * (1.0 - 2.0**-20)


@jit
def compare_by_differences(X, centers, s, start, stop):
    """Labels of the tiles at positions `start` to `stop`, and bounds as above, from differences of unshifted values."""
    k, d = centers.shape
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    panels, origin = s.differences.panels, s.differences.origin
    if not s.differences.is_packed[0]:
        pack_unshifted(centers, s)
    for p in range(start, stop, tile_rows):
        load_tile(X, s.rows, origin, X.dtype.type(s.inverse), s.tile, s.norm, p, s.block if start == 0 else 0, d)
        reset_best(s.best, s.second, p)
    for first in range(0, k, PANEL):
        for p in range(start, stop, tile_rows):
            square_panel(
                s.tile, p * height, panels, first * d, s.differences.start, first, s.best, s.second, s.index, p, d
            )  # fmt: skip
    rounding, tiny = np.float64(s.rounding.square), np.float64(s.rounding.tiny)
    for p in range(start, stop):
        near, second = np.float64(s.best[p]), np.float64(s.second[p])
        is_certain = near < LARGEST_SQUARE and second - near > rounding * near + tiny
        if is_certain or (near == 0.0 and is_center(X, s.rows[p], centers, s.index[p])):
            s.second_square[p] = max(0.0, second / (1.0 + rounding) - tiny)
        else:
            compare_in_float64(X, centers, s, p)


@jit
def pack_unshifted(centers, s):
    """Write the panels of unshifted centers."""
    d, panels = centers.shape[1], s.differences.panels
    zeros(panels, 0, panels.shape[0])
    for j in range(centers.shape[0]):
        pack(centers, j, s.differences.origin, s.inverse, panels, j // PANEL * d * PANEL + j % PANEL)
    s.differences.is_packed[0] = True


@jit
def is_center(X, i, centers, j):
    """Whether a row is equal to a center. The first such center is its label, also if there are others."""
    n_different = 0
    for t in range(X.shape[1]):
        n_different += X[i, t] != centers[j, t]
    return n_different == 0


@jit
def square_from_score(s, p, score):
    """Lower bound of the squared distances of row `p` to centers with at least this score."""
    norm = np.float64(s.norm[p])
    return (
        norm + 2.0 * np.float64(score) - 2.2 * np.float64(s.rounding.score) * norm - 4.0 * np.float64(s.rounding.tiny)
    )


@jit
def lower_bound(s, p):
    """Lower bound of the distances of row `p` to all centers except the nearest."""
    total = s.second_square[p] if s.second_square[p] >= 0.0 else square_from_score(s, p, s.second[p])
    return np.sqrt(max(0.0, total)) * (1.0 - 2.0**-20)


@jit_reassociating
def update_bounds(X, rounded, s, i0, i1, labels, lower, ratio, drift):
    """Update the bounds of a block, and write rows whose label they do not prove to `s.rows`; return their number.

    About half of the rows are proven in a random order, so there are no branches, which the CPU could not predict.
    """
    d, rows = X.shape[1], s.rows
    factor = X.dtype.type(s.inverse)
    rounding = 1.0 + (d + 8) * 2.0**-22  # rounding of squares in the precision of the data
    underflow = d * (2.0**-120 if X.itemsize == 4 else 2.0**-1000)  # bound of the underflow of squares
    count = 0
    for i in range(i0, i1):
        j = labels[i]
        bound = (np.float64(lower[i]) * ratio - drift[j]) * (1.0 - 2.0**-20)
        square = X.dtype.type(0)
        for t in range(d):
            q = (X[i, t] - rounded[j, t]) * factor
            square += q * q
        is_proven = (bound > 0.0) & (square * rounding + underflow < bound * bound)
        lower[i] = min(bound, LARGEST_BOUND) if is_proven else lower[i]
        rows[count] = i
        count += not is_proven
    return count


@jit
def max_drifts(previous, centers, inverse):
    """For each cluster (k,), the largest movement of the other centers."""
    k = centers.shape[0]
    drift = np.empty(k)
    largest, second_largest, index = 0.0, 0.0, -1
    for j in range(k):
        moved = np.sqrt(square(previous, j, centers, j, inverse)) * (1.0 + 2.0**-20)
        if moved > largest:
            largest, second_largest, index = moved, largest, j
        else:
            second_largest = max(second_largest, moved)
    for j in range(k):
        drift[j] = second_largest if j == index else largest
    return drift


@jit
def pad_centers(X, centers, buffer):
    """Centers padded to whole vectors, and arrays for their sums, each followed by a vector of costs."""
    k, d = centers.shape
    height = padded(d, X.itemsize)
    at = padded(panel_size(k, d), X.itemsize)
    rounded = zeros(buffer, at, k * height).reshape((k, height))
    for j in range(k):
        for t in range(d):
            rounded[j, t] = centers[j, t]
    width = height + padded(1, X.itemsize)
    return rounded, zeros(buffer, at + k * height, k * width).reshape((k, width))


@jit
def add_rows(X, w, i0, i1, labels, rounded, inverse, weight, part):
    """Add rows `i0` to `i1` to the sums of their clusters."""
    d = X.shape[1]
    stride = 0 if w.shape[0] == 1 else 1
    factor = X.dtype.type(inverse)
    for i in range(i0, i1):
        j = labels[i]
        wi = w[i * stride]
        weight[j] += wi
        add_row(X, i * d, rounded, j * rounded.shape[1], factor, X.dtype.type(wi), part, j * part.shape[1], d)


@jit
def flush(part, unit, sum_dx, cost):
    """Add the partial sums to float64, and set them to zero."""
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
