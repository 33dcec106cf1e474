r"""Densities of large counts without cancellation.

In :math:`x \log \mu - \mu - \log x!` terms of the size of x cancel, and with them all digits of a count of 1e15. So

.. math:: \log p(x) = -D(x, \mu) + s(x), \qquad D(x, \mu) = x \log \frac x\mu - (x - \mu), \qquad
          s(x) = x \log x - x - \log x!

where D is off by no more than the rounding of :math:`x - \mu`, and s is Stirling's remainder, a small number [1]_.

.. [1] C. Loader (2000), Fast and accurate computation of binomial probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from coterie.families.family import Family, Survey

LARGE = 1e5  # counts from which products of matrices would lose digits that can be seen
STIRLING = 16.0  # from which the series is right to the last digit
BLOCK = 1 << 18  # values of sparse rows that are made dense together


@dataclass(frozen=True)
class Sizes(Survey):
    """Values that no family takes, and how large the others are."""

    largest: Any  # (d,)

    def __add__(self, other: Survey) -> Sizes:
        assert isinstance(other, Sizes)
        values = Survey.__add__(self, other)
        return Sizes(values.off, values.example, np.maximum(self.largest, other.largest))


def sizes(family: Family, X: Any) -> Sizes:
    """The survey of a family of counts."""
    found = Family.survey(family, X)
    if hasattr(X, "indptr"):
        largest = np.zeros(X.shape[1])
        np.maximum.at(largest, X.indices, X.data)
    else:
        largest = np.where(np.isnan(X), 0.0, X).max(axis=0, initial=0.0).astype(np.float64)
    return Sizes(found.off, found.example, largest)


def deviances(X: np.ndarray, means: np.ndarray) -> np.ndarray:
    """D of counts (n, d) and means (d,) or (n, d), above 0: to the rounding of their differences."""
    away = X - means
    return special.xlog1py(X, away / means) - away


def saturated(x: np.ndarray) -> np.ndarray:
    """s of counts: the log probability of a count under the rate that makes it likeliest."""
    inverse = 1.0 / np.maximum(x, STIRLING)
    series = 0.5 * np.log(inverse / (2.0 * np.pi)) - stirling(inverse)
    small = np.where(x < STIRLING, x, 0.0)
    return np.where(x < STIRLING, special.xlogy(small, small) - small - special.gammaln(small + 1.0), series)


def stirling(inverse: np.ndarray) -> np.ndarray:
    """What Stirling's formula lacks of log Gamma(x), of 1 / x from 0 to 1 / 16."""
    square = inverse**2
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))


def dense_blocks(X: Any) -> Any:
    """Rows, dense or CSR, as dense blocks one after the other: slices of the rows, and the values."""
    if not hasattr(X, "indptr"):
        yield slice(None), X
        return
    rows = max(1, BLOCK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], rows):
        yield slice(start, start + rows), X[start : start + rows].toarray()
