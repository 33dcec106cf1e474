"""The splits of bisecting K-means, down to single rows, and the assignment of new rows."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from coterie import interrupts, machine
from coterie.core.scale import Scale
from coterie.core.stored import stored
from coterie.data import as_source
from coterie.data.scale_check import divide_by_scale
from coterie.data.summary import check_finite
from coterie.engines import as_engine
from coterie.errors import ScaleError
from coterie.hierarchy.splits import Splits
from coterie.hierarchy.tree_estimator import check_enough
from coterie.kmeans.bisecting_kmeans import BisectingKMeans
from coterie.kmeans.bisecting_tree import Growth, Tree, TreeModel
from coterie.kmeans.center_estimator import check_enough_rows

NODE = 600  # bytes of a node in addition to its center


@stored("Bisections", tree_="<bisecting.Tree>")
class Bisections(BisectingKMeans):
    """Bisecting K-means that can continue below its clusters, until the rows of each cluster are equal.

    The height of a split is the criterion by which the cluster was selected: its inertia, or its weight. In exact
    arithmetic a part never has more than the whole; differences due to rounding are removed.
    """

    def split(
        self, X: Any, sample_weight: Any, n_clusters: int | None, max_clusters: int | None, min_height: float
    ) -> Splits:
        """Split until there are `max_clusters` (None: no limit), or no cluster is as high as `min_height`.

        The heights of the result are those of rows and weights divided by their scale: 2^`height_exponent` lower.
        """
        try:
            self._growth, summary = self._new_tree(X, sample_weight)
        except ScaleError as error:
            self._store_scale(Scale(error.rows, error.weights))
            self._growth, summary = self._new_tree(*self._divided(X, sample_weight, self._scale))
        min_height = float(np.ldexp(min_height, -self.height_exponent))
        n = self._growth.source.shape[0]
        check_enough(n, n_clusters)
        check_enough_rows(n_clusters or 1, summary)
        source, k = self._growth.source, max_clusters or n
        nbytes = 2 * k * (source.shape[1] * source.dtype.itemsize + NODE)
        remedy = "use compute_full_tree=False, or a sample of the rows"
        machine.check_memory(nbytes, f"the tree of {k} clusters", remedy)
        # BLAS is limited once, not for every split. After Ctrl-C the tree is incomplete, so that nothing is kept.
        with machine.one_blas_thread, interrupts.outermost():
            while max_clusters is None or len(self._growth.splits) + 1 < max_clusters:
                if not self._growth.split(min_height):
                    break
        self._numbers, splits = _splits(self._growth, n)
        return splits

    @property
    def height_exponent(self) -> int:
        """Exponent of the power of two between heights and heights in the units of rows and weights."""
        is_inertia = self.bisecting_strategy == "biggest_inertia"
        return self._scale.weights + (2 * self._scale.rows if is_inertia else 0)

    def keep(self, X: Any, owner: BaseEstimator, names: np.ndarray) -> None:
        """Store the columns in `owner`, and the nodes above the clusters, whose labels are `names` (k,)."""
        k = len(names)
        m = 2 * k - 1  # number of nodes when there were k clusters
        children = np.array(self._growth.children[:m], np.int32)
        children[children[:, 0] >= m] = -1
        clusters = np.where(children[:, 0] < 0, names[self._numbers[:m]], -1).astype(np.int32)
        self.tree_ = Tree(children, np.stack(self._growth.centers[:m]), clusters)
        self._check_columns(X, self._growth.source, owner, reset=True)
        del self._growth, self._numbers

    def assign(self, X: Any, owner: BaseEstimator) -> Any:
        """Labels of new rows, whose columns must be those that `owner` was fitted with."""
        source = as_source(X)
        self._check_columns(X, source, owner, reset=False)
        engine = as_engine(self.engine, source, self.n_jobs)
        source = divide_by_scale(source, self._scale, engine)
        check_finite(source, engine)
        return source.join(engine.map(partial(TreeModel().assign, self.tree_), source))


def _splits(growth: Growth, n: int) -> tuple[np.ndarray, Splits]:
    """The cluster number of each node, and the splits."""
    number, parent = np.zeros(2 * len(growth.splits) + 1, np.int64), np.empty(len(growth.splits), np.int64)
    for s, (node, _) in enumerate(growth.splits):
        parent[s] = number[2 * s + 1] = number[node]
        number[2 * s + 2] = s + 1
    cluster = np.empty(n, np.int64)
    for node, rows in enumerate(growth.rows):
        if rows is not None:
            cluster[rows] = number[node]
    height = np.minimum.accumulate([height for _, height in growth.splits] or np.empty(0))
    return number, Splits(parent, height, cluster)
