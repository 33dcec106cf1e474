"""Dynamic time warping in NumPy: what each kernel means, and what few or short series run on.

Series stand one after the other in `values` (moments, channels): series i is ``values[start[i]:][:length[i]]``. A
window is two arrays: moment i of one series may meet the moments from ``low[i]`` to ``high[i] - 1`` of the other, or
up to its end if that comes first. Neither array ever falls, and ``low[i + 1] <= high[i]``.

Costs are sums of squared differences, or with `absolute` of absolute ones, added in one order everywhere: compiled
code gives the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def accumulated(
    x: Array,  # in (n, channels)
    y: Array,  # in (m, channels)
    low: Array,  # in (n,)
    high: Array,  # in (n,)
    absolute: bool,
) -> Array:
    """The least cost of a path from the beginnings to moment i of `x` and j of `y`, (n, m); infinite where none goes.

    The cells of an antidiagonal are found together: in a table of m + 1 columns they are m places apart.
    """
    n, m = len(x), len(y)
    table = np.full((n + 1, m + 1), np.inf, x.dtype)
    table[0, 0] = 0
    table[1:, 1:] = np.where(inside(low, high, n, m), local_costs(x, y, absolute), np.inf)
    cells = table.reshape(-1)
    for diagonal in range(2, n + m + 1):
        first = max(1, diagonal - m) * m + diagonal
        last = min(n, diagonal - 1) * m + diagonal
        above, across, left = (cells[first - back : last - back + 1 : m] for back in (m + 1, m + 2, 1))
        cells[first : last + 1 : m] += np.minimum(np.minimum(above, across), left)
    return table[1:, 1:]


def path(table: Array) -> Array:
    """The pairs of moments (steps, 2) on the way that led to the last of all; of equal ways, the most direct."""
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


def between(
    A: Array,  # in  values
    a_start: Array,  # in  (p,)
    a_length: Array,  # in  (p,)
    B: Array,  # in  values
    b_start: Array,  # in  (q,)
    b_length: Array,  # in  (q,)
    low: Array,  # in  (longest of A,)
    high: Array,  # in  (longest of A,)
    absolute: bool,
    limit: Array,  # in  (q,) costs of series of B that are not worth more; (0,) for none
    out: Array,  # out (p, q) the least costs; infinite where above the limit
) -> None:
    for i, j in np.ndindex(out.shape):
        x, y = _series(A, a_start, a_length, i), _series(B, b_start, b_length, j)
        cost = accumulated(x, y, low, high, absolute)[-1, -1]
        out[i, j] = cost if not len(limit) or cost <= limit[j] else np.inf


def align(
    center: Array,  # in  (n, channels)
    B: Array,  # in  values
    b_start: Array,  # in  (q,)
    b_length: Array,  # in  (q,)
    w: Array,  # in  (q,)
    low: Array,  # in  (n,)
    high: Array,  # in  (n,)
    sum_dx: Array,  # i/o (n, channels) of w (y - center), over all that meets each moment of the center
    met: Array,  # i/o (n,) of w, over the same
    cost: Array,  # out (q,) of the best paths, squared
) -> None:
    for q in range(len(b_start)):
        y = _series(B, b_start, b_length, q)
        table = accumulated(center, y, low, high, False)
        cost[q] = table[-1, -1]
        for i, j in path(table):
            sum_dx[i] += w[q] * (y[j] - center[i])
            met[i] += w[q]


def envelope(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """The least and the largest value that `x` (n, channels) has in the window of each moment of another series."""
    reach = [x[i:j] for i, j in zip(low, np.minimum(high, len(x)), strict=True)]
    return np.array([part.min(axis=0) for part in reach]), np.array([part.max(axis=0) for part in reach])


def bounds(
    x: Array,  # in  (n, channels)
    lower: Array,  # in  (longest of B, channels) the envelope of x
    upper: Array,  # in  (longest of B, channels)
    B: Array,  # in  values
    b_start: Array,  # in  (q,)
    b_length: Array,  # in  (q,)
    absolute: bool,
    out: Array,  # out (q,) what no path from x to a series of B costs less than
) -> None:
    """Both ends as they are, which have to meet [Kim]; between them, how far a series leaves the envelope [Keogh]."""
    for q in range(len(b_start)):
        y = _series(B, b_start, b_length, q)
        near = np.clip(y, lower[: len(y)], upper[: len(y)])
        near[0] = x[0]
        if len(y) > 1:
            near[-1] = x[-1]
        apart = np.abs(y - near)
        out[q] = (apart if absolute else apart * apart).sum()


def local_costs(x: Array, y: Array, absolute: bool) -> Array:
    """The costs (n, m) of moments i of `x` and j of `y` meeting: channels are added in their order."""
    total = np.zeros((len(x), len(y)), x.dtype)
    with np.errstate(over="ignore"):  # as in the compiled kernel, costs that are too large are infinite
        for channel in range(x.shape[1]):
            apart = x[:, channel, None] - y[:, channel]
            total += np.abs(apart) if absolute else apart * apart
    return total


def inside(low: Array, high: Array, n: int, m: int) -> Array:
    """The window of the first n moments as a table (n, m)."""
    j = np.arange(m)
    return (j >= low[:n, None]) & (j < high[:n, None])


def _series(values: Array, start: Array, length: Array, i: int) -> Array:
    return values[start[i] : start[i] + length[i]]
