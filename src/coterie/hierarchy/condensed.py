"""Square and condensed distance matrices, and the distances above the diagonal in strips of rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.arrays import Array
from coterie.data import opened
from coterie.data.frames import is_frame
from coterie.data.memory import as_weights
from coterie.data.scale_check import unsafe_exponent
from coterie.distances.distance import as_distance, check_symmetric, dense_rows
from coterie.distances.pairwise import as_square, fit_and_prepare, pairwise, put_symmetric
from coterie.errors import InputError, ParameterError

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


# Check precomputed distances and sample weights passed to `linkage`.

# By itemsize: exponents of weights whose products with each other and with squared distances are in range.
LARGE_WEIGHT = {4: 24, 8: 100}
REMEDY = (
    "pass float32 (half the memory), use method='single' or 'ward' on rows (they need no matrix), or first run "
    "KMeans with a few thousand clusters, then cluster its centers with their counts as sample_weight"
)


def empty_matrix(n: int, dtype: Any) -> Array:
    """Allocate an (n, n) matrix; raise an error if there is not enough memory."""
    machine.check_memory(n * n * np.dtype(dtype).itemsize, f"the distances of {n} rows", REMEDY)
    return np.empty((n, n), dtype)


def symmetric_matrix(X: Any) -> Array:
    """Copy precomputed distances, a square matrix or a condensed vector, to a symmetric matrix."""
    X = opened(X)
    if np.ndim(X) == 1:
        return _from_condensed(X)
    distances = as_square(dense_rows(X) if is_frame(X) else X)
    if len(distances) < 2:
        raise InputError(
            f"X has the distances of {len(distances)} row: there is nothing to merge; pass those of at least 2"
        )
    D = empty_matrix(len(distances), distances.dtype)
    put_symmetric(distances, D)
    return D


def positive_weights(sample_weight: Any, n: int) -> Array:
    """Sample weights (n,); ones if `sample_weight` is None."""
    weights = as_weights(sample_weight, n)
    if weights is None:
        return np.ones(n)
    if not weights.all():
        raise InputError(
            f"sample_weight is 0 for row {int(weights.argmin())}: weights must be positive; leave out rows of weight 0"
        )
    return weights


def scaled_weights(weight: Array, dtype: Any) -> tuple[Array, int]:
    """Divide weights by a power of 4 if products with distances could overflow `dtype`; and the exponent of 2."""
    exponent = unsafe_exponent(float(weight.max()), dtype, LARGE_WEIGHT[np.dtype(dtype).itemsize])
    exponent += exponent & 1
    return (np.ldexp(weight, -exponent), exponent) if exponent else (weight, 0)


def _from_condensed(X: Any) -> Array:
    condensed = np.asarray(X)
    if condensed.dtype.kind not in "fiub":
        raise InputError(f"X must be numbers with metric='precomputed'; got {condensed.dtype}")
    if condensed.dtype != np.float32:
        condensed = condensed.astype(np.float64, copy=False)
    n = round((1 + np.sqrt(1 + 8 * len(condensed))) / 2)
    if n * (n - 1) // 2 != len(condensed) or n < 2:
        raise InputError(
            f"X has {len(condensed)} numbers, which is not the length of a condensed distance matrix: n rows have "
            f"n (n - 1) / 2 distances, such as {n * (n - 1) // 2} for n = {n}. To cluster rows, pass an array with two "
            "dimensions and metric='euclidean'"
        )
    _check_condensed(condensed, n)
    D, first = empty_matrix(n, condensed.dtype), 0
    for i in range(n):
        D[i, i], row = 0, condensed[first : first + n - 1 - i]
        D[i, i + 1 :] = row
        D[i + 1 :, i] = row
        first += n - 1 - i
    return D


def _check_condensed(condensed: Array, n: int) -> None:
    bad = np.flatnonzero(~(np.isfinite(condensed) & (condensed >= 0)))
    if len(bad):
        rows, columns = np.triu_indices(n, 1) if n <= 4096 else (bad, bad)
        where = f"between rows {rows[bad[0]]} and {columns[bad[0]]}" if n <= 4096 else f"X[{bad[0]}]"
        raise InputError(f"the distance {where} is {condensed[bad[0]]}: distances must be finite and not negative")
