"""The rows of a fit with their core distances, to which new rows are compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.density.condensed_tree import CondensedTree
from coterie.density.reachability import ROUNDING
from coterie.distances.distance import Distance
from coterie.distances.pairwise import strips

NEARLY_EQUAL = {4: 1e-5, 8: 1e-10}  # by itemsize: relative difference of distances that counts as rounding


@stored(
    "density.Rows", distance="none | <distance.*>", A="none | float m D | bool m D | <series.Series>", core="real m"
)
@dataclass(frozen=True)
class FittedRows:
    """Rows of positive weight, the distance between them, and their core distances."""

    distance: Distance | None
    A: Any  # prepared rows; None for precomputed distances
    core: Array  # (m,)
    min_samples: float

    def nearest(self, new: Any, weight: Array, n_jobs: int | None) -> tuple[Array, Array]:
        """The row with the smallest mutual reachability distance to each new row, and this distance.

        The core distance of a new row is that of a row of the fit at the same place.
        """
        n = len(self.core)
        index, value = np.empty(len(new), np.int64), np.empty(len(new))
        kernel, min_weight = kernels.select("density", len(new), n), self.min_samples * (1 - ROUNDING)

        def put(start: int, stop: int) -> None:
            table = new[start:stop] if self.distance is None else self.distance.table(new[start:stop], self.A)
            core = np.empty(len(table), table.dtype)
            kernel.core_distances(table, weight, min_weight, core)
            tolerance = NEARLY_EQUAL[table.itemsize]
            kernel.nearest_reachable(table, core, self.core, tolerance, index[start:stop], value[start:stop])

        with machine.one_blas_thread:
            work = 1 if self.distance is None else self.distance.work
            machine.run_in_threads(put, strips(len(new), n, work), n_jobs)
        return index, value


def densities(tree: CondensedTree, index: Array, distance: Array) -> tuple[Array, Array]:
    """The cluster of the condensed tree that each new row leaves last, and the density at which it leaves.

    It is connected to row `index` of the fit at a mutual reachability distance, and leaves no later than that row. If
    it leaves with that row, it leaves the same cluster, even one that is split off at the same density.
    """
    with np.errstate(divide="ignore", over="ignore"):
        density, of_row = 1 / distance, tree.row_lambda[index]
    density = np.where(density >= of_row * (1 - NEARLY_EQUAL[4]), of_row, density)
    cluster, leaves_before = tree.row_cluster[index], density < of_row
    while True:
        is_before = leaves_before & (cluster > 0) & (tree.cluster_lambda[cluster] >= density)
        if not is_before.any():
            return cluster, density
        cluster = np.where(is_before, tree.cluster_parent[cluster], cluster)
