"""Agglomerative clustering by a matrix of distances in NumPy: the definition, and the kernels for small matrices."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

# Linkage methods: update formulas of the distance to a merged cluster. The last two need squared distances.
COMPLETE, AVERAGE, CENTROID, WARD = 0, 1, 2, 3


class Merges(NamedTuple):
    """Merges in the order in which they were found; `left` and `right` are one row of each of the two clusters."""

    left: Any  # (n - 1,) int64
    right: Any  # (n - 1,) int64
    height: Any  # (n - 1,) float64


def new_merges(n: int) -> Merges:
    """Arrays for the n - 1 merges of n rows."""
    return Merges(np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1))


def merge_batches(first: int, last: int, progress: Callable[[int], None]) -> Iterator[tuple[int, int]]:
    """Ranges of merges after which a kernel returns to Python, so that Ctrl-C works, and `progress` is called."""
    step = max(256, (last - first) // 128)
    for start in range(first, max(last, first + 1), step):
        stop = min(start + step, last)
        yield start, stop
        progress(stop)


def nearest_neighbour_chain(D: Array, size: Array, kind: int, equal: bool, progress: Callable[[int], None]) -> Merges:
    """Nearest-neighbour chain algorithm, for methods in which no merge decreases a distance. `D` is overwritten.

    `equal`: both parts have the same weight, whatever their sizes.
    """
    np.fill_diagonal(D, np.inf)
    merges, size, chain = new_merges(len(D)), size.astype(D.dtype), list[int]()
    for step in range(len(D) - 1):
        chain = chain or [int(np.flatnonzero(size)[0])]
        while True:
            last = chain[-1]
            neighbour = int(D[last].argmin())
            if len(chain) > 1 and D[last, neighbour] >= D[last, chain[-2]]:
                break
            if neighbour in chain:  # only by rounding: the two nearest clusters become the end
                chain = [*chain[: chain.index(neighbour) + 1], last]
            else:
                chain.append(neighbour)
        previous = chain[-2]
        chain = chain[:-2]
        _merge(D, size, merges, step, last, previous, kind, equal)
    progress(len(D) - 1)
    return merges


def nearest_neighbour_chain_of_rows(
    X: Array, D: Array, size: Array, kind: int, equal: bool, progress: Callable[[int], None]
) -> Merges:
    """The same for Euclidean distances of the rows `X`; `D` is memory for them."""
    from coterie.kernels.plain.pairwise import METRICS, differences  # imports SciPy, which compiled kernels do not need

    differences(X, X, METRICS.index("euclidean"), 1.0, D)
    return nearest_neighbour_chain(D, size, kind, equal, progress)


def generic_linkage(D: Array, size: Array, equal: bool, progress: Callable[[int], None]) -> Merges:
    """Merge the two closest centers repeatedly; `D` are squared distances, and is overwritten."""
    np.fill_diagonal(D, np.inf)
    merges, size = new_merges(len(D)), size.astype(D.dtype)
    for step in range(len(D) - 1):
        a, b = divmod(int(D.argmin()), len(D))
        _merge(D, size, merges, step, a, b, CENTROID, equal)
    progress(len(D) - 1)
    return merges


def prim(D: Array) -> Merges:
    """Merges along a minimum spanning tree, by Prim's algorithm."""
    return prim_by_rows(len(D), D.__getitem__, lambda step: None)


def prim_by_rows(n: int, distances_of: Callable[[int], Array], progress: Callable[[int], None]) -> Merges:
    """The same with a function that returns the distances of a row to all others."""
    merges, nearest, link = new_merges(n), np.full(n, np.inf), np.zeros(n, np.int64)
    is_outside, new = np.ones(n, bool), 0
    for step in range(n - 1):
        is_outside[new], nearest[new] = False, np.inf
        distances = distances_of(new)
        is_nearer = (distances < nearest) & is_outside
        nearest[is_nearer], link[is_nearer] = distances[is_nearer], new
        new = int(nearest.argmin())
        merges.left[step], merges.right[step], merges.height[step] = link[new], new, nearest[new]
        if step % 256 == 0:
            progress(step)
    progress(n - 1)
    return merges


def linkage_matrix(merges: Merges, n: int) -> Array:
    """Linkage matrix of SciPy (n - 1, 4) for merges that are in its order."""
    Z = np.empty((n - 1, 4))
    kruskal(np.column_stack([merges.left, merges.right]), merges.height, Z)
    return Z


def kruskal(ends: Array, length: Array, Z: Array) -> None:
    """Single linkage by Kruskal's algorithm: edges in ascending order merge clusters; `Z` is the linkage matrix."""
    new = n = len(Z) + 1
    above, size = list(range(2 * n - 1)), [1] * (2 * n - 1)
    for (left, right), value in zip(ends.tolist(), length.tolist(), strict=True):
        a, b = sorted((_root(above, left), _root(above, right)))
        if a != b:
            above[a] = above[b] = new
            size[new] = size[a] + size[b]
            Z[new - n] = a, b, value, size[new]
            new += 1


def _root(above: list[int], cluster: int) -> int:
    """The largest cluster that contains this one, by union-find with shortened paths."""
    while above[cluster] != cluster:
        above[cluster] = cluster = above[above[cluster]]
    return cluster


def _merge(D: Array, size: Array, merges: Merges, step: int, a: int, b: int, kind: int, equal: bool) -> None:
    """Merge clusters a and b; the later one becomes the merged cluster."""
    source, target = sorted((a, b))
    merges.left[step], merges.right[step], merges.height[step] = source, target, D[a, b]
    D[target] = D[:, target] = _merged_distances(D[source], D[target], D[a, b], size, source, target, kind, equal)
    D[source] = D[:, source] = D[target, target] = np.inf
    size[target] += size[source]
    size[source] = 0


def _merged_distances(x: Array, y: Array, height: Any, size: Array, a: int, b: int, kind: int, equal: bool) -> Array:
    """Distances to the merged cluster, from those to its parts (Lance & Williams 1967)."""
    if kind == COMPLETE:
        return np.maximum(x, y)
    one = size.dtype.type(1)
    p, q = (one, one) if equal else (size[a], size[b])
    if kind == WARD:
        value = ((p + size) * x + (q + size) * y - size * height) / (p + q + size)
    else:
        share = p * q * height / (p + q) if kind == CENTROID else one * 0
        value = (p * x + q * y - share) / (p + q)
    return np.maximum(value, 0)
