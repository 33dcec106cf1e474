"""Agglomerative clustering by a square matrix of distances, which is modified in place.

A merge updates one row; columns are updated lazily. Merges are logged, and a row applies the log when it is read next,
so that memory is accessed along rows only. When two fifths of the columns are unused, the others are moved together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.neighbour_chain import follow, new_chain, push, truncate
from coterie.kernels.cpu.neighbours import first_minimum, lane_minima, lanes, tile_width
from coterie.kernels.cpu.vectors import Vectors
from coterie.kernels.plain.linkage import AVERAGE, CENTROID, COMPLETE, WARD, Merges, merge_batches, new_merges

MIN_ACTIVE = 0.6  # share of active columns below which they are moved together
FEW = 256  # number of columns up to which moving them is not worthwhile


class Table(NamedTuple):
    """Distances of active clusters; cluster j has column j and row ``row[j]``."""

    D: Any  # (n, n); infinite on the diagonal, and in the columns of inactive clusters
    row: Any  # (n,) int64
    leaf: Any  # (n,) int64, one row of the data in the cluster
    size: Any  # (n,) in the dtype of D; 0 if inactive
    n_applied: Any  # (n,) int64, number of log entries that were applied to the row
    target: Any  # (n,) int64, log: column of the merged cluster
    source: Any  # (n,) int64, log: column that became inactive
    coefficients: Any  # (n, 4) in the dtype of D: weights of source and target, their sum, and the subtrahend
    count: Any  # (4,) int64: columns, active clusters, entries of the log, first cluster that may be active


COLUMNS, ACTIVE, LOGGED, FIRST = 0, 1, 2, 3


def nearest_neighbour_chain(
    D: np.ndarray, size: np.ndarray, kind: int, equal: bool, progress: Callable[[int], None]
) -> Merges:
    """Nearest-neighbour chain algorithm, for methods in which no merge decreases a distance. `D` is overwritten.

    `equal`: both parts have the same weight, whatever their sizes.
    """
    n = len(D)
    table, links, merges = _table(D, size), new_chain(n), new_merges(n)
    length = done = 0
    for stop in merge_batches(n - 1):
        length = _along_chain(table, kind, equal, links, length, merges, done, stop)
        progress(done := stop)
    return merges


def generic_linkage(D: np.ndarray, size: np.ndarray, equal: bool, progress: Callable[[int], None]) -> Merges:
    """Merge the two closest centers repeatedly; `D` are squared distances, and is overwritten."""
    n = len(D)
    table, merges = _table(D, size), new_merges(n)
    near, link, is_exact = np.full(n, np.inf, D.dtype), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    _first_neighbours(table, near, link, is_exact)
    done = 0
    for stop in merge_batches(n - 1):
        _merge_closest(table, equal, near, link, is_exact, merges, done, stop)
        progress(done := stop)
    return merges


def prim(D: np.ndarray) -> Merges:
    """Merges along a minimum spanning tree, by Prim's algorithm."""
    merges = new_merges(len(D))
    _prim(D, merges)
    return merges


def linkage_matrix(merges: Merges, n: int) -> np.ndarray:
    """Linkage matrix of SciPy (n - 1, 4) for merges that are in its order."""
    Z = np.empty((n - 1, 4))
    _number_clusters(merges, np.arange(2 * n - 1), np.ones(2 * n - 1), Z)
    return Z


def _table(D: np.ndarray, size: np.ndarray) -> Table:
    n = len(D)
    np.fill_diagonal(D, np.inf)
    ids, zeros = np.arange(n), np.zeros(n, np.int64)
    sizes, coefficients = size.astype(D.dtype), np.empty((n, 4), D.dtype)
    count = np.array([n, n, 0, 0])
    return Table(D, ids, ids.copy(), sizes, zeros, zeros.copy(), zeros.copy(), coefficients, count)


@intrinsic
def _prefetch(typingctx, D, start, stop):
    """Prefetch ``D[start:stop]`` of the flat array, which is read out of order."""
    sig = types.void(D, start, stop)

    def codegen(context, b, sig, args):
        v = Vectors("D start stop", context, b, sig, args)
        with v.loop(v["start"], v["stop"], 512 // v.bits, []) as line:
            v.prefetch(v.start("D", line.t))
        return context.get_dummy_value()

    return sig, codegen


@jit
def _merged_distance(kind, x, y, c, size):
    """Distance from a cluster of `size` to a merged cluster, from those to its parts (Lance & Williams 1967)."""
    if kind == COMPLETE:
        return x if x > y else y
    if kind == WARD:
        value = ((c[0] + size) * x + (c[1] + size) * y - size * c[3]) / (c[2] + size)
    else:
        value = (c[0] * x + c[1] * y - c[3]) / c[2]
    zero = c[0] - c[0]
    return value if value > zero else zero


@jit
def _merged_row(kind, source, target, coefficient, size, columns):
    """Compute the row of the merged cluster in `target`; each kind has its own loop, so that it becomes vector code."""
    if kind == COMPLETE:
        for j in range(columns):
            target[j] = _merged_distance(COMPLETE, source[j], target[j], coefficient, size[j])
    elif kind == WARD:
        for j in range(columns):
            target[j] = _merged_distance(WARD, source[j], target[j], coefficient, size[j])
    else:
        for j in range(columns):
            target[j] = _merged_distance(AVERAGE, source[j], target[j], coefficient, size[j])


@jit
def _apply_log(table, j, kind):
    """Apply all merges so far to row j."""
    row, size, n = table.D[table.row[j]], table.size[j], table.D.shape[1]
    _prefetch(table.D, table.row[j] * n, table.row[j] * n + table.count[COLUMNS])
    for t in range(table.n_applied[j], table.count[LOGGED]):
        target, source = table.target[t], table.source[t]
        row[target] = _merged_distance(kind, row[source], row[target], table.coefficients[t], size)
        row[source] = np.inf
    table.n_applied[j] = table.count[LOGGED]


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
def _merge(table, a, b, height, kind, equal):
    """Merge clusters a and b, whose rows are up to date; return the column of the merged cluster, the later one."""
    source, target = min(a, b), max(a, b)
    size, now = table.size, table.count[LOGGED]
    coefficient = table.coefficients[now]
    coefficient[0], coefficient[1] = (1, 1) if equal else (size[source], size[target])
    coefficient[2] = coefficient[0] + coefficient[1]
    coefficient[3] = 0
    if kind == WARD:
        coefficient[3] = height
    elif kind == CENTROID:
        coefficient[3] = coefficient[0] * coefficient[1] * height / coefficient[2]
    row = table.D[table.row[target]]
    _merged_row(kind, table.D[table.row[source]], row, coefficient, size, table.count[COLUMNS])
    row[target] = np.inf
    row[source] = np.inf
    size[target] += size[source]
    size[source] = 0
    table.target[now], table.source[now] = target, source
    table.count[LOGGED] = table.n_applied[target] = now + 1
    table.count[ACTIVE] -= 1
    return target


@jit
def _compact(table, kind, moved):
    """Move the active columns together, if enough are inactive; return whether this was done.

    moved (n,) gets the new index of each column, -1 for inactive ones.
    """
    D, columns, n_active = table.D, table.count[COLUMNS], table.count[ACTIVE]
    if columns <= FEW or n_active > MIN_ACTIVE * columns:
        return False
    active = np.empty(n_active, np.int64)
    k = 0
    for j in range(columns):
        moved[j] = -1
        if table.size[j] > 0:
            _apply_log(table, j, kind)
            active[k], moved[j] = j, k
            k += 1
    width = tile_width(D.itemsize)
    padded = (n_active + width - 1) // width * width  # less than `columns`
    for k in range(n_active):
        row = D[table.row[active[k]]]
        for i in range(n_active):
            row[i] = row[active[i]]
        for i in range(n_active, padded):
            row[i] = np.inf
    for k in range(n_active):
        j = active[k]
        table.row[k], table.leaf[k], table.size[k], table.n_applied[k] = table.row[j], table.leaf[j], table.size[j], 0
    for k in range(n_active, padded):
        table.size[k] = 0
    table.count[COLUMNS], table.count[LOGGED], table.count[FIRST] = padded, 0, 0
    return True


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
        _apply_log(table, last, kind)
        low, neighbour = _nearest(table, last, best, index)
        if low < chain.link[length - 1]:
            length = follow(chain, length, neighbour, low)
            continue
        previous, height = chain.cluster[length - 2], table.D[table.row[last], chain.cluster[length - 2]]
        merges.left[step], merges.right[step], merges.height[step] = table.leaf[last], table.leaf[previous], height
        length = truncate(chain, length, length - 2)
        _apply_log(table, previous, kind)
        _merge(table, last, previous, height, kind, equal)
        if _compact(table, kind, moved):
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
            _apply_log(table, a, CENTROID)
            near[a], link[a] = _nearest(table, a, best, index)
            is_exact[a] = True
            continue
        b = link[a]
        merges.left[step], merges.right[step], merges.height[step] = table.leaf[a], table.leaf[b], near[a]
        _apply_log(table, a, CENTROID)
        _apply_log(table, b, CENTROID)
        target = _merge(table, a, b, near[a], CENTROID, equal)
        near[a + b - target] = np.inf
        _update_neighbours(table, target, a + b - target, near, link, is_exact)
        near[target], link[target] = _nearest(table, target, best, index)
        is_exact[target] = True
        columns = table.count[COLUMNS]
        if _compact(table, CENTROID, moved):
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
def _number_clusters(
    merges,  # in
    parent,  # i/o (2 n - 1,) of each cluster, initially itself
    size,  # i/o (2 n - 1,) initially 1
    Z,  # out (n - 1, 4)
):
    """Number the clusters of merges by union-find."""
    n = len(Z) + 1
    for i in range(n - 1):
        a, b = root(parent, merges.left[i]), root(parent, merges.right[i])
        parent[a] = parent[b] = n + i
        size[n + i] = size[a] + size[b]
        Z[i, 0], Z[i, 1], Z[i, 2], Z[i, 3] = min(a, b), max(a, b), merges.height[i], size[n + i]


@jit
def root(parent, i):
    """Root of i in a union-find forest, with path halving."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
