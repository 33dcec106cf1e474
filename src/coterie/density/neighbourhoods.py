"""Neighbourhoods of a radius: core rows, their clusters, and the clusters of other rows."""

from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.core.rounding import inclusive_radius
from coterie.core.stored import stored
from coterie.density.kd_rows import KDRows, kd_rows
from coterie.density.reachability import ROUNDING
from coterie.density.row_distances import RowDistances
from coterie.distances.distance import Distance
from coterie.distances.pairwise import strips
from coterie.hierarchy.cut import number_by_first_row


@stored(
    "density.Neighbourhoods",
    distance="none | <distance.*>",
    A="none | float m D | bool m D | <series.Series>",
    columns="index m",
    labels="index<K m",
)
@dataclass(frozen=True)
class Neighbourhoods:
    """Core rows, their labels, and the radius of their neighbourhoods."""

    distance: Distance | None
    A: Any  # prepared core rows; None for precomputed distances
    columns: Array  # (m,) positions of the core rows among the rows of positive weight
    labels: Array  # (m,)
    eps: float

    def lowest_labels(self, new: Any, n_jobs: int | None) -> Array:
        """The lowest label of the core rows within the radius of each new row; -1 if there is none."""
        m, labels = len(self.labels), np.full(len(new), -1, np.int32)
        if m == 0:
            return labels
        kernel = kernels.select("density", len(new), m)

        def put(start: int, stop: int) -> None:
            part = new[start:stop]
            table = part[:, self.columns] if self.distance is None else self.distance.table(part, self.A)
            radius = inclusive_radius(self.eps, table.dtype)
            kernel.lowest_label_within(np.ascontiguousarray(table), self.labels, radius, labels[start:stop])

        with machine.one_blas_thread:
            work = 1 if self.distance is None else self.distance.work
            machine.run_in_threads(put, strips(len(new), m, work), n_jobs)
        return labels


def core_clusters(distances: RowDistances, weight: Array, eps: float, min_samples: float) -> tuple[Array, Array]:
    """Labels of DBSCAN (n,), and which rows are core rows (n,)."""
    unit = float(distances.to_scale([1.0])[0])
    radius = inclusive_radius(eps / unit, distances.dtype)
    kd = kd_rows(distances)
    if kd is not None:
        return _in_kd_tree(kd, weight, radius, min_samples * (1 - ROUNDING), distances.n_jobs)
    distances.store_if_small()
    n, every = len(distances), np.arange(len(distances))
    kernel = kernels.select("density", n, n)
    is_core, parent, lock = np.empty(n, bool), np.arange(n), Lock()

    def mark(rows: Array, table: Array) -> None:
        total = np.empty(len(rows))
        kernel.weights_within(table, weight, radius, total)
        is_core[rows] = total >= min_samples * (1 - ROUNDING)

    def connect(rows: Array, table: Array) -> None:
        with lock:  # the result is the same in any order
            kernel.connect_within(table, rows, is_core, radius, parent)

    def label(rows: Array, table: Array) -> Array:
        border = np.empty(len(rows), np.int32)
        kernel.lowest_label_within(table, labels, radius, border)
        return border

    for _ in distances.in_threads(mark, every):
        pass
    for _ in distances.in_threads(connect, np.flatnonzero(is_core)):
        pass
    labels, others = _number(_roots(parent), is_core), np.flatnonzero(~is_core)
    borders = list(distances.in_threads(label, others))
    labels[others] = np.concatenate(borders) if borders else -1
    return labels, is_core


def _roots(parent: Array) -> Array:
    """The root of each row in a union-find forest (n,)."""
    while not np.array_equal(parent, above := parent[parent]):
        parent = above
    return parent


def _number(roots: Array, is_core: Array) -> Array:
    """Number the trees of core rows by their first row (n,); -1 for other rows."""
    labels = np.full(len(roots), -1, np.int32)
    labels[is_core] = number_by_first_row(roots[is_core])
    return labels


def _in_kd_tree(kd: KDRows, weight: Array, radius: float, min_weight: float, n_jobs: int | None) -> tuple[Array, Array]:
    """The same with a k-d tree. Core points are connected in one thread, all else in several."""
    from coterie.kernels.cpu import kd_density

    n, square, tree, points = len(kd.order), kd.square_of(radius), kd.tree, kd.points
    weight, is_core, parent = weight[kd.order], np.empty(n, bool), np.arange(n)
    box_weight = kd_density.sum_weights(tree, weight)
    mark = partial(kd_density.mark_core, tree, points, weight, box_weight, square, min_weight, is_core)
    machine.run_in_threads(mark, kd.parts, n_jobs)
    member = kd_density.connect_small_boxes(tree, is_core, square, parent)
    for start, stop in kd.parts:
        kd_density.connect_core(tree, points, is_core, member, square, parent, start, stop)
    roots = np.full(n, -1)  # of rows
    roots[kd.order] = kd.order[_roots(parent)]
    is_core_row = kd.of_rows(is_core)
    labels = _number(roots, is_core_row)
    of_points = labels[kd.order]
    borders = np.ascontiguousarray(points[~is_core])
    border_labels = np.empty(len(borders), np.int32)
    box_label = kd_density.lowest_in_boxes(tree, of_points)
    lowest = partial(kd_density.lowest_labels, tree, points, of_points, box_label, borders, square, border_labels)
    machine.run_in_threads(lowest, strips(len(borders), 64), n_jobs)
    labels[kd.order[~is_core]] = border_labels
    return labels, is_core_row
