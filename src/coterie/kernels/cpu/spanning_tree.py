"""Minimum spanning trees of rows, for single linkage."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu import read_only
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.kd_tree import MAX_DEPTH, build, search, set_groups
from coterie.kernels.cpu.linkage import root
from coterie.kernels.cpu.neighbours import first_minimum, lanes, move_last, offset, pack, tile_width, update_nearest
from coterie.kernels.plain.linkage import merge_batches

Threads = Callable[[Callable[..., None], list[tuple[int, int]]], Iterable[None]]
PARTS = 16  # parts of the points, which threads process


class Forest(NamedTuple):
    """Trees that are merged, and the nearest neighbour outside the tree of each point, if it is known."""

    tree: Any  # (n,) int64, one of the points of its tree
    near: Any  # (n,) int64, nearest neighbour outside the tree; -1 if unknown
    distance: Any  # (n,) squared distance to it, or a lower bound if it is unknown
    minimum: Any  # (n,) by tree: minimum known distance to another tree


def prim(X: np.ndarray, progress: Callable[[int], None]) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the edges of a minimum spanning tree, by Prim's algorithm; O(n^2 d) time, O(n d) memory."""
    n = len(X)
    tiles, last = pack(read_only(X)), -(-n // tile_width(X.itemsize)) * tile_width(X.itemsize)
    near, link, row_of = np.full(last, np.inf, X.dtype), np.zeros(last, np.int32), np.arange(n)
    inner, outer, newest = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.zeros(1, np.int64)
    done = 0
    for stop in merge_batches(n - 1):
        _prim(tiles, X.shape[1], near, link, row_of, newest, inner, outer, done, stop)
        progress(done := stop)
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
    forest = Forest(np.arange(n), np.full(n, -1), np.zeros(n), np.full(n, np.inf))
    inner, outer, done = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), 0
    cuts = [n * i // PARTS for i in range(PARTS + 1)]
    while done < n - 1:
        set_groups(kd_tree, forest.tree)
        _remove_internal(forest)

        def find_neighbours(start: int, stop: int) -> None:
            _find_neighbours(kd_tree, points, weight, forest, forest.minimum.copy(), start, stop)

        for _ in in_threads(find_neighbours, list(pairwise(cuts))):
            pass
        connected = _connect(forest, inner, outer, done)
        if connected == done:
            raise FloatingPointError("squared distances must be finite")
        progress(done := connected)
    return order[inner], order[outer]


@jit
def _remove_internal(forest):
    """Remove neighbours that are now in the same tree; the others bound the distances to search."""
    for i in range(len(forest.tree)):
        forest.minimum[i] = np.inf
    for i in range(len(forest.tree)):
        near, tree = forest.near[i], forest.tree[i]
        if near >= 0 and forest.tree[near] == tree:
            forest.near[i] = -1
        elif near >= 0:
            forest.minimum[tree] = min(forest.minimum[tree], forest.distance[i])


@jit
def _find_neighbours(kd_tree, points, weight, forest, minimum, start, stop):
    """Find neighbours that may be nearer than the known `minimum` (n,) of their tree."""
    pending, distances = np.empty(MAX_DEPTH, np.int64), np.empty(MAX_DEPTH)
    for i in range(start, stop):
        tree = forest.tree[i]
        if forest.near[i] < 0 and forest.distance[i] < minimum[tree]:
            nearest, distance = search(kd_tree, points, weight, forest.tree, i, minimum[tree], pending, distances)
            forest.near[i], forest.distance[i], minimum[tree] = nearest, distance, distance


@jit
def _connect(forest, inner, outer, done):
    """Connect each tree to the nearest other one by the first of the shortest edges, unless they are connected.

    The result is a minimum spanning tree also if edges have equal lengths: a tree is connected to others only by edges
    that are no shorter than its own.
    """
    n = len(forest.tree)
    edge, parent = np.full(n, -1), np.arange(n)
    for i in range(n):
        tree = forest.tree[i]
        if forest.near[i] >= 0 and (edge[tree] < 0 or forest.distance[i] < forest.distance[edge[tree]]):
            edge[tree] = i
    for tree in range(n):
        i = edge[tree]
        if i < 0:
            continue
        a, b = root(parent, tree), root(parent, forest.tree[forest.near[i]])
        if a != b:
            parent[max(a, b)] = min(a, b)
            inner[done], outer[done] = i, forest.near[i]
            done += 1
    for i in range(n):
        forest.tree[i] = root(parent, forest.tree[i])
    return done
