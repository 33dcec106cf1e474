"""Sums of distances of each row to each cluster, with SciPy: all rows are one block. See `kernels.cpu.silhouette`."""

from __future__ import annotations

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
