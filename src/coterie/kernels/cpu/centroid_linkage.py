"""Centroid and median linkage of rows: only the centers of clusters are stored, and no distance matrix."""

from collections.abc import Callable

import numpy as np

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.neighbours import first_minimum, lane_minima, lanes, nearest_to_point, tile_width
from coterie.kernels.cpu.sums import squared_distance
from coterie.kernels.cpu.ward import Clusters, hide, merge, show, single_clusters
from coterie.kernels.plain.linkage import Merges, merge_batches, new_merges

UNKNOWN = -1


def centroid_linkage(X: np.ndarray, weight: np.ndarray, equal: bool, progress: Callable[[int], None]) -> Merges:
    """Merge the two closest centers repeatedly; heights are squared distances.

    The new center is the mean of both, weighted unless `equal`: then all weights are 1. It can be nearer to a third
    center than both were. So the nearest-neighbour chain cannot be used, and each step needs the closest of all pairs.
    """
    n = len(X)
    clusters, merges = single_clusters(X, weight), new_merges(n)
    near = np.full(len(clusters.tile_weight), np.inf, X.dtype)
    link = np.full(len(near), UNKNOWN, np.int32)
    _first_neighbours(clusters, near, link)
    for start, stop in merge_batches(0, n - 1, progress):
        _merge_closest(clusters, equal, near, link, merges, start, stop)
    return merges


@jit
def _first_neighbours(clusters, near, link):
    best, index = np.empty(lanes(near.itemsize), near.dtype), np.empty(lanes(near.itemsize), np.int32)
    n = len(clusters.row)
    for slot in range(n):
        _find_nearest(clusters, slot, n, near, link, best, index)


@jit
def _merge_closest(
    clusters: Clusters,
    equal,
    near,  # i/o (..,) lower bound of the squared distance of each slot to its nearest center
    link,  # i/o (..,) its nearest cluster; UNKNOWN if `near` is only a bound
    merges,
    start,
    stop,
):
    """Merges `start` to `stop` (Müllner 2011, generic algorithm)."""
    best, index = np.empty(lanes(near.itemsize), near.dtype), np.empty(lanes(near.itemsize), np.int32)
    width, n = tile_width(near.itemsize), len(clusters.row)
    step = start
    while step < stop:
        n_clusters = n - step
        lane_minima(near, 0, (n_clusters + width - 1) // width * width, best, index)
        slot = first_minimum(best, index)[1]
        if link[slot] == UNKNOWN:
            _find_nearest(clusters, slot, n_clusters, near, link, best, index)
            continue
        source, target, last = clusters.row[slot], np.int64(link[slot]), n_clusters - 1
        merges.left[step], merges.right[step] = source, target
        merges.height[step] = squared_distance(clusters.center[source], clusters.center[target])
        merge(clusters, source, target, last)
        if equal:
            clusters.weight[target] = 1.0
        near[slot], link[slot], near[last] = near[last], link[last], np.inf
        for k in range(last):
            if link[k] == source or link[k] == target:
                link[k] = UNKNOWN
        if last > 1:
            _find_nearest(clusters, clusters.slot[target], last, near, link, best, index)
        step += 1


@jit
def _find_nearest(clusters, slot, n_clusters, near, link, best, index):
    """Find the nearest center of the cluster at `slot`, and update that of clusters to which it is nearer."""
    width = tile_width(near.itemsize)
    near[slot] = 0  # so that it is not updated with itself
    point = hide(clusters, slot)
    count, d = (n_clusters + width - 1) // width * width, clusters.center.shape[1]
    nearest_to_point(clusters.tiles, point, near, link, clusters.row[slot], count, best, index, d)
    show(clusters, slot, point)
    low, nearest = first_minimum(best, index)
    near[slot], link[slot] = low, clusters.row[nearest]
