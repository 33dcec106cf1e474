"""K-means of few clusters and columns: one sweep over the rows computes scores, labels and sums.

The search is that of `hard_assignment`. Here all of its arrays are local variables, and blocks of rows stay in the
first-level cache, because the steps of a block are so short that anything else would take longer than they do. Sums are
computed for a few clusters at a time, in registers, with rows in the lanes.
"""

import numpy as np

from coterie.kernels.cpu.hard_assignment import (
    FLUSH_ROWS,
    MAX_AMBIGUOUS,
    append_ambiguous,
    compare_by_differences,
    prepare,
    relabel_block,
    resolve,
)
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.simd import (
    FEW_COLUMNS,
    LABELS,
    PANEL,
    add_few_sums,
    aligned,
    in_whole_panels,
    load_few_columns,
    load_tile,
    mark_uncertain,
    padded,
    points,
    reset_best,
    score_panel,
    score_rest,
)

MAX_SUMS = 96  # clusters x columns; above, adding row by row is faster
TILES = 8  # number of tiles of a block


def applies(k: int, d: int) -> bool:
    """Whether this kernel is the fastest one, for rows of equal weights."""
    return d <= FEW_COLUMNS and k * d <= MAX_SUMS


@jit
def sweep(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    labels,  # i/o (n,) labels of the previous pass, or -1
    has_sums,  # in  whether sums are computed
    buffer,  # i/o (hard_assignment.buffer_size(k, d, itemsize),) work space
):
    """Numbers of rows, sums of x - c and |x - c|^2 of each cluster; number of labels that changed."""
    n, d = X.shape
    k = centers.shape[0]
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    s = prepare(X, centers, True, buffer)
    block = min(s.block, TILES * tile_rows)
    rows, tile, norm, best, second, index = s.rows, s.tile, s.norm, s.best, s.second, s.index
    shift, origin, inverse, panels, half = s.shift, s.differences.origin, X.dtype.type(s.inverse), s.panels, s.half
    rounding, by_differences = s.rounding, s.differences.is_default

    n_whole, columns, n_labels = in_whole_panels(k), d + d % 2, (k + LABELS - 1) // LABELS * LABELS
    if columns > d:  # sums are computed for pairs of columns, and work space contains any values
        for i in range(tile.shape[0]):
            tile[i] = 0
    scaled = scale_centers(X, centers, inverse, n_labels, columns)
    counts, sums = np.zeros(n_labels, np.int64), aligned(n_labels * (columns + 1) * padded(1, X.itemsize), X)
    is_shifted = (shift != 0).any()
    unshifted = aligned(block * height if is_shifted else 0, X)  # tiles for the sums
    weight, sum_dx, cost = np.zeros(k), np.zeros((k, d)), np.zeros(k)
    n_since_flush, moved = 0, 0
    for i0 in range(0, n, block):
        count = min(block, n - i0)
        n_padded = (count + tile_rows - 1) // tile_rows * tile_rows
        if count < n_padded or by_differences[0]:
            for p in range(n_padded):
                rows[p] = min(i0 + p, n - 1)
        if by_differences[0]:
            compare_by_differences(X, centers, s, np.int64(0), n_padded)
        else:
            for p in range(0, n_padded, tile_rows):
                if p + tile_rows <= count:
                    load_few_columns(X, i0 + p, shift, inverse, tile, norm, p, d)
                else:
                    load_tile(X, rows, shift, inverse, tile, norm, p, 0, d)
                reset_best(best, second, p)
                for first in range(0, n_whole, PANEL):
                    score_panel(tile, p * height, panels, first * d, half, first, best, second, index, p, d)
                if n_whole < k:
                    score_rest(tile, p * height, panels, n_whole * d, half, n_whole, k, best, second, index, p, d)
            n_ambiguous = 0
            for p in range(0, count, tile_rows):
                bits = mark_uncertain(best, second, norm, p, rounding.norm, rounding.quick, rounding.tiny)
                if bits != 0:
                    n_ambiguous = append_ambiguous(s, p, bits, count, n_ambiguous)
            if n_ambiguous > 0:
                for p in range(count):
                    rows[p] = i0 + p
                resolve(X, centers, s, n_ambiguous)
                by_differences[0] = n_ambiguous > MAX_AMBIGUOUS * count
        moved += relabel_block(labels, i0, index, count)
        if has_sums:
            for p in range(count, n_padded):
                index[p] = -1
            exact = tile
            if is_shifted:
                exact = unshifted
                for p in range(0, n_padded, tile_rows):
                    if p + tile_rows <= count:
                        load_few_columns(X, i0 + p, origin, inverse, unshifted, norm, p, d)
                    else:
                        load_tile(X, rows, origin, inverse, unshifted, norm, p, 0, d)
            for first in range(0, n_labels, LABELS):
                add_few_sums(exact, index, n_padded, height, columns, first, scaled, counts, sums)
            n_since_flush += count
            if n_since_flush >= FLUSH_ROWS or i0 + count == n:
                flush(counts, sums, columns, 1.0 / s.inverse, weight, sum_dx, cost)
                n_since_flush = 0
    return weight, sum_dx, cost, moved


@jit
def scale_centers(X, centers, inverse, n_labels, columns):
    """Centers in units, padded with zeros (n_labels, columns)."""
    scaled = np.zeros((n_labels, columns), X.dtype)
    for j in range(centers.shape[0]):
        for t in range(centers.shape[1]):
            scaled[j, t] = X.dtype.type(centers[j, t]) * inverse
    return scaled


@jit
def flush(
    counts,  # i/o (padded k,)
    sums,  # i/o (padded k * (columns + 1) * lanes,)
    columns,
    unit,
    weight,  # i/o (k,)
    sum_dx,  # i/o (k, d)
    cost,  # i/o (k,)
):
    """Add the partial sums to float64, and set them to zero."""
    k, d = sum_dx.shape
    lanes = padded(1, sums.itemsize)
    at = 0
    for j in range(k):
        weight[j] += counts[j]
        counts[j] = 0
        for t in range(columns + 1):
            total = 0.0
            for lane in range(at, at + lanes):
                total += sums[lane]
                sums[lane] = 0
            at += lanes
            if t < d:
                sum_dx[j, t] += unit * total
            elif t == columns:
                cost[j] += unit * unit * total
