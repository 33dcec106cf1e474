"""The best clusters of one column, compiled: every last run by divide and conquer, every doubt settled.

The cost of a run is a difference of prefix sums. Scores take it in float64, where it may have cancelled to any
extent, but by no more than a bound that is known; starts whose scores differ by less are compared by sums of twice
that precision. So the speed depends on the values, the answer does not.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_finite
from coterie.kernels.plain.one_column import in_units

KEPT = 200_000_000  # choices that are kept at most (4 bytes each); beyond, halves are solved again
SPLIT = 134217729.0  # 2^27 + 1 cuts a float64 in two halves
EPS = 2.0**-52
BLOCK = 4096  # ends of runs whose sums fit in a cache
STEPS = 64  # starts by which a range is narrowed
LIGHT = 2.0**-48  # of all weight: runs of less cost less than the doubt, and their weight has lost its digits


def cuts(values: np.ndarray, weights: np.ndarray, k: int, kept: int = KEPT) -> np.ndarray:
    """Where each of the `k` best runs begins; k m log m operations."""
    m = len(values)
    u, w = in_units(values, weights)
    sums = np.zeros((6, m + 1))
    add_up(u, w, sums)
    starts = np.zeros(k, np.int64)
    rooms = (np.empty(m + 1), np.empty(m + 1), np.empty(m))
    _solve(sums, u, 0, m, starts, rooms, kept)
    return starts


def _solve(
    sums: np.ndarray,
    u: np.ndarray,
    first: int,
    end: int,
    starts: np.ndarray,
    rooms: tuple[np.ndarray, np.ndarray, np.ndarray],
    kept: int,
) -> None:
    """Fills `starts` for the values `first` up to `end`."""
    k, span = len(starts), end - first + 1
    starts[0] = first
    if k == 1:
        return
    before, after, room = rooms
    whole = (k - 2) * span <= kept
    choices = np.zeros((max(1, k - 2) if whole else 1, span), np.int32)
    middle = np.arange(first, end + 1, dtype=np.int32)  # where the run after the first half begins
    first_runs(sums, first, end - k + 1, before)
    for q in range(2, k):
        choice = choices[q - 2 if whole else 0]
        last_runs(sums, u, first, end, k, q, before, after, choice, room)
        before, after = after, before
        if not whole and q > k // 2:
            middle = middle[choice]
    at = best_start(sums, u, first + k - 1, end - 1, end, before, room)
    if whole:
        starts[k - 1] = at
        for q in range(k - 2, 0, -1):
            at = starts[q] = first + choices[q - 1, at - first]
        return
    at, half = int(middle[at - first]), k // 2
    del choices, middle
    _solve(sums, u, first, at, starts[:half], rooms, kept)
    _solve(sums, u, at, end, starts[half:], rooms, kept)


@jit
def add_up(
    u,  # in  (m,)
    w,  # in  (m,)
    sums,  # out (6, m + 1) prefix sums of w, w u, w u^2, each in two parts
):
    for i in range(u.shape[0]):
        high, low = product(w[i], u[i])
        square, rest = product(high, u[i])
        sums[0, i + 1], sums[1, i + 1] = total(sums[0, i], sums[1, i], w[i], 0.0)
        sums[2, i + 1], sums[3, i + 1] = total(sums[2, i], sums[3, i], high, low)
        sums[4, i + 1], sums[5, i + 1] = total(sums[4, i], sums[5, i], square, rest + low * u[i])


@jit
def first_runs(
    sums,  # in  (6, m + 1)
    first,
    end,
    cost,  # out (m + 1,)
):
    """The cost of one run from `first` to each value before `end`."""
    for j in range(first + 1, end + 1):
        cost[j] = cost_of(sums, first, j)


@jit
def last_runs(
    sums,  # in  (6, m + 1)
    u,  # in  (m,)
    first,  # in  where the first run begins
    end,  # in  where the last of k runs ends
    k,  # in
    q,  # in  2 ... k - 1
    before,  # in  (m + 1,) the least cost of q - 1 runs that end before each value
    after,  # out (m + 1,) that of q runs
    choice,  # out (m + 1,) where the last of them begins, from `first` on
    room,  # tmp (m,)
):
    """A run that ends later begins no earlier: the best start of one end bounds those of all others."""
    rows = end - first - k + 1  # ends that leave a value to every other run
    stride = BLOCK
    while stride < rows:
        stride *= 2
    while stride >= BLOCK:
        for r in range(stride - 1, rows, 2 * stride):
            last_run(sums, u, first, q, r, stride, rows, before, after, choice, room)
        stride //= 2
    for block in range(0, rows, BLOCK):  # the rest of a block while its sums are in the cache
        stride = BLOCK // 2
        while stride > 0:
            for r in range(block + stride - 1, min(block + BLOCK, rows), 2 * stride):
                last_run(sums, u, first, q, r, stride, rows, before, after, choice, room)
            stride //= 2


@jit
def last_run(
    sums,  # in  (6, m + 1)
    u,  # in  (m,)
    first,
    q,
    r,  # in  which of the ends
    stride,  # in  how far away the ends are that are known
    rows,
    before,  # in  (m + 1,)
    after,  # i/o (m + 1,)
    choice,  # i/o (m + 1,)
    room,  # tmp (m,)
):
    """The best start of one run, between those of its neighbours."""
    j = first + q + r
    low, high = first + q - 1, j - 1
    if r >= stride:
        low = first + choice[q + r - stride]
    if r + stride < rows:
        high = min(high, first + choice[q + r + stride])
    i = best_start(sums, u, low, high, j, before, room)
    choice[q + r] = i - first
    after[j] = before[i] + cost_of(sums, i, j)


@jit
def best_start(
    sums,  # in  (6, m + 1)
    u,  # in  (m,)
    low,  # in  the first start there may be
    high,  # in  the last
    j,  # in  where the run ends
    before,  # in  (m + 1,)
    room,  # tmp (m,)
):
    """Where the last run begins at best; the first of several that are equal."""
    if low == high:
        return low
    far = max(abs(u[low]), abs(u[j - 1]))
    doubt = 2.0 * EPS * (64.0 * (sums[4, j] + far * far * sums[0, j]) + 4.0 * before[high])
    while high - low > 8 * STEPS:
        span = high - low
        low, high = narrow(sums, before, low, high, j, doubt)
        if high - low > span // 2:
            break
    least = scores(sums, before, low, high, j, room)
    found, best, alone = low, np.inf, -1
    for i in range(low, high + 1):
        if room[i - low] <= least + doubt:
            if alone == -1:
                alone = i  # one that nothing else comes near needs no second look
                continue
            if alone >= 0:
                found, best, alone = alone, before[alone] + cost_of(sums, alone, j), -2
            cost = before[i] + cost_of(sums, i, j)
            if cost < best:
                found, best = i, cost
    return alone if alone >= 0 else found


@jit
def narrow(
    sums,  # in  (6, m + 1)
    before,  # in  (m + 1,)
    low,
    high,
    j,
    doubt,
):
    """The same range without ends that cannot hold the best start, judged by a few of them.

    A later start leaves more to the runs before it and less to the last one: between two starts, the cost is at
    least that of the runs before the one and of the run from the other.
    """
    step = (high - low) // STEPS
    least = np.inf
    for i in range(low, high + 1, step):
        least = min(least, before[i] + score(sums, i, j))
    start, stop = high, low
    for i in range(low, high + 1, step):
        until = min(i + step, high)
        if before[i] + score(sums, until, j) <= least + doubt:
            start, stop = min(start, i), until
    return start, stop


@jit_finite
def scores(
    sums,  # in  (6, m + 1)
    before,  # in  (m + 1,)
    low,
    high,
    j,
    out,  # out (high - low + 1,) the cost of all runs up to `j` if the last begins there, but for rounding
):
    """The least of them."""
    least = np.inf
    for i in range(low, high + 1):
        cost = before[i] + score(sums, i, j)
        out[i - low] = cost
        least = min(least, cost)
    return least


@jit_finite
def score(sums, i, j):
    """The cost of a run, but for rounding."""
    nothing = LIGHT * sums[0, j]
    weight = sums[0, j] - sums[0, i]
    s = sums[2, j] - sums[2, i]
    cost = (sums[4, j] - sums[4, i]) - s * s / max(weight, nothing)
    return cost if weight > nothing else 0.0


@jit
def cost_of(sums, i, j):
    """The sum of w (u - mean)^2 over the values i up to j, from prefix sums in two parts each.

    Taken about a = the mean, rounded: w u^2 - a (2 w u - a w) is then off by its square only.
    """
    weight, weight_low = total(sums[0, j], sums[1, j], -sums[0, i], -sums[1, i])
    if j - i < 2 or not weight > 0.0:  # beside the others, these weigh nothing
        return 0.0
    s, s_low = total(sums[2, j], sums[3, j], -sums[2, i], -sums[3, i])
    square, square_low = total(sums[4, j], sums[5, j], -sums[4, i], -sums[5, i])
    a = s / weight
    high, low = product(a, weight)
    high, low = total(2.0 * s, 2.0 * s_low, -high, -low - a * weight_low)
    part, part_low = product(a, high)
    high, low = total(square, square_low, -part, -part_low - a * low)
    return max(high + low, 0.0)


@jit
def total(a, a_low, b, b_low):
    """The sum of two numbers that are given in two parts each."""
    s = a + b
    t = s - a
    low = (a - (s - t)) + (b - t) + (a_low + b_low)
    high = s + low
    return high, low - (high - s)


@jit
def product(a, b):
    """a b in two parts, exactly."""
    p = a * b
    t = SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
