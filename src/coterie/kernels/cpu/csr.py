"""The same work on sparse rows (CSR), in float64, without ever making them dense.

Every pass costs k multiply-adds for each stored value: ``|x - c|^2 = |x|^2 + |c|^2 - 2 x.c``.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit


@jit
def scores(data, indices, start, stop, columns, half, out):
    """``|c|^2 / 2 - x.c`` for every center; columns (d, k) are the centers, transposed. Returns |x|^2."""
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
def squared(norm, score, half):
    """``|x|^2 + 2 score``, or 0 where that is lost in rounding: a row on its center is at distance 0."""
    total = norm + 2.0 * score
    return total if total > 2.0**-44 * (norm + 2.0 * half) else 0.0


@jit
def lloyd(
    data, indices, indptr,  # in  the rows
    w,                      # in  (n,), or (1,)
    columns,                # in  (d, k) centers, transposed
    half,                   # in  (k,) half their squared lengths
    labels,                 # i/o (n,)
    weight, sum_x, cost,    # out (k,), (k, d), (k,)
):  # fmt: skip
    """Rows that changed cluster; weights, sums of w x and of w |x - c|^2 are added to."""
    stride = 0 if w.shape[0] == 1 else 1
    score = np.empty(half.shape[0])
    moved = 0
    for i in range(indptr.shape[0] - 1):
        norm = scores(data, indices, indptr[i], indptr[i + 1], columns, half, score)
        j = np.argmin(score)
        wi = w[i * stride]
        moved += labels[i] != j
        labels[i] = j
        weight[j] += wi
        cost[j] += wi * squared(norm, score[j], half[j])
        for e in range(indptr[i], indptr[i + 1]):
            sum_x[j, indices[e]] += wi * data[e]
    return moved


@jit
def squares(
    data, indices, indptr,  # in  the rows
    columns, half,          # in  as above
    labels,                 # i/o (n,) the clusters of the rows, or -1: the nearest
    out,                    # out (n,)
):  # fmt: skip
    """Squared distance of every row to its center."""
    score = np.empty(half.shape[0])
    for i in range(indptr.shape[0] - 1):
        norm = scores(data, indices, indptr[i], indptr[i + 1], columns, half, score)
        if labels[i] < 0:
            labels[i] = np.argmin(score)
        out[i] = squared(norm, score[labels[i]], half[labels[i]])


@jit
def all_squares(data, indices, indptr, columns, half, out):
    """Squared distance of every row to every center, out (n, k)."""
    for i in range(indptr.shape[0] - 1):
        norm = scores(data, indices, indptr[i], indptr[i + 1], columns, half, out[i])
        for j in range(half.shape[0]):
            out[i, j] = squared(norm, out[i, j], half[j])


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
