"""K-means of rows with missing values, compiled; for the definitions and arguments see `plain.nan_kmeans`.

A pass is that of `hard_assignment`, with squared distances instead of scores, because |c|^2 differs for each set of
observed columns. If rounding could change the label, it is computed by definition (`exact_distance`), for the row and
the centers with zeros in the columns that the row misses.
"""

import numpy as np

from coterie.kernels.cpu import add_fields, blocks, exact_distance, read_only, thread_buffer
from coterie.kernels.cpu.hard_assignment import FLUSH_ROWS, flush, pack_unshifted, pad_centers, prepare
from coterie.kernels.cpu.hard_assignment import relabel_block as relabel
from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.simd import PANEL, add_row_nan, aligned, load_tile, padded, points, square_panel_nan
from coterie.kernels.plain import Weights, weights
from coterie.kernels.plain import nan_kmeans as plain
from coterie.kernels.plain.nan_kmeans import ObservedSums

UNIT_ROWS = 64  # number of rows from which the unit is chosen
MAX_TILES = 8  # maximum number of tiles of a block


def lloyd(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> ObservedSums:
    buffer = thread_buffer(centers, X.dtype)
    *sums, moved, observed = sum_rows(
        read_only(X), weights(w), read_only(centers), _few_rows(X, centers), labels, buffer
    )
    if all(np.isfinite(values).all() for values in (*sums, observed)):
        return ObservedSums(*sums, int(moved), observed)
    return _lloyd_in_float64(X, w, centers, labels)._replace(moved=int(moved))


def nearest(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    labels = np.empty(len(X), np.int32)
    buffer = thread_buffer(centers, X.dtype)
    write_labels(read_only(X), read_only(centers), _few_rows(X, centers), labels, buffer)
    return labels


def assigned_squares(X: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    out = np.empty(len(X))
    write_assigned_squares(read_only(X), read_only(centers), read_only(labels), _inverse(X, centers), out)
    return out


def distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    out = np.empty((len(X), len(centers)), X.dtype)
    all_distances(read_only(X), read_only(centers), _inverse(X, centers), out)
    return out


def fill_missing(X: np.ndarray, values: np.ndarray) -> np.ndarray:
    out = np.empty(X.shape, X.dtype)
    write_filled(read_only(X), read_only(values.astype(X.dtype)), out)
    return out


def _few_rows(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Rows without missing values from which, with the centers, the unit is chosen."""
    return read_only(plain.fill_missing(X[:UNIT_ROWS], centers[0]))


def _inverse(X: np.ndarray, centers: np.ndarray) -> float:
    shift = np.empty(X.shape[1], X.dtype)
    return 1.0 / exact_distance.choose_unit(_few_rows(X, centers), read_only(centers), shift)


def _lloyd_in_float64(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> ObservedSums:
    """The same sums if the square of an outlier overflows the dtype of the data."""
    parts = blocks(X, 1024)
    sums = (plain.lloyd(X[part], None if w is None else w[part], centers, labels[part]) for part in parts)
    return ObservedSums(*add_fields(sums))


@jit
def sum_rows(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,) if all weights are equal
    centers,  # in  (k, d)
    few_rows,  # in  (.., d) without missing values
    labels,  # i/o (n,) labels of the previous pass, or -1
    buffer,  # i/o (hard_assignment.buffer_size(k, d, itemsize),) work space
):
    """Sums of w, w (x - c) and w |x - c|^2 of each cluster; number of labels that changed; sums of observed w."""
    (n, d), k = X.shape, centers.shape[0]
    s, block = prepare_block(few_rows, centers, buffer)
    rounded, part = pad_centers(X, centers, buffer)
    part_observed = aligned(rounded.size, X).reshape(rounded.shape)
    weight, sum_dx, cost, observed = np.zeros(k), np.zeros((k, d)), np.zeros(k), np.zeros((k, d))
    n_since_flush, moved = 0, 0
    for i0 in range(0, n, block):
        i1 = min(n, i0 + block)
        search(X, centers, s, block, i0, i1)
        moved += relabel(labels, i0, s.index, i1 - i0)
        add_rows(X, w, i0, i1, labels, rounded, s.inverse, weight, part, part_observed)
        n_since_flush += i1 - i0
        if n_since_flush >= FLUSH_ROWS or i1 == n:
            flush(part, 1.0 / s.inverse, sum_dx, cost)
            flush_observed(part_observed, observed)
            n_since_flush = 0
    return weight, sum_dx, cost, moved, observed


@jit
def write_labels(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    few_rows,  # in  as above
    labels,  # out (n,)
    buffer,  # i/o as above
):
    """Labels of all rows."""
    s, block = prepare_block(few_rows, centers, buffer)
    for i0 in range(0, X.shape[0], block):
        i1 = min(X.shape[0], i0 + block)
        search(X, centers, s, block, i0, i1)
        relabel(labels, i0, s.index, i1 - i0)


@jit
def prepare_block(few_rows, centers, buffer):
    """Panels of unshifted centers, so that differences lose no digits, and the number of rows of a block."""
    s = prepare(few_rows, centers, False, buffer)
    pack_unshifted(centers, s)
    return s, min(s.block, MAX_TILES * points(few_rows.itemsize))


@jit
def search(X, centers, s, block, i0, i1):
    """Write the labels of rows `i0` to `i1` to `s.index`."""
    d, count, shift, panels, start = (
        X.shape[1],
        i1 - i0,
        s.differences.origin,
        s.differences.panels,
        s.differences.start,
    )
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    n_padded = (count + tile_rows - 1) // tile_rows * tile_rows
    for p in range(n_padded):
        s.rows[p] = min(i0 + p, i1 - 1)
        s.best[p] = np.inf
        s.second[p] = np.inf
    for p in range(0, n_padded, tile_rows):
        load_tile(X, s.rows, shift, X.dtype.type(s.inverse), s.tile, s.norm, p, block, d)
    for first in range(0, centers.shape[0], PANEL):
        for p in range(0, n_padded, tile_rows):
            square_panel_nan(s.tile, p * height, panels, first * d, start, first, s.best, s.second, s.index, p, d)
    # The relative error of a square, and of that in the definition, is at most (d + 4) u, unless it has lost digits to
    # underflow, as those below `tiny` may have.
    rounding = X.dtype.type(4.04 * (d + 4) * 2.0 ** (-24 if X.itemsize == 4 else -53))
    tiny = X.dtype.type(2.0 ** (-90 if X.itemsize == 4 else -900))
    if count_ambiguous(s.best, s.second, rounding, tiny, count) > 0:
        resolve_ambiguous(X, centers, s, i0, count, rounding, tiny)


@jit
def resolve_ambiguous(X, centers, s, i0, count, rounding, tiny):
    """Labels by definition of rows whose two smallest squares differ by no more than rounding."""
    row, others = np.empty((1, X.shape[1])), np.empty(centers.shape)
    for p in range(count):
        if not (s.second[p] - s.best[p] > rounding * s.best[p] + tiny):
            zero_missing(X, i0 + p, centers, row, others)
            s.index[p], _ = exact_distance.two_nearest(row, 0, others, s.inverse, s.squares)


@jit_reassociating
def count_ambiguous(best, second, rounding, tiny, count):
    """Number of rows whose two smallest squares differ by no more than rounding."""
    total = 0
    for p in range(count):
        total += not (second[p] - best[p] > rounding * best[p] + tiny)
    return total


@jit
def zero_missing(
    X,  # in  (n, d)
    i,  # in  index of the row
    centers,  # in  (k, d)
    row,  # out (1, d)
    others,  # out (k, d)
):
    """Copy a row and the centers, with zeros in the columns that the row misses."""
    for t in range(X.shape[1]):
        row[0, t] = 0.0 if np.isnan(X[i, t]) else X[i, t]
    for j in range(centers.shape[0]):
        for t in range(X.shape[1]):
            others[j, t] = 0.0 if np.isnan(X[i, t]) else centers[j, t]


@jit
def add_rows(X, w, i0, i1, labels, rounded, inverse, weight, part, part_observed):
    """Add rows `i0` to `i1` to the sums of their clusters."""
    d, height, width = X.shape[1], rounded.shape[1], part.shape[1]
    stride = 0 if w.shape[0] == 1 else 1
    factor = X.dtype.type(inverse)
    for i in range(i0, i1):
        j, wi = labels[i], w[i * stride]
        weight[j] += wi
        add_row_nan(
            X, i * d, rounded, j * height, factor, X.dtype.type(wi), part, j * width, part_observed, j * height, d
        )  # fmt: skip


@jit
def flush_observed(part, observed):
    """Add the partial sums to float64, and set them to zero."""
    for j in range(observed.shape[0]):
        for t in range(observed.shape[1]):
            observed[j, t] += part[j, t]
        for t in range(part.shape[1]):
            part[j, t] = 0


@jit
def write_assigned_squares(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    labels,  # in  (n,)
    inverse,  # in  1 / unit
    out,  # out (n,)
):
    """Squared distance of each row to the center of its cluster; missing values are replaced by those of the center."""
    row = np.empty((1, X.shape[1]))
    for i in range(X.shape[0]):
        for t in range(X.shape[1]):
            row[0, t] = centers[labels[i], t] if np.isnan(X[i, t]) else X[i, t]
        out[i] = (exact_distance.distance(row, 0, centers, labels[i], inverse) / inverse) ** 2


@jit
def all_distances(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    inverse,  # in  1 / unit
    out,  # out (n, k)
):
    """Distance of each row to each center over the observed columns."""
    row, others = np.empty((1, X.shape[1])), np.empty(centers.shape)
    for i in range(X.shape[0]):
        zero_missing(X, i, centers, row, others)
        for j in range(centers.shape[0]):
            out[i, j] = exact_distance.distance(row, 0, others, j, inverse) / inverse


@jit
def write_filled(
    X,  # in  (n, d)
    values,  # in  (d,)
    out,  # out (n, d)
):
    """Copy rows, with missing values replaced by those of `values`."""
    for i in range(X.shape[0]):
        for t in range(X.shape[1]):
            out[i, t] = values[t] if np.isnan(X[i, t]) else X[i, t]
