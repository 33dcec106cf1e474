"""Scaling of columns, for a matrix that may be on disk.

Sums run row after row, so that block boundaries do not change a bit of them.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from coterie import machine
from coterie.preparation import Scale

BLOCK = 1 << 24  # bytes of rows processed together
COLUMNS = 1 << 27  # bytes of columns sorted together

Matrix = NDArray[np.floating]
Vector = NDArray[np.floating]
Exponents = NDArray[np.integer]  # of the powers of two by which columns are divided
SMALLEST = 2.0**-480  # standard deviation whose squares do not underflow


def blocks(X: Matrix, like: Matrix | None = None) -> Iterator[Matrix]:
    """Blocks of rows of `X`, with the boundaries of the blocks of `like`."""
    return (X[rows] for rows in _slices(X if like is None else like))


def _slices(X: Matrix) -> Iterator[slice]:
    """Block boundaries; a single column is one block, because NumPy sums it in a different order."""
    n, d = X.shape
    rows = n if d <= 1 else max(1, BLOCK // (d * X.itemsize))
    return (slice(start, start + rows) for start in range(0, n, max(1, rows)))


def fit_scale(X: Matrix, scale: Scale, weight: Vector | None = None) -> tuple[Vector, Vector, NDArray[np.integer]]:
    """Shift and spread of each column; and columns whose quartiles are equal, which get the standard deviation.

    Missing values are ignored; rows are weighted.
    """
    d, none = X.shape[1], np.empty(0, np.int64)
    if scale == "none" or d == 0:
        return np.zeros(d), np.ones(d), none
    if scale == "minmax":
        low, high = extremes(X, weight)
        return low, high - low, none
    if scale == "standard":
        mean = means(X, np.dtype(np.float64), weight)
        return mean, _standard_deviations(X, mean, weight), none
    low, median, high = quantiles(X, [0.25, 0.5, 0.75], weight)
    spread, no_range = high - low, np.flatnonzero(high == low)
    if len(no_range):
        spread[no_range] = _standard_deviations(X, means(X, np.dtype(np.float64), weight), weight)[no_range]
    return median, spread, no_range


def scale_rows(X: Matrix, shift: Vector, spread: Vector) -> None:
    """Subtract `shift` from the rows and divide them by `spread`, in place."""
    if not shift.any() and (spread == 1.0).all():
        return
    for block in blocks(X):
        block[:] = (block - shift) / spread


def fill_rows(X: Matrix, values: Vector) -> None:
    """Replace missing values by `values`, in place."""
    for block in blocks(X):
        is_missing = np.isnan(block)
        if is_missing.any():
            block[:] = np.where(is_missing, values, block)


def means(X: Matrix, dtype: np.dtype[np.floating], weight: Vector | None = None) -> Vector:
    """Means of the values that are not missing, with sums of that type."""

    def compute(exponents: Exponents | None) -> Vector:
        def present(block: Matrix) -> Matrix:
            values = np.where(np.isnan(block), 0.0, block).astype(dtype, copy=False)
            return values if exponents is None else np.ldexp(values, -exponents)

        return (_sums(X, present, weight) / _present_weight(X, weight)).astype(dtype)

    return _in_range(X, compute, 0.0)


def _in_range(X: Matrix, compute: Callable[["Exponents | None"], Vector], minimum: float) -> Vector:
    """Results in the units of the columns; if one may overflow or underflow, columns are divided by powers of two."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        result = compute(None)
        if np.isfinite(result).all() and (np.abs(result) >= minimum).all():
            return result
        largest = np.maximum(*np.abs(extremes(X)))
        exponents = np.frexp(np.where(np.isfinite(largest), largest, 0.0))[1]
        scaled: Vector = np.ldexp(compute(exponents), exponents)
    return scaled


def extremes(
    X: Matrix, weight: Vector | None = None, points: Callable[[Matrix], Matrix] = np.asarray, threads: int | None = 1
) -> tuple[Vector, Vector]:
    """Minimum and maximum of each column of the `points` of rows of positive weight, by default the rows themselves."""

    def of_block(rows: slice) -> tuple[Vector, Vector]:
        block = points(X[rows] if weight is None else X[rows][weight[rows] > 0])
        return np.fmin.reduce(block, axis=0, initial=np.inf), np.fmax.reduce(block, axis=0, initial=-np.inf)

    with machine.one_blas_thread:
        low, high = zip(*machine.in_threads(of_block, [(rows,) for rows in _slices(X)], threads), strict=True)
    return np.fmin.reduce(low).astype(np.float64), np.fmax.reduce(high).astype(np.float64)


def quantiles(X: Matrix, probabilities: list[float], weight: Vector | None = None) -> NDArray[np.float64]:
    """Quantiles of each column without missing values (len(probabilities), d), some columns at a time.

    They are interpolated linearly; with weights they are NumPy's ``averaged_inverted_cdf``, whose median is the same.
    Those of a column without values are NaN.
    """
    n, d = X.shape
    step = max(1, COLUMNS // max(1, n * 8))
    parts = [np.empty((len(probabilities), 0))]  # a mixture of categories has no columns of numbers
    for j in range(0, d, step):
        values = X[:, j : j + step].astype(np.float64)
        if weight is None:
            is_empty = np.isnan(values).all(axis=0)
            values[:, is_empty] = 0.0
            parts.append(np.where(is_empty, np.nan, np.nanquantile(values, probabilities, axis=0)))
        else:
            parts.append(np.stack([_weighted_quantiles(x, probabilities, weight) for x in values.T], axis=1))
    return np.hstack(parts)


def _weighted_quantiles(x: Vector, probabilities: list[float], weight: Vector) -> Vector:
    mask = ~np.isnan(x) & (weight > 0)
    if not mask.any():
        return np.full(len(probabilities), np.nan)
    order = np.argsort(x[mask], kind="stable")
    values, mass = x[mask][order], np.cumsum(weight[mask][order])
    targets = np.array(probabilities) * mass[-1]
    first = np.searchsorted(mass, targets, "left")
    last = np.minimum(np.searchsorted(mass, targets, "right"), len(mass) - 1)
    result: Vector = (values[first] + values[last]) / 2
    return result


def _standard_deviations(X: Matrix, mean: Vector, weight: Vector | None) -> Vector:
    def compute(exponents: Exponents | None) -> Vector:
        def squares(block: Matrix) -> Matrix:
            differences = np.where(np.isnan(block), 0.0, block - mean)
            differences = differences if exponents is None else np.ldexp(differences, -exponents)
            return np.multiply(differences, differences, out=differences)

        deviations: Vector = np.sqrt(_sums(X, squares, weight) / _present_weight(X, weight))
        return deviations

    return _in_range(X, compute, SMALLEST)


def _sums(X: Matrix, function: Callable[[Matrix], Matrix], weight: Vector | None) -> Vector:
    """Sums over rows of `function`, which returns a new array for a block."""
    total: Vector | None = None
    for rows in _slices(X):
        values = function(X[rows])
        if weight is not None:
            values *= weight[rows, np.newaxis]
        if total is not None:
            values[0] += total
        total = np.add.reduce(values, axis=0)
    assert total is not None
    return total


def _present_weight(X: Matrix, weight: Vector | None) -> Vector:
    """Number, or total weight, of the values of each column that are not missing."""
    if weight is not None:
        return _sums(X, lambda block: np.where(np.isnan(block), 0.0, 1.0), weight)
    counts: Vector = sum((np.count_nonzero(~np.isnan(block), axis=0) for block in blocks(X)), np.zeros(X.shape[1]))
    return counts
