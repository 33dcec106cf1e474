"""Types of arrays: dense arrays are NumPy's, sparse rows are CSR arrays or matrices of SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def is_sparse(X: Any) -> bool:
    """Whether the rows are a CSR array or matrix."""
    return hasattr(X, "indptr")


def as_dense(X: Any) -> Any:
    """The same values in a dense array."""
    return X.toarray() if hasattr(X, "toarray") else X
