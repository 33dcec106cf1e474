"""Iterations of K-means with two clusters in one call, for tables so small that calls would take as long as passes.

A row is in the second cluster if its projection onto the line through both centers is beyond their midpoint. Rows are
stored by column, so that vector code runs over rows. Only rows that change their cluster change the sums.
"""

import numpy as np

from coterie.kernels.cpu import read_only
from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.sums import inner, sum_of
from coterie.kernels.plain import Weights, weights

BLOCK = 512  # rows whose projections stay in the cache
TILE = 16  # rows that are transposed at once
MANY = 32  # number of changes in a block from which sums over all of its rows are faster than adding rows


def two_means(
    X: np.ndarray, w: Weights, centers: np.ndarray, unit: float, tol: float, max_iter: int
) -> tuple[np.ndarray, int]:
    """See `plain.two_means`."""
    (n, d), origin = X.shape, centers.astype(np.float64).mean(axis=0)
    two, inverse = (centers - origin) / unit, 1.0 / unit
    columns, sides = np.empty((d, n), X.dtype), np.full(n, -1, X.dtype)
    n_iter = _descend(read_only(X), weights(w), origin, inverse, columns, sides, two, tol * inverse**2, max_iter)
    return two * unit + origin, n_iter


@jit
def _descend(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,) if all weights are equal
    origin,  # in  (d,)
    inverse,  # in  1 / unit
    columns,  # out (d, n) rows in units relative to the origin
    sides,  # i/o (n,) -1 for rows of the first cluster, 1 for those of the second; all -1 at the start
    centers,  # i/o (2, d) in units relative to the origin
    tol,  # in  squared movement of both centers that ends the iterations
    max_iter,
):
    """Iterate until the next iteration would be the last; return the number of iterations."""
    n, d = X.shape
    total, sums, weight = np.zeros(d), np.zeros(d), 0.0
    means = np.empty((2, d))
    total_weight = _to_columns(X, w, origin, inverse, columns, total)
    direction, projection, step = np.empty(d, X.dtype), np.empty(BLOCK, X.dtype), np.empty(BLOCK, X.dtype)
    stride = 0 if len(w) == 1 else 1
    for iteration in range(max_iter):
        offset = 0.0
        for t in range(d):
            direction[t] = centers[1, t] - centers[0, t]
            offset -= 0.5 * (centers[1, t] - centers[0, t]) * (centers[0, t] + centers[1, t])
        changed = 0
        for first in range(0, n, BLOCK):
            count = min(BLOCK, n - first)
            _project(columns, first, direction, X.dtype.type(offset), projection[:count])
            block_changes = _count_changes(projection, sides[first : first + count])
            if block_changes >= MANY:
                changed += block_changes
                _change_sides(projection, sides[first : first + count], step)
                for p in range(count if stride else 0):
                    step[p] *= w[first + p]
                factor = 1.0 if stride else w[0]
                weight += factor * sum_of(step[:count])
                for t in range(d):
                    sums[t] += factor * inner(columns[t, first : first + count], step)
            elif block_changes > 0:
                for i in range(first, first + count):
                    side = 1 if projection[i - first] > 0 else -1
                    if side != sides[i]:
                        changed += 1
                        sides[i] = side
                        weight += side * w[i * stride]
                        _add_row(X, i, origin, side * w[i * stride] * inverse, sums)
        if changed == 0 or not 0.0 < weight < total_weight:
            return iteration
        moved = 0.0
        for t in range(d):
            means[0, t], means[1, t] = (total[t] - sums[t]) / (total_weight - weight), sums[t] / weight
            moved += (means[0, t] - centers[0, t]) ** 2 + (means[1, t] - centers[1, t]) ** 2
        if moved <= tol:
            return iteration
        centers[:] = means
    return max_iter


@jit
def _to_columns(X, w, origin, inverse, columns, total):
    """Fill `columns`, and `total` (d,) with their weighted sums; return the sum of the weights."""
    n, d = X.shape
    factor = X.dtype.type(inverse)
    for first in range(0, n, TILE):
        for t in range(d):
            at, column = X.dtype.type(origin[t]), columns[t]
            for i in range(first, min(first + TILE, n)):
                column[i] = (X[i, t] - at) * factor
    if len(w) == 1:
        for t in range(d):
            total[t] = w[0] * sum_of(columns[t])
        return n * w[0]
    for t in range(d):
        total[t] = inner(columns[t], w)
    return sum_of(w)


@jit_reassociating
def _project(columns, first, direction, offset, projection):
    """Inner products of successive rows with `direction`, plus `offset`."""
    n, d = len(projection), len(direction)
    for p in range(n):
        projection[p] = offset
    for t in range(0, d - 3, 4):  # four columns at once: fewer loads and stores of the projections
        v0, v1, v2, v3 = direction[t], direction[t + 1], direction[t + 2], direction[t + 3]
        x0, x1 = columns[t, first : first + n], columns[t + 1, first : first + n]
        x2, x3 = columns[t + 2, first : first + n], columns[t + 3, first : first + n]
        for p in range(n):
            projection[p] += (v0 * x0[p] + v1 * x1[p]) + (v2 * x2[p] + v3 * x3[p])
    for t in range(d - d % 4, d):
        v, x = direction[t], columns[t, first : first + n]
        for p in range(n):
            projection[p] += v * x[p]


@jit_reassociating
def _count_changes(projection, sides):
    """Number of rows that may have changed sides, those with projection 0 included."""
    total = np.int32(0)
    for p in range(len(sides)):
        total += np.int32(projection[p] * sides[p] <= 0)
    return total


@jit
def _change_sides(projection, sides, step):
    """Update `sides`; `step` is 1 for rows that are new in the second cluster, -1 for those that left it, else 0."""
    for p in range(len(sides)):
        side = sides.dtype.type(1 if projection[p] > 0 else -1)
        step[p] = (side - sides[p]) / 2
        sides[p] = side


@jit_reassociating
def _add_row(X, i, origin, factor, sums):
    for t in range(len(sums)):
        sums[t] += factor * (np.float64(X[i, t]) - origin[t])
