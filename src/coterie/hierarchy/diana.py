"""Divisive analysis: splits by distances, and where they lead new objects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.stored import stored
from coterie.hierarchy.assign import Fitted
from coterie.hierarchy.splits import Splits, homes
from coterie.hierarchy.tree import Array


def split(D: Array, most: int, least: float) -> Splits:
    """Splits into `most` clusters, or until all are of a diameter below `least`."""
    n = len(D)
    parted, height, cluster = np.empty(most - 1, np.int64), np.empty(most - 1), np.empty(n, np.int64)
    done = kernels.select("diana", n).divide(D, least, parted, height, cluster)
    return Splits(parted[:done], height[:done], cluster)


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
class Way(NamedTuple):
    """The splits that lead to the clusters of a fit."""

    objects: Fitted
    split: Array  # (k - 1,)
    size: Array  # (k,) of the clusters
    names: Array  # (k,) their labels

    def follow(self, new: Any) -> Array:
        """Labels of new objects, that go to the nearer part on average at every split."""
        sums = np.add.reduceat(self.objects.distances(new).astype(np.float64), self.objects.start, axis=1)
        at = np.zeros(len(sums), np.int64)
        for s, parted in enumerate(self.split.tolist()):
            home = homes(self.split, s + 2)
            rest, splinter = home == parted, home == s + 1
            to_rest = sums[:, rest].sum(axis=1) / self.size[rest].sum()
            to_splinter = sums[:, splinter].sum(axis=1) / self.size[splinter].sum()
            at[(at == parted) & (to_splinter < to_rest)] = s + 1
        return self.names[at]
