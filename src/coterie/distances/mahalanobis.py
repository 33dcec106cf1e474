"""Euclidean distance in units of the spread of the data, in every direction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.covariance import ledoit_wolf_shrinkage

from coterie.core.errors import InputError, ParameterError
from coterie.distances.distance import Array
from coterie.distances.euclidean import Euclidean


@dataclass(frozen=True)
class Mahalanobis(Euclidean):
    r""":math:`\bigl((x - y)^\top \Sigma^{-1} (x - y)\bigr)^{1/2}` [1]_.

    The covariance is `cov` (d, d) if given; else that of the rows, drawn towards a sphere of the same trace by the
    share `shrinkage`: a number from 0 to 1, or 'auto' for the share of Ledoit and Wolf [2]_, which serves where there
    are few rows for many columns.

    .. [1] Mahalanobis (1936), On the generalised distance in statistics, Proc. Natl. Inst. Sci. India 2.
    .. [2] Ledoit & Wolf (2004), A well-conditioned estimator for large-dimensional covariance matrices, J. Multivar.
       Anal. 88.
    """

    cov: Any = None
    shrinkage: Any = 0.0
    factor_: Any = None  # lower triangle L of L L' = covariance, once known

    name = "mahalanobis"

    def fitted(self, X: Array, Y: Any = None) -> Self:
        rows = X if Y is None else np.concatenate([X, Y])
        covariance = self._estimated(rows.astype(np.float64)) if self.cov is None else self._given(X.shape[1])
        try:
            return replace(self, factor_=np.linalg.cholesky(covariance))
        except np.linalg.LinAlgError:
            if self.cov is not None:
                raise ParameterError("cov must be positive definite") from None
            raise InputError(
                "the covariance of the rows is singular, by columns that depend on others or by too few rows: "
                "drop columns, or pass shrinkage='auto'"
            ) from None

    def prepare(self, X: Array) -> Array:
        white = solve_triangular(self.factor_, super().prepare(X).T, lower=True).T
        return np.ascontiguousarray(white, dtype=X.dtype)

    def _given(self, d: int) -> Array:
        covariance = np.asarray(self.cov, dtype=np.float64)
        if covariance.shape != (d, d) or not np.allclose(covariance, covariance.T):
            raise ParameterError(f"cov must be a symmetric ({d}, {d}) matrix; its shape is {covariance.shape}")
        return covariance

    def _estimated(self, rows: Array) -> Array:
        if len(rows) < 2:
            raise InputError("one row has no covariance: pass cov=")
        centered = rows - rows.mean(axis=0)
        covariance = centered.T @ centered / (len(rows) - 1)
        share = self.shrinkage
        if isinstance(share, str) and share == "auto":
            share = float(ledoit_wolf_shrinkage(centered, assume_centered=True))
        if isinstance(share, str) or not 0 <= share <= 1:
            raise ParameterError(f"shrinkage must be 'auto' or a number from 0 to 1; got {self.shrinkage!r}")
        sphere = np.eye(len(covariance)) * np.trace(covariance) / len(covariance)
        return (1 - share) * covariance + share * sphere
