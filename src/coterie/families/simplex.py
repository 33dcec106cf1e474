"""Probabilities that add up to one and leave nothing out."""

from __future__ import annotations

import numpy as np

FLOOR = 1e-10  # the least probability: what a component never saw is not impossible in it


def likeliest(counts: np.ndarray) -> np.ndarray:
    """The likeliest probabilities (..., m) of at least `FLOOR` for what was counted so often.

    Those that would be less are `FLOOR`, and the rest share what is left in proportion to their counts: the constrained
    maximum, so that EM with it climbs. Where nothing was counted, all are alike.
    """
    counts = np.maximum(counts, 0.0)
    m, total = counts.shape[-1], counts.sum(axis=-1, keepdims=True)
    counts = np.where(total > 0, counts, 1.0)
    low = np.zeros(counts.shape, bool)
    while True:
        rest = np.where(low, 0.0, counts).sum(axis=-1, keepdims=True)
        found = np.where(low, FLOOR, counts * (1.0 - FLOOR * low.sum(axis=-1, keepdims=True)) / rest)
        more = found < FLOOR
        if not more.any() or m == 1:
            return found
        low |= more
