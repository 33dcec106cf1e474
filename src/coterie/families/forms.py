"""Arithmetic on symmetric matrices, one per component, that are stored in one of four forms.

==========  ==============  ==================================================
form        shape           content
==========  ==============  ==================================================
full        (..., k, d, d)  all matrices
tied        (..., d, d)     one matrix for all; for sums, the sum over them
diag        (..., k, d)     the diagonals
spherical   (..., k)        one variance per component; for sums, the traces
==========  ==============  ==================================================

Leading axes are independent mixtures.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtri

SINGULAR = 1e-13  # a pivot below this share of its variance is considered a rounding error
MANY = 32  # number of matrices from which it is faster to invert triangular ones by halves
LARGE = 24  # number of columns from which it is faster to invert triangular matrices one by one
FLOOR = 1e-10  # minimum eigenvalue of a singular correlation matrix


def shape(form: str, k: int, d: int) -> tuple[int, ...]:
    """The shape of arrays of this form."""
    shapes: dict[str, tuple[int, ...]] = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
    return shapes[form]


def outer(form: str, weight: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """weight_k (a_k b_k' + b_k a_k') / 2 in this form; weight (..., k), a and b (..., k, d)."""
    if form == "spherical":
        return weight * (a * b).sum(axis=-1)
    if form == "diag":
        return weight[..., None] * a * b
    wa = weight[..., None] * a
    product = wa[..., :, None] * b[..., None, :] if form == "full" else np.swapaxes(wa, -1, -2) @ b
    return product if a is b else (product + np.swapaxes(product, -1, -2)) / 2


def constant(form: str, k: int, matrix: np.ndarray) -> np.ndarray:
    """The same `matrix` (d, d) for each of k components, as a sum in this form, with one entry for all of them."""
    if form in ("full", "tied"):
        return matrix[None] if form == "full" else k * matrix
    diagonal = np.diagonal(matrix)
    return diagonal[None] if form == "diag" else diagonal.sum(keepdims=True)


def recentered(form: str, weight: np.ndarray, sum_dx: np.ndarray, sum_dxx: np.ndarray, step: np.ndarray) -> np.ndarray:
    """`sum_dxx` about points that are moved by `step` (..., k, d)."""
    return sum_dxx - outer(form, np.ones_like(weight), 2 * sum_dx - weight[..., None] * step, step)


def mahalanobis(form: str, factor: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The trace of inverse covariance times `sums`, summed over all components (...)."""
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
    """Factor of the rounding errors of determinants (k,): the largest number in the inverse of the correlations.

    `f` has `covariances` and `factor` of full or tied components.
    """
    deviations = np.sqrt(np.diagonal(f.covariances, axis1=-2, axis2=-1))
    return np.square(f.factor * deviations[..., :, None]).sum(axis=-1).max(axis=-1)


def magnitude(form: str, f: Any) -> np.ndarray:
    """Factor of the rounding errors of log densities of thin components (k,), for standardised rows."""
    if form == "spherical":
        return f.factor
    return f.factor.max(axis=-1) if form == "diag" else condition(f) + np.abs(f.factor).max(axis=(-1, -2))


class Factors(NamedTuple):
    """Covariances, and the factors of their inverses."""

    covariances: np.ndarray  # by form; with floored eigenvalues if they were singular
    factor: np.ndarray  # by form: upper triangular U, with U U' the inverse
    log_det: np.ndarray  # (..., k) log |U|
    singular: np.ndarray  # (..., k) mask of singular covariances


def factors(form: str, covariances: np.ndarray, k: int, d: int) -> Factors:
    """Factorise covariances. If a pivot of the correlation matrix is a rounding error, its eigenvalues are floored."""
    tiny = np.finfo(np.float64).tiny / SINGULAR
    if form in ("diag", "spherical"):
        singular = ~(covariances >= tiny)
        covariances = np.where(singular, tiny, covariances)
        log_scale = np.log(covariances) / 2
        if form == "spherical":
            return Factors(covariances, covariances**-0.5, -d * log_scale, singular)
        return Factors(covariances, covariances**-0.5, -log_scale.sum(axis=-1), np.any(singular, axis=-1))
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
    """Standard normal rows (n, d), transformed to the covariance of one component; floored as in densities."""
    floored = factors(form, covariance[None], 1, noise.shape[1]).covariances[0]
    return noise @ np.linalg.cholesky(floored).T if form == "full" else noise * np.sqrt(floored)


def _inverse_lower(lower: np.ndarray) -> np.ndarray:
    d = lower.shape[-1]
    if d < LARGE and lower.size < MANY * d * d:
        return np.tril(np.linalg.inv(lower))
    if d < LARGE:
        inverse = np.zeros_like(lower)
        _write_inverse(lower, inverse)
        return inverse
    flat = [dtrtri(matrix.T)[0].T for matrix in lower.reshape(-1, d, d)]  # transposed, because LAPACK is column-major
    return np.tril(np.reshape(flat, lower.shape))


def _write_inverse(lower: np.ndarray, inverse: np.ndarray) -> None:
    """Write the inverses of triangular matrices, from those of their halves: few operations for many matrices."""
    h = lower.shape[-1] // 2
    if h == 0:
        np.divide(1.0, lower, out=inverse)
        return
    for half in (slice(h), slice(h, None)):
        _write_inverse(lower[..., half, half], inverse[..., half, half])
    inverse[..., h:, :h] = -(inverse[..., h:, h:] @ lower[..., h:, :h]) @ inverse[..., :h, :h]


def _cholesky(correlations: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrices, with floored eigenvalues if singular; their lower factors; and a mask of singular ones."""
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
