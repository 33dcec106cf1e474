"""Which center is nearest, beyond doubt: the definition that every faster path must agree with.

The label of a row is the first center with the least ``sum_t ((x_t - c_t) / unit)^2``, taken in float64 in the
order of the columns. `unit` is a power of two, so it changes no digit; it only keeps squares from overflowing.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_finite, jit_reassociating

SAFE = 2.0**-900  # squares between this and its inverse have lost nothing to underflow


@jit_reassociating
def square(X, i, centers, j, inverse):
    """Squared distance of a row and a center, to a few units in the last place of float64."""
    total = 0.0
    for t in range(X.shape[1]):
        q = (np.float64(X[i, t]) - np.float64(centers[j, t])) * inverse
        total += q * q
    return total


@jit
def square_in_order(X, i, centers, j, inverse):
    """The same with its additions in the order of the columns, as the definition says."""
    total = 0.0
    for t in range(X.shape[1]):
        q = (np.float64(X[i, t]) - np.float64(centers[j, t])) * inverse
        total += q * q
    return total


@jit
def two_nearest(
    X,  # in  (n, d)
    i,  # in  the row
    centers,  # in  (k, d)
    inverse,  # in  1 / unit
    squares,  # out (k,) squared distances
):
    """The label of a row, and a lower bound of its squared distance to every other center, in units."""
    k, d = centers.shape
    least = np.inf
    for j in range(k):
        squares[j] = square(X, i, centers, j, inverse)
        least = min(least, squares[j])
    scale = 1.0
    if not least < np.inf:  # a row so far out that its squares overflow: take them in a unit of its own
        scale = power_of_two(widest(X, i, centers)) * inverse
        for j in range(k):
            squares[j] = square(X, i, centers, j, inverse / scale)
            least = min(least, squares[j])
    doubt = 1.0 + 4.0 * (d + 2) * 2.0**-53
    label, nearest, second = -1, np.inf, np.inf
    for j in range(k):
        if squares[j] <= least * doubt:
            squares[j] = square_in_order(X, i, centers, j, inverse / scale)
            if squares[j] < nearest:
                label, nearest = j, squares[j]
    for j in range(k):
        if j != label:
            second = min(second, squares[j])
    return label, second / doubt * scale * scale


@jit
def distance(X, i, centers, j, inverse):
    """Euclidean distance of a row and a center, in units, at any scale."""
    total = square(X, i, centers, j, inverse)
    if SAFE < total < 1.0 / SAFE:
        return np.sqrt(total)
    size = 0.0
    for t in range(X.shape[1]):
        size = max(size, abs(np.float64(X[i, t]) - np.float64(centers[j, t])))
    unit = power_of_two(size)
    return np.sqrt(square(X, i, centers, j, 1.0 / unit)) * (unit * inverse)


@jit
def widest(X, i, centers):
    """The largest difference of a coordinate of a row from that of a center."""
    size = 0.0
    for j in range(centers.shape[0]):
        for t in range(X.shape[1]):
            size = max(size, abs(np.float64(X[i, t]) - np.float64(centers[j, t])))
    return size


@jit
def power_of_two(size):
    """The power of two at or above `size`; 1 if that is zero or not finite."""
    return 2.0 ** np.ceil(np.log2(size)) if 0.0 < size < np.inf else 1.0


@jit
def frame(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    shift,  # out (at least d,) where the kernels put the origin: amid the centers
):
    """`unit`: a power of two of the size of the data about `shift`."""
    k, d = centers.shape
    total, share = np.zeros(d), 1.0 / k
    for j in range(k):
        for t in range(d):
            total[t] += np.float64(centers[j, t]) * share  # a share of each: the sum of huge centers must not overflow
    for t in range(d):
        shift[t] = total[t]
    size = max(farthest(centers, shift, k), farthest(X, shift, min(64, X.shape[0])))
    return power_of_two(size)


@jit_finite
def farthest(X, shift, rows):
    """The largest difference of a coordinate of the first rows from `shift`."""
    size = 0.0
    for i in range(rows):
        for t in range(X.shape[1]):
            size = max(size, abs(np.float64(X[i, t]) - np.float64(shift[t])))
    return size
