"""Checks of what users give: distances of their own, and weights of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import machine
from coterie.core.errors import InputError
from coterie.data import opened
from coterie.data.frames import is_frame
from coterie.data.memory import as_weights
from coterie.data.scale import unsafe_exponent
from coterie.distances.distance import dense_rows
from coterie.distances.precomputed import as_square, put_symmetric

Array = np.ndarray[Any, Any]

STRIP = 1 << 21  # numbers of a strip of rows that is looked at at a time
# By itemsize: exponents of weights whose products with each other and with squared distances are in range.
LARGE_WEIGHT = {4: 24, 8: 100}
REMEDY = (
    "pass float32 (half the room), use method='single' or 'ward' on rows (they need no matrix), or cluster first by "
    "KMeans with a few thousand clusters, then its centers with their counts as sample_weight"
)


def matrix_room(n: int, dtype: Any) -> Array:
    """An (n, n) matrix, if there is memory for it."""
    machine.check_room(n * n * np.dtype(dtype).itemsize, f"the distances of {n} rows", REMEDY)
    return np.empty((n, n), dtype)


def square(X: Any) -> Array:
    """A copy of the user's distances as a symmetric matrix: from a square one, or a condensed vector."""
    X = opened(X)
    if np.ndim(X) == 1:
        return _from_condensed(_condensed(X))
    given = as_square(dense_rows(X) if is_frame(X) else X)
    if len(given) < 2:
        raise InputError(
            f"X has the distances of {len(given)} row: there is nothing to merge; pass those of at least 2"
        )
    D = matrix_room(len(given), given.dtype)
    put_symmetric(given, D)
    return D


def positive_weights(sample_weight: Any, n: int) -> Array:
    """Weights (n,), ones if not given."""
    weights = as_weights(sample_weight, n)
    if weights is None:
        return np.ones(n)
    if not weights.all():
        raise InputError(f"sample_weight is 0 for row {int(weights.argmin())}: drop rows that do not count")
    return weights


def in_range(weight: Array, dtype: Any) -> tuple[Array, int]:
    """Weights divided by a power of 4 where their products could leave the range of `dtype`, and the exponent of 2.

    `dtype` is that of the distances, in which merged clusters are computed.
    """
    exponent = unsafe_exponent(float(weight.max()), dtype, LARGE_WEIGHT[np.dtype(dtype).itemsize])
    exponent += exponent & 1
    return (np.ldexp(weight, -exponent), exponent) if exponent else (weight, 0)


def height(D: Array) -> int:
    """Rows of a strip."""
    return max(1, STRIP // max(1, D.shape[1]))


def _condensed(X: Any) -> Array:
    given = np.asarray(X)
    if given.dtype.kind not in "fiub":
        raise InputError(f"X must be numbers with metric='precomputed'; got {given.dtype}")
    return given if given.dtype == np.float32 else given.astype(np.float64, copy=False)


def _from_condensed(given: Array) -> Array:
    n = round((1 + np.sqrt(1 + 8 * len(given))) / 2)
    if n * (n - 1) // 2 != len(given) or n < 2:
        raise InputError(
            f"X of {len(given)} numbers is no condensed matrix: n rows have n (n - 1) / 2 distances, such as "
            f"{n * (n - 1) // 2} for n = {n}. For rows, pass metric='euclidean'; they need two dimensions"
        )
    _check_vector(given, n)
    D, first = matrix_room(n, given.dtype), 0
    for i in range(n):
        D[i, i], row = 0, given[first : first + n - 1 - i]
        D[i, i + 1 :] = row
        D[i + 1 :, i] = row
        first += n - 1 - i
    return D


def _check_vector(given: Array, n: int) -> None:
    bad = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
    if len(bad):
        rows, columns = np.triu_indices(n, 1) if n <= 4096 else (bad, bad)
        where = f"rows {rows[bad[0]]} and {columns[bad[0]]}" if n <= 4096 else f"place {bad[0]} of X"
        raise InputError(f"the distance of {where} is {given[bad[0]]}: distances must be finite and not negative")
