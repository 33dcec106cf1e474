"""Core distances, mutual reachability and neighbourhoods from tables of distances, in NumPy: the definitions."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def core_distances(D: Array, weight: Array, min_weight: float, out: Array) -> None:
    """The smallest radius around each row of `D` (m, n) within which the columns have the minimum weight.

    Infinite if all columns together have less.
    """
    order = np.argsort(D, axis=1, kind="stable")
    is_enough = np.cumsum(weight[order], axis=1) >= min_weight
    column = is_enough.argmax(axis=1)
    radius = np.take_along_axis(D, np.take_along_axis(order, column[:, None], 1), 1)[:, 0]
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


def connect_within(D: Array, rows: Array, is_core: Array, eps: float, parent: Array) -> None:
    """Connect the core rows of the table, `rows` (m,), with all core rows within `eps`, by union-find."""
    for i, distances in zip(rows.tolist(), D, strict=True):
        if is_core[i]:
            for j in np.flatnonzero(is_core & (distances <= eps)).tolist():
                a, b = _root(parent, i), _root(parent, j)
                parent[max(a, b)] = min(a, b)


def lowest_label_within(D: Array, labels: Array, eps: float, out: Array) -> None:
    """The lowest label of the columns within `eps` of each row of `D` (m, n); -1 if all of them have the label -1."""
    candidates = np.where((eps >= D) & (labels >= 0), labels, np.iinfo(np.int32).max)
    lowest = candidates.min(axis=1)
    out[:] = np.where(lowest == np.iinfo(np.int32).max, -1, lowest)


def _root(parent: Array, i: int) -> int:
    while parent[i] != i:
        i = int(parent[i])
    return i
