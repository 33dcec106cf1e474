"""K-means for rows with missing values: distances and means over the observed values, without imputation."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk
from coterie.errors import ParameterError
from coterie.kmeans.center_model import KMeansStats, add_means, same_dtype
from coterie.kmeans.lloyd import Bounds, Lloyd
from coterie.seeding.costs import Cost, ObservedSquares


@dataclass(frozen=True)
class MissingStats(KMeansStats):
    """Sums over the observed values, and the observed weight of each column."""

    observed: Any  # (k, d) of w, where x is observed


@dataclass(frozen=True)
class MissingLloyd(Lloyd):
    r"""Minimises :math:`\sum_i w_i \min_k \sum_{j \in o_i} (x_{ij} - c_{kj})^2` over the observed columns :math:`o_i`.

    This is the objective of k-POD [1]_, minimised directly. A center is, in every column, the mean of its rows that
    have a value there. If none of its rows has a value in a column, the center keeps its value: it does not change the
    cost. Rows are compared with a center in different columns. The distances therefore violate the triangle inequality,
    and there are no bounds.

    .. [1] Chi, Chi & Baraniuk (2016), k-POD: a method for k-means clustering of missing data, The American Statistician
       70.
    """

    center_kind = ""  # no compiled runs
    fill: Any = None  # (d,) replaces the missing values of a row that becomes a center

    @property
    def cost(self) -> Cost:
        return ObservedSquares(self.fill)

    def e_step(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> tuple[MissingStats, Bounds]:
        chunk, centers = same_dtype(chunk, centers)
        memo = memo or self._initial_bounds(*chunk.X.shape)
        sums = self._kernels(chunk.X, len(centers)).lloyd(chunk.X, chunk.w, centers, memo.labels)
        return MissingStats(*sums), memo

    def m_step(self, centers: np.ndarray, stats: MissingStats) -> np.ndarray:
        return add_means(centers, stats.sum_dx, stats.observed, self._free(stats.observed > 0))

    def _kernels(self, X: Any, k: int) -> Any:
        return kernels.select("nan_kmeans", X, k)

    def _uses_bounds(self, d: int) -> bool:
        return False


def check_options_with_missing(algorithm: str, search: str) -> None:
    """Reject options of `KMeans` that do not support missing values."""
    if algorithm in ("exact", "bounds", "elkan"):
        raise ParameterError(
            f"algorithm={algorithm!r} does not support missing values, and X contains NaN: use algorithm='auto', or "
            "impute X first (sklearn.impute)"
        )
    if search not in ("none", "auto"):
        raise ParameterError(
            f"search={search!r} does not support missing values, and X contains NaN: use search='none' with a larger "
            "n_init, or impute X first (sklearn.impute)"
        )
