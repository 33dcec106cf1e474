"""Merges between neighbours only, as a graph has them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from coterie import kernels, machine
from coterie.core.arguments import as_floats
from coterie.core.errors import InputError
from coterie.distances.distance import Distance
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import strips
from coterie.hierarchy.tree import Array

Block = Callable[[Array, Array], Array]  # distances (a, b) of some of the rows to others


def merge_neighbours(
    ends: Array, method: str, distance: Distance | None, A: Any, weight: Array, n_jobs: int | None
) -> tuple[Array, int]:
    """The tree (n - 1, 4) of merges between clusters that an edge connects; and how many parts the graph has.

    `A` are prepared rows; without a distance, `A` is all distances. Heights may fall, where a merge makes clusters
    neighbours that are nearer.
    """
    n, between = len(A), _block(distance, A)
    parts, part = connected_components(sparse.coo_array((np.ones(len(ends)), ends.T), shape=(n, n)), directed=False)
    if parts > 1:
        warnings.warn(
            f"connectivity has {parts} parts that no edge connects: the nearest rows of every two of them are taken "
            "as neighbours. Add edges, or cluster the parts one by one",
            UserWarning,
            stacklevel=4,
        )
        ends = np.concatenate([ends, _bridges(part, int(parts), between)])
    kernel, Z = kernels.select("merging", n, len(ends)), np.empty((n - 1, 4))
    if method == "ward":
        kernel.merge_along(ends, kernel.WARD, np.zeros(len(ends)), weight, A.astype(np.float64), Z)
        Z[:, 2] = np.sqrt(2 * Z[:, 2])
        return Z, int(parts)
    length = _lengths(ends, distance, A, n_jobs)
    if method == "single":
        order = np.argsort(length, kind="stable")
        kernel.merge_in_order(ends[order], length[order], Z)
    else:
        rule = kernel.COMPLETE if method == "complete" else kernel.AVERAGE
        kernel.merge_along(ends, rule, length, weight, np.empty((n, 0)), Z)
    return Z, int(parts)


def edges(graph: Any, n: int) -> Array:
    """Pairs (m, 2) of different rows, the lower number first, for which an entry is stored in either direction."""
    stored = graph if sparse.issparse(graph) else _dense(graph)
    if stored.shape != (n, n):
        raise InputError(f"connectivity has shape {stored.shape}: it must have a row and a column for each of {n} rows")
    pairs = sparse.coo_array(stored)
    low, high = np.minimum(pairs.row, pairs.col), np.maximum(pairs.row, pairs.col)
    codes = np.unique(low.astype(np.int64) * n + high)
    ends = np.stack(np.divmod(codes, n), axis=1)
    return np.ascontiguousarray(ends[ends[:, 0] < ends[:, 1]])


def edges_among(ends: Array, kept: Array, n: int) -> Array:
    """Edges between those of the `n` rows that are `kept`, which are numbered anew."""
    place = np.full(n, -1)
    place[kept] = np.arange(len(kept))
    moved = place[ends]
    return np.ascontiguousarray(moved[(moved >= 0).all(axis=1)])


def _dense(graph: Any) -> Array:
    try:
        found = as_floats(graph)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 2 or np.isnan(found).any():
        raise InputError(
            f"connectivity must be a sparse matrix, an array (n, n) without NaN, or a function that makes one of X; "
            f"got {type(graph).__name__}"
        )
    return found


def _lengths(ends: Array, distance: Distance | None, A: Any, n_jobs: int | None) -> Array:
    """The distance between the two ends of every edge."""
    if distance is None:
        return A[ends[:, 0], ends[:, 1]].astype(np.float64)
    length = np.empty(len(ends))
    with machine.one_blas_thread:
        for _ in machine.in_threads(partial(_measure, distance, A, ends, length), strips(len(ends), 256), n_jobs):
            pass
    return length


def _measure(distance: Distance, A: Any, ends: Array, length: Array, start: int, stop: int) -> None:
    if type(distance) is Euclidean:  # most graphs: all edges at once
        length[start:stop] = np.sqrt(((A[ends[start:stop, 0]] - A[ends[start:stop, 1]]) ** 2).sum(axis=1))
        return
    order = start + np.argsort(ends[start:stop, 0], kind="stable")
    firsts, begin = np.unique(ends[order, 0], return_index=True)
    for i, mine in zip(firsts, np.split(order, begin[1:]), strict=True):
        length[mine] = _measured(distance, A, np.array([i]), ends[mine, 1])[0]


def _bridges(part: Array, parts: int, between: Block) -> Array:
    """The nearest rows of every two parts (m, 2)."""
    machine.check_room(32 * parts**2, f"edges between {parts} parts", "give a graph of fewer parts")
    order = np.argsort(part, kind="stable")
    start = np.searchsorted(part[order], np.arange(parts))
    found = []
    for p in range(parts - 1):
        mine, others = order[start[p] : start[p + 1]], order[start[p + 1] :]
        nearest, by = _nearest(mine, others, between)
        at = _first_least(nearest, start[p + 1 :] - start[p + 1])
        found.append(np.stack([by[at], others[at]], axis=1))
    ends = np.concatenate(found)
    return np.stack([ends.min(axis=1), ends.max(axis=1)], axis=1)


def _nearest(mine: Array, others: Array, between: Block) -> tuple[Array, Array]:
    """For each of `others` the least distance to any of `mine`, and to which."""
    nearest, by = np.full(len(others), np.inf), np.zeros(len(others), np.int64)
    for begin, end in strips(len(mine), len(others)):
        D = between(mine[begin:end], others)
        at = D.argmin(axis=0)
        here = D[at, np.arange(len(others))]
        closer = here < nearest
        nearest[closer], by[closer] = here[closer], mine[begin + at[closer]]
    return nearest, by


def _first_least(values: Array, start: Array) -> Array:
    """Where the least value is of every run that begins at `start`, the first of several."""
    least = np.minimum.reduceat(values, start)
    run = np.repeat(np.arange(len(start)), np.diff(np.append(start, len(values))))
    hits = np.flatnonzero(values == least[run])
    return hits[np.unique(run[hits], return_index=True)[1]]


def _block(distance: Distance | None, A: Any) -> Block:
    """Distances of some to others."""
    if distance is None:
        return lambda these, those: A[np.ix_(these, those)]
    return partial(_measured, distance, A)


def _measured(distance: Distance, A: Any, these: Array, those: Array) -> Array:
    made = np.empty((len(these), len(those)), A.dtype)
    distance.between(A[these], A[those], made)
    return made
