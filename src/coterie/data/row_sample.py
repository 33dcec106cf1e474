"""Random samples of rows."""

from typing import Any

import numpy as np

WARPED_CELLS = 2e10  # cells of the tables of all pairs of series, which take a few seconds


def random_rows(n: int, max_rows: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Indices of at most `max_rows` of n rows, in ascending order."""
    return np.arange(n) if n <= max_rows else np.sort(rng.choice(n, max_rows, replace=False))


def sample_rows(n: int, max_rows: int) -> np.ndarray[Any, Any]:
    """The same indices for each call, for plots and reports."""
    return random_rows(n, max_rows, np.random.default_rng(0))


def sample_groups(codes: np.ndarray[Any, Any], max_rows: int, min_rows: int) -> np.ndarray[Any, Any]:
    """Indices of about `max_rows` rows, in ascending order, with `min_rows` of each code, or all if it has fewer."""
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, 1 + np.flatnonzero(np.diff(codes[order])))
    share = max_rows / len(codes)
    samples = [rows[sample_rows(len(rows), max(round(share * len(rows)), min_rows))] for rows in groups]
    return np.sort(np.concatenate(samples))


def affordable_series(longest: int, max_rows: int) -> int:
    """The number of series, at most `max_rows`, whose distances by time warping take a few seconds."""
    return min(max_rows, max(2, int(np.sqrt(2 * WARPED_CELLS) / max(longest, 1))))
