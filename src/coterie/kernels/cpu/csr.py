"""K-means of CSR rows, in float64.

``|x - c|^2 = |x|^2 + |c|^2 - 2 x.c`` takes k multiply-adds for each stored value. If it cancels, or if rounding could
change the label, the row is made dense and its distances are computed by definition (`exact_distance`).
"""

import numpy as np

from coterie.kernels.cpu.exact_distance import distance, two_nearest
from coterie.kernels.cpu.jit import jit

MIN_SHARE = 2.0**-26  # share of |x|^2 + |c|^2 below which a difference has lost too many digits


@jit
def scores(
    data,  # in  (stored,)
    indices,  # in  (stored,)
    start,  # in  index of the first stored value of the row
    stop,  # in  index after its last one
    columns,  # in  (d, k) centers, transposed
    half,  # in  (k,) half of their squared norms
    out,  # out (k,) |c|^2 / 2 - x.c
):
    """Write the scores of one row; return its squared norm."""
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
def make_dense(data, indices, start, stop, row):
    """Write a sparse row to the dense `row` (1, d)."""
    for t in range(row.shape[1]):
        row[0, t] = 0.0
    for e in range(start, stop):
        row[0, indices[e]] = data[e]


@jit
def squared_distance(data, indices, start, stop, norm, score, half, centers, j, row):
    """``|x - c|^2`` from the score, or directly if that would cancel."""
    total = norm + 2.0 * score
    if total > MIN_SHARE * (norm + 2.0 * half):
        return total
    make_dense(data, indices, start, stop, row)
    return distance(row, 0, centers, j, 1.0) ** 2


@jit
def nearest_center(data, indices, start, stop, norm, score, half, centers, row, squares):
    """The nearest center; by definition if rounding of the scores could change it."""
    k, d = centers.shape
    best, second, max_half_norm, label = np.inf, np.inf, 0.0, -1
    for j in range(k):
        max_half_norm = max(max_half_norm, half[j])
        if score[j] < best:
            best, second, label = score[j], best, j
        else:
            second = min(second, score[j])
    if second - best > 4.0 * (d + 4) * 2.0**-53 * (norm + 2.0 * max_half_norm):
        return label
    make_dense(data, indices, start, stop, row)
    return two_nearest(row, 0, centers, 1.0, squares)[0]


@jit
def lloyd(
    data,  # in  rows in CSR format
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
    """Assign rows to their nearest centers and add them to the sums; return the number of labels that changed."""
    stride = 0 if w.shape[0] == 1 else 1
    k, d = centers.shape
    score, squares, row = np.empty(k), np.empty(k), np.empty((1, d))
    moved = 0
    for i in range(indptr.shape[0] - 1):
        start, stop, wi = indptr[i], indptr[i + 1], w[i * stride]
        norm = scores(data, indices, start, stop, columns, half, score)
        j = nearest_center(data, indices, start, stop, norm, score, half, centers, row, squares)
        moved += labels[i] != j
        labels[i] = j
        weight[j] += wi
        cost[j] += wi * squared_distance(data, indices, start, stop, norm, score[j], half[j], centers, j, row)
        for e in range(start, stop):
            sum_x[j, indices[e]] += wi * data[e]
    return moved


@jit
def assigned_squares(
    data,  # in  rows in CSR format
    indices,
    indptr,
    centers,  # in  as above
    columns,
    half,
    labels,  # i/o (n,) cluster of each row; -1 is replaced by the nearest one
    out,  # out (n,)
):
    """Squared distance of each row to its center."""
    k, d = centers.shape
    score, squares, row = np.empty(k), np.empty(k), np.empty((1, d))
    for i in range(indptr.shape[0] - 1):
        start, stop = indptr[i], indptr[i + 1]
        norm = scores(data, indices, start, stop, columns, half, score)
        if labels[i] < 0:
            labels[i] = nearest_center(data, indices, start, stop, norm, score, half, centers, row, squares)
        j = labels[i]
        out[i] = squared_distance(data, indices, start, stop, norm, score[j], half[j], centers, j, row)


@jit
def all_squares(
    data,  # in  rows in CSR format
    indices,
    indptr,
    centers,  # in  as above
    columns,
    half,
    out,  # out (n, k)
):
    """Squared distance of each row to each center."""
    row = np.empty((1, centers.shape[1]))
    for i in range(indptr.shape[0] - 1):
        start, stop = indptr[i], indptr[i + 1]
        norm = scores(data, indices, start, stop, columns, half, out[i])
        for j in range(half.shape[0]):
            out[i, j] = squared_distance(data, indices, start, stop, norm, out[i, j], half[j], centers, j, row)


@jit
def moments(data, indices, indptr, w, sum_x, sum_xx):
    """Add w x to `sum_x` (d,) and w x^2 to `sum_xx` (d,); return the sum of the weights."""
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
