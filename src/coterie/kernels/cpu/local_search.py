"""Moves of a K-means search: whole centers jump, single rows change cluster, and Lloyd goes on from there."""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.solution import (
    CALL,
    PAIR,
    VISIT,
    assign,
    copy,
    gap,
    land,
    list_of,
    lloyd,
    move_center,
    note_second,
    put,
    reassign,
    two_nearest,
)

LONGEST = 1000  # iterations of Lloyd after one move
SURELY = 1e-10  # share of the objective by which a move must lower it, beyond the doubt of rounding
ULP = 2.0**-52  # of the objective: a row that gains less by a move changes no digit of it
HALVINGS = 4  # iterations of the 2-means that tells what splitting a cluster would gain


@jit
def renew(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution
    m,  # i/o Moves
    work,  # i/o (1,)
):
    """Second nearest centers exact again, and what removing each center would cost."""
    n, d = X.shape
    k = s.centers.shape[0]
    touched, searched, asked, total = 0, 0, 0, 0.0
    for j in range(k):
        m.loss[j] = 0.0
        if m.touched[j]:
            touched += 1
            m.stale[j] = True
            for b in range(k):
                m.tried[j, b] = False
                m.tried[b, j] = False
    s.state[1] = 0.0
    for i in range(n):
        a = s.labels[i]
        if s.other[i] < 0 or m.touched[s.other[i]] or 2 * touched > k:
            first, second = two_nearest(X, i, s.columns, m.squares)
            searched += 1
            note_second(s, i, second if first == a else first, m.squares)
        else:
            for j in range(k):
                if m.touched[j] and j != a:
                    square = gap(X, i, s.centers, j)
                    asked += 1
                    if square < s.far[i]:
                        s.other[i], s.far[i] = j, square
            s.low[i] = np.sqrt(s.far[i])
        if m.touched[a]:
            s.near[i] = gap(X, i, s.centers, a)
            asked += 1
        total += w[i] * s.near[i]
        m.loss[a] += w[i] * (s.far[i] - s.near[i])
    for j in range(k):
        m.touched[j] = False
    s.state[0] = total
    work[0] += searched * k * (d + PAIR) + asked * (d + PAIR) + n * VISIT


@jit
def split(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # in  Solution
    m,  # i/o Moves
    u,  # in  (k,) uniform in [0, 1)
    work,  # i/o (1,)
):
    """Two centers for every cluster whose split is stale: a 2-means from a row drawn by its cost."""
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
        m.cost[0, s.labels[i]] += w[i] * s.near[i]
    for i in range(n):
        a = s.labels[i]
        if m.stale[a] and m.cost[1, a] <= u[a] * m.cost[0, a]:
            m.cost[1, a] += w[i] * s.near[i]
            for t in range(d):
                m.right[a, t] = X[i, t]
                m.left[a, t] = 2.0 * s.centers[a, t] - X[i, t]
    for _ in range(HALVINGS):
        for q in range(2):
            for j in range(k):
                for t in range(d + 1):
                    m.half[q, j, t] = 0.0
        for i in range(n):
            a = s.labels[i]
            if m.stale[a]:
                q = 1 if gap(X, i, m.right, a) < gap(X, i, m.left, a) else 0
                m.half[q, a, d] += w[i]
                for t in range(d):
                    m.half[q, a, t] += w[i] * X[i, t]
        for j in range(k):
            if m.stale[j]:
                m.gain[j] = 0.0
                one, two = m.half[0, j, d], m.half[1, j, d]
                if one > 0.0 and two > 0.0:
                    for t in range(d):
                        m.left[j, t] = m.half[0, j, t] / one
                        m.right[j, t] = m.half[1, j, t] / two
                        m.gain[j] += (m.left[j, t] - m.right[j, t]) ** 2
                    m.gain[j] *= one / (one + two) * two
    for j in range(k):
        m.stale[j] = False
    work[0] += rows * (3 * d + PAIR) * HALVINGS + 2 * n * VISIT


@jit
def survey(X, w, s, m, u, work):
    """What splits gain and removals cost, here."""
    renew(X, w, s, m, work)
    split(X, w, s, m, u, work)
    work[0] += CALL


@jit
def best_pair(m):
    """The split and the removal, not tried yet, that together promise most; -1 if there is none."""
    k = m.gain.shape[0]
    into, gone, most = -1, -1, -np.inf
    for a in range(k):
        if m.gain[a] > 0.0:
            for b in range(k):
                if a != b and not m.tried[a, b] and m.gain[a] - m.loss[b] > most:
                    into, gone, most = a, b, m.gain[a] - m.loss[b]
    return into, gone


@jit
def jump(s, m, into, gone):
    """The center of cluster `gone` joins that of `into`: the two halves of that cluster."""
    for t in range(s.centers.shape[1]):
        move_center(s, into, t, m.left[into, t])
        move_center(s, gone, t, m.right[into, t])
    m.jumped[into] = True
    m.jumped[gone] = True


@jit
def improve(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution
    trial,  # i/o Solution to try moves on
    m,  # i/o Moves
    u,  # in  (k,) uniform in [0, 1)
    tries,  # in  swaps in vain that end it
    hope,  # in  see lloyd
    longest,  # in  iterations of Lloyd at most
    work,  # i/o (1,)
):
    """Swaps, the most promising first, until one lowers the objective; whether one did."""
    k = s.centers.shape[0]
    survey(X, w, s, m, u, work)
    for _ in range(tries):
        into, gone = best_pair(m)
        if into < 0:
            return False
        m.tried[into, gone] = True
        copy(s, trial)
        work[0] += X.shape[0] * VISIT
        for j in range(k):
            m.jumped[j] = False
        jump(trial, m, into, gone)
        land(X, w, trial, m, work)
        if lloyd(X, w, trial, m, s.state[0] * (1.0 - SURELY), hope, longest, work):
            copy(trial, s)
            return True
        for j in range(k):
            m.touched[j] = False
    return False


@jit
def kick(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution whose splits and losses are known
    m,  # i/o Moves
    into,  # in  (q,) clusters to split
    gone,  # in  (q,) centers to remove
    longest,  # in  iterations at most
    work,  # i/o (1,)
):
    """Several swaps at once, for better or worse, and Lloyd from there; whether it is to go on."""
    for j in range(s.centers.shape[0]):
        m.jumped[j] = False
    for q in range(into.shape[0]):
        jump(s, m, into[q], gone[q])
    land(X, w, s, m, work)
    return go_on(X, w, s, m, longest, work)


@jit
def start(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution of which the centers count
    m,  # i/o Moves
    longest,  # in  iterations at most
    work,  # i/o (1,)
):
    """Lloyd from centers of which nothing else is known; whether it is to go on."""
    assign(X, w, s, m, work)
    return go_on(X, w, s, m, longest, work)


@jit
def go_on(X, w, s, m, longest, work):
    """Some more iterations of Lloyd; whether there are more to come."""
    lloyd(X, w, s, m, np.inf, np.inf, longest, work)
    return list_of(m.moved, m.listed) > 0


@jit
def polish(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution
    m,  # i/o Moves
    work,  # i/o (1,)
):
    """Single rows change cluster where that lowers the objective; how many did. Lloyd is to go on from there.

    A row costs its cluster ``w W / (W - w) |x - c|^2`` and would cost another ``w W / (W + w) |x - c|^2``, as both
    centers follow. With the second nearest center exact, most rows are settled by one comparison.
    """
    n, d = X.shape
    k = s.centers.shape[0]
    renew(X, w, s, m, work)
    lightest, changes, searched = np.inf, 0, 0
    for j in range(k):
        lightest = min(lightest, s.weight[j])
        m.moved[j] = False
        for t in range(d):
            m.before[j, t] = s.centers[j, t]
    for i in range(n):
        a = s.labels[i]
        if s.count[a] == 1 or s.weight[a] <= w[i]:
            continue
        leave = s.weight[a] / (s.weight[a] - w[i])
        if s.far[i] * (lightest / (lightest + w[i])) >= s.near[i] * leave and not m.moved[a]:
            continue
        two_nearest(X, i, s.columns, m.squares)
        searched += 1
        first, least = -1, m.squares[a] * leave * (1.0 - SURELY) - ULP * s.state[0] / w[i]
        for j in range(k):
            cost = m.squares[j] * (s.weight[j] / (s.weight[j] + w[i]))
            if cost < least and j != a:
                first, least = j, cost
        if first >= 0:
            put(X, w, s, i, first)
            changes += 1
            lightest = min(lightest, s.weight[a])
            s.other[i] = -1
            s.low[i] = -1.0  # to be searched
            follow(s, m, a)
            follow(s, m, first)
    work[0] += CALL + searched * k * (d + PAIR) + n * VISIT
    if changes:
        s.state[1] += longest_step(s, m)
        reassign(X, w, s, m, work)
    return changes


@jit
def follow(s, m, j):
    """The center of a cluster that has just lost or won a row."""
    for t in range(s.centers.shape[1]):
        move_center(s, j, t, s.sums[j, t] / s.weight[j])
    m.moved[j] = True
    m.touched[j] = True


@jit
def longest_step(s, m):
    """How far the center went that went farthest since `before`."""
    longest = 0.0
    for j in range(s.centers.shape[0]):
        longest = max(longest, gap(s.centers, j, m.before, j))
    return np.sqrt(longest)
