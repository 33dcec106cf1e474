"""Kernels: products of rows in a space that has no coordinates, in blocks.

A kernel brings rows into its own form once (`ready`), and takes two such sets of rows to the block of their products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coterie.base import Summary
from coterie.core.arguments import one_of
from coterie.core.errors import InputError, ParameterError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stored import stored

NAMES = ("linear", "rbf", "poly", "polynomial", "sigmoid", "cosine", "precomputed")
COLUMNS = 512  # of a tile: its bounds are fixed, so that a product has the same bits whenever it is computed
OWN_DIAGONAL = 32  # rows of the square blocks that the diagonal of a user's kernel is taken from


class Kernel:
    """k(x, y) for rows dense or CSR; what it is not told otherwise, a subclass takes from here."""

    definite = True  # no sum of a_i a_j k(x_i, x_j) is negative
    factor = 1.0  # values are in units of this

    def ready(self, X: Any) -> Any:
        """The rows as `block` and `diagonal` want them."""
        return X

    def block(self, X: Any, Y: Any) -> np.ndarray:
        """(n, m) in the type of the rows."""
        raise NotImplementedError

    def diagonal(self, X: Any) -> np.ndarray:
        """k(x, x) of every row (n,), in float64."""
        raise NotImplementedError


@stored("kernel.Linear")
@dataclass(frozen=True)
class Linear(Kernel):
    """x . y, about an origin and in a unit that keep the numbers small: neither moves a row nearer to any mean."""

    origin: np.ndarray | None  # (d,); None: where it is, for sparse rows
    unit: float

    @property
    def factor(self) -> float:
        return self.unit**2

    def ready(self, X: Any) -> Any:
        return moved(X, self.origin, 1 / self.unit)

    def block(self, X: Any, Y: Any) -> np.ndarray:
        return products(X, Y)

    def diagonal(self, X: Any) -> np.ndarray:
        return squares(X)


@stored("kernel.Rbf")
@dataclass(frozen=True)
class Rbf(Kernel):
    """exp(-gamma |x - y|^2), of rows moved to an origin among them: far from it differences would drown in rounding."""

    origin: np.ndarray | None  # (d,)
    gamma: float

    def ready(self, X: Any) -> Any:
        with np.errstate(over="ignore"):
            X = moved(X, self.origin, np.sqrt(self.gamma))
            largest = squares(X).max(initial=0)
        if not largest < np.finfo(X.dtype).max / 8:
            raise InputError(f"gamma={self.gamma:g} times squared distances in X overflows: lower gamma, or scale X")
        return X

    def block(self, X: Any, Y: Any) -> np.ndarray:
        found = products(X, Y)
        found *= 2
        found -= squares(X).astype(found.dtype)[:, None]
        found -= squares(Y).astype(found.dtype)
        np.minimum(found, 0, out=found)
        with np.errstate(under="ignore"):
            return np.exp(found, out=found)

    def diagonal(self, X: Any) -> np.ndarray:
        return np.ones(X.shape[0])


@stored("kernel.Cosine")
@dataclass(frozen=True)
class Cosine(Kernel):
    """x . y / (|x| |y|); 0 where either is zero."""

    def ready(self, X: Any) -> Any:
        return unit_length(X)

    def block(self, X: Any, Y: Any) -> np.ndarray:
        return products(X, Y)

    def diagonal(self, X: Any) -> np.ndarray:
        return squares(X)


@stored("kernel.Polynomial")
@dataclass(frozen=True)
class Polynomial(Kernel):
    """(gamma x . y + coef0)^degree"""

    gamma: float
    degree: int
    coef0: float

    @property
    def definite(self) -> bool:
        return self.coef0 >= 0

    def block(self, X: Any, Y: Any) -> np.ndarray:
        return self._of(products(X, Y))

    def diagonal(self, X: Any) -> np.ndarray:
        return self._of(squares(X))

    def _of(self, found: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore"):
            found *= self.gamma
            found += self.coef0
            power = found.copy()
            for _ in range(self.degree - 1):  # far faster than a power, for degrees that anyone uses
                power *= found
        return power


@stored("kernel.Sigmoid")
@dataclass(frozen=True)
class Sigmoid(Kernel):
    """tanh(gamma x . y + coef0)"""

    gamma: float
    coef0: float

    definite = False

    def block(self, X: Any, Y: Any) -> np.ndarray:
        return self._of(products(X, Y))

    def diagonal(self, X: Any) -> np.ndarray:
        return self._of(squares(X))

    def _of(self, found: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            found *= self.gamma
            found += self.coef0
        return np.tanh(found, out=found)


@dataclass(frozen=True)
class Own(Kernel):
    """A function of the user: function(X, Y) -> (n, m)."""

    function: Callable[..., Any]
    params: Mapping[str, Any]

    definite = False

    def block(self, X: Any, Y: Any) -> np.ndarray:
        found = np.asarray(self.function(X, Y, **self.params))
        wanted = X.shape[0], Y.shape[0]
        if found.shape != wanted:
            raise ParameterError(
                f"kernel must return the products of all rows of its arguments, shape {wanted}; got {found.shape}"
            )
        return np.ascontiguousarray(found, X.dtype)

    def diagonal(self, X: Any) -> np.ndarray:
        starts = range(0, X.shape[0], OWN_DIAGONAL)
        blocks = (X[first : first + OWN_DIAGONAL] for first in starts)
        return np.concatenate([self.block(rows, rows).diagonal() for rows in blocks]).astype(np.float64)


@stored("kernel.Precomputed")
@dataclass(frozen=True)
class Precomputed(Kernel):
    """Rows are rows of the kernel matrix already."""

    definite = False


def as_kernel(estimator: Any, source: Source, summary: Summary) -> Kernel:
    """The kernel that the options of `estimator` mean for these rows."""
    kernel, given = estimator.kernel, estimator.kernel_params
    if callable(kernel):
        return Own(kernel, dict(given or {}))
    one_of("kernel", kernel, NAMES)
    if given:
        raise ParameterError(
            f"kernel_params are for a kernel of your own; kernel={kernel!r} takes gamma, degree, coef0"
        )
    origin = None if hasattr(getattr(source, "X", None), "indptr") else summary.mean
    if kernel == "precomputed":
        return Precomputed()
    if kernel == "linear":
        return Linear(origin, summary.unit)
    if kernel == "cosine":
        return Cosine()
    gamma = as_gamma(estimator.gamma, kernel, summary)
    if kernel == "rbf":
        return Rbf(origin, gamma)
    if kernel == "sigmoid":
        return Sigmoid(gamma, float(estimator.coef0))
    return Polynomial(gamma, int(estimator.degree), float(estimator.coef0))


def as_gamma(gamma: Any, kernel: str, summary: Summary) -> float:
    """'scale' is 1 over the variances of all columns together, 'auto' 1 over how many columns there are."""
    if gamma is None:
        gamma = "scale" if kernel == "rbf" else "auto"
    if isinstance(gamma, str):
        if one_of("gamma", gamma, ("scale", "auto")) == "auto":
            return 1 / len(summary.variance)
        total = float(summary.variance.sum())
        return 1 / total if total > 0 else 1.0
    if isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or not 0 < gamma < np.inf:
        raise ParameterError(f"gamma must be None, 'scale', 'auto' or a finite number above 0; got {gamma!r}")
    return float(gamma)


def check_matrix(K: Any) -> None:
    """Refuses what is no kernel matrix: not square, or not the same above the diagonal as below."""
    if K.shape[0] != K.shape[1]:
        raise InputError(f"kernel='precomputed' needs the products of all rows, a square X; its shape is {K.shape}")
    if not is_symmetric(K):
        most, (i, j), _ = asymmetry(K)
        raise InputError(
            f"kernel='precomputed' needs a symmetric X: X[{i}, {j}] = {K[i, j]:g} and X[{j}, {i}] = {K[j, i]:g} "
            f"differ by {most:g}, the most of all; (X + X.T) / 2 is symmetric"
        )


def is_symmetric(K: np.ndarray) -> bool:
    """Square, and but for rounding its own mirror image."""
    if K.shape[0] != K.shape[1]:
        return False
    most, _, size = asymmetry(K)
    return bool(most <= np.sqrt(np.finfo(K.dtype).eps) * size)


def asymmetry(K: np.ndarray, tile: int = COLUMNS) -> tuple[float, tuple[int, int], float]:
    """The largest difference between an entry and its mirror image, where it is, and the largest entry."""
    most, where, size = 0.0, (0, 0), 0.0
    for i in range(0, len(K), tile):
        for j in range(0, i + tile, tile):
            block = K[i : i + tile, j : j + tile]
            size = max(size, float(np.abs(block).max(initial=0)))
            apart = np.abs(block.astype(np.float64) - K[j : j + tile, i : i + tile].T)
            if apart.max(initial=0) > most:
                r, c = np.unravel_index(apart.argmax(), apart.shape)
                most, where = float(apart[r, c]), (i + int(r), j + int(c))
    return most, where, size


def kernel_matrix(kernel: Kernel, source: Any, engine: Engine) -> Any:
    """The source with products for rows, `facts` as what is known of each; None where memory has no room for it."""
    n = source.shape[0]
    try:
        K = np.empty((n, n), source.dtype)
    except MemoryError:
        return None
    views = [K[first : first + source.chunk_rows] for first in range(0, n, source.chunk_rows)]
    rows = kernel.ready(source.X)
    diagonal = engine.map(partial(_fill, kernel, rows), source, views)
    return replace(source, X=K, y=facts(np.concatenate(diagonal), first_alike(rows)), columns=None)


def facts(diagonal: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(n, 2): k(x, x), and the number of the first row that is the same."""
    return np.column_stack([diagonal.astype(np.float64), first])


def first_alike(X: Any) -> np.ndarray:
    """The number of the first row that equals each (n,)."""
    numbers: dict[bytes, int] = {}
    if hasattr(X, "indptr"):
        spans = zip(X.indptr, X.indptr[1:], strict=False)
        keys = (X.indices[start:stop].tobytes() + X.data[start:stop].tobytes() for start, stop in spans)
    else:
        keys = (row.tobytes() for row in X)
    return np.array([numbers.setdefault(key, i) for i, key in enumerate(keys)], np.int64)


def _fill(kernel: Kernel, rows: Any, chunk: Chunk, out: np.ndarray) -> np.ndarray:
    X = kernel.ready(chunk.X)
    for first in range(0, rows.shape[0], COLUMNS):
        out[:, first : first + COLUMNS] = kernel.block(X, rows[first : first + COLUMNS])
    return kernel.diagonal(X)


def products(X: Any, Y: Any) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        found = X @ Y.T
    return found.toarray() if hasattr(found, "toarray") else found


def squares(X: Any) -> np.ndarray:
    """The squared length of every row, in float64."""
    with np.errstate(over="ignore", under="ignore"):
        if hasattr(X, "indptr"):
            return _row_sums(X, X.data.astype(np.float64) ** 2)
        return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def moved(X: Any, origin: np.ndarray | None, scale: float) -> Any:
    """The rows about `origin`, times `scale`, in their own type; sparse ones stay so where they need not be moved."""
    if hasattr(X, "indptr") and origin is not None:
        X = X.toarray()
    if hasattr(X, "indptr"):
        return type(X)(((X.data.astype(np.float64) * scale).astype(X.dtype), X.indices, X.indptr), shape=X.shape)
    wide = X.astype(np.float64)
    return ((wide if origin is None else wide - origin) * scale).astype(X.dtype)


def unit_length(X: Any) -> Any:
    """The rows at unit length, by way of their largest values, whose squares do; rows of zeros as they are."""
    if hasattr(X, "indptr"):
        wide, rows = X.data.astype(np.float64), np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        largest = np.zeros(X.shape[0])
        np.maximum.at(largest, rows, np.abs(wide))
        wide /= _or_one(largest)[rows]
        wide /= _or_one(np.sqrt(_row_sums(X, wide**2)))[rows]
        return type(X)((wide.astype(X.dtype), X.indices, X.indptr), shape=X.shape)
    wide = X.astype(np.float64)
    wide /= _or_one(np.abs(wide).max(axis=1))[:, None]
    wide /= _or_one(np.sqrt(squares(wide)))[:, None]
    return wide.astype(X.dtype)


def _or_one(sizes: np.ndarray) -> np.ndarray:
    return np.where(sizes > 0, sizes, 1)


def _row_sums(X: Any, values: np.ndarray) -> np.ndarray:
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.bincount(rows, values, X.shape[0])
