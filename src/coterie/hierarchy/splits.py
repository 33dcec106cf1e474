"""Splits from the top, and the same as a tree of merges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.hierarchy.tree import Array


class Splits(NamedTuple):
    """Splits in their order: `split[s]` keeps its number for one part, and the other becomes cluster s + 1."""

    split: Array  # (m,)
    height: Array  # (m,) of what is split; they never rise
    cluster: Array  # (n,) of every object after all splits

    def clusters(self, k: int) -> Array:
        """The cluster of every object after k - 1 splits (n,)."""
        return homes(self.split, k)[self.cluster]

    def to_single_objects(self) -> Splits:
        """Then objects that are still together are split off one by one, at height 0."""
        order = np.argsort(self.cluster, kind="stable")
        own = self.cluster[order]
        later = np.append(False, own[1:] == own[:-1])
        cluster = self.cluster.copy()
        cluster[order[later]] = len(self.split) + 1 + np.arange(later.sum())
        return Splits(np.append(self.split, own[later]), np.append(self.height, np.zeros(later.sum())), cluster)

    def merges(self) -> Array:
        """The same from the last split to the first (n - 1, 4), after splits down to single objects."""
        n = len(self.cluster)
        node, size, rows = np.argsort(self.cluster).tolist(), [1] * n, []
        for s in range(n - 2, -1, -1):
            rest, splinter = int(self.split[s]), s + 1
            size[rest] += size[splinter]
            rows.append((*sorted((node[rest], node[splinter])), self.height[s], size[rest]))
            node[rest] = 2 * n - 2 - s
        return np.array(rows, dtype=np.float64)


def homes(split: Array, k: int) -> Array:
    """Of every cluster there is after all splits: the one it was part of when there were `k`."""
    home = np.arange(len(split) + 1)
    for j in range(k, len(home)):
        home[j] = home[split[j - 1]]
    return home
