"""What makes columns comparable, learned from a matrix of which some rows are in memory at a time.

Sums run row after row, so that where one block of rows ends and the next begins changes no bit of them.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from coterie.jobs import Scale

BLOCK = 1 << 24  # bytes of rows that are looked at together
COLUMNS = 1 << 27  # bytes of columns that are sorted together

Matrix = NDArray[np.floating]
Vector = NDArray[np.floating]


def blocks(X: Matrix, like: Matrix | None = None) -> Iterator[Matrix]:
    """Rows one block after the other, as those of `like` are cut."""
    return (X[rows] for rows in _slices(X if like is None else like))


def _slices(X: Matrix) -> Iterator[slice]:
    """Where blocks are; a single column is one block, for NumPy adds its values up in another order."""
    n, d = X.shape
    rows = n if d <= 1 else max(1, BLOCK // (d * X.itemsize))
    return (slice(start, start + rows) for start in range(0, n, max(1, rows)))


def scaling(X: Matrix, scale: Scale, weight: Vector | None = None) -> tuple[Vector, Vector, NDArray[np.integer]]:
    """What is taken from each column, by what it is divided, and which columns needed another measure of spread.

    Values that are missing have no say; rows have as much as they weigh.
    """
    d, none = X.shape[1], np.empty(0, np.int64)
    if scale == "none" or d == 0:
        return np.zeros(d), np.ones(d), none
    if scale == "minmax":
        low, high = extremes(X, weight)
        return low, high - low, none
    if scale == "standard":
        middle = means(X, np.dtype(np.float64), weight)
        return middle, _deviations(X, middle, weight), none
    low, middle, high = quantiles(X, [0.25, 0.5, 0.75], weight)
    spread, odd = high - low, np.flatnonzero(high == low)
    if len(odd):
        spread[odd] = _deviations(X, means(X, np.dtype(np.float64), weight), weight)[odd]
    return middle, spread, odd


def scale_rows(X: Matrix, shift: Vector, spread: Vector) -> None:
    """Take `shift` from the rows and divide them by `spread`, in place."""
    if not shift.any() and (spread == 1.0).all():
        return
    for block in blocks(X):
        block[:] = (block - shift) / spread


def fill_rows(X: Matrix, values: Vector) -> None:
    """Put `values` where there are none, in place."""
    for block in blocks(X):
        holes = np.isnan(block)
        if holes.any():
            block[:] = np.where(holes, values, block)


def means(X: Matrix, dtype: np.dtype[np.floating], weight: Vector | None = None) -> Vector:
    """Of the values that are there; sums are of that type."""
    sums = _sums(X, lambda block: np.where(np.isnan(block), 0.0, block).astype(dtype, copy=False), weight)
    return (sums / _there(X, weight)).astype(dtype)


def extremes(X: Matrix, weight: Vector | None = None) -> tuple[Vector, Vector]:
    """The least and the largest value of each column, among rows that count."""
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    for rows in _slices(X):
        block = X[rows] if weight is None else X[rows][weight[rows] > 0]
        low = np.fmin(low, np.fmin.reduce(block, axis=0, initial=np.inf))
        high = np.fmax(high, np.fmax.reduce(block, axis=0, initial=-np.inf))
    return low, high


def quantiles(X: Matrix, at: list[float], weight: Vector | None = None) -> NDArray[np.float64]:
    """Of the values of each column that are there (len(at), d), some columns at a time.

    Values between two rows are on the line between them; with weights, where a row has no such share of its own, they
    are the mean of the two (NumPy's ``averaged_inverted_cdf``), which for the median is the same.
    """
    n, d = X.shape
    step = max(1, COLUMNS // max(1, n * 8))
    parts = []
    for j in range(0, d, step):
        values = X[:, j : j + step].astype(np.float64)
        if weight is None:
            parts.append(np.nanquantile(values, at, axis=0))
        else:
            parts.append(np.stack([_weighted_quantiles(x, at, weight) for x in values.T], axis=1))
    return np.hstack(parts)


def _weighted_quantiles(x: Vector, at: list[float], weight: Vector) -> Vector:
    counts = ~np.isnan(x) & (weight > 0)
    order = np.argsort(x[counts], kind="stable")
    values, mass = x[counts][order], np.cumsum(weight[counts][order])
    wanted = np.array(at) * mass[-1]
    first = np.searchsorted(mass, wanted, "left")
    after = np.minimum(np.searchsorted(mass, wanted, "right"), len(mass) - 1)
    middle: Vector = (values[first] + values[after]) / 2
    return middle


def _deviations(X: Matrix, middle: Vector, weight: Vector | None) -> Vector:
    def squares(block: Matrix) -> Matrix:
        away = np.where(np.isnan(block), 0.0, block - middle)
        return np.multiply(away, away, out=away)

    deviation: Vector = np.sqrt(_sums(X, squares, weight) / _there(X, weight))
    return deviation


def _sums(X: Matrix, function: Callable[[Matrix], Matrix], weight: Vector | None) -> Vector:
    """Sums over rows of `function`, which makes new rows of some."""
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


def _there(X: Matrix, weight: Vector | None) -> Vector:
    """How many values there are in each column, or how much they weigh."""
    if weight is not None:
        return _sums(X, lambda block: np.where(np.isnan(block), 0.0, 1.0), weight)
    counts: Vector = sum((np.count_nonzero(~np.isnan(block), axis=0) for block in blocks(X)), np.zeros(X.shape[1]))
    return counts
