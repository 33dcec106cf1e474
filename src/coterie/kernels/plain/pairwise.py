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


def canberra(A: Array, B: Array, w: Array, out: Array) -> None:
    """Columns in which both values are 0 count as 0."""
    apart, size = np.abs(A[:, None] / 2 - B / 2), np.abs(A)[:, None] / 2 + np.abs(B) / 2  # halves: no sum overflows
    out[:] = np.divide(apart, size, out=np.zeros_like(apart), where=size > 0) @ w


def braycurtis(A: Array, B: Array, out: Array) -> None:
    """Two rows of zeros have distance 0; infinite where the sums of values are all 0."""
    scale = max(np.abs(A).max(initial=0.0), np.abs(B).max(initial=0.0)) * A.shape[1] or 1.0
    A, B = A.astype(np.float64) / scale, B.astype(np.float64) / scale
    apart, size = np.abs(A[:, None] - B).sum(axis=2), np.abs(A[:, None] + B).sum(axis=2)
    out[:] = np.where(apart > 0, np.divide(apart, size, out=np.full_like(apart, np.inf), where=size > 0), 0.0)


def haversine(A: Array, B: Array, out: Array) -> None:
    """Latitudes and longitudes in radians."""
    lat, lon = np.sin((A[:, None].astype(np.float64) - B) / 2).transpose(2, 0, 1) ** 2
    square = lat + np.cos(A[:, :1].astype(np.float64)) * np.cos(B[:, 0].astype(np.float64)) * lon
    out[:] = 2 * np.arcsin(np.sqrt(np.minimum(square, 1.0)))


def nan_euclidean(A: Array, B: Array, out: Array) -> None:
    """NaN where two rows have no column in common."""
    apart = A[:, None].astype(np.float64) - B
    is_present = ~np.isnan(apart)
    n_present = is_present.sum(axis=2)
    squares = np.where(is_present, apart, 0.0) ** 2
    share = np.divide(A.shape[1], n_present, out=np.full(n_present.shape, np.nan), where=n_present > 0)
    out[:] = np.sqrt(squares.sum(axis=2) * share)
