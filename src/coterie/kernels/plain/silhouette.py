"""Sums of the distances of every row to every cluster, in SciPy: all rows are one block."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

Array = np.ndarray[Any, Any]


class Sums(NamedTuple):
    """Sums over the rows of some clusters of their distances to some rows."""

    clusters: slice
    rows: slice
    values: Array  # (clusters, rows)


class Layout(NamedTuple):
    """Rows as they come, and how to read their sums."""

    X: Array  # (n, d)
    w: Array  # (n,)
    codes: Array  # (n,)
    k: int
    where: Array  # (n,) the place of each row


def places(counts: Array, itemsize: int) -> int:
    """Rows there are once each of the clusters, of so many rows, is filled up: here none is."""
    return int(counts.sum())


def layout(X: Array, w: Array, codes: Array, counts: Array) -> Layout:
    """Rows (n, d) with weights (n,) in clusters `codes` of `counts` rows."""
    return Layout(X, w, codes, len(counts), np.arange(len(X)))


def blocks(given: Layout) -> list[tuple[int, int, int, int]]:
    """The one block there is, with itself."""
    n = len(given.X)
    return [(0, n, 0, n)]


def sums(given: Layout, start: int, stop: int, other: int, end: int) -> tuple[Sums, ...]:
    """Sums of the distances of all rows to all clusters."""
    member = np.zeros((given.k, end - other))
    member[given.codes[other:end], np.arange(end - other)] = given.w[other:end]
    apart = cdist(given.X[other:end], given.X[start:stop])
    return (Sums(slice(0, given.k), slice(start, stop), member @ apart),)
