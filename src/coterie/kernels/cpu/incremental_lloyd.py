"""A K-means solution that is cheap to change, and Lloyd's iterations from where it has changed.

It remembers of every row its nearest and second nearest center, and of every cluster its sums, so that a change costs
the rows it reaches and not a pass of all rows against all centers. Every kernel adds the multiply-adds it took to
`work[0]`: budgets are counted, not timed. `search` has the moves that are made of it.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_reassociating

PAIR = 4  # multiply-adds that a pair of row and center costs beside those of its columns
VISIT = 3  # that looking at a row costs
CALL = 30_000  # that calling a kernel costs

Solution = namedtuple(
    "Solution",
    (
        "centers",  # (k, d)
        "columns",  # (d, k) the same, so that a search runs along the centers
        "sums",  # (k, d) of w x
        "weight",  # (k,) of w
        "count",  # (k,) rows
        "labels",  # (n,) nearest center
        "near",  # (n,) squared distance to it
        "other",  # (n,) second nearest center, where `far` is still its distance; -1: unknown
        "far",  # (n,) squared distance to that; of the centers that have not moved since, no other is nearer
        "low",  # (n,) no other center is nearer than this less `state[1]`
        "state",  # (2,) the objective; how far centers have moved since `low` was exact
    ),
)

Moves = namedtuple(
    "Moves",
    (
        "gain",  # (k,) what splitting a cluster saves
        "loss",  # (k,) what removing its center costs
        "left",  # (k, d) one center of a split cluster
        "right",  # (k, d) the other
        "stale",  # (k,) whether the split must be made anew
        "tried",  # (k, k) whether splitting one and removing the other was of no use
        "moved",  # (k,) centers that move in this iteration
        "touched",  # (k,) centers that moved since second nearest centers were exact
        "jumped",  # (k,) centers that have just jumped
        "listed",  # (k,) the numbers of some centers
        "squares",  # (k,) distances of one row
        "before",  # (k, d) centers before single rows changed cluster
        "cost",  # (2, k) of a cluster, and of its rows passed so far
        "half",  # (2, k, d + 1) sums and weights of the two halves
    ),
)


@jit_reassociating
def gap(X, i, centers, j):
    """Squared distance of a row and a center."""
    total = 0.0
    for t in range(X.shape[1]):
        q = X[i, t] - centers[j, t]
        total += q * q
    return total


@jit
def two_nearest(X, i, columns, squares):
    """Nearest and second nearest center of a row; `squares` gets all distances."""
    d, k = columns.shape
    for j in range(k):
        squares[j] = 0.0
    for t in range(d):
        x = X[i, t]
        for j in range(k):
            q = x - columns[t, j]
            squares[j] += q * q
    first, second, least, next_least = 0, -1, squares[0], np.inf
    for j in range(1, k):
        if squares[j] < next_least:
            if squares[j] < least:
                second, next_least = first, least
                first, least = j, squares[j]
            else:
                second, next_least = j, squares[j]
    return first, second


@jit
def assign(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution of which the centers count
    m,  # i/o Moves
    work,  # i/o (1,)
):
    """Every row to its nearest center, and the sums of all clusters."""
    n, d = X.shape
    k = s.centers.shape[0]
    total = 0.0
    for j in range(k):
        s.weight[j] = 0.0
        s.count[j] = 0
        m.stale[j] = True
        m.moved[j] = True
        m.touched[j] = False
        for t in range(d):
            s.sums[j, t] = 0.0
            s.columns[t, j] = s.centers[j, t]
        for b in range(k):
            m.tried[j, b] = False
    s.state[1] = 0.0
    for i in range(n):
        first, second = two_nearest(X, i, s.columns, m.squares)
        s.labels[i] = -1
        put(X, w, s, i, first)
        note_second(s, i, second, m.squares)
        s.near[i] = m.squares[first]
        total += w[i] * s.near[i]
    s.state[0] = total
    work[0] += CALL + n * k * (d + PAIR)


@jit
def note_second(s, i, second, squares):
    """What a full search has found out about all centers but the nearest."""
    s.other[i] = second
    s.far[i] = squares[second] if second >= 0 else np.inf
    s.low[i] = np.sqrt(s.far[i]) + s.state[1]


@jit
def put(X, w, s, i, j):
    """Row `i` leaves its cluster, if it has one, for cluster `j`."""
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
        t.near[i] = s.near[i]
        t.other[i] = s.other[i]
        t.far[i] = s.far[i]
        t.low[i] = s.low[i]
    t.state[0] = s.state[0]
    t.state[1] = s.state[1]


@jit
def move_center(s, j, t, value):
    s.centers[j, t] = value
    s.columns[t, j] = value


@jit
def land(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution whose second nearest centers are known, some of whose centers have just jumped
    m,  # i/o Moves; `jumped` says which; `moved` gets the clusters whose rows changed
    work,  # i/o (1,)
):
    """Rows join their nearest centers again after a jump; only those that left or were reached are looked at."""
    n, d = X.shape
    k = s.centers.shape[0]
    total, searched, asked = 0.0, 0, 0
    for j in range(k):
        m.moved[j] = m.jumped[j]
        m.touched[j] |= m.jumped[j]
    jumps = list_of(m.jumped, m.listed)
    for i in range(n):
        a = s.labels[i]
        gone = m.jumped[a]
        if s.other[i] < 0 or 2 * jumps > k or (gone and m.jumped[s.other[i]]):
            first, second = two_nearest(X, i, s.columns, m.squares)
            near = m.squares[first]
            if first != a:
                put(X, w, s, i, first)
            note_second(s, i, second, m.squares)
            searched += 1
        else:
            # of the centers that stayed, the nearest is known, and that all others are at least as far as `far`
            stays, near = (s.other[i], s.far[i]) if gone else (a, s.near[i])
            first, near, second = nearest_of(X, i, s.centers, m.listed, jumps, stays, near, s.far[i])
            asked += jumps
            s.low[i] = np.sqrt(second) + s.state[1]
            if first == s.other[i]:
                s.other[i] = -1
            if first != a:
                put(X, w, s, i, first)
        if first != a:
            note_change(m, a, first, m.moved)
        s.near[i] = near
        total += w[i] * near
    s.state[0] = total
    work[0] += searched * k * (d + PAIR) + asked * (d + PAIR) + n * VISIT


@jit
def list_of(
    flags,  # in  (k,)
    listed,  # out (k,) where they are set
):
    """How many are set."""
    count = 0
    for j in range(flags.shape[0]):
        if flags[j]:
            listed[count] = j
            count += 1
    return count


@jit
def nearest_of(X, i, centers, listed, count, first, least, second):
    """The nearest center of a row, its distance and that of the next, where `first` may be beaten by those listed."""
    own = first
    for q in range(count):
        j = listed[q]
        if j != own:
            square = gap(X, i, centers, j)
            if square < least:
                second = min(second, least)
                first, least = j, square
            else:
                second = min(second, square)
    return first, least, second


@jit
def note_change(m, a, b, changed):
    """A row went from cluster `a` to `b`: both centers will move."""
    changed[a] = True
    changed[b] = True
    m.touched[a] = True
    m.touched[b] = True


@jit
def recenter(s, m):
    """Centers of clusters that changed go to the means; how many did, and the longest step."""
    k, d = s.centers.shape
    count, longest = 0, 0.0
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
                m.touched[j] = True
                count += m.moved[j]
                longest = max(longest, square)
    return count, np.sqrt(longest)


@jit
def reassign(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution
    m,  # i/o Moves: `moved` says which centers did, and gets those whose clusters change now
    work,  # i/o (1,)
):
    """Every row to its nearest center; those whose bound settles it are not searched. How many changed."""
    n, d = X.shape
    k = s.centers.shape[0]
    total, changes, searched, asked = 0.0, 0, 0, 0
    for j in range(k):
        m.jumped[j] = False  # here: changed
    count = list_of(m.touched, m.listed)
    for i in range(n):
        a = s.labels[i]
        if m.moved[a]:
            s.near[i] = gap(X, i, s.centers, a)
            asked += 1
        room = s.low[i] - s.state[1]
        if room < 0.0 or s.near[i] > room * room:
            if 2 * count <= k and s.near[i] <= s.far[i]:  # only a center that has moved can be nearer
                first, near, second = nearest_of(X, i, s.centers, m.listed, count, a, s.near[i], s.far[i])
                asked += count
                s.near[i] = near
                s.low[i] = np.sqrt(second) + s.state[1]
                if first != a:
                    put(X, w, s, i, first)
            else:
                first, second = two_nearest(X, i, s.columns, m.squares)
                searched += 1
                if first != a and m.squares[first] < m.squares[a]:
                    put(X, w, s, i, first)
                elif first != a:
                    second, first = first, a
                note_second(s, i, second, m.squares)
                s.near[i] = m.squares[first]
            if first != a:
                note_change(m, a, first, m.jumped)
                changes += 1
        total += w[i] * s.near[i]
    for j in range(k):
        m.moved[j] = m.jumped[j]
    s.state[0] = total
    work[0] += searched * k * (d + PAIR) + asked * (d + PAIR) + n * VISIT
    return changes


@jit
def lloyd(
    X,  # in  (n, d)
    w,  # in  (n,)
    s,  # i/o Solution
    m,  # i/o Moves; `moved`: clusters whose rows have changed
    goal,  # in  the objective to get below
    hope,  # in  times its last gain that it may lie above that
    longest,  # in  iterations at most; after so many `moved` says where to go on
    work,  # i/o (1,)
):
    """Lloyd to its end, or until there is no hope; whether it got below the goal."""
    for _ in range(longest):
        before = s.state[0]
        count, step = recenter(s, m)
        if count == 0:
            break
        s.state[1] += step
        changes = reassign(X, w, s, m, work)
        if changes == 0 or not s.state[0] < before:
            for j in range(s.centers.shape[0]):
                m.moved[j] = False
            break
        if s.state[0] - goal > hope * (before - s.state[0]):
            return False
    return s.state[0] < goal
