"""The estimator of divisive clustering."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from coterie import kernels, machine
from coterie.core.errors import ParameterError
from coterie.distances.distance import Distance
from coterie.distances.pairwise import pairwise, strips
from coterie.hierarchy.assign import Fitted, fitted
from coterie.hierarchy.coefficients import banner_coefficient
from coterie.hierarchy.cut import by_first_appearance
from coterie.hierarchy.estimator import TreeEstimator, check_enough
from coterie.hierarchy.tree import Array

REMEDY = "use float32 rows, a sample of the rows, or BisectingKMeans, which needs no distances"


class DivisiveClustering(TreeEstimator):
    r"""Divisive analysis (DIANA): the widest cluster is split in two, from all rows down to `n_clusters`.

    .. math:: \max_{i \in A} \Bigl( \frac{1}{|A| - 1} \sum_{j \in A} d(x_i, x_j)
              - \frac{1}{|B|} \sum_{j \in B} d(x_i, x_j) \Bigr) > 0 \;\Rightarrow\; i: A \to B

    The cluster of the largest diameter (the largest distance of two of its rows) is split [1]_: the row farthest from
    the others on average begins a splinter group B, and while a row of the rest A is nearer to B than to the other rows
    of A, on average, the one that is so by most goes over. The large structure is found first, where merging rows
    (`AgglomerativeClustering`) finds it last.

    Do not use it for clusters of very different widths, for rings and chains (single linkage), or where n² distances
    are too many: `BisectingKMeans` also splits from the top, by K-means, in O(n) memory.

    Parameters
    ----------
    n_clusters : int or None, default=2
        How many clusters; None with `distance_threshold`.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        See `coterie.distances.pairwise`. 'precomputed': `X` is the (n, n) matrix of distances.
    metric_params : dict or None
        Parameters of the metric.
    distance_threshold : float or None, default=None
        Clusters of this diameter or a larger one are split; `n_clusters` must be None.
    compute_full_tree : bool, default=True
        Split on to single rows, and keep the whole tree; if False, stop when there are enough clusters.
    n_jobs : int or None, default=None
        Threads that make distances; None is all cores. The result does not depend on it.

    Attributes
    ----------
    labels_ : array (n,) of int32
        Clusters, numbered by their first rows.
    n_clusters_ : int
    linkage_matrix_ : array (n - 1, 4) or None
        The tree, read from the bottom as SciPy has them: the two parts of every split, the diameter of what was split
        as its height, and its number of rows. None without the whole tree, as are the next three.
    children_ : array (n - 1, 2) or None
        The first two columns of it.
    distances_ : array (n - 1,) or None
        Its third: the diameters.
    divisive_coefficient_ : float or None
        R's `dc`, see `coterie.hierarchy.banner_coefficient`; 0 where all rows are alike.
    n_leaves_ : int
        Rows.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Keeps n² distances. A split of m rows of which m' leave costs O(m m'): sums of distances and diameters are kept up
    to date, so that the whole tree takes about n² log n steps where clusters are halved, and n³ at worst. Of rows that
    are equally far the first begins the splinter group.

    `predict` lets a new row follow the splits: at each it goes to the part to which its mean distance is less. A row of
    the fit need not get its own label: rows went over one by one.

    References
    ----------
    .. [1] L. Kaufman, P. J. Rousseeuw (1990), Finding groups in data, chapter 6, Wiley.
       https://doi.org/10.1002/9780470316801

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
    """

    def __init__(
        self,
        n_clusters=2,
        *,
        metric="euclidean",
        metric_params=None,
        distance_threshold=None,
        compute_full_tree=True,
        n_jobs=None,
    ):
        self.n_clusters = n_clusters
        self.metric = metric
        self.metric_params = metric_params
        self.distance_threshold = distance_threshold
        self.compute_full_tree = compute_full_tree
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Split the rows of `X`.

        Parameters
        ----------
        X : array, frame or list of series; distances (n, n) for metric='precomputed'
            What to cluster.
        y : ignored
        """
        n_clusters, threshold = self._how_many()
        objects = self._objects(X)
        n = len(objects.A)
        check_enough(n, n_clusters)
        D = objects.A if objects.distance is None else self._distances(X, objects.distance, n, objects.A.dtype)
        splits = _split(D, n, 0.0) if self.compute_full_tree else _split(D, n_clusters or n, threshold or 0.0)
        k = n_clusters or 1 + int((splits.height >= threshold).sum())
        cluster = splits.clusters(k)
        self._check_columns(X, reset=True)
        self.linkage_matrix_ = self.children_ = self.distances_ = self.divisive_coefficient_ = None
        if self.compute_full_tree:
            self._keep_tree(splits.merges())
            self.divisive_coefficient_ = banner_coefficient(self.linkage_matrix_) if splits.height[0] > 0 else 0.0
        self.labels_, self.n_clusters_, self.n_leaves_ = by_first_appearance(cluster), k, n
        self._distance, self._columns = objects.distance, (n, np.arange(n))
        self._way = _Way(fitted(*objects, cluster), splits.split[: k - 1], np.bincount(cluster), self._names(cluster))
        return self

    def predict(self, X: Any) -> Array:
        """Where the splits lead every row (n,); for metric='precomputed' `X` has a column for each row of the fit."""
        new = self._new_objects(X)

        def strip(start: int, stop: int) -> Array:
            return self._way.follow(new[start:stop])

        with machine.one_blas_thread:
            return np.concatenate(list(machine.in_threads(strip, strips(len(new), self.n_leaves_), self.n_jobs)))

    def _distances(self, X: Any, distance: Distance, n: int, dtype: Any) -> Array:
        if not distance.symmetric:
            raise ParameterError(f"metric={distance.name!r} is not symmetric, and a diameter has no direction")
        machine.check_room(n * n * dtype.itemsize, f"the distances of {n} rows", REMEDY)
        return pairwise(X, metric=distance, n_jobs=self.n_jobs)

    def _names(self, cluster: Array) -> Array:
        """The label of every cluster (k,)."""
        names = np.empty(self.n_clusters_, np.int32)
        names[cluster] = self.labels_
        return names


class _Splits(NamedTuple):
    """Splits in their order: `split[s]` keeps its number for the rest, and its splinter group becomes cluster s + 1."""

    split: Array  # (m,)
    height: Array  # (m,) diameters of what is split; they never rise
    cluster: Array  # (n,) of every object after all splits

    def clusters(self, k: int) -> Array:
        """The cluster of every object after k - 1 splits (n,)."""
        return _homes(self.split, k)[self.cluster]

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


def _split(D: Array, most: int, least: float) -> _Splits:
    """Splits into `most` clusters, or until all are of a diameter below `least`."""
    n = len(D)
    split, height, cluster = np.empty(most - 1, np.int64), np.empty(most - 1), np.empty(n, np.int64)
    done = kernels.of_diana(n).divide(D, least, split, height, cluster)
    return _Splits(split[:done], height[:done], cluster)


def _homes(split: Array, k: int) -> Array:
    """Of every cluster there is after all splits: the one it was part of when there were `k`."""
    home = np.arange(len(split) + 1)
    for j in range(k, len(home)):
        home[j] = home[split[j - 1]]
    return home


class _Way(NamedTuple):
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
            home = _homes(self.split, s + 2)
            rest, splinter = home == parted, home == s + 1
            to_rest = sums[:, rest].sum(axis=1) / self.size[rest].sum()
            to_splinter = sums[:, splinter].sum(axis=1) / self.size[splinter].sum()
            at[(at == parted) & (to_splinter < to_rest)] = s + 1
        return self.names[at]
