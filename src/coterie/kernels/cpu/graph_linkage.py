"""Agglomerative clustering along the edges of a graph, shortest edge first.

Each edge e is in the lists of both its ends, as half-edges 2e and 2e + 1; half-edge h points to ``to[h]``, and its
other end is ``to[h ^ 1]``. Two clusters have at most one active edge. Active edges are in an indexed heap: an edge
whose length changes is moved within it, so that memory stays proportional to the graph.
"""

import numpy as np

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.linkage import kruskal as kruskal
from coterie.kernels.cpu.sums import squared_distance
from coterie.kernels.plain.linkage import AVERAGE as AVERAGE
from coterie.kernels.plain.linkage import COMPLETE, WARD


@jit
def _precedes(e, f, length, to):
    """Whether edge e precedes f: by length, then by the larger end, then by the smaller one."""
    if length[e] != length[f]:
        return length[e] < length[f]
    e_late, f_late = max(to[2 * e], to[2 * e + 1]), max(to[2 * f], to[2 * f + 1])
    if e_late != f_late:
        return e_late < f_late
    return min(to[2 * e], to[2 * e + 1]) < min(to[2 * f], to[2 * f + 1])


@jit
def _sift_up(heap, position, at, length, to):
    """Move the edge at `at` up in the heap; return its new position."""
    e = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if not _precedes(e, heap[parent], length, to):
            break
        heap[at] = heap[parent]
        position[heap[at]] = at
        at = parent
    heap[at] = e
    position[e] = at
    return at


@jit
def _sift_down(heap, position, at, count, length, to):
    """Move the edge at `at` down in the heap."""
    e = heap[at]
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and _precedes(heap[child + 1], heap[child], length, to):
            child += 1
        if not _precedes(heap[child], e, length, to):
            break
        heap[at] = heap[child]
        position[heap[at]] = at
        at = child
    heap[at] = e
    position[e] = at


@jit
def _remove(heap, position, at, count, length, to):
    """Remove the edge at `at` from a heap of `count` edges."""
    last = heap[count - 1]
    position[heap[at]] = -1
    if at < count - 1:
        heap[at] = last
        position[last] = at
        _sift_down(heap, position, _sift_up(heap, position, at, length, to), count - 1, length, to)


@jit
def _ward(means, row, other, mass, other_mass):
    """Increase of the sum of squares if two clusters are merged."""
    return squared_distance(means[row], means[other]) * mass * other_mass / (mass + other_mass)


@jit
def _restore_heap(heap, position, edge, count, length, to):
    """Restore the heap after the length or an end of an edge has changed."""
    _sift_down(heap, position, _sift_up(heap, position, position[edge], length, to), count, length, to)


@jit
def _build(ends, to, after, head):
    """Build the lists of half-edges."""
    for e in range(ends.shape[0]):
        for side in range(2):
            to[2 * e + side] = ends[e, side]
            after[2 * e + side] = head[ends[e, 1 - side]]
            head[ends[e, 1 - side]] = 2 * e + side


@jit
def _merge_edges(a, b, new, share, method, to, after, head, edge_to, last, heap, position, count, length):
    """Move the edges of clusters a and b to `new`, and unite edges to the same neighbour; return the heap size."""
    for part in (a, b):
        h = head[part]
        while h >= 0:
            half, edge, other = h, h >> 1, to[h]
            h = after[h]
            if position[edge] < 0:
                continue
            if last[other] != new:
                last[other], edge_to[other] = new, edge
                after[half] = head[new]
                head[new] = half
                continue
            first_edge = edge_to[other]
            _remove(heap, position, position[edge], count, length, to)
            count -= 1
            if method == COMPLETE:
                length[first_edge] = max(length[first_edge], length[edge])
            else:
                length[first_edge] += (length[edge] - length[first_edge]) * share
            _restore_heap(heap, position, first_edge, count, length, to)
    return count


@jit
def merge_shortest_edges(
    ends,  # in   (m, 2) of each edge; edges are distinct, and the graph is connected
    method,  # in   COMPLETE, AVERAGE or WARD
    length,  # i/o  (m,) of each edge; WARD computes it
    weight,  # in   (n,) of each row
    means,  # i/o  (n, d) rows for WARD, otherwise (n, 0)
    Z,  # out  (n - 1, 4)
):
    """Merge the two ends of the shortest edge until one cluster is left."""
    n, m = means.shape[0], ends.shape[0]
    to, after, head = np.empty(2 * m, np.int64), np.empty(2 * m, np.int64), np.full(2 * n - 1, -1)
    size, mass, slot = np.ones(2 * n - 1), np.empty(2 * n - 1), np.arange(2 * n - 1)
    for i in range(n):
        mass[i] = weight[i]
    edge_to, last = np.empty(2 * n - 1, np.int64), np.full(2 * n - 1, -1)
    heap, position, count = np.arange(m), np.arange(m), m
    _build(ends, to, after, head)
    if method == WARD:
        for e in range(m):
            length[e] = _ward(means, ends[e, 0], ends[e, 1], mass[ends[e, 0]], mass[ends[e, 1]])
    for at in range(m - 1, -1, -1):
        _sift_down(heap, position, at, m, length, to)
    for step in range(n - 1):
        e, new = heap[0], n + step
        _remove(heap, position, 0, count, length, to)
        a, b = min(to[2 * e], to[2 * e + 1]), max(to[2 * e], to[2 * e + 1])
        size[new], mass[new], slot[new] = size[a] + size[b], mass[a] + mass[b], slot[a]
        Z[step, 0], Z[step, 1], Z[step, 2], Z[step, 3] = a, b, length[e], size[new]
        share = mass[b] / mass[new]
        for j in range(means.shape[1]):
            means[slot[a], j] += (means[slot[b], j] - means[slot[a], j]) * share
        count = _merge_edges(
            a, b, new, share, method, to, after, head, edge_to, last, heap, position, count - 1, length
        )
        h = head[new]
        while h >= 0:
            edge, other = h >> 1, to[h]
            to[h ^ 1] = new
            if method == WARD:
                length[edge] = _ward(means, slot[new], slot[other], mass[new], mass[other])
            _restore_heap(heap, position, edge, count, length, to)
            h = after[h]
