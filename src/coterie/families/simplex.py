"""Estimates of probabilities that sum to 1 and have a lower bound."""

import numpy as np

FLOOR = 1e-10  # minimum probability, so that new rows never have the likelihood 0


def max_likelihood(counts: np.ndarray) -> np.ndarray:
    """Maximum-likelihood probabilities (..., m) of at least `FLOOR`, from counts (..., m).

    Smaller probabilities are set to `FLOOR`, and the others share the rest in proportion to their counts. This is the
    constrained maximum, so EM stays monotone. If all counts are 0, the probabilities are equal.
    """
    counts = np.maximum(counts, 0.0)
    m, total = counts.shape[-1], counts.sum(axis=-1, keepdims=True)
    counts = np.where(total > 0, counts, 1.0)
    low = np.zeros(counts.shape, bool)
    while True:
        rest = np.where(low, 0.0, counts).sum(axis=-1, keepdims=True)
        probability = np.where(low, FLOOR, counts * (1.0 - FLOOR * low.sum(axis=-1, keepdims=True)) / rest)
        too_low = probability < FLOOR
        if not too_low.any() or m == 1:
            return probability
        low |= too_low
