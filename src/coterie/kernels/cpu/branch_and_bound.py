"""Optimal K-means of a few rows by branch and bound (Brusco 2006)."""

import numpy as np

from coterie.kernels.cpu.jit import jit

TOLERANCE = 1e-12  # relative difference of objectives below which partitions are considered equal


@jit
def best_partition(
    X,  # in  (m, d)
    w,  # in  (m,)
    k,  # in
    first,  # in  rows from here on are partitioned
    tail,  # in  (m + 1,) minimum cost of the rows from each one on, known for rows after `first`
    minimum,  # in  cost of `labels`
    labels,  # i/o (m,) a partition; the optimal one of the rows from `first` on
    max_trials,  # in  maximum number of assignments to try
):
    """The minimum cost, or NaN if `max_trials` was exceeded; and the number of trials.

    Rows are assigned one after the other. The remaining rows cost at least as much as alone (`tail`), and adding them
    decreases no cost. So an assignment is tried only if its cost and the tail are below the best known cost.
    """
    m, d = X.shape
    weight, mean = np.zeros(k), np.zeros((k, d))
    saved = np.zeros((m, d + 1))  # mean and weight of the cluster before the row was added
    cost = np.zeros(m + 1)  # of the rows before each one
    increase, order = np.zeros((m, k)), np.zeros((m, k), np.int64)  # costs of adding a row to each cluster; their order
    n_candidates, n_tried = np.zeros(m, np.int64), np.zeros(m, np.int64)
    n_used = np.zeros(m + 1, np.int64)  # number of clusters of the rows before each one
    current = np.zeros(m, np.int64)
    row, count = first, 0
    n_candidates[row] = candidates(X, w, row, k, n_used[row], weight, mean, increase, order)
    while row >= first:
        is_promising = n_tried[row] < n_candidates[row]
        if is_promising:
            j = order[row, n_tried[row]]
            total = cost[row] + increase[row, j]
            is_promising = total + tail[row + 1] < minimum * (1.0 - TOLERANCE)  # clusters after it in `order` cost more
        if not is_promising:
            row -= 1
            if row >= first:
                remove_row(row, current[row], weight, mean, saved)
            continue
        n_tried[row] += 1
        count += 1
        if count > max_trials:
            return np.nan, count
        current[row] = j
        if row + 1 == m:
            minimum = total
            for i in range(first, m):
                labels[i] = current[i]
            continue
        n_used[row + 1] = max(n_used[row], j + 1)
        cost[row + 1] = total
        add_row(X, w, row, j, weight, mean, saved)
        row += 1
        n_tried[row] = 0
        n_candidates[row] = candidates(X, w, row, k, n_used[row], weight, mean, increase, order)
    return minimum, count


@jit
def candidates(
    X,  # in  (m, d)
    w,  # in  (m,)
    i,
    k,
    n_used,
    weight,  # in  (k,)
    mean,  # in  (k, d)
    increase,  # out (m, k)
    order,  # out (m, k)
):
    """Number of clusters to try for row `i`: those with rows, and one empty cluster, because all empty ones are equal.

    Writes the costs and the order of row `i`.
    """
    n_clusters = min(n_used + 1, k)
    for j in range(n_clusters):
        square = 0.0
        for t in range(X.shape[1]):
            step = X[i, t] - mean[j, t]
            square += step * step
        increase[i, j] = square * (w[i] * weight[j] / (w[i] + weight[j])) if j < n_used else 0.0
        position = j
        while position > 0 and increase[i, order[i, position - 1]] > increase[i, j]:
            order[i, position] = order[i, position - 1]
            position -= 1
        order[i, position] = j
    return n_clusters


@jit
def add_row(
    X,  # in  (m, d)
    w,  # in  (m,)
    i,
    j,
    weight,  # i/o (k,)
    mean,  # i/o (k, d)
    saved,  # out (m, d + 1)
):
    """Add row `i` to cluster `j`."""
    saved[i, X.shape[1]] = weight[j]
    weight[j] += w[i]
    share = w[i] / weight[j]
    for t in range(X.shape[1]):
        saved[i, t] = mean[j, t]
        mean[j, t] += share * (X[i, t] - mean[j, t])


@jit
def remove_row(
    i,
    j,
    weight,  # i/o (k,)
    mean,  # i/o (k, d)
    saved,  # in  (m, d + 1)
):
    """Restore cluster `j` as it was before row `i` was added, to the last bit."""
    for t in range(mean.shape[1]):
        mean[j, t] = saved[i, t]
    weight[j] = saved[i, mean.shape[1]]
