"""A few rows of many, to be looked at."""

from __future__ import annotations

from typing import Any

import numpy as np


def some(n: int, most: int) -> np.ndarray[Any, Any]:
    """No more than `most` of n rows, drawn once and for all, in ascending order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))
