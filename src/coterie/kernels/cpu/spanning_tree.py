"""Minimum spanning trees of points: what single linkage merges along."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.boxes import DEEP, built, find_groups, search
from coterie.kernels.cpu.jit import jit, jit_inner
from coterie.kernels.cpu.neighbours import first_least, lanes, packed, place_of, reach, take_out, wide
from coterie.kernels.plain.linkage import slices

Threads = Callable[[Callable[..., None], list[tuple[int, int]]], Iterable[None]]
PARTS = 16  # of the points, that threads look for neighbours of


class Forest(NamedTuple):
    """Trees that grow together, and the nearest point outside the tree of each point, as far as it is known."""

    tree: Any  # (n,) int64, the number of one of the points of its tree
    near: Any  # (n,) int64, the nearest outside; -1 if not known
    apart: Any  # (n,) squared distance to it; if it is not known, to be no nearer than this
    least: Any  # (n,) by tree: the least distance from it to another that is known


def prim(X: np.ndarray, tell: Callable[[int], None]) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the edges of a minimum spanning tree of the rows, in the order it grows; O(n^2 d), in O(n d) memory."""
    n = len(X)
    tiles, last = packed(X), -(-n // wide(X.itemsize)) * wide(X.itemsize)
    near, link, name = np.full(last, np.inf, X.dtype), np.zeros(last, np.int32), np.arange(n)
    inner, outer, newest = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.zeros(1, np.int64)
    done = 0
    for stop in slices(n - 1):
        _grow(tiles, X.shape[1], near, link, name, newest, inner, outer, done, stop)
        tell(done := stop)
    return inner, outer


@jit
def _grow(
    tiles,  # i/o the points not in the tree, as tiles, without gaps, and at first the newest of the tree
    d,
    near,  # i/o (..,) squared distances of the points to the tree
    link,  # i/o (..,) the nearest of the tree
    name,  # i/o (n,) whose row each point is
    newest,  # i/o (1,) where the newest of the tree still stands
    inner,  # out (n - 1,)
    outer,  # out (n - 1,)
    start,
    stop,
):
    width, n = wide(tiles.itemsize), len(name)
    point = np.empty(d, tiles.dtype)
    best, index = np.empty(lanes(tiles.itemsize), tiles.dtype), np.empty(lanes(tiles.itemsize), np.int32)
    for step in range(start, stop):
        slot, last = newest[0], n - 1 - step
        row, at = name[slot], place_of(slot, d, width)
        for t in range(d):
            point[t] = tiles[at + t * width]
        take_out(tiles, slot, last, d)
        near[slot], link[slot], name[slot] = near[last], link[last], name[last]
        near[last] = np.inf
        reach(tiles, point, near, link, row, (last + width - 1) // width * width, best, index, d)
        _, newest[0] = first_least(best, index)
        inner[step], outer[step] = link[newest[0]], name[newest[0]]


def boruvka(X: np.ndarray, in_threads: Threads, tell: Callable[[int], None]) -> tuple[np.ndarray, np.ndarray]:
    """The same for few columns: every tree of a forest is joined to the nearest other, in a few rounds.

    `in_threads` takes a function to all parts of the points; parts depend on the number of points alone.
    """
    n = len(X)
    order = built(X.astype(np.float64), np.ones(n), np.arange(n)).member
    points, weight = X[order].astype(np.float64), np.ones(n)
    boxes = built(points, weight, np.arange(n))
    forest = Forest(np.arange(n), np.full(n, -1), np.zeros(n), np.full(n, np.inf))
    inner, outer, done = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), 0
    cuts = [n * i // PARTS for i in range(PARTS + 1)]
    while done < n - 1:
        find_groups(boxes, forest.tree)
        _keep_known(forest)

        def look(start: int, stop: int) -> None:
            _look(boxes, points, weight, forest, forest.least.copy(), start, stop)

        for _ in in_threads(look, list(pairwise(cuts))):
            pass
        joined = _connect(forest, inner, outer, done)
        if joined == done:
            raise FloatingPointError("squared distances must be finite")
        tell(done := joined)
    return order[inner], order[outer]


@jit
def _keep_known(forest):
    """Forgets neighbours that are outside no more; the others bound what is worth looking for."""
    for i in range(len(forest.tree)):
        forest.least[i] = np.inf
    for i in range(len(forest.tree)):
        near, tree = forest.near[i], forest.tree[i]
        if near >= 0 and forest.tree[near] == tree:
            forest.near[i] = -1
        elif near >= 0:
            forest.least[tree] = min(forest.least[tree], forest.apart[i])


@jit
def _look(boxes, points, weight, forest, least, start, stop):
    """Looks for the neighbours that may be nearer than the `least` (n,) that their trees know of."""
    waiting, costs = np.empty(DEEP, np.int64), np.empty(DEEP)
    for i in range(start, stop):
        tree = forest.tree[i]
        if forest.near[i] < 0 and forest.apart[i] < least[tree]:
            found, apart = search(boxes, points, weight, forest.tree, i, least[tree], waiting, costs)
            forest.near[i], forest.apart[i], least[tree] = found, apart, apart


@jit
def _connect(forest, inner, outer, done):
    """Joins every tree to the nearest other, by the first of the shortest edges, unless they are joined already.

    Without a circle and with least weight, also where edges are equally long: whatever has been joined to a tree was
    so by edges no shorter than its own.
    """
    n = len(forest.tree)
    edge, root = np.full(n, -1), np.arange(n)
    for i in range(n):
        tree = forest.tree[i]
        if forest.near[i] >= 0 and (edge[tree] < 0 or forest.apart[i] < forest.apart[edge[tree]]):
            edge[tree] = i
    for tree in range(n):
        i = edge[tree]
        if i < 0:
            continue
        a, b = _root(root, tree), _root(root, forest.tree[forest.near[i]])
        if a != b:
            root[max(a, b)] = min(a, b)
            inner[done], outer[done] = i, forest.near[i]
            done += 1
    for i in range(n):
        forest.tree[i] = _root(root, forest.tree[i])
    return done


@jit_inner
def _root(root, i):
    while root[i] != i:
        root[i] = root[root[i]]
        i = root[i]
    return i
