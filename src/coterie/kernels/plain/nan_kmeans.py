"""K-means of rows with missing values: NaN is ignored in distances and sums."""

from typing import NamedTuple

import numpy as np

from coterie.kernels.plain import Weights, _unit, weights


class ObservedSums(NamedTuple):
    """Sums of one pass."""

    weight: np.ndarray  # (k,) of w
    sum_dx: np.ndarray  # (k, d) of w (x - c), where x is observed
    cost: np.ndarray  # (k,) of w |x - c|^2 over the observed columns
    moved: int  # number of rows whose label changed
    observed: np.ndarray  # (k, d) of w, where x is observed


def lloyd(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> ObservedSums:
    """Assign each row to its nearest center over its observed columns, update `labels` (n,), and return the sums."""
    k = len(centers)
    squares, unit = _squares(X, centers)
    nearest_center = squares.argmin(axis=1).astype(np.int32)
    moved = int(np.count_nonzero(nearest_center != labels))
    labels[:] = nearest_center
    w = np.broadcast_to(weights(w), len(X))
    difference = w[:, None] * _differences(X, centers[nearest_center])
    present = w[:, None] * ~np.isnan(X)
    cost = w * squares[np.arange(len(X)), nearest_center] * unit**2

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(nearest_center, values, k)

    sum_dx, observed = (np.stack([total(column) for column in values.T], axis=1) for values in (difference, present))
    return ObservedSums(total(w), sum_dx, total(cost), moved, observed)


def nearest(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Index (n,) of the nearest center, the first one if several are; columns are added in order, in float64."""
    return _squares(X, centers)[0].argmin(axis=1).astype(np.int32)


def assigned_squares(X: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Squared distance (n,) of each row to the center of its cluster, over its observed columns."""
    difference = _differences(X, centers[labels])
    unit = _unit(np.abs(difference))
    return ((difference / unit) ** 2).sum(axis=1) * unit**2


def distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Euclidean distances (n, k) over the observed columns."""
    squares, unit = _squares(X, centers)
    return (np.sqrt(squares) * unit).astype(X.dtype, copy=False)


def fill_missing(X: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A copy of the rows with missing values replaced by the `values` (d,) of their columns."""
    return np.where(np.isnan(X), values.astype(X.dtype), X)


def _differences(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), 0.0, X.astype(np.float64) - centers)


def _squares(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, float]:
    """Squared distances (n, k) divided by ``unit**2``; and `unit`, a power of two: exact, and no square overflows."""
    X, centers = X.astype(np.float64), centers.astype(np.float64)
    both = np.concatenate([X, centers])
    unit = _unit(np.fmax.reduce(both, axis=0) - np.fmin.reduce(both, axis=0))
    total = np.zeros((len(X), len(centers)))
    for x, c in zip(X.T, centers.T, strict=True):
        difference = (x[:, None] - c) / unit
        np.add(total, difference * difference, out=total, where=~np.isnan(x)[:, None])
    return total, unit
