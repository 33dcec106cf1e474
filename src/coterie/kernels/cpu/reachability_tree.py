"""Minimum spanning trees by mutual reachability: Borůvka's algorithm with lists of nearest neighbours.

The list of a row bounds the distances to all rows that are not in it. So the shortest edge out of a tree of the forest
is often known from the lists alone, and is an edge of the spanning tree. Other trees need a search; the largest tree
never does, because the others are connected to it. `spanning_tree.boruvka` uses the same forest without lists.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.linkage import root


class Lists(NamedTuple):
    """The nearest other rows of each row, by increasing distance."""

    index: Any  # (n, k) int32
    value: Any  # (n, k) distances
    first: Any  # (n,) int64, first entry that may be in another tree


class Forest(NamedTuple):
    """Trees that are merged, and what is known of the nearest row outside the tree of each row."""

    tree: Any  # (n,) int64, one of the rows of its tree
    near: Any  # (n,) int64, a row of another tree; -1 if none is known
    upper: Any  # (n,) mutual reachability distance to it; infinite if none is known
    lower: Any  # (n,) lower bound of that to every row of another tree
    edge: Any  # (n,) by tree: the row with the smallest known distance; -1 if none is known
    bound: Any  # (n,) by tree: minimum of the lower bounds
    size: Any  # (n,) by tree: number of rows


def new_lists(n: int, k: int, dtype: Any) -> Lists:
    """Empty lists of `k` neighbours."""
    return Lists(np.empty((n, k), np.int32), np.empty((n, k), dtype), np.zeros(n, np.int64))


def new_forest(n: int, dtype: Any) -> Forest:
    """Every row is a tree."""
    upper, lower, bound = np.full(n, np.inf, dtype), np.zeros(n, dtype), np.empty(n, dtype)
    return Forest(np.arange(n), np.full(n, -1), upper, lower, np.empty(n, np.int64), bound, np.empty(n, np.int64))


@jit
def scan_lists(lists, core, forest, start, stop):
    """Update the nearest known row outside the tree of the rows `start` to `stop`."""
    n, k = lists.index.shape
    for i in range(start, stop):
        tree = forest.tree[i]
        if forest.near[i] >= 0 and forest.tree[forest.near[i]] != tree:
            continue
        first = lists.first[i]
        while first < k and forest.tree[lists.index[i, first]] == tree:
            first += 1
        lists.first[i] = first
        best, near, is_complete = np.inf, -1, k == n - 1
        for t in range(first, k):
            if lists.value[i, t] >= best:
                is_complete = True
                break
            j = lists.index[i, t]
            if forest.tree[j] != tree:
                reach = max(core[i], core[j], lists.value[i, t])
                if reach < best:
                    best, near = reach, j
        bound = best if is_complete else min(best, max(core[i], lists.value[i, k - 1]))
        forest.near[i], forest.upper[i], forest.lower[i] = near, best, max(forest.lower[i], bound)


@jit
def summarize_trees(forest):
    """Shortest known edge and lower bound of each tree; numbers of trees, and of trees whose shortest edge is known."""
    n = len(forest.tree)
    for i in range(n):
        forest.edge[i], forest.bound[i], forest.size[i] = -1, np.inf, 0
    for i in range(n):
        tree = forest.tree[i]
        forest.size[tree] += 1
        forest.bound[tree] = min(forest.bound[tree], forest.lower[i])
        if forest.near[i] >= 0 and (forest.edge[tree] < 0 or forest.upper[i] < forest.upper[forest.edge[tree]]):
            forest.edge[tree] = i
    count, known = 0, 0
    for tree in range(n):
        if forest.size[tree] > 0:
            count += 1
            known += is_known(forest, tree)
    return count, known


@jit
def is_known(forest, tree):
    """Whether no edge out of the tree is shorter than the shortest known one."""
    return forest.edge[tree] >= 0 and forest.upper[forest.edge[tree]] <= forest.bound[tree]


@jit
def search_limits(forest):
    """By tree (n,): edges to search are shorter than this; -inf if the tree needs no search.

    The largest tree is not searched, unless no other tree is left to search.
    """
    n, largest = len(forest.tree), 0
    for tree in range(n):
        if forest.size[tree] > forest.size[largest]:
            largest = tree
    limit = np.full(n, -np.inf, forest.upper.dtype)
    for tree in range(n):
        if forest.size[tree] > 0 and tree != largest and not is_known(forest, tree):
            limit[tree] = np.inf if forest.edge[tree] < 0 else forest.upper[forest.edge[tree]]
    return limit


@jit
def connect(forest, inner, outer, height, done):
    """Connect each tree whose shortest edge is known, unless they are already connected; the number of edges.

    A tree is connected to others only by edges that are no shorter than its own, also if edges have equal lengths.
    """
    n = len(forest.tree)
    parent = np.arange(n)
    for tree in range(n):
        if forest.size[tree] == 0 or not is_known(forest, tree):
            continue
        i = forest.edge[tree]
        a, b = root(parent, tree), root(parent, forest.tree[forest.near[i]])
        if a != b:
            parent[max(a, b)] = min(a, b)
            inner[done], outer[done], height[done] = i, forest.near[i], forest.upper[i]
            done += 1
    for i in range(n):
        forest.tree[i] = root(parent, forest.tree[i])
    return done


def rows_to_search(forest: Forest, limit: np.ndarray) -> np.ndarray:
    """Rows of trees to search that may have an edge below the limit of the tree."""
    return np.flatnonzero(forest.lower < limit[forest.tree])


@jit
def store_search(forest, limit, rows, near, reach):
    """Store exact results of a search, and lower the limits (n,) of the trees."""
    for k in range(len(rows)):
        i = rows[k]
        forest.lower[i] = max(forest.lower[i], reach[k])
        forest.near[i], forest.upper[i] = near[k], reach[k]
        tree = forest.tree[i]
        limit[tree] = min(limit[tree], reach[k])
