"""The values that columns of categories have, and rows of them as zeros and ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from coterie.families.family import Survey

MOST = 10_000  # values of a column beyond which it is hardly one of categories


@dataclass(frozen=True)
class Values(Survey):
    """The different values of each column."""

    values: Any  # tuple of (m,) sorted arrays

    def __add__(self, other: Values) -> Values:  # type: ignore[override]
        plain = Survey(self.off, self.example) + Survey(other.off, other.example)
        both = zip(self.values, other.values, strict=True)
        return Values(plain.off, plain.example, tuple(np.union1d(a, b)[: MOST + 1] for a, b in both))


def one_hot(X: np.ndarray, first: np.ndarray) -> sparse.csr_array:
    """Rows (n, categories of all columns) of numbers of categories; `first` (d + 1,) is where each column begins."""
    n, d = X.shape
    there = ~np.isnan(X)
    places = np.where(there, X, 0).astype(np.int32) + first[:-1]
    if there.all():
        places, ends = places.ravel(), np.arange(0, n * d + 1, d, dtype=np.int32)
    else:
        places, ends = places[there], np.concatenate([[0], there.sum(axis=1).cumsum()]).astype(np.int32)
    return sparse.csr_array((np.ones(len(places)), places, ends), shape=(n, int(first[-1])))
