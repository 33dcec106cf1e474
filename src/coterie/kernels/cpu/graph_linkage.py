"""Merges along the edges of a graph, the shortest first.

Every edge stands in the lists of both its ends, as half-edges 2e and 2e + 1; half-edge h points to ``to[h]`` and the
other end is ``to[h ^ 1]``. Between two clusters there is never more than one edge that lives. Edges wait in a heap that
knows their places, so that an edge whose length changes moves within it, and memory stays that of the graph.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_inner

COMPLETE, AVERAGE, WARD = 0, 1, 2


@jit_inner
def _before(e, f, length, to):
    """Whether edge e comes first: by length, then by its later end, then by its earlier one."""
    if length[e] != length[f]:
        return length[e] < length[f]
    e_late, f_late = max(to[2 * e], to[2 * e + 1]), max(to[2 * f], to[2 * f + 1])
    if e_late != f_late:
        return e_late < f_late
    return min(to[2 * e], to[2 * e + 1]) < min(to[2 * f], to[2 * f + 1])


@jit_inner
def _up(heap, place, at, length, to):
    e = heap[at]
    while at > 0:
        above = (at - 1) >> 1
        if not _before(e, heap[above], length, to):
            break
        heap[at] = heap[above]
        place[heap[at]] = at
        at = above
    heap[at] = e
    place[e] = at
    return at


@jit_inner
def _down(heap, place, at, count, length, to):
    e = heap[at]
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and _before(heap[child + 1], heap[child], length, to):
            child += 1
        if not _before(heap[child], e, length, to):
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = e
    place[e] = at


@jit_inner
def _remove(heap, place, at, count, length, to):
    """Takes the edge at `at` out of a heap of `count`."""
    last = heap[count - 1]
    place[heap[at]] = -1
    if at < count - 1:
        heap[at] = last
        place[last] = at
        _down(heap, place, _up(heap, place, at, length, to), count - 1, length, to)


@jit_inner
def _ward(means, row, other, mass, other_mass):
    """How much the sum of squares grows when two clusters are merged."""
    total = 0.0
    for j in range(means.shape[1]):
        difference = means[row, j] - means[other, j]
        total += difference * difference
    return total * mass * other_mass / (mass + other_mass)


@jit_inner
def _settle(heap, place, edge, count, length, to):
    """Puts an edge where it belongs after its length or its ends changed."""
    _down(heap, place, _up(heap, place, place[edge], length, to), count, length, to)


@jit_inner
def _build(ends, to, following, head):
    for e in range(ends.shape[0]):
        for side in range(2):
            to[2 * e + side] = ends[e, side]
            following[2 * e + side] = head[ends[e, 1 - side]]
            head[ends[e, 1 - side]] = 2 * e + side


@jit_inner
def _join(a, b, new, share, rule, to, following, head, edge_to, seen, heap, place, count, length):
    """The edges of clusters a and b become those of `new`; of two to the same neighbour one. Returns edges left."""
    for part in (a, b):
        h = head[part]
        while h >= 0:
            half, edge, other = h, h >> 1, to[h]
            h = following[h]
            if place[edge] < 0:
                continue
            if seen[other] != new:
                seen[other], edge_to[other] = new, edge
                following[half] = head[new]
                head[new] = half
                continue
            kept = edge_to[other]
            _remove(heap, place, place[edge], count, length, to)
            count -= 1
            if rule == COMPLETE:
                length[kept] = max(length[kept], length[edge])
            else:
                length[kept] += (length[edge] - length[kept]) * share
            _settle(heap, place, kept, count, length, to)
    return count


@jit
def merge_along(
    ends,  # in   (m, 2) of every edge; no edge twice, all nodes connected
    rule,  # in   how lengths to two merged clusters become one: COMPLETE, AVERAGE or WARD
    length,  # i/o  (m,) of every edge; WARD makes it itself
    weight,  # in   (n,) what every row counts for
    means,  # i/o  (n, d) the rows for WARD, else (n, 0)
    Z,  # out  (n - 1, 4)
):
    """Merges the two ends of the shortest edge until one cluster is left."""
    n, m = means.shape[0], ends.shape[0]
    to, following, head = np.empty(2 * m, np.int64), np.empty(2 * m, np.int64), np.full(2 * n - 1, -1)
    size, mass, slot = np.ones(2 * n - 1), np.empty(2 * n - 1), np.arange(2 * n - 1)
    for i in range(n):
        mass[i] = weight[i]
    edge_to, seen = np.empty(2 * n - 1, np.int64), np.full(2 * n - 1, -1)
    heap, place, count = np.arange(m), np.arange(m), m
    _build(ends, to, following, head)
    if rule == WARD:
        for e in range(m):
            length[e] = _ward(means, ends[e, 0], ends[e, 1], mass[ends[e, 0]], mass[ends[e, 1]])
    for at in range(m - 1, -1, -1):
        _down(heap, place, at, m, length, to)
    for step in range(n - 1):
        e, new = heap[0], n + step
        _remove(heap, place, 0, count, length, to)
        a, b = min(to[2 * e], to[2 * e + 1]), max(to[2 * e], to[2 * e + 1])
        size[new], mass[new], slot[new] = size[a] + size[b], mass[a] + mass[b], slot[a]
        Z[step, 0], Z[step, 1], Z[step, 2], Z[step, 3] = a, b, length[e], size[new]
        share = mass[b] / mass[new]
        for j in range(means.shape[1]):
            means[slot[a], j] += (means[slot[b], j] - means[slot[a], j]) * share
        count = _join(a, b, new, share, rule, to, following, head, edge_to, seen, heap, place, count - 1, length)
        h = head[new]
        while h >= 0:
            edge, other = h >> 1, to[h]
            to[h ^ 1] = new
            if rule == WARD:
                length[edge] = _ward(means, slot[new], slot[other], mass[new], mass[other])
            _settle(heap, place, edge, count, length, to)
            h = following[h]


@jit_inner
def _top(up, i):
    """The cluster that i is in; the way there is halved for the next time."""
    while up[i] != i:
        up[i] = up[up[i]]
        i = up[i]
    return i


@jit
def merge_in_order(
    ends,  # in   (m, 2) of every edge, the shortest edge first, all nodes connected
    length,  # in   (m,)
    Z,  # out  (n - 1, 4)
):
    """Merges the two ends of every edge that are not in one cluster yet: single linkage (Kruskal 1956)."""
    n = Z.shape[0] + 1
    up, size, step = np.arange(2 * n - 1), np.ones(2 * n - 1), 0
    for e in range(ends.shape[0]):
        a, b = _top(up, ends[e, 0]), _top(up, ends[e, 1])
        if a == b:
            continue
        new = n + step
        up[a] = up[b] = new
        size[new] = size[a] + size[b]
        Z[step, 0], Z[step, 1], Z[step, 2], Z[step, 3] = min(a, b), max(a, b), length[e], size[new]
        step += 1
