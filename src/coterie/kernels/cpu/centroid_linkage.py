"""Centroid and median linkage of points: clusters are their centers, and no distance is kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_inner
from coterie.kernels.cpu.neighbours import first_least, lanes, least, meet, wide
from coterie.kernels.cpu.ward import Clusters, hide, merge, show, singles
from coterie.kernels.plain.linkage import Merges, new_merges, slices

UNKNOWN = -1


def centers(X: np.ndarray, weight: np.ndarray, equal: bool, tell: Callable[[int], None]) -> Merges:
    """Merges the two closest centers again and again; heights are squared.

    The new center is the mean of both, weighted unless `equal`: then all weights are 1. It can be nearer to a third
    than either was: so there is no chain to follow, and the closest of all pairs has to be known at every step.
    """
    n = len(X)
    clusters, merges = singles(X, weight), new_merges(n)
    near = np.full(len(clusters.heavy), np.inf, X.dtype)
    link = np.full(len(near), UNKNOWN, np.int32)
    _first_neighbours(clusters, near, link)
    done = 0
    for stop in slices(n - 1):
        _by_closeness(clusters, equal, near, link, merges, done, stop)
        tell(done := stop)
    return merges


@jit
def _first_neighbours(clusters, near, link):
    best, index = np.empty(lanes(near.itemsize), near.dtype), np.empty(lanes(near.itemsize), np.int32)
    n = len(clusters.name)
    for slot in range(n):
        _look(clusters, slot, n, near, link, best, index)


@jit
def _by_closeness(
    clusters: Clusters,
    equal,
    near,  # i/o (..,) at most the squared distance of each place to its nearest
    link,  # i/o (..,) which that is, by name, if it is known
    merges,
    start,
    stop,
):
    best, index = np.empty(lanes(near.itemsize), near.dtype), np.empty(lanes(near.itemsize), np.int32)
    width, n = wide(near.itemsize), len(clusters.name)
    step = start
    while step < stop:
        live = n - step
        least(near, 0, (live + width - 1) // width * width, best, index)
        slot = first_least(best, index)[1]
        if link[slot] == UNKNOWN:
            _look(clusters, slot, live, near, link, best, index)
            continue
        gone, stays, last = clusters.name[slot], np.int64(link[slot]), live - 1
        merges.left[step], merges.right[step] = gone, stays
        merges.height[step] = _square(clusters.center, gone, stays)
        merge(clusters, gone, stays, last)
        if equal:
            clusters.weight[stays] = 1.0
        near[slot], link[slot], near[last] = near[last], link[last], np.inf
        for k in range(last):
            if link[k] == gone or link[k] == stays:
                link[k] = UNKNOWN
        if last > 1:
            _look(clusters, clusters.slot[stays], last, near, link, best, index)
        step += 1


@jit_inner
def _look(clusters, slot, live, near, link, best, index):
    """Finds the nearest of the cluster at `slot`; those that have none nearer than it learn of it."""
    width = wide(near.itemsize)
    near[slot] = 0  # it is not to learn of itself
    point = hide(clusters, slot)
    count, d = (live + width - 1) // width * width, clusters.center.shape[1]
    meet(clusters.tiles, point, near, link, clusters.name[slot], count, best, index, d)
    show(clusters, slot, point)
    low, nearest = first_least(best, index)
    near[slot], link[slot] = low, clusters.name[nearest]


@jit_inner
def _square(center, a, b):
    total = 0.0
    for t in range(center.shape[1]):
        total += (center[a, t] - center[b, t]) ** 2
    return total
