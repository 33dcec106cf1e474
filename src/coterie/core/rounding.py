"""Choices that do not depend on rounding.

The kernels that compute a distance depend on the number of rows and on the processor, and add in different orders.
Distances that are equal in exact arithmetic then differ in their last digits, which must not decide on the label of a
row. Nor must those of objectives decide which of two equally good results is returned.
"""

from collections.abc import Callable, Iterable
from functools import reduce
from math import isclose
from typing import Any, TypeVar

import numpy as np

from coterie.core.arrays import Array

UNITS = 16  # in the last place: larger differences of two distances are not due to rounding
Result = TypeVar("Result")
OF_SUMS = 1e-12  # relative: larger differences of two sums or means over all rows are not due to rounding


def rounding(dtype: Any) -> float:
    """Relative difference of two distances of this type that may be due to rounding."""
    return UNITS * float(np.finfo(dtype).eps)


def nearest(distances: Array, dtype: Any = None) -> Array:
    """Index of the smallest of each row of distances (n, k); the first of those that are equal up to rounding.

    They were computed in `dtype`, by default their own.
    """
    relative = rounding(distances.dtype if dtype is None else dtype)
    smallest = np.take_along_axis(distances, distances.argmin(axis=1)[:, None], 1)  # faster than the minimum
    return first_below(distances, smallest + relative * np.abs(smallest))


def first_below(values: Array, limit: Array) -> Array:
    """Index of the first value of each row (n, k) that is at most the `limit` (n, 1)."""
    index: Array = (values <= limit).argmax(axis=1).astype(np.int32)
    return index


def is_lower(key: Any, best: Any) -> bool:
    """Whether a result is better than the best so far by more than rounding: the first of equally good ones is kept.

    Keys are objectives, or tuples that end with one and are compared from the first value on.
    """
    if isinstance(key, tuple):
        return key[:-1] < best[:-1] or (key[:-1] == best[:-1] and is_lower(key[-1], best[-1]))
    return bool(key < best) and not isclose(key, best, rel_tol=OF_SUMS)


def first_lowest(results: Iterable[Result], key: Callable[[Result], Any]) -> Result:
    """The result with the lowest key, the first of those that are equal up to rounding."""
    return reduce(lambda best, result: result if is_lower(key(result), key(best)) else best, results)


def inclusive_radius(radius: float, dtype: Any) -> float:
    """The radius that includes distances of this type which equal `radius` up to rounding; finite in this type."""
    return min(radius * (1 + rounding(dtype)), float(np.finfo(dtype).max))
