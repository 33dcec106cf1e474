"""Core distances, and the minimum spanning tree by mutual reachability distances."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.density.kd_rows import PARTS, KDRows, kd_rows
from coterie.density.row_distances import RowDistances
from coterie.kernels.plain.linkage import Merges

MIN_LIST, MORE = 12, 8  # nearest neighbours in a list: minimum, and in addition to those of the core distance
ROUNDING = 1e-10  # relative difference of sums of weights that counts as rounding
BATCH = 16  # strips of a search after which the limits are updated

Report = Callable[[int], None]  # called with the number of edges found


class Reachability(NamedTuple):
    """Core distances, and the spanning tree with its edges in the order of their lengths."""

    core: Array  # (n,)
    edges: Merges


def reachability(distances: RowDistances, weight: Array, min_samples: float, report: Report) -> Reachability:
    """Core distances and spanning tree of the rows; `weight` (n,) is positive, and in all at least `min_samples`."""
    min_weight = min_samples * (1 - ROUNDING)
    kd = kd_rows(distances)
    if kd is not None:
        core, edges = _in_kd_tree(kd, weight, min_weight, distances.n_jobs, report)
    else:
        distances.store_if_small()
        compute = _from_matrix if distances.D is not None else _from_strips
        core, edges = compute(distances, weight, min_weight, report)
    first, second = np.minimum(edges.left, edges.right), np.maximum(edges.left, edges.right)
    order = np.lexsort((second, first, edges.height))
    edges = Merges(first[order], second[order], distances.to_scale(edges.height[order]))
    return Reachability(distances.to_scale(core), edges)


def core_distances(distances: RowDistances, weight: Array, min_samples: float) -> Array:
    """The distance of each row within which the rows, itself included, have the weight `min_samples` (n,)."""
    min_weight = min_samples * (1 - ROUNDING)
    kd = kd_rows(distances)
    if kd is None:
        distances.store_if_small()
        return distances.to_scale(_core_from_tables(distances, weight, min_weight))
    lists = _lists(kd, weight, min_weight, distances.n_jobs, 0)
    squares = kd.core_squares(lists.index, lists.value, weight[kd.order], min_weight)
    return distances.to_scale(kd.of_rows(kd.distances(squares)))


def _core_from_tables(distances: RowDistances, weight: Array, min_weight: float) -> Array:
    n = len(distances)
    kernel, core = kernels.select("density", n, n), np.empty(n, distances.dtype)

    def put(rows: Array, table: Array) -> None:
        kernel.core_distances(table, weight, min_weight, core[rows[0] : rows[-1] + 1])

    for _ in distances.in_threads(put, np.arange(n)):
        pass
    return core


def _from_matrix(distances: RowDistances, weight: Array, min_weight: float, report: Report) -> tuple[Array, Merges]:
    """Prim's algorithm on the matrix of mutual reachability distances."""
    assert distances.D is not None
    core = _core_from_tables(distances, weight, min_weight)
    reach = np.maximum(distances.D, core)
    np.maximum(reach, core[:, None], out=reach)
    edges: Merges = kernels.select("linkage", len(core), 1).prim(reach)
    report(len(core) - 1)
    return core, edges


def _from_strips(distances: RowDistances, weight: Array, min_weight: float, report: Report) -> tuple[Array, Merges]:
    """Borůvka's algorithm with all pairs of rows, a strip of them in memory at a time."""
    from coterie.kernels.cpu import density, reachability_tree

    n = len(distances)
    core = np.empty(n, distances.dtype)
    lists = reachability_tree.new_lists(n, _list_length(n, weight, min_weight, MORE), distances.dtype)

    def put(rows: Array, table: Array) -> None:
        part = slice(rows[0], rows[-1] + 1)
        density.core_distances(table, weight, min_weight, core[part])
        density.nearest_lists(table, rows, lists.index[part], lists.value[part])

    for _ in distances.in_threads(put, np.arange(n)):
        report(0)

    def search(forest: Any, limit: Array) -> None:
        def nearest(rows: Array, table: Array) -> tuple[Array, Array, Array]:
            near, reach = np.empty(len(rows), np.int64), np.empty(len(rows), table.dtype)
            density.nearest_outside(table, rows, core, forest.tree, near, reach)
            return rows, near, reach

        rows = reachability_tree.rows_to_search(forest, limit)
        rows = rows[np.argsort(forest.lower[rows], kind="stable")]
        step = BATCH * len(distances.strips(rows)[0][0]) if len(rows) else 0
        while len(rows):
            for part, near, reach in distances.in_threads(nearest, rows[:step]):
                reachability_tree.store_search(forest, limit, part, near, reach)
            report(0)
            rows = rows[step:]
            rows = rows[forest.lower[rows] < limit[forest.tree[rows]]]

    return core, _boruvka(lists, core, search, distances.n_jobs, report)


def _in_kd_tree(
    kd: KDRows, weight: Array, min_weight: float, n_jobs: int | None, report: Report
) -> tuple[Array, Merges]:
    """The same for Euclidean distances of few columns, with a k-d tree."""
    from coterie.kernels.cpu import kd_density
    from coterie.kernels.cpu.kd_tree import set_groups

    lists = _lists(kd, weight, min_weight, n_jobs, MORE)
    core = kd.core_squares(lists.index, lists.value, weight[kd.order], min_weight)
    kd_density.set_min_weights(kd.tree, core)

    def search(forest: Any, limit: Array) -> None:
        set_groups(kd.tree, forest.tree)

        def part(start: int, stop: int) -> None:
            kd_density.search_outside(kd.tree, kd.points, core, forest, limit.copy(), start, stop)

        machine.run_in_threads(part, kd.parts, n_jobs)

    edges = _boruvka(lists, core, search, n_jobs, report)
    edges = Merges(kd.order[edges.left], kd.order[edges.right], kd.distances(edges.height))
    return kd.of_rows(kd.distances(core)), edges


def _lists(kd: KDRows, weight: Array, min_weight: float, n_jobs: int | None, more: int) -> Any:
    from coterie.kernels.cpu.reachability_tree import new_lists

    lists = new_lists(len(weight), _list_length(len(weight), weight, min_weight, more), np.float64)
    kd.nearest_lists(lists.index, lists.value, n_jobs)
    return lists


def _list_length(n: int, weight: Array, min_weight: float, more: int) -> int:
    """Number of neighbours in a list: those of the core distance at the mean weight, and some more."""
    needed = int(np.ceil(min_weight * n / weight.sum()))
    return min(n - 1, max(MIN_LIST if more else 1, needed + more))


def _boruvka(
    lists: Any, core: Array, search: Callable[[Any, Array], None], n_jobs: int | None, report: Report
) -> Merges:
    """Connect trees by their shortest edges, from lists of neighbours; `search` finds edges that are not in them."""
    from coterie.kernels.cpu import reachability_tree

    n = len(core)
    forest = reachability_tree.new_forest(n, core.dtype)
    inner, outer, height, done = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1), 0
    parts = list(pairwise(n * i // PARTS for i in range(PARTS + 1)))
    while done < n - 1:
        machine.run_in_threads(partial(reachability_tree.scan_lists, lists, core, forest), parts, n_jobs)
        n_trees, n_known = reachability_tree.summarize_trees(forest)
        if 4 * n_known < n_trees:
            search(forest, reachability_tree.search_limits(forest))
            reachability_tree.summarize_trees(forest)
        connected = reachability_tree.connect(forest, inner, outer, height, done)
        if connected == done:
            raise FloatingPointError("squared distances must be finite")
        report(done := connected)
    return Merges(inner, outer, height)
