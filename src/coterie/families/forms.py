"""Arithmetic on symmetric matrices, one a component, that are kept in one of four forms.

==========  =============  ==========================================
form        shape          what is kept
==========  =============  ==========================================
full        (..., k, d, d)  every matrix
tied        (..., d, d)     one for all; of a sum, the sum over them
diag        (..., k, d)     the diagonals
spherical   (..., k)        one variance each; of a sum, the traces
==========  =============  ==========================================

Leading axes are of independent mixtures.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

SINGULAR = 1e-13  # a pivot below this share of its variance is rounding
LARGE = 24  # columns from which inverting triangles one by one beats inverting squares at once
FLOOR = 1e-10  # what a singular direction is given instead


def outer(form: str, weight: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """weight_k (a_k b_k' + b_k a_k') / 2 in that form; weight (..., k), a and b (..., k, d)."""
    if form == "spherical":
        return weight * (a * b).sum(axis=-1)
    if form == "diag":
        return weight[..., None] * a * b
    wa = weight[..., None] * a
    product = wa[..., :, None] * b[..., None, :] if form == "full" else np.swapaxes(wa, -1, -2) @ b
    return product if a is b else (product + np.swapaxes(product, -1, -2)) / 2


def constant(form: str, k: int, matrix: np.ndarray) -> np.ndarray:
    """The same (d, d) `matrix` for each of k components, as a sum in that form."""
    if form == "full":
        return np.broadcast_to(matrix, (k, *matrix.shape))
    if form == "tied":
        return k * matrix
    diagonal = np.diagonal(matrix)
    return np.broadcast_to(diagonal, (k, len(diagonal))) if form == "diag" else np.full(k, diagonal.sum())


def restated(form: str, weight: np.ndarray, sum_dx: np.ndarray, sum_dxx: np.ndarray, step: np.ndarray) -> np.ndarray:
    """`sum_dxx` as it is about points further on by `step` (..., k, d)."""
    return sum_dxx - 2 * outer(form, np.ones_like(weight), sum_dx, step) + outer(form, weight, step, step)


def mahalanobis(form: str, factor: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The trace of inverse covariance times `sums`, of all components together (...)."""
    if form == "spherical":
        return (factor**2 * sums).sum(axis=-1)
    if form == "diag":
        return (factor**2 * sums).sum(axis=(-1, -2))
    whitened = (sums @ factor) * factor
    return whitened.sum(axis=(-1, -2) if form == "tied" else (-1, -2, -3))


def traces(factor: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The trace of inverse covariance times `sums` of each component (k,); full or diag."""
    return (factor**2 * sums).sum(axis=-1) if factor.ndim == 2 else ((sums @ factor) * factor).sum(axis=(-1, -2))


def dense(form: str, covariances: np.ndarray, k: int, d: int) -> np.ndarray:
    """Covariances as matrices (..., k, d, d)."""
    if form == "full":
        return covariances
    if form == "tied":
        return np.repeat(covariances[..., None, :, :], k, axis=-3)
    diagonal = covariances if form == "diag" else np.repeat(covariances[..., None], d, axis=-1)
    return diagonal[..., None] * np.eye(d)


def condition(f: Any) -> np.ndarray:
    """By how much the rounding of determinants grows (k,): the largest number in the inverse of the correlations.

    Of full or tied components, which have `covariances` and `factor`.
    """
    deviations = np.sqrt(np.diagonal(f.covariances, axis1=-2, axis2=-1))
    return np.square(f.factor * deviations[..., :, None]).sum(axis=-1).max(axis=-1)


def magnitude(form: str, f: Any) -> np.ndarray:
    """By how much the rounding of log densities grows with thin components (k,); rows are in units of their spread."""
    if form == "spherical":
        return f.factor
    return f.factor.max(axis=-1) if form == "diag" else condition(f) + np.abs(f.factor).max(axis=(-1, -2))


class Factors(NamedTuple):
    """Covariances, and what densities need of them."""

    covariances: np.ndarray  # by form; floored where they were singular
    factor: np.ndarray  # by form: upper triangular U with U U' the inverse
    log_det: np.ndarray  # (..., k) log |U|
    singular: np.ndarray  # (..., k) which were


def factors(form: str, covariances: np.ndarray, k: int, d: int) -> Factors:
    """Singular is a matrix whose pivots, in units of its own variances, are rounding: those directions are floored."""
    tiny = np.finfo(np.float64).tiny / SINGULAR
    if form in ("diag", "spherical"):
        singular = ~(covariances >= tiny)
        covariances = np.where(singular, tiny, covariances)
        log_scale = np.log(covariances) / 2
        if form == "spherical":
            return Factors(covariances, covariances**-0.5, -d * log_scale, singular)
        return Factors(covariances, covariances**-0.5, -log_scale.sum(axis=-1), singular.any(axis=-1))
    scale = np.sqrt(np.maximum(np.diagonal(covariances, axis1=-2, axis2=-1), tiny))
    units = scale[..., :, None] * scale[..., None, :]
    correlations, lower, singular = _cholesky(covariances / units)
    if singular.any():
        covariances = correlations * units
    factor = np.swapaxes(_inverse_lower(lower), -1, -2) / scale[..., :, None]
    log_det = -(np.log(np.diagonal(lower, axis1=-2, axis2=-1)) + np.log(scale)).sum(axis=-1)
    if form == "tied":
        log_det, singular = (np.repeat(x[..., None], k, axis=-1) for x in (log_det, singular))
    return Factors(covariances, factor, log_det, singular)


def correlated(noise: np.ndarray, form: str, covariance: np.ndarray) -> np.ndarray:
    """Standard normal rows (n, d) with the covariance of one component; singular directions as densities have them."""
    floored = factors(form, covariance[None], 1, noise.shape[1]).covariances[0]
    return noise @ np.linalg.cholesky(floored).T if form == "full" else noise * np.sqrt(floored)


def _inverse_lower(lower: np.ndarray) -> np.ndarray:
    d = lower.shape[-1]
    if d < LARGE:
        return np.tril(np.linalg.inv(lower))
    flat = [dtrtri(matrix.T)[0].T for matrix in lower.reshape(-1, d, d)]  # upper: LAPACK wants columns
    return np.tril(np.reshape(flat, lower.shape))


def _cholesky(correlations: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrices, with eigenvalues floored where they are singular; their lower factors; which were singular."""
    try:
        lower = np.linalg.cholesky(correlations)
        singular = np.diagonal(lower, axis1=-2, axis2=-1).min(axis=-1) ** 2 < SINGULAR
        if not singular.any():
            return correlations, lower, singular
    except np.linalg.LinAlgError:
        singular = np.linalg.eigvalsh(correlations)[..., 0] < SINGULAR
    values, vectors = np.linalg.eigh(correlations)
    floored = (vectors * np.maximum(values, FLOOR)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    correlations = np.where(singular[..., None, None], floored, correlations)
    return correlations, np.linalg.cholesky(correlations), singular
