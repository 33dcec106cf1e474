"""Ward linkage of rows: only the centers of clusters are stored, and no distance matrix."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu import read_only
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.kd_tree import MAX_DEPTH, build, remove, search, update, ward_distance
from coterie.kernels.cpu.neighbour_chain import follow, new_chain, push, truncate
from coterie.kernels.cpu.neighbours import first_minimum, lanes, move_last, offset, pack, put, tile_width, ward_minima
from coterie.kernels.plain.linkage import Merges, merge_batches, new_merges

# A chain up to this length is abandoned after a merge, and another one begins elsewhere. So clusters grow evenly. If
# one chain continued, weights would differ much within boxes, and bounds of Ward's distance would be loose.
SHORT = 8


class Clusters(NamedTuple):
    """Centers of active clusters in consecutive slots of tiles; a cluster is identified by one of its rows."""

    tiles: Any  # centers, in the dtype of the rows
    tile_weight: Any  # (..,) weights by slot, in the dtype of the rows
    row: Any  # (n,) int64, cluster of each slot
    slot: Any  # (n,) int64, slot of each cluster
    center: Any  # (n, d) float64, by cluster
    weight: Any  # (n,) float64, by cluster


def ward(X: np.ndarray, weight: np.ndarray, progress: Callable[[int], None]) -> Merges:
    """Merges by the nearest-neighbour chain algorithm; heights are squared."""
    n = len(X)
    clusters, chain, merges = single_clusters(X, weight), new_chain(n), new_merges(n)
    length = 0
    for start, stop in merge_batches(0, n - 1, progress):
        length = _along_chain(clusters, chain, length, merges, start, stop)
    return merges


def single_clusters(X: np.ndarray, weight: np.ndarray) -> Clusters:
    """Each row as a cluster."""
    n, width = len(X), tile_width(X.itemsize)
    tile_weight = np.ones(-(-n // width) * width, X.dtype)
    tile_weight[:n] = weight
    row = np.arange(n)
    centers, weights = X.astype(np.float64), weight.astype(np.float64)
    return Clusters(pack(read_only(X)), tile_weight, row, row.copy(), centers, weights)


@jit
def merge_centers(center, weight, source, target):
    """Merge the center of `source` into that of `target`."""
    both = weight[source] + weight[target]
    for t in range(center.shape[1]):
        center[target, t] += (center[source, t] - center[target, t]) * (weight[source] / both)
    weight[target] = both


@jit
def _along_chain(clusters, chain, length, merges, start, stop):
    """Merges `start` to `stop`; return the length of the chain."""
    best = np.empty(lanes(clusters.tiles.itemsize), clusters.tiles.dtype)
    index, n = np.empty(len(best), np.int32), len(clusters.row)
    step = start
    while step < stop:
        if length == 0:
            length = push(chain, 0, clusters.row[0], np.inf)
        last = chain.cluster[length - 1]
        neighbour = _neighbour(clusters, last, n - step, best, index)
        distance = ward_distance(clusters.center, clusters.weight, last, neighbour)
        if distance < chain.link[length - 1]:
            length = follow(chain, length, neighbour, distance)
            continue
        previous = chain.cluster[length - 2]
        merges.left[step], merges.right[step], merges.height[step] = last, previous, chain.link[length - 1]
        length = truncate(chain, length, length - 2)
        merge(clusters, last, previous, n - step - 1)
        step += 1
    return length


@jit
def _neighbour(clusters, cluster, n_clusters, best, index):
    """The nearest cluster by Ward's distance, in the precision of the rows."""
    width, slot = tile_width(clusters.tiles.itemsize), clusters.slot[cluster]
    count, d = (n_clusters + width - 1) // width * width, clusters.center.shape[1]
    point = hide(clusters, slot)
    ward_minima(clusters.tiles, point, clusters.tile_weight, clusters.tile_weight[slot], count, best, index, d)
    show(clusters, slot, point)
    return clusters.row[first_minimum(best, index)[1]]


@jit
def hide(clusters, slot):
    """Return the center at `slot`, and make it infinitely far."""
    tiles, d, width = clusters.tiles, clusters.center.shape[1], tile_width(clusters.tiles.itemsize)
    at, point = offset(slot, d, width), np.empty(d, tiles.dtype)
    for t in range(d):
        point[t] = tiles[at + t * width]
    tiles[at] = np.inf
    return point


@jit
def show(clusters, slot, point):
    """Undo `hide`."""
    clusters.tiles[offset(slot, len(point), tile_width(clusters.tiles.itemsize))] = point[0]


@jit
def merge(clusters, source, target, last):
    """Merge two clusters; the one in slot `last` moves to the slot of `source`, so that slots stay consecutive."""
    merge_centers(clusters.center, clusters.weight, source, target)
    slot = clusters.slot[target]
    put(clusters.tiles, slot, clusters.center[target])
    clusters.tile_weight[slot] = clusters.weight[target]
    slot = clusters.slot[source]
    move_last(clusters.tiles, slot, last, clusters.center.shape[1])
    clusters.tile_weight[slot], clusters.tile_weight[last] = clusters.tile_weight[last], 1.0
    clusters.row[slot] = clusters.row[last]
    clusters.slot[clusters.row[slot]] = slot


def ward_in_kd_tree(X: np.ndarray, weight: np.ndarray, progress: Callable[[int], None]) -> Merges:
    """The same for few columns, with a k-d tree of the centers, which is rebuilt when half of them are merged."""
    n = len(X)
    order = build(X.astype(np.float64), weight, np.arange(n)).member  # near rows are near in memory
    center, weights, group = X[order].astype(np.float64), weight[order].astype(np.float64), np.arange(n)
    chain, merges, first = new_chain(n), new_merges(n), np.zeros(1, np.int64)
    length = done = 0
    while done < n - 1:
        tree, half = build(center, weights, np.flatnonzero(weights)), (n + done) // 2
        for start, stop in merge_batches(done, half, progress):
            length = _along_kd_tree(tree, center, weights, group, chain, length, first, merges, start, stop)
        done = half
    return Merges(order[merges.left], order[merges.right], merges.height)


@jit
def _along_kd_tree(tree, center, weight, group, chain, length, first, merges, start, stop):
    pending, distances = np.empty(MAX_DEPTH, np.int64), np.empty(MAX_DEPTH)
    step = start
    while step < stop:
        if length == 0:
            first[0] = (first[0] + 1) % len(weight)  # cyclic, see SHORT
            while weight[first[0]] == 0:
                first[0] = (first[0] + 1) % len(weight)
            length = push(chain, 0, first[0], np.inf)
        last = chain.cluster[length - 1]
        neighbour, distance = search(tree, center, weight, group, last, chain.link[length - 1], pending, distances)
        if neighbour >= 0:
            length = follow(chain, length, neighbour, distance)
            continue
        previous = chain.cluster[length - 2]
        merges.left[step], merges.right[step], merges.height[step] = last, previous, chain.link[length - 1]
        length = truncate(chain, length, length - 2 if length - 2 > SHORT else 0)
        merge_centers(center, weight, last, previous)
        weight[last] = 0.0
        remove(tree, center, weight, last)
        update(tree, center, weight, previous)
        step += 1
    return length
