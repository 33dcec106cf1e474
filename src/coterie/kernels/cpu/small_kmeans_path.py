"""K-means of one table for many numbers of clusters in one call: for tables so small, or so many, that calls count.

As `coterie.selection.kmeans_path`, in float64: up with one center more, starts of a sequence beside it, down by
merging two, up again. Rows are kept column by column, so that vectors run over rows whatever the number of centers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_inner, jit_reassociating

BLOCK = 256  # rows whose squares are in the cache together
UP, DOWN = 0, 2  # ways to centers; the third, 1, is a start


class Room(NamedTuple):
    """What a climb writes to."""

    centers: Any  # (k, d) of the descent
    sums: Any  # (k, d) of w x
    weight: Any  # (k,)
    count: Any  # (k,) rows
    near: Any  # (n,) squares of the distances to the nearest centers
    square: Any  # (BLOCK,) of those to one center
    here: Any  # (n,) clusters
    new: Any  # (n,) the nearest centers
    sequence: Any  # (k, d) of which the first are a start
    best: Any  # (m, k, d) the means of the best clusters
    weights: Any  # (m, k) theirs
    better: Any  # (m,) whether they have become better on the way down, or after it


def room(n: int, d: int, m: int, k: int) -> Room:
    """For n rows of d columns, m numbers of clusters, k at most."""
    return Room(
        np.zeros((k, d)), np.zeros((k, d)), np.zeros(k), np.zeros(k, np.int64), np.empty(n), np.empty(BLOCK),
        np.empty(n, np.int32), np.empty(n, np.int32), np.zeros((k, d)), np.zeros((m, k, d)),
        np.zeros((m, k)), np.zeros(m, np.bool_),
    )  # fmt: skip


@jit
def climb(
    X,  # in   (n, d)
    columns,  # in   (d, n) the same
    w,  # in   (n,) above 0
    ks,  # in   (m,) ascending
    u,  # in   (draws,) in [0, 1): `greedy` for each of the most centers, and `candidates` twice
    greedy,  # rows that are drawn for a center of the sequence
    candidates,  # rows that are drawn for a center more
    hope,  # times its last gain that a descent may lie behind the best
    tol,  # the squared step of all centers that ends a descent
    max_iter,
    room,  # i/o
    within,  # out  (m,) sums of squares about the means
    labels,  # out  (m, n)
):
    """Whether there were enough distinct rows."""
    m, most = len(ks), ks[-1]
    _first(X, w, u[0], room)
    for r in range(m):
        within[r] = np.inf
    used = np.int64(1)
    for s in range(-1, 4 * m):
        r, way = _turn(s, m)
        if way == UP and s >= 0 and (r == 0 or (s >= 3 * m and not room.better[r - 1])):
            continue
        if way == UP:
            if s < 0:
                few, k, drawn, fewer = 1, most, greedy, room.sequence
            else:
                few, k, drawn, fewer = ks[r - 1], ks[r], candidates, room.best[r - 1]
            used = _more(X, columns, w, fewer, few, k, u, used, drawn, room)
            if used < 0:
                return False
        elif way == DOWN:
            _merge(room.best[r + 1], room.weights[r + 1], ks[r + 1], ks[r], room)
        else:
            _copy(room.sequence, ks[r], room.centers)
        if s < 0:
            _copy(room.centers, most, room.sequence)
        elif _descend(X, columns, w, ks[r], r, tol, max_iter, hope, room, within, labels) and s >= 2 * m:
            room.better[r] = True
    return True


@jit_inner
def _first(X, w, u, room):
    """One row, by the weights, begins the sequence."""
    for i in range(len(w)):
        room.near[i] = 1.0
    row = _draw(w, room.near, _total(w, room.near), u)
    for t in range(X.shape[1]):
        room.sequence[0, t] = X[row, t]


@jit_inner
def _turn(s, m):
    """The place in `ks`, and the way to its centers, of step s: the sequence, up beside starts of it, down, up."""
    if s < 0:
        return 0, UP
    if s < 2 * m:
        return s // 2, s % 2
    if s < 3 * m:
        return max(0, m - 2 - (s - 2 * m)), DOWN if s < 3 * m - 1 else UP
    return s - 3 * m, UP


@jit_inner
def _descend(X, columns, w, k, r, tol, max_iter, hope, room, within, labels):
    """Lloyd from the centers, until they settle or have no hope; whether it is the best for `ks[r]`, and then kept."""
    n, d = X.shape
    centers, sums, weight = room.centers, room.sums, room.weight
    for i in range(n):
        room.here[i] = -1
    for j in range(k):
        weight[j] = 0.0
        room.count[j] = 0
        for t in range(d):
            sums[j, t] = 0.0
    before, last = np.inf, False
    for step in range(max_iter + 1):
        _nearest(columns, k, room)
        cost = _total(w, room.near)
        moved = _regroup(X, w, room)
        hopeless = step > 1 and cost - hope * (before - cost) > within[r]
        if moved == 0 or last or hopeless or step == max_iter:
            break
        before = cost
        last = _step(X, w, k, room) <= tol
    for j in range(k):  # the squares about the means are less by as much as these lie apart from the centers
        if weight[j] > 0:
            for t in range(d):
                mean = sums[j, t] / weight[j]
                cost -= weight[j] * (mean - centers[j, t]) ** 2
                centers[j, t] = mean
    if not cost < within[r]:
        return False
    within[r] = max(cost, 0.0)
    for i in range(n):
        labels[r, i] = room.here[i]
    for j in range(k):
        room.weights[r, j] = weight[j]
        for t in range(d):
            room.best[r, j, t] = centers[j, t]
    return True


@jit_inner
def _nearest(columns, k, room):
    """The first of the nearest centers of every row, and the square of its distance."""
    for start in range(0, len(room.near), BLOCK):
        nearest, label = room.near[start : start + BLOCK], room.new[start : start + BLOCK]
        for i in range(len(nearest)):
            nearest[i] = np.inf
            label[i] = 0
        for j in range(k):
            _squares(columns, room.centers[j], start, room.square)
            _take_less(room.square, nearest, label, np.int32(j))


@jit_inner
def _take_less(square, nearest, label, j):
    for i in range(len(nearest)):
        less = square[i] < nearest[i]
        nearest[i] = square[i] if less else nearest[i]
        label[i] = j if less else label[i]


@jit_inner
def _squares(columns, center, start, square):
    """Of the distances of a block of rows."""
    for i in range(BLOCK):
        square[i] = 0.0
    for t in range(len(center)):
        at, column = center[t], columns[t, start : start + BLOCK]
        for i in range(len(column)):
            apart = column[i] - at
            square[i] += apart * apart


@jit_reassociating
def _total(w, near):
    total = 0.0
    for i in range(len(w)):
        total += w[i] * near[i]
    return total


@jit_reassociating
def _least_total(w, near, square):
    """What rows cost that may go to either of two centers."""
    total = 0.0
    for i in range(len(w)):
        total += w[i] * (square[i] if square[i] < near[i] else near[i])
    return total


@jit_inner
def _regroup(X, w, room):
    """Sums of clusters after rows have changed cluster, and how many have."""
    here, new, sums, weight, count = room.here, room.new, room.sums, room.weight, room.count
    moved = 0
    for i in range(len(w)):
        a, b = here[i], new[i]
        if a != b:
            moved += 1
            here[i] = b
            weight[b] += w[i]
            count[b] += 1
            for t in range(X.shape[1]):
                sums[b, t] += w[i] * X[i, t]
            if a >= 0:
                count[a] -= 1
                # An empty cluster has sums of exactly zero: what rounding leaves must not meet the rows that come next.
                weight[a] = weight[a] - w[i] if count[a] > 0 else 0.0
                for t in range(X.shape[1]):
                    sums[a, t] = sums[a, t] - w[i] * X[i, t] if count[a] > 0 else 0.0
    return moved


@jit_inner
def _step(X, w, k, room):
    """Centers move to the means, that of an empty cluster to the row that costs most; the sum of the squared steps."""
    near, sums, weight, centers = room.near, room.sums, room.weight, room.centers
    total = 0.0
    for j in range(k):
        far = 0
        if weight[j] == 0:
            for i in range(len(w)):
                if w[i] * near[i] > w[far] * near[far]:
                    far = i
            near[far] = 0.0
        for t in range(X.shape[1]):
            to = sums[j, t] / weight[j] if weight[j] > 0 else X[far, t]
            total += (to - centers[j, t]) ** 2
            centers[j, t] = to
    return total


@jit_inner
def _copy(rows, k, to):
    for j in range(k):
        for t in range(rows.shape[1]):
            to[j, t] = rows[j, t]


@jit_inner
def _draw(w, near, total, u):
    """A row in proportion to its weight times its square."""
    aim, reached, row = u * total, 0.0, -1
    for i in range(len(w)):
        mass = w[i] * near[i]
        if mass > 0:
            row = i
            reached += mass
            if reached > aim:
                break
    return row


@jit_inner
def _best_of(X, columns, w, near, square, u):
    """Of the rows that `u` draws, the one with which all rows cost least; -1 if every row is a center."""
    total, best, least = _total(w, near), -1, np.inf
    if not total > 0:
        return -1
    for c in range(len(u)):
        row, cost = _draw(w, near, total, u[c]), 0.0
        for start in range(0, len(w), BLOCK):
            _squares(columns, X[row], start, square)
            cost += _least_total(w[start : start + BLOCK], near[start : start + BLOCK], square)
        if cost < least:
            best, least = row, cost
    return best


@jit_inner
def _add(X, columns, near, square, row, to):
    """The row as another center."""
    for t in range(X.shape[1]):
        to[t] = X[row, t]
    for start in range(0, len(near), BLOCK):
        _squares(columns, to, start, square)
        nearest = near[start : start + BLOCK]
        for i in range(len(nearest)):
            nearest[i] = min(nearest[i], square[i])


@jit_inner
def _more(X, columns, w, fewer, few, k, u, used, drawn, room):
    """The centers `fewer`, and others up to k; how many of `u` are used by then, -1 if every row is a center."""
    _copy(fewer, few, room.centers)
    _nearest(columns, few, room)
    for j in range(few, k):
        row = _best_of(X, columns, w, room.near, room.square, u[used : used + drawn])
        if row < 0:
            return -1
        used += drawn
        _add(X, columns, room.near, room.square, row, room.centers[j])
    return used


@jit_inner
def _merge(more, heavy, many, k, room):
    """Centers of which, again and again, the two whose union costs least are one."""
    centers, weight, d = room.centers, room.weight, more.shape[1]
    _copy(more, many, centers)
    for j in range(many):
        weight[j] = heavy[j]
    for left in range(many, k, -1):
        least, first, second = np.inf, 0, 1
        for a in range(left):
            for b in range(a + 1, left):
                both = weight[a] + weight[b]
                cost = 0.0
                for t in range(d):
                    cost += (centers[a, t] - centers[b, t]) ** 2
                cost *= weight[a] * weight[b] / both if both > 0 else 0.0
                if cost < least:
                    least, first, second = cost, a, b
        both = weight[first] + weight[second]
        for t in range(d):
            if both > 0:
                centers[first, t] += weight[second] / both * (centers[second, t] - centers[first, t])
            centers[second, t] = centers[left - 1, t]
        weight[first] = both
        weight[second] = weight[left - 1]
