"""K-means with clusters of bounded size, and with must-link and cannot-link constraints."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie import kernels, seeding
from coterie.base import CENTERS_STORED, Summary
from coterie.core import loop
from coterie.core.in_memory import check_in_memory
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.kernels.membership import membership
from coterie.kmeans.center_estimator import CenterEstimator, check_enough_rows
from coterie.kmeans.center_model import KMeansStats, same_dtype
from coterie.kmeans.lloyd import NO_BOUNDS, Bounds, Lloyd
from coterie.kmeans.pairwise_constraints import Constraints, as_constraints, check_constraints
from coterie.seeding import check_start

# K-means with bounded cluster sizes as EM: the cheapest assignment of all rows, then means.

FAR = 1e306  # sums of larger squares overflow
ROUNDING = 1e-12  # relative to the objective: a smaller decrease is rounding


@stored("checkpoint.Division", in_checkpoints=True, centers="real K D", prices="real K", labels="list *")
class BalancedAssignment(NamedTuple):
    """Centers, and the assignment of all rows to them."""

    centers: np.ndarray  # (k, d)
    labels: list[np.ndarray]  # (n,) split by the parts of the source
    prices: np.ndarray  # (k,) dual prices of the clusters, which prove that no assignment is cheaper


@dataclass(frozen=True)
class BalancedLloyd:
    r"""Minimises :math:`\sum_i w_i \|x_i - c_{z_i}\|^2` over centers and assignments :math:`z` within the size bounds.

    The cluster of a row depends on all other rows. The assignment is therefore a parameter like the centers: `init` and
    `repair`, which have access to all rows, find the cheapest one. An E-step only sums over it. `BalancedKMeans` cites
    the paper.
    """

    n_clusters: int
    size_min: np.ndarray  # (k,) minimum number of rows of a cluster
    size_max: np.ndarray  # (k,) maximum number of rows of a cluster
    constraints: Constraints | None = None  # must-link and cannot-link
    start: Any = "k-means++"  # name of an initialisation method, or the initial centers
    unit: float = 1.0  # power of two near the scale of the data
    tol: float = 0.0  # converged if the squared movement of all centers is at most this

    converges = True

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> BalancedAssignment:
        centers = seeding.start(self.start, source, engine, rng, self.n_clusters, self.unit)
        if isinstance(self.start, str) and (np.ptp(self.size_min) > 0 or np.ptp(self.size_max) > 0):
            centers = centers[self._order_by_size(centers, source, engine)]
        return self._assigned(centers, None, source, engine)

    def initial_memos(self, source: Source) -> None:
        return None

    def e_step(
        self, params: BalancedAssignment, chunk: Chunk, memo: Bounds | None = None
    ) -> tuple[KMeansStats, Bounds]:
        labels = params.labels[chunk.part]
        chunk, centers = same_dtype(chunk, params.centers)
        k, members = len(centers), membership(labels, len(centers), chunk.w)
        weight = np.bincount(labels, chunk.weights, k)
        cost = np.bincount(labels, chunk.weights * self._means.assigned_costs(centers, chunk, labels), k)
        if sparse.issparse(chunk.X):
            sum_dx = (members @ chunk.X.astype(np.float64)).toarray() - weight[:, None] * centers
        else:
            sum_dx = members @ (chunk.X.astype(np.float64) - centers[labels])
        moved = len(labels) if memo is None else int(np.count_nonzero(labels != memo.labels))
        return KMeansStats(weight, sum_dx, cost, moved), Bounds(None, labels, NO_BOUNDS)

    def m_step(self, params: BalancedAssignment, stats: KMeansStats) -> BalancedAssignment:
        return params._replace(centers=self._means.m_step(params.centers, stats))

    def repair(
        self, params: BalancedAssignment, stats: KMeansStats, source: Source, engine: Engine, memos: list[Bounds]
    ) -> BalancedAssignment:
        """Cheapest assignment for the new centers; centers of empty clusters are moved first."""
        centers = self._means.repair(params.centers, stats, source, engine, memos)
        return self._assigned(centers, params, source, engine)

    def objective(self, params: BalancedAssignment, stats: KMeansStats) -> float:
        return float(stats.cost.sum())

    def has_converged(
        self, before: BalancedAssignment, after: BalancedAssignment, stats: Any, history: Sequence[float], *stretch: Any
    ) -> bool:
        """As in K-means, or if the objective stays constant: equally cheap assignments could alternate forever."""
        is_constant = history[-1] >= (1.0 - ROUNDING) * history[-2]
        return is_constant or self._means.has_converged(before.centers, after.centers, stats, history, *stretch)

    def assign(self, params: BalancedAssignment, chunk: Chunk, memo: Bounds | None = None) -> np.ndarray:
        return params.labels[chunk.part]

    def labels_at(self, params: BalancedAssignment, rows: np.ndarray) -> np.ndarray:
        """Clusters of some rows, from the assignment of all rows."""
        return np.concatenate(params.labels)[rows]

    def halfway(self, before: BalancedAssignment, after: BalancedAssignment, chunk: Chunk) -> KMeansStats:
        """Statistics of the assignment `before`, measured from the centers `after`."""
        return self.e_step(after._replace(labels=before.labels), chunk)[0]

    @property
    def _means(self) -> Lloyd:
        return Lloyd(self.n_clusters, tol=self.tol)

    def _order_by_size(self, centers: np.ndarray, source: Source, engine: Engine) -> np.ndarray:
        """Order of the centers by size: the center that is nearest to the most rows gets the largest bounds."""
        stats, _ = engine.scan(partial(Lloyd(self.n_clusters, bounds=False).e_step, centers), source, None)
        rank = np.argsort(np.argsort(self.size_min + self.size_max, kind="stable"))
        return np.argsort(stats.weight, kind="stable")[rank]

    def _assigned(
        self, centers: np.ndarray, before: BalancedAssignment | None, source: Source, engine: Engine
    ) -> BalancedAssignment:
        (n, _), k = source.shape, self.n_clusters
        costs = np.empty((n, k))
        w = engine.map(partial(_put_costs, centers, self.unit), source, split_by_part(costs, source))
        if before is None and not costs.max() < FAR / self.unit**2:
            raise ParameterError(
                "init has a center so far from the rows that squared distances overflow: use a center near the rows"
            )
        labels = np.full(n, -1, np.int32) if before is None else np.concatenate(before.labels)
        prices = np.zeros(k) if before is None else before.prices.copy()
        self._assign_rows(costs, None if w[0] is None else np.concatenate(w), prices, labels)
        return BalancedAssignment(centers, split_by_part(labels, source), prices)

    def _assign_rows(self, squares: np.ndarray, w: np.ndarray | None, prices: np.ndarray, labels: np.ndarray) -> None:
        """Update labels and prices to the minimum cost. Rows of weight zero get the nearest center."""
        is_counted = np.ones(len(labels), bool) if w is None else w > 0
        unconstrained = ~is_counted if self.constraints is None else ~is_counted & (self.constraints.group < 0)
        labels[unconstrained] = squares[unconstrained].argmin(axis=1)
        if w is not None:
            squares *= (w / w.max())[:, None]
        if self.constraints is not None:
            self.constraints.assign(squares, is_counted, self.size_min, self.size_max, prices, labels)
            return
        rows = slice(None) if is_counted.all() else np.flatnonzero(is_counted)
        costs, row_labels = squares[rows], labels[rows]
        kernels.select("transport", *costs.shape).transport(costs, self.size_min, self.size_max, prices, row_labels)
        labels[rows] = row_labels


def split_by_part(values: np.ndarray, source: Source) -> list[np.ndarray]:
    """Split values of all rows (n, ...) by the parts of the source."""
    parts: list[Any] = source.allocate(0, np.int8)
    return np.split(values, np.cumsum([len(part) for part in parts])[:-1])


def _put_costs(centers: np.ndarray, unit: float, chunk: Chunk, squares: np.ndarray) -> np.ndarray | None:
    """Write squared distances to all centers in units and in float64 for any dtype; return the weights."""
    chunk, centers = same_dtype(chunk, centers.astype(np.float64))
    squares[:] = kernels.for_centers(chunk.X, len(centers)).distances(chunk.X, centers)
    squares /= unit
    with np.errstate(over="ignore"):
        squares *= squares
    return chunk.w


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
        As in `KMeans`. The `params` of a `Progress` are a `coterie.kmeans.balanced_kmeans.BalancedAssignment`.
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
