"""The concentration of directions about their mean."""

from __future__ import annotations

import numpy as np

from coterie.families.bessel import log_ratio

LARGEST = 1e10  # the highest concentration
STEPS = 60  # of the search for a concentration; a handful are Newton's


def concentration_of(length: np.ndarray, d: int) -> np.ndarray:
    """The concentration under which directions of `d` columns have a mean of that length (k,), from 0 to 1e10."""
    if d == 1:  # signs
        return np.arctanh(np.minimum(length, 1.0 - 1e-16))
    order, short = 0.5 * d - 1.0, 1.0 - np.clip(length, 0.0, 1.0)
    r = 1.0 - np.clip(short, 0.5 * (d - 1.0) / LARGEST, 1.0 - 1e-15)
    low, high = (_inverse_bound(r, order + a, order + b) for a, b in ((0.0, 2.0), (1.0, 1.0)))
    low, high = np.minimum(low, LARGEST), np.minimum(high, LARGEST)
    found = 0.5 * (low + high)
    for _ in range(STEPS):
        missing = -np.expm1(log_ratio(order, found))  # 1 - A
        error = (1.0 - r) - missing  # A - r
        low, high = np.where(error <= 0, found, low), np.where(error >= 0, found, high)
        slope = missing * (2.0 - missing) - (d - 1.0) / found * (1.0 - missing)
        step = found - error / np.where(slope > 0, slope, np.inf)
        before, found = found, np.where((step > low) & (step < high), step, 0.5 * (low + high))
        if np.all(np.abs(found - before) <= 1e-12 * found):
            break
    return np.where(length > 1e-15, found, 0.0)


def _inverse_bound(r: np.ndarray, a: float, b: float) -> np.ndarray:
    """Where x / (a + sqrt(x² + b²)), which bounds A, is `r`."""
    rest = (1.0 - r) * (1.0 + r)
    return r / rest * (a + np.sqrt((a * r) ** 2 + b**2 * rest))
