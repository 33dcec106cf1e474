"""The estimator of agglomerative clustering."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from coterie.core.arguments import one_of
from coterie.core.errors import ParameterError
from coterie.core.stored import stored
from coterie.data import opened
from coterie.data.memory import as_weights
from coterie.distances.euclidean import Euclidean
from coterie.hierarchy import assign
from coterie.hierarchy.connectivity import edges, edges_among, merge_neighbours
from coterie.hierarchy.cut import clusters_below
from coterie.hierarchy.estimator import Objects, TreeEstimator, check_enough
from coterie.hierarchy.given import in_range
from coterie.hierarchy.linkage import linkage
from coterie.hierarchy.methods import METHODS
from coterie.hierarchy.tree import Array, Tree, as_tree

OF_NEIGHBOURS = ("ward", "complete", "average", "single")


@stored(
    "AgglomerativeClustering",
    labels_="index<K N",
    _columns="tuple",
    _distance="none | <distance.*>",
    _clusters="<hierarchy.Centers> | <hierarchy.Members>",
)
class AgglomerativeClustering(TreeEstimator):
    r"""Agglomerative clustering: the two nearest clusters are merged until `n_clusters` are left.

    .. math:: (A, B) = \arg\min_{A \ne B} D(A, B), \qquad A, B \to A \cup B

    Every row begins as a cluster of its own. `linkage` says what :math:`D` is: see `coterie.hierarchy.linkage`, which
    makes the tree. It is kept whole, so that other cuts of it (`coterie.hierarchy.cut`) need no second fit.

    Do not use it where n is large and clusters are round (`KMeans`: linear in n); 'single' chains clusters together
    where noise lies between them; 'centroid' and 'median' may merge at a lower height than before.

    Parameters
    ----------
    n_clusters : int or None, default=2
        How many clusters: those that are there after n - `n_clusters` merges. None with `distance_threshold`.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        See `coterie.distances.pairwise`. 'precomputed': `X` is the (n, n) matrix of distances. 'ward', 'centroid' and
        'median' have centers and need 'euclidean' or 'mahalanobis', or distances that are of that kind.
    metric_params : dict or None
        Parameters of the metric.
    linkage : {'ward', 'complete', 'average', 'single', 'weighted', 'centroid', 'median'}, default='ward'
        The distance of clusters.
    connectivity : sparse matrix or array (n, n), function of `X` that makes one, or None
        A graph: only clusters that an edge connects are merged. Every entry that is stored is an edge, in both
        directions. For 'ward', 'complete', 'average' and 'single'; of these 'complete' and 'average' know the distances
        along edges alone. Parts of the graph that no edge connects are joined by their nearest rows, with a warning.
    distance_threshold : float or None, default=None
        The number of clusters is one more than the merges at this height or above; `n_clusters` must be None. Where
        heights rise from merge to merge, just the merges below the threshold are made. Where some fall (see Notes), as
        many merges are made, in their order, as in scikit-learn.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.
    callback : function or None
        Called as ``callback(merges done, merges in all)`` now and then.

    Attributes
    ----------
    labels_ : array (n,) of int32
        Clusters, numbered by their first rows.
    n_clusters_ : int
    linkage_matrix_ : array (n - 1, 4)
        The tree, as SciPy has them: the two clusters of every merge, its height, and the number of rows.
    children_ : array (n - 1, 2)
        The first two columns of it: merge i makes cluster n + i of two.
    distances_ : array (n - 1,)
        Its third: heights of the merges.
    n_leaves_ : int
        Leaves of the tree: rows of weight above 0.
    n_connected_components_ : int
        Parts of the graph before they were joined; 1 without a graph.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Time and memory are those of `coterie.hierarchy.linkage`: O(n d) memory for 'ward' and 'single' of Euclidean rows,
    n² distances for others. With a graph of m edges it takes O(m) memory and about m log m steps, by a heap of edges.
    The tree and all heights are always made: scikit-learn's `compute_full_tree`, `compute_distances` and `memory` are
    not needed.

    Heights may fall: with 'centroid' and 'median', and with a graph, where a merge makes clusters neighbours that are
    nearer. Then a merge above `distance_threshold` may come before others below it. Like scikit-learn, the estimator
    counts the merges at the threshold or above, and undoes as many of the last merges: `labels_` are those of
    ``n_clusters=n_clusters_``. Single clusters may so contain a merge above the threshold. For clusters that contain
    none, as SciPy's ``fcluster(Z, t, "distance")`` gives them, cut the tree:
    ``coterie.hierarchy.cut(model.linkage_matrix_, height=t)`` (which makes merges at t, too).

    `predict` puts a new row into the cluster that the linkage says it is nearest to, as if the two were to be merged
    next: 'ward', where the sum of squares grows least, :math:`\frac{w}{w + 1} \lVert x - \mu \rVert^2` for a cluster of
    weight w; 'centroid' and 'median', the nearest center; 'single', the cluster of the nearest row; 'complete',
    'average' and 'weighted', the least largest, mean, or recursively halved mean distance. A row of the fit need not
    get its own label, but with 'single'.

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

    def __init__(
        self,
        n_clusters=2,
        *,
        metric="euclidean",
        metric_params=None,
        linkage="ward",
        connectivity=None,
        distance_threshold=None,
        n_jobs=None,
        callback=None,
    ):
        self.n_clusters = n_clusters
        self.metric = metric
        self.metric_params = metric_params
        self.linkage = linkage
        self.connectivity = connectivity
        self.distance_threshold = distance_threshold
        self.n_jobs = n_jobs
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Merge the rows of `X`.

        Parameters
        ----------
        X : array, frame or list of series; distances (n, n) for metric='precomputed'
            What to cluster.
        y : ignored
        sample_weight : array (n,), optional
            How many rows each stands for. Matters to 'ward', 'average' and 'centroid', but for rows of weight 0, which
            are left out of the tree, whose leaves are the others, and get the label that `predict` gives them.
        """
        n_clusters, threshold = self._how_many()
        one_of("linkage", self.linkage, tuple(METHODS))
        X = opened(X)
        objects = self._objects(X)
        n, rows = len(objects.A), X
        weight = as_weights(sample_weight, n)
        weight = np.ones(n) if weight is None else weight
        kept = np.flatnonzero(weight)
        if len(kept) < n:
            rows = self._some(X, kept)
            objects, weight = self._objects(rows), weight[kept]
        check_enough(len(kept), n_clusters)
        Z, parts = self._merges(rows, n, kept, objects, weight)
        tree = as_tree(Z)
        labels = clusters_below(tree, _made(tree, n_clusters, threshold))
        self._check_columns(X, reset=True)
        self._keep_tree(Z)
        self._distance, self._columns = objects.distance, (n, kept)
        self._clusters = assign.remember(self.linkage, tree, labels, weight, *objects)
        self.labels_, self.n_clusters_, self.n_connected_components_ = labels, int(labels.max()) + 1, parts
        if len(kept) < n:
            self.labels_ = self.predict(X)
            self.labels_[kept] = labels
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the cluster of every row."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> Array:
        """The nearest cluster of every row (n,); for metric='precomputed' `X` has a column for each row of the fit."""
        new = self._new_objects(X)
        return assign.nearest(self._clusters, new, self.n_jobs)

    def _merges(self, X: Any, n: int, kept: Array, objects: Objects, weight: Array) -> tuple[Array, int]:
        """The tree of `X`, those of the `n` rows that are `kept`, and the number of parts of their graph."""
        if self.connectivity is None:
            metric = "precomputed" if objects.distance is None else objects.distance
            given = objects.A if objects.distance is None else X
            Z = linkage(given, self.linkage, metric, sample_weight=weight, n_jobs=self.n_jobs, callback=self.callback)
            return Z, 1
        self._check_neighbours(objects)
        if callable(self.connectivity):
            ends = edges(self.connectivity(X), len(kept))
        else:
            ends = edges_among(edges(self.connectivity, n), kept, n)
        weight, exponent = in_range(weight, objects.A.dtype)
        distance = objects.distance and objects.distance.up_to_scale()
        Z, parts = merge_neighbours(ends, self.linkage, distance, objects.A, weight, self.n_jobs)
        heights = np.ldexp(Z[:, 2], exponent // 2 if self.linkage == "ward" else 0)
        if objects.distance is not None:
            objects.distance.put_to_scale(heights)
        Z[:, 2] = heights
        if self.callback is not None:
            self.callback(len(Z), len(Z))
        return Z, parts

    def _check_neighbours(self, objects: Objects) -> None:
        if self.linkage not in OF_NEIGHBOURS:
            raise ParameterError(
                f"connectivity is for linkage {', '.join(map(repr, OF_NEIGHBOURS))}; got linkage={self.linkage!r}"
            )
        if objects.distance is not None and not objects.distance.symmetric:
            raise ParameterError(f"metric={objects.distance.name!r} is not symmetric: merges need d(x, y) = d(y, x)")
        straight = isinstance(objects.distance, Euclidean) and objects.distance.root
        if self.linkage == "ward" and not straight:
            raise ParameterError(
                "linkage='ward' with connectivity takes means: it needs rows, and metric='euclidean' or 'mahalanobis'; "
                f"got metric={self.metric!r}"
            )


def _made(tree: Tree, n_clusters: int | None, threshold: float | None) -> Array:
    """Which merges are made (n - 1,): the first ones."""
    if n_clusters is None:
        n_clusters = 1 + int(np.count_nonzero(tree.height >= threshold))
    return np.arange(len(tree.height)) < tree.n_leaves - n_clusters
