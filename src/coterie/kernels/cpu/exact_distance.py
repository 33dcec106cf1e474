"""Distances in float64, and the definition of the nearest center, with which faster kernels must agree.

The label of a row is the first center with the minimum of ``sum_t ((x_t - c_t) / unit)^2``, added in float64 in the
order of the columns. `unit` is a power of two: dividing by it is exact, and avoids overflow.
"""

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_finite, jit_reassociating

MEDIAN_OF = 31  # number of centers of which the origin is the median: a few far centers do not move it
SAFE = 2.0**-900  # squares between this and its inverse have lost no digits to underflow


@jit_reassociating
def square(X, i, centers, j, inverse):
    """Squared distance of a row and a center, in any order of additions: accurate to a few units in the last place."""
    total = 0.0
    for t in range(X.shape[1]):
        q = (np.float64(X[i, t]) - np.float64(centers[j, t])) * inverse
        total += q * q
    return total


@jit
def square_in_order(X, i, centers, j, inverse):
    """The same with additions in the order of the columns.

    It does not share its code with `square`, because the cache of compiled code does not distinguish options of `jit`.
    """
    total = 0.0
    for t in range(X.shape[1]):
        q = (np.float64(X[i, t]) - np.float64(centers[j, t])) * inverse
        total += q * q
    return total


@jit
def two_nearest(
    X,  # in  (n, d)
    i,  # in  index of the row
    centers,  # in  (k, d)
    inverse,  # in  1 / unit
    squares,  # out (k,) squared distances
):
    """The label of a row, and a lower bound of its squared distances to the other centers, in units."""
    k, d = centers.shape
    minimum = np.inf
    for j in range(k):
        squares[j] = square(X, i, centers, j, inverse)
        minimum = min(minimum, squares[j])
    scale = 1.0
    if not minimum < np.inf:  # the squares of an outlier overflow: use another unit for this row
        scale = power_of_two(max_difference(X, i, centers)) * inverse
        for j in range(k):
            squares[j] = square(X, i, centers, j, inverse / scale)
            minimum = min(minimum, squares[j])
    tolerance = 1.0 + 4.0 * (d + 2) * 2.0**-53
    label, nearest, second = -1, np.inf, np.inf
    for j in range(k):
        if squares[j] <= minimum * tolerance:
            if minimum > 0.0:  # a sum that is 0 is so in any order
                squares[j] = square_in_order(X, i, centers, j, inverse / scale)
            if squares[j] < nearest:
                label, nearest = j, squares[j]
    for j in range(k):
        if j != label:
            second = min(second, squares[j])
    return label, second / tolerance * scale * scale


@jit
def distance(X, i, centers, j, inverse):
    """Euclidean distance of a row and a center, in units, without underflow and overflow."""
    total = square(X, i, centers, j, inverse)
    if SAFE < total < 1.0 / SAFE:
        return np.sqrt(total)
    size = 0.0
    for t in range(X.shape[1]):
        size = max(size, abs(np.float64(X[i, t]) - np.float64(centers[j, t])))
    unit = power_of_two(size)
    return np.sqrt(square(X, i, centers, j, 1.0 / unit)) * (unit * inverse)


@jit
def distances(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    inverse,  # in  1 / unit
    out,  # out (n, k)
):
    """Euclidean distance of each row to each center."""
    for i in range(X.shape[0]):
        for j in range(centers.shape[0]):
            out[i, j] = distance(X, i, centers, j, inverse) / inverse


@jit
def assigned_squares(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    labels,  # in  (n,)
    inverse,  # in  1 / unit
    out,  # out (n,)
):
    """Squared distance of each row to the center of its cluster."""
    for i in range(X.shape[0]):
        out[i] = (distance(X, i, centers, labels[i], inverse) / inverse) ** 2


@jit
def max_difference(X, i, centers):
    """The largest absolute difference of a row and a center in one column."""
    size = 0.0
    for j in range(centers.shape[0]):
        for t in range(X.shape[1]):
            size = max(size, abs(np.float64(X[i, t]) - np.float64(centers[j, t])))
    return size


@jit
def power_of_two(size):
    """The smallest power of two that is at least `size`; 1 if `size` is zero or not finite."""
    return 2.0 ** np.ceil(np.log2(size)) if 0.0 < size < np.inf else 1.0


@jit
def choose_unit(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    shift,  # out (at least d,) median of some centers, which kernels use as origin
):
    """The unit: a power of two of the size of the data relative to `shift`, from the centers and the first rows."""
    k, d = centers.shape
    few = min(k, MEDIAN_OF)
    values = np.empty((few, d), centers.dtype)
    for j in range(few):
        for t in range(d):
            values[j, t] = centers[j * k // few, t]
    sort_columns(values)
    for t in range(d):
        shift[t] = 0.5 * values[(few - 1) // 2, t] + 0.5 * values[few // 2, t]  # halves, because a sum could overflow
    size = max(max_offset(centers, shift, k), max_offset(X, shift, min(64, X.shape[0])))
    return power_of_two(size)


@jit_finite
def sort_columns(
    values,  # i/o (m, d)
):
    """Sort each column by exchanges of adjacent rows, so that all columns are sorted at once in vectors."""
    m, d = values.shape
    for step in range(m):
        for i in range(step % 2, m - 1, 2):
            for t in range(d):
                low, high = min(values[i, t], values[i + 1, t]), max(values[i, t], values[i + 1, t])
                values[i, t], values[i + 1, t] = low, high


@jit_finite
def max_offset(X, shift, rows):
    """The largest absolute difference of the first `rows` rows from `shift` in one column."""
    d, half = X.shape[1], X.dtype.type(0.5)  # halves, because a difference could overflow
    sizes = np.zeros(d, X.dtype)
    for i in range(rows):
        for t in range(d):
            sizes[t] = max(sizes[t], abs(half * X[i, t] - half * X.dtype.type(shift[t])))
    size = 0.0
    for t in range(d):
        size = max(size, np.float64(sizes[t]))
    return 2.0 * size
