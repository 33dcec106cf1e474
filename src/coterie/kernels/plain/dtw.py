"""Dynamic time warping in NumPy: the definition, and the kernels for few or short series.

Series are concatenated in `values` (time points, channels): series i is ``values[start[i]:][:length[i]]``. A window is
given by two arrays: time point i of one series can be aligned with time points ``low[i]`` to ``high[i] - 1`` of the
other, or to its end if that comes first. Neither array decreases, and ``low[i + 1] <= high[i]``.

Costs are sums of squared differences, or of absolute ones with `absolute`. Compiled kernels add in the same order, so
they give the same bits.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SMALL = 1 << 16  # cells of the tables that are computed together


def accumulated_costs(
    x: Array,  # in (n, channels)
    y: Array,  # in (..., m, channels)
    low: Array,  # in (n,)
    high: Array,  # in (n,)
    absolute: bool,
) -> Array:
    """Accumulated costs (..., n, m): of the cheapest paths to time points i of `x` and j of `y`; infinite without."""
    table = padded_costs(x, y, low, high, absolute)
    cells = table.reshape(*table.shape[:-2], -1).T
    for diagonal, above, across, left in antidiagonals(len(x), y.shape[-2]):
        cells[diagonal] += np.minimum(np.minimum(cells[above], cells[across]), cells[left])
    return table[..., 1:, 1:]


def padded_costs(x: Array, y: Array, low: Array, high: Array, absolute: bool) -> Array:
    """Costs of pairs of time points (..., n + 1, m + 1): infinite outside the window and in row and column 0."""
    n, m = len(x), y.shape[-2]
    table = np.full((*y.shape[:-2], n + 1, m + 1), np.inf, x.dtype)
    table[..., 0, 0] = 0
    table[..., 1:, 1:] = np.where(window_mask(low, high, n, m), _local_costs(x, y, absolute), np.inf)
    return table


def window_mask(low: Array, high: Array, n: int, m: int) -> Array:
    """Mask (n, m) of the pairs of time points within the window."""
    j = np.arange(m)
    return (j >= low[:n, None]) & (j < high[:n, None])


def antidiagonals(n: int, m: int) -> Iterator[list[slice]]:
    """Slices of a flat table (n + 1, m + 1): each antidiagonal, and the cells above, diagonal and left of its cells."""
    for diagonal in range(2, n + m + 1):
        first, stop = max(1, diagonal - m) * m + diagonal, min(n, diagonal - 1) * m + diagonal + 1
        yield [slice(first - back, stop - back, m) for back in (0, m + 1, m + 2, 1)]


def warping_path(table: Array) -> Array:
    """Pairs of time points (steps, 2) on the cheapest path; diagonal steps are preferred among equal costs."""
    i, j = table.shape[0] - 1, table.shape[1] - 1
    steps = [(i, j)]
    while i > 0 or j > 0:
        across = table[i - 1, j - 1] if i > 0 and j > 0 else np.inf
        above = table[i - 1, j] if i > 0 else np.inf
        left = table[i, j - 1] if j > 0 else np.inf
        if across <= above and across <= left:
            i, j = i - 1, j - 1
        elif above <= left:
            i -= 1
        else:
            j -= 1
        steps.append((i, j))
    return np.array(steps[::-1])


def path_costs(
    A: Array,  # in  values
    a_start: Array,  # in  (p,)
    a_length: Array,  # in  (p,)
    B: Array,  # in  values
    b_start: Array,  # in  (q,)
    b_length: Array,  # in  (q,)
    low: Array,  # in  (longest of A,)
    high: Array,  # in  (longest of A,)
    absolute: bool,
    limit: Array,  # in  (q,) largest cost of interest for each series of B; (0,) for no limit
    out: Array,  # out (p, q) costs of the cheapest paths; infinite above the limit
) -> None:
    """Costs of the cheapest paths between all series of `A` and `B`."""
    n, m = a_length.max(initial=0), b_length.max(initial=0)
    step = max(1, SMALL // ((n + 1) * (m + 1)))
    for first in range(0, len(b_start), step):
        some = slice(first, first + step)
        start, last = b_start[some], b_length[some] - 1
        y = B[start[:, None] + np.minimum(np.arange(m), last[:, None])]  # after its end, the last time point again
        for i in range(len(a_start)):
            tables = accumulated_costs(_series(A, a_start, a_length, i), y, low, high, absolute)
            out[i, some] = tables[np.arange(len(y)), -1, last]
    if len(limit):
        out[~(out <= limit)] = np.inf


def align(
    center: Array,  # in  (n, channels)
    B: Array,  # in  values
    b_start: Array,  # in  (q,)
    b_length: Array,  # in  (q,)
    w: Array,  # in  (q,)
    low: Array,  # in  (n,)
    high: Array,  # in  (n,)
    sum_dx: Array,  # i/o (n, channels) of w (y - center), over all pairs on the paths
    weight: Array,  # i/o (n,) of w, over the same pairs
    cost: Array,  # out (q,) squared costs of the cheapest paths
) -> None:
    """Add the differences of series from the time points of `center` that they are aligned with."""
    for q in range(len(b_start)):
        y = _series(B, b_start, b_length, q)
        table = accumulated_costs(center, y, low, high, False)
        cost[q] = table[-1, -1]
        for i, j in warping_path(table):
            sum_dx[i] += w[q] * (y[j] - center[i])
            weight[i] += w[q]


def envelope(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Minimum and maximum of `x` (n, channels) in the window of each time point of another series."""
    windows = [x[i:j] for i, j in zip(low, np.minimum(high, len(x)), strict=True)]
    return np.array([window.min(axis=0) for window in windows]), np.array([window.max(axis=0) for window in windows])


def lower_bounds(
    x: Array,  # in  (n, channels)
    lower: Array,  # in  (longest of B, channels) envelope of x
    upper: Array,  # in  (longest of B, channels)
    B: Array,  # in  values
    b_start: Array,  # in  (q,)
    b_length: Array,  # in  (q,)
    absolute: bool,
    out: Array,  # out (q,) lower bounds of the costs of paths from x to each series of B
) -> None:
    """Lower bounds: the costs at both ends, which are always aligned [Kim], plus distances to the envelope [Keogh]."""
    for q in range(len(b_start)):
        y = _series(B, b_start, b_length, q)
        projection = np.clip(y, lower[: len(y)], upper[: len(y)])
        projection[0] = x[0]
        if len(y) > 1:
            projection[-1] = x[-1]
        difference = np.abs(y - projection)
        out[q] = (difference if absolute else difference * difference).sum()


def _local_costs(x: Array, y: Array, absolute: bool) -> Array:
    """Costs (..., n, m) of aligning time points i of `x` and j of `y`; channels are added in order."""
    total = np.zeros((*y.shape[:-2], len(x), y.shape[-2]), x.dtype)
    with np.errstate(over="ignore"):  # costs that overflow are infinite, as in the compiled kernel
        for channel in range(x.shape[1]):
            difference = x[:, channel, None] - y[..., None, :, channel]
            total += np.abs(difference) if absolute else difference * difference
    return total


def _series(values: Array, start: Array, length: Array, i: int) -> Array:
    return values[start[i] : start[i] + length[i]]
