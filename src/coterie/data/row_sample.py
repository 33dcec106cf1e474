"""Random sample of rows for plots and reports."""

from __future__ import annotations

from typing import Any

import numpy as np


def sample_rows(n: int, max_rows: int) -> np.ndarray[Any, Any]:
    """Indices of at most `max_rows` of n rows, in ascending order; the same for each call."""
    if n <= max_rows:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, max_rows, replace=False))
