"""Consensus of many clusterings: how often two rows are in the same cluster."""

from typing import Any

import numpy as np

from coterie import machine

Array = np.ndarray[Any, Any]


def consensus_matrix(divisions: Array) -> Array:
    """Consensus matrix (m, m): share of the clusterings that put two rows in the same cluster.

    `divisions` (r, m) has one clustering per row. A negative label means that the row has no cluster
    there. Only clusterings where both rows have a cluster are counted; the value is 0 if there are none.
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
    values = _pairs(matrix)
    return float(np.mean((values > low) & (values < high))) if len(values) else 0.0


def area_under_cdf(matrix: Array) -> float:
    """Area under the cumulative distribution of the consensus of pairs: 1 minus its mean."""
    values = _pairs(matrix)
    return 1.0 - float(values.mean(dtype=np.float64)) if len(values) else 0.0


def _pairs(matrix: Array) -> Array:
    values: Array = matrix[np.triu_indices(len(matrix), 1)]
    return values
