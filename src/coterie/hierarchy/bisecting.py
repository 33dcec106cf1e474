"""Splits by K-means, and where they lead new rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from coterie import interrupts, machine
from coterie.core.protocols import Source
from coterie.core.stored import stored
from coterie.hierarchy.estimator import check_enough
from coterie.hierarchy.splits import Splits
from coterie.hierarchy.tree import Array
from coterie.kmeans.bisecting_kmeans import BisectingKMeans, Growth, Tree, TreeModel
from coterie.kmeans.kmeans import check_enough_rows

NODE = 600  # bytes of a node beside its center


@stored("Bisections", tree_="<bisecting.Tree>")
class Bisections(BisectingKMeans):
    """Bisecting K-means that may go on below its clusters, down to rows that are all alike.

    What is split has as its height what singled it out: its inertia, or its weight. A part has no more of it than the
    whole, but for rounding, which is taken away.
    """

    _rescales = False  # heights are in the units of the rows, and the tree is followed in these

    def split(self, X: Any, sample_weight: Any, n_clusters: int | None, most: int | None, least: float) -> Splits:
        """Splits into `most` clusters (None: all there can be), or until none is as high as `least`."""
        self._growth, summary = self._new_tree(X, sample_weight)
        n = self._growth.source.shape[0]
        check_enough(n, n_clusters)
        check_enough_rows(n_clusters or 1, summary)
        _check_room(self._growth.source, most or n)
        # BLAS is limited once, not for every split; a split that Ctrl-C cut short is of no use without those below it
        with machine.one_blas_thread, interrupts.outermost():
            while (most is None or len(self._growth.splits) + 1 < most) and self._growth.split(least):
                pass
        self._numbers, splits = _splits(self._growth, n)
        return splits

    def keep(self, X: Any, owner: BaseEstimator, names: Array) -> None:
        """Keep the columns, in `owner`, and of the tree what leads to clusters whose labels are `names` (k,)."""
        k = len(names)
        m = 2 * k - 1  # nodes there were then
        children = np.array(self._growth.children[:m], np.int32)
        children[children[:, 0] >= m] = -1
        clusters = np.where(children[:, 0] < 0, names[self._numbers[:m]], -1).astype(np.int32)
        self.tree_ = Tree(children, np.stack(self._growth.centers[:m]), clusters)
        self._check_columns(X, self._growth.source, owner, reset=True)
        del self._growth, self._numbers

    def follow(self, X: Any, owner: BaseEstimator) -> Any:
        """Labels of new rows, of the columns that `owner` has seen."""
        source, engine, _ = self._open(X, None, first=True)
        self._check_columns(X, source, owner, reset=False)
        return source.join(engine.map(partial(TreeModel().assign, self.tree_), source))


def _splits(growth: Growth, n: int) -> tuple[Array, Splits]:
    """The number of every node's cluster while it was one, and the splits."""
    number, parted = np.zeros(2 * len(growth.splits) + 1, np.int64), np.empty(len(growth.splits), np.int64)
    for s, (node, _) in enumerate(growth.splits):
        parted[s] = number[2 * s + 1] = number[node]
        number[2 * s + 2] = s + 1
    cluster = np.empty(n, np.int64)
    for node, rows in enumerate(growth.rows):
        if rows is not None:
            cluster[rows] = number[node]
    height = np.minimum.accumulate([height for _, height in growth.splits] or np.empty(0))
    return number, Splits(parted, height, cluster)


def _check_room(source: Source, most: int) -> None:
    nbytes = 2 * most * (source.shape[1] * source.dtype.itemsize + NODE)
    remedy = "use compute_full_tree=False, or a sample of the rows"
    machine.check_room(nbytes, f"the tree of {most} clusters", remedy)
