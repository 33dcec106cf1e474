"""Soft dynamic time warping in NumPy; series and windows as in `dtw`, everything in float64."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.plain.dtw import inside, local_costs

Array = np.ndarray[Any, Any]


FAR = 40.0  # in units of gamma: what costs so much more than the least counts for less than rounding


class SoftTable(NamedTuple):
    """Costs of the paths to each pair of moments, and where these paths come from."""

    values: Array  # (n, m) -gamma log of the sum of exp(-cost / gamma) over all paths; infinite without any
    ways: Array  # (3, n, m) shares of the paths that come from above, from across and from the left; they sum to 1


def soft_table(
    x: Array,  # in (n, channels)
    y: Array,  # in (m, channels)
    low: Array,  # in (n,)
    high: Array,  # in (n,)
    gamma: float,
) -> SoftTable:
    n, m = len(x), len(y)
    table = np.full((n + 1, m + 1), np.inf)
    table[0, 0] = 0
    table[1:, 1:] = np.where(inside(low, high, n, m), local_costs(x, y, False), np.inf)
    cells, ways = table.reshape(-1), np.zeros((3, (n + 1) * (m + 1)))
    for diagonal in range(2, n + m + 1):
        first = max(1, diagonal - m) * m + diagonal
        last = min(n, diagonal - 1) * m + diagonal
        before = np.stack([cells[first - back : last - back + 1 : m] for back in (m + 1, m + 2, 1)])
        least = before.min(axis=0)
        weights = _weights(least, before, gamma)
        total = weights.sum(axis=0)
        ways[:, first : last + 1 : m] = weights / total
        cells[first : last + 1 : m] = cells[first : last + 1 : m] + least - gamma * np.log(total)
    return SoftTable(table[1:, 1:], ways.reshape(3, n + 1, m + 1)[:, 1:, 1:])


def _weights(least: Array, values: Array, gamma: float) -> Array:
    """exp((least - value) / gamma), without the difference of two infinite numbers."""
    near = (values < least + FAR * gamma) & np.isfinite(least)
    apart = np.where(near, values, 0.0) - np.where(near, least, 0.0)
    return np.where(near, np.exp(-apart / gamma), values == least)


def soft_alignment(ways: Array) -> Array:
    """The share of all paths, each weighing exp(-cost / gamma), that go through moments i and j, (n, m).

    It is the gradient of the value with respect to the costs of the cells. Shares are handed back along the ways that
    `soft_table` found: differences of the values themselves would lose all digits where costs are large beside gamma.
    """
    n, m = ways.shape[1:]
    share = np.zeros((n + 1, m + 1))  # moment i, j is at i + 1, j + 1: what arrives before the first moments is lost
    share[n, m] = 1.0
    for diagonal in range(n + m - 2, -1, -1):
        i = np.arange(max(0, diagonal - m + 1), min(n - 1, diagonal) + 1)
        j = diagonal - i
        for way, (up, left) in enumerate(((1, 0), (1, 1), (0, 1))):
            share[i + 1 - up, j + 1 - left] += share[i + 1, j + 1] * ways[way, i, j]
    return share[1:, 1:]


def soft_between(
    A: Array,  # in  values
    a_start: Array,  # in  (p,)
    a_length: Array,  # in  (p,)
    B: Array,  # in  values
    b_start: Array,  # in  (q,)
    b_length: Array,  # in  (q,)
    low: Array,  # in  (longest of A,)
    high: Array,  # in  (longest of A,)
    gamma: float,
    out: Array,  # out (p, q)
) -> None:
    for i, j in np.ndindex(out.shape):
        x, y = A[a_start[i] : a_start[i] + a_length[i]], B[b_start[j] : b_start[j] + b_length[j]]
        out[i, j] = soft_table(x, y, low, high, gamma).values[-1, -1]


def soft_align(
    center: Array,  # in  (n, channels)
    B: Array,  # in  values
    b_start: Array,  # in  (q,)
    b_length: Array,  # in  (q,)
    w: Array,  # in  (q,)
    low: Array,  # in  (n,)
    high: Array,  # in  (n,)
    gamma: float,
    sum_dx: Array,  # i/o (n, channels) of w (y - center), over all that meets each moment of the center, by its share
    met: Array,  # i/o (n,) of w, over the same
    cost: Array,  # out (q,) the values
) -> None:
    for q in range(len(b_start)):
        y = B[b_start[q] : b_start[q] + b_length[q]]
        table = soft_table(center, y, low, high, gamma)
        share = w[q] * soft_alignment(table.ways)
        cost[q] = table.values[-1, -1]
        own = share.sum(axis=1)
        met += own
        sum_dx += share @ y - own[:, None] * center
