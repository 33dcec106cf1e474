"""NumPy versions of the kernels: they define the results, and are faster for small data than compiled code.

Rows may be dense or CSR; CSR rows are converted to dense ones, because they are few.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.plain.gaussian import Gaussians as Gaussians
from coterie.kernels.plain.gaussian import SoftSums as SoftSums
from coterie.kernels.plain.gaussian import Weights as Weights
from coterie.kernels.plain.gaussian import em, log_joint, weighted_sums

__all__ = [
    "arrivals", "assigned_squares", "distances", "draw", "em", "fuzzy", "lloyd", "log_joint", "memberships", "moments",
    "nearest", "plusplus_rounds", "potentials", "take", "weighted_sums",
]  # fmt: skip

SMALL = 1 << 16  # number of differences in memory at once, instead of a loop over the columns
MIN_EXPONENT = -1022  # of a power of two whose inverse is finite
Arrivals = tuple[float, np.ndarray, np.ndarray]  # sum of w `closest`, rows (m,) and their arrival times (m,)
MAX_POWER = 2.0**900  # maximum of (k u)^m, so that sums of many are finite


class Sums(NamedTuple):
    """Sums of one pass of K-means."""

    weight: np.ndarray  # (k,) of w
    sum_dx: np.ndarray  # (k, d) of w (x - c)
    cost: np.ndarray  # (k,) of w |x - c|^2
    moved: int  # number of rows whose label changed


class FuzzySums(NamedTuple):
    """Sums of one pass of fuzzy c-means; memberships u are multiplied by k, so that their powers do not underflow."""

    weight: np.ndarray  # (k,) of w (k u)^m
    sum_dx: np.ndarray  # (k, d) of w (k u)^m (x - c)
    cost: float  # of k^(m - 1) w u^m |x - c|^2


def weights(w: Weights) -> np.ndarray:
    """Weights for kernels: (n,), or (1,) if all rows have the same."""
    return np.ones(1) if w is None else w


def lloyd(X: Any, w: Weights, centers: np.ndarray, previous: np.ndarray, labels: np.ndarray, lower: np.ndarray) -> Sums:
    """Assign each row to its nearest center, update `labels` (n,), and return the sums of all clusters.

    Compiled kernels skip rows by means of the `previous` centers (k, d) and `lower` bounds (n,).
    """
    X, k = _dense(X), len(centers)
    squares, unit = _squares(X, centers)
    nearest_center = squares.argmin(axis=1).astype(np.int32)
    moved = int(np.count_nonzero(nearest_center != labels))
    labels[:] = nearest_center
    w = np.ones(len(X)) if w is None else w
    difference = w[:, None] * (X.astype(np.float64) - centers.take(nearest_center, axis=0))
    cost = np.bincount(nearest_center, w * squares.min(axis=1) * unit**2, k)
    return Sums(np.bincount(nearest_center, w, k), cluster_sums(difference, nearest_center, k), cost, moved)


def cluster_sums(values: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Sums (k, d) of the values (n, d) of the rows of each cluster; rows are added in order."""
    d = values.shape[1]
    cells = labels.astype(np.intp)[:, None] * d + np.arange(d)
    return np.bincount(cells.ravel(), values.ravel(), k * d).reshape(k, d)


def fuzzy(X: np.ndarray, w: Weights, centers: np.ndarray, m: float) -> FuzzySums:
    """Sums of rows weighted by powers of their memberships in the centers (k, d)."""
    squares, unit = _squares(X, centers)
    w = np.ones(len(X)) if w is None else w
    log_ratio, log_mean = _log_shares(squares, m)
    with np.errstate(over="ignore", under="ignore"):
        power = np.minimum(np.exp(log_ratio * (m / (m - 1)) - m * log_mean), MAX_POWER)
        minimum = squares.min(axis=1)
        cost = minimum * np.where(minimum > 0, np.exp(-(m - 1) * log_mean[:, 0]), 0.0)
    power *= w[:, None]
    sum_dx = np.stack([power[:, j] @ (X.astype(np.float64) - center) for j, center in enumerate(centers)])
    return FuzzySums(power.sum(axis=0), sum_dx, float(w @ cost) * unit**2)


def memberships(X: np.ndarray, centers: np.ndarray, m: float) -> np.ndarray:
    """Memberships (n, k): proportional to squared distances to the power -1 / (m - 1), with sum 1."""
    with np.errstate(under="ignore"):
        u = np.exp(_log_shares(_squares(X, centers)[0], m)[0] / (m - 1))
    return (u / u.sum(axis=1, keepdims=True)).astype(X.dtype, order="C", copy=False)


def nearest(X: Any, centers: np.ndarray) -> np.ndarray:
    """Index (n,) of the nearest center, the first one if several are; columns are added in order, in float64."""
    return _squares(_dense(X), centers)[0].argmin(axis=1).astype(np.int32)


def assigned_squares(X: Any, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Squared distance (n,) of each row to the center of its cluster."""
    difference = _dense(X).astype(np.float64) - centers[labels]
    unit = _unit(np.abs(difference))
    return ((difference / unit) ** 2).sum(axis=1) * unit**2


def distances(X: Any, centers: np.ndarray) -> np.ndarray:
    """Euclidean distances (n, k)."""
    X = _dense(X)
    squares, unit = _squares(X, centers)
    return (np.sqrt(squares) * unit).astype(X.dtype, order="C", copy=False)


def moments(X: Any, w: Weights, pivot: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Sums of w, of w (x - pivot) (d,) and of w (x - pivot)^2 (d,)."""
    shifted = _dense(X).astype(np.float64) - pivot
    w = np.ones(len(shifted)) if w is None else w
    return float(w.sum()), (w[:, None] * shifted).sum(axis=0), (w[:, None] * shifted**2).sum(axis=0)


def potentials(X: Any, w: Weights, unit: float, points: np.ndarray, closest: np.ndarray) -> np.ndarray:
    """Potentials of k-means++ (m,): sums of w `closest` after adding point 0 as a center, and then each other point.

    `closest` (n,), the squared distances to the nearest center in units of `unit`, is updated with point 0.
    """
    squares = _squares_in(unit, _columns(_dense(X)), _columns(points))
    np.minimum(closest, squares[:, 0], out=closest, casting="same_kind")
    return (weights(w)[:, None] * np.minimum(closest[:, None], squares)).sum(axis=0)


def draw(closest: np.ndarray, w: Weights, u: np.ndarray) -> tuple[float, np.ndarray]:
    """The sum of w `closest`, and rows (m,) sampled with these probabilities by uniform numbers `u` (m,).

    If the sum is 0, no row can be sampled, and all are -1.
    """
    mass = weights(w) * closest.astype(np.float64)
    cumulative = mass.cumsum()
    if not mass.sum() > 0:
        return 0.0, np.full(len(u), -1)
    rows = np.searchsorted(cumulative, u * cumulative[-1], side="right")
    return float(cumulative[-1]), np.minimum(rows, np.flatnonzero(mass)[-1])


def arrivals(closest: np.ndarray, w: Weights, seed: int, first: int, expected: float) -> Arrivals:
    """The rows that arrive before the time `expected` / sum of w `closest`, for k-means||.

    Arrival times are exponential with the rate w `closest`. They depend on the number of the row, which is `first` for
    the first one, as the numbers of `core.random_numbers.uniform` do.
    """
    mass = np.asarray(weights(w) * closest)
    total, positive = float(mass.sum()), np.flatnonzero(mass)
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (positive.astype(np.uint64) + np.uint64(first + 1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    time = -np.log(((z ^ (z >> np.uint64(31))) >> np.uint64(12)) * 2.0**-52 + 2.0**-53) / mass[positive]
    in_time = time * total < expected
    return total, positive[in_time], time[in_time]


def plusplus_rounds(X: Any, w: Weights, k: int, size: int, unit: float, fixed: Any) -> Any:
    """Rounds of greedy k-means++ with `size` candidates; None where there is no faster version than `potentials`."""


def take(X: Any, rows: np.ndarray) -> np.ndarray:
    """The given rows, dense."""
    return _dense(X[rows])


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if hasattr(X, "toarray") else X


def _squares(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, float]:
    """Squared distances (n, k) divided by ``unit**2``; and `unit`, a power of two: exact, and no square overflows."""
    both = _columns(np.concatenate([X, centers]))
    unit = _unit(both.max(axis=1) - both.min(axis=1))
    return _squares_in(unit, both[:, : len(X)], both[:, len(X) :]), unit


def _columns(X: np.ndarray) -> np.ndarray:
    """Columns (d, n) in float64: NumPy is faster if the last axis is long."""
    return np.ascontiguousarray(X.T, np.float64)


def _squares_in(unit: float, x: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Squared distances (n, k) in units of ``unit**2`` of rows with columns (d, n) to centers (d, k)."""
    pairs, inverse = x.shape[1] * c.shape[1], 1.0 / unit
    if 1 < pairs <= SMALL // len(x):
        difference = x[:, None, :] - c[:, :, None]
        difference *= inverse
        return np.square(difference, out=difference).sum(axis=0).T  # the first axis is added in order, as in the loop
    total = np.zeros((c.shape[1], x.shape[1]))
    for column, values in zip(x, c, strict=True):
        difference = column - values[:, None]
        difference *= inverse
        total += np.square(difference, out=difference)
    return total.T


def _log_shares(squares: np.ndarray, m: float) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of q = minimum / square (n, k), and of the mean of q^(1 / (m - 1)) over the centers (n, 1).

    If the minimum is 0, q is 1 for centers at that distance and 0 for the others. expm1 and log1p keep the mean
    accurate for large m, where all q^(1 / (m - 1)) are close to 1.
    """
    minimum = squares.min(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        log_ratio = np.where(squares == minimum, 0.0, np.log(minimum / squares))
        return log_ratio, np.log1p(np.expm1(log_ratio / (m - 1)).mean(axis=1, keepdims=True))


def _unit(size: np.ndarray) -> float:
    """The smallest power of two that is at least as large as every value, and has an inverse; 1 if all are 0."""
    mantissa, exponent = math.frexp(np.max(size, initial=0.0))
    return math.ldexp(1.0, max(exponent - (mantissa == 0.5), MIN_EXPONENT))
