"""DBSCAN: clusters of a given minimum density."""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from threading import Lock
from typing import Any, Self

import numpy as np

from coterie import kernels, machine
from coterie.core.arguments import is_number, whole_number
from coterie.core.arrays import Array
from coterie.core.rounding import inclusive_radius
from coterie.core.stored import stored
from coterie.data import opened
from coterie.density.condensed_tree import CondensedTree, condense
from coterie.density.density_estimator import DensityEstimator
from coterie.density.kd_rows import KDRows, kd_rows
from coterie.density.reachability import ROUNDING, reachability
from coterie.density.row_distances import RowDistances
from coterie.distances.distance import Distance
from coterie.distances.pairwise import strips
from coterie.errors import ParameterError
from coterie.hierarchy.cut import number_by_first_row
from coterie.kernels.plain.density import roots


@stored(
    labels_="index-<K N",
    core_sample_indices_="index C",
    _columns="tuple",
    _distance="none | <distance.*>",
    _core="<density.Neighbourhoods>",
)
@dataclass(eq=False, repr=False)
class DBSCAN(DensityEstimator):
    r"""DBSCAN: clusters of any shape with a minimum density; rows in regions with few rows are noise.

    A core row has at least `min_samples` rows within the distance `eps`, itself included. Core rows within `eps` of
    each other are in one cluster. Other rows within `eps` of a core row are border rows of its cluster, and all others
    are noise [1]_.

    Use it if one density separates all clusters, and `eps` has a meaning, such as a distance on a map. Use `HDBSCAN` if
    clusters have different densities, or `eps` is not known.

    Parameters
    ----------
    eps : float or 'auto', default=0.5
        Radius of a neighbourhood. 'auto' computes the tree of `HDBSCAN`, and uses a radius in the widest range of radii
        with the same number of clusters, see Notes. `eps_` is the value that was used.
    min_samples : int, default=5
        Number of rows, or sum of their weights, in the neighbourhood of a core row, itself included.
    metric : str, function, Distance or 'precomputed', default='euclidean'
        Distance, see `coterie.distances.pairwise`. With 'precomputed', `X` is the distance matrix (n, n).
    metric_params : dict or None, default=None
        Parameters of the metric.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores. The result does not depend on it.

    Attributes
    ----------
    labels_ : array (n,) of int32
        Cluster of each row; -1 is noise. Clusters are numbered by their first core row.
    core_sample_indices_ : array (c,)
        Indices of the core rows.
    components_ : array (c, d) or None
        Core rows; None if they are not numeric rows.
    n_clusters_ : int
        Number of clusters.
    eps_ : float
        The radius.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : array (n_features,)
        Names of the columns, if `X` has column names that are all strings.

    Notes
    -----
    **Ties.** A border row within `eps` of several clusters is in the one with the lowest number, as in scikit-learn. So
    another order of the rows can change the cluster of such border rows, and of no other rows. A distance that equals
    `eps` up to rounding is within it.

    **Automatic radius.** Of all ranges of radii with the same number of clusters, at least two, ``eps='auto'`` takes
    the one with the largest ratio of its ends, times the share of rows that are not noise. Only clusters with at least
    :math:`\sqrt n` rows count. The radius is at three quarters of this range, on a logarithmic scale. If no radius has
    two clusters, it is the smallest radius at which 90 % of the rows are in one. It fails if no single radius separates
    the clusters: if they overlap, or have very different densities. It takes as long as a fit of `HDBSCAN`.

    **Cost.** O(n) memory. For Euclidean distances of few columns, a k-d tree takes about O(n log n) time. Otherwise it
    takes O(n² d) time. Ctrl-C stops a fit at once. There is no progress bar and no checkpoint: the fit of a million
    rows with three columns takes seconds.

    References
    ----------
    .. [1] M. Ester, H.-P. Kriegel, J. Sander, X. Xu (1996), A density-based algorithm for discovering clusters in large
       spatial databases with noise, KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import DBSCAN
    >>> X = np.array([[1.0, 2], [2, 2], [2, 3], [8, 7], [8, 8], [25, 80]])
    >>> model = DBSCAN(eps=3, min_samples=2).fit(X)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1, -1]
    >>> model.predict([[8.0, 6.0], [50.0, 50.0]]).tolist()
    [1, -1]
    """

    eps: Any = 0.5
    _: KW_ONLY
    min_samples: int = 5

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the core rows of `X`, and their clusters.

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
        min_samples = whole_number("min_samples", self.min_samples, 1)
        self._check_eps()
        X = opened(X)
        objects, weight, rows, n = self._weighted_objects(X, sample_weight)
        distances = RowDistances(objects.distance, objects.A, self.n_jobs)
        eps = automatic_radius(distances, weight, min_samples) if isinstance(self.eps, str) else float(self.eps)
        labels, is_core = core_clusters(distances, weight, eps, min_samples)
        core = np.flatnonzero(is_core)
        self._check_columns(X, reset=True)
        self._distance, self._columns, self.eps_ = objects.distance, (n, rows), eps
        self.core_sample_indices_ = rows[core]
        self._core = Neighbourhoods(
            objects.distance, None if objects.distance is None else objects.A[core], core, labels[core], eps
        )
        self.n_clusters_ = int(labels.max(initial=-1)) + 1
        self.components_ = self._components(X)
        if len(rows) < n:
            self.labels_ = self.predict(X)
            self.labels_[rows] = labels
        else:
            self.labels_ = labels
        return self

    def predict(self, X: Any) -> Array:
        """Return the cluster of each row (m,): the lowest number of the clusters with a core row within `eps`, or -1.

        For the rows of the fit, the result is `labels_`. For metric='precomputed', `X` has one column for each row of
        the fit.
        """
        new = self._new_objects(X)  # raises NotFittedError before an attribute of the fit is read
        return self._core.lowest_labels(new, self.n_jobs)

    def _components(self, X: Any) -> Array | None:
        rows = None if self._distance is None else self._distance.rows(X)
        return rows[self.core_sample_indices_] if isinstance(rows, np.ndarray) and rows.ndim == 2 else None

    def _check_eps(self) -> None:
        is_auto = isinstance(self.eps, str) and self.eps == "auto"
        if not is_auto and not (is_number(self.eps) and 0 < self.eps < np.inf):
            raise ParameterError(f"eps must be a positive number, or 'auto'; got {self.eps!r}")


# The radius of DBSCAN, if it is not given: a radius in the widest range of radii with the same number of clusters.

POSITION = 0.75  # of the radius in its range, on a logarithmic scale: near the upper end, where few rows are noise
MIN_SHARE = 0.9  # of the rows in the cluster, if no radius has two clusters


def automatic_radius(distances: RowDistances, weight: Array, min_samples: float) -> float:
    """The radius for rows of these weights (n,). Clusters count if their weight is at least the root of the total."""
    total = float(weight.sum())
    core, edges = reachability(distances, weight, min(min_samples, total), lambda done: None)
    Z = kernels.select("linkage", len(weight), 1).linkage_matrix(edges, len(weight))
    tree = condense(Z, core, weight, max(min_samples, np.sqrt(total)) * (1 - ROUNDING))
    return stable_radius(tree) or single_cluster_radius(tree)


def stable_radius(tree: CondensedTree) -> float | None:
    """A radius in the widest range with the same number of clusters, at least two; None if no radius has two.

    The width is the logarithm of the ratio of the ends, times the share of rows that are not noise at the upper end.
    """
    if len(tree.cluster_parent) < 3:
        return None
    birth, end = _ranges(tree)
    radii, inverse = np.unique(np.concatenate([end, birth]), return_inverse=True)
    change = np.repeat([1.0, -1.0], len(end))  # a cluster exists from its end to its birth
    count = np.cumsum(np.bincount(inverse, change))[:-1]  # clusters between consecutive radii
    first = np.flatnonzero(np.diff(count, prepend=-1))
    low, high, count = radii[first], radii[np.append(first[1:], len(radii) - 1)], count[first]
    if not (count > 1).any():
        return None
    order = np.argsort(tree.row_lambda)[::-1]
    heights, weight = 1 / tree.row_lambda[order], np.append(0.0, np.cumsum(tree.row_weight[order]))
    share = weight[np.searchsorted(heights, high, side="right")]
    best = np.where(count > 1, np.log(high / low) * share, -1.0).argmax()
    return float(low[best] * (high[best] / low[best]) ** POSITION)


def _ranges(tree: CondensedTree) -> tuple[Array, Array]:
    """The largest and the smallest radius of each cluster except the root."""
    birth = 1 / tree.cluster_lambda[1:]
    end = tree.deaths()
    np.minimum.at(end, tree.cluster_parent[1:], tree.cluster_lambda[1:])
    return birth, np.minimum(1 / end[1:], birth)


def single_cluster_radius(tree: CondensedTree) -> float:
    """The smallest radius at which a share of `MIN_SHARE` of the rows are in one cluster."""
    order = np.argsort(tree.row_lambda)[::-1]
    weight = np.cumsum(tree.row_weight[order])
    row = order[np.searchsorted(weight, MIN_SHARE * (1 - ROUNDING) * weight[-1])]
    return float((1 + ROUNDING) / tree.row_lambda[row])  # not below the distance, whose inverse was rounded


# Neighbourhoods of a radius: core rows, their clusters, and the clusters of other rows.


@stored(
    "density.Neighbourhoods",
    distance="none | <distance.*>",
    A="none | float m D | bool m D | <series.Series>",
    columns="index m",
    labels="index<K m",
)
@dataclass(frozen=True)
class Neighbourhoods:
    """Core rows, their labels, and the radius of their neighbourhoods."""

    distance: Distance | None
    A: Any  # prepared core rows; None for precomputed distances
    columns: Array  # (m,) positions of the core rows among the rows of positive weight
    labels: Array  # (m,)
    eps: float

    def lowest_labels(self, new: Any, n_jobs: int | None) -> Array:
        """The lowest label of the core rows within the radius of each new row; -1 if there is none."""
        m, labels = len(self.labels), np.full(len(new), -1, np.int32)
        if m == 0:
            return labels
        kernel = kernels.select("density", len(new), m)

        def put(start: int, stop: int) -> None:
            part = new[start:stop]
            table = part[:, self.columns] if self.distance is None else self.distance.table(part, self.A)
            radius = inclusive_radius(self.eps, table.dtype)
            kernel.lowest_label_within(np.ascontiguousarray(table), self.labels, radius, labels[start:stop])

        with machine.one_blas_thread:
            work = 1 if self.distance is None else self.distance.work
            machine.run_in_threads(put, strips(len(new), m, work), n_jobs)
        return labels


def core_clusters(distances: RowDistances, weight: Array, eps: float, min_samples: float) -> tuple[Array, Array]:
    """Labels of DBSCAN (n,), and which rows are core rows (n,)."""
    unit = float(distances.to_scale([1.0])[0])
    radius = inclusive_radius(eps / unit, distances.dtype)
    kd = kd_rows(distances)
    if kd is not None:
        return _in_kd_tree(kd, weight, radius, min_samples * (1 - ROUNDING), distances.n_jobs)
    distances.store_if_small()
    n = len(distances)
    kernel, is_core = kernels.select("density", n, n), np.empty(n, bool)

    def mark(rows: Array, table: Array) -> None:
        total = np.empty(len(rows))
        kernel.weights_within(table, weight, radius, total)
        is_core[rows] = total >= min_samples * (1 - ROUNDING)

    for _ in distances.in_threads(mark, np.arange(n)):
        pass
    core, others = np.flatnonzero(is_core), np.flatnonzero(~is_core)
    parent, lock = np.arange(len(core)), Lock()

    def connect(part: Array) -> None:
        table = distances.table(core[part], core[part[0] :])
        with lock:  # the result is the same in any order
            kernel.connect_within(table, part[0], radius, parent)

    for _ in distances.strips_in_threads(connect, np.arange(len(core))):
        pass
    labels = _numbered(roots(parent), is_core)
    hoods = Neighbourhoods(distances.distance, distances.A[core], core, labels[core], eps / unit)
    labels[others] = hoods.lowest_labels(distances.A[others], distances.n_jobs)
    return labels, is_core


def _numbered(tree: Array, is_core: Array) -> Array:
    """Number the trees of the core rows (c,) by their first row (n,); -1 for other rows."""
    labels = np.full(len(is_core), -1, np.int32)
    labels[is_core] = number_by_first_row(tree)
    return labels


def _in_kd_tree(kd: KDRows, weight: Array, radius: float, min_weight: float, n_jobs: int | None) -> tuple[Array, Array]:
    """The same with a k-d tree. Core points are connected in one thread, all else in several."""
    from coterie.kernels.cpu import kd_density

    n, square, tree, points = len(kd.order), kd.square_of(radius), kd.tree, kd.points
    weight, is_core, parent = weight[kd.order], np.empty(n, bool), np.arange(n)
    box_weight = kd_density.sum_weights(tree, weight)
    mark = partial(kd_density.mark_core, tree, points, weight, box_weight, square, min_weight, is_core)
    machine.run_in_threads(mark, kd.parts, n_jobs)
    member = kd_density.connect_small_boxes(tree, is_core, square, parent)
    for start, stop in kd.parts:
        kd_density.connect_core(tree, points, is_core, member, square, parent, start, stop)
    tree_of_row = np.full(n, -1)
    tree_of_row[kd.order] = kd.order[roots(parent)]
    is_core_row = kd.of_rows(is_core)
    labels = _numbered(tree_of_row[is_core_row], is_core_row)
    of_points = labels[kd.order]
    borders = np.ascontiguousarray(points[~is_core])
    border_labels = np.empty(len(borders), np.int32)
    box_label = kd_density.lowest_in_boxes(tree, of_points)
    lowest = partial(kd_density.lowest_labels, tree, points, of_points, box_label, borders, square, border_labels)
    machine.run_in_threads(lowest, strips(len(borders), 64), n_jobs)
    labels[kd.order[~is_core]] = border_labels
    return labels, is_core_row
