"""The best clusters of a few rows, by branch and bound."""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit

LOSS = 1e-12  # of the objective: partitions that are better by less are not told apart


@jit
def best_partition(
    X,  # in  (m, d)
    w,  # in  (m,)
    k,  # in
    first,  # in  the rows from here on are to be divided
    tail,  # in  (m + 1,) the least cost of the rows from each on, known for those after `first`
    least,  # in  the cost of `labels`
    labels,  # i/o (m,) a partition of the rows; the best there is, from `first` on
    trials,  # in  after how many rows put into a cluster to give up
):
    """The least cost, and the trials it took; NaN if `trials` did not suffice.

    Rows join clusters one after the other. Whatever becomes of the rest, it costs no less than on its own, and
    joining the others makes nothing cheaper: so a cluster is tried only while what it costs and the tail are less than
    the best partition known.
    """
    m, d = X.shape
    weight, mean = np.zeros(k), np.zeros((k, d))
    old = np.zeros((m, d + 1))  # mean and weight of the cluster that the row joined, without it
    cost = np.zeros(m + 1)  # of the rows before each
    rise, order = np.zeros((m, k)), np.zeros((m, k), np.int64)  # what joining each cluster costs; the cheapest first
    open_to, tried = np.zeros(m, np.int64), np.zeros(m, np.int64)
    used = np.zeros(m + 1, np.int64)  # clusters that have rows before each
    here = np.zeros(m, np.int64)
    at, count = first, 0
    open_to[at] = candidates(X, w, at, k, used[at], weight, mean, rise, order)
    while at >= first:
        going = tried[at] < open_to[at]
        if going:
            j = order[at, tried[at]]
            total = cost[at] + rise[at, j]
            going = total + tail[at + 1] < least * (1.0 - LOSS)  # the others cost more still
        if not going:
            at -= 1
            if at >= first:
                leave(at, here[at], weight, mean, old)
            continue
        tried[at] += 1
        count += 1
        if count > trials:
            return np.nan, count
        here[at] = j
        if at + 1 == m:
            least = total
            for i in range(first, m):
                labels[i] = here[i]
            continue
        used[at + 1] = max(used[at], j + 1)
        cost[at + 1] = total
        join(X, w, at, j, weight, mean, old)
        at += 1
        tried[at] = 0
        open_to[at] = candidates(X, w, at, k, used[at], weight, mean, rise, order)
    return least, count


@jit
def candidates(
    X,  # in  (m, d)
    w,  # in  (m,)
    i,
    k,
    used,
    weight,  # in  (k,)
    mean,  # in  (k, d)
    rise,  # out (m, k)
    order,  # out (m, k)
):
    """How many clusters row `i` may join: those with rows, and one without (the others are its like)."""
    several = min(used + 1, k)
    for j in range(several):
        square = 0.0
        for t in range(X.shape[1]):
            step = X[i, t] - mean[j, t]
            square += step * step
        rise[i, j] = square * (w[i] * weight[j] / (w[i] + weight[j])) if j < used else 0.0
        at = j
        while at > 0 and rise[i, order[i, at - 1]] > rise[i, j]:
            order[i, at] = order[i, at - 1]
            at -= 1
        order[i, at] = j
    return several


@jit
def join(
    X,  # in  (m, d)
    w,  # in  (m,)
    i,
    j,
    weight,  # i/o (k,)
    mean,  # i/o (k, d)
    old,  # out (m, d + 1)
):
    """Row `i` becomes one of cluster `j`."""
    old[i, X.shape[1]] = weight[j]
    weight[j] += w[i]
    share = w[i] / weight[j]
    for t in range(X.shape[1]):
        old[i, t] = mean[j, t]
        mean[j, t] += share * (X[i, t] - mean[j, t])


@jit
def leave(
    i,
    j,
    weight,  # i/o (k,)
    mean,  # i/o (k, d)
    old,  # in  (m, d + 1)
):
    """Cluster `j` as it was before row `i` joined it, to the last bit."""
    for t in range(mean.shape[1]):
        mean[j, t] = old[i, t]
    weight[j] = old[i, mean.shape[1]]
