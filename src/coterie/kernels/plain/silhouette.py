"""Sums of distances of each row to each cluster, with SciPy: all rows are one block. See `kernels.cpu.silhouette`."""

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

Array = np.ndarray[Any, Any]


class Sums(NamedTuple):
    """Sums of the distances from `rows` to the rows of each of the `clusters`."""

    clusters: slice
    rows: slice
    values: Array  # (clusters, rows)


class Layout(NamedTuple):
    """Rows in their order."""

    X: Array  # (n, d)
    w: Array  # (n,)
    codes: Array  # (n,)
    k: int
    position: Array  # (n,) index of each row in the sums


def padded_size(counts: Array, itemsize: int) -> int:
    """Number of rows after padding of clusters with `counts` rows; here none is padded."""
    return int(counts.sum())


def layout(X: Array, w: Array, codes: Array, counts: Array) -> Layout:
    """Rows (n, d) with weights (n,) and clusters `codes` (n,), which have `counts` rows."""
    return Layout(X, w, codes, len(counts), np.arange(len(X)))


def blocks(rows: Layout) -> list[tuple[int, int, int, int]]:
    """The pair of the only block with itself: (start, stop) of both."""
    n = len(rows.X)
    return [(0, n, 0, n)]


def sums(rows: Layout, start: int, stop: int, other: int, end: int) -> tuple[Sums, ...]:
    """Sums of the distances from rows `start` to `stop` to those of rows `other` to `end` in each cluster."""
    membership = np.zeros((rows.k, end - other))
    membership[rows.codes[other:end], np.arange(end - other)] = rows.w[other:end]
    distances = cdist(rows.X[other:end], rows.X[start:stop])
    return (Sums(slice(0, rows.k), slice(start, stop), membership @ distances),)


def silhouettes_of_cells(
    D: Array,  # in  (n, m) distances of all rows, sorted by cell, to m of them
    w: Array,  # in  (n,) weights of the sorted rows
    starts: Array,  # in  (cells + 1,) first row of each cell
    clusters: Array,  # in  (cells, p) cluster of each cell in each of p clusterings
    first: Array,  # in  (p + 1,) first cluster of each clustering
    weight: Array,  # in  (clusters,)
    own: Array,  # in  (p, m) clusters of the m rows
    rest: Array,  # in  (p, m) weights of the other rows of these clusters
    values: Array,  # out (p, m)
) -> None:
    """Silhouettes of m rows in several clusterings: 0 for single rows, NaN or infinite if a sum overflows."""
    by_cell = np.add.reduceat(w[:, None] * D.astype(np.float64), starts[:-1], axis=0)
    for q in range(len(values)):
        size = weight[first[q] : first[q + 1]]
        sums = np.zeros((len(size), D.shape[1]))
        np.add.at(sums, clusters[:, q] - first[q], by_cell)
        same = own[q] - first[q], np.arange(D.shape[1])
        a = sums[same] / np.where(rest[q] > 0, rest[q], 1.0)
        means = np.where(size[:, None] > 0, sums / np.where(size > 0, size, 1.0)[:, None], np.inf)
        means[same] = np.inf
        b = means.min(axis=0)
        is_zero = (rest[q] <= 0) | ((a == 0) & (b == 0))
        with np.errstate(invalid="ignore"):
            values[q] = np.where(is_zero, 0.0, (b - a) / np.where(is_zero, 1.0, np.maximum(a, b)))
