"""Products of rows, dense or CSR, with tables of dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np


def products(X: Any, table: np.ndarray) -> np.ndarray:
    """x . t of every row x and every row t of the table (n, k)."""
    return X @ table.T


def weighted(X: Any, resp: np.ndarray) -> np.ndarray:
    """The sum of r x over the rows x, for every column r of `resp` (n, k): (k, d)."""
    return (X.T @ resp).T if hasattr(X, "indptr") else resp.T @ X
