"""K-means for many numbers of clusters in one call, for tables so small that calls would take longer than passes.

The algorithm is that of `coterie.selection.kmeans_path`, in float64: increasing K by adding centers, and by prefixes of
a k-means++ sequence; decreasing K by merging centers; increasing K again. Rows are stored by column, so that vector
code runs over rows, whatever the number of centers.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_reassociating

BLOCK = 256  # rows whose squares stay in the cache
ADD, SEQUENCE, MERGE = 0, 1, 2  # initial centers: added to fewer ones, prefix of the sequence, or merged from more


class Workspace(NamedTuple):
    """Arrays that `kmeans_path` writes to."""

    centers: Any  # (k, d) current centers
    sums: Any  # (k, d) of w x
    weight: Any  # (k,)
    count: Any  # (k,) rows
    near: Any  # (n,) squared distances to the nearest centers
    square: Any  # (BLOCK,) squared distances to one center
    labels: Any  # (n,) current labels
    nearest: Any  # (n,) nearest centers
    sequence: Any  # (k, d) centers of k-means++
    best: Any  # (m, k, d) means of the best clusters for each K
    weights: Any  # (m, k) their weights
    is_improved: Any  # (m,) whether they were improved since merging began


def new_workspace(n: int, d: int, m: int, k: int) -> Workspace:
    """Arrays for n rows of d columns and m numbers of clusters, at most k."""
    return Workspace(
        np.zeros((k, d)), np.zeros((k, d)), np.zeros(k), np.zeros(k, np.int64), np.empty(n), np.empty(BLOCK),
        np.empty(n, np.int32), np.empty(n, np.int32), np.zeros((k, d)), np.zeros((m, k, d)),
        np.zeros((m, k)), np.zeros(m, np.bool_),
    )  # fmt: skip


@jit
def kmeans_path(
    X,  # in   (n, d)
    columns,  # in   (d, n) the transpose
    w,  # in   (n,) above 0
    ks,  # in   (m,) ascending
    u,  # in   (draws,) uniform in [0, 1): n_greedy + 2 n_candidates for each of the largest number of centers
    n_greedy,  # random candidates for each center of the sequence
    n_candidates,  # random candidates for each additional center
    patience,  # a run stops if its cost exceeds the best by this multiple of its last decrease
    tol,  # squared movement of all centers that ends a run
    max_iter,
    work,  # i/o
    best_costs,  # out  (m,) within-cluster sums of squares
    best_labels,  # out  (m, n)
):
    """Run K-means for all `ks`; return whether there are enough distinct rows."""
    m, max_k = len(ks), ks[-1]
    _first(X, w, u[0], work)
    for r in range(m):
        best_costs[r] = np.inf
    n_used = np.int64(1)
    for s in range(-1, 4 * m):
        r, init = _schedule(s, m)
        if init == ADD and s >= 0 and (r == 0 or (s >= 3 * m and not work.is_improved[r - 1])):
            continue
        if init == ADD:
            if s < 0:
                few, k, n_drawn, few_centers = 1, max_k, n_greedy, work.sequence
            else:
                few, k, n_drawn, few_centers = ks[r - 1], ks[r], n_candidates, work.best[r - 1]
            n_used = _add_centers(X, columns, w, few_centers, few, k, u, n_used, n_drawn, work)
            if n_used < 0:
                return False
        elif init == MERGE:
            _merge(work.best[r + 1], work.weights[r + 1], ks[r + 1], ks[r], work)
        else:
            _copy(work.sequence, ks[r], work.centers)
        if s < 0:
            _copy(work.centers, max_k, work.sequence)
        elif _run_lloyd(X, columns, w, ks[r], r, tol, max_iter, patience, work, best_costs, best_labels) and s >= 2 * m:
            work.is_improved[r] = True
    return True


@jit
def _first(X, w, u, work):
    """Draw the first center of the sequence by weight."""
    for i in range(len(w)):
        work.near[i] = 1.0
    row = _draw(w, work.near, _total(w, work.near), u)
    for t in range(X.shape[1]):
        work.sequence[0, t] = X[row, t]


@jit
def _schedule(s, m):
    """Index into `ks` and initial centers of step s: the sequence (s < 0); adding and prefixes; merging; adding."""
    if s < 0:
        return 0, ADD
    if s < 2 * m:
        return s // 2, s % 2
    if s < 3 * m:
        return max(0, m - 2 - (s - 2 * m)), MERGE if s < 3 * m - 1 else ADD
    return s - 3 * m, ADD


@jit
def _run_lloyd(X, columns, w, k, r, tol, max_iter, patience, work, best_costs, best_labels):
    """Lloyd's algorithm until it converges or cannot become the best; store it if it is; return whether it is."""
    n, d = X.shape
    centers, sums, weight = work.centers, work.sums, work.weight
    for i in range(n):
        work.labels[i] = -1
    for j in range(k):
        weight[j] = 0.0
        work.count[j] = 0
        for t in range(d):
            sums[j, t] = 0.0
    previous, has_converged = np.inf, False
    for step in range(max_iter + 1):
        _nearest(columns, k, work)
        cost = _total(w, work.near)
        moved = _update_clusters(X, w, work)
        is_hopeless = step > 1 and cost - patience * (previous - cost) > best_costs[r]
        if moved == 0 or has_converged or is_hopeless or step == max_iter:
            break
        previous = cost
        has_converged = _move_centers(X, w, k, work) <= tol
    for j in range(k):  # the cost about the means is less than that about the centers by this amount
        if weight[j] > 0:
            for t in range(d):
                mean = sums[j, t] / weight[j]
                cost -= weight[j] * (mean - centers[j, t]) ** 2
                centers[j, t] = mean
    if not cost < best_costs[r]:
        return False
    best_costs[r] = max(cost, 0.0)
    for i in range(n):
        best_labels[r, i] = work.labels[i]
    for j in range(k):
        work.weights[r, j] = weight[j]
        for t in range(d):
            work.best[r, j, t] = centers[j, t]
    return True


@jit
def _nearest(columns, k, work):
    """Nearest center of each row, the first one if several are, and its squared distance."""
    for start in range(0, len(work.near), BLOCK):
        minimum, label = work.near[start : start + BLOCK], work.nearest[start : start + BLOCK]
        for i in range(len(minimum)):
            minimum[i] = np.inf
            label[i] = 0
        for j in range(k):
            _squares(columns, work.centers[j], start, work.square)
            _update_nearest(work.square, minimum, label, np.int32(j))


@jit
def _update_nearest(square, nearest, label, j):
    """Update the nearest centers with center j."""
    for i in range(len(nearest)):
        is_less = square[i] < nearest[i]
        nearest[i] = square[i] if is_less else nearest[i]
        label[i] = j if is_less else label[i]


@jit
def _squares(columns, center, start, square):
    """Squared distances of a block of rows to one center."""
    for i in range(BLOCK):
        square[i] = 0.0
    d, n = len(center), min(BLOCK, columns.shape[1] - start)
    for t in range(0, d - 3, 4):  # four columns at once: fewer loads and stores of the squares
        c0, c1, c2, c3 = center[t], center[t + 1], center[t + 2], center[t + 3]
        x0, x1 = columns[t, start : start + n], columns[t + 1, start : start + n]
        x2, x3 = columns[t + 2, start : start + n], columns[t + 3, start : start + n]
        for i in range(n):
            total = square[i] + (x0[i] - c0) * (x0[i] - c0)
            total += (x1[i] - c1) * (x1[i] - c1)
            total += (x2[i] - c2) * (x2[i] - c2)
            square[i] = total + (x3[i] - c3) * (x3[i] - c3)
    for t in range(d - d % 4, d):
        at, column = center[t], columns[t, start : start + n]
        for i in range(n):
            difference = column[i] - at
            square[i] += difference * difference


@jit_reassociating
def _total(w, near):
    """Sum of w near."""
    total = 0.0
    for i in range(len(w)):
        total += w[i] * near[i]
    return total


@jit_reassociating
def _total_minimum(w, near, square):
    """Sum of w min(near, square)."""
    total = 0.0
    for i in range(len(w)):
        total += w[i] * (square[i] if square[i] < near[i] else near[i])
    return total


@jit
def _update_clusters(X, w, work):
    """Update labels and sums of clusters; return the number of rows whose label changed."""
    labels, nearest, sums, weight, count = work.labels, work.nearest, work.sums, work.weight, work.count
    moved = 0
    for i in range(len(w)):
        a, b = labels[i], nearest[i]
        if a != b:
            moved += 1
            labels[i] = b
            weight[b] += w[i]
            count[b] += 1
            for t in range(X.shape[1]):
                sums[b, t] += w[i] * X[i, t]
            if a >= 0:
                count[a] -= 1
                # The sums of an empty cluster are exactly zero, so that rounding errors do not remain.
                weight[a] = weight[a] - w[i] if count[a] > 0 else 0.0
                for t in range(X.shape[1]):
                    sums[a, t] = sums[a, t] - w[i] * X[i, t] if count[a] > 0 else 0.0
    return moved


@jit
def _move_centers(X, w, k, work):
    """Move centers to the means, those of empty clusters to the costliest row; return the sum of squared movements."""
    near, sums, weight, centers = work.near, work.sums, work.weight, work.centers
    total = 0.0
    for j in range(k):
        far = 0
        if weight[j] == 0:
            for i in range(len(w)):
                if w[i] * near[i] > w[far] * near[far]:
                    far = i
            near[far] = 0.0
        for t in range(X.shape[1]):
            target = sums[j, t] / weight[j] if weight[j] > 0 else X[far, t]
            total += (target - centers[j, t]) ** 2
            centers[j, t] = target
    return total


@jit
def _copy(rows, k, target):
    for j in range(k):
        for t in range(rows.shape[1]):
            target[j, t] = rows[j, t]


@jit
def _draw(w, near, total, u):
    """Draw a row with probability proportional to w near."""
    target, cumulative, row = u * total, 0.0, -1
    for i in range(len(w)):
        mass = w[i] * near[i]
        if mass > 0:
            row = i
            cumulative += mass
            if cumulative > target:
                break
    return row


@jit
def _best_candidate(X, columns, w, near, square, u):
    """The random candidate that decreases the cost most, one for each `u`; -1 if all rows equal a center."""
    total, best, minimum = _total(w, near), -1, np.inf
    if not total > 0:
        return -1
    for c in range(len(u)):
        row, cost = _draw(w, near, total, u[c]), 0.0
        for start in range(0, len(w), BLOCK):
            _squares(columns, X[row], start, square)
            cost += _total_minimum(w[start : start + BLOCK], near[start : start + BLOCK], square)
        if cost < minimum:
            best, minimum = row, cost
    return best


@jit
def _add_center(X, columns, near, square, row, target):
    """Write a row as a center, and update the distances to the nearest one."""
    for t in range(X.shape[1]):
        target[t] = X[row, t]
    for start in range(0, len(near), BLOCK):
        _squares(columns, target, start, square)
        minimum = near[start : start + BLOCK]
        for i in range(len(minimum)):
            minimum[i] = min(minimum[i], square[i])


@jit
def _add_centers(X, columns, w, few_centers, few, k, u, n_used, n_drawn, work):
    """Extend `few_centers` to k centers; return the number of `u` used so far, or -1 if all rows equal a center."""
    _copy(few_centers, few, work.centers)
    _nearest(columns, few, work)
    for j in range(few, k):
        row = _best_candidate(X, columns, w, work.near, work.square, u[n_used : n_used + n_drawn])
        if row < 0:
            return -1
        n_used += n_drawn
        _add_center(X, columns, work.near, work.square, row, work.centers[j])
    return n_used


@jit
def _merge(many_centers, many_weights, many, k, work):
    """Merge the two centers whose union costs least, until k are left."""
    centers, weight, d = work.centers, work.weight, many_centers.shape[1]
    _copy(many_centers, many, centers)
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
