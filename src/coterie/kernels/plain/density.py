"""Core distances, mutual reachability and neighbourhoods from tables of distances, in NumPy: the definitions."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def core_distances(D: Array, weight: Array, min_weight: float, out: Array) -> None:
    """The smallest radius around each row of `D` (m, n) within which the columns have the minimum weight.

    Infinite if all columns together have less.
    """
    lightest = np.cumsum(np.sort(weight))
    count = min(1 + int(np.searchsorted(lightest, min_weight)), len(weight))  # of columns that have enough weight
    nearest = np.argpartition(D, count - 1, axis=1)[:, :count]
    radii = np.take_along_axis(D, nearest, 1)
    order = np.argsort(radii, axis=1)
    is_enough = np.cumsum(np.take_along_axis(weight[nearest], order, 1), axis=1) >= min_weight
    radius = np.take_along_axis(radii, np.take_along_axis(order, is_enough.argmax(axis=1)[:, None], 1), 1)[:, 0]
    out[:] = np.where(is_enough.any(axis=1), radius, np.inf)


def nearest_reachable(D: Array, core_of_rows: Array, core: Array, tolerance: float, index: Array, value: Array) -> None:
    """The column with the smallest mutual reachability distance to each row of `D` (m, n).

    Of columns with equal ones it is the nearest, and of equally near ones the first.
    index, value (m,) are the column and the mutual reachability distance; distances are equal up to a `tolerance`.
    """
    reach = np.maximum(np.maximum(D, core), core_of_rows[:, None])
    value[:] = reach.min(axis=1)
    among = np.where(reach <= value[:, None] * (1 + tolerance), D, np.inf)
    index[:] = (among <= among.min(axis=1, keepdims=True) * (1 + tolerance)).argmax(axis=1)


def weights_within(D: Array, weight: Array, eps: float, out: Array) -> None:
    """The weight of the columns within the distance `eps` of each row of `D` (m, n)."""
    out[:] = (eps >= D) @ weight


def connect_within(D: Array, first: int, eps: float, parent: Array) -> None:
    """Connect the rows of the table with its columns within `eps`, by union-find; row and column 0 are row `first`.

    The root of a tree is its first row.
    """
    a, b = (first + ends for ends in np.nonzero(eps >= D))
    while True:
        parent[:] = roots(parent)
        a, b = parent[a], parent[b]
        is_apart = a != b
        if not is_apart.any():
            return
        a, b = a[is_apart], b[is_apart]
        np.minimum.at(parent, np.maximum(a, b), np.minimum(a, b))


def roots(parent: Array) -> Array:
    """The root of each row in a union-find forest (n,)."""
    while not np.array_equal(parent, above := parent[parent]):
        parent = above
    return parent


def lowest_label_within(D: Array, labels: Array, eps: float, out: Array) -> None:
    """The lowest label of the columns within `eps` of each row of `D` (m, n); -1 if all of them have the label -1."""
    candidates = np.where((eps >= D) & (labels >= 0), labels, np.iinfo(np.int32).max)
    lowest = candidates.min(axis=1)
    out[:] = np.where(lowest == np.iinfo(np.int32).max, -1, lowest)
