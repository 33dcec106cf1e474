"""Products of CSR rows with tables of dense ones; `plain.products` says what they are.

A stored value meets k numbers that lie side by side, so tables lie column by column: (d, k).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.cpu.jit import jit


def products(X: Any, table: np.ndarray) -> np.ndarray:
    out = np.empty((X.shape[0], len(table)))
    add_up(X.data, X.indices, X.indptr, np.ascontiguousarray(table.T), out)
    return out


def weighted(X: Any, resp: np.ndarray) -> np.ndarray:
    sums = np.zeros((X.shape[1], resp.shape[1]))
    spread(X.data, X.indices, X.indptr, np.ascontiguousarray(resp), sums)
    return sums.T


@jit
def add_up(
    data,  # in  (stored,)
    indices,  # in  (stored,)
    indptr,  # in  (n + 1,)
    columns,  # in  (d, k)
    out,  # out (n, k)
):
    """x . t"""
    k = columns.shape[1]
    for i in range(indptr.shape[0] - 1):
        row = out[i]
        for j in range(k):
            row[j] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            x, column = np.float64(data[e]), columns[indices[e]]
            for j in range(k):
                row[j] += x * column[j]


@jit
def spread(
    data,  # in  (stored,)
    indices,  # in  (stored,)
    indptr,  # in  (n + 1,)
    resp,  # in  (n, k)
    sums,  # i/o (d, k)
):
    """Adds r x."""
    k = resp.shape[1]
    for i in range(indptr.shape[0] - 1):
        row = resp[i]
        for e in range(indptr[i], indptr[i + 1]):
            x, column = np.float64(data[e]), sums[indices[e]]
            for j in range(k):
                column[j] += x * row[j]
