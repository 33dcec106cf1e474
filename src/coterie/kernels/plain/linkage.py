"""Trees of merges from a matrix of distances, in NumPy: the definitions, and what small matrices run on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

# How the distance to a merged cluster comes from those to its two parts: the larger; the mean; for squared distances,
# that to the center of both, or Ward's.
LARGEST, MEAN, CENTER, WARD = 0, 1, 2, 3


class Merges(NamedTuple):
    """What merged with what, as rows of the data, one of each of the two clusters, and at which height."""

    left: Any  # (n - 1,) int64
    right: Any  # (n - 1,) int64
    height: Any  # (n - 1,) float64


def new_merges(n: int) -> Merges:
    return Merges(np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1))


def slices(total: int) -> Iterator[int]:
    """Where to come up for air: a kernel sees no keyboard."""
    step = max(256, total // 128)
    yield from range(step, total, step)
    yield total


def chain(D: Array, size: Array, kind: int, equal: bool, tell: Callable[[int], None]) -> Merges:
    """Merges by the chain of nearest neighbours: for distances that no merge makes smaller. D is overwritten.

    `equal`: both parts weigh the same, whatever their sizes.
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
            if neighbour in chain:  # by rounding alone: the two nearest become the end
                chain = [*chain[: chain.index(neighbour) + 1], last]
            else:
                chain.append(neighbour)
        before = chain[-2]
        chain = chain[:-2]
        _merge(D, size, merges, step, last, before, kind, equal)
    tell(len(D) - 1)
    return merges


def closest(D: Array, size: Array, equal: bool, tell: Callable[[int], None]) -> Merges:
    """Merges the two closest centers, of squared distances, again and again. D is overwritten."""
    np.fill_diagonal(D, np.inf)
    merges, size = new_merges(len(D)), size.astype(D.dtype)
    for step in range(len(D) - 1):
        a, b = divmod(int(D.argmin()), len(D))
        _merge(D, size, merges, step, a, b, CENTER, equal)
    tell(len(D) - 1)
    return merges


def prim(D: Array) -> Merges:
    """Merges along a minimum spanning tree."""
    merges, near, link = new_merges(len(D)), D[0].astype(np.float64), np.zeros(len(D), np.int64)
    inside = np.arange(len(D)) == 0
    for step in range(len(D) - 1):
        new = int(np.where(inside, np.inf, near).argmin())
        merges.left[step], merges.right[step], merges.height[step] = link[new], new, near[new]
        inside[new] = True
        nearer = D[new] < near
        near[nearer], link[nearer] = D[new][nearer], new
    return merges


def labelled(merges: Merges, n: int) -> Array:
    """SciPy's matrix of merges that are in their order."""
    Z, cluster = np.empty((n - 1, 4)), {i: [i] for i in range(n)}
    number = list(range(n))  # of the cluster that each row is in
    for i, (left, right, height) in enumerate(zip(*merges, strict=True)):
        a, b = sorted((number[left], number[right]))
        cluster[n + i] = cluster.pop(a) + cluster.pop(b)
        for row in cluster[n + i]:
            number[row] = n + i
        Z[i] = a, b, height, len(cluster[n + i])
    return Z


def _merge(D: Array, size: Array, merges: Merges, step: int, a: int, b: int, kind: int, equal: bool) -> None:
    """Joins clusters a and b; the later one is kept."""
    gone, kept = sorted((a, b))
    merges.left[step], merges.right[step], merges.height[step] = gone, kept, D[a, b]
    D[kept] = D[:, kept] = _blend(D[gone], D[kept], D[a, b], size, gone, kept, kind, equal)
    D[gone] = D[:, gone] = D[kept, kept] = np.inf
    size[kept] += size[gone]
    size[gone] = 0


def _blend(x: Array, y: Array, height: Any, size: Array, gone: int, kept: int, kind: int, equal: bool) -> Array:
    """Distances to the cluster of both, from those to each (Lance & Williams 1967)."""
    if kind == LARGEST:
        return np.maximum(x, y)
    one = size.dtype.type(1)
    p, q = (one, one) if equal else (size[gone], size[kept])
    if kind == WARD:
        value = ((p + size) * x + (q + size) * y - size * height) / (p + q + size)
    else:
        share = p * q * height / (p + q) if kind == CENTER else one * 0
        value = (p * x + q * y - share) / (p + q)
    return np.maximum(value, 0)
