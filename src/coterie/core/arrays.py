"""Types of arrays: dense arrays are NumPy's, sparse rows are CSR arrays or matrices of SciPy."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def is_sparse(X: Any) -> bool:
    """Whether the rows are a CSR array or matrix."""
    return hasattr(X, "indptr")


def as_float64(X: Any) -> Any:
    """The same values in float64, where they are; not copied if they have this type."""
    return X.astype(np.float64, copy=False) if hasattr(X, "astype") else np.asarray(X, dtype=np.float64)


def column_sums(X: Any) -> Array:
    """Sums of the columns (k,); a matrix product is faster than the sum of NumPy."""
    return np.ones(len(X)) @ X if isinstance(X, np.ndarray) else np.asarray(X.sum(axis=0))


def row_sums(X: Any) -> Any:
    """Sums of the rows (n,) in float64, where they are; the rows may be sparse."""
    sums = X.sum(axis=1)
    return np.asarray(sums, dtype=np.float64).ravel() if is_sparse(X) else as_float64(sums)


def as_dense(X: Any) -> Any:
    """The same values in a dense array."""
    return X.toarray() if hasattr(X, "toarray") else X
