"""The same work on sparse rows (CSR), in float64, without making them dense.

``|x - c|^2 = |x|^2 + |c|^2 - 2 x.c`` costs k multiply-adds for each stored value. Where it cancels, or where two
centers come too close to call, the row is spread out over its columns and compared directly, as the definition of a
label says (`exact`).
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.exact import distance, two_nearest
from coterie.kernels.cpu.jit import jit

CANCELLED = 2.0**-26  # share of |x|^2 + |c|^2 below which a difference keeps too few digits


@jit
def scores(
    data,  # in  (stored,)
    indices,  # in  (stored,)
    start,  # in  the row's first stored value
    stop,  # in  and the one after its last
    columns,  # in  (d, k) centers, transposed
    half,  # in  (k,) half their squared lengths
    out,  # out (k,) |c|^2 / 2 - x.c
):
    """The squared length of the row."""
    norm = 0.0
    for j in range(half.shape[0]):
        out[j] = half[j]
    for e in range(start, stop):
        x = np.float64(data[e])
        norm += x * x
        column = columns[indices[e]]
        for j in range(half.shape[0]):
            out[j] -= x * column[j]
    return norm


@jit
def spread_out(data, indices, start, stop, row):
    """The row as a dense one, row (1, d)."""
    for t in range(row.shape[1]):
        row[0, t] = 0.0
    for e in range(start, stop):
        row[0, indices[e]] = data[e]


@jit
def squared(data, indices, start, stop, norm, score, half, centers, j, row):
    """``|x - c|^2`` from the score, or directly where that would cancel."""
    total = norm + 2.0 * score
    if total > CANCELLED * (norm + 2.0 * half):
        return total
    spread_out(data, indices, start, stop, row)
    return distance(row, 0, centers, j, 1.0) ** 2


@jit
def label_of(data, indices, start, stop, norm, score, half, centers, row, squares):
    """The first of the nearest centers, settled directly where the scores are too close to call."""
    k, d = centers.shape
    best, second, longest, label = np.inf, np.inf, 0.0, -1
    for j in range(k):
        longest = max(longest, half[j])
        if score[j] < best:
            best, second, label = score[j], best, j
        else:
            second = min(second, score[j])
    if second - best > 4.0 * (d + 4) * 2.0**-53 * (norm + 2.0 * longest):
        return label
    spread_out(data, indices, start, stop, row)
    return two_nearest(row, 0, centers, 1.0, squares)[0]


@jit
def lloyd(
    data,  # in  the rows
    indices,
    indptr,
    w,  # in  (n,), or (1,)
    centers,  # in  (k, d)
    columns,  # in  (d, k)
    half,  # in  (k,)
    labels,  # i/o (n,)
    weight,  # out (k,)
    sum_x,  # out (k, d) of w x
    cost,  # out (k,) of w |x - c|^2
):
    """Rows that changed cluster; the sums are added to."""
    stride = 0 if w.shape[0] == 1 else 1
    k, d = centers.shape
    score, squares, row = np.empty(k), np.empty(k), np.empty((1, d))
    moved = 0
    for i in range(indptr.shape[0] - 1):
        start, stop, wi = indptr[i], indptr[i + 1], w[i * stride]
        norm = scores(data, indices, start, stop, columns, half, score)
        j = label_of(data, indices, start, stop, norm, score, half, centers, row, squares)
        moved += labels[i] != j
        labels[i] = j
        weight[j] += wi
        cost[j] += wi * squared(data, indices, start, stop, norm, score[j], half[j], centers, j, row)
        for e in range(start, stop):
            sum_x[j, indices[e]] += wi * data[e]
    return moved


@jit
def squares(
    data,  # in  the rows
    indices,
    indptr,
    centers,  # in  as above
    columns,
    half,
    labels,  # i/o (n,) the clusters of the rows, or -1: the nearest
    out,  # out (n,)
):
    """Squared distance of every row to its center."""
    k, d = centers.shape
    score, others, row = np.empty(k), np.empty(k), np.empty((1, d))
    for i in range(indptr.shape[0] - 1):
        start, stop = indptr[i], indptr[i + 1]
        norm = scores(data, indices, start, stop, columns, half, score)
        if labels[i] < 0:
            labels[i] = label_of(data, indices, start, stop, norm, score, half, centers, row, others)
        j = labels[i]
        out[i] = squared(data, indices, start, stop, norm, score[j], half[j], centers, j, row)


@jit
def all_squares(
    data,  # in  the rows
    indices,
    indptr,
    centers,  # in  as above
    columns,
    half,
    out,  # out (n, k)
):
    """Squared distance of every row to every center."""
    row = np.empty((1, centers.shape[1]))
    for i in range(indptr.shape[0] - 1):
        start, stop = indptr[i], indptr[i + 1]
        norm = scores(data, indices, start, stop, columns, half, out[i])
        for j in range(half.shape[0]):
            out[i, j] = squared(data, indices, start, stop, norm, out[i, j], half[j], centers, j, row)


@jit
def moments(data, indices, indptr, w, sum_x, sum_xx):
    """Sum of the weights; sums of w x and w x^2 of every column are added to."""
    stride = 0 if w.shape[0] == 1 else 1
    total = 0.0
    for i in range(indptr.shape[0] - 1):
        wi = w[i * stride]
        total += wi
        for e in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[e])
            sum_x[indices[e]] += wi * x
            sum_xx[indices[e]] += wi * x * x
    return total
