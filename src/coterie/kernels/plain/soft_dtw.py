"""Soft dynamic time warping in NumPy; series and windows as in `dtw`, everything in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.kernels.plain.dtw import inside, local_costs

Array = np.ndarray[Any, Any]


def soft_table(
    x: Array,  # in (n, channels)
    y: Array,  # in (m, channels)
    low: Array,  # in (n,)
    high: Array,  # in (n,)
    gamma: float,
) -> Array:
    """-gamma log of the sum of exp(-cost / gamma) over the paths to moments i and j, (n, m); infinite without any."""
    n, m = len(x), len(y)
    table = np.full((n + 1, m + 1), np.inf)
    table[0, 0] = 0
    table[1:, 1:] = np.where(inside(low, high, n, m), local_costs(x, y, False), np.inf)
    cells = table.reshape(-1)
    for diagonal in range(2, n + m + 1):
        first = max(1, diagonal - m) * m + diagonal
        last = min(n, diagonal - 1) * m + diagonal
        before = np.stack([cells[first - back : last - back + 1 : m] for back in (m + 1, m + 2, 1)])
        least = before.min(axis=0)
        finite = np.where(np.isfinite(least), least, 0.0)
        total = np.exp((finite - before) / gamma).sum(axis=0)
        soft = finite - gamma * np.log(np.where(total > 0, total, 1.0))
        cells[first : last + 1 : m] += np.where(total > 0, soft, np.inf)
    return table[1:, 1:]


def soft_alignment(x: Array, y: Array, table: Array, gamma: float) -> Array:
    """The share of all paths, each weighing exp(-cost / gamma), that go through moments i and j, (n, m).

    It is the gradient of the value with respect to the costs of the cells.
    """
    n, m = table.shape
    cost = local_costs(x, y, False)
    share = np.zeros((n + 1, m + 1))
    share[n - 1, m - 1] = 1.0
    for diagonal in range(n + m - 3, -1, -1):
        i = np.arange(max(0, diagonal - m + 1), min(n - 1, diagonal) + 1)
        j = diagonal - i
        for down, right in ((1, 0), (0, 1), (1, 1)):
            there = (i + down < n) & (j + right < m)
            a, b = i[there], j[there]
            step = table[a + down, b + right] - cost[a + down, b + right]
            open_ = np.isfinite(table[a, b]) & np.isfinite(step)
            apart = np.where(open_, step, 0.0) - np.where(open_, table[a, b], 0.0)
            share[a, b] += np.where(open_, share[a + down, b + right] * np.exp(apart / gamma), 0.0)
    return share[:n, :m]


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
        out[i, j] = soft_table(x, y, low, high, gamma)[-1, -1]


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
        share = w[q] * soft_alignment(center, y, table, gamma)
        cost[q] = table[-1, -1]
        own = share.sum(axis=1)
        met += own
        sum_dx += share @ y - own[:, None] * center
