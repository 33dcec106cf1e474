"""Compiled kernels for CSR rows; the same names as `cpu` and `plain`."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.cpu import csr, seeding
from coterie.kernels.plain import Sums, Weights, weights

__all__ = ["distances", "draw", "lloyd", "moments", "nearest", "own_squares", "spread", "take"]


def lloyd(X: Any, w: Weights, centers: np.ndarray, before: np.ndarray, labels: np.ndarray, lower: np.ndarray) -> Sums:
    k, d = centers.shape
    weight, sum_dx, cost = np.zeros(k), np.zeros((k, d)), np.zeros(k)
    moved = csr.lloyd(X.data, X.indices, X.indptr, weights(w), *_packed(centers), labels, weight, sum_dx, cost)
    sum_dx -= weight[:, None] * centers
    return Sums(weight, sum_dx, cost, int(moved))


def nearest(X: Any, centers: np.ndarray) -> np.ndarray:
    labels = np.full(X.shape[0], -1, np.int32)
    _squares(X, centers, labels)
    return labels


def own_squares(X: Any, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return _squares(X, centers, labels)


def distances(X: Any, centers: np.ndarray) -> np.ndarray:
    return np.sqrt(_all_squares(X, centers)).astype(X.dtype, copy=False)


def moments(X: Any, w: Weights, pivot: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    sum_x, sum_xx = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    weight = csr.moments(X.data, X.indices, X.indptr, weights(w), sum_x, sum_xx)
    return weight, sum_x - weight * pivot, sum_xx - 2 * pivot * sum_x + weight * pivot**2


def spread(X: Any, w: Weights, unit: float, points: np.ndarray, closest: np.ndarray) -> np.ndarray:
    squares = _all_squares(X, points) / unit**2
    np.minimum(closest, squares[:, 0], out=closest)
    near = np.minimum(closest[:, None], squares)
    return (near * weights(w)[:, None]).sum(axis=0)


def draw(closest: np.ndarray, w: Weights, u: np.ndarray) -> tuple[float, np.ndarray]:
    rows = np.empty(len(u), np.int64)
    return seeding.draw(closest, weights(w), u, rows), rows


def take(X: Any, rows: np.ndarray) -> np.ndarray:
    return X[rows].toarray()


def _squares(X: Any, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    out = np.empty(X.shape[0])
    csr.squares(X.data, X.indices, X.indptr, *_packed(centers), labels, out)
    return out


def _all_squares(X: Any, centers: np.ndarray) -> np.ndarray:
    out = np.empty((X.shape[0], len(centers)))
    csr.all_squares(X.data, X.indices, X.indptr, *_packed(centers), out)
    return out


def _packed(centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    wide = centers.astype(np.float64)
    return wide, np.ascontiguousarray(wide.T), 0.5 * (wide * wide).sum(axis=1)
