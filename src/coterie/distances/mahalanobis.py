"""Mahalanobis distance: Euclidean distance of whitened rows."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage

from coterie import machine
from coterie.core.arguments import as_numbers, is_number
from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.data.scale_check import unsafe_exponent
from coterie.distances.euclidean import Euclidean, too_far_apart, weighted
from coterie.errors import InputError, ParameterError, ScaleError

# Whitening: the matrix that makes rows uncorrelated with unit variance, and the rank of their covariance.
# Columns are standardised first, so that the rank does not depend on their units. A direction is ignored if the rows
# vary in it by no more than the rounding errors of their values.

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


LARGEST_EXPONENT = 1000  # beyond it, means and inverse standard deviations leave the range of float64
REMEDIES = "remove such columns, or pass shrinkage='auto' or pseudo_inverse=True"


@stored("distance.Mahalanobis", origin_="none | real D", whitening_="none | real D D")
@dataclass(frozen=True)
class Mahalanobis(Euclidean):
    r"""Mahalanobis distance :math:`\bigl((x - y)^\top \Sigma^{-1} (x - y)\bigr)^{1/2}` [1]_.

    The covariance :math:`\Sigma` is `cov` (d, d) if given, or the inverse of `VI` (d, d). Otherwise it is that of the
    rows, shrunk by the share `shrinkage` towards a multiple of the identity with the same trace. `shrinkage` is a
    number from 0 to 1, or 'auto' for the share of Ledoit and Wolf [2]_, which suits tables with few rows and many
    columns.

    A singular covariance raises an error that states its rank. With ``pseudo_inverse=True`` it is accepted, and
    directions in which the rows do not vary are ignored. The rank is that of the correlation matrix, so the units of
    the columns do not matter. A direction is considered constant if its standard deviation is at most 8 times the
    rounding error of the values.

    .. [1] Mahalanobis (1936), On the generalised distance in statistics, Proc. Natl. Inst. Sci. India 2.
    .. [2] Ledoit & Wolf (2004), A well-conditioned estimator for large-dimensional covariance matrices, J. Multivar.
       Anal. 88.
    """

    cov: Any = None
    VI: Any = None
    shrinkage: Any = 0.0
    pseudo_inverse: bool = False
    origin_: Any = None  # (d,) subtracted from all rows, so that distance from the origin costs no digits
    whitening_: Any = None  # (d, d) rows times this matrix have unit covariance

    name = "mahalanobis"

    def __post_init__(self) -> None:
        if not isinstance(self.pseudo_inverse, bool | np.bool_):
            raise ParameterError(f"pseudo_inverse must be True or False; got {self.pseudo_inverse!r}")
        if self.cov is not None and self.VI is not None:
            raise ParameterError("pass either cov or its inverse VI, not both")

    @property
    def definite(self) -> bool:  # type: ignore[override]
        return not self.pseudo_inverse

    def fitted(self, X: Array, Y: Any = None) -> Self:
        rows = X if Y is None else np.concatenate([X, Y])
        if exponent := unsafe_exponent(float(np.abs(rows).max()), rows.dtype, LARGEST_EXPONENT):
            raise ScaleError(rows=exponent)
        with machine.one_blas_thread:  # so that the result does not depend on the number of threads
            if self.cov is None and self.VI is None:
                origin, whitening = self._estimated(rows)
                return replace(self, origin_=origin, whitening_=whitening.matrix, exponent_=0)
            origin, whitening = rows[0].astype(np.float64), self._from_matrix(X.shape[1])
        distance = replace(self, origin_=origin, whitening_=whitening.matrix)
        size = float(np.abs(distance._whitened(rows)).max())  # `cov` may have another unit than the rows
        return replace(distance, exponent_=unsafe_exponent(size, rows.dtype))

    def prepare(self, X: Array) -> Array:
        rows = self._whitened(X)
        with np.errstate(under="ignore"):
            rows = np.ldexp(rows, -self.exponent_) if self.exponent_ else rows
            return np.ascontiguousarray(rows, dtype=X.dtype)

    def _whitened(self, X: Array) -> Array:
        """Rows minus the origin, uncorrelated and with unit variance; in float64."""
        with machine.one_blas_thread, np.errstate(over="ignore", under="ignore", invalid="ignore"):
            rows: Array = weighted(X.astype(np.float64) - self.origin_, self.w, 0.5) @ self.whitening_
        if not np.isfinite(rows).all():
            raise too_far_apart(X.dtype)
        return rows

    def _from_matrix(self, d: int) -> Whitening:
        """The whitening of `cov`, or of the inverse of `VI`."""
        name, value = ("cov", self.cov) if self.VI is None else ("VI", self.VI)
        matrix = as_numbers(name, value, f"a symmetric ({d}, {d}) matrix of real numbers")
        kind = np.asarray(value).dtype
        precision = float(np.finfo(kind if kind.kind == "f" else np.float64).eps)
        if matrix.shape != (d, d):
            raise ParameterError(f"{name} must be a symmetric ({d}, {d}) matrix; its shape is {matrix.shape}")
        whitening = of_covariance(matrix, precision, is_inverse=name == "VI")
        if whitening is None:
            raise ParameterError(
                f"{name} must be a symmetric ({d}, {d}) matrix of finite numbers, positive semi-definite"
            )
        if whitening.rank < d and not self.pseudo_inverse:
            raise ParameterError(
                f"{name} has rank {whitening.rank}, but Mahalanobis distances of {d} columns need rank {d}: "
                "pass a matrix of full rank, or pseudo_inverse=True"
            )
        return whitening

    def _estimated(self, rows: Array) -> tuple[Array, Whitening]:
        n, d = rows.shape
        if n < 2:
            raise InputError("one row has no covariance: pass cov=")
        origin, centered_rows = centered(rows)
        share = self._share(centered_rows)
        if share == 0:
            whitening: Whitening | None = of_rows(centered_rows, np.abs(rows).max(axis=0) * np.finfo(rows.dtype).eps)
        else:
            whitening = of_shrunk(centered_rows, share, float(np.finfo(rows.dtype).eps))
        if whitening is None or (whitening.rank < d and not self.pseudo_inverse):
            rank = 0 if whitening is None else whitening.rank
            reason = f"{n} rows give at most rank {n - 1}" if n <= d else "some are constant, or combinations of others"
            raise InputError(
                f"the covariance of the rows is singular: it has rank {rank}, but X has {d} columns "
                f"({reason}): {REMEDIES}"
            )
        return origin, whitening

    def _share(self, centered_rows: Array) -> float:
        share = self.shrinkage
        if isinstance(share, str) and share == "auto":
            return float(ledoit_wolf_shrinkage(to_unit_size(centered_rows)[0], assume_centered=True))
        if not is_number(share) or not 0 <= share <= 1:
            raise ParameterError(f"shrinkage must be 'auto' or a number from 0 to 1; got {self.shrinkage!r}")
        return float(share)
