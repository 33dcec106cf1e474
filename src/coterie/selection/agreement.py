"""How far two divisions of the same rows agree, from the table of what they share."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def contingency_table(first: Array, second: Array, w: Array | None = None) -> Array:
    """The weight of the rows that are in cluster i of the first and j of the second division (k, m).

    Labels are whole numbers from 0; rows where one of them is below 0 have no label there, and are left out.
    """
    both = (first >= 0) & (second >= 0)
    if not both.all():
        first, second, w = first[both], second[both], None if w is None else w[both]
    k, m = (int(labels.max(initial=-1)) + 1 for labels in (first, second))
    table: Array = np.bincount(first.astype(np.int64) * m + second, w, k * m).reshape(k, m).astype(np.float64)
    return table


def adjusted_rand(table: Array, unit: float = 1.0) -> float:
    """Rand's index beyond chance, 1 for equal divisions; `unit` is the weight of one row, 0 for shares of many."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    if np.count_nonzero(table) == np.count_nonzero(rows) == np.count_nonzero(columns):
        return 1.0
    both, first, second, all_ = (_pairs(x, unit).sum() for x in (table, rows, columns, table.sum()))
    chance = first * second / all_
    return float((both - chance) / ((first + second) / 2 - chance))


def jaccard(table: Array) -> Array:
    """Of each cluster of the first division (k,): its overlap with the cluster of the second that is most like it.

    Rows of both over rows of either; 0 for a cluster without rows.
    """
    union = table.sum(axis=1)[:, None] + table.sum(axis=0) - table
    overlap: Array = np.divide(table, union, out=np.zeros_like(table), where=union > 0).max(axis=1, initial=0.0)
    return overlap


def prediction_strengths(table: Array, unit: float = 1.0) -> Array:
    """Of each cluster of the first division that has rows: the share of its pairs of rows that the second has together.

    0 where there is no pair: a single row confirms nothing.
    """
    rows = table.sum(axis=1)
    table, rows = table[rows > 0], rows[rows > 0]
    pairs = _pairs(rows, unit)
    share: Array = np.divide(_pairs(table, unit).sum(axis=1), pairs, out=np.zeros(len(rows)), where=pairs > 0)
    return share


def _pairs(x: Array, unit: float) -> Array:
    return x * (x - unit) / 2 if unit else x * x / 2
