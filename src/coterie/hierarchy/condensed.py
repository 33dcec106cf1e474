"""Square and condensed distance matrices, and the distances above the diagonal in strips of rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.distances.distance import as_distance, check_symmetric
from coterie.distances.pairwise import fit_and_prepare, pairwise
from coterie.distances.precomputed import as_square
from coterie.errors import InputError, ParameterError
from coterie.hierarchy.linkage_input import symmetric_matrix

UpperRows = Callable[[int, int], Array]


def upper_rows(X: Any, n: int, metric: Any, params: dict[str, Any]) -> UpperRows:
    """A function of `start` and `stop`: distances of these rows to all later ones. `X` are `n` rows or distances."""
    if is_precomputed(X, metric, params):
        return upper_rows_of(as_square_or_condensed(X, n), n)
    distance, A, _ = fit_and_prepare(as_distance(metric, **params), X)
    check_leaves(len(A), n)
    check_symmetric(distance, "d(x, y) and d(y, x) differ")

    return lambda start, stop: _above_diagonal(distance.table(A[start:stop], A[start:]))


def upper_rows_of(D: Array, n: int) -> UpperRows:
    """The same function for precomputed distances, square or condensed."""
    if D.ndim == 1:
        return lambda start, stop: D[row_start(n, start) : row_start(n, stop)]
    return lambda start, stop: _above_diagonal(D[start:stop, start:])


def square_distances(X: Any, n: int, metric: Any, params: dict[str, Any], n_jobs: int | None) -> Array:
    """All distances of the `n` rows (n, n)."""
    if is_precomputed(X, metric, params):
        D = symmetric_matrix(X)
    else:
        D = pairwise(X, metric=metric, n_jobs=n_jobs, **params)
    check_leaves(len(D), n)
    return D


def as_square_or_condensed(Y: Any, n: int, name: str = "X") -> Array:
    """Check that `Y` is a distance matrix of `n` objects, square (n, n) or condensed (n (n - 1) / 2,)."""
    if np.ndim(Y) != 1:
        D = as_square(Y, name)
        check_leaves(len(D), n, name)
        return D
    try:
        D = np.asarray(Y)
        D = np.ascontiguousarray(D, dtype=np.float32 if D.dtype == np.float32 else np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a distance matrix of numbers, square or condensed") from None
    if len(D) != row_start(n, n):
        raise InputError(
            f"{name} has {len(D)} distances: the condensed distance matrix of {n} leaves has {row_start(n, n)}"
        )
    invalid = np.flatnonzero(~np.isfinite(D) | (D < 0))
    if len(invalid):
        raise InputError(f"{name}[{invalid[0]}] is {D[invalid[0]]:g}: distances must be finite and at least 0")
    return D


def check_leaves(rows: int, n: int, name: str = "X") -> None:
    if rows != n:
        raise InputError(f"{name} has {rows} rows and the tree {n} leaves: pass the rows that the tree was made of")


def is_precomputed(X: Any, metric: Any, params: dict[str, Any]) -> bool:
    """Whether `X` are distances: metric='precomputed', or `X` has one dimension."""
    if isinstance(X, list | tuple):
        has_one_dimension = all(np.isscalar(value) for value in X)
    else:
        has_one_dimension = getattr(X, "ndim", None) == 1 and X.dtype != object  # not an array of series
    if not has_one_dimension and not (isinstance(metric, str) and metric == "precomputed"):
        return False
    if params:
        raise ParameterError(f"X are distances, which take no metric parameters; got {', '.join(params)}")
    return True


def row_start(n: int, i: int) -> int:
    """Position of the first distance of row `i` in a condensed distance matrix of `n` objects."""
    return i * n - i * (i + 1) // 2


def _above_diagonal(strip: Array) -> Array:
    rows, columns = strip.shape
    return strip[np.arange(columns) > np.arange(rows)[:, None]]
