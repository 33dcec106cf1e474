"""Compiled kernels for CSR rows; `plain` has the same functions, with docstrings."""

from typing import Any

import numpy as np

from coterie.kernels.cpu import arrivals, csr, d2_sampling
from coterie.kernels.plain import Sums, Weights, plusplus_rounds, weights

__all__ = [
    "arrivals", "assigned_squares", "distances", "draw", "lloyd", "moments", "nearest", "plusplus_rounds", "potentials",
    "take",
]  # fmt: skip


def lloyd(X: Any, w: Weights, centers: np.ndarray, previous: np.ndarray, labels: np.ndarray, lower: np.ndarray) -> Sums:
    k, d = centers.shape
    weight, sum_dx, cost = np.zeros(k), np.zeros((k, d)), np.zeros(k)
    moved = csr.lloyd(X.data, X.indices, X.indptr, weights(w), *_packed(centers), labels, weight, sum_dx, cost)
    sum_dx -= weight[:, None] * centers
    return Sums(weight, sum_dx, cost, int(moved))


def nearest(X: Any, centers: np.ndarray) -> np.ndarray:
    labels = np.full(X.shape[0], -1, np.int32)
    assigned_squares(X, centers, labels)
    return labels


def assigned_squares(X: Any, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    out = np.empty(X.shape[0])
    csr.assigned_squares(X.data, X.indices, X.indptr, *_packed(centers), labels, out)
    return out


def distances(X: Any, centers: np.ndarray) -> np.ndarray:
    return np.sqrt(_all_squares(X, centers)).astype(X.dtype, copy=False)


def moments(X: Any, w: Weights, pivot: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    sum_x, sum_xx = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    weight = csr.moments(X.data, X.indices, X.indptr, weights(w), sum_x, sum_xx)
    return weight, sum_x - weight * pivot, sum_xx - 2 * pivot * sum_x + weight * pivot**2


def potentials(X: Any, w: Weights, unit: float, points: np.ndarray, closest: np.ndarray) -> np.ndarray:
    squares = _all_squares(X, points) / unit**2
    np.minimum(closest, squares[:, 0], out=closest)
    return (np.minimum(closest[:, None], squares) * weights(w)[:, None]).sum(axis=0)


def draw(closest: np.ndarray, w: Weights, u: np.ndarray) -> tuple[float, np.ndarray]:
    rows = np.empty(len(u), np.int64)
    return d2_sampling.draw(closest, weights(w), u, rows), rows


def take(X: Any, rows: np.ndarray) -> np.ndarray:
    return X[rows].toarray()


def _all_squares(X: Any, centers: np.ndarray) -> np.ndarray:
    out = np.empty((X.shape[0], len(centers)))
    csr.all_squares(X.data, X.indices, X.indptr, *_packed(centers), out)
    return out


def _packed(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centers (k, d) in float64, their transpose, and half of their squared norms (k,)."""
    centers = centers.astype(np.float64)
    return centers, np.ascontiguousarray(centers.T), 0.5 * (centers * centers).sum(axis=1)
