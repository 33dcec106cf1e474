"""The matrix that makes rows uncorrelated with unit variance, and the rank of their covariance.

Columns are brought to unit variance first, so that their units do not matter to the rank. A direction in which rows
vary no more than their values are rounded has no variance that could be known: it does not count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie.distances.distance import Array

ROUNDING = 8.0  # a direction counts if its standard deviation is more than so many times the rounding of its values
EPSILON = float(np.finfo(np.float64).eps)


class Whitening(NamedTuple):
    matrix: Array  # (d, d); columns beyond the rank are zero
    rank: int


def centered(rows: Array) -> tuple[Array, Array]:
    """The mean (d,), and the rows less it (n, d), in float64; a constant column gives exact zeros."""
    moved = rows.astype(np.float64) - rows[0].astype(np.float64)
    mean = moved.mean(axis=0)
    moved -= mean
    return rows[0] + mean, moved


def of_rows(moved: Array, rounding: Array) -> Whitening:
    """For rows less their mean (n, d), whose values are known to `rounding` (d,).

    By singular values of the rows, which see directions a million times fainter than eigenvalues of their covariance.
    """
    n, d = moved.shape
    exponent = np.frexp(np.abs(moved).max(axis=0))[1]
    scaled = np.ldexp(moved, -exponent)
    deviation = np.sqrt((scaled**2).sum(axis=0) / (n - 1))
    varies = deviation > 0
    scaled /= np.where(varies, deviation, 1.0)
    small = np.linalg.qr(scaled, mode="r") if n >= d else scaled
    spread, directions = np.linalg.svd(small, full_matrices=False)[1:]
    spread = spread / np.sqrt(n - 1)
    noise = np.where(varies, np.ldexp(rounding, -exponent) / np.where(varies, deviation, 1.0), 0.0)
    least = ROUNDING * np.sqrt(directions**2 @ noise**2) + ROUNDING * d * EPSILON * spread[0]
    return _whitening(directions.T, spread, spread > least, np.ldexp(np.where(varies, deviation, 1.0), exponent))


def of_shrunk(moved: Array, share: float, precision: float) -> Whitening | None:
    """For rows less their mean (n, d), whose covariance is moved by `share` towards a multiple of the identity."""
    (n, d), (scaled, exponent) = moved.shape, to_unit_size(moved)
    covariance = scaled.T @ scaled / (n - 1)
    found = of_covariance((1 - share) * covariance + share * np.eye(d) * np.trace(covariance) / d, precision)
    return None if found is None else found._replace(matrix=np.ldexp(found.matrix, -exponent))


def to_unit_size(values: Array) -> tuple[Array, int]:
    """Values times a power of two, so that the largest is about 1 and squares stay in range; and its exponent."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    return np.ldexp(values, -exponent), exponent


def of_covariance(covariance: Array, precision: float) -> Whitening | None:
    """For a covariance (d, d) known to the relative `precision`; None if it is not positive semi-definite."""
    spectrum = _spectrum(covariance, precision)
    if spectrum is None:
        return None
    squares, directions, counts, deviation = spectrum
    return _whitening(directions, np.sqrt(np.where(counts, squares, 1.0)), counts, deviation)


def of_inverse(inverse: Array, precision: float) -> Whitening | None:
    """For the inverse of a covariance (d, d), likewise."""
    spectrum = _spectrum(inverse, precision)
    if spectrum is None:
        return None
    squares, directions, counts, deviation = spectrum
    return _whitening(directions, 1 / np.sqrt(np.where(counts, squares, 1.0)), counts, 1 / deviation)


def _spectrum(matrix: Array, precision: float) -> tuple[Array, Array, Array, Array] | None:
    """Of a positive semi-definite matrix with unit diagonal: eigenvalues, eigenvectors, which eigenvalues are not 0.

    The last array holds the roots of the diagonal before. None if the matrix is not positive semi-definite.
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
    """From unit directions (d, m), the spread along each, and the standard deviation of each column."""
    matrix = np.zeros((len(deviation), len(deviation)))
    rank = int(np.count_nonzero(counts))
    matrix[:, :rank] = directions[:, counts] / spread[counts] / deviation[:, None]
    return Whitening(matrix, rank)
