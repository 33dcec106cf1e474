"""Agreement of two clusterings of the same rows, from their contingency table, and consensus of many."""

import numpy as np

from coterie import machine
from coterie.core.arrays import Array


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


def consensus_matrix(divisions: Array) -> Array:
    """Share of the clusterings that put two rows in the same cluster (m, m), of those where both have a cluster.

    `divisions` (r, m) has one clustering per row; a negative label means no cluster. The value is 0 if there are none.
    """
    m = divisions.shape[1]
    machine.check_memory(2 * 4 * m * m, f"the consensus matrix of {m} rows", "use fewer `rows`, such as 2000")
    together, sampled_together = np.zeros((m, m), np.float32), np.zeros((m, m), np.float32)
    with machine.one_blas_thread:
        for labels in divisions:
            membership = (labels[:, None] == np.arange(labels.max(initial=0) + 1)).astype(np.float32)
            together += membership @ membership.T
            is_sampled = membership.sum(axis=1)
            sampled_together += np.outer(is_sampled, is_sampled)
    return np.divide(together, sampled_together, out=together, where=sampled_together > 0)


def ambiguous_share(matrix: Array, low: float, high: float) -> float:
    """Share of the pairs of rows whose consensus is between `low` and `high`."""
    values = _off_diagonal(matrix)
    return float(np.mean((values > low) & (values < high))) if len(values) else 0.0


def area_under_cdf(matrix: Array) -> float:
    """Area under the cumulative distribution of the consensus of pairs: 1 minus its mean."""
    values = _off_diagonal(matrix)
    return 1.0 - float(values.mean(dtype=np.float64)) if len(values) else 0.0


def _off_diagonal(matrix: Array) -> Array:
    values: Array = matrix[np.triu_indices(len(matrix), 1)]
    return values
