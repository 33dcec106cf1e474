"""Kernel functions, evaluated in blocks of rows.

A kernel transforms rows once (`prepare`). `block` takes two sets of prepared rows and returns the matrix of their
kernel values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coterie.base import Summary
from coterie.core.arguments import is_number, one_of
from coterie.core.arrays import as_dense, is_sparse
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stored import stored
from coterie.distances.pairwise import largest_asymmetry
from coterie.errors import InputError, ParameterError

NAMES = ("linear", "rbf", "poly", "polynomial", "sigmoid", "cosine", "precomputed")
COLUMNS = 512  # columns of a tile; tiles have fixed edges, so that a value is identical whenever it is computed
MAX_PRODUCTS = 64  # degree up to which a power is computed as a product
LARGEST_DEGREE = 2**60  # all powers of larger degrees are 0, 1 or infinite
DIAGONAL_ROWS = 32  # rows of the square blocks that give the diagonal of a user-defined kernel


class Kernel:
    """Base class of kernels k(x, y), for dense rows or CSR matrices."""

    @property
    def is_definite(self) -> bool:
        """Whether it is positive semi-definite: no sum of a_i a_j k(x_i, x_j) is negative."""
        return True

    @property
    def factor(self) -> float:
        """Kernel values are in units of this factor."""
        return 1.0

    def prepare(self, X: Any) -> Any:
        """Rows in the form that `block` and `diagonal` need."""
        return X

    def block(self, X: Any, Y: Any) -> np.ndarray:
        """Kernel values (n, m), in the dtype of the rows."""
        raise NotImplementedError

    def diagonal(self, X: Any) -> np.ndarray:
        """k(x, x) of every row (n,), in float64."""
        raise NotImplementedError


class ProductKernel(Kernel):
    """Base class of kernels that are functions of inner products."""

    def block(self, X: Any, Y: Any) -> np.ndarray:
        return self._from_products(inner_products(X, Y))

    def diagonal(self, X: Any) -> np.ndarray:
        return self._from_products(squared_norms(X))

    def _from_products(self, values: np.ndarray) -> np.ndarray:
        return values


@stored("kernel.Linear")
@dataclass(frozen=True)
class Linear(ProductKernel):
    """x . y, centered and scaled to keep the numbers small. Neither changes which mean is nearest."""

    origin: np.ndarray | None  # (d,); None for sparse rows, which are not centered
    unit: float

    @property
    def factor(self) -> float:
        return self.unit**2

    def prepare(self, X: Any) -> Any:
        return shifted_and_scaled(X, self.origin, 1 / self.unit)


@stored("kernel.Rbf")
@dataclass(frozen=True)
class Rbf(Kernel):
    """exp(-gamma |x - y|^2). Rows are centered, because differences of rows far from the origin lose precision."""

    origin: np.ndarray | None  # (d,)
    gamma: float

    def prepare(self, X: Any) -> Any:
        with np.errstate(over="ignore"):
            X = shifted_and_scaled(X, self.origin, np.sqrt(self.gamma))
            largest = squared_norms(X).max(initial=0)
        if not largest < np.finfo(X.dtype).max / 8:
            raise InputError(
                f"gamma={self.gamma:g} times the squared distances in X overflows: lower gamma, or scale the columns"
            )
        return X

    def block(self, X: Any, Y: Any) -> np.ndarray:
        values = inner_products(X, Y)
        values *= 2
        values -= squared_norms(X).astype(values.dtype)[:, None]
        values -= squared_norms(Y).astype(values.dtype)
        np.minimum(values, 0, out=values)
        with np.errstate(under="ignore"):
            return np.exp(values, out=values)

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0])


@stored("kernel.Cosine")
@dataclass(frozen=True)
class Cosine(ProductKernel):
    """x . y / (|x| |y|); 0 if either row is zero."""

    def prepare(self, X: Any) -> Any:
        return unit_length(X)


@stored("kernel.Polynomial")
@dataclass(frozen=True)
class Polynomial(ProductKernel):
    """(gamma x . y + coef0)^degree"""

    gamma: float
    degree: int
    coef0: float

    @property
    def is_definite(self) -> bool:
        return self.coef0 >= 0

    def _from_products(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore"):
            values *= self.gamma
            values += self.coef0
            if self.degree > MAX_PRODUCTS:
                return values ** float(min(self.degree, LARGEST_DEGREE))
            power = values.copy()
            for _ in range(self.degree - 1):  # much faster than `**` for small degrees
                power *= values
        return power


@stored("kernel.Sigmoid")
@dataclass(frozen=True)
class Sigmoid(ProductKernel):
    """tanh(gamma x . y + coef0)"""

    gamma: float
    coef0: float

    is_definite = False

    def _from_products(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            values *= self.gamma
            values += self.coef0
        return np.tanh(values, out=values)


@dataclass(frozen=True)
class UserKernel(Kernel):
    """User-defined kernel: function(X, Y) -> (n, m)."""

    function: Callable[..., Any]
    params: Mapping[str, Any]

    is_definite = False

    def block(self, X: Any, Y: Any) -> np.ndarray:
        values = np.asarray(self.function(X, Y, **self.params))
        expected = X.shape[0], Y.shape[0]
        if values.shape != expected:
            raise ParameterError(
                f"kernel must return an array of shape {expected}, one value per pair of rows; got {values.shape}"
            )
        return np.ascontiguousarray(values, X.dtype)

    def diagonal(self, X: Any) -> np.ndarray:
        starts = range(0, X.shape[0], DIAGONAL_ROWS)
        blocks = (X[first : first + DIAGONAL_ROWS] for first in starts)
        return np.concatenate([self.block(rows, rows).diagonal() for rows in blocks]).astype(np.float64)


@stored("kernel.Precomputed")
@dataclass(frozen=True)
class Precomputed(Kernel):
    """The rows are already rows of the kernel matrix."""

    is_definite = False


def as_kernel(estimator: Any, source: Source, summary: Summary, exponent: int = 0) -> Kernel:
    """Kernel for these rows, from the options of `estimator`; the rows were divided by 2^exponent."""
    kernel, params = estimator.kernel, estimator.kernel_params
    if callable(kernel):
        return UserKernel(kernel, dict(params or {}))
    one_of("kernel", kernel, NAMES)
    if params:
        raise ParameterError(
            f"kernel_params requires a callable kernel, but kernel={kernel!r}: use gamma, degree and coef0 instead"
        )
    origin = None if is_sparse(getattr(source, "X", None)) else summary.mean
    if kernel == "precomputed":
        return Precomputed()
    if kernel == "linear":
        return Linear(origin, summary.unit)
    if kernel == "cosine":
        return Cosine()
    gamma = as_gamma(estimator.gamma, kernel, summary, exponent)
    if kernel == "rbf":
        return Rbf(origin, gamma)
    if kernel == "sigmoid":
        return Sigmoid(gamma, float(estimator.coef0))
    return Polynomial(gamma, int(estimator.degree), float(estimator.coef0))


def as_gamma(gamma: Any, kernel: str, summary: Summary, exponent: int = 0) -> float:
    """Gamma as a number, for rows that were divided by 2^exponent.

    'scale' is 1 / (sum of the variances of the columns), 'auto' is 1 / (number of columns).
    """
    if gamma is None:
        gamma = "scale" if kernel == "rbf" else "auto"
    if isinstance(gamma, str):
        if one_of("gamma", gamma, ("scale", "auto")) == "scale":
            total = float(summary.variance.sum())
            return 1 / total if total > 0 else 1.0
        gamma = 1 / len(summary.variance)
    if not is_number(gamma) or not 0 < gamma < np.inf:
        raise ParameterError(f"gamma must be None, 'scale', 'auto' or a finite number above 0; got {gamma!r}")
    with np.errstate(over="ignore", under="ignore"):
        scaled = float(np.ldexp(float(gamma), 2 * exponent))
    if not 0 < scaled < np.inf:
        raise InputError(
            f"gamma={gamma:g} times products of rows, whose values are up to about 2^{exponent}, leaves the range of "
            "float64: use gamma='scale', or divide X by a power of two"
        )
    return scaled


def check_matrix(K: Any) -> None:
    """Raise an error if `K` is not a square symmetric matrix."""
    if K.shape[0] != K.shape[1]:
        raise InputError(f"kernel='precomputed' needs a square kernel matrix X (n, n); its shape is {K.shape}")
    if not is_symmetric(K):
        difference, j, i = largest_asymmetry(K)
        raise InputError(
            f"kernel='precomputed' needs a symmetric X: X[{i}, {j}] = {K[i, j]:g} and X[{j}, {i}] = {K[j, i]:g} "
            f"differ by {difference:g}, the largest difference; use (X + X.T) / 2"
        )


def is_symmetric(K: np.ndarray) -> bool:
    """Whether `K` is square and symmetric except for rounding."""
    if K.shape[0] != K.shape[1]:
        return False
    return bool(largest_asymmetry(K)[0] <= np.sqrt(np.finfo(K.dtype).eps) * np.abs(K).max(initial=0))


def check_kernel_values(values: np.ndarray) -> np.ndarray:
    """These values, or sums of them; `InputError` if some are not finite."""
    if not np.isfinite(values).all():
        raise InputError("the kernel returns NaN or infinity for rows of X: scale the columns, or use another kernel")
    return values


def kernel_matrix(kernel: Kernel, source: Any, engine: Engine) -> Any:
    """Source of the rows of the kernel matrix, with `y` from `diagonal_and_duplicates`; None if memory is too small."""
    n = source.shape[0]
    try:
        K = np.empty((n, n), source.dtype)
    except MemoryError:
        return None
    views = [K[first : first + source.chunk_rows] for first in range(0, n, source.chunk_rows)]
    rows = kernel.prepare(source.X)
    diagonal = engine.map(partial(_fill, kernel, rows), source, views)
    return replace(
        source, X=K, y=diagonal_and_duplicates(np.concatenate(diagonal), first_equal_rows(rows)), columns=None
    )


def diagonal_and_duplicates(diagonal: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(n, 2): k(x, x), and the index of the first equal row."""
    return np.column_stack([diagonal.astype(np.float64), first])


def first_equal_rows(X: Any) -> np.ndarray:
    """Index of the first row that equals each row (n,)."""
    first: dict[bytes, int] = {}
    if is_sparse(X):
        spans = zip(X.indptr, X.indptr[1:], strict=False)
        keys = (X.indices[start:stop].tobytes() + X.data[start:stop].tobytes() for start, stop in spans)
    else:
        keys = (row.tobytes() for row in X)
    return np.array([first.setdefault(key, i) for i, key in enumerate(keys)], np.int64)


def _fill(kernel: Kernel, rows: Any, chunk: Chunk, out: np.ndarray) -> np.ndarray:
    X = kernel.prepare(chunk.X)
    for first in range(0, rows.shape[0], COLUMNS):
        out[:, first : first + COLUMNS] = kernel.block(X, rows[first : first + COLUMNS])
    return kernel.diagonal(X)


def inner_products(X: Any, Y: Any) -> np.ndarray:
    """Inner products of all rows of X with all rows of Y (n, m)."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return as_dense(X @ Y.T)


def squared_norms(X: Any) -> np.ndarray:
    """Squared length of every row, in float64."""
    with np.errstate(over="ignore", under="ignore"):
        if is_sparse(X):
            return X.astype(np.float64).power(2) @ np.ones(X.shape[1])
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def shifted_and_scaled(X: Any, origin: np.ndarray | None, scale: float) -> Any:
    """Rows minus `origin`, times `scale`, in the same dtype. Sparse rows stay sparse if there is no origin."""
    if is_sparse(X) and origin is not None:
        X = X.toarray()
    wide = X.astype(np.float64)
    return ((wide if origin is None else wide - origin) * scale).astype(X.dtype)


def unit_length(X: Any) -> Any:
    """Rows at unit length; rows of zeros stay zero. Dividing by the largest value first avoids overflow."""
    wide = X.astype(np.float64)
    wide = _divided(wide, as_dense(abs(wide).max(axis=1)).ravel())
    return _divided(wide, np.sqrt(squared_norms(wide))).astype(X.dtype)


def _divided(X: Any, sizes: np.ndarray) -> Any:
    """Rows divided by their sizes (n,), unless these are 0."""
    divisors = np.where(sizes > 0, sizes, 1)
    if is_sparse(X):
        return type(X)((X.data / np.repeat(divisors, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)
    return X / divisors[:, None]
