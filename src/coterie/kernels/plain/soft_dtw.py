"""Soft dynamic time warping in NumPy, in float64; series and windows as in `dtw` (Cuturi & Blondel 2017)."""

from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.plain.dtw import antidiagonals, padded_costs

Array = np.ndarray[Any, Any]

MAX_EXCESS = 40.0  # times gamma: paths that cost this much more than the minimum contribute less than rounding


class SoftTable(NamedTuple):
    """Soft-minimum costs of the paths to each pair of time points, and the shares of the preceding pairs."""

    values: Array  # (n, m) -gamma log of the sum of exp(-cost / gamma) over all paths; infinite without a path
    shares: Array  # (3, n, m) share of the paths from above, from the diagonal and from the left; the sum is 1


def soft_table(
    x: Array,  # in (n, channels)
    y: Array,  # in (m, channels)
    low: Array,  # in (n,)
    high: Array,  # in (n,)
    gamma: float,
) -> SoftTable:
    """Soft accumulated costs of two series."""
    table = padded_costs(x, y, low, high, False)
    cells, shares = table.reshape(-1), np.zeros((3, table.size))
    for diagonal, *neighbours in antidiagonals(len(x), len(y)):
        previous = np.stack([cells[neighbour] for neighbour in neighbours])
        minimum = previous.min(axis=0)
        weights = _weights(minimum, previous, gamma)
        total = weights.sum(axis=0)
        shares[:, diagonal] = weights / total
        cells[diagonal] = cells[diagonal] + minimum - gamma * np.log(total)
    return SoftTable(table[1:, 1:], shares.reshape(3, *table.shape)[:, 1:, 1:])


def _weights(minimum: Array, values: Array, gamma: float) -> Array:
    """exp((minimum - value) / gamma), without differences of infinite numbers."""
    is_near = (values < minimum + MAX_EXCESS * gamma) & np.isfinite(minimum)
    difference = np.where(is_near, values, 0.0) - np.where(is_near, minimum, 0.0)
    return np.where(is_near, np.exp(-difference / gamma), values == minimum)


def soft_alignment(shares: Array) -> Array:
    """Share (n, m) of all paths, each with weight exp(-cost / gamma), that contain the pair of time points i and j.

    It is the gradient of the value with respect to the costs of the cells. It is propagated backwards by the shares of
    `soft_table`: differences of the values would lose all digits if costs are large compared to gamma.
    """
    n, m = shares.shape[1:]
    alignment = np.zeros((n + 1, m + 1))  # pair i, j is at i + 1, j + 1; row and column 0 are ignored
    alignment[n, m] = 1.0
    for diagonal in range(n + m - 2, -1, -1):
        i = np.arange(max(0, diagonal - m + 1), min(n - 1, diagonal) + 1)
        j = diagonal - i
        for step, (up, left) in enumerate(((1, 0), (1, 1), (0, 1))):
            alignment[i + 1 - up, j + 1 - left] += alignment[i + 1, j + 1] * shares[step, i, j]
    return alignment[1:, 1:]


def soft_path_costs(
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
    """Soft-DTW values of all series of `A` and `B`."""
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
    sum_dx: Array,  # i/o (n, channels) of w (y - center), over all pairs of time points, times their share of the paths
    weight: Array,  # i/o (n,) of w, over the same
    cost: Array,  # out (q,) soft-DTW values
) -> None:
    """Add the differences of series from the time points of `center`, weighted by their shares of the paths."""
    for q in range(len(b_start)):
        y = B[b_start[q] : b_start[q] + b_length[q]]
        table = soft_table(center, y, low, high, gamma)
        alignment = w[q] * soft_alignment(table.shares)
        cost[q] = table.values[-1, -1]
        row_weight = alignment.sum(axis=1)
        weight += row_weight
        sum_dx += alignment @ y - row_weight[:, None] * center
