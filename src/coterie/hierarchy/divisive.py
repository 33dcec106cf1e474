"""The estimator of divisive clustering."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coterie import machine
from coterie.core.arguments import one_of
from coterie.core.errors import InputError, ParameterError
from coterie.core.stored import stored
from coterie.data import opened
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import pairwise, strips
from coterie.hierarchy import diana
from coterie.hierarchy.assign import fitted
from coterie.hierarchy.bisecting import Bisections
from coterie.hierarchy.coefficients import banner_coefficient
from coterie.hierarchy.cut import by_first_appearance
from coterie.hierarchy.estimator import Objects, TreeEstimator, check_enough
from coterie.hierarchy.splits import Splits
from coterie.hierarchy.tree import Array
from coterie.kmeans.bisecting_kmeans import warn_of_few_rows

REMEDY = "use float32 rows, a sample of the rows, or method='bisecting', which needs no distances"


@stored(
    "DivisiveClustering", optional="_columns _distance", labels_="index<K N", _way="<hierarchy.Splits> | <Bisections>"
)
class DivisiveClustering(TreeEstimator):
    r"""Divisive clustering: a cluster is split in two, from all rows down to `n_clusters`.

    'diana' is divisive analysis [1]_. The cluster of the largest diameter (the largest distance of two of its rows) is
    split: the row farthest from the others on average begins a splinter group B, and while a row of the rest A is
    nearer to B than to the other rows of A, on average, the one that is so by most goes over.

    .. math:: \max_{i \in A} \Bigl( \frac{1}{|A| - 1} \sum_{j \in A} d(x_i, x_j)
              - \frac{1}{|B|} \sum_{j \in B} d(x_i, x_j) \Bigr) > 0 \;\Rightarrow\; i: A \to B

    'bisecting' is the tree of `BisectingKMeans` [2]_. The cluster of most inertia (or weight) is split by K-means:

    .. math:: \min_{A, B} \sum_{i \in A} w_i \lVert x_i - \mu_A \rVert^2
              + \sum_{i \in B} w_i \lVert x_i - \mu_B \rVert^2

    Both find the large structure first, where merging rows (`AgglomerativeClustering`) finds it last.

    Do not use either for clusters of very different widths, or for rings and chains (single linkage); nor 'diana' where
    n² distances are too many, nor 'bisecting' for distances that are not Euclidean. Where the tree below the clusters
    does not matter, `BisectingKMeans` is 'bisecting' without it.

    Parameters
    ----------
    n_clusters : int or None, default=2
        How many clusters; None with `distance_threshold`.
    method : {'diana', 'bisecting'}, default='diana'
        How clusters are split.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        See `coterie.distances.pairwise`. 'precomputed': `X` is the (n, n) matrix of distances. 'bisecting' has means,
        and needs 'euclidean'.
    metric_params : dict or None
        Parameters of the metric.
    distance_threshold : float or None, default=None
        Clusters of this height or a larger one are split, see `linkage_matrix_`; `n_clusters` must be None.
    compute_full_tree : bool, default=True
        Split on to single rows, and keep the whole tree; if False, stop when there are enough clusters.
    bisecting_strategy : {'biggest_inertia', 'largest_cluster'}, default='biggest_inertia'
        Which cluster 'bisecting' splits next: the one that costs most, or the one of the largest weight.
    init, n_init
        Where the two centers of a split start, and how often, as in `BisectingKMeans`; for 'bisecting'.
    n_jobs : int or None, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : int, RandomState, Generator or None
        Chance in the starts of 'bisecting'.

    Attributes
    ----------
    labels_ : array (n,) of int32
        Clusters, numbered by their first rows.
    n_clusters_ : int
    linkage_matrix_ : array (n - 1, 4) or None
        The tree, read from the bottom as SciPy has them: the two parts of every split, the height of what was split,
        and its number of rows. The height is the diameter for 'diana'; for 'bisecting' it is what the cluster was
        chosen for, its inertia or its weight, and 0 for rows that are all alike. No part is higher than the whole.
        None without the whole tree, as are the next three.
    children_ : array (n - 1, 2) or None
        The first two columns of it.
    distances_ : array (n - 1,) or None
        Its third: the heights.
    divisive_coefficient_ : float or None
        R's `dc`, see `coterie.hierarchy.banner_coefficient`; 0 where all rows are alike.
    n_leaves_ : int
        Rows.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    'diana' keeps n² distances. A split of m rows of which m' leave costs O(m m'): sums of distances and diameters are
    kept up to date, so that the whole tree takes about n² log n steps where clusters are halved, and n³ at worst. Of
    rows that are equally far the first begins the splinter group. All rows weigh the same.

    'bisecting' costs 4 m d operations an iteration for a split of m rows: k clusters of even size cost about as much as
    log2(k) fits of two, and the whole tree n - 1 splits, most of them of a few rows: about a millisecond each.
    It keeps two centers a split. The first clusters are those of `BisectingKMeans` with the same options.

    `predict` lets a new row follow the splits: at each it goes to the part to which its mean distance is less, or whose
    center is nearer. With 'diana' a row of the fit need not get its own label, for rows went over one by one; with
    'bisecting' it always does. There, rows that are all alike are one cluster, with a warning if more are asked for.

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

    def __init__(
        self,
        n_clusters=2,
        *,
        method="diana",
        metric="euclidean",
        metric_params=None,
        distance_threshold=None,
        compute_full_tree=True,
        bisecting_strategy="biggest_inertia",
        init="k-means++",
        n_init="auto",
        n_jobs=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.method = method
        self.metric = metric
        self.metric_params = metric_params
        self.distance_threshold = distance_threshold
        self.compute_full_tree = compute_full_tree
        self.bisecting_strategy = bisecting_strategy
        self.init = init
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Split the rows of `X`.

        Parameters
        ----------
        X : array, frame or list of series; distances (n, n) for metric='precomputed'
            What to cluster; sparse and Dask rows too, for method='bisecting'.
        y : ignored
        sample_weight : array (n,), optional
            How much each row counts, for method='bisecting'; a row of weight two is that row twice.
        """
        X = opened(X)
        if one_of("method", self.method, ("diana", "bisecting")) == "diana":
            return self._fit_diana(X, sample_weight)
        return self._fit_bisecting(X, sample_weight)

    def predict(self, X: Any) -> Array:
        """Where the splits lead every row (n,); for metric='precomputed' `X` has a column for each row of the fit."""
        check_is_fitted(self)
        if isinstance(self._way, Bisections):
            return self._way.follow(X, self)
        new = self._new_objects(X)

        def strip(start: int, stop: int) -> Array:
            return self._way.follow(new[start:stop])

        with machine.one_blas_thread:
            return np.concatenate(list(machine.in_threads(strip, strips(len(new), self.n_leaves_), self.n_jobs)))

    def _is_of_fit(self, X: Any, sample_weight: Any) -> bool:
        """Asked of 'diana' alone: by 'bisecting', rows of the fit get their labels as all rows do."""
        return self.method == "diana" and super()._is_of_fit(X, sample_weight)

    def _fit_diana(self, X: Any, sample_weight: Any) -> Self:
        n_clusters, threshold = self._how_many()
        if sample_weight is not None:
            raise InputError(
                "sample_weight must be None for method='diana', to which all rows count alike; "
                "method='bisecting' takes weights"
            )
        objects = self._objects(X)
        n = len(objects.A)
        check_enough(n, n_clusters)
        D = objects.A if objects.distance is None else self._distances(X, objects, n)
        most, least = (n, 0.0) if self.compute_full_tree else (n_clusters or n, threshold or 0.0)
        splits = diana.split(D, most, least)
        k = n_clusters or 1 + int((splits.height >= threshold).sum())
        cluster = splits.clusters(k)
        self._check_columns(X, reset=True)
        names = self._keep(splits, cluster)
        self._distance, self._columns = objects.distance, (n, np.arange(n))
        self._way = diana.Way(fitted(*objects, cluster), splits.split[: k - 1], np.bincount(cluster), names)
        return self

    def _fit_bisecting(self, X: Any, sample_weight: Any) -> Self:
        n_clusters, threshold = self._how_many()
        self._check_euclidean()
        way = Bisections(
            init=self.init,
            n_init=self.n_init,
            bisecting_strategy=self.bisecting_strategy,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        most, least = (None, 0.0) if self.compute_full_tree else (n_clusters, threshold or 0.0)
        splits = way.split(X, sample_weight, n_clusters, most, least)
        found = 1 + len(splits.split)
        k = 1 + int((splits.height >= threshold).sum()) if n_clusters is None else min(n_clusters, found)
        cluster = splits.clusters(k)
        names = self._keep(splits.to_single_objects() if self.compute_full_tree else splits, cluster)
        way.keep(X, self, names)
        self._way = way
        if n_clusters is not None and k < n_clusters:
            warn_of_few_rows(k, n_clusters)
        return self

    def _keep(self, splits: Splits, cluster: Array) -> Array:
        """Keeps tree and labels; the label of every cluster (k,)."""
        self.linkage_matrix_: Any = None
        self.children_: Any = None
        self.distances_: Any = None
        self.divisive_coefficient_: float | None = None
        if self.compute_full_tree:
            self._keep_tree(splits.merges())
            self.divisive_coefficient_ = banner_coefficient(self.linkage_matrix_) if splits.height[0] > 0 else 0.0
        self.labels_, self.n_leaves_ = by_first_appearance(cluster), len(cluster)
        self.n_clusters_ = int(self.labels_.max()) + 1
        names = np.empty(self.n_clusters_, np.int32)
        names[cluster] = self.labels_
        return names

    def _distances(self, X: Any, objects: Objects, n: int) -> Array:
        distance: Any = objects.distance
        if not distance.symmetric:
            raise ParameterError(f"metric={distance.name!r} is not symmetric, and a diameter has no direction")
        machine.check_room(n * n * objects.A.dtype.itemsize, f"the distances of {n} rows", REMEDY)
        return pairwise(X, metric=distance, n_jobs=self.n_jobs)

    def _check_euclidean(self) -> None:
        distance = self._as_distance()
        if type(distance) is not Euclidean or distance.w is not None:
            raise ParameterError(
                "method='bisecting' splits by means, and needs metric='euclidean' without metric_params; got "
                f"metric={self.metric!r}, metric_params={self.metric_params!r}: method='diana' takes any distance"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.method == "bisecting"
        return tags
