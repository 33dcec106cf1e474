"""The Anderson-Darling test for normality, with weights."""

from typing import NamedTuple

import numpy as np
from scipy import special

from coterie.core.arrays import Array

MIN_VALUES = 8  # with fewer values, the distribution of the statistic is not known well enough
MAX_STATISTIC = 5.709 / (2 * 0.0186)  # minimum of the tail approximation; the p-value is 1e-190 there


class Normality(NamedTuple):
    """Result of `anderson_darling`."""

    statistic: float  # corrected for the number of values
    p_value: float


def anderson_darling(x: Array, w: Array | None = None) -> Normality:
    r"""Test whether `x` (n,) comes from a normal distribution with unknown mean and variance.

    The values must not all be equal.

    With sorted values, :math:`z_i` the standardised values (n - 1 in the
    denominator) and :math:`\Phi` the normal distribution function,

    .. math:: A^2 = -n - \frac1n \sum_i (2i - 1) \bigl[\log \Phi(z_i) + \log(1 - \Phi(z_{n+1-i}))\bigr], \qquad
              A^{2*} = A^2 \Bigl(1 + \frac{0.75}{n} + \frac{2.25}{n^2}\Bigr)

    and the p-value of :math:`A^{2*}` is the approximation of D'Agostino and Stephens [1]_, table 4.9. A value of
    weight m counts as m equal values; their terms add up to differences of squared cumulative weights.

    .. [1] R. B. D'Agostino & M. A. Stephens (1986), Goodness-of-fit techniques, Dekker, section 4.8.5.
    """
    w = np.ones(len(x)) if w is None else w
    order = np.argsort(x, kind="stable")
    x, w = x[order], w[order]
    n = w.sum()
    centered = x - w @ x / n
    z = centered / np.sqrt(w @ centered**2 / (n - 1))
    cumulative = np.concatenate([[0.0], np.cumsum(w)])
    below, above = np.diff(cumulative**2), -np.diff((n - cumulative) ** 2)
    square = -n - (below @ special.log_ndtr(z) + above @ special.log_ndtr(-z)) / n
    statistic = float(square * (1 + 0.75 / n + 2.25 / n**2))
    return Normality(statistic, p_value(statistic))


def p_value(a: float) -> float:
    """Probability that the statistic of normal values exceeds `a`; it decreases with `a`."""
    if a < 0.2:
        return 1 - float(np.exp(-13.436 + 101.14 * a - 223.73 * a**2))
    if a < 0.34:
        return 1 - float(np.exp(-8.318 + 42.796 * a - 59.938 * a**2))
    if a < 0.6:
        return float(np.exp(0.9177 - 4.279 * a - 1.38 * a**2))
    a = min(a, MAX_STATISTIC)
    return float(np.exp(1.2937 - 5.709 * a + 0.0186 * a**2))


def critical_value(significance: float) -> float:
    """Statistic whose p-value is `significance`, by bisection."""
    low, high = 0.0, MAX_STATISTIC
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(middle) > significance else (low, middle)
    return high
