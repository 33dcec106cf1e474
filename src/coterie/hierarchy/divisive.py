"""Divisive clustering."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coterie import interrupts, kernels, machine
from coterie.base import Objects
from coterie.core.arguments import one_of
from coterie.core.arrays import Array
from coterie.core.attachments import detach
from coterie.core.rounding import rounding
from coterie.core.scale import LENGTHS, Scale, multiplied
from coterie.core.stored import stored
from coterie.data import as_source, opened
from coterie.data.scale_check import divide_by_scale
from coterie.data.summary import check_finite
from coterie.distances.distance import check_symmetric
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import pairwise, strips
from coterie.engines import as_engine
from coterie.errors import InputError, ParameterError, ScaleError
from coterie.hierarchy.assign import FittedObjects, fitted_objects
from coterie.hierarchy.cut import number_by_first_row
from coterie.hierarchy.splits import Splits, ancestors
from coterie.hierarchy.tree import banner_coefficient
from coterie.hierarchy.tree_estimator import TreeEstimator, check_enough
from coterie.kmeans.bisecting_kmeans import BisectingKMeans, warn_of_few_rows
from coterie.kmeans.bisecting_tree import Growth, Tree, TreeModel
from coterie.kmeans.center_estimator import check_enough_rows

REMEDY = "use float32 rows, a sample of the rows, or method='bisecting', which needs no distances"
OF_BISECTIONS = ("init", "n_init", "bisecting_strategy", "n_jobs", "random_state")  # options of method='bisecting'


@stored(
    optional="_columns _distance",
    labels_="index<K N",
    _splits="<hierarchy.Splits> | <Bisections>",
)
@dataclass(eq=False, repr=False)
class DivisiveClustering(TreeEstimator):
    r"""Divisive clustering: start with all rows in one cluster, and split clusters in two until there are `n_clusters`.

    'diana' is divisive analysis [1]_. It splits the cluster with the largest diameter (the maximum distance between two
    of its rows). The row with the largest mean distance to the others starts a splinter group B. While some row of the
    rest A has a smaller mean distance to B than to the other rows of A, the row with the largest difference moves to B.

    .. math:: \max_{i \in A} \Bigl( \frac{1}{|A| - 1} \sum_{j \in A} d(x_i, x_j)
              - \frac{1}{|B|} \sum_{j \in B} d(x_i, x_j) \Bigr) > 0 \;\Rightarrow\; i: A \to B

    'bisecting' is the tree of `BisectingKMeans` [2]_. It splits the cluster with the largest inertia (or weight) by
    K-means:

    .. math:: \min_{A, B} \sum_{i \in A} w_i \lVert x_i - \mu_A \rVert^2
              + \sum_{i \in B} w_i \lVert x_i - \mu_B \rVert^2

    Both decide on the large clusters first; `AgglomerativeClustering` forms them last.

    Do not use either for clusters of very different diameters, or for elongated clusters and rings (use single
    linkage). Do not use 'diana' if n² distances do not fit into memory, nor 'bisecting' for distances that are not
    Euclidean. If you do not need the tree below the clusters, use `BisectingKMeans`.

    Parameters
    ----------
    n_clusters : int or None, default=2
        Number of clusters. Must be None if `distance_threshold` is set.
    method : {'diana', 'bisecting'}, default='diana'
        Method that splits clusters.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        See `coterie.distances.pairwise`. With 'precomputed', `X` is the (n, n) matrix of distances. 'bisecting'
        computes means, and requires 'euclidean'.
    metric_params : dict or None, default=None
        Parameters of the metric.
    distance_threshold : float or None, default=None
        Clusters with at least this height are split, see `linkage_matrix_`. `n_clusters` must be None.
    compute_full_tree : bool, default=True
        Continue the splits down to single rows, and store the whole tree. If False, stop when the clusters are found.
    bisecting_strategy : {'biggest_inertia', 'largest_cluster'}, default='biggest_inertia'
        Cluster that 'bisecting' splits next: the one with the largest inertia, or with the largest weight.
    init : str or function, default='k-means++'
        Initial centers of each split by 'bisecting', as in `BisectingKMeans`.
    n_init : int or 'auto', default='auto'
        Number of initialisations of each split by 'bisecting', as in `BisectingKMeans`.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Random state of the initialisations of 'bisecting'.

    Attributes
    ----------
    labels_ : array (n,) of int32
        Cluster of each row. Clusters are numbered by their first row.
    n_clusters_ : int
        Number of clusters.
    linkage_matrix_ : array (n - 1, 4) or None
        The tree in SciPy's format, from the last split to the first: the two parts of each split, the height of the
        cluster that was split, and its number of rows. For 'diana' the height is the diameter. For 'bisecting' it is
        the inertia or the weight, according to `bisecting_strategy`, and 0 if all rows are equal. A part is never
        higher than the whole. None if `compute_full_tree` is False, as are the next three attributes.
    children_ : array (n - 1, 2) or None
        The first two columns of `linkage_matrix_`.
    distances_ : array (n - 1,) or None
        The third column of `linkage_matrix_`: the heights.
    divisive_coefficient_ : float or None
        `dc` of R's `diana`, see `coterie.hierarchy.banner_coefficient`; 0 if all rows are equal.
    n_leaves_ : int
        Number of rows.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : array (n_features,)
        Names of the columns, if `X` has column names that are all strings.

    Notes
    -----
    'diana' stores n² distances. A split that moves m' of m rows takes O(m m') operations, because sums of distances and
    diameters are updated. The whole tree takes about n² log n operations if clusters are halved, and n³ in the worst
    case. If several rows have the same mean distance, the first starts the splinter group. Sample weights are not
    supported.

    'bisecting' takes 4 m d operations per iteration for a split of m rows. k clusters of equal size take about as long
    as log2(k) fits of two clusters. The whole tree has n - 1 splits, most of them of a few rows, at about a millisecond
    each. It stores two centers per split. The first clusters are those of `BisectingKMeans` with the same options.

    `predict` follows the splits: at each split, a new row goes to the part with the smaller mean distance, or with the
    nearer center. With 'diana', the rows of the fit can get other labels than `labels_`, because the splits moved rows
    one by one; with 'bisecting' they never do. 'bisecting' does not split equal rows into different clusters, and warns
    if there are fewer clusters than `n_clusters` for this reason.

    References
    ----------
    .. [1] L. Kaufman, P. J. Rousseeuw (1990), Finding groups in data, chapter 6, Wiley.
       https://doi.org/10.1002/9780470316801
    .. [2] M. Steinbach, G. Karypis, V. Kumar (2000), A comparison of document clustering techniques, KDD Workshop on
       Text Mining; Technical Report 00-034, University of Minnesota.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import DivisiveClustering
    >>> X = np.array([[1.0], [2.0], [3.0], [11.0], [13.0]])
    >>> model = DivisiveClustering(n_clusters=2).fit(X)
    >>> model.labels_.tolist(), model.predict([[9.0]]).tolist()
    ([0, 0, 0, 1, 1], [1])
    >>> model.distances_
    array([ 1.,  2.,  2., 12.])
    >>> DivisiveClustering(n_clusters=2, method="bisecting", random_state=0).fit(X).distances_[-2:]
    array([  2., 124.])
    """

    n_clusters: Any = 2
    _: KW_ONLY
    method: str = "diana"
    distance_threshold: float | None = None
    compute_full_tree: bool = True
    bisecting_strategy: str = "biggest_inertia"
    init: Any = "k-means++"
    n_init: int | str = "auto"
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the tree of the rows of `X`, and its clusters.

        Parameters
        ----------
        X : array, frame or list of series; distances (n, n) for metric='precomputed'
            Data to cluster. method='bisecting' also accepts sparse matrices and Dask arrays.
        y : ignored
        sample_weight : array (n,), optional
            Sample weights, for method='bisecting'. A row of weight 2 is equivalent to two equal rows.

        Returns
        -------
        self
        """
        X = opened(X)
        if one_of("method", self.method, ("diana", "bisecting")) == "diana":
            return self._fit_diana(X, sample_weight)
        return self._fit_bisecting(X, sample_weight)

    def predict(self, X: Any) -> Array:
        """Return the cluster of each row (n,), found by following the splits.

        For metric='precomputed', `X` has one column for each row of the fit.
        """
        check_is_fitted(self)
        if isinstance(self._splits, Bisections):
            return self._splits.assign(X, self)
        new = self._new_objects(X)

        def strip(start: int, stop: int) -> Array:
            return self._splits.assign(new[start:stop])

        with machine.one_blas_thread:
            return np.concatenate(machine.run_in_threads(strip, strips(len(new), self.n_leaves_), self.n_jobs))

    def _is_of_fit(self, X: Any, sample_weight: Any) -> bool:
        """Only 'diana' needs this: with 'bisecting', `predict` returns `labels_` for the rows of the fit."""
        return self.method == "diana" and super()._is_of_fit(X, sample_weight)

    def _fit_diana(self, X: Any, sample_weight: Any) -> Self:
        n_clusters, threshold = self._stopping_rule()
        if sample_weight is not None:
            raise InputError(
                "sample_weight must be None for method='diana', which does not support weights; use method='bisecting'"
            )
        objects = self._objects(X)
        n = len(objects.A)
        check_enough(n, n_clusters)
        D = objects.A if objects.distance is None else self._distances(X, objects, n)
        max_clusters, min_height = (n, 0.0) if self.compute_full_tree else (n_clusters or n, threshold or 0.0)
        splits = split(D, max_clusters, min_height)
        k = n_clusters or 1 + int((splits.height >= threshold).sum())
        cluster = splits.clusters(k)
        self._check_columns(X, reset=True)
        names = self._store_result(splits, cluster)
        self._distance, self._columns = objects.distance, (n, np.arange(n))
        fitted = fitted_objects(*objects, cluster)
        self._splits = SplitRules(fitted, splits.split[: k - 1], np.bincount(cluster), names)
        return self

    def _fit_bisecting(self, X: Any, sample_weight: Any) -> Self:
        n_clusters, threshold = self._stopping_rule()
        self._check_euclidean()
        bisections = Bisections(**{name: getattr(self, name) for name in OF_BISECTIONS})
        max_clusters, min_height = (None, 0.0) if self.compute_full_tree else (n_clusters, threshold or 0.0)
        splits = bisections.split(X, sample_weight, n_clusters, max_clusters, min_height)
        exponent = bisections.height_exponent
        if n_clusters is None:
            k = 1 + int((np.ldexp(splits.height, exponent) >= threshold).sum())
        else:
            k = min(n_clusters, 1 + len(splits.split))
        cluster = splits.clusters(k)
        names = self._store_result(splits.to_single_objects() if self.compute_full_tree else splits, cluster, exponent)
        detach(self, "_distance", "_columns")  # of an earlier fit with 'diana'
        bisections.keep(X, self, names)
        self._splits = bisections
        if n_clusters is not None and k < n_clusters:
            warn_of_few_rows(k, n_clusters)
        return self

    def _store_result(self, splits: Splits, cluster: Array, exponent: int = 0) -> Array:
        """Store tree and labels, and return the label of each cluster (k,). Heights are multiplied by 2^exponent."""
        self.linkage_matrix_: Any = None
        self.children_: Any = None
        self.distances_: Any = None
        self.divisive_coefficient_: float | None = None
        if self.compute_full_tree:
            Z = splits.linkage_matrix()
            self.divisive_coefficient_ = banner_coefficient(Z) if splits.height[0] > 0 else 0.0
            heights = {"distances_": Z[:, 2]}
            Z[:, 2] = multiplied(heights, {"distances_": LENGTHS}, Scale(exponent, 0))["distances_"]
            self._store_tree(Z)
        self.labels_, self.n_leaves_ = number_by_first_row(cluster), len(cluster)
        self.n_clusters_ = int(self.labels_.max()) + 1
        names = np.empty(self.n_clusters_, np.int32)
        names[cluster] = self.labels_
        return names

    def _distances(self, X: Any, objects: Objects, n: int) -> Array:
        distance: Any = objects.distance
        check_symmetric(distance, "diameters need d(x, y) = d(y, x)")
        machine.check_memory(n * n * objects.A.dtype.itemsize, f"the distances of {n} rows", REMEDY)
        return pairwise(X, metric=distance, n_jobs=self.n_jobs)

    def _check_euclidean(self) -> None:
        distance = self._as_distance()
        if type(distance) is not Euclidean or distance.w is not None:
            raise ParameterError(
                "method='bisecting' computes means, and needs metric='euclidean' without metric_params; got "
                f"metric={self.metric!r}, metric_params={self.metric_params!r}. method='diana' supports any metric"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.method == "bisecting"
        return tags


# Divisive analysis (DIANA): split clusters by distances, and assign new objects along the splits.


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


# The splits of bisecting K-means, down to single rows, and the assignment of new rows.

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
