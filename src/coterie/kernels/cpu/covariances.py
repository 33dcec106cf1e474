"""Covariances of the fourteen structures, and factors of their inverses; for the definitions see `families.structures`.

Scatters and covariances of one mixture are an array (m, p): full (k, d * d), tied (1, d * d), diagonal (k, d) or
spherical (k, 1).
"""

import math

import numpy as np

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.sums import inner

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
EII, VII, EEI, VEI, EVI, VVI, EEE, VEE, EVE, VVE, EEV, VEV, EVV, VVV = range(14)
FLOOR = 1e-13  # minimum variance, as a share of the pooled one; less is rounding
PIVOT = 1e-13  # a pivot of a correlation matrix below this is rounding
RAISED = 1e-10  # its value then
TOL_VOLUME = 1e-10  # relative tolerance of volumes
MAX_ITER = 300  # maximum number of iterations of VEI and VEE
FIRST_SWEEPS = 20  # sweeps of rotations of EVE and VVE, if the orientation is unknown
MAX_JACOBI = 30  # maximum number of sweeps for eigenvectors; ten are usually enough


@jit
def estimate(
    structure,
    weight,  # i/o (k,) above 0; divided by a power of two, as the scatter
    scatter,  # i/o (m, p) about the means; values that are rounding are raised
    orientation,  # i/o (d, d) common axes of EVE and VVE, 0 if they are unknown; else (0, 0)
    d,
    sweeps,  # maximum number of sweeps of rotations of EVE and VVE
    out,  # out (m, p) covariances
):
    """Write the maximum-likelihood covariances."""
    k = weight.shape[0]
    is_equal = structure in (EII, EEI, EVI, EEE, EVE, EEV, EVV)  # volumes
    power = math.ldexp(1.0, -math.frexp(weight.sum())[1])  # so that logarithms do not depend on the scale of weights
    weight *= power
    scatter *= power
    if structure <= VVI:
        raise_diagonals(scatter)
    if structure in (EII, VII):
        varying_shapes(is_equal, weight, scatter, out)
        out /= d
    elif structure in (EVI, VVI):
        varying_shapes(is_equal, weight, scatter, out)
    elif structure in (EEI, VEI):
        equal_shape(is_equal, weight, scatter, d, False, out)
    elif structure == EEE:
        out[0] = scatter[0] / weight.sum()
    elif structure == VEE:
        equal_shape(is_equal, weight, scatter, d, True, out)
    elif structure == VVV:
        for j in range(k):
            out[j] = scatter[j] / weight[j]
    elif structure == EVV:
        logs, factor = np.empty(k), np.empty((d, d))
        for j in range(k):
            logs[j] = -2.0 * factorize(scatter[j].reshape(d, d), factor) / d
        scaled_by_volume(True, weight, logs, scatter, out)
    elif structure in (EEV, VEV):
        values, shapes, vectors = np.empty((k, d)), np.empty((k, d)), np.empty((k, d, d))
        for j in range(k):
            eigenvectors(scatter[j].reshape(d, d).copy(), values[j], vectors[j])
        raise_eigenvalues(values)
        equal_shape(is_equal, weight, values, d, False, shapes)
        for j in range(k):
            rotated(vectors[j], shapes[j], out[j].reshape(d, d))
    else:
        equal_orientation(is_equal, weight, scatter, orientation, d, sweeps, out)


@jit
def raise_diagonals(scatter):
    """Raise variances that are rounding beside the pooled variance of their column."""
    for c in range(scatter.shape[1]):
        pooled = scatter[:, c].sum()
        for j in range(scatter.shape[0]):
            scatter[j, c] = max(scatter[j, c], FLOOR * (pooled if pooled > 0.0 else 1.0))


@jit
def raise_eigenvalues(values):
    lowest = FLOOR * values.sum() / values.shape[1]
    for j in range(values.shape[0]):
        for c in range(values.shape[1]):
            values[j, c] = max(values[j, c], lowest)


@jit
def varying_shapes(is_equal, weight, scatter, out):
    """Covariances with the shapes of the diagonal scatters."""
    logs = np.empty(weight.shape[0])
    for j in range(weight.shape[0]):
        logs[j] = np.log(scatter[j]).mean() if is_equal else 0.0
    scaled_by_volume(is_equal, weight, logs, scatter, out)


@jit
def scaled_by_volume(is_equal, weight, logs, scatter, out):
    """Scatters with the volumes exp(logs)^d, scaled to the volumes of the covariances."""
    total = weight.sum()
    for j in range(weight.shape[0]):
        factor = 1.0 / weight[j]
        if is_equal:
            factor = np.exp(logs - logs[j]).sum() / total
        out[j] = factor * scatter[j]


@jit
def equal_shape(is_equal, weight, scatter, d, is_matrix, out):
    """Covariances with one shape, from diagonals or matrices; with varying volumes by alternating estimates."""
    k = weight.shape[0]
    total = weight.sum()
    volume, inverse, factor = np.ones(k), np.empty(scatter.shape[1]), np.empty((d, d))
    shape = scatter[0] / total
    for j in range(1, k):
        shape += scatter[j] / total
    for _ in range(0 if is_equal else MAX_ITER):
        if is_matrix:
            factorize(shape.reshape(d, d), factor)
            square(factor, inverse.reshape(d, d))
        else:
            inverse[:] = 1.0 / shape
        change = 0.0
        for j in range(k):
            after = max(inner(scatter[j], inverse) / (d * weight[j]), FLOOR * volume[j])
            change = max(change, abs(after / volume[j] - 1.0))
            volume[j] = after
        if change <= TOL_VOLUME:
            break
        shape[:] = 0.0
        for j in range(k):
            shape += scatter[j] / (volume[j] * total)
    for j in range(k):
        out[j] = volume[j] * shape


@jit
def equal_orientation(is_equal, weight, scatter, orientation, d, sweeps, out):
    """Covariances with one orientation D. If it is unknown, the best of several is chosen.

    These are the eigenvectors of the pooled scatter and those of each component.
    """
    k = weight.shape[0]
    values, unused, shapes = np.empty((k, d)), np.empty(d), np.empty((k, d))
    if (orientation != 0.0).any():
        rotate(is_equal, weight, scatter, orientation, sweeps, values, shapes)
    else:
        best, axes = np.inf, np.empty((d, d))
        for first in range(-1, k):
            matrix = scatter[max(first, 0)].copy()
            for j in range(1, k if first < 0 else 0):
                matrix += scatter[j]
            eigenvectors(matrix.reshape(d, d), unused, axes)
            cost = rotate(is_equal, weight, scatter, axes, FIRST_SWEEPS, values, shapes)
            if cost < best:
                best = cost
                orientation[:] = axes
        rotate(is_equal, weight, scatter, orientation, 0, values, shapes)
    for j in range(k):
        rotated(orientation, shapes[j], out[j].reshape(d, d))


@jit
def rotate(is_equal, weight, scatter, D, sweeps, values, shapes):
    """Improve the axes D by rotations of pairs; write variances along them, and return the objective per N d.

    A rotation of axes i and j by the angle t changes the sum of traces to P cos 2t + Q sin 2t plus a constant.
    """
    k, d = values.shape
    M = np.empty((k, d, d))
    for j in range(k):
        congruent(scatter[j].reshape(d, d), D, M[j])
    cost = variances_along(is_equal, weight, M, values, shapes)
    for _ in range(sweeps):
        for i in range(d - 1):
            for t in range(i + 1, d):
                P, Q = 0.0, 0.0
                for j in range(k):
                    slope = 1.0 / shapes[j, i] - 1.0 / shapes[j, t]
                    P += slope * (M[j, i, i] - M[j, t, t]) / 2
                    Q += slope * M[j, i, t]
                if P == 0.0 and Q == 0.0:
                    continue
                angle = np.arctan2(-Q, -P) / 2
                c, s = np.cos(angle), np.sin(angle)
                turn_columns(D, i, t, c, s)
                for j in range(k):
                    turn_columns(M[j], i, t, c, s)
                    turn_columns(M[j].T, i, t, c, s)
        before, cost = cost, variances_along(is_equal, weight, M, values, shapes)
        if before - cost <= 1e-12:
            break
    return cost


@jit
def congruent(W, D, out):
    """Write D'WD."""
    columns = np.ascontiguousarray(D.T)
    for b in range(D.shape[0]):
        product = np.empty(D.shape[0])
        for a in range(D.shape[0]):
            product[a] = inner(W[a], columns[b])
        for a in range(D.shape[0]):
            out[a, b] = inner(columns[a], product)


@jit
def variances_along(is_equal, weight, M, values, shapes):
    k, d = values.shape
    for j in range(k):
        for c in range(d):
            values[j, c] = M[j, c, c]
    raise_eigenvalues(values)
    varying_shapes(is_equal, weight, values, shapes)
    cost = 0.0
    for j in range(k):
        cost += weight[j] * np.log(shapes[j]).mean()
    return cost / weight.sum()


@jit
def turn_columns(A, i, t, c, s):
    for r in range(A.shape[0]):
        a, b = A[r, i], A[r, t]
        A[r, i] = c * a + s * b
        A[r, t] = c * b - s * a


@jit
def eigenvectors(
    A,  # i/o (d, d) symmetric; overwritten
    values,  # out (d,) ascending
    vectors,  # out (d, d) in columns
):
    """Write eigenvalues and eigenvectors, by Jacobi's rotations."""
    d = A.shape[0]
    vectors[:] = 0.0
    for i in range(d):
        vectors[i, i] = 1.0
    for _ in range(MAX_JACOBI):
        n_rotations = 0
        for i in range(d - 1):
            for t in range(i + 1, d):
                if abs(A[i, t]) <= 1e-16 * np.sqrt(abs(A[i, i] * A[t, t])):
                    continue
                n_rotations += 1
                slope = (A[t, t] - A[i, i]) / (2.0 * A[i, t])
                tangent = (1.0 if slope >= 0.0 else -1.0) / (abs(slope) + np.sqrt(slope * slope + 1.0))
                c = 1.0 / np.sqrt(tangent * tangent + 1.0)
                turn_columns(A, i, t, c, -tangent * c)
                turn_columns(A.T, i, t, c, -tangent * c)
                turn_columns(vectors, i, t, c, -tangent * c)
        if n_rotations == 0:
            break
    order = np.argsort(np.diag(A))
    for i in range(d):
        values[i] = A[order[i], order[i]]
    vectors[:] = vectors.copy()[:, order]


@jit
def rotated(vectors, values, out):
    """Write V diag(values) V'."""
    half = vectors * np.sqrt(values)
    square(half, out)


@jit
def square(factor, out):
    """Write the product of a matrix and its transpose."""
    for a in range(factor.shape[0]):
        for b in range(a + 1):
            out[a, b] = inner(factor[a], factor[b])
            out[b, a] = out[a, b]


@jit
def factorize(
    covariance,  # in  (d, d)
    factor,  # out (d, d) upper triangular U with U U' the inverse
):
    """Write the factor of the inverse; return log |U|. Pivots of the correlations that are rounding are raised."""
    d = covariance.shape[0]
    scale, lower, inverse = np.empty(d), np.zeros((d, d)), np.zeros((d, d))
    log_det = 0.0
    for i in range(d):
        scale[i] = np.sqrt(max(covariance[i, i], 1e-290))
    for i in range(d):
        for j in range(i):
            value = covariance[i, j] / (scale[i] * scale[j]) - inner(lower[i, :j], lower[j, :j])
            lower[i, j] = value / lower[j, j]
        pivot = covariance[i, i] / (scale[i] * scale[i]) - inner(lower[i, :i], lower[i, :i])
        lower[i, i] = np.sqrt(pivot if pivot > PIVOT else RAISED)
        log_det -= np.log(lower[i, i]) + np.log(scale[i])
        inverse[i, i] = 1.0
        for j in range(i):
            for c in range(j + 1):
                inverse[i, c] -= lower[i, j] * inverse[j, c]
        for c in range(i + 1):
            inverse[i, c] /= lower[i, i]
    for a in range(d):
        for b in range(d):
            factor[a, b] = inverse[b, a] / scale[a] if b >= a else 0.0
    return log_det
