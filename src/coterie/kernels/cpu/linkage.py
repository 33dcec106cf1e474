"""Agglomerative clustering by distances of all pairs of clusters; see `linkage_table` for their memory."""

from collections.abc import Callable

import numpy as np

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.linkage_table import (
    ACTIVE,
    COLUMNS,
    FIRST,
    Table,
    compact,
    merge,
    table_of_distances,
    table_of_rows,
    update_row,
)
from coterie.kernels.cpu.neighbour_chain import follow, new_chain, push, truncate
from coterie.kernels.cpu.neighbours import first_minimum, lane_minima, lanes, tile_width
from coterie.kernels.plain.linkage import CENTROID, Merges, merge_batches, new_merges


def nearest_neighbour_chain(
    D: np.ndarray, size: np.ndarray, kind: int, equal: bool, progress: Callable[[int], None]
) -> Merges:
    return _chain(table_of_distances(D, size), kind, equal, progress)


def nearest_neighbour_chain_of_rows(
    X: np.ndarray, D: np.ndarray, size: np.ndarray, kind: int, equal: bool, progress: Callable[[int], None]
) -> Merges:
    return _chain(table_of_rows(X, D, size), kind, equal, progress)


def _chain(table: Table, kind: int, equal: bool, progress: Callable[[int], None]) -> Merges:
    n = len(table.row)
    links, merges = new_chain(n), new_merges(n)
    length = 0
    for start, stop in merge_batches(0, n - 1, progress):
        length = _along_chain(table, kind, equal, links, length, merges, start, stop)
    return merges


def generic_linkage(D: np.ndarray, size: np.ndarray, equal: bool, progress: Callable[[int], None]) -> Merges:
    """Merge the two closest centers repeatedly; `D` are squared distances, and is overwritten."""
    n = len(D)
    table, merges = table_of_distances(D, size), new_merges(n)
    near, link, is_exact = np.full(n, np.inf, D.dtype), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    _first_neighbours(table, near, link, is_exact)
    for start, stop in merge_batches(0, n - 1, progress):
        _merge_closest(table, equal, near, link, is_exact, merges, start, stop)
    return merges


def prim(D: np.ndarray) -> Merges:
    """Merges along a minimum spanning tree, by Prim's algorithm."""
    merges = new_merges(len(D))
    _prim(D, merges)
    return merges


def linkage_matrix(merges: Merges, n: int) -> np.ndarray:
    """Linkage matrix of SciPy (n - 1, 4) for merges that are in its order."""
    Z = np.empty((n - 1, 4))
    kruskal(np.column_stack([merges.left, merges.right]), merges.height, Z)
    return Z


@jit
def _minimum(numbers, columns, best, index):
    """Minimum of the first `columns` numbers, and its first index."""
    width = tile_width(numbers.itemsize)
    whole = columns // width * width
    low, at = numbers[columns - 1], columns - 1
    if whole > 0:
        lane_minima(numbers, 0, whole, best, index)
        low, at = first_minimum(best, index)
    for i in range(whole, columns):
        if numbers[i] < low:
            low, at = numbers[i], i
    return low, at


@jit
def _nearest(table, j, best, index):
    """Distance to the nearest neighbour of cluster j, whose row is up to date, and its index."""
    return _minimum(table.D[table.row[j]], table.count[COLUMNS], best, index)


@jit
def _along_chain(table, kind, equal, chain, length, merges, start, stop):
    """Merges `start` to `stop`; return the length of the chain."""
    best = np.empty(lanes(table.D.itemsize), table.D.dtype)
    index, moved = np.empty(len(best), np.int32), np.empty(len(table.row), np.int64)
    step = start
    while step < stop:
        if length == 0:
            while table.size[table.count[FIRST]] == 0:
                table.count[FIRST] += 1
            length = push(chain, 0, table.count[FIRST], np.inf)
        last = chain.cluster[length - 1]
        update_row(table, last, kind)
        low, neighbour = _nearest(table, last, best, index)
        if low < chain.link[length - 1]:
            length = follow(chain, length, neighbour, low)
            continue
        previous, height = chain.cluster[length - 2], table.D[table.row[last], chain.cluster[length - 2]]
        merges.left[step], merges.right[step], merges.height[step] = table.leaf[last], table.leaf[previous], height
        length = truncate(chain, length, length - 2)
        update_row(table, previous, kind)
        merge(table, last, previous, height, kind, equal)
        if compact(table, kind, moved):
            for i in range(length):
                chain.position[chain.cluster[i]] = -1
            for i in range(length):
                push(chain, i, moved[chain.cluster[i]], chain.link[i])
        step += 1
    return length


@jit
def _first_neighbours(table, near, link, is_exact):
    """Nearest neighbour of each row."""
    best = np.empty(lanes(table.D.itemsize), table.D.dtype)
    index = np.empty(len(best), np.int32)
    for j in range(len(near)):
        near[j], link[j] = _nearest(table, j, best, index)
        is_exact[j] = True


@jit
def _merge_closest(
    table,
    equal,
    near,  # i/o (n,) lower bound of the distance of each cluster to its nearest neighbour
    link,  # i/o (n,) its nearest neighbour
    is_exact,  # i/o (n,) whether both are exact
    merges,
    start,
    stop,
):
    """Generic algorithm (Müllner 2011): a nearest neighbour is computed when it may belong to the closest pair."""
    best = np.empty(lanes(near.itemsize), near.dtype)
    index, moved = np.empty(len(best), np.int32), np.empty(len(near), np.int64)
    step = start
    while step < stop:
        a = _minimum(near, table.count[COLUMNS], best, index)[1]
        if not is_exact[a]:
            update_row(table, a, CENTROID)
            near[a], link[a] = _nearest(table, a, best, index)
            is_exact[a] = True
            continue
        b = link[a]
        merges.left[step], merges.right[step], merges.height[step] = table.leaf[a], table.leaf[b], near[a]
        update_row(table, a, CENTROID)
        update_row(table, b, CENTROID)
        target = merge(table, a, b, near[a], CENTROID, equal)
        near[a + b - target] = np.inf
        _update_neighbours(table, target, a + b - target, near, link, is_exact)
        near[target], link[target] = _nearest(table, target, best, index)
        is_exact[target] = True
        columns = table.count[COLUMNS]
        if compact(table, CENTROID, moved):
            _move_neighbours(table, columns, moved, near, link, is_exact)
        step += 1


@jit
def _update_neighbours(table, target, source, near, link, is_exact):
    """Update the nearest neighbours of the other clusters after a merge."""
    row = table.D[table.row[target]]
    for j in range(table.count[COLUMNS]):
        if row[j] < near[j]:
            near[j], link[j], is_exact[j] = row[j], target, True
        elif link[j] == target or link[j] == source:
            is_exact[j] = row[j] == near[j]
            link[j] = target


@jit
def _move_neighbours(table, columns, moved, near, link, is_exact):
    """Move the nearest neighbours in the same way as the columns."""
    for j in range(columns):
        if moved[j] >= 0:
            near[moved[j]], link[moved[j]], is_exact[moved[j]] = near[j], moved[link[j]], is_exact[j]
    for j in range(table.count[ACTIVE], table.count[COLUMNS]):
        near[j] = np.inf


@jit
def _prim(D, merges):
    """Prim's algorithm: the row nearest to the tree is added repeatedly; `outside` are the rows not in the tree."""
    n = len(D)
    outside, near, link = np.arange(1, n), D[0].copy(), np.zeros(n, np.int64)
    for step in range(n - 1):
        low = 0
        for k in range(n - 1 - step):
            if near[outside[k]] < near[outside[low]]:
                low = k
        row = outside[low]
        merges.left[step], merges.right[step], merges.height[step] = link[row], row, near[row]
        outside[low] = outside[n - 2 - step]
        distances = D[row]
        for k in range(n - 2 - step):
            j = outside[k]
            if distances[j] < near[j]:
                near[j], link[j] = distances[j], row


@jit
def kruskal(
    ends,  # in   (m, 2) of each edge, by increasing length; the graph is connected
    length,  # in   (m,)
    Z,  # out  (n - 1, 4)
):
    """Single linkage: merge the two ends of each edge, unless they are in the same cluster (Kruskal 1956)."""
    n = Z.shape[0] + 1
    parent, size, step = np.arange(2 * n - 1), np.ones(2 * n - 1), 0
    for e in range(ends.shape[0]):
        a, b = root(parent, ends[e, 0]), root(parent, ends[e, 1])
        if a == b:
            continue
        new = n + step
        parent[a] = parent[b] = new
        size[new] = size[a] + size[b]
        Z[step, 0], Z[step, 1], Z[step, 2], Z[step, 3] = min(a, b), max(a, b), length[e], size[new]
        step += 1


@jit
def root(parent, i):
    """Root of i in a union-find forest, with path halving."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
