"""Sequences of splits, and their conversion to a linkage matrix."""

from typing import NamedTuple

import numpy as np

from coterie.core.arrays import Array


class Splits(NamedTuple):
    """Splits in their order: one part of cluster `split[s]` keeps its number, and the other becomes cluster s + 1."""

    split: Array  # (m,)
    height: Array  # (m,) of the clusters that are split; never increases
    cluster: Array  # (n,) of each object after all splits

    def clusters(self, k: int) -> Array:
        """The cluster of each object after k - 1 splits (n,)."""
        return ancestors(self.split, k)[self.cluster]

    def to_single_objects(self) -> "Splits":
        """Add splits at height 0 until each object is its own cluster."""
        order = np.argsort(self.cluster, kind="stable")
        cluster_of = self.cluster[order]
        is_later = np.append(False, cluster_of[1:] == cluster_of[:-1])
        cluster = self.cluster.copy()
        cluster[order[is_later]] = len(self.split) + 1 + np.arange(is_later.sum())
        split = np.append(self.split, cluster_of[is_later])
        return Splits(split, np.append(self.height, np.zeros(is_later.sum())), cluster)

    def linkage_matrix(self) -> Array:
        """The linkage matrix (n - 1, 4), from the last split to the first; all objects must be split."""
        n = len(self.cluster)
        node, size, rows = np.argsort(self.cluster).tolist(), [1] * n, []
        for s in range(n - 2, -1, -1):
            rest, splinter = int(self.split[s]), s + 1
            size[rest] += size[splinter]
            rows.append((*sorted((node[rest], node[splinter])), self.height[s], size[rest]))
            node[rest] = 2 * n - 2 - s
        return np.array(rows, dtype=np.float64)


def ancestors(split: Array, k: int) -> Array:
    """For each cluster after all splits, the cluster that contained it when there were `k` clusters."""
    ancestor = np.arange(len(split) + 1)
    for j in range(k, len(ancestor)):
        ancestor[j] = ancestor[split[j - 1]]
    return ancestor
