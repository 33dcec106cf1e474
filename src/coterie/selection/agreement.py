"""Agreement between two clusterings of the same rows, from their contingency table."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def contingency_table(first: Array, second: Array, w: Array | None = None) -> Array:
    """Contingency table (k, m): weight of the rows in cluster i of the first and cluster j of the second clustering.

    Labels are whole numbers from 0. Rows with a negative label in one of the clusterings are ignored.
    """
    has_both = (first >= 0) & (second >= 0)
    if not has_both.all():
        first, second, w = first[has_both], second[has_both], None if w is None else w[has_both]
    k, m = (int(labels.max(initial=-1)) + 1 for labels in (first, second))
    table: Array = np.bincount(first.astype(np.int64) * m + second, w, k * m).reshape(k, m).astype(np.float64)
    return table


def adjusted_rand(table: Array, unit: float = 1.0) -> float:
    """Adjusted Rand index; `unit` is the weight of one row, or 0 if the weights are fractions of many rows."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    if np.count_nonzero(table) == np.count_nonzero(rows) == np.count_nonzero(columns):
        return 1.0
    both, first, second, all_ = (_pairs(x, unit).sum() for x in (table, rows, columns, table.sum()))
    expected = first * second / all_
    return float((both - expected) / ((first + second) / 2 - expected))


def jaccard(table: Array) -> Array:
    """Jaccard index of each cluster of the first clustering with the most similar cluster of the second (k,).

    0 for a cluster without rows.
    """
    union = table.sum(axis=1)[:, None] + table.sum(axis=0) - table
    overlap: Array = np.divide(table, union, out=np.zeros_like(table), where=union > 0).max(axis=1, initial=0.0)
    return overlap


def prediction_strengths(table: Array, unit: float = 1.0) -> Array:
    """Prediction strength of each nonempty cluster of the first clustering.

    It is the share of its pairs of rows that are also in one cluster of the second clustering; 0 without pairs.
    """
    rows = table.sum(axis=1)
    table, rows = table[rows > 0], rows[rows > 0]
    pairs = _pairs(rows, unit)
    share: Array = np.divide(_pairs(table, unit).sum(axis=1), pairs, out=np.zeros(len(rows)), where=pairs > 0)
    return share


def _pairs(x: Array, unit: float) -> Array:
    return x * (x - unit) / 2 if unit else x * x / 2
