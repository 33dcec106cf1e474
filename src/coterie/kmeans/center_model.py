"""Base class of the models whose parameters are centers."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie import seeding
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.seeding.costs import SQUARES, Cost


@stored("statistics.KMeans", weight="real K", sum_dx="real K D", cost="real K")
@dataclass(frozen=True)
class KMeansStats(Stats):
    """Sums relative to the current centers: the numbers stay small for data far from the origin."""

    weight: Any  # (k,)
    sum_dx: Any  # (k, d) of w (x - c)
    cost: Any  # (k,) of w |x - c|^2
    moved: Any  # rows that changed cluster


@dataclass(frozen=True)
class Costliest(Stats):
    """The rows with the largest cost, without duplicates."""

    cost: Any  # (m,) descending
    rows: Any  # (m, d)

    def __add__(self, other: "Costliest") -> "Costliest":
        count = max(len(self.cost), len(other.cost))
        cost, rows = np.concatenate([self.cost, other.cost]), np.concatenate([self.rows, other.rows])
        return costliest(cost, rows, count)


@dataclass(frozen=True)
class CenterModel:
    """Each row is assigned to one center. A subclass has `e_step`, `m_step`, `assign` and `assigned_costs`.

    The memo of a part contains its labels (n,) after the last pass, or is an object with `labels`.
    """

    n_clusters: int
    start: Any = "k-means++"  # name of an initialisation method, or the initial centers
    unit: float = 1.0  # power of two near the scale of the data
    tol: float = 0.0  # converged if the squared movement of all centers is at most this

    converges = True
    center_kind = ""  # of the compiled runs of a search; see `kernels.cpu.center_runs`

    @property
    def cost(self) -> Cost:
        """Cost of a row at a set of centers, for seeding."""
        return SQUARES

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        return seeding.start(self.start, source, engine, rng, self.n_clusters, self.unit, cost=self.cost)

    def initial_memos(self, source: Source) -> Any:
        return source.allocate(-1, np.int32)

    def assign(self, centers: np.ndarray, chunk: Chunk, memo: Any = None) -> np.ndarray:
        raise NotImplementedError

    def assigned_costs(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray) -> np.ndarray:
        """Cost of each row at the center of its cluster (n,), without its weight."""
        raise NotImplementedError

    def repair(self, centers: np.ndarray, stats: Any, source: Source, engine: Engine, memos: list[Any]) -> np.ndarray:
        """Move an empty cluster to the row with the largest cost. It stays if every row equals a center."""
        empty = np.flatnonzero(self._free(stats.weight == 0))
        if len(empty) == 0:
            return centers
        costliest, _ = engine.scan(partial(self._costliest, centers, len(empty)), source, memos)
        count = min(len(empty), int(np.count_nonzero(costliest.cost > 0)))
        return self._with_rows(centers, empty[:count], costliest.rows[:count])

    def halfway(self, before: np.ndarray, after: np.ndarray, chunk: Chunk) -> Any:
        """Statistics of the clusters of the centers `before`, measured from the centers `after`."""
        labels, k = self.assign(before, chunk), len(after)
        costs = chunk.weights * self.assigned_costs(after, chunk, labels)
        return KMeansStats(np.bincount(labels, chunk.weights, k), 0.0, np.bincount(labels, costs, k), 0)

    def objective(self, centers: np.ndarray, stats: Any) -> float:
        return float(stats.cost.sum())

    def has_converged(self, before: np.ndarray, after: np.ndarray, stats: Any, *rest: Any) -> bool:
        return bool(stats.moved == 0 or squared_step(before, after) <= self.tol)

    def _free(self, mask: np.ndarray) -> np.ndarray:
        """Entries of `mask` (k,) or (k, d) whose centers may move."""
        return mask

    def _costliest(self, centers: np.ndarray, count: int, chunk: Chunk, memo: Any) -> tuple[Costliest, Any]:
        """Rows with the largest cost at the center they were last assigned to: few rows need no new labels."""
        cost = self.assigned_costs(centers, chunk, memo if isinstance(memo, np.ndarray) else memo.labels)
        if chunk.w is not None:
            cost = cost * chunk.w
        candidates = np.argsort(-cost, kind="stable")[: 4 * count]
        return costliest(cost[candidates], self._take(chunk.X, candidates), count), memo

    def _take(self, X: Any, rows: np.ndarray) -> np.ndarray:
        return self.cost.take(X, rows)

    def _with_rows(self, centers: np.ndarray, indices: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The centers with some of them replaced by rows that `_take` has returned."""
        centers = centers.copy()
        centers[indices] = rows
        return centers


def costliest(cost: np.ndarray, rows: np.ndarray, count: int) -> Costliest:
    """The `count` rows with the largest cost; equal rows count once."""
    order = np.argsort(-cost, kind="stable")
    _, first = np.unique(rows[order], axis=0, return_index=True)
    selected = order[np.sort(first)[:count]]
    return Costliest(cost[selected], rows[selected])


def squared_step(before: np.ndarray, after: np.ndarray) -> float:
    """Squared movement of all centers."""
    return float(((after.astype(np.float64) - before) ** 2).sum())


def add_means(
    centers: np.ndarray,  # (k, d)
    sum_dx: np.ndarray,  # (k, d) of w (x - c)
    weight: np.ndarray,  # (k, 1) or (k, d) of w
    mask: np.ndarray,  # of the shape of `weight`: which centers, or which of their values, move
) -> np.ndarray:
    """The centers plus the mean differences of their rows."""
    step = sum_dx / np.where(mask, weight, 1)
    return (centers + np.where(mask, step, 0)).astype(centers.dtype)


def same_dtype(chunk: Chunk, centers: np.ndarray) -> tuple[Chunk, np.ndarray]:
    """Rows and centers in their common dtype."""
    dtype = np.result_type(chunk.X.dtype, centers.dtype)
    if chunk.X.dtype != dtype:
        chunk = chunk._replace(X=chunk.X.astype(dtype))
    return chunk, centers.astype(dtype, copy=False)
