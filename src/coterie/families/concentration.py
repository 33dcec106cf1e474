"""Maximum-likelihood concentration of the von Mises-Fisher distribution."""

from __future__ import annotations

import numpy as np

from coterie.families.bessel import log_ratio

LARGEST = 1e10  # maximum concentration
STEPS = 60  # maximum number of iterations: Newton steps, or bisections if a Newton step leaves the bounds


def concentration_of(length: np.ndarray, d: int) -> np.ndarray:
    """The concentration (k,), from 0 to 1e10, for which the mean of unit rows of `d` columns has this `length` (k,)."""
    if d == 1:  # rows are 1 or -1
        return np.arctanh(np.minimum(length, 1.0 - 1e-16))
    order, complement = 0.5 * d - 1.0, 1.0 - np.clip(length, 0.0, 1.0)
    r = 1.0 - np.clip(complement, 0.5 * (d - 1.0) / LARGEST, 1.0 - 1e-15)
    low, high = (_inverse_bound(r, order + a, order + b) for a, b in ((0.0, 2.0), (1.0, 1.0)))
    low, high = np.minimum(low, LARGEST), np.minimum(high, LARGEST)
    kappa = 0.5 * (low + high)
    for _ in range(STEPS):
        one_minus_A = -np.expm1(log_ratio(order, kappa))
        error = (1.0 - r) - one_minus_A  # A - r
        low, high = np.where(error <= 0, kappa, low), np.where(error >= 0, kappa, high)
        slope = one_minus_A * (2.0 - one_minus_A) - (d - 1.0) / kappa * (1.0 - one_minus_A)
        newton = kappa - error / np.where(slope > 0, slope, np.inf)
        before, kappa = kappa, np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        if np.all(np.abs(kappa - before) <= 1e-12 * kappa):
            break
    return np.where(length > 1e-15, kappa, 0.0)


def _inverse_bound(r: np.ndarray, a: float, b: float) -> np.ndarray:
    """The x for which x / (a + sqrt(x² + b²)), a bound of A, equals `r`."""
    rest = (1.0 - r) * (1.0 + r)
    return r / rest * (a + np.sqrt((a * r) ** 2 + b**2 * rest))
