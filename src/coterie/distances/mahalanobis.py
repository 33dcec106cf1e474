"""Mahalanobis distance: Euclidean distance of whitened rows."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage

from coterie import machine
from coterie.core.arguments import as_numbers, is_number
from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.data.scale_check import unsafe_exponent
from coterie.distances.euclidean import Euclidean, too_far_apart, weighted
from coterie.distances.whitening import Whitening, centered, of_covariance, of_rows, of_shrunk, to_unit_size
from coterie.errors import InputError, ParameterError, ScaleError

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
