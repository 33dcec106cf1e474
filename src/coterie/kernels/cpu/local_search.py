"""Local search for K-means: swaps of centers and moves of single rows, each followed by Lloyd's algorithm."""

import numpy as np

from coterie.kernels.cpu.incremental_lloyd import (
    CALL,
    PAIR,
    VISIT,
    assign,
    assign_after_relocation,
    copy,
    list_indices,
    lloyd,
    move_center,
    move_row,
    reassign,
    squared_distance,
    store_second,
    two_nearest,
)
from coterie.kernels.cpu.jit import jit

MAX_ITER = 1000  # maximum number of iterations of Lloyd's algorithm after a move
MIN_DECREASE = 1e-10  # minimum relative decrease of the objective by a move, which rounding cannot explain
ULP = 2.0**-52  # relative decrease below which a move of a row does not change the objective
SPLIT_ITER = 4  # iterations of 2-means by which the gain of a split is estimated


@jit
def update_losses(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution
    m,  # i/o Moves
    work,  # i/o (1,)
):
    """Make second nearest centers exact, and compute the increase of the objective if a center is removed."""
    n, d = X.shape
    k = s.centers.shape[0]
    n_moved, n_searched, n_compared, total = 0, 0, 0, 0.0
    for j in range(k):
        m.loss[j] = 0.0
        if m.has_moved[j]:
            n_moved += 1
            m.stale[j] = True
            for b in range(k):
                m.tried[j, b] = False
                m.tried[b, j] = False
    s.state[1] = 0.0
    for i in range(n):
        a = s.labels[i]
        if s.second[i] < 0 or m.has_moved[s.second[i]] or 2 * n_moved > k:
            nearest, second_nearest = two_nearest(X, i, s.columns, m.squares)
            n_searched += 1
            store_second(s, i, second_nearest if nearest == a else nearest, m.squares)
        else:
            for j in range(k):
                if m.has_moved[j] and j != a:
                    square = squared_distance(X, i, s.centers, j)
                    n_compared += 1
                    if square < s.second_square[i]:
                        s.second[i], s.second_square[i] = j, square
            s.lower_bound[i] = np.sqrt(s.second_square[i])
        if m.has_moved[a]:
            s.square[i] = squared_distance(X, i, s.centers, a)
            n_compared += 1
        total += w[i] * s.square[i]
        m.loss[a] += w[i] * (s.second_square[i] - s.square[i])
    for j in range(k):
        m.has_moved[j] = False
    s.state[0] = total
    work[0] += n_searched * k * (d + PAIR) + n_compared * (d + PAIR) + n * VISIT


@jit
def update_splits(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # in  Solution
    m,  # i/o Moves
    u,  # in  (k,) uniform in [0, 1)
    work,  # i/o (1,)
):
    """Compute outdated splits of clusters into two centers, by 2-means from a random row, weighted by its cost."""
    n, d = X.shape
    k = s.centers.shape[0]
    rows = 0
    for j in range(k):
        for q in range(2):
            m.cost[q, j] = 0.0
        if m.stale[j]:
            rows += s.count[j]
    if rows == 0:
        return
    for i in range(n):
        m.cost[0, s.labels[i]] += w[i] * s.square[i]
    for i in range(n):
        a = s.labels[i]
        if m.stale[a] and m.cost[1, a] <= u[a] * m.cost[0, a]:
            m.cost[1, a] += w[i] * s.square[i]
            for t in range(d):
                m.right[a, t] = X[i, t]
                m.left[a, t] = 2.0 * s.centers[a, t] - X[i, t]
    for _ in range(SPLIT_ITER):
        for q in range(2):
            for j in range(k):
                for t in range(d + 1):
                    m.half_sums[q, j, t] = 0.0
        for i in range(n):
            a = s.labels[i]
            if m.stale[a]:
                q = 1 if squared_distance(X, i, m.right, a) < squared_distance(X, i, m.left, a) else 0
                m.half_sums[q, a, d] += w[i]
                for t in range(d):
                    m.half_sums[q, a, t] += w[i] * X[i, t]
        for j in range(k):
            if m.stale[j]:
                m.gain[j] = 0.0
                one, two = m.half_sums[0, j, d], m.half_sums[1, j, d]
                if one > 0.0 and two > 0.0:
                    for t in range(d):
                        m.left[j, t] = m.half_sums[0, j, t] / one
                        m.right[j, t] = m.half_sums[1, j, t] / two
                        m.gain[j] += (m.left[j, t] - m.right[j, t]) ** 2
                    m.gain[j] *= one / (one + two) * two
    for j in range(k):
        m.stale[j] = False
    work[0] += rows * (3 * d + PAIR) * SPLIT_ITER + 2 * n * VISIT


@jit
def evaluate_moves(X, w, s, m, u, work):
    """Gains of all splits and losses of all removals."""
    update_losses(X, w, s, m, work)
    update_splits(X, w, s, m, u, work)
    work[0] += CALL


@jit
def best_pair(m):
    """The split and the removal with the largest estimated gain that were not tried yet; -1 if there is none."""
    k = m.gain.shape[0]
    target, source, best = -1, -1, -np.inf
    for a in range(k):
        if m.gain[a] > 0.0:
            for b in range(k):
                if a != b and not m.tried[a, b] and m.gain[a] - m.loss[b] > best:
                    target, source, best = a, b, m.gain[a] - m.loss[b]
    return target, source


@jit
def relocate(s, m, target, source):
    """Move the center of cluster `source` into cluster `target`: they become the two centers of its split."""
    for t in range(s.centers.shape[1]):
        move_center(s, target, t, m.left[target, t])
        move_center(s, source, t, m.right[target, t])
    m.relocated[target] = True
    m.relocated[source] = True


@jit
def improve_by_swap(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution
    trial,  # i/o Solution for trials
    m,  # i/o Moves
    u,  # in  (k,) uniform in [0, 1)
    max_tries,  # in  maximum number of swaps without success
    patience,  # in  see incremental_lloyd.lloyd
    max_iter,  # in  maximum number of iterations
    work,  # i/o (1,)
):
    """Try swaps in the order of their estimated gains until one decreases the objective; return whether one did."""
    k = s.centers.shape[0]
    evaluate_moves(X, w, s, m, u, work)
    for _ in range(max_tries):
        target, source = best_pair(m)
        if target < 0:
            return False
        m.tried[target, source] = True
        copy(s, trial)
        work[0] += X.shape[0] * VISIT
        for j in range(k):
            m.relocated[j] = False
        relocate(trial, m, target, source)
        assign_after_relocation(X, w, trial, m, work)
        if lloyd(X, w, trial, m, s.state[0] * (1.0 - MIN_DECREASE), patience, max_iter, work):
            copy(trial, s)
            return True
        for j in range(k):
            m.has_moved[j] = False
    return False


@jit
def swap_several(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution with known splits and losses
    m,  # i/o Moves
    target,  # in  (q,) clusters to split
    source,  # in  (q,) centers to remove
    max_iter,  # in  maximum number of iterations
    work,  # i/o (1,)
):
    """Make several swaps at once, then run Lloyd's algorithm; return whether it has not converged."""
    for j in range(s.centers.shape[0]):
        m.relocated[j] = False
    for q in range(target.shape[0]):
        relocate(s, m, target[q], source[q])
    assign_after_relocation(X, w, s, m, work)
    return continue_lloyd(X, w, s, m, max_iter, work)


@jit
def start(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution, of which only the centers are used
    m,  # i/o Moves
    max_iter,  # in  maximum number of iterations
    work,  # i/o (1,)
):
    """Run Lloyd's algorithm from the centers; return whether it has not converged."""
    assign(X, w, s, m, work)
    return continue_lloyd(X, w, s, m, max_iter, work)


@jit
def continue_lloyd(X, w, s, m, max_iter, work):
    """Continue Lloyd's algorithm; return whether it has not converged."""
    lloyd(X, w, s, m, np.inf, np.inf, max_iter, work)
    return list_indices(m.moved, m.indices) > 0


@jit
def move_rows(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution
    m,  # i/o Moves
    work,  # i/o (1,)
):
    """Move single rows if that decreases the objective (Hartigan & Wong 1979); return how many were moved.

    Removing a row from its cluster decreases the objective by ``w W / (W - w) |x - c|^2``, and adding it to another one
    increases it by ``w W / (W + w) |x - c|^2``. As second nearest centers are exact, one comparison rejects most rows.
    Lloyd's algorithm must continue afterwards.
    """
    n, d = X.shape
    k = s.centers.shape[0]
    update_losses(X, w, s, m, work)
    min_weight, changes, n_searched = np.inf, 0, 0
    for j in range(k):
        min_weight = min(min_weight, s.weight[j])
        m.moved[j] = False
        for t in range(d):
            m.before[j, t] = s.centers[j, t]
    for i in range(n):
        a = s.labels[i]
        if s.count[a] == 1 or s.weight[a] <= w[i]:
            continue
        removal_factor = s.weight[a] / (s.weight[a] - w[i])
        if s.second_square[i] * (min_weight / (min_weight + w[i])) >= s.square[i] * removal_factor and not m.moved[a]:
            continue
        two_nearest(X, i, s.columns, m.squares)
        n_searched += 1
        target, minimum = -1, m.squares[a] * removal_factor * (1.0 - MIN_DECREASE) - ULP * s.state[0] / w[i]
        for j in range(k):
            cost = m.squares[j] * (s.weight[j] / (s.weight[j] + w[i]))
            if cost < minimum and j != a:
                target, minimum = j, cost
        if target >= 0:
            move_row(X, w, s, i, target)
            changes += 1
            min_weight = min(min_weight, s.weight[a])
            s.second[i] = -1
            s.lower_bound[i] = -1.0  # must be searched
            update_center(s, m, a)
            update_center(s, m, target)
    work[0] += CALL + n_searched * k * (d + PAIR) + n * VISIT
    if changes:
        s.state[1] += max_movement(s, m)
        reassign(X, w, s, m, work)
    return changes


@jit
def update_center(s, m, j):
    """Move the center of a cluster to its mean after a row was added or removed."""
    for t in range(s.centers.shape[1]):
        move_center(s, j, t, s.sums[j, t] / s.weight[j])
    m.moved[j] = True
    m.has_moved[j] = True


@jit
def max_movement(s, m):
    """Largest movement of a center since `before`."""
    largest = 0.0
    for j in range(s.centers.shape[0]):
        largest = max(largest, squared_distance(s.centers, j, m.before, j))
    return np.sqrt(largest)
