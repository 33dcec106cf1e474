"""K-means on what was observed of each row: NaN is a hole, and adds nothing to a distance or a sum."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.kernels.plain import Weights, _unit, weights


class ObservedSums(NamedTuple):
    """What one pass adds up."""

    weight: np.ndarray  # (k,) of w
    sum_dx: np.ndarray  # (k, d) of w (x - c), where x was observed
    cost: np.ndarray  # (k,) of w |x - c|^2 over the columns observed
    moved: int  # rows that changed cluster
    seen: np.ndarray  # (k, d) of w, where x was observed


def lloyd(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> ObservedSums:
    """Every row to its nearest center over the columns observed; `labels` is brought up to date."""
    k = len(centers)
    squares, unit = _squares(X, centers)
    found = squares.argmin(axis=1).astype(np.int32)
    moved = int(np.count_nonzero(found != labels))
    labels[:] = found
    w = np.broadcast_to(weights(w), len(X))
    difference = w[:, None] * _differences(X, centers[found])
    there = w[:, None] * ~np.isnan(X)
    cost = w * squares[np.arange(len(X)), found] * unit**2

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(found, values, k)

    sum_dx, seen = (np.stack([total(column) for column in each.T], axis=1) for each in (difference, there))
    return ObservedSums(total(w), sum_dx, total(cost), moved, seen)


def nearest(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The first of the nearest centers, distances taken in float64 in the order of the columns observed."""
    return _squares(X, centers)[0].argmin(axis=1).astype(np.int32)


def own_squares(X: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    difference = _differences(X, centers[labels])
    unit = _unit(np.abs(difference))
    return ((difference / unit) ** 2).sum(axis=1) * unit**2


def distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    squares, unit = _squares(X, centers)
    return (np.sqrt(squares) * unit).astype(X.dtype, copy=False)


def filled(X: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A copy of the rows with the `values` (d,) of the columns in their holes."""
    return np.where(np.isnan(X), values.astype(X.dtype), X)


def _differences(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), 0.0, X.astype(np.float64) - centers)


def _squares(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, float]:
    """Squared distances in units of `unit`, a power of two that changes no digit but avoids overflow."""
    X, centers = X.astype(np.float64), centers.astype(np.float64)
    both = np.concatenate([X, centers])
    unit = _unit(np.fmax.reduce(both, axis=0) - np.fmin.reduce(both, axis=0))
    total = np.zeros((len(X), len(centers)))
    for x, c in zip(X.T, centers.T, strict=True):
        difference = (x[:, None] - c) / unit
        np.add(total, difference * difference, out=total, where=~np.isnan(x)[:, None])
    return total, unit
