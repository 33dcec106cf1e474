"""Iterations of K-means with two clusters, with NumPy."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def two_means(X: Array, w: Array | None, centers: Array, unit: float, tol: float, max_iter: int) -> tuple[Array, int]:
    """Centers (2, d) in float64 after at most `max_iter` iterations from `centers`, and the number of iterations.

    They end when no label changes, or before an iteration that empties a cluster or whose squared movement of both
    centers is at most `tol`. Labels are computed in the precision of the data, so a row half-way between the centers
    can have either label. `unit` is a power of two near the scale of the data.
    """
    w = np.ones(len(X)) if w is None else w
    origin = centers.astype(np.float64).mean(axis=0)
    rows, two = (X - origin) / unit, (centers - origin) / unit
    is_second = np.zeros(len(X), np.bool_)
    for iteration in range(max_iter):
        projections = rows @ (two[1] - two[0]) - 0.5 * (two[1] - two[0]) @ (two[0] + two[1])
        changed = (projections > 0) != is_second
        is_second ^= changed
        weight = np.array([w[~is_second].sum(), w[is_second].sum()])
        if not changed.any() or not weight.all():
            return two * unit + origin, iteration
        means = np.stack([w[mask] @ rows[mask] for mask in (~is_second, is_second)]) / weight[:, None]
        if ((means - two) ** 2).sum() <= tol / unit**2:
            return two * unit + origin, iteration
        two = means
    return two * unit + origin, max_iter
