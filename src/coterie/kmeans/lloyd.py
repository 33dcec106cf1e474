"""K-means as EM: assign each row to its nearest center, then compute the means."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from coterie import kernels, seeding
from coterie.core.protocols import Chunk, Engine, Source
from coterie.kmeans.center_model import CenterModel, KMeansStats, add_means, same_dtype

NO_BOUNDS = np.zeros(0, np.float32)
BOUNDS_FROM = 512  # clusters x columns; below, computing all distances is as fast as maintaining the bounds


class Bounds(NamedTuple):
    """State of one part of the data between two passes. Without it a pass takes longer; the result is the same."""

    centers: np.ndarray | None  # (k, d) of the last pass; None before the first
    labels: np.ndarray  # (n,)
    lower: np.ndarray  # (n,) lower bound of the distances to all other centers; (0,) without bounds


@dataclass(frozen=True)
class NearestCenters(CenterModel):
    """Rows are assigned to their nearest center by Euclidean distance.

    A pass stores the labels. With `bounds` it also stores a lower bound of the distance to every other center [1]_. If
    the bound proves the label, no other distance is computed. Both variants give identical results.

    .. [1] Hamerly (2010), Making k-means even faster, SDM.
    """

    bounds: bool = True
    frozen: Any = None  # (f, d) the first centers, which do not move
    n_total: int = 0  # rows of the whole table if these are a part of it: compiled kernels pay off for a large table

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        if self.frozen is None:
            return super().init(source, engine, rng)
        frozen = self.frozen.astype(source.dtype)
        free = self.n_clusters - len(frozen)
        others = seeding.start(self.start, source, engine, rng, free, self.unit, frozen, self.cost)
        return np.concatenate([frozen, others])

    def initial_memos(self, source: Source) -> list[Bounds | None]:
        labels = super().initial_memos(source)
        uses_bounds = self._uses_bounds(source.shape[1])
        lower: list[Any] = source.allocate(0, np.float32) if uses_bounds else [NO_BOUNDS] * len(labels)
        return [
            None if part_labels is None else Bounds(None, part_labels, part_lower)
            for part_labels, part_lower in zip(labels, lower, strict=True)
        ]

    def e_step(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> tuple[Any, Any]:
        chunk, centers = same_dtype(chunk, centers)
        memo = memo or self._initial_bounds(*chunk.X.shape)
        before = centers if memo.centers is None else memo.centers
        sums = self._kernels(chunk.X, len(centers)).lloyd(chunk.X, chunk.w, centers, before, memo.labels, memo.lower)
        return KMeansStats(*sums), memo._replace(centers=centers)

    def m_step(self, centers: np.ndarray, stats: Any) -> np.ndarray:
        return add_means(centers, stats.sum_dx, stats.weight[:, None], self._free(stats.weight > 0)[:, None])

    def assign(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> np.ndarray:
        if memo is not None:
            return memo.labels
        chunk, centers = same_dtype(chunk, centers)
        return self._kernels(chunk.X, len(centers)).nearest(chunk.X, centers)

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        chunk, centers = same_dtype(chunk, centers)
        return self._kernels(chunk.X, len(centers)).distances(chunk.X, centers)

    def assigned_costs(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray) -> np.ndarray:
        chunk, centers = same_dtype(chunk, centers)
        return self._kernels(chunk.X, len(centers)).assigned_squares(chunk.X, centers, labels)

    def _kernels(self, X: Any, k: int) -> Any:
        return kernels.for_centers(X, k, self.n_total)

    def _free(self, mask: np.ndarray) -> np.ndarray:
        if self.frozen is not None:
            mask[: len(self.frozen)] = False
        return mask

    def _uses_bounds(self, d: int) -> bool:
        return self.bounds and self.n_clusters * d >= BOUNDS_FROM

    def _initial_bounds(self, n: int, d: int) -> Bounds:
        return Bounds(None, np.full(n, -1, np.int32), np.zeros(n, np.float32) if self._uses_bounds(d) else NO_BOUNDS)


@dataclass(frozen=True)
class Lloyd(NearestCenters):
    r"""Minimises :math:`\sum_i w_i \min_k \|x_i - c_k\|^2` [1]_: a center is the mean of its rows.

    .. [1] Lloyd (1982), Least squares quantization in PCM, IEEE Trans. Inf. Theory 28.
    """

    center_kind = "means"

    def carry(self, before: np.ndarray, after: np.ndarray, stats: KMeansStats) -> KMeansStats:
        """Statistics after the M-step: differences from a mean add up to zero, the weights remain."""
        return replace(stats, sum_dx=np.zeros_like(stats.sum_dx), cost=np.zeros_like(stats.cost), moved=0)


def warn_of_empty_clusters(stats: KMeansStats, remedy: str, frozen: int = 0) -> None:
    """Warn if some clusters have no rows. Fixed centers may have none."""
    weight = stats.weight[frozen:]
    filled, k = int(np.count_nonzero(weight)), len(weight)
    if filled < k:
        warnings.warn(f"only {filled} of {k} clusters have rows: {remedy}", ConvergenceWarning, stacklevel=3)
