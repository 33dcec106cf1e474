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
    "distances", "draw", "em", "fuzzy", "lloyd", "log_joint", "memberships", "moments", "nearest", "own_squares",
    "spread", "take", "weighted_sums",
]  # fmt: skip

Weights = np.ndarray | None  # one a row; None: 1 for all
MOST = 2.0**900  # the largest (k u)^m counted as such: sums of such numbers are finite


class Sums(NamedTuple):
    """What one pass of K-means adds up."""

    weight: np.ndarray  # (k,) of w
    sum_dx: np.ndarray  # (k, d) of w (x - c)
    cost: np.ndarray  # (k,) of w |x - c|^2
    moved: int  # rows that changed cluster


class FuzzySums(NamedTuple):
    """What one pass of fuzzy c-means adds up; k u are memberships in units of 1 / k, whose powers do not vanish."""

    weight: np.ndarray  # (k,) of w (k u)^m
    sum_dx: np.ndarray  # (k, d) of w (k u)^m (x - c)
    cost: float  # of k^(m - 1) times w u^m |x - c|^2


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


def fuzzy(X: np.ndarray, w: Weights, centers: np.ndarray, m: float) -> FuzzySums:
    """One pass: memberships, and the sums under them."""
    squares, unit = _squares(X, centers)
    w = np.broadcast_to(weights(w), len(X))
    log_ratio, log_mean = _log_shares(squares, m)
    with np.errstate(over="ignore", under="ignore"):
        z = np.minimum(np.exp(log_ratio * (m / (m - 1)) - m * log_mean), MOST)
        least = squares.min(axis=1)
        cost = least * np.where(least > 0, np.exp(-(m - 1) * log_mean[:, 0]), 0.0)
    z *= w[:, None]
    sum_dx = np.stack([z[:, j] @ (X.astype(np.float64) - center) for j, center in enumerate(centers)])
    return FuzzySums(z.sum(axis=0), sum_dx, float(w @ cost) * unit**2)


def memberships(X: np.ndarray, centers: np.ndarray, m: float) -> np.ndarray:
    """u (n, k): in proportion to the squared distances to the power -1 / (m - 1), adding up to 1."""
    with np.errstate(under="ignore"):
        u = np.exp(_log_shares(_squares(X, centers)[0], m)[0] / (m - 1))
    return (u / u.sum(axis=1, keepdims=True)).astype(X.dtype, copy=False)


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
    if not mass.sum() > 0:
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
    both = np.concatenate([X, centers])
    unit = _unit(both.max(axis=0) - both.min(axis=0))
    total = np.zeros((len(X), len(centers)))
    for x, c in zip(X.T, centers.T, strict=True):
        difference = (x[:, None] - c) / unit
        total += difference * difference
    return total, unit


def _log_shares(squares: np.ndarray, m: float) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of q = least / square (n, k), and of the mean of q^(1 / (m - 1)) over the centers (n, 1).

    Where the least square is zero q is 1 for the centers it is zero for, else 0. By way of expm1 and log1p the mean
    is sound for large m, too, where all shares are nearly alike.
    """
    least = squares.min(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        log_ratio = np.where(squares == least, 0.0, np.log(least / squares))
        return log_ratio, np.log1p(np.expm1(log_ratio / (m - 1)).mean(axis=1, keepdims=True))


def _unit(size: np.ndarray) -> float:
    most = float(np.max(size, initial=0.0))
    return 2.0 ** float(np.ceil(np.log2(most))) if most > 0 else 1.0
