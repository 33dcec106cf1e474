"""Trees of merges from a square matrix of distances, in place.

A merge changes one row; the column waits. Merges go to a log, and a row catches up with the log when it is next read:
memory is touched along rows only. When two fifths of the columns are dead, the others move together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from coterie.kernels.cpu.chain import cut, follow, new_chain, push
from coterie.kernels.cpu.jit import jit, jit_inner
from coterie.kernels.cpu.neighbours import first_least, lanes, least, wide
from coterie.kernels.cpu.vectors import Vectors
from coterie.kernels.plain.linkage import CENTER, LARGEST, MEAN, WARD, Merges, new_merges, slices

CROWDED = 0.6  # of the columns alive, below which it pays to move them together
FEW = 256  # columns not worth moving


class Table(NamedTuple):
    """Distances of live clusters; cluster j is column j, and the row ``row[j]``."""

    D: Any  # (n, n); infinite from a cluster to itself, and in the columns of dead ones
    row: Any  # (n,) int64
    leaf: Any  # (n,) int64, a row of the data in the cluster
    size: Any  # (n,) in the type of D; 0 if dead
    since: Any  # (n,) int64, how much of the log the row has seen
    kept: Any  # (n,) int64, the log: this column became the merged cluster
    gone: Any  # (n,) int64, and this one died
    parts: Any  # (n, 4) of the type of D: weights of gone and kept, their sum, and what is taken off
    count: Any  # (4,) int64: columns, clusters alive, entries of the log, the first that may be alive


COLUMNS, ALIVE, LOGGED, FIRST = 0, 1, 2, 3


def chain(D: np.ndarray, size: np.ndarray, kind: int, equal: bool, tell: Callable[[int], None]) -> Merges:
    """Merges by the chain of nearest neighbours: for distances that no merge makes smaller. D is overwritten.

    `equal`: both parts weigh the same, whatever their sizes.
    """
    n = len(D)
    table, links, merges = _table(D, size), new_chain(n), new_merges(n)
    length = done = 0
    for stop in slices(n - 1):
        length = _along_chain(table, kind, equal, links, length, merges, done, stop)
        tell(done := stop)
    return merges


def closest(D: np.ndarray, size: np.ndarray, equal: bool, tell: Callable[[int], None]) -> Merges:
    """Merges the two closest centers, of squared distances, again and again. D is overwritten."""
    n = len(D)
    table, merges = _table(D, size), new_merges(n)
    near, link, known = np.full(n, np.inf, D.dtype), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    _first_neighbours(table, near, link, known)
    done = 0
    for stop in slices(n - 1):
        _by_closeness(table, equal, near, link, known, merges, done, stop)
        tell(done := stop)
    return merges


def prim(D: np.ndarray) -> Merges:
    """Merges along a minimum spanning tree."""
    merges = new_merges(len(D))
    _grow(D, merges)
    return merges


def labelled(merges: Merges, n: int) -> np.ndarray:
    """SciPy's matrix of merges that are in their order."""
    Z = np.empty((n - 1, 4))
    _label(merges, np.arange(2 * n - 1), np.ones(2 * n - 1), Z)
    return Z


def _table(D: np.ndarray, size: np.ndarray) -> Table:
    n = len(D)
    np.fill_diagonal(D, np.inf)
    ids, zeros = np.arange(n), np.zeros(n, np.int64)
    sizes, parts = size.astype(D.dtype), np.empty((n, 4), D.dtype)
    count = np.array([n, n, 0, 0])
    return Table(D, ids, ids.copy(), sizes, zeros, zeros.copy(), zeros.copy(), parts, count)


@intrinsic
def _fetch(typingctx, D, start, stop):
    """Asks for the numbers from `start` to `stop`, which will be read out of order."""
    sig = types.void(D, start, stop)

    def codegen(context, b, sig, args):
        v = Vectors("D start stop", context, b, sig, args)
        with v.loop(v["start"], v["stop"], 512 // v.bits, []) as line:
            v.prefetch(v.start("D", line.t))
        return context.get_dummy_value()

    return sig, codegen


@jit_inner
def _blend(kind, x, y, part, size):
    """The distance to a merged cluster, from those to its parts; `size` is of the cluster it is from."""
    if kind == LARGEST:
        return x if x > y else y
    if kind == WARD:
        value = ((part[0] + size) * x + (part[1] + size) * y - size * part[3]) / (part[2] + size)
    else:
        value = (part[0] * x + part[1] * y - part[3]) / part[2]
    zero = part[0] - part[0]
    return value if value > zero else zero


@jit_inner
def _blend_rows(kind, gone, kept, part, size, columns):
    """`kept` becomes the row of the merged cluster; a loop for each kind, that each be vector code."""
    if kind == LARGEST:
        for j in range(columns):
            kept[j] = _blend(LARGEST, gone[j], kept[j], part, size[j])
    elif kind == WARD:
        for j in range(columns):
            kept[j] = _blend(WARD, gone[j], kept[j], part, size[j])
    else:
        for j in range(columns):
            kept[j] = _blend(MEAN, gone[j], kept[j], part, size[j])


@jit_inner
def _catch_up(table, j, kind):
    """Row j as all merges so far have left it."""
    row, size, n = table.D[table.row[j]], table.size[j], table.D.shape[1]
    _fetch(table.D, table.row[j] * n, table.row[j] * n + table.count[COLUMNS])
    for t in range(table.since[j], table.count[LOGGED]):
        kept, gone = table.kept[t], table.gone[t]
        row[kept] = _blend(kind, row[gone], row[kept], table.parts[t], size)
        row[gone] = np.inf
    table.since[j] = table.count[LOGGED]


@jit_inner
def _lowest(numbers, columns, best, index):
    """The least of the first `columns` numbers and where it is, the first place if there are several."""
    width = wide(numbers.itemsize)
    whole = columns // width * width
    low, at = numbers[columns - 1], columns - 1
    if whole > 0:
        least(numbers, 0, whole, best, index)
        low, at = first_least(best, index)
    for i in range(whole, columns):
        if numbers[i] < low:
            low, at = numbers[i], i
    return low, at


@jit_inner
def _nearest(table, j, best, index):
    """The distance of cluster j, whose row is up to date, to the nearest, and which that is."""
    return _lowest(table.D[table.row[j]], table.count[COLUMNS], best, index)


@jit_inner
def _merge(table, a, b, height, kind, equal):
    """Joins clusters a and b, whose rows are up to date; the later column is kept. The number of the one that is."""
    gone, kept = min(a, b), max(a, b)
    size, now = table.size, table.count[LOGGED]
    part = table.parts[now]
    part[0], part[1] = (1, 1) if equal else (size[gone], size[kept])
    part[2] = part[0] + part[1]
    part[3] = 0
    if kind == WARD:
        part[3] = height
    elif kind == CENTER:
        part[3] = part[0] * part[1] * height / part[2]
    row = table.D[table.row[kept]]
    _blend_rows(kind, table.D[table.row[gone]], row, part, size, table.count[COLUMNS])
    row[kept] = np.inf
    row[gone] = np.inf
    size[kept] += size[gone]
    size[gone] = 0
    table.kept[now], table.gone[now] = kept, gone
    table.count[LOGGED] = table.since[kept] = now + 1
    table.count[ALIVE] -= 1
    return kept


@jit_inner
def _crowd(table, kind, moved):
    """Moves the live columns together, if enough are dead; moved (n,) says where each went, -1 for dead ones.

    Whether it did."""
    D, columns, alive = table.D, table.count[COLUMNS], table.count[ALIVE]
    if columns <= FEW or alive > CROWDED * columns:
        return False
    old = np.empty(alive, np.int64)
    k = 0
    for j in range(columns):
        moved[j] = -1
        if table.size[j] > 0:
            _catch_up(table, j, kind)
            old[k], moved[j] = j, k
            k += 1
    width = wide(D.itemsize)
    padded = (alive + width - 1) // width * width  # less than `columns`, which are many more
    for k in range(alive):
        row = D[table.row[old[k]]]
        for i in range(alive):
            row[i] = row[old[i]]
        for i in range(alive, padded):
            row[i] = np.inf
    for k in range(alive):
        j = old[k]
        table.row[k], table.leaf[k], table.size[k], table.since[k] = table.row[j], table.leaf[j], table.size[j], 0
    for k in range(alive, padded):
        table.size[k] = 0
    table.count[COLUMNS], table.count[LOGGED], table.count[FIRST] = padded, 0, 0
    return True


@jit
def _along_chain(table, kind, equal, chain, length, merges, start, stop):
    best = np.empty(lanes(table.D.itemsize), table.D.dtype)
    index, moved = np.empty(len(best), np.int32), np.empty(len(table.row), np.int64)
    step = start
    while step < stop:
        if length == 0:
            while table.size[table.count[FIRST]] == 0:
                table.count[FIRST] += 1
            length = push(chain, 0, table.count[FIRST], np.inf)
        last = chain.cluster[length - 1]
        _catch_up(table, last, kind)
        low, neighbour = _nearest(table, last, best, index)
        if low < chain.link[length - 1]:
            length = follow(chain, length, neighbour, low)
            continue
        before, height = chain.cluster[length - 2], table.D[table.row[last], chain.cluster[length - 2]]
        merges.left[step], merges.right[step], merges.height[step] = table.leaf[last], table.leaf[before], height
        length = cut(chain, length, length - 2)
        _catch_up(table, before, kind)
        _merge(table, last, before, height, kind, equal)
        if _crowd(table, kind, moved):
            for i in range(length):
                chain.place[chain.cluster[i]] = -1
            for i in range(length):
                push(chain, i, moved[chain.cluster[i]], chain.link[i])
        step += 1
    return length


@jit
def _first_neighbours(table, near, link, known):
    best = np.empty(lanes(table.D.itemsize), table.D.dtype)
    index = np.empty(len(best), np.int32)
    for j in range(len(near)):
        near[j], link[j] = _nearest(table, j, best, index)
        known[j] = True


@jit
def _by_closeness(
    table,
    equal,
    near,  # i/o (n,) at most the distance of each cluster to its nearest
    link,  # i/o (n,) which that is,
    known,  # i/o (n,) if it is
    merges,
    start,
    stop,
):
    """The generic algorithm (Müllner 2011): the nearest of a cluster is looked for when it may be the closest pair."""
    best = np.empty(lanes(near.itemsize), near.dtype)
    index, moved = np.empty(len(best), np.int32), np.empty(len(near), np.int64)
    step = start
    while step < stop:
        a = _lowest(near, table.count[COLUMNS], best, index)[1]
        if not known[a]:
            _catch_up(table, a, CENTER)
            near[a], link[a] = _nearest(table, a, best, index)
            known[a] = True
            continue
        b = link[a]
        merges.left[step], merges.right[step], merges.height[step] = table.leaf[a], table.leaf[b], near[a]
        _catch_up(table, a, CENTER)
        _catch_up(table, b, CENTER)
        kept = _merge(table, a, b, near[a], CENTER, equal)
        near[a + b - kept] = np.inf
        _tell_others(table, kept, a + b - kept, near, link, known)
        near[kept], link[kept] = _nearest(table, kept, best, index)
        known[kept] = True
        columns = table.count[COLUMNS]
        if _crowd(table, CENTER, moved):
            _crowd_neighbours(table, columns, moved, near, link, known)
        step += 1


@jit_inner
def _tell_others(table, kept, gone, near, link, known):
    """What the merge means for the nearest of the others: it may be the new cluster, or have gone into it."""
    row = table.D[table.row[kept]]
    for j in range(table.count[COLUMNS]):
        if row[j] < near[j]:
            near[j], link[j], known[j] = row[j], kept, True
        elif link[j] == kept or link[j] == gone:
            known[j] = row[j] == near[j]
            link[j] = kept


@jit_inner
def _crowd_neighbours(table, columns, moved, near, link, known):
    """What is known of the nearest, moved as the columns were: to the left, in their order."""
    for j in range(columns):
        if moved[j] >= 0:
            near[moved[j]], link[moved[j]], known[moved[j]] = near[j], moved[link[j]], known[j]
    for j in range(table.count[ALIVE], table.count[COLUMNS]):
        near[j] = np.inf


@jit
def _grow(D, merges):
    """Prim's tree: of all rows outside, `left`, the one nearest to any inside comes in."""
    n = len(D)
    left, near, link = np.arange(1, n), D[0].copy(), np.zeros(n, np.int64)
    for step in range(n - 1):
        low = 0
        for k in range(n - 1 - step):
            if near[left[k]] < near[left[low]]:
                low = k
        new = left[low]
        merges.left[step], merges.right[step], merges.height[step] = link[new], new, near[new]
        left[low] = left[n - 2 - step]
        row = D[new]
        for k in range(n - 2 - step):
            j = left[k]
            if row[j] < near[j]:
                near[j], link[j] = row[j], new


@jit
def _label(
    merges,  # in
    parent,  # i/o (2 n - 1,) of every cluster, itself at first
    size,  # i/o (2 n - 1,) ones at first
    Z,  # out (n - 1, 4)
):
    n = len(Z) + 1
    for i in range(n - 1):
        a, b = _root(parent, merges.left[i]), _root(parent, merges.right[i])
        parent[a] = parent[b] = n + i
        size[n + i] = size[a] + size[b]
        Z[i, 0], Z[i, 1], Z[i, 2], Z[i, 3] = min(a, b), max(a, b), merges.height[i], size[n + i]


@jit_inner
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
