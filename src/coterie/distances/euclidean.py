"""Euclidean distance and its variants: squared, standardised, and with missing values."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from coterie import kernels
from coterie.core.arguments import as_numbers
from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.data.scale_check import unsafe_exponent
from coterie.distances.distance import Distance, dense_rows
from coterie.errors import InputError, ParameterError


@dataclass(frozen=True)
class SumOfSquares(Distance):
    """A distance that is a sum of squares, or its square root."""

    w: Any = None
    exponent_: int = 0  # rows are divided by 2^exponent_, if their squares would overflow or underflow

    root = True

    def fitted(self, X: Array, Y: Any = None) -> Self:
        rows = [weighted(part, self.w, 0.5) for part in (X, Y) if part is not None]
        size = max(float(max(part.max(initial=0), -part.min(initial=0))) for part in rows)
        return replace(self, exponent_=unsafe_exponent(size, np.result_type(*rows)))

    def prepare(self, X: Array) -> Array:
        rows = weighted(X, self.w, 0.5)
        return np.ldexp(rows, -self.exponent_) if self.exponent_ else rows

    def up_to_scale(self) -> Self:
        return replace(self, exponent_=0)

    def put_to_scale(self, values: Array) -> None:
        if self.root:
            multiply(values, self.exponent_)
        elif self.exponent_:
            exponent, limits = 2 * self.exponent_, np.finfo(values.dtype)
            if not limits.minexp < exponent < limits.maxexp:
                raise InputError(
                    f"X has values up to about 2^{self.exponent_}, whose squared distances {values.dtype} cannot "
                    "represent: use metric='euclidean', or divide X by a power of two first"
                )
            multiply(values, exponent)


@stored("distance.Euclidean")
@dataclass(frozen=True)
class Euclidean(SumOfSquares):
    r"""Euclidean distance :math:`\bigl(\sum_j w_j (x_j - y_j)^2\bigr)^{1/2}`; the weights `w` are 1 by default.

    Distances of this class are Euclidean distances of the prepared rows.
    """

    name = "euclidean"
    by_differences = True
    factor = 1.0

    def between(self, A: Array, B: Array, out: Array) -> None:
        kernels.select("pairwise", A, B).differences(A, B, 1 if self.root else 0, self.factor, out)
        self.put_to_scale(out)


@stored("distance.SquaredEuclidean")
@dataclass(frozen=True)
class SquaredEuclidean(Euclidean):
    r"""Squared Euclidean distance :math:`\sum_j w_j (x_j - y_j)^2`. The triangle inequality does not hold."""

    name = "sqeuclidean"
    root = False
    triangle = False


@stored("distance.StandardizedEuclidean", deviations_="none | real D")
@dataclass(frozen=True)
class StandardizedEuclidean(Euclidean):
    r"""Standardised Euclidean distance :math:`\bigl(\sum_j (x_j - y_j)^2 / V_j\bigr)^{1/2}`.

    By default the variances `V` are those of all rows of `X` and `Y`, with divisor n - 1. Constant columns are ignored.
    """

    V: Any = None
    deviations_: Any = None  # (d,) square roots of V, which are in range for rows of any scale

    name = "seuclidean"

    def __post_init__(self) -> None:
        if self.w is not None:
            raise ParameterError("metric='seuclidean' takes variances V, not weights w: use metric='euclidean' for w")

    def fitted(self, X: Array, Y: Any = None) -> Self:
        if self.V is None:
            rows = (X if Y is None else np.concatenate([X, Y])).astype(np.float64)
            if len(rows) < 2:
                raise InputError("one row has no variance: pass V=")
            size = np.frexp(np.abs(rows).max(axis=0))[1]  # scales each column, so that squares stay in range
            deviations = np.ldexp(np.ldexp(rows, -size).std(axis=0, ddof=1), size)
        else:
            variances = as_column_weights(self.V, X.shape[1], "V")
            if not (variances > 0).all():
                raise ParameterError(
                    f"V must be positive for every column; got {self.V!r}: remove columns with variance 0"
                )
            deviations = np.sqrt(variances)
        return replace(self, deviations_=deviations)

    def prepare(self, X: Array) -> Array:
        varies = self.deviations_ > 0
        scaled = X / np.where(varies, self.deviations_, 1.0)  # the inverse of a subnormal number would be infinite
        return np.where(varies, scaled, 0.0).astype(X.dtype, order="C")


@stored("distance.NanEuclidean")
@dataclass(frozen=True)
class NanEuclidean(SumOfSquares):
    r"""Euclidean distance with missing values, :math:`\bigl(\frac{d}{|J|} \sum_{j \in J} (x_j - y_j)^2\bigr)^{1/2}`.

    J are the columns in which neither row is NaN. It equals `nan_euclidean_distances` of scikit-learn, except that two
    rows without a common column raise an error. The triangle inequality does not hold.
    """

    name = "nan_euclidean"
    triangle = False
    definite = False

    def rows(self, X: Any, name: str = "X") -> Any:
        return np.ascontiguousarray(dense_rows(X, name, allows_missing=True))

    def fitted(self, X: Array, Y: Any = None) -> Self:
        return super().fitted(np.nan_to_num(X), None if Y is None else np.nan_to_num(Y))

    def between(self, A: Array, B: Array, out: Array) -> None:
        kernels.select("pairwise", A, B).nan_euclidean(A, B, out)
        check_common_columns(out)
        self.put_to_scale(out)


def check_common_columns(distances: Array) -> None:
    """Raise an error if a distance is NaN, because two rows have no common column."""
    if np.isnan(distances).any():
        raise InputError(
            "two rows have no column in which both have a value: remove rows or columns with many missing values"
        )


def multiply(values: Array, exponent: int) -> None:
    """Multiply distances by 2^exponent in place."""
    if exponent == 0:
        return
    with np.errstate(over="ignore", under="ignore"):
        np.ldexp(values, exponent, out=values)
    if not np.isfinite(values).all():
        raise too_far_apart(values.dtype)


def too_far_apart(dtype: Any) -> InputError:
    """The error for rows whose distances are infinite."""
    return InputError(f"X has rows whose distances {dtype} cannot represent: divide X by a power of two first")


def weighted(X: Array, w: Any, power: float) -> Array:
    """Columns times ``w ** power``, so that sums of powers of their differences are weighted by `w`."""
    if w is None:
        return X
    return np.ascontiguousarray(X * (as_column_weights(w, X.shape[1]) ** power).astype(X.dtype))


def as_column_weights(w: Any, d: int, name: str = "w") -> Array:
    """Check weights of columns (d,): finite, >= 0, and not all 0; None means 1 for all."""
    if w is None:
        return np.ones(d)
    weights: Array = as_numbers(name, w, f"numbers, one for each of the {d} columns")
    if weights.shape != (d,):
        raise ParameterError(f"{name} must be one number for each of the {d} columns; its shape is {weights.shape}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ParameterError(f"{name} must be finite and >= 0, and not 0 for every column")
    return weights
