"""K-means with bounded cluster sizes as EM: the cheapest assignment of all rows, then means."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie import kernels, seeding
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.kernels.membership import membership
from coterie.kmeans.center_model import KMeansStats, same_dtype
from coterie.kmeans.lloyd import NO_BOUNDS, Bounds, Lloyd
from coterie.kmeans.pairwise_constraints import Constraints

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
