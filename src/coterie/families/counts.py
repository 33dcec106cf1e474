r"""Families of counts, and densities of large counts without cancellation.

In :math:`x \log \mu - \mu - \log x!` terms of the size of x cancel; for a count of 1e15, all digits are lost. Therefore

.. math:: \log p(x) = -D(x, \mu) + s(x), \qquad D(x, \mu) = x \log \frac x\mu - (x - \mu), \qquad
          s(x) = x \log x - x - \log x!

where the error of D is at most the rounding of :math:`x - \mu`, and s is Stirling's remainder, a small number [1]_.

.. [1] C. Loader (2000), Fast and accurate computation of binomial probabilities.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coterie.core.arrays import is_sparse
from coterie.core.ufuncs import gammaln, xlog1py, xlogy
from coterie.families.exponential_family import ConjugateFamily
from coterie.families.family import TINY, Survey

LARGE = 1e5  # counts above it are computed directly, because matrix products would lose too many digits
STIRLING = 16.0  # minimum argument for which the series is exact to the last digit
BLOCK = 1 << 18  # number of values of sparse rows that are converted to a dense block


@dataclass(frozen=True)
class Sizes(Survey):
    """Invalid values, and the largest value of each column."""

    largest: Any  # (d,)

    def _sum_of_others(self, other: Self) -> tuple[Any, ...]:
        return (np.maximum(self.largest, other.largest),)


class CountFamily(ConjugateFamily):
    """Base class of families of counts; large counts need `direct_scores`."""

    support = "counts: integers >= 0"
    takes_sparse = True
    _large: Any = np.zeros(1, bool)  # (d,) mask of columns whose largest count is above 1e5

    @property
    def _has_large(self) -> bool:
        return bool(np.any(self._large))

    def supports(self, values: np.ndarray) -> np.ndarray:
        return (values >= 0) & (values == np.floor(values)) & np.isfinite(values)

    def survey(self, X: Any) -> Sizes:
        invalid = super().survey(X)
        if is_sparse(X):
            largest = np.zeros(X.shape[1])
            np.maximum.at(largest, X.indices, X.data)
        else:
            largest = np.where(np.isnan(X), 0.0, X).max(axis=0, initial=0.0).astype(np.float64)
        return Sizes(invalid.n_invalid, invalid.example, largest)

    def learned(self, survey: Any, has_missing: bool = False) -> Self:
        family = super().learned(survey, has_missing)
        family._large = survey.largest > LARGE
        return family


def deviances(X: np.ndarray, means: np.ndarray) -> np.ndarray:
    """D of counts (n, d) and means (d,) or (n, d), which must be positive; exact up to rounding of X - means."""
    difference = X - means
    ratio = np.maximum(np.minimum(X, means) / means, TINY)
    # log1p of the difference is precise if the ratio is near 1. Far below, the difference is rounded to minus the mean.
    return np.where(ratio < 0.5, xlogy(X, ratio), xlog1py(X, np.maximum(difference / means, -0.5))) - difference


def saturated(x: np.ndarray) -> np.ndarray:
    """s of counts: the log probability of a count with the rate that maximises it."""
    inverse = 1.0 / np.maximum(x, STIRLING)
    series = 0.5 * np.log(inverse / (2.0 * np.pi)) - stirling(inverse)
    small = np.where(x < STIRLING, x, 0.0)
    return np.where(x < STIRLING, xlogy(small, small) - small - gammaln(small + 1.0), series)


def stirling(inverse: np.ndarray) -> np.ndarray:
    """log Gamma(x) minus Stirling's formula, as a function of 1 / x from 0 to 1 / 16."""
    square = inverse**2
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))


def dense_blocks(X: Any) -> Any:
    """Yield dense blocks of dense or CSR rows: the slice of the rows, and the values."""
    if not is_sparse(X):
        yield slice(None), X
        return
    rows = max(1, BLOCK // max(1, X.shape[1]))
    for start in range(0, X.shape[0], rows):
        yield slice(start, start + rows), X[start : start + rows].toarray()
