"""NumPy twins of the compiled kernels: for work too small to repay a compiler, and to test the others against.

Here stands what each kernel means. Rows may be dense or CSR (small, so made dense).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.plain.gaussian import Gaussians as Gaussians
from coterie.kernels.plain.gaussian import SoftSums as SoftSums
from coterie.kernels.plain.gaussian import em, log_joint, weighted_sums

__all__ = [
    "distances", "draw", "em", "lloyd", "log_joint", "moments", "nearest", "own_squares", "spread", "take",
    "weighted_sums",
]  # fmt: skip

Weights = np.ndarray | None  # one a row; None: 1 for all


class Sums(NamedTuple):
    """What one pass of K-means adds up."""

    weight: np.ndarray  # (k,) of w
    sum_dx: np.ndarray  # (k, d) of w (x - c)
    cost: np.ndarray  # (k,) of w |x - c|^2
    moved: int  # rows that changed cluster


def weights(w: Weights) -> np.ndarray:
    """Weights as the kernels take them: (n,), or (1,) for one for all."""
    return np.ones(1) if w is None else w


def lloyd(X: Any, w: Weights, centers: np.ndarray, before: np.ndarray, labels: np.ndarray, lower: np.ndarray) -> Sums:
    """Every row to its nearest center; `labels` is brought up to date (`before` and `lower` serve bounds)."""
    X, k = _dense(X), len(centers)
    squares, unit = _squares(X, centers)
    found = squares.argmin(axis=1).astype(np.int32)
    moved = int(np.count_nonzero(found != labels))
    labels[:] = found
    w = np.broadcast_to(weights(w), len(X))
    difference = w[:, None] * (X.astype(np.float64) - centers[found])
    cost = w * squares[np.arange(len(X)), found] * unit**2

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(found, values, k)

    return Sums(total(w), np.stack([total(column) for column in difference.T], axis=1), total(cost), moved)


def nearest(X: Any, centers: np.ndarray) -> np.ndarray:
    """The first of the nearest centers, distances taken in float64 in the order of the columns."""
    return _squares(_dense(X), centers)[0].argmin(axis=1).astype(np.int32)


def own_squares(X: Any, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    difference = _dense(X).astype(np.float64) - centers[labels]
    unit = _unit(np.abs(difference))
    return ((difference / unit) ** 2).sum(axis=1) * unit**2


def distances(X: Any, centers: np.ndarray) -> np.ndarray:
    X = _dense(X)
    squares, unit = _squares(X, centers)
    return (np.sqrt(squares) * unit).astype(X.dtype, copy=False)


def moments(X: Any, w: Weights, pivot: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum of the weights; of w (x - pivot); of w (x - pivot)^2."""
    moved = _dense(X).astype(np.float64) - pivot
    w = np.broadcast_to(weights(w), len(moved))
    return float(w.sum()), (w[:, None] * moved).sum(axis=0), (w[:, None] * moved**2).sum(axis=0)


def spread(X: Any, w: Weights, unit: float, points: np.ndarray, closest: np.ndarray) -> np.ndarray:
    """Brings `closest` up to date with points[0]; the potential of that, and with each other point beside it."""
    difference = (_dense(X).astype(np.float64)[:, None, :] - points[None]) / unit
    squares = (difference**2).sum(axis=2)
    np.minimum(closest, squares[:, 0], out=closest, casting="same_kind")
    return (weights(w)[:, None] * np.minimum(closest[:, None], squares)).sum(axis=0)


def draw(closest: np.ndarray, w: Weights, u: np.ndarray) -> tuple[float, np.ndarray]:
    """Rows drawn in proportion to w closest by the uniform numbers `u`; the sum of w closest (0: none drawn, -1)."""
    mass = np.broadcast_to(weights(w), len(closest)) * closest.astype(np.float64)
    until = mass.cumsum()
    if not until[-1] > 0:
        return 0.0, np.full(len(u), -1)
    rows = np.searchsorted(until, u * until[-1], side="right")
    return float(until[-1]), np.minimum(rows, np.flatnonzero(mass)[-1])


def take(X: Any, rows: np.ndarray) -> np.ndarray:
    return _dense(X[rows])


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if hasattr(X, "toarray") else X


def _squares(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, float]:
    """Squared distances in units of `unit`, a power of two that changes no digit but avoids overflow."""
    X, centers = X.astype(np.float64), centers.astype(np.float64)
    unit = _unit(np.maximum(X.max(axis=0), centers.max(axis=0)) - np.minimum(X.min(axis=0), centers.min(axis=0)))
    total = np.zeros((len(X), len(centers)))
    for x, c in zip(X.T, centers.T, strict=True):
        difference = (x[:, None] - c) / unit
        total += difference * difference
    return total, unit


def _unit(size: np.ndarray) -> float:
    most = float(np.max(size, initial=0.0))
    return 2.0 ** float(np.ceil(np.log2(most))) if most > 0 else 1.0
