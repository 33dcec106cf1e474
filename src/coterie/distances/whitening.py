"""Whitening: the matrix that makes rows uncorrelated with unit variance, and the rank of their covariance.

Columns are standardised first, so that the rank does not depend on their units. A direction is ignored if the rows vary
in it by no more than the rounding errors of their values.
"""

from typing import NamedTuple

import numpy as np

from coterie.core.arrays import Array

ROUNDING = 8.0  # minimum standard deviation of a direction, as a multiple of the rounding errors of its values
EPSILON = float(np.finfo(np.float64).eps)


class Whitening(NamedTuple):
    matrix: Array  # (d, d); columns beyond the rank are zero
    rank: int


def centered(rows: Array) -> tuple[Array, Array]:
    """The mean (d,), and the rows minus the mean (n, d), in float64; a constant column gives exact zeros."""
    moved = rows.astype(np.float64) - rows[0].astype(np.float64)
    mean = moved.mean(axis=0)
    moved -= mean
    return rows[0] + mean, moved


def of_rows(centered_rows: Array, rounding: Array) -> Whitening:
    """The whitening of centered rows (n, d), whose values have the rounding errors `rounding` (d,).

    It uses singular values of the rows. They resolve directions with a million times smaller variance than the
    eigenvalues of the covariance do.
    """
    n, d = centered_rows.shape
    exponent = np.frexp(np.abs(centered_rows).max(axis=0))[1]
    scaled = np.ldexp(centered_rows, -exponent)
    deviation = np.sqrt((scaled**2).sum(axis=0) / (n - 1))
    varies = deviation > 0
    scaled /= np.where(varies, deviation, 1.0)
    triangular = np.linalg.qr(scaled, mode="r") if n >= d else scaled
    spread, directions = np.linalg.svd(triangular, full_matrices=False)[1:]
    spread = spread / np.sqrt(n - 1)
    noise = np.where(varies, np.ldexp(rounding, -exponent) / np.where(varies, deviation, 1.0), 0.0)
    minimum = ROUNDING * np.sqrt(directions**2 @ noise**2) + ROUNDING * d * EPSILON * spread[0]
    return _whitening(directions.T, spread, spread > minimum, np.ldexp(np.where(varies, deviation, 1.0), exponent))


def of_shrunk(centered_rows: Array, share: float, precision: float) -> Whitening | None:
    """The whitening of centered rows (n, d), with the covariance shrunk by `share` to a multiple of the identity."""
    (n, d), (scaled, exponent) = centered_rows.shape, to_unit_size(centered_rows)
    covariance = scaled.T @ scaled / (n - 1)
    whitening = of_covariance((1 - share) * covariance + share * np.eye(d) * np.trace(covariance) / d, precision)
    return None if whitening is None else whitening._replace(matrix=np.ldexp(whitening.matrix, -exponent))


def to_unit_size(values: Array) -> tuple[Array, int]:
    """Values divided by a power of two, so that the largest is about 1 and squares stay in range; and its exponent."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    return np.ldexp(values, -exponent), exponent


def of_covariance(matrix: Array, precision: float, is_inverse: bool = False) -> Whitening | None:
    """The whitening of a covariance (d, d), or of its inverse; None if it is not positive semi-definite.

    The values of the matrix have the relative `precision`.
    """
    spectrum = _spectrum(matrix, precision)
    if spectrum is None:
        return None
    squares, directions, counts, deviation = spectrum
    spread = np.sqrt(np.where(counts, squares, 1.0))
    if is_inverse:
        spread, deviation = 1 / spread, 1 / deviation
    return _whitening(directions, spread, counts, deviation)


def _spectrum(matrix: Array, precision: float) -> tuple[Array, Array, Array, Array] | None:
    """Eigenvalues and eigenvectors of the matrix scaled to unit diagonal, and a mask of the positive eigenvalues.

    The last array contains the square roots of the diagonal. None if the matrix is not positive semi-definite.
    """
    if not np.isfinite(matrix).all() or (np.diag(matrix) < 0).any():
        return None
    d, varies = len(matrix), np.diag(matrix) > 0
    deviation = np.sqrt(np.where(varies, np.diag(matrix), 1.0))
    correlation = matrix / deviation / deviation[:, None]
    bound = 4 * ROUNDING * d * precision
    asymmetry = np.abs(correlation - correlation.T).max()
    if asymmetry > max(1e-8, bound) or (correlation[~varies] != 0).any():
        return None
    squares, directions = np.linalg.eigh((correlation + correlation.T) / 2)
    if squares[0] < -max(bound * squares[-1], asymmetry * d):
        return None
    return squares, directions, squares > bound * squares[-1], deviation


def _whitening(directions: Array, spread: Array, counts: Array, deviation: Array) -> Whitening:
    """The whitening from unit directions (d, m), the spread of each, a mask, and standard deviations of the columns."""
    matrix = np.zeros((len(deviation), len(deviation)))
    rank = int(np.count_nonzero(counts))
    matrix[:, :rank] = directions[:, counts] / spread[counts] / deviation[:, None]
    return Whitening(matrix, rank)
