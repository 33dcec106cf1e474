"""Matrix products of dense or CSR rows with dense matrices."""

from typing import Any

import numpy as np
from scipy import sparse


def products(X: Any, table: np.ndarray) -> np.ndarray:
    """Inner products (n, k) of all rows of `X` (n, d) and `table` (k, d)."""
    return X @ table.T


def weighted_sums(X: Any, resp: np.ndarray) -> np.ndarray:
    """Sums (k, d) of the rows, weighted by each column of `resp` (n, k)."""
    return (X.T @ resp).T if hasattr(X, "indptr") else resp.T @ X


def one_hot(codes: np.ndarray, observed: np.ndarray, width: int) -> sparse.csr_array:
    """Rows (n, width) with 1 at the positions `codes` (n, d) of the observed values, and 0 elsewhere."""
    n, d = codes.shape
    if observed.all():
        indices, indptr = codes.ravel(), np.arange(0, n * d + 1, d, dtype=np.int32)
    else:
        indices, indptr = codes[observed], np.concatenate([[0], observed.sum(axis=1).cumsum()]).astype(np.int32)
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(n, width))
