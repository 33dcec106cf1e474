"""Sums over columns: Minkowski distances, with the special cases Manhattan and Chebyshev, Canberra and Bray-Curtis."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from coterie import kernels
from coterie.core.arguments import is_number
from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.distances.distance import Distance
from coterie.distances.euclidean import Euclidean, as_column_weights, too_far_apart, weighted
from coterie.errors import InputError, ParameterError

KINDS = {1.0: 2, np.inf: 3}  # argument `kind` of the kernel `differences`, by p
SAFE_EXPONENT = 960  # of a power of two below which sums of values over the columns do not overflow


class _SumOfPowers(Distance):
    """The root `p` of a weighted sum of powers of differences; the largest difference for p = infinity.

    Its largest value is that of opposite corners of the bounding box; rows out of range are rejected.
    """

    p: Any
    w: Any

    by_differences = True

    def prepare(self, X: Array) -> Array:
        if self.p < np.inf:
            return weighted(X, self.w, 1 / self.p)
        return X if self.w is None else np.ascontiguousarray(X[:, as_column_weights(self.w, X.shape[1]) > 0])

    def between(self, A: Array, B: Array, out: Array) -> None:
        if self.p == 2:
            distance = Euclidean().fitted(A, B)
            distance.between(distance.prepare(A), distance.prepare(B), out)
        elif self.p in KINDS:
            kernels.select("pairwise", A, B).differences(A, B, KINDS[float(self.p)], 1.0, out)
        else:
            kernels.select("pairwise", A, B).minkowski(A, B, float(self.p), out)

    def fitted(self, X: Array, Y: Any = None) -> Self:
        with np.errstate(over="ignore", invalid="ignore"):
            rows = [self.prepare(part) for part in (X, Y) if part is not None]
            low = np.minimum.reduce([part.min(axis=0, keepdims=True) for part in rows])
            high = np.maximum.reduce([part.max(axis=0, keepdims=True) for part in rows])
            largest = self.table(low, high)
        if not np.isfinite(largest).all():
            raise too_far_apart(low.dtype)
        return self


@stored("distance.Manhattan")
@dataclass(frozen=True)
class Manhattan(_SumOfPowers):
    r"""Manhattan distance :math:`\sum_j w_j |x_j - y_j|`; the weights `w` are 1 by default."""

    w: Any = None

    name = "manhattan"
    p = 1.0


@stored("distance.Chebyshev")
@dataclass(frozen=True)
class Chebyshev(_SumOfPowers):
    r"""Chebyshev distance :math:`\max_j |x_j - y_j|`; columns with weight `w` = 0 are ignored."""

    w: Any = None

    name = "chebyshev"
    p = np.inf


@stored("distance.Minkowski")
@dataclass(frozen=True)
class Minkowski(_SumOfPowers):
    r"""Minkowski distance :math:`\bigl(\sum_j w_j |x_j - y_j|^p\bigr)^{1/p}` with `p` > 0; 2 is Euclidean.

    For `p` below 1 the triangle inequality does not hold.
    """

    p: float = 2.0
    w: Any = None

    name = "minkowski"

    def __post_init__(self) -> None:
        if not is_number(self.p) or not self.p > 0:
            raise ParameterError(f"p must be a number above 0; got {self.p!r}")

    @property
    def triangle(self) -> bool:  # type: ignore[override]
        return self.p >= 1


# Canberra and Bray-Curtis distance: differences relative to the size of the values.


@stored("distance.Canberra")
@dataclass(frozen=True)
class Canberra(Distance):
    r"""Canberra distance :math:`\sum_j w_j |x_j - y_j| / (|x_j| + |y_j|)`, where 0 / 0 = 0 [1]_.

    .. [1] Lance & Williams (1967), Mixed-data classificatory programs I, Aust. Comput. J. 1.
    """

    w: Any = None

    name = "canberra"

    def between(self, A: Array, B: Array, out: Array) -> None:
        halves = (0.5 * rows.astype(np.float64) for rows in (A, B))  # so that sums do not overflow
        out[:] = cdist(*halves, "canberra", w=None if self.w is None else as_column_weights(self.w, A.shape[1]))


@stored("distance.BrayCurtis")
@dataclass(frozen=True)
class BrayCurtis(Distance):
    r"""Bray-Curtis distance :math:`\sum_j w_j |x_j - y_j| / \sum_j w_j |x_j + y_j|`, for counts [1]_.

    The distance of two rows of zeros is 0. The triangle inequality does not hold. Values may be negative, but the
    distance of rows `x` and `-x` is not defined and raises an error.

    .. [1] Bray & Curtis (1957), An ordination of the upland forest communities of southern Wisconsin, Ecol. Monogr. 27.
    """

    w: Any = None

    name = "braycurtis"
    triangle = False
    definite = False  # it is definite only for values >= 0

    def prepare(self, X: Array) -> Array:
        rows = X if self.w is None else X * as_column_weights(self.w, X.shape[1]).astype(X.dtype)
        return np.ascontiguousarray(rows)

    def between(self, A: Array, B: Array, out: Array) -> None:
        exponent = max(0, int(np.frexp(max(np.abs(A).max(initial=0), np.abs(B).max(initial=0)))[1]) - SAFE_EXPONENT)
        out[:] = cdist(*(np.ldexp(rows.astype(np.float64), -exponent) for rows in (A, B)), "braycurtis")
        out[np.isnan(out)] = 0.0  # of two rows of zeros
        if not np.isfinite(out).all():
            raise InputError(
                "metric='braycurtis' is not defined for two rows whose values add up to 0 in every column: "
                "use values >= 0, or another metric"
            )
