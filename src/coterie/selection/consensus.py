"""How often rows are together: the consensus of many divisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import machine

Array = np.ndarray[Any, Any]


def consensus_matrix(divisions: Array) -> Array:
    """The share of divisions (r, m) in which two rows are in one cluster, of those where both have one (m, m).

    Labels below 0 mean that the row is not in that division; two rows that never are in one together have 0.
    """
    m = divisions.shape[1]
    machine.check_room(
        2 * 4 * m * m, f"how often each two of {m} rows are together", "ask for fewer `rows`, such as 2000"
    )
    together, there = np.zeros((m, m), np.float32), np.zeros((m, m), np.float32)
    with machine.one_blas_thread:
        for labels in divisions:
            member = (labels[:, None] == np.arange(labels.max(initial=0) + 1)).astype(np.float32)
            together += member @ member.T
            known = member.sum(axis=1)
            there += np.outer(known, known)
    return np.divide(together, there, out=together, where=there > 0)


def ambiguous_share(matrix: Array, low: float, high: float) -> float:
    """The share of pairs of rows that are together more often than `low`, and less often than `high`."""
    values = _pairs(matrix)
    return float(np.mean((values > low) & (values < high))) if len(values) else 0.0


def area_under_cdf(matrix: Array) -> float:
    """The integral from 0 to 1 of the share of pairs together at most so often: 1 less the mean over pairs."""
    values = _pairs(matrix)
    return 1.0 - float(values.mean(dtype=np.float64)) if len(values) else 0.0


def _pairs(matrix: Array) -> Array:
    values: Array = matrix[np.triu_indices(len(matrix), 1)]
    return values
