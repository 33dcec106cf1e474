"""K-means with clusters of bounded size, and with must-link and cannot-link constraints."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.base import CENTERS_STORED, Summary
from coterie.core import loop
from coterie.core.in_memory import check_in_memory
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.kmeans.balanced_lloyd import BalancedAssignment, BalancedLloyd, split_by_part
from coterie.kmeans.center_estimator import CenterEstimator, check_enough_rows
from coterie.kmeans.lloyd import Lloyd
from coterie.kmeans.pairwise_constraints import as_constraints, check_constraints
from coterie.seeding import check_start


@stored(**CENTERS_STORED, cluster_sizes_="integer K")
@dataclass(eq=False, repr=False, kw_only=True)
class BalancedKMeans(CenterEstimator):
    r"""K-means with bounded cluster sizes, and optional must-link and cannot-link constraints.

    .. math:: J = \sum_i w_i \lVert x_i - \mu_{z_i} \rVert^2, \qquad
       \text{size\_min}_k \le |\{i : z_i = k\}| \le \text{size\_max}_k

    Each iteration assigns all rows to the centers at the minimum total cost. This is a transportation problem, which is
    solved exactly [1]_. Then each center moves to the mean of its rows. It stops when nothing changes. The objective
    never increases. The result is a local optimum and depends on the initial centers.

    Use it if cluster sizes are a requirement, for example for teams, batches or delivery routes. Size bounds can split
    dense groups, and a row need not be in the cluster of its nearest center. If sizes are only a preference, use
    `KMeans`, which is faster, or `BisectingKMeans`, whose clusters are more even without any bound.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    size_min, size_max : int, array (k,) or None, default=None
        Minimum and maximum number of rows per cluster. If both are None, sizes are as equal as possible: n / k rounded
        down and up. If one is given, the other is unbounded: ``size_min=0`` allows any sizes. An array has one value
        per cluster. Unless `init` gives the centers, the center that is nearest to the most rows gets the largest size.
    must_link, cannot_link : array (m, 2) of int or None, default=None
        Pairs of row indices that must be in the same cluster, and pairs that must not. Must-link pairs are transitive.
    init : {'auto', 'k-means++', 'k-means||', 'forgy', 'random', 'random_partition', 'farthest'}, array or callable
        Initialisation method, or the initial centers, as in `KMeans`. Default: 'auto'.
    n_init : int or 'auto', default='auto'
        Number of initialisations; the best result is kept. 'auto' is 10 for 'forgy', 'random', 'random_partition' and
        callables, and 1 for the others.
    max_iter : int, default=300
        Maximum number of iterations of one run.
    tol : float, default=1e-4
        Relative tolerance. Iterations stop when the squared movement of all centers falls below `tol` times the mean
        variance of the columns.
    engine : {'auto', 'serial', 'threads'} or an engine, default='auto'
        Engine that runs the passes. The rows must be in memory.
    callback : callable or None, default=None
        As in `KMeans`. The `params` of a `Progress` are a `coterie.kmeans.balanced_lloyd.BalancedAssignment`.
    n_jobs, random_state, verbose, checkpoint
        As in `KMeans`.

    Attributes
    ----------
    cluster_centers_ : array (k, d)
        Centers, in the dtype of the data.
    labels_ : array (n,) of int32
        Cluster of each row; sizes and constraints hold. `predict` ignores both and returns the nearest center, also for
        these rows.
    cluster_sizes_ : array (k,) of int
        Number of rows in each cluster.
    inertia_ : float
        Objective at exactly `cluster_centers_` and `labels_`. It is at least ``-score(X)``, which uses the nearest
        centers.
    history_, n_iter_, converged_, n_features_in_, feature_names_in_
        As in `KMeans`.

    Notes
    -----
    Sizes count rows, not weights. A row cannot be split, and clusters of given weight would be a bin packing problem,
    which cannot be solved exactly at this scale. Weights count in the objective and in the means. A row of weight two
    is therefore not equivalent to the row twice, which counts as two rows. Rows of weight zero do not count in the
    sizes. They get the label of the nearest center, or the label that their constraints require.

    An iteration costs 2 n d k operations for the distances, about as much for the transportation problem, and 8 n k
    bytes. The transportation problem starts from the dual prices of the previous iteration and uses one thread.
    Constraints cost more. If the cheapest clusters of all linked groups are incompatible, an integer program over the
    groups (HiGHS) finds the best assignment, exact to one millionth. A few hundred groups are fast; constraints on most
    rows with tight sizes can be slow.

    With ``size_min=0`` a cluster may lose all its rows. It is then moved to the row with the largest cost, as in
    `KMeans`.

    References
    ----------
    .. [1] P. S. Bradley, K. P. Bennett, A. Demiriz (2000), Constrained k-means clustering, Microsoft Research
       MSR-TR-2000-65.
    .. [2] K. Wagstaff, C. Cardie, S. Rogers, S. Schroedl (2001), Constrained k-means clustering with background
       knowledge, ICML, 577-584.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import BalancedKMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [10.0], [11.0]])
    >>> model = BalancedKMeans(n_clusters=2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.cluster_sizes_.tolist()
    ([1.0, 8.0], [3, 3])
    >>> unbounded = BalancedKMeans(2, size_min=0, cannot_link=[[4, 5]], random_state=0).fit(X)
    >>> bool(unbounded.labels_[4] == unbounded.labels_[5])
    False
    """

    size_min: Any = None
    size_max: Any = None
    must_link: Any = None
    cannot_link: Any = None

    _remedy = "use size_min=1 to give each cluster a row, even if rows are equal"

    def _fit_model(self, source: Any, summary: Summary) -> BalancedLloyd:
        check_in_memory(source, "BalancedKMeans")
        check_enough_rows(self.n_clusters, summary)
        check_start(self.init, source, self.n_clusters)
        size_min, size_max = as_sizes(self.size_min, self.size_max, self.n_clusters, summary.rows)
        constraints = as_constraints(self.must_link, self.cannot_link, source.shape[0])
        is_counted = np.ones(source.shape[0], bool) if source.w is None else source.w > 0
        check_constraints(constraints, is_counted, size_min, size_max)
        tol = summary.tolerance(self.tol)
        return BalancedLloyd(self.n_clusters, size_min, size_max, constraints, self.init, summary.unit, tol)

    def _store_result(self, model: Any, result: loop.Fit, labels: Any, source: Any, *data: Any) -> None:
        super()._store_result(model, result, labels, source, *data)
        self.cluster_centers_ = result.params.centers
        self.cluster_sizes_ = np.bincount(
            labels if source.w is None else labels[source.w > 0], minlength=self.n_clusters
        )

    def _is_of_fit(self, X: Any, sample_weight: Any) -> bool:
        """Whether `X` and its weights are the rows of the fit in the same order, judged by their cost."""
        source, engine, _ = self._open(X, sample_weight, first=False)
        k, n = len(self.cluster_centers_), source.shape[0]
        model = BalancedLloyd(k, np.zeros(k, np.int64), np.full(k, n))
        params = BalancedAssignment(self._params, split_by_part(self.labels_, source), np.zeros(k))
        objective = loop.objective_at(model, params, source, engine)
        cost = np.ldexp(objective, 2 * self._scale.rows + self._scale.weights)
        return bool(np.isclose(cost, self.inertia_, rtol=1e-6))

    def _model(self, summary: Summary | None = None) -> Lloyd:
        """Model of later calls: new rows are assigned to their nearest center."""
        return Lloyd(len(self.cluster_centers_), bounds=False)


def as_sizes(size_min: Any, size_max: Any, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Minimum and maximum number of rows of each cluster (k,), for `n` rows."""
    if size_min is None and size_max is None:
        return np.full(k, n // k), np.full(k, -(-n // k))
    minimum = as_size("size_min", 0 if size_min is None else size_min, k)
    maximum = as_size("size_max", n if size_max is None else size_max, k)
    invalid = np.flatnonzero(minimum > maximum)
    if len(invalid):
        j = int(invalid[0])
        raise ParameterError(
            f"size_min={minimum[j]} is greater than size_max={maximum[j]} for cluster {j}: size_min must be <= size_max"
        )
    rows = f"X has {n} rows (of weight above 0)"
    if minimum.sum() > n:
        raise ParameterError(f"size_min requires {minimum.sum()} rows in {k} clusters, but {rows}: lower size_min")
    if maximum.sum() < n:
        raise ParameterError(f"size_max allows {maximum.sum()} rows in {k} clusters, but {rows}: raise size_max")
    return minimum, np.minimum(maximum, n)


def as_size(name: str, value: Any, k: int) -> np.ndarray:
    """One integer for each of the `k` clusters."""
    expected = f"{name} must be None, an integer >= 0, or {k} of them, one per cluster"
    try:
        sizes = np.asarray(value)
    except ValueError:
        raise ParameterError(f"{expected}; got {value!r}") from None
    if sizes.dtype.kind not in "iu" or sizes.shape not in ((), (k,)) or (sizes < 0).any():
        shape = f"shape {sizes.shape}" if sizes.ndim and sizes.shape != (k,) else repr(value)
        raise ParameterError(f"{expected}; got {shape}")
    return np.broadcast_to(sizes, k).astype(np.int64)
