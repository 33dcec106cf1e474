"""Agglomerative clustering."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_memory

from coterie.base import Objects
from coterie.core.arguments import one_of
from coterie.core.arrays import Array
from coterie.core.progress import Progress
from coterie.core.scale import SQUARES, Scale, multiplied
from coterie.core.stored import stored
from coterie.data import opened
from coterie.distances.distance import check_symmetric
from coterie.distances.euclidean import Euclidean
from coterie.errors import ParameterError
from coterie.hierarchy import assign
from coterie.hierarchy.condensed import scaled_weights
from coterie.hierarchy.connectivity import edges, edges_among, merge_neighbours
from coterie.hierarchy.cut import clusters_below
from coterie.hierarchy.linkage import linkage
from coterie.hierarchy.linkage_methods import METHODS
from coterie.hierarchy.tree import Tree, as_tree
from coterie.hierarchy.tree_estimator import TreeEstimator, check_enough

CONNECTIVITY_LINKAGES = ("ward", "complete", "average", "single")


@stored(
    labels_="index<K *",
    _columns="tuple",
    _distance="none | <distance.*>",
    _clusters="<hierarchy.Centers> | <hierarchy.Members>",
)
@dataclass(eq=False, repr=False)
class AgglomerativeClustering(TreeEstimator):
    r"""Agglomerative clustering: merge the two nearest clusters until `n_clusters` are left.

    .. math:: (A, B) = \arg\min_{A \ne B} D(A, B), \qquad A, B \to A \cup B

    At first every row is a cluster. `linkage` defines :math:`D`, see `coterie.hierarchy.linkage`. The whole tree is
    stored: `coterie.hierarchy.cut` cuts it at another level without a second fit.

    Do not use it for many rows in round clusters: `KMeans` takes time linear in n. 'single' joins clusters if noise
    rows lie between them. With 'centroid' and 'median' the heights of merges can decrease.

    Parameters
    ----------
    n_clusters : int or None, default=2
        Number of clusters. Must be None if `distance_threshold` is set.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        See `coterie.distances.pairwise`. With 'precomputed', `X` is the (n, n) matrix of distances. 'ward', 'centroid'
        and 'median' use centers of clusters. They require 'euclidean', 'mahalanobis', or precomputed Euclidean
        distances.
    metric_params : dict or None, default=None
        Parameters of the metric.
    memory : str, joblib.Memory or None, default=None
        Folder, or cache of joblib, in which trees are stored: a second fit of the same rows, for example with another
        `n_clusters`, reads the tree from there.
    connectivity : sparse matrix or array (n, n), function of `X` that returns one, or None, default=None
        Graph of neighbours: only clusters connected by an edge are merged. Each stored entry is an edge, in both
        directions. Supported for 'ward', 'complete', 'average' and 'single'. 'complete' and 'average' use only the
        distances along edges. If the graph has several connected components, edges between their nearest rows are
        added, with a warning.
    compute_full_tree : 'auto' or bool, default='auto'
        As in scikit-learn, but without effect: the full tree is always computed. False is rejected together with
        `distance_threshold`.
    linkage : {'ward', 'complete', 'average', 'single', 'weighted', 'centroid', 'median'}, default='ward'
        Distance between clusters.
    distance_threshold : float or None, default=None
        The number of clusters is one plus the number of merges at this height or above. `n_clusters` must be None. If
        heights never decrease, the clusters are those after all merges below the threshold. If some decrease (see
        Notes), the last merges are undone, as in scikit-learn.
    compute_distances : bool, default=False
        As in scikit-learn, but without effect: `distances_` are always computed.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.
    callback : function or None, default=None
        Called from time to time with a `coterie.core.progress.Progress`, whose `done` and `total` count merges. If it
        returns True, `KeyboardInterrupt` is raised, because a part of a tree is not a result.
    verbose : int, default=0
        1 shows a progress bar, 2 prints the number of merges from time to time.

    Attributes
    ----------
    labels_ : array (n,) of int32
        Cluster of each row. Clusters are numbered by their first row.
    n_clusters_ : int
        Number of clusters.
    linkage_matrix_ : array (n - 1, 4)
        The tree in SciPy's format: for each merge its two clusters, its height, and its number of rows.
    children_ : array (n - 1, 2)
        The first two columns of `linkage_matrix_`: merge i forms cluster n + i.
    distances_ : array (n - 1,)
        The third column of `linkage_matrix_`: heights of the merges.
    n_leaves_ : int
        Number of leaves of the tree: rows of weight above 0.
    n_connected_components_ : int
        Number of connected components of the graph, before edges are added; 1 without a graph.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : array (n_features,)
        Names of the columns, if `X` has column names that are all strings.

    Notes
    -----
    Time and memory are those of `coterie.hierarchy.linkage`: O(n d) memory for 'ward' and 'single' of Euclidean rows,
    n² distances otherwise. With a graph of m edges, it takes O(m) memory and about m log m steps, with a heap of edges.

    Heights can decrease with 'centroid' and 'median', and with a graph, where a merge can connect clusters that are
    nearer to each other. Then a merge above `distance_threshold` can come before merges below it. Like scikit-learn,
    the estimator counts the merges at or above the threshold, and undoes this number of last merges. `labels_` are
    those of ``n_clusters=n_clusters_``, and a cluster can contain a merge above the threshold. For clusters without
    such a merge, as returned by SciPy's ``fcluster(Z, t, "distance")``, use
    ``coterie.hierarchy.cut(model.linkage_matrix_, height=t)``; it includes merges at height t.

    `predict` assigns a new row to the nearest cluster, by the distance of the linkage. For 'ward' this is the cluster
    with the smallest increase of the sum of squares, :math:`\frac{w}{w + 1} \lVert x - \mu \rVert^2` for a cluster of
    weight w. For 'centroid' and 'median' it is the nearest center, for 'single' the cluster of the nearest row. For
    'complete', 'average' and 'weighted' it is the cluster with the smallest maximum, mean, or recursively halved mean
    distance. Only with 'single', `predict` always returns `labels_` for the rows of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import AgglomerativeClustering
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> model = AgglomerativeClustering(n_clusters=2).fit(X)
    >>> model.labels_.tolist(), model.predict([[8.0, 1]]).tolist()
    ([0, 0, 0, 1, 1, 1], [1])
    >>> from coterie.hierarchy import cut
    >>> cut(model.linkage_matrix_, height=2.5).tolist()
    [0, 0, 1, 2, 2, 3]
    """

    n_clusters: Any = 2
    _: KW_ONLY
    memory: Any = None
    connectivity: Any = None
    compute_full_tree: Any = "auto"
    linkage: str = "ward"
    distance_threshold: float | None = None
    compute_distances: bool = False
    callback: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the tree of the rows of `X`, and its clusters.

        Parameters
        ----------
        X : array, frame or list of series; distances (n, n) for metric='precomputed'
            Data to cluster.
        y : ignored
        sample_weight : array (n,), optional
            Weights of the rows, used by 'ward', 'average' and 'centroid'. For every linkage, rows of weight 0 are not
            leaves of the tree; their labels are those of `predict`.

        Returns
        -------
        self
        """
        n_clusters, threshold = self._stopping_rule()
        one_of("linkage", self.linkage, tuple(METHODS))
        full_tree = one_of("compute_full_tree", self.compute_full_tree, ("auto", True, False))
        if threshold is not None and full_tree is False:
            raise ParameterError(
                "compute_full_tree must be True if distance_threshold is set; got False: use compute_full_tree='auto'"
            )
        X = opened(X)
        objects, weight, leaf_rows, n = self._weighted_objects(X, sample_weight)
        check_enough(len(leaf_rows), n_clusters)
        rows = X if len(leaf_rows) == n else self._subset(X, leaf_rows)
        Z, n_components = self._linkage_matrix(rows, n, leaf_rows, objects, weight)
        tree = as_tree(Z)
        k = 1 + int(np.count_nonzero(tree.height >= threshold)) if n_clusters is None else n_clusters
        self._check_columns(X, reset=True)
        self._store_tree(Z)
        self._distance, self._columns, self.n_connected_components_ = objects.distance, (n, leaf_rows), n_components
        self._cut(k, tree, objects, weight, X)
        return self

    def _cut(self, k: int, tree: Tree, objects: Objects, weight: Array, X: Any) -> None:
        """Store the clusters after all but the last k - 1 merges, and the labels of `X`, the rows of the fit."""
        labels = clusters_below(self.linkage_matrix_, np.arange(len(tree.height)), tree.n_leaves - k - 1)
        self._clusters = assign.clusters_of_tree(self.linkage, tree, labels, weight, *objects)
        self.labels_, self.n_clusters_ = labels, int(labels.max()) + 1
        n, leaf_rows = self._columns
        if len(leaf_rows) < n:
            self.labels_ = self.predict(X)
            self.labels_[leaf_rows] = labels

    def predict(self, X: Any) -> Array:
        """Return the nearest cluster of each row (n,).

        For metric='precomputed', `X` has one column for each row of the fit.
        """
        new = self._new_objects(X)  # raises NotFittedError before an attribute of the fit is read
        return assign.nearest(self._clusters, new, self.n_jobs)

    def _linkage_matrix(self, X: Any, n: int, leaf_rows: Array, objects: Objects, weight: Array) -> tuple[Array, int]:
        """The tree of `X`, which are the `leaf_rows` of `n` rows, and the number of components of their graph."""
        if self.connectivity is None:
            metric = "precomputed" if objects.distance is None else objects.distance
            rows = objects.A if objects.distance is None else X
            without_effect = {"n_jobs": self.n_jobs, "callback": self.callback, "verbose": self.verbose}
            Z = self._cached(linkage, *without_effect)(
                rows, self.linkage, metric, sample_weight=weight, **without_effect
            )
            return np.asarray(Z), 1
        self._check_connectivity(objects)
        if callable(self.connectivity):
            ends = edges(self.connectivity(X), len(leaf_rows))
        else:
            ends = edges_among(edges(self.connectivity, n), leaf_rows, n)
        weight, exponent = scaled_weights(weight, objects.A.dtype)
        distance = objects.distance and objects.distance.up_to_scale()
        merge = self._cached(merge_neighbours, "n_jobs")
        Z, n_components = merge(ends, self.linkage, distance, objects.A, weight, self.n_jobs)
        heights = np.ldexp(Z[:, 2], exponent // 2 if self.linkage == "ward" else 0)
        if objects.distance is not None:
            objects.distance.put_to_scale(heights)
        Z[:, 2] = heights
        if self.callback is not None:
            self.callback(Progress("merge", len(Z), len(Z)))
        return Z, n_components

    def _cached(self, function: Callable[..., Any], *without_effect: str) -> Callable[..., Any]:
        """The function, with its results in the cache `memory` if there is one."""
        if self.memory is None:
            return function
        return check_memory(self.memory).cache(function, ignore=list(without_effect))

    def _check_connectivity(self, objects: Objects) -> None:
        if self.linkage not in CONNECTIVITY_LINKAGES:
            raise ParameterError(
                f"connectivity requires linkage {', '.join(map(repr, CONNECTIVITY_LINKAGES))}; "
                f"got linkage={self.linkage!r}"
            )
        if objects.distance is not None:
            check_symmetric(objects.distance, "linkage needs d(x, y) = d(y, x)")
        is_euclidean = isinstance(objects.distance, Euclidean) and objects.distance.root
        if self.linkage == "ward" and not is_euclidean:
            raise ParameterError(
                "linkage='ward' with connectivity computes means: it requires rows and metric='euclidean' or "
                f"'mahalanobis'; got metric={self.metric!r}"
            )


def cuts(
    model: AgglomerativeClustering, ks: list[int], X: Any, sample_weight: Any
) -> Iterator[tuple[AgglomerativeClustering, float]]:
    """Copies of a fitted model cut into `ks` clusters, and their costs: inertia for Ward, else the highest merge."""
    objects, weight, _, _ = model._weighted_objects(X, sample_weight)
    tree = as_tree(model.linkage_matrix_)
    costs = _sums_of_squares(tree.height) if model.linkage == "ward" else np.maximum.accumulate(tree.height)
    for k in ks:
        n_merges = tree.n_leaves - k
        model_of_k = copy.copy(model).set_params(n_clusters=k)
        model_of_k._cut(k, tree, objects, weight, X)
        yield model_of_k, float(costs[n_merges - 1]) if n_merges else 0.0


def _sums_of_squares(height: Array) -> Array:
    """The inertia after each merge by Ward's method; heights of any scale are squared in their unit."""
    unit = Scale(int(np.frexp(height.max(initial=0.0))[1]), 0)
    costs = {"objectives": 0.5 * np.cumsum(np.ldexp(height, -unit.rows) ** 2)}
    return multiplied(costs, {"objectives": SQUARES}, unit)["objectives"]
