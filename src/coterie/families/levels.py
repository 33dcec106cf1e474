"""The values of categorical columns, and one-hot encoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from coterie.families.family import Survey

MAX_CATEGORIES = 10_000  # maximum number of different values of a categorical column


@dataclass(frozen=True)
class Values(Survey):
    """The different values of each column."""

    values: Any  # tuple of (m,) sorted arrays

    def __add__(self, other: Values) -> Values:  # type: ignore[override]
        base = Survey(self.n_invalid, self.example) + Survey(other.n_invalid, other.example)
        pairs = zip(self.values, other.values, strict=True)
        return Values(base.n_invalid, base.example, tuple(np.union1d(a, b)[: MAX_CATEGORIES + 1] for a, b in pairs))


def one_hot(X: np.ndarray, first: np.ndarray) -> sparse.csr_array:
    """One-hot rows (n, all categories) of category codes; `first` (d + 1,) is the first position of each column."""
    n, d = X.shape
    observed = ~np.isnan(X)
    indices = np.where(observed, X, 0).astype(np.int32) + first[:-1]
    if observed.all():
        indices, indptr = indices.ravel(), np.arange(0, n * d + 1, d, dtype=np.int32)
    else:
        indices, indptr = indices[observed], np.concatenate([[0], observed.sum(axis=1).cumsum()]).astype(np.int32)
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(n, int(first[-1])))
