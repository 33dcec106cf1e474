"""Distances of all rows of one table to all rows of another, in NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

Array = np.ndarray[Any, Any]
METRICS = ("sqeuclidean", "euclidean", "cityblock", "chebyshev")


def differences(A: Array, B: Array, kind: int, factor: float, out: Array) -> None:
    """Distances by `kind`: 0 squares, 1 their roots, 2 sums and 3 largest of absolute values; times `factor`."""
    scale = np.sqrt(factor) if kind == 1 else factor
    with np.errstate(over="ignore"):  # distances of float32 rows may be above the range of float32: infinite
        out[:] = scale * cdist(A, B, METRICS[kind])


def minkowski(A: Array, B: Array, p: float, out: Array) -> None:
    """Differences are divided by the largest first: no power overflows."""
    with np.errstate(over="ignore"):  # as above
        apart = np.abs(A[:, None].astype(np.float64) - B)
        largest = apart.max(axis=2, keepdims=True, initial=0.0)
        total = ((apart / np.where((largest > 0) & (largest < np.inf), largest, 1.0)) ** p).sum(axis=2)
        out[:] = largest[:, :, 0] * total ** (1 / p)


def mismatches(A: Array, B: Array, w: Array, out: Array) -> None:
    out[:] = (A[:, None] != B) @ w


def gower(A: Array, B: Array, w: Array, numbers: int, out: Array) -> None:
    """The first `numbers` columns are numbers in units of their range, the others codes; NaN is not there."""
    there = ~(np.isnan(A)[:, None] | np.isnan(B))
    apart = np.abs(A[:, None] - B)
    apart[:, :, numbers:] = apart[:, :, numbers:] != 0
    with np.errstate(invalid="ignore"):
        out[:] = np.where(there, apart, 0.0) @ w / (there @ w)
