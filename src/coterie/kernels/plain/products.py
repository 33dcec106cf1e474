"""Matrix products of dense or CSR rows with dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np


def products(X: Any, table: np.ndarray) -> np.ndarray:
    """Inner products (n, k) of all rows of `X` (n, d) and `table` (k, d)."""
    return X @ table.T


def weighted_sums(X: Any, resp: np.ndarray) -> np.ndarray:
    """Sums (k, d) of the rows, weighted by each column of `resp` (n, k)."""
    return (X.T @ resp).T if hasattr(X, "indptr") else resp.T @ X
