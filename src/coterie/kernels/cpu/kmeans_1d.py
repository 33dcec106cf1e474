"""Optimal K-means of one column, compiled: dynamic programming with divide and conquer for the last interval.

The cost of an interval is a difference of prefix sums. Scores compute it in float64, with an error that has a known
bound. Starts whose scores differ by less than that are compared with sums in twice the precision. So the time depends
on the values, but the result does not.
"""

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_finite
from coterie.kernels.plain.kmeans_1d import scale_values

MAX_CHOICES = 200_000_000  # maximum number of stored choices (4 bytes each); with more, halves are solved again
SPLITTER = 134217729.0  # 2^27 + 1 splits a float64 into two halves (Dekker 1971)
EPS = 2.0**-52
BLOCK = 4096  # ends of intervals whose sums stay in the cache
STEPS = 64  # number of starts that are evaluated to narrow a range
LIGHT = 2.0**-48  # share of the weight below which the cost of an interval is less than the tolerance


def interval_starts(values: np.ndarray, weights: np.ndarray, k: int, max_choices: int = MAX_CHOICES) -> np.ndarray:
    """Indices (k,) at which the `k` optimal intervals begin. O(k m log m) time."""
    m = len(values)
    u, w = scale_values(values, weights)
    sums = np.zeros((6, m + 1))
    prefix_sums(u, w, sums)
    starts = np.zeros(k, np.int64)
    buffers = (np.empty(m + 1), np.empty(m + 1), np.empty(m))
    _solve_range(sums, u, 0, m, starts, buffers, max_choices)
    return starts


def _solve_range(
    sums: np.ndarray,
    u: np.ndarray,
    first: int,
    end: int,
    starts: np.ndarray,
    buffers: tuple[np.ndarray, np.ndarray, np.ndarray],
    max_choices: int,
) -> None:
    """Write the `starts` of the optimal intervals of the values `first` to `end` - 1."""
    k, span = len(starts), end - first + 1
    starts[0] = first
    if k == 1:
        return
    before, after, buffer = buffers
    fits = (k - 2) * span <= max_choices
    choices = np.zeros((max(1, k - 2) if fits else 1, span), np.int32)
    middle = np.arange(first, end + 1, dtype=np.int32)  # start of the interval after the first half of the intervals
    first_interval_costs(sums, first, end - k + 1, before)
    for q in range(2, k):
        choice = choices[q - 2 if fits else 0]
        best_last_intervals(sums, u, first, end, k, q, before, after, choice, buffer)
        before, after = after, before
        if not fits and q > k // 2:
            middle = middle[choice]
    at = best_start(sums, u, first + k - 1, end - 1, end, before, buffer)
    if fits:
        starts[k - 1] = at
        for q in range(k - 2, 0, -1):
            at = starts[q] = first + choices[q - 1, at - first]
        return
    at, half = int(middle[at - first]), k // 2
    del choices, middle
    _solve_range(sums, u, first, at, starts[:half], buffers, max_choices)
    _solve_range(sums, u, at, end, starts[half:], buffers, max_choices)


@jit
def prefix_sums(
    u,  # in  (m,)
    w,  # in  (m,)
    sums,  # out (6, m + 1) prefix sums of w, w u, w u^2, each in two parts
):
    """Prefix sums in twice the precision of float64."""
    for i in range(u.shape[0]):
        high, low = product(w[i], u[i])
        square, square_low = product(high, u[i])
        sums[0, i + 1], sums[1, i + 1] = total(sums[0, i], sums[1, i], w[i], 0.0)
        sums[2, i + 1], sums[3, i + 1] = total(sums[2, i], sums[3, i], high, low)
        sums[4, i + 1], sums[5, i + 1] = total(sums[4, i], sums[5, i], square, square_low + low * u[i])


@jit
def first_interval_costs(sums, first, end, cost):
    """Write the `cost` (m + 1,) of one interval from `first` to each value before `end`."""
    for j in range(first + 1, end + 1):
        cost[j] = interval_cost(sums, first, j)


@jit
def best_last_intervals(
    sums,  # in  (6, m + 1)
    u,  # in  (m,)
    first,  # in  start of the first interval
    end,  # in  end of the last of k intervals
    k,  # in
    q,  # in  2 ... k - 1
    before,  # in  (m + 1,) minimum cost of q - 1 intervals that end before each value
    after,  # out (m + 1,) minimum cost of q intervals
    choice,  # out (m + 1,) start of the last of them, relative to `first`
    buffer,  # tmp (m,)
):
    """Best starts of the last of q intervals, for all ends.

    An interval that ends later begins no earlier, so the best start for one end bounds those for the others.
    """
    n_ends = end - first - k + 1  # number of ends that leave a value to each other interval
    stride = BLOCK
    while stride < n_ends:
        stride *= 2
    while stride >= BLOCK:
        for r in range(stride - 1, n_ends, 2 * stride):
            best_last_interval(sums, u, first, q, r, stride, n_ends, before, after, choice, buffer)
        stride //= 2
    for block in range(0, n_ends, BLOCK):  # the other ends of a block, while its sums are in the cache
        stride = BLOCK // 2
        while stride > 0:
            for r in range(block + stride - 1, min(block + BLOCK, n_ends), 2 * stride):
                best_last_interval(sums, u, first, q, r, stride, n_ends, before, after, choice, buffer)
            stride //= 2


@jit
def best_last_interval(
    sums,  # in  (6, m + 1)
    u,  # in  (m,)
    first,
    q,
    r,  # in  index of the end
    stride,  # in  distance to the ends that are known
    n_ends,
    before,  # in  (m + 1,)
    after,  # i/o (m + 1,)
    choice,  # i/o (m + 1,)
    buffer,  # tmp (m,)
):
    """Best start for one end, between those of its neighbours."""
    j = first + q + r
    low, high = first + q - 1, j - 1
    if r >= stride:
        low = first + choice[q + r - stride]
    if r + stride < n_ends:
        high = min(high, first + choice[q + r + stride])
    i = best_start(sums, u, low, high, j, before, buffer)
    choice[q + r] = i - first
    after[j] = before[i] + interval_cost(sums, i, j)


@jit
def best_start(
    sums,  # in  (6, m + 1)
    u,  # in  (m,)
    low,  # in  first possible start
    high,  # in  last possible start
    j,  # in  end of the interval
    before,  # in  (m + 1,)
    buffer,  # tmp (m,)
):
    """Best start of the last interval, the first one if several are equal."""
    if low == high:
        return low
    largest = max(abs(u[low]), abs(u[j - 1]))
    tolerance = 2.0 * EPS * (64.0 * (sums[4, j] + largest * largest * sums[0, j]) + 4.0 * before[high])
    while high - low > 8 * STEPS:
        span = high - low
        low, high = narrow(sums, before, low, high, j, tolerance)
        if high - low > span // 2:
            break
    minimum = scores(sums, before, low, high, j, buffer)
    start, best, only = low, np.inf, -1
    for i in range(low, high + 1):
        if buffer[i - low] <= minimum + tolerance:
            if only == -1:
                only = i  # no second look is needed if it is the only candidate
                continue
            if only >= 0:
                start, best, only = only, before[only] + interval_cost(sums, only, j), -2
            cost = before[i] + interval_cost(sums, i, j)
            if cost < best:
                start, best = i, cost
    return only if only >= 0 else start


@jit
def narrow(sums, before, low, high, j, tolerance):
    """Narrow the range of the best start by evaluating a few starts.

    With a later start, the intervals before it cost more and the last one costs less. So between two starts, the cost
    is at least that of the intervals before the first one and of the last interval from the second one.
    """
    step = (high - low) // STEPS
    minimum = np.inf
    for i in range(low, high + 1, step):
        minimum = min(minimum, before[i] + score(sums, i, j))
    start, stop = high, low
    for i in range(low, high + 1, step):
        until = min(i + step, high)
        if before[i] + score(sums, until, j) <= minimum + tolerance:
            start, stop = min(start, i), until
    return start, stop


@jit_finite
def scores(sums, before, low, high, j, out):
    """Write costs up to rounding, if the last interval begins at `low` ... `high`; return their minimum."""
    minimum = np.inf
    for i in range(low, high + 1):
        cost = before[i] + score(sums, i, j)
        out[i - low] = cost
        minimum = min(minimum, cost)
    return minimum


@jit_finite
def score(sums, i, j):
    """Cost of an interval, up to rounding."""
    negligible = LIGHT * sums[0, j]
    weight = sums[0, j] - sums[0, i]
    s = sums[2, j] - sums[2, i]
    cost = (sums[4, j] - sums[4, i]) - s * s / max(weight, negligible)
    return cost if weight > negligible else 0.0


@jit
def interval_cost(sums, i, j):
    """Sum of w (u - mean)^2 over the values i to j - 1, from prefix sums in two parts each.

    It is computed about a, the rounded mean: the error of w u^2 - a (2 w u - a w) is only its squared rounding error.
    """
    weight, weight_low = total(sums[0, j], sums[1, j], -sums[0, i], -sums[1, i])
    if j - i < 2 or not weight > 0.0:  # their weight is negligible
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
    """Sum of two numbers in two parts each (double-double arithmetic)."""
    s = a + b
    t = s - a
    low = (a - (s - t)) + (b - t) + (a_low + b_low)
    high = s + low
    return high, low - (high - s)


@jit
def product(a, b):
    """Exact product in two parts (Dekker 1971)."""
    p = a * b
    t = SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
