"""Agglomerative clustering with connectivity constraints: only neighbours in a graph are merged."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from coterie import kernels, machine
from coterie.core.arguments import as_floats
from coterie.core.arrays import Array
from coterie.distances.distance import Distance
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import strips
from coterie.errors import InputError

Block = Callable[[Array, Array], Array]  # distances (a, b) between two sets of rows


def merge_neighbours(
    ends: Array, method: str, distance: Distance | None, A: Any, weight: Array, n_jobs: int | None
) -> tuple[Array, int]:
    """Linkage matrix of merges of neighbours, and number of components; `A` are rows, or distances if no `distance`."""
    n = len(A)
    count, component = connected_components(
        sparse.coo_array((np.ones(len(ends)), ends.T), shape=(n, n)), directed=False
    )
    if count > 1:
        warnings.warn(
            f"connectivity has {count} connected components: the nearest rows of each pair of components are treated "
            "as neighbours. Add edges to the graph, or cluster each component separately",
            UserWarning,
            stacklevel=4,
        )
        ends = np.concatenate([ends, _bridges(component, int(count), _as_block(distance, A))])
    kernel, Z = kernels.select("graph_linkage", n, len(ends)), np.empty((n - 1, 4))
    if method == "ward":
        kernel.merge_shortest_edges(ends, kernel.WARD, np.zeros(len(ends)), weight, A.astype(np.float64), Z)
        Z[:, 2] = np.sqrt(2 * Z[:, 2])
        return Z, int(count)
    length = _edge_lengths(ends, distance, A, n_jobs)
    if method == "single":
        order = np.argsort(length, kind="stable")
        kernel.kruskal(ends[order], length[order], Z)
    else:
        rule = kernel.COMPLETE if method == "complete" else kernel.AVERAGE
        kernel.merge_shortest_edges(ends, rule, length, weight, np.empty((n, 0)), Z)
    return Z, int(count)


def edges(graph: Any, n: int) -> Array:
    """Pairs (m, 2) of different rows, lower index first, for which `graph` stores an entry in either direction."""
    matrix = graph if sparse.issparse(graph) else _as_dense(graph)
    if matrix.shape != (n, n):
        raise InputError(f"connectivity has shape {matrix.shape}: it must be ({n}, {n}), because X has {n} rows")
    pairs = sparse.coo_array(matrix)
    low, high = np.minimum(pairs.row, pairs.col), np.maximum(pairs.row, pairs.col)
    codes = np.unique(low.astype(np.int64) * n + high)
    ends = np.stack(np.divmod(codes, n), axis=1)
    return np.ascontiguousarray(ends[ends[:, 0] < ends[:, 1]])


def edges_among(ends: Array, rows: Array, n: int) -> Array:
    """The edges between a subset of the `n` rows, as pairs of positions in `rows`."""
    position = np.full(n, -1)
    position[rows] = np.arange(len(rows))
    renumbered = position[ends]
    return np.ascontiguousarray(renumbered[(renumbered >= 0).all(axis=1)])


def _as_dense(graph: Any) -> Array:
    try:
        matrix = as_floats(graph)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or np.isnan(matrix).any():
        raise InputError(
            f"connectivity must be a sparse matrix, an array (n, n) without NaN, or a function of X that returns one; "
            f"got {type(graph).__name__}"
        )
    return matrix


def _edge_lengths(ends: Array, distance: Distance | None, A: Any, n_jobs: int | None) -> Array:
    """The distance between the two ends of each edge (m,)."""
    if distance is None:
        return A[ends[:, 0], ends[:, 1]].astype(np.float64)
    length = np.empty(len(ends))
    with machine.one_blas_thread:
        machine.run_in_threads(partial(_measure, distance, A, ends, length), strips(len(ends), 256), n_jobs)
    return length


def _measure(distance: Distance, A: Any, ends: Array, length: Array, start: int, stop: int) -> None:
    if type(distance) is Euclidean:  # the most frequent case: all edges at once
        length[start:stop] = np.sqrt(((A[ends[start:stop, 0]] - A[ends[start:stop, 1]]) ** 2).sum(axis=1))
        return
    order = start + np.argsort(ends[start:stop, 0], kind="stable")
    firsts, begin = np.unique(ends[order, 0], return_index=True)
    for i, edges_of_i in zip(firsts, np.split(order, begin[1:]), strict=True):
        length[edges_of_i] = distance.table(A[[i]], A[ends[edges_of_i, 1]])[0]


def _bridges(component: Array, count: int, block: Block) -> Array:
    """The nearest rows of each pair of components (m, 2)."""
    machine.check_memory(
        32 * count**2, f"edges between {count} connected components", "pass a graph with fewer components"
    )
    order = np.argsort(component, kind="stable")
    start = np.searchsorted(component[order], np.arange(count))
    pairs = []
    for c in range(count - 1):
        members, others = order[start[c] : start[c + 1]], order[start[c + 1] :]
        distances, nearest = _nearest_members(members, others, block)
        first = _first_minima(distances, start[c + 1 :] - start[c + 1])
        pairs.append(np.stack([nearest[first], others[first]], axis=1))
    ends = np.concatenate(pairs)
    return np.stack([ends.min(axis=1), ends.max(axis=1)], axis=1)


def _nearest_members(members: Array, others: Array, block: Block) -> tuple[Array, Array]:
    """For each of `others`, the distance to the nearest of `members`, and this member."""
    distances, nearest = np.full(len(others), np.inf), np.zeros(len(others), np.int64)
    for begin, end in strips(len(members), len(others)):
        D = block(members[begin:end], others)
        row = D.argmin(axis=0)
        minimum = D[row, np.arange(len(others))]
        is_nearer = minimum < distances
        distances[is_nearer], nearest[is_nearer] = minimum[is_nearer], members[begin + row[is_nearer]]
    return distances, nearest


def _first_minima(values: Array, start: Array) -> Array:
    """The position of the first minimum in each run of values; `start` is where the runs begin."""
    minimum = np.minimum.reduceat(values, start)
    run = np.repeat(np.arange(len(start)), np.diff(np.append(start, len(values))))
    hits = np.flatnonzero(values == minimum[run])
    return hits[np.unique(run[hits], return_index=True)[1]]


def _as_block(distance: Distance | None, A: Any) -> Block:
    if distance is None:
        return lambda rows, others: A[np.ix_(rows, others)]
    return lambda rows, others: distance.table(A[rows], A[others])
