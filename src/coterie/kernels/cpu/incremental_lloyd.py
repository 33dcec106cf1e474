"""Lloyd's algorithm with incremental updates, for a local search that changes few centers at a time.

A solution stores the nearest and second nearest center of each row, and the sums of each cluster. So a change takes
time for the affected rows only, not a pass of all rows over all centers. Each kernel adds its number of multiply-adds
to `work[0]`: budgets are counted, not timed. The moves are in `local_search`.
"""

from collections import namedtuple

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_reassociating

PAIR = 4  # cost of a pair of row and center, in multiply-adds, in addition to its columns
VISIT = 3  # cost of visiting a row
CALL = 30_000  # cost of calling a kernel

Solution = namedtuple(
    "Solution",
    (
        "centers",  # (k, d)
        "columns",  # (d, k) the transpose, for searches along the centers
        "sums",  # (k, d) of w x
        "weight",  # (k,) of w
        "count",  # (k,) rows
        "labels",  # (n,) nearest center
        "square",  # (n,) squared distance to the nearest center
        "second",  # (n,) second nearest center, if `second_square` is its distance; -1 if unknown
        "second_square",  # (n,) squared distance to it; no other center that has not moved since is nearer
        "lower_bound",  # (n,) the distance to each other center is at least this minus `state[1]`
        "state",  # (2,) objective; total movement of centers since `lower_bound` was exact
    ),
)

Moves = namedtuple(
    "Moves",
    (
        "gain",  # (k,) decrease of the objective if a cluster is split
        "loss",  # (k,) increase if its center is removed
        "left",  # (k, d) one center of a split cluster
        "right",  # (k, d) the other
        "stale",  # (k,) whether the split must be computed again
        "tried",  # (k, k) whether splitting one and removing the other was tried without success
        "moved",  # (k,) centers that move in this iteration
        "has_moved",  # (k,) centers that have moved since second nearest centers were exact
        "relocated",  # (k,) centers that were just relocated
        "indices",  # (k,) indices of some centers
        "squares",  # (k,) squared distances of one row
        "before",  # (k, d) centers before single rows were moved
        "cost",  # (2, k) of a cluster, and of its rows so far
        "half_sums",  # (2, k, d + 1) sums and weights of the two halves
    ),
)


@jit_reassociating
def squared_distance(X, i, centers, j):
    """Squared distance of a row and a center."""
    total = 0.0
    for t in range(X.shape[1]):
        q = X[i, t] - centers[j, t]
        total += q * q
    return total


@jit
def two_nearest(X, i, columns, squares):
    """Nearest and second nearest center of a row; all squared distances are written to `squares` (k,)."""
    d, k = columns.shape
    for j in range(k):
        squares[j] = 0.0
    for t in range(d):
        x = X[i, t]
        for j in range(k):
            q = x - columns[t, j]
            squares[j] += q * q
    first, second, minimum, second_minimum = 0, -1, squares[0], np.inf
    for j in range(1, k):
        if squares[j] < second_minimum:
            if squares[j] < minimum:
                second, second_minimum = first, minimum
                first, minimum = j, squares[j]
            else:
                second, second_minimum = j, squares[j]
    return first, second


@jit
def assign(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution, of which only the centers are used
    m,  # i/o Moves
    work,  # i/o (1,)
):
    """Assign each row to its nearest center, and compute the sums of all clusters."""
    n, d = X.shape
    k = s.centers.shape[0]
    total = 0.0
    for j in range(k):
        s.weight[j] = 0.0
        s.count[j] = 0
        m.stale[j] = True
        m.moved[j] = True
        m.has_moved[j] = False
        for t in range(d):
            s.sums[j, t] = 0.0
            s.columns[t, j] = s.centers[j, t]
        for b in range(k):
            m.tried[j, b] = False
    s.state[1] = 0.0
    for i in range(n):
        first, second_nearest = two_nearest(X, i, s.columns, m.squares)
        s.labels[i] = -1
        move_row(X, w, s, i, first)
        store_second(s, i, second_nearest, m.squares)
        s.square[i] = m.squares[first]
        total += w[i] * s.square[i]
    s.state[0] = total
    work[0] += CALL + n * k * (d + PAIR)


@jit
def store_second(s, i, second_nearest, squares):
    """Store the second nearest center and the lower bound after a full search."""
    s.second[i] = second_nearest
    s.second_square[i] = squares[second_nearest] if second_nearest >= 0 else np.inf
    s.lower_bound[i] = np.sqrt(s.second_square[i]) + s.state[1]


@jit
def move_row(X, w, s, i, j):
    """Move row `i` from its cluster, if it has one, to cluster `j`."""
    a = s.labels[i]
    if a >= 0:
        s.count[a] -= 1
        s.weight[a] = s.weight[a] - w[i] if s.count[a] > 0 else 0.0
        for t in range(X.shape[1]):
            s.sums[a, t] = s.sums[a, t] - w[i] * X[i, t] if s.count[a] > 0 else 0.0
    s.labels[i] = j
    s.count[j] += 1
    s.weight[j] += w[i]
    for t in range(X.shape[1]):
        s.sums[j, t] += w[i] * X[i, t]


@jit
def copy(
    s,  # in  Solution
    t,  # out Solution
):
    """Copy a solution."""
    k, d = s.centers.shape
    for j in range(k):
        t.weight[j] = s.weight[j]
        t.count[j] = s.count[j]
        for c in range(d):
            t.centers[j, c] = s.centers[j, c]
            t.sums[j, c] = s.sums[j, c]
    for c in range(d):
        for j in range(k):
            t.columns[c, j] = s.columns[c, j]
    for i in range(s.labels.shape[0]):
        t.labels[i] = s.labels[i]
        t.square[i] = s.square[i]
        t.second[i] = s.second[i]
        t.second_square[i] = s.second_square[i]
        t.lower_bound[i] = s.lower_bound[i]
    t.state[0] = s.state[0]
    t.state[1] = s.state[1]


@jit
def move_center(s, j, t, value):
    """Set column `t` of center `j`."""
    s.centers[j, t] = value
    s.columns[t, j] = value


@jit
def assign_after_relocation(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution with known second nearest centers, after some centers were relocated
    m,  # i/o Moves; `relocated` are these centers; `moved` is set for clusters whose rows changed
    work,  # i/o (1,)
):
    """Assign rows to their nearest centers after relocations; only rows that are affected are searched."""
    n, d = X.shape
    k = s.centers.shape[0]
    total, n_searched, n_compared = 0.0, 0, 0
    for j in range(k):
        m.moved[j] = m.relocated[j]
        m.has_moved[j] |= m.relocated[j]
    n_relocated = list_indices(m.relocated, m.indices)
    for i in range(n):
        a = s.labels[i]
        is_relocated = m.relocated[a]
        if s.second[i] < 0 or 2 * n_relocated > k or (is_relocated and m.relocated[s.second[i]]):
            first, second_minimum = two_nearest(X, i, s.columns, m.squares)
            minimum = m.squares[first]
            if first != a:
                move_row(X, w, s, i, first)
            store_second(s, i, second_minimum, m.squares)
            n_searched += 1
        else:
            # The nearest of the other centers is known, and `second_square` is a lower bound for the rest of them.
            candidate, minimum = (s.second[i], s.second_square[i]) if is_relocated else (a, s.square[i])
            first, minimum, second_minimum = nearest_of(
                X, i, s.centers, m.indices, n_relocated, candidate, minimum, s.second_square[i]
            )
            n_compared += n_relocated
            s.lower_bound[i] = np.sqrt(second_minimum) + s.state[1]
            if first == s.second[i]:
                s.second[i] = -1
            if first != a:
                move_row(X, w, s, i, first)
        if first != a:
            mark_change(m, a, first, m.moved)
        s.square[i] = minimum
        total += w[i] * minimum
    s.state[0] = total
    work[0] += n_searched * k * (d + PAIR) + n_compared * (d + PAIR) + n * VISIT


@jit
def list_indices(
    flags,  # in  (k,)
    indices,  # out (k,) indices where they are set
):
    """List the indices of flags; return their number."""
    count = 0
    for j in range(flags.shape[0]):
        if flags[j]:
            indices[count] = j
            count += 1
    return count


@jit
def nearest_of(X, i, centers, indices, count, first, minimum, second_minimum):
    """Nearest center of `first` and the listed ones, its squared distance, and that of the second nearest."""
    initial = first
    for q in range(count):
        j = indices[q]
        if j != initial:
            square = squared_distance(X, i, centers, j)
            if square < minimum:
                second_minimum = min(second_minimum, minimum)
                first, minimum = j, square
            else:
                second_minimum = min(second_minimum, square)
    return first, minimum, second_minimum


@jit
def mark_change(m, a, b, changed):
    """Mark clusters `a` and `b` after a row moved from one to the other."""
    changed[a] = True
    changed[b] = True
    m.has_moved[a] = True
    m.has_moved[b] = True


@jit
def update_centers(s, m):
    """Move centers of changed clusters to the means; return the number of moved centers, and the largest movement."""
    k, d = s.centers.shape
    count, largest = 0, 0.0
    for j in range(k):
        if m.moved[j]:
            m.moved[j] = False
            if s.count[j] > 0:
                square = 0.0
                for t in range(d):
                    mean = s.sums[j, t] / s.weight[j]
                    square += (mean - s.centers[j, t]) ** 2
                    move_center(s, j, t, mean)
                m.moved[j] = square > 0.0
                m.has_moved[j] = True
                count += m.moved[j]
                largest = max(largest, square)
    return count, np.sqrt(largest)


@jit
def reassign(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution
    m,  # i/o Moves; in: `moved` are centers that moved; out: clusters whose rows changed
    work,  # i/o (1,)
):
    """Assign each row to its nearest center, skipping rows by bounds; return the number of labels that changed."""
    n, d = X.shape
    k = s.centers.shape[0]
    total, changes, n_searched, n_compared = 0.0, 0, 0, 0
    for j in range(k):
        m.relocated[j] = False  # used here for clusters that change
    count = list_indices(m.has_moved, m.indices)
    for i in range(n):
        a = s.labels[i]
        if m.moved[a]:
            s.square[i] = squared_distance(X, i, s.centers, a)
            n_compared += 1
        margin = s.lower_bound[i] - s.state[1]
        if margin < 0.0 or s.square[i] > margin * margin:
            if 2 * count <= k and s.square[i] <= s.second_square[i]:  # only a center that has moved can be nearer
                square, second_square = s.square[i], s.second_square[i]
                first, square, second_square = nearest_of(X, i, s.centers, m.indices, count, a, square, second_square)
                n_compared += count
                s.square[i] = square
                s.lower_bound[i] = np.sqrt(second_square) + s.state[1]
                if first != a:
                    move_row(X, w, s, i, first)
            else:
                first, second_nearest = two_nearest(X, i, s.columns, m.squares)
                n_searched += 1
                if first != a and m.squares[first] < m.squares[a]:
                    move_row(X, w, s, i, first)
                elif first != a:
                    second_nearest, first = first, a
                store_second(s, i, second_nearest, m.squares)
                s.square[i] = m.squares[first]
            if first != a:
                mark_change(m, a, first, m.relocated)
                changes += 1
        total += w[i] * s.square[i]
    for j in range(k):
        m.moved[j] = m.relocated[j]
    s.state[0] = total
    work[0] += n_searched * k * (d + PAIR) + n_compared * (d + PAIR) + n * VISIT
    return changes


@jit
def lloyd(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution
    m,  # i/o Moves; `moved` are clusters whose rows have changed
    goal,  # in  stop if the objective is unlikely to fall below this
    patience,  # in  maximum of (objective - goal) divided by the last decrease
    max_iter,  # in  maximum number of iterations; `moved` is then the state to continue from
    work,  # i/o (1,)
):
    """Run Lloyd's algorithm until it converges or is unlikely to reach the goal; return whether it reached it."""
    for _ in range(max_iter):
        before = s.state[0]
        count, step = update_centers(s, m)
        if count == 0:
            break
        s.state[1] += step
        changes = reassign(X, w, s, m, work)
        if changes == 0 or not s.state[0] < before:
            for j in range(s.centers.shape[0]):
                m.moved[j] = False
            break
        if s.state[0] - goal > patience * (before - s.state[0]):
            return False
    return s.state[0] < goal
