"""Ward's linkage of points: clusters are their centers, and no distance is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.boxes import DEEP, built, drop, joining_cost, renew, search
from coterie.kernels.cpu.chain import cut, follow, new_chain, push
from coterie.kernels.cpu.jit import jit, jit_inner
from coterie.kernels.cpu.neighbours import cheapest, first_least, lanes, packed, place_of, put, take_out, wide
from coterie.kernels.plain.linkage import Merges, new_merges, slices

# A chain no longer than this is left after a merge, and another begun elsewhere. So clusters grow alike: a chain that
# goes on makes heavy ones among light ones, of whose boxes little can be said.
SHORT = 8


class Clusters(NamedTuple):
    """Centers of live clusters in tiles, without gaps; each bears the number of one of its rows."""

    tiles: Any  # centers, in the precision of the rows
    heavy: Any  # (..,) weights, likewise
    name: Any  # (n,) int64
    slot: Any  # (n,) int64, where the cluster of that name is
    center: Any  # (n, d) float64, by name
    weight: Any  # (n,) float64, by name


def ward(X: np.ndarray, weight: np.ndarray, tell: Callable[[int], None]) -> Merges:
    """Merges along the chain of nearest neighbours; heights are squared."""
    n = len(X)
    clusters, chain, merges = singles(X, weight), new_chain(n), new_merges(n)
    length = done = 0
    for stop in slices(n - 1):
        length = _along_chain(clusters, chain, length, merges, done, stop)
        tell(done := stop)
    return merges


def singles(X: np.ndarray, weight: np.ndarray) -> Clusters:
    n, width = len(X), wide(X.itemsize)
    heavy = np.ones(-(-n // width) * width, X.dtype)
    heavy[:n] = weight
    name = np.arange(n)
    return Clusters(packed(X), heavy, name, name.copy(), X.astype(np.float64), weight.astype(np.float64))


@jit_inner
def join(center, weight, gone, stays):
    """The center of both becomes that of `stays`."""
    both = weight[gone] + weight[stays]
    for t in range(center.shape[1]):
        center[stays, t] += (center[gone, t] - center[stays, t]) * (weight[gone] / both)
    weight[stays] = both


@jit
def _along_chain(clusters, chain, length, merges, start, stop):
    best = np.empty(lanes(clusters.tiles.itemsize), clusters.tiles.dtype)
    index, n = np.empty(len(best), np.int32), len(clusters.name)
    step = start
    while step < stop:
        if length == 0:
            length = push(chain, 0, clusters.name[0], np.inf)
        last = chain.cluster[length - 1]
        neighbour = _neighbour(clusters, last, n - step, best, index)
        cost = joining_cost(clusters.center, clusters.weight, last, neighbour)
        if cost < chain.link[length - 1]:
            length = follow(chain, length, neighbour, cost)
            continue
        before = chain.cluster[length - 2]
        merges.left[step], merges.right[step], merges.height[step] = last, before, chain.link[length - 1]
        length = cut(chain, length, length - 2)
        merge(clusters, last, before, n - step - 1)
        step += 1
    return length


@jit_inner
def _neighbour(clusters, cluster, live, best, index):
    """The cluster that is cheapest to join, as far as the precision of the rows can tell."""
    width, slot = wide(clusters.tiles.itemsize), clusters.slot[cluster]
    count, d = (live + width - 1) // width * width, clusters.center.shape[1]
    point = hide(clusters, slot)
    cheapest(clusters.tiles, point, clusters.heavy, clusters.heavy[slot], count, best, index, d)
    show(clusters, slot, point)
    return clusters.name[first_least(best, index)[1]]


@jit_inner
def hide(clusters, slot):
    """The center at `slot`, which is infinitely far for now."""
    tiles, d, width = clusters.tiles, clusters.center.shape[1], wide(clusters.tiles.itemsize)
    at, point = place_of(slot, d, width), np.empty(d, tiles.dtype)
    for t in range(d):
        point[t] = tiles[at + t * width]
    tiles[at] = np.inf
    return point


@jit_inner
def show(clusters, slot, point):
    """Undoes `hide`."""
    clusters.tiles[place_of(slot, len(point), wide(clusters.tiles.itemsize))] = point[0]


@jit_inner
def merge(clusters, gone, stays, last):
    """The live clusters stay without gaps: the one at `last` moves to where `gone` was."""
    join(clusters.center, clusters.weight, gone, stays)
    slot = clusters.slot[stays]
    put(clusters.tiles, slot, clusters.center[stays])
    clusters.heavy[slot] = clusters.weight[stays]
    slot = clusters.slot[gone]
    take_out(clusters.tiles, slot, last, clusters.center.shape[1])
    clusters.heavy[slot], clusters.heavy[last] = clusters.heavy[last], 1.0
    clusters.name[slot] = clusters.name[last]
    clusters.slot[clusters.name[slot]] = slot


def ward_in_boxes(X: np.ndarray, weight: np.ndarray, tell: Callable[[int], None]) -> Merges:
    """The same for few columns, with a tree of boxes around the centers, built anew whenever half of them are gone."""
    n = len(X)
    order = built(X.astype(np.float64), weight, np.arange(n)).member  # names that are neighbours are so in memory
    center, heavy, group = X[order].astype(np.float64), weight[order].astype(np.float64), np.arange(n)
    chain, merges, first = new_chain(n), new_merges(n), np.zeros(1, np.int64)
    length = done = 0
    while done < n - 1:
        boxes, begun = built(center, heavy, np.flatnonzero(heavy)), done
        for stop in slices((n - begun) // 2):
            length = _along_boxes(boxes, center, heavy, group, chain, length, first, merges, done, begun + stop)
            tell(done := begun + stop)
    return Merges(order[merges.left], order[merges.right], merges.height)


@jit
def _along_boxes(boxes, center, weight, group, chain, length, first, merges, start, stop):
    waiting, costs = np.empty(DEEP, np.int64), np.empty(DEEP)
    step = start
    while step < stop:
        if length == 0:
            first[0] = (first[0] + 1) % len(weight)  # all around, see SHORT
            while weight[first[0]] == 0:
                first[0] = (first[0] + 1) % len(weight)
            length = push(chain, 0, first[0], np.inf)
        last = chain.cluster[length - 1]
        neighbour, cost = search(boxes, center, weight, group, last, chain.link[length - 1], waiting, costs)
        if neighbour >= 0:
            length = follow(chain, length, neighbour, cost)
            continue
        before = chain.cluster[length - 2]
        merges.left[step], merges.right[step], merges.height[step] = last, before, chain.link[length - 1]
        length = cut(chain, length, length - 2 if length - 2 > SHORT else 0)
        join(center, weight, last, before)
        weight[last] = 0.0
        drop(boxes, center, weight, last)
        renew(boxes, center, weight, before)
        step += 1
    return length
