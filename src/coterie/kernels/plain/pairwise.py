"""Distances between all rows of `A` (n, d) and `B` (m, d), written to `out` (n, m), in NumPy and SciPy."""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

Array = np.ndarray[Any, Any]
METRICS = ("sqeuclidean", "euclidean", "cityblock", "chebyshev")


def differences(A: Array, B: Array, kind: int, factor: float, out: Array) -> None:
    """Distance number `kind` of `METRICS`, times `factor`, which is within the root of Euclidean distances."""
    scale = np.sqrt(factor) if kind == 1 else factor
    with np.errstate(over="ignore"):  # distances of float32 rows that overflow are infinite
        out[:] = scale * cdist(A, B, METRICS[kind])


def minkowski(A: Array, B: Array, p: float, out: Array) -> None:
    """Differences are divided by the largest one first, so that powers do not overflow."""
    with np.errstate(over="ignore"):  # as above
        difference = np.abs(A[:, None].astype(np.float64) - B)
        largest = difference.max(axis=2, keepdims=True, initial=0.0)
        total = ((difference / np.where((largest > 0) & (largest < np.inf), largest, 1.0)) ** p).sum(axis=2)
        out[:] = largest[:, :, 0] * total ** (1 / p)


def mismatches(A: Array, B: Array, w: Array, out: Array) -> None:
    """Weighted number of columns in which two rows differ."""
    out[:] = (A[:, None] != B) @ w


def gower(A: Array, B: Array, w: Array, n_numeric: int, out: Array) -> None:
    """The first `n_numeric` columns are numbers divided by their range, the others are codes; NaN is ignored."""
    is_present = ~(np.isnan(A)[:, None] | np.isnan(B))
    difference = np.abs(A[:, None] - B)
    difference[:, :, n_numeric:] = difference[:, :, n_numeric:] != 0
    with np.errstate(invalid="ignore"):
        out[:] = np.where(is_present, difference, 0.0) @ w / (is_present @ w)


def nan_euclidean(A: Array, B: Array, out: Array) -> None:
    """NaN if no column is observed in both rows."""
    difference = A[:, None].astype(np.float64) - B
    is_present = ~np.isnan(difference)
    n_present = is_present.sum(axis=2)
    squares = np.where(is_present, difference, 0.0) ** 2
    factor = np.divide(A.shape[1], n_present, out=np.full(n_present.shape, np.nan), where=n_present > 0)
    out[:] = np.sqrt(squares.sum(axis=2) * factor)
