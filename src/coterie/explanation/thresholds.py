"""Thresholds for the columns of a table: numbers with few digits, near the quantiles of rows and of clusters."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from coterie.core.arrays import Array

FEW_VALUES = 64  # a column with at most so many different values has a threshold between any two
QUANTILES = 32  # of all rows
CLUSTER_QUANTILES = (0.0, 1.0, 0.02, 0.98, 0.1, 0.9, 0.25, 0.75, 0.5)
MAX_THRESHOLDS = 255
LARGEST_POWER = 300  # of ten, for numbers that are rounded
WINDOW = 400  # a threshold may move past one row in so many if it gets shorter


def thresholds(
    x: Array, codes: Array, k: int, dtype: Any, roundest: Callable[[float, float, Any], float] | None = None
) -> Array:
    """Thresholds for the values `x` (n,) of rows in k clusters (`codes`; -1: none), ascending; NaN is ignored.

    Each has the fewest digits of all numbers between two neighbouring values, or in a short range of values if there
    are many. They are in the precision of the column, `dtype`. `roundest` replaces `shortest` for values that are no
    decimal numbers.
    """
    roundest = roundest or shortest
    is_present = np.isfinite(x)
    x, codes = x[is_present], codes[is_present]
    distinct, counts = np.unique(x, return_counts=True)
    if len(distinct) <= FEW_VALUES:
        pairs = list(zip(distinct[:-1].tolist(), distinct[1:].tolist(), strict=True))
        is_whole = bool((distinct == np.round(distinct)).all())
        if is_whole and len(distinct) <= QUANTILES and roundest is shortest:  # of whole numbers: the values themselves
            return distinct[:-1]
    else:
        pairs = _ranges(x, codes, k, distinct, np.cumsum(counts))
    return np.unique([roundest(low, high, dtype) for low, high in pairs])


def _ranges(x: Array, codes: Array, k: int, distinct: Array, ranks: Array) -> list[tuple[float, float]]:
    """Ranges of values, each of which gets one threshold: near quantiles of all rows and of every cluster."""
    n = len(x)
    inner = np.arange(1, QUANTILES) / QUANTILES
    targets = [(np.quantile(x, inner, method="lower"), n // WINDOW)]
    cluster_quantiles = CLUSTER_QUANTILES[: max(2, (MAX_THRESHOLDS - QUANTILES) // max(k, 1))]
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(k + 1))
    for start, stop in pairwise(starts.tolist()):
        if stop > start:
            members = x[order[start:stop]]
            values = np.quantile(members, cluster_quantiles, method="lower")
            values[0] = np.nextafter(values[0], -np.inf)  # a threshold below the minimum
            targets.append((values, len(members) // WINDOW))
    result: set[tuple[float, float]] = set()
    for values, margin in targets:
        positions = np.searchsorted(distinct, values, side="right") - 1
        positions = positions[(positions >= 0) & (positions < len(distinct) - 1)]
        low = np.searchsorted(ranks, ranks[positions] - margin)
        high = np.minimum(np.searchsorted(ranks, ranks[positions] + margin) + 1, len(distinct) - 1)
        result.update(zip(distinct[low].tolist(), distinct[high].tolist(), strict=True))
    return sorted(result)


def shortest(low: float, high: float, dtype: Any = np.float64) -> float:
    """The number of the fewest decimal digits in [low, high); of these, the one nearest to the middle.

    In the precision `dtype` it is still in [low, high), so it separates the two numbers there, too.
    """
    if low <= 0.0 < high:
        return 0.0
    middle = low / 2 + high / 2
    exponent = math.floor(math.log10(max(abs(low), abs(high))))
    for digits in range(18):
        power = exponent - digits
        if abs(power) > LARGEST_POWER:
            break
        scale = 10.0 ** abs(power)
        scaled = [value / scale if power >= 0 else value * scale for value in (low, middle, high)]
        first, last = math.ceil(scaled[0]), math.ceil(scaled[2]) - 1
        if first > last:
            continue
        value = float(f"{min(max(round(scaled[1]), first), last)}e{power}")
        if low <= value < high and low <= float(dtype(value)) < high:
            return value
    return low
