"""Limits of axes that a few far rows do not stretch."""

from typing import Any

import numpy as np

from coterie.core.arrays import Array

MIN_VALUES = 10  # with fewer values, all are within the limits
FAR_SHARE = 0.02  # maximum share of the values that may be beyond each end
SLACK = 0.3  # space for rows that a sample lacks, as a share of the range of the middle
SQUEEZED = 4.0  # all values are within the limits, unless this makes the axis so many times as long


def inner_range(values: Any, low: float | None = None, high: float | None = None) -> tuple[float, float]:
    """Return the minimum and maximum of the values, without a few that are far from all others.

    A value is far if its distance from the middle 96 % of the values is larger than their range. `low` and `high` are
    the minimum and maximum of all rows, if `values` are a sample of them.

    Examples
    --------
    >>> from coterie.web.limits import inner_range
    >>> inner_range([*range(50), 1_000_000])
    (0.0, 49.0)
    >>> inner_range([*range(50), 100])
    (0.0, 100.0)
    """
    x = np.asarray(values, dtype=np.float64)
    slack = SLACK if low is not None or high is not None else 0.0
    low = float(x.min()) if low is None else low
    high = float(x.max()) if high is None else high
    n_far = 0 if len(x) < MIN_VALUES else max(1, int(FAR_SHARE * len(x)))
    if n_far == 0:
        return low, high
    ordered = np.partition(x, [n_far, len(x) - 1 - n_far])
    first, last = float(ordered[n_far]), float(ordered[len(x) - 1 - n_far])
    with np.errstate(over="ignore"):  # an infinite range has all values inside
        width = last - first
        inside = x[(x >= first - width) & (x <= last + width)]
        inner_low = low if low >= first - width else max(first - width, float(inside.min()) - slack * width)
        inner_high = high if high <= last + width else min(last + width, float(inside.max()) + slack * width)
        is_squeezed = width > 0 and high - low > SQUEEZED * (inner_high - inner_low)
    return (inner_low, inner_high) if is_squeezed else (low, high)


def outward(points: Any, low: Any, high: Any) -> Array:
    """Return, for points (m, p), on which side of the limits of each axis they are: -1 below, 1 above, 0 within."""
    points = np.asarray(points, dtype=np.float64)
    return (points > high).astype(np.int64) - (points < low).astype(np.int64)


def beyond_counts(points: Any, low: Any, high: Any) -> Array:
    """Return the number of points (m, p) beyond the limits of either of two axes (p, p)."""
    is_inside = (outward(points, low, high) == 0).astype(np.float64)  # a product of floats is faster
    return len(is_inside) - np.rint(is_inside.T @ is_inside).astype(np.int64)
