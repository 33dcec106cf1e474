"""Hartigan's dip test of unimodality."""

from typing import NamedTuple

import numpy as np

from coterie.core.arrays import Array


class Dip(NamedTuple):
    """The dip of n numbers, and the probability that n uniform numbers have a dip at least as large."""

    value: float
    p: float
    n: int


def dip_test(values: Array) -> Dip:
    """Return the dip of `values` (n,), in any order, and its p-value.

    The null hypothesis is the uniform distribution: of all unimodal distributions, it has the largest dips. Rounded
    numbers have a mode at each value, so they are spread evenly over the steps of their grid.
    """
    distinct, count = np.unique(values, return_counts=True)
    steps = np.diff(distinct)
    if len(steps) > 0 and np.median(steps) <= 1.5 * steps.min():  # most numbers are on a grid
        rank = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        spread = steps.min() * ((rank + 0.5) / np.repeat(count, count) - 0.5)
        distinct, count = np.repeat(distinct, count) + spread, np.ones(len(values), np.int64)
    value, n = dip(distinct, count), len(distinct)  # duplicates of a number add no information
    return Dip(value, p_value(value, n), n)


def dip(x: Array, count: Array) -> float:
    r"""Smallest maximum difference between the empirical distribution function of `x` and a unimodal one.

    .. math:: D(F) = \min_{U\ \text{unimodal}} \sup_x |F(x) - U(x)|

    `x` holds distinct numbers in ascending order, `count` how often each occurs. A distribution is unimodal if its
    distribution function is convex up to some point and concave after it. The algorithm follows the greatest convex
    minorant G and the least concave majorant L of F from both ends. Where they are farthest apart, a smaller modal
    interval begins. The distances of F from G before this interval, and from L after it, contribute to the dip.
    The dip is at least 1 / (2 n) if no number occurs twice, and at most 1 / 4.

    Notes
    -----
    O(n) for the vertices of the hulls, then a few rounds on shorter and shorter intervals.

    References
    ----------
    .. [1] J. A. Hartigan, P. M. Hartigan (1985), The dip test of unimodality, Annals of Statistics 13, 70-84.
       https://doi.org/10.1214/aos/1176346577
    """
    if len(x) < 2:
        return 0.5 / int(count.sum())
    upper = np.cumsum(count).astype(np.float64)
    lower = upper - count
    before = _on_minorant(x.tolist(), lower.tolist())
    mirrored = _on_minorant((-x[::-1]).tolist(), (-upper[::-1]).tolist())
    after = [len(x) - 1 - vertex for vertex in reversed(mirrored)]  # the vertex after i of the least concave majorant
    largest, low, high = 0.0, 0, len(x) - 1
    while low < high:  # a unimodal distribution may jump at its mode, so a single number adds nothing to the dip
        below, above = _chain(before, high, low)[::-1], _chain(after, low, high)
        gap, next_low, next_high = _widest(x, lower, upper, below, above)
        if gap <= largest:
            break
        before_mode, after_mode = slice(low, next_low), slice(next_high + 1, high + 1)
        over = upper[before_mode] - np.interp(x[before_mode], x[below], lower[below])
        under = np.interp(x[after_mode], x[above], upper[above]) - lower[after_mode]
        largest = max(largest, float(over.max(initial=0.0)), float(under.max(initial=0.0)))
        low, high = next_low, next_high
    return float(largest / (2 * upper[-1]))


def p_value(value: float, n: int) -> float:
    """Return the probability that n uniform numbers have a dip of at least `value`, interpolated in `QUANTILES`.

    Quantiles of √n dip are interpolated in log n, and the log of the probability in √n dip. Beyond the last quantile,
    the log of the probability is extrapolated linearly. This is an upper bound, because the tail falls faster.
    """
    if n < SIZES[0]:
        return 1.0
    position = np.interp(np.log(n), np.log(SIZES), np.arange(len(SIZES)))
    i = min(int(position), len(SIZES) - 2)
    quantiles = QUANTILES[i] + (position - i) * (QUANTILES[i + 1] - QUANTILES[i])
    scaled, log_share = np.sqrt(n) * value, np.log(SHARES)
    if scaled <= quantiles[-1]:
        return float(np.exp(np.interp(scaled, quantiles, log_share, left=0.0)))
    slope = (log_share[-1] - log_share[-2]) / (quantiles[-1] - quantiles[-2])
    return float(np.exp(log_share[-1] + slope * (scaled - quantiles[-1])))


def _on_minorant(x: list[float], lower: list[float]) -> list[int]:
    """Return, for each i, the vertex before i of the greatest convex minorant of the steps up to i."""
    before = [0] * len(x)
    for i in range(1, len(x)):
        j = i - 1
        while j > 0:
            k = before[j]
            if (x[i] - x[j]) * (lower[j] - lower[k]) < (x[j] - x[k]) * (lower[i] - lower[j]):
                break
            j = k
        before[i] = j
    return before


def _chain(following: list[int], start: int, end: int) -> Array:
    """Return the vertices from `start` to `end`, which is a vertex too, unless rounding errors lead past it."""
    low, high = min(start, end), max(start, end)
    chain = [start]
    while low < (vertex := following[chain[-1]]) < high:  # ends, because vertices are monotone
        chain.append(vertex)
    return np.array([*chain, end])


def _widest(x: Array, lower: Array, upper: Array, below: Array, above: Array) -> tuple[float, int, int]:
    """Return the largest distance between majorant and minorant, and the modal interval around it.

    Both are linear between their vertices, so the largest distance is at a vertex of one of them.
    """
    over_low = np.interp(x[below], x[above], upper[above]) - lower[below]
    over_high = upper[above] - np.interp(x[above], x[below], lower[below])
    i, j = int(over_low.argmax()), int(over_high.argmax())
    if over_low[i] >= over_high[j]:
        return float(over_low[i]), int(below[i]), int(above[np.searchsorted(above, below[i])])
    return float(over_high[j]), int(below[np.searchsorted(below, above[j], side="right") - 1]), int(above[j])


# Quantiles of √n dip of n uniform numbers, from 60,000 (n = 50, 100, 2000) or 100,000 samples each; the seed is n.
SIZES = np.array([4, 6, 8, 10, 15, 20, 30, 50, 100, 200, 500, 1000, 2000])
SHARES = np.array(
    [0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001]
)  # probability of a larger dip
QUANTILES = np.array(
    [
        [0.2500, 0.2500, 0.2500, 0.2500, 0.2500, 0.2895, 0.3760, 0.4152, 0.4477, 0.4641, 0.4755, 0.4845, 0.4895],
        [0.2041, 0.2041, 0.2041, 0.2410, 0.3014, 0.3549, 0.3897, 0.4036, 0.4400, 0.4728, 0.4980, 0.5245, 0.5412],
        [0.1768, 0.2086, 0.2318, 0.2723, 0.3143, 0.3476, 0.4005, 0.4351, 0.4692, 0.4887, 0.5052, 0.5250, 0.5450],
        [0.1930, 0.2277, 0.2466, 0.2783, 0.3090, 0.3604, 0.4127, 0.4414, 0.4766, 0.5045, 0.5255, 0.5532, 0.5690],
        [0.2114, 0.2362, 0.2489, 0.2788, 0.3236, 0.3721, 0.4257, 0.4587, 0.4984, 0.5265, 0.5523, 0.5799, 0.5988],
        [0.2122, 0.2356, 0.2540, 0.2869, 0.3278, 0.3808, 0.4351, 0.4700, 0.5108, 0.5384, 0.5645, 0.5945, 0.6151],
        [0.2172, 0.2436, 0.2595, 0.2922, 0.3365, 0.3898, 0.4466, 0.4837, 0.5269, 0.5570, 0.5857, 0.6175, 0.6426],
        [0.2229, 0.2498, 0.2672, 0.3006, 0.3457, 0.4009, 0.4585, 0.4962, 0.5399, 0.5713, 0.5987, 0.6360, 0.6608],
        [0.2278, 0.2562, 0.2739, 0.3088, 0.3555, 0.4119, 0.4726, 0.5122, 0.5593, 0.5941, 0.6241, 0.6598, 0.6890],
        [0.2331, 0.2619, 0.2799, 0.3148, 0.3615, 0.4198, 0.4811, 0.5221, 0.5704, 0.6036, 0.6367, 0.6787, 0.7045],
        [0.2371, 0.2666, 0.2847, 0.3202, 0.3679, 0.4269, 0.4897, 0.5308, 0.5809, 0.6160, 0.6487, 0.6905, 0.7210],
        [0.2401, 0.2694, 0.2881, 0.3234, 0.3714, 0.4311, 0.4950, 0.5356, 0.5855, 0.6198, 0.6507, 0.6923, 0.7231],
        [0.2429, 0.2714, 0.2895, 0.3252, 0.3745, 0.4338, 0.4973, 0.5399, 0.5898, 0.6260, 0.6573, 0.7007, 0.7270],
    ]
)  # fmt: skip
