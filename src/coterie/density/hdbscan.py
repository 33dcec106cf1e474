"""HDBSCAN: clusters of varying density."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coterie import kernels, machine
from coterie.base import callbacks
from coterie.core.arguments import not_negative, one_of, whole_number
from coterie.core.arrays import Array
from coterie.core.progress import report_to
from coterie.core.rounding import inclusive_radius
from coterie.core.stored import stored
from coterie.data import opened
from coterie.density.cluster_selection import (
    SelectionRule,
    label_clusters,
    membership,
    select_clusters,
    soft_memberships,
)
from coterie.density.condensed_tree import CondensedTree, condense
from coterie.density.density_estimator import DensityEstimator
from coterie.density.reachability import ROUNDING, reachability
from coterie.density.row_distances import RowDistances
from coterie.distances.distance import Distance
from coterie.distances.pairwise import strips
from coterie.errors import InputError
from coterie.hierarchy.cut import clusters_below, number_by_first_row
from coterie.hierarchy.tree import as_tree


@stored(
    labels_="index-<K N",
    probabilities_="real N",
    outlier_scores_="real N",
    cluster_persistence_="real K",
    condensed_tree_="<density.CondensedTree>",
    single_linkage_tree_="real * 4",
    minimum_spanning_tree_="real * 3",
    _clusters="index K",
    _columns="tuple",
    _distance="none | <distance.*>",
    _rows="<density.Rows>",
)
@dataclass(eq=False, repr=False)
class HDBSCAN(DensityEstimator):
    r"""HDBSCAN: clusters of any shape and of varying density; rows in regions with few rows are noise.

    The core distance of a row is the distance within which there are `min_samples` rows, itself included. Single
    linkage of the mutual reachability distances

    .. math:: d_{mreach}(x, y) = \max\{core(x), core(y), d(x, y)\}

    is the tree of the clusters of all densities :math:`\lambda = 1 / d_{mreach}`. Parts with fewer than
    `min_cluster_size` rows are not clusters: their rows leave the cluster. Of the condensed tree, those clusters are
    selected that lose few rows over a long range of densities [1]_ [2]_.

    Use it for clusters of any shape, if their number is not known and some rows belong to none. Do not use it for many
    columns without a reduction: all distances become similar, and nearly all rows are noise. Use `KMeans` or
    `GaussianMixture` if every row must belong to a cluster.

    Parameters
    ----------
    min_cluster_size : int, default=5
        Minimum number of rows of a cluster, or minimum sum of their weights.
    min_samples : int or None, default=None
        Number of rows within the core distance, the row itself included, as in scikit-learn. That of the package
        hdbscan does not include the row: it is smaller by 1. Larger values give more noise. None uses
        `min_cluster_size`, or the number of rows if that is less.
    cluster_selection_epsilon : float, default=0.0
        Clusters that are split off at a distance below this are merged.
    max_cluster_size : int or None, default=None
        Maximum number of rows of a cluster, for 'eom'; larger clusters are split further. None sets no limit.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        Distance, see `coterie.distances.pairwise`. With 'precomputed', `X` is the distance matrix (n, n).
    metric_params : dict or None, default=None
        Parameters of the metric.
    cluster_selection_method : {'eom', 'leaf'}, default='eom'
        'eom' maximises the excess of mass, the sum of the stabilities. 'leaf' selects the leaves of the condensed
        tree: more and smaller clusters.
    allow_single_cluster : bool, default=False
        Whether all rows may be one cluster.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.
    callback : function or None, default=None
        Called from time to time with a `coterie.core.progress.Progress`, whose `done` and `total` count edges of the
        spanning tree. If it returns True, `KeyboardInterrupt` is raised, because a part of a tree is not a result.
    verbose : int, default=0
        1 shows a progress bar, 2 prints the number of edges from time to time.

    Attributes
    ----------
    labels_ : array (n,) of int32
        Cluster of each row; -1 is noise. Clusters are numbered by their first row.
    probabilities_ : array (n,)
        Density of each row relative to the highest density of its cluster; 0 for noise.
    outlier_scores_ : array (n,)
        GLOSH scores [2]_: 0 for rows in the densest part of their cluster, nearly 1 for outliers.
    cluster_persistence_ : array (K,)
        Stability of each cluster from 0 to 1: 1 if no row leaves it at any density.
    n_clusters_ : int
        Number of clusters.
    condensed_tree_ : CondensedTree
        Clusters of all densities.
    single_linkage_tree_ : array (m - 1, 4)
        Linkage matrix of the mutual reachability distances, in SciPy's format. The m rows are those of positive weight.
    minimum_spanning_tree_ : array (m - 1, 3)
        Edges of the minimum spanning tree: two rows and their mutual reachability distance.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : array (n_features,)
        Names of the columns, if `X` has column names that are all strings.

    Notes
    -----
    **Ties.** Merges of equal height are one merge of several parts, so the partition does not depend on the order of
    the rows. Other implementations merge two parts at a time: a row that is equally near to two clusters is noise here,
    and in one of the clusters there. If the stability of a cluster equals that of its parts, the cluster is selected.

    **Duplicates.** A distance of 0 counts as half of the smallest positive distance, so that densities are finite.

    **Cost.** O(n) memory. For Euclidean distances of few columns, a k-d tree takes about O(n log n) time. Otherwise
    it takes O(n² d) time.

    References
    ----------
    .. [1] R. J. G. B. Campello, D. Moulavi, J. Sander (2013), Density-based clustering based on hierarchical density
       estimates, PAKDD. https://doi.org/10.1007/978-3-642-37456-2_14
    .. [2] R. J. G. B. Campello, D. Moulavi, A. Zimek, J. Sander (2015), Hierarchical density estimates for data
       clustering, visualization, and outlier detection, ACM TKDD 10(1). https://doi.org/10.1145/2733381

    Examples
    --------
    >>> from coterie import HDBSCAN
    >>> from coterie.datasets import make_moons
    >>> X, y = make_moons(400, noise=0.05, random_state=0)
    >>> model = HDBSCAN(min_cluster_size=15).fit(X)
    >>> model.n_clusters_, int((model.labels_ == -1).sum())
    (2, 4)
    >>> model.predict([[9.0, 9.0]]).tolist()
    [-1]
    """

    min_cluster_size: int = 5
    _: KW_ONLY
    min_samples: int | None = None
    cluster_selection_epsilon: float = 0.0
    max_cluster_size: int | None = None
    cluster_selection_method: str = "eom"
    allow_single_cluster: bool = False
    callback: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the tree of the rows of `X`, and select its clusters.

        Parameters
        ----------
        X : array, frame or list of series; distances (n, n) for metric='precomputed'
            Data to cluster.
        y : ignored
        sample_weight : array (n,), optional
            Weights of the rows. A row of weight two has the effect of that row twice. Rows of weight zero do not count;
            their labels are those of `predict`.

        Returns
        -------
        self
        """
        rule = self._rule()
        X = opened(X)
        objects, weight, rows, n = self._weighted_objects(X, sample_weight)
        min_samples = self._checked_min_samples(float(weight.sum()))
        distances = RowDistances(objects.distance, objects.A, self.n_jobs)
        report = report_to(callbacks(self.callback, self.verbose), "edge", len(rows) - 1)
        core, edges = reachability(distances, weight, min_samples, report)
        Z = kernels.select("linkage", len(rows), 1).linkage_matrix(edges, len(rows))
        min_size = self.min_cluster_size * (1 - ROUNDING)
        tree = condense(Z, core, weight, min_size)
        selected = select_clusters(tree, replace(rule, allow_single=rule.allow_single and weight.sum() >= min_size))
        self._check_columns(X, reset=True)
        self.single_linkage_tree_, self.condensed_tree_ = Z, tree
        self.minimum_spanning_tree_ = np.column_stack(
            [np.minimum(edges.left, edges.right), np.maximum(edges.left, edges.right), edges.height]
        )
        self._distance, self._columns, self._clusters = objects.distance, (n, rows), selected.clusters
        A = None if objects.distance is None else objects.A
        A = A.copy() if isinstance(A, np.ndarray) else A  # the caller may change X later
        self._rows = FittedRows(objects.distance, A, core, min_samples)
        self.n_clusters_, self.cluster_persistence_ = len(selected.clusters), selected.persistence
        results = selected.labels, selected.probabilities, tree.outlier_scores()
        if len(rows) < n:
            predicted = self._predicted(X)
            for values, of_rows in zip(predicted, results, strict=True):
                values[rows] = of_rows
            results = predicted
        self.labels_, self.probabilities_, self.outlier_scores_ = results
        return self

    def predict(self, X: Any) -> Array:
        """Return the cluster of each new row (m,); -1 is noise.

        A new row belongs to the cluster of the row of the fit with the smallest mutual reachability distance, if the
        cluster exists at the density of that distance. The clusters do not change. For the rows of the fit, the result
        is `labels_`. For metric='precomputed', `X` has one column for each row of the fit.
        """
        return self._predicted(X)[0]

    def predict_proba(self, X: Any) -> Array:
        """Return the membership of each row in each cluster (m, K), also for noise.

        A row and a cluster are connected up to a density: the density of the row if it is in the cluster, otherwise the
        density at which the branches of the tree with the row and with the cluster are separated. Memberships are
        proportional to these densities. Their sum is the membership in the nearest cluster, which is `probabilities_`
        for the rows of the fit that are not noise; the rest to 1 is noise.
        """
        departures = self._departures(X)
        return soft_memberships(self.condensed_tree_, *departures, self._clusters)

    def _departures(self, X: Any) -> tuple[Array, Array]:
        """The cluster of the condensed tree that each new row leaves last, and the density at which it leaves."""
        new, tree = self._new_objects(X), self.condensed_tree_
        return densities(tree, *self._rows.nearest(new, tree.row_weight, self.n_jobs))

    def _predicted(self, X: Any) -> tuple[Array, Array, Array]:
        """Labels, probabilities and outlier scores of new rows."""
        (cluster, density), tree = self._departures(X), self.condensed_tree_
        labels = label_clusters(tree, cluster, density, self._clusters, self.cluster_selection_epsilon)
        return labels, membership(density, tree.deaths()[self._clusters], labels), tree.outlier_scores(cluster, density)

    def cut(self, eps: Any, min_cluster_size: int = 1) -> Array:
        """Return the clusters of DBSCAN* with the radius `eps`, from the tree of the fit.

        These are the clusters of `DBSCAN` with the same `min_samples`, without their border rows.

        Parameters
        ----------
        eps : float or array (m,)
            Radius, or several.
        min_cluster_size : int, default=1
            Rows of clusters with less rows, or less weight, are noise.

        Returns
        -------
        labels : array (n,) or (m, n) of int32
            Clusters numbered by their first row; -1 is noise. Rows of weight zero are noise.
        """
        check_is_fitted(self)
        min_weight = whole_number("min_cluster_size", min_cluster_size, 1) * (1 - ROUNDING)
        dtype = np.float32 if getattr(self._rows.A, "dtype", None) == np.float32 else np.float64
        radii = [inclusive_radius(not_negative("eps", radius), dtype) for radius in np.ravel(eps).tolist()]
        n, rows = self._columns
        labels = np.full((len(radii), n), -1, np.int32)
        Z = self.single_linkage_tree_
        for i, radius in enumerate(radii):
            cluster = clusters_below(Z, Z[:, 2], radius)
            size = np.bincount(cluster, self.condensed_tree_.row_weight)
            is_member = (self._rows.core <= radius) & (size[cluster] >= min_weight)
            labels[i, rows[is_member]] = number_by_first_row(cluster[is_member])
        return labels[0] if np.ndim(eps) == 0 else labels

    def dbscan_clustering(self, cut_distance: float, min_cluster_size: int = 5) -> Array:
        """Return ``cut(cut_distance, min_cluster_size)``, under the name of scikit-learn."""
        return self.cut(cut_distance, min_cluster_size)

    @property
    def ordering_(self) -> Array:
        """The rows in the order of the tree (m,), as `OPTICS` of scikit-learn has it: clusters are contiguous."""
        check_is_fitted(self)
        _n, rows = self._columns
        return rows[as_tree(self.single_linkage_tree_).leaves()] if len(rows) > 1 else rows

    @property
    def reachability_(self) -> Array:
        """The distance at which each row is connected to the rows before it in `ordering_` (n,).

        Infinite for the first one, and for rows of weight zero.
        """
        check_is_fitted(self)
        n, rows = self._columns
        reach = np.full(n, np.inf)
        if len(rows) > 1:
            tree = as_tree(self.single_linkage_tree_)
            reach[rows[tree.leaves()[tree.first[tree.right]]]] = tree.height
        return reach

    def _rule(self) -> SelectionRule:
        whole_number("min_cluster_size", self.min_cluster_size, 2)
        one_of("cluster_selection_method", self.cluster_selection_method, ("eom", "leaf"))
        one_of("allow_single_cluster", self.allow_single_cluster, (True, False))
        max_size = np.inf
        if self.max_cluster_size is not None:
            max_size = whole_number("max_cluster_size", self.max_cluster_size, 1) * (1 + ROUNDING)
        epsilon = not_negative("cluster_selection_epsilon", self.cluster_selection_epsilon)
        return SelectionRule(self.cluster_selection_method, epsilon, max_size, bool(self.allow_single_cluster))

    def _checked_min_samples(self, total: float) -> float:
        """`min_samples`, which rows of this total weight must have."""
        if self.min_samples is None:
            return min(float(self.min_cluster_size), total)
        min_samples = whole_number("min_samples", self.min_samples, 1)
        if min_samples > total * (1 + ROUNDING):
            raise InputError(
                f"min_samples={min_samples} but X has n_samples={total:g}, the sum of the weights: use min_samples <= "
                f"{total:g}"
            )
        return float(min_samples)


# The rows of a fit with their core distances, to which new rows are compared.

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
