"""Minimum spanning trees of rows, for single linkage."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise

import numpy as np

from coterie.kernels.cpu import read_only
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.kd_tree import MAX_DEPTH, build, search, set_groups
from coterie.kernels.cpu.neighbours import first_minimum, lanes, move_last, offset, pack, tile_width, update_nearest
from coterie.kernels.cpu.reachability_tree import connect, new_forest, summarize_trees
from coterie.kernels.plain.linkage import merge_batches

Threads = Callable[[Callable[..., None], list[tuple[int, int]]], Iterable[None]]
PARTS = 16  # parts of the points, which threads process


def prim(X: np.ndarray, progress: Callable[[int], None]) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the edges of a minimum spanning tree, by Prim's algorithm; O(n^2 d) time, O(n d) memory."""
    n = len(X)
    tiles, last = pack(read_only(X)), -(-n // tile_width(X.itemsize)) * tile_width(X.itemsize)
    near, link, row_of = np.full(last, np.inf, X.dtype), np.zeros(last, np.int32), np.arange(n)
    inner, outer, newest = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.zeros(1, np.int64)
    for start, stop in merge_batches(0, n - 1, progress):
        _prim(tiles, X.shape[1], near, link, row_of, newest, inner, outer, start, stop)
    return inner, outer


@jit
def _prim(
    tiles,  # i/o tiles of the points outside the tree, and of the newest point of the tree
    d,
    near,  # i/o (..,) squared distances of the points to the tree
    link,  # i/o (..,) nearest points of the tree
    row_of,  # i/o (n,) row of each point
    newest,  # i/o (1,) slot of the newest point of the tree
    inner,  # out (n - 1,)
    outer,  # out (n - 1,)
    start,
    stop,
):
    """Edges `start` to `stop` of Prim's algorithm."""
    width, n = tile_width(tiles.itemsize), len(row_of)
    point = np.empty(d, tiles.dtype)
    best, index = np.empty(lanes(tiles.itemsize), tiles.dtype), np.empty(lanes(tiles.itemsize), np.int32)
    for step in range(start, stop):
        slot, last = newest[0], n - 1 - step
        row, at = row_of[slot], offset(slot, d, width)
        for t in range(d):
            point[t] = tiles[at + t * width]
        move_last(tiles, slot, last, d)
        near[slot], link[slot], row_of[slot] = near[last], link[last], row_of[last]
        near[last] = np.inf
        update_nearest(tiles, point, near, link, row, (last + width - 1) // width * width, best, index, d)
        _, newest[0] = first_minimum(best, index)
        inner[step], outer[step] = link[newest[0]], row_of[newest[0]]


def boruvka(X: np.ndarray, in_threads: Threads, progress: Callable[[int], None]) -> tuple[np.ndarray, np.ndarray]:
    """The same for few columns, by Borůvka's algorithm: each tree of a forest is connected to the nearest other one.

    `in_threads` calls a function for all parts of the points, which depend on the number of points only.
    """
    n = len(X)
    order = build(X.astype(np.float64), np.ones(n), np.arange(n)).member
    points, weight = X[order].astype(np.float64), np.ones(n)
    kd_tree = build(points, weight, np.arange(n))
    distance = np.zeros(n)  # to the nearest point of another tree, or a lower bound if that point is unknown
    forest = new_forest(n, np.float64)._replace(lower=distance, upper=distance)
    inner, outer, length, done = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1), 0
    parts = list(pairwise(n * i // PARTS for i in range(PARTS + 1)))
    while done < n - 1:
        set_groups(kd_tree, forest.tree)
        known = np.full(n, np.inf)
        _remove_internal(forest, known)
        for _ in in_threads(partial(_find_neighbours, kd_tree, points, weight, forest, known), parts):
            pass
        summarize_trees(forest)
        connected = connect(forest, inner, outer, length, done)
        if connected == done:
            raise FloatingPointError("squared distances must be finite")
        progress(done := connected)
    return order[inner], order[outer]


@jit
def _remove_internal(forest, minimum):
    """Remove neighbours that are now in the same tree; write the `minimum` distance to the others by tree (n,)."""
    for i in range(len(forest.tree)):
        near, tree = forest.near[i], forest.tree[i]
        if near >= 0 and forest.tree[near] == tree:
            forest.near[i] = -1
        elif near >= 0:
            minimum[tree] = min(minimum[tree], forest.upper[i])


@jit
def _find_neighbours(kd_tree, points, weight, forest, known, start, stop):
    """Find neighbours that may be nearer than the minimum distance of their tree; `known` (n,) are those known so far.

    Threads process parts of the points, so each of them lowers its own copy.
    """
    pending, distances, minimum = np.empty(MAX_DEPTH, np.int64), np.empty(MAX_DEPTH), known.copy()
    for i in range(start, stop):
        tree = forest.tree[i]
        if forest.near[i] < 0 and forest.lower[i] < minimum[tree]:
            nearest, distance = search(kd_tree, points, weight, forest.tree, i, minimum[tree], pending, distances)
            forest.near[i], forest.lower[i], minimum[tree] = nearest, distance, distance
