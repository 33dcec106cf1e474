"""Divisive analysis (DIANA): split clusters by distances, and assign new objects along the splits."""

from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.arrays import Array
from coterie.core.rounding import rounding
from coterie.core.stored import stored
from coterie.hierarchy.assign import FittedObjects
from coterie.hierarchy.splits import Splits, ancestors


def split(D: Array, max_clusters: int, min_diameter: float) -> Splits:
    """Split until there are `max_clusters` clusters, or all diameters are below `min_diameter`."""
    n = len(D)
    parent = np.empty(max_clusters - 1, np.int64)
    height, cluster = np.empty(max_clusters - 1), np.empty(n, np.int64)
    count = kernels.select("diana", n).divide(D, min_diameter, parent, height, cluster)
    return Splits(parent[:count], height[:count], cluster)


def _is_consistent(splits: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether each split is of a cluster that exists by then, and no cluster is empty."""
    split, size = splits["split"], splits["size"]
    return bool(
        len(split) == len(size) - 1 and (size > 0).all() and ((split >= 0) & (split <= np.arange(len(split)))).all()
    )


@stored(
    "hierarchy.Splits",
    check=_is_consistent,
    objects="<hierarchy.Objects>",
    split="integer *",
    size="integer K",
    names="index<K K",
)
class SplitRules(NamedTuple):
    """The splits that define the clusters of a fit, and the objects to which new ones are compared."""

    objects: FittedObjects
    split: Array  # (k - 1,)
    size: Array  # (k,) number of objects of each cluster
    names: Array  # (k,) label of each cluster

    def assign(self, new: Any) -> Array:
        """Labels of new objects: at each split, an object goes to the part with the smaller mean distance."""
        D = self.objects.distances(new)
        sums, margin = np.add.reduceat(D.astype(np.float64), self.objects.start, axis=1), 1 - rounding(D.dtype)
        cluster = np.zeros(len(sums), np.int64)
        for s, parent in enumerate(self.split.tolist()):
            ancestor = ancestors(self.split, s + 2)
            rest, splinter = ancestor == parent, ancestor == s + 1
            to_rest = sums[:, rest].sum(axis=1) / self.size[rest].sum()
            to_splinter = sums[:, splinter].sum(axis=1) / self.size[splinter].sum()
            cluster[(cluster == parent) & (to_splinter < margin * to_rest)] = s + 1
        return self.names[cluster]
