"""Core distances, and the minimum spanning tree by mutual reachability distances."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.density.kd_rows import KDRows, kd_rows, parts_of
from coterie.density.row_distances import RowDistances, RowGroups, group_rows
from coterie.kernels.plain.linkage import Merges

MIN_LIST, MORE = 12, 8  # nearest neighbours in a list: minimum, and in addition to those of the core distance
ROUNDING = 1e-10  # relative difference of sums of weights that counts as rounding
BATCH = 16  # strips of a search after which the limits are updated
FIRST_COLUMNS = 16  # rows of the nearest groups that are compared first, as a multiple of the length of the lists
BOUND_ROWS = 4096  # rows whose bounds are in memory at a time

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


def _from_matrix(distances: RowDistances, weight: Array, min_weight: float, report: Report) -> tuple[Array, Merges]:
    """Prim's algorithm on the matrix of mutual reachability distances."""
    assert distances.D is not None
    n = len(distances)
    kernel, core = kernels.select("density", n, n), np.empty(n, distances.dtype)

    def put(rows: Array, table: Array) -> None:
        kernel.core_distances(table, weight, min_weight, core[rows[0] : rows[-1] + 1])

    for _ in distances.in_threads(put, np.arange(n)):
        pass
    reach = np.maximum(distances.D, core)
    np.maximum(reach, core[:, None], out=reach)
    edges: Merges = kernels.select("linkage", n, 1).prim(reach)
    report(n - 1)
    return core, edges


def _from_strips(distances: RowDistances, weight: Array, min_weight: float, report: Report) -> tuple[Array, Merges]:
    """Borůvka's algorithm with tables of distances, a strip of rows at a time; groups of far rows are left out."""
    distances, groups, order = group_rows(distances)
    core, lists = _core_and_lists(distances, groups, weight[order], min_weight, report)
    edges = _boruvka(lists, core, partial(_search_groups, distances, groups, core, report), distances.n_jobs, report)
    of_rows = np.empty_like(core)
    of_rows[order] = core
    return of_rows, Merges(order[edges.left], order[edges.right], edges.height)


def _core_and_lists(
    distances: RowDistances, groups: RowGroups, weight: Array, min_weight: float, report: Report
) -> tuple[Array, Any]:
    """Core distances, and lists of nearest neighbours."""
    from coterie.kernels.cpu import density, reachability_tree

    n = len(distances)
    core = np.empty(n, distances.dtype)
    lists = reachability_tree.new_lists(n, _list_length(weight, min_weight), distances.dtype)

    def put(rows: Array) -> None:
        part, bounds = slice(rows[0], rows[-1] + 1), groups.bounds[rows].min(axis=0)
        is_needed = _nearest_groups(groups, bounds, FIRST_COLUMNS * lists.index.shape[1])
        is_needed[groups.of(rows)] = True
        while True:
            columns = groups.columns(is_needed)
            table = distances.table(rows, columns)
            density.core_distances(table, weight[columns], min_weight, core[part])
            density.nearest_lists(table, np.searchsorted(columns, rows), lists.index[part], lists.value[part])
            is_near = bounds <= max(core[part].max(), lists.value[part].max())
            if not (is_near & ~is_needed).any():
                break
            is_needed |= is_near
        lists.index[part] = columns[lists.index[part]]

    for _ in distances.strips_in_threads(put, np.arange(n)):
        report(0)
    return core, lists


def _nearest_groups(groups: RowGroups, bounds: Array, n_rows: int) -> Array:
    """The groups (g,) with the lowest bounds that have this number of rows together."""
    order = np.argsort(bounds, kind="stable")
    before = np.cumsum(np.diff(groups.start)[order]) - np.diff(groups.start)[order]
    is_needed = np.zeros(len(groups), bool)
    is_needed[order[before < n_rows]] = True
    return is_needed


def _search_groups(
    distances: RowDistances, groups: RowGroups, core: Array, report: Report, forest: Any, limit: Array
) -> None:
    """Find the nearest rows of other trees for all rows that may be nearer than the limit (n,) of their tree."""
    from coterie.kernels.cpu import density, reachability_tree

    lowest, highest = (f.reduceat(forest.tree, groups.start[:-1]) for f in (np.minimum, np.maximum))
    tree_of_group = np.where(lowest == highest, lowest, -1)
    min_core = np.minimum.reduceat(core, groups.start[:-1])

    def bounds(rows: Array) -> Array:
        """Lower bounds (m, g) of the mutual reachability distances of rows to the groups that are not in their tree."""
        reach = np.maximum(np.maximum(groups.bounds[rows], min_core), core[rows, None])
        return np.where(tree_of_group == forest.tree[rows, None], np.inf, reach)

    def nearest(limits: Array, rows: Array) -> tuple[Array, Array, Array]:
        is_needed: Array = np.any(bounds(rows) < limits[forest.tree[rows], None], axis=0)
        is_needed[groups.of(rows)] = True
        columns = groups.columns(is_needed)
        near, reach = np.empty(len(rows), np.int64), np.empty(len(rows), distances.dtype)
        place, table = np.searchsorted(columns, rows), distances.table(rows, columns)
        density.nearest_outside(table, place, core[columns], forest.tree[columns], near, reach)
        return rows, columns[near], reach

    rows = reachability_tree.rows_to_search(forest, limit)
    for part in np.array_split(rows, len(rows) // BOUND_ROWS + 1):
        forest.lower[part] = np.maximum(forest.lower[part], bounds(part).min(axis=1, initial=np.inf))
    rows = rows[np.argsort(forest.lower[rows], kind="stable")]
    first = np.unique(forest.tree[rows], return_index=True)[1]  # the most promising row of each tree sets its limit
    step, rows = len(first), np.concatenate([rows[first], np.delete(rows, first)])
    while len(rows):
        limits = limit.copy()
        for part, near, reach in distances.strips_in_threads(partial(nearest, limits), np.sort(rows[:step])):
            is_near = reach < limits[forest.tree[part]]
            reachability_tree.store_search(forest, limit, part[is_near], near[is_near], reach[is_near])
            others = part[~is_near]
            forest.lower[others] = np.maximum(forest.lower[others], limits[forest.tree[others]])
        report(0)
        rows = rows[step:]
        rows = rows[forest.lower[rows] < limit[forest.tree[rows]]]
        step = BATCH * len(distances.strips(rows)[0][0]) if len(rows) else 0


def _in_kd_tree(
    kd: KDRows, weight: Array, min_weight: float, n_jobs: int | None, report: Report
) -> tuple[Array, Merges]:
    """The same for Euclidean distances of few columns, with a k-d tree."""
    from coterie.kernels.cpu import kd_density
    from coterie.kernels.cpu.kd_tree import over_boxes, set_groups
    from coterie.kernels.cpu.reachability_tree import new_lists

    lists = new_lists(len(weight), _list_length(weight, min_weight), np.float64)
    kd.nearest_lists(lists.index, lists.value, n_jobs)
    core = kd.core_squares(lists.index, lists.value, weight[kd.order], min_weight)
    kd.tree.min_weight[:] = over_boxes(kd.tree, core, np.minimum)

    def search(forest: Any, limit: Array) -> None:
        set_groups(kd.tree, forest.tree)

        def part(start: int, stop: int) -> None:
            kd_density.search_outside(kd.tree, kd.points, core, forest, limit.copy(), start, stop)

        machine.run_in_threads(part, kd.parts, n_jobs)

    edges = _boruvka(lists, core, search, n_jobs, report)
    edges = Merges(kd.order[edges.left], kd.order[edges.right], kd.distances(edges.height))
    return kd.of_rows(kd.distances(core)), edges


def _list_length(weight: Array, min_weight: float) -> int:
    """Number of neighbours in a list: those of the core distance at the mean weight, and some more."""
    n = len(weight)
    needed = int(np.ceil(min_weight * n / weight.sum()))
    return min(n - 1, max(MIN_LIST, needed + MORE))


def _boruvka(
    lists: Any, core: Array, search: Callable[[Any, Array], None], n_jobs: int | None, report: Report
) -> Merges:
    """Connect trees by their shortest edges, from lists of neighbours; `search` finds edges that are not in them."""
    from coterie.kernels.cpu import reachability_tree

    n = len(core)
    forest = reachability_tree.new_forest(n, core.dtype)
    inner, outer, height, done = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1), 0
    parts = parts_of(n)
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
