"""K-means for many numbers of clusters in one call, for tables so small that calls would take longer than passes.

The algorithm is that of `coterie.selection.kmeans_path`, in float64: increasing K by adding centers, and by prefixes of
a k-means++ sequence; decreasing K by merging centers; increasing K again. Runs are those of `lloyd_runs`.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.center_runs import add_center, assign, best_candidate, copy_centers, draw_first, new_state
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.lloyd_runs import lloyd


class Workspace(NamedTuple):
    """Arrays that `kmeans_path` writes to."""

    run: Any  # State of the current run
    sequence: Any  # (k, d) centers of k-means++
    best: Any  # (m, k, d) means of the best clusters for each K
    weights: Any  # (m, k) their weights
    is_improved: Any  # (m,) whether they were improved since merging began
    costs: Any  # (m,) within-cluster sums of squares
    labels: Any  # (m, n)


def new_workspace(n: int, d: int, m: int, k: int) -> Workspace:
    """Arrays for n rows of d columns and m numbers of clusters, at most k."""
    best, weights, is_improved = np.zeros((m, k, d)), np.zeros((m, k)), np.zeros(m, np.bool_)
    costs, labels = np.full(m, np.inf), np.empty((m, n), np.int32)
    return Workspace(new_state(n, d, k), np.zeros((k, d)), best, weights, is_improved, costs, labels)


@jit
def kmeans_path(
    table,  # in   Table with weights above 0
    ks,  # in   (m,) ascending
    u,  # in   (draws,) uniform in [0, 1): n_greedy + 2 n_candidates for each of the largest number of centers
    n_greedy,  # random candidates for each center of the sequence
    n_candidates,  # random candidates for each additional center
    patience,  # a run stops if its cost exceeds the best by this multiple of its last decrease
    tol,  # squared movement of all centers that ends a run
    max_iter,
    work,  # i/o  new Workspace
):
    """Run K-means for all `ks`; return whether there are enough distinct rows."""
    m, max_k = len(ks), ks[-1]
    draw_first(table, u[0], work.run)
    copy_centers(work.run.sums, 1, work.sequence)
    n_used = _add_centers(table, work.sequence, 1, max_k, u, np.int64(1), n_greedy, work)
    if n_used < 0:
        return False
    copy_centers(work.run.centers, max_k, work.sequence)
    for r in range(m):
        if r > 0:
            n_used = _add_centers(table, work.best[r - 1], ks[r - 1], ks[r], u, n_used, n_candidates, work)
            if n_used < 0:
                return False
            _run_lloyd(table, ks[r], r, tol, max_iter, patience, work)
        copy_centers(work.sequence, ks[r], work.run.centers)
        _run_lloyd(table, ks[r], r, tol, max_iter, patience, work)
    for r in range(m - 2, -1, -1):
        _merge(work.best[r + 1], work.weights[r + 1], ks[r + 1], ks[r], work)
        work.is_improved[r] = _run_lloyd(table, ks[r], r, tol, max_iter, patience, work)
    for r in range(1, m):
        if work.is_improved[r - 1]:
            n_used = _add_centers(table, work.best[r - 1], ks[r - 1], ks[r], u, n_used, n_candidates, work)
            if n_used < 0:
                return False
            work.is_improved[r] |= _run_lloyd(table, ks[r], r, tol, max_iter, patience, work)
    return True


@jit
def _run_lloyd(table, k, r, tol, max_iter, patience, work):
    """Lloyd's algorithm until it converges or cannot become the best; store it if it is; return whether it is."""
    cost = lloyd(table, k, tol, max_iter, work.costs[r], patience, work.run)
    if not cost < work.costs[r]:
        return False
    work.costs[r] = cost
    for i in range(len(table.w)):
        work.labels[r, i] = work.run.labels[i]
    for j in range(k):
        work.weights[r, j] = work.run.weight[j]
    copy_centers(work.run.centers, k, work.best[r])
    return True


@jit
def _add_centers(table, few_centers, few, k, u, n_used, n_drawn, work):
    """Extend `few_centers` to k centers; return the number of `u` used so far, or -1 if all rows equal a center."""
    run = work.run
    copy_centers(few_centers, few, run.centers)
    assign(table, few, run)
    for j in range(few, k):
        row = best_candidate(table, u[n_used : n_used + n_drawn], run)
        if row < 0:
            return -1
        n_used += n_drawn
        add_center(table, row, run.centers[j], run)
    return n_used


@jit
def _merge(many_centers, many_weights, many, k, work):
    """Merge the two centers whose union costs least, until k are left."""
    centers, weight, d = work.run.centers, work.run.weight, many_centers.shape[1]
    copy_centers(many_centers, many, centers)
    for j in range(many):
        weight[j] = many_weights[j]
    for n_left in range(many, k, -1):
        minimum, first, second = np.inf, 0, 1
        for a in range(n_left):
            for b in range(a + 1, n_left):
                both = weight[a] + weight[b]
                cost = 0.0
                for t in range(d):
                    cost += (centers[a, t] - centers[b, t]) ** 2
                cost *= weight[a] * weight[b] / both if both > 0 else 0.0
                if cost < minimum:
                    minimum, first, second = cost, a, b
        both = weight[first] + weight[second]
        for t in range(d):
            if both > 0:
                centers[first, t] += weight[second] / both * (centers[second, t] - centers[first, t])
            centers[second, t] = centers[n_left - 1, t]
        weight[first] = both
        weight[second] = weight[n_left - 1]
