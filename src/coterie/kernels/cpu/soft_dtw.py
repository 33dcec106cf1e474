"""Soft dynamic time warping, compiled; `kernels/plain/soft_dtw.py` says what each kernel means."""

from __future__ import annotations

from math import exp, log

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from coterie.kernels.cpu.dtw import lanes, many_channels, pack, square, sweep
from coterie.kernels.cpu.jit import jit, jit_inner
from coterie.kernels.cpu.simd import aligned
from coterie.kernels.cpu.soft import _exp

OUTSIDE = 1e300  # a cost for cells outside the window: infinity less infinity is no number
FAR = 40.0  # in units of gamma: what costs so much more than the least counts for less than rounding

__all__ = ["soft_align", "soft_between"]


@jit_inner
def _cost(x, i, y, j):
    total = 0.0
    for channel in range(x.shape[1]):
        apart = x[i, channel] - y[j, channel]
        total += apart * apart
    return total


@jit_inner
def _weight(least, value, gamma):
    """exp((least - value) / gamma)"""
    if value == least:
        return 1.0
    return exp((least - value) / gamma) if value < least + FAR * gamma else 0.0


@jit_inner
def _begin(table, n, m):
    for i in range(n + 1):
        for j in range(m + 1):
            table[i, j] = np.inf
    table[0, 0] = 0.0


@intrinsic
def soft_row(typingctx, tile, x, x_at, channels, rows, before, after, low, high, gamma):
    kinds = (tile, x, x_at, channels, rows, before, after, low, high, gamma)
    return sweep(kinds, many_channels(square), _soft_least, OUTSIDE, " gamma")


def _soft_least(v, above, across, left):
    """The least of three, less gamma times the log of what all three weigh beside it: from 1 to 3."""
    b, gamma = v.b, v.spread(v["gamma"])
    one = ir.Constant(v.type, [1.0] * v.lanes)
    inverse = b.fdiv(one, gamma)
    near, far = v.lower(above, across), v.higher(above, across)
    least, middle = v.lower(near, left), v.higher(near, left)
    weights = [_exp(v, b.fmul(b.fsub(least, value), inverse)) for value in (middle, far)]
    total = b.fadd(b.fadd(one, weights[0]), weights[1])
    return b.fsub(least, b.fmul(gamma, _log(v, total)))


def _log(v, x):
    """log(x) for x from 1 to 3: log 2 + 2 artanh((x - 2) / (x + 2))."""
    b = v.b
    interval = [0.0, 1 / 9]
    series = np.polynomial.Chebyshev.interpolate(lambda u: np.arctanh(np.sqrt(u)) / np.sqrt(u), 10, interval).convert(
        kind=np.polynomial.Polynomial
    )

    def constant(value):
        return ir.Constant(v.type, [float(value)] * v.lanes)

    ratio = b.fdiv(b.fsub(x, constant(2)), b.fadd(x, constant(2)))
    square, value = b.fmul(ratio, ratio), constant(2 * series.coef[-1])
    for c in series.coef[-2::-1]:
        value = v.fma(value, square, constant(2 * c))
    return v.fma(ratio, value, constant(np.log(2.0)))


@jit
def soft_between(A, a_start, a_length, B, b_start, b_length, low, high, gamma, out):
    """As `dtw.between`, one pair in each lane."""
    wide, channels, most = lanes(B.itemsize), B.shape[1], b_length.max()
    tile, row = aligned(most * channels * wide, B), aligned((most + 1) * wide, B)
    for first in range(0, len(b_start), wide):
        m = pack(B, b_start, b_length, first, tile)
        for p in range(len(a_start)):
            for place in range((m + 1) * wide):
                row[place] = 0 if place < wide else OUTSIDE
            for i in range(a_length[p]):
                at = (a_start[p] + i) * channels
                soft_row(tile, A, at, channels, row, 0, 0, low[i], min(high[i], m), gamma)
                for lane in range(wide):
                    row[low[i] * wide + lane] = OUTSIDE
            for lane in range(min(wide, len(b_start) - first)):
                out[p, first + lane] = row[b_length[first + lane] * wide + lane]


@jit
def soft_align(center, B, b_start, b_length, w, low, high, gamma, sum_dx, met, cost):
    """Going forward, it is kept how much of a cell came from where: going back needs no exponentials."""
    n, most = len(center), b_length.max()
    table, share, ways = np.empty((n + 1, most + 1)), np.empty((n, most)), np.empty((n, most, 3))
    for q in range(len(b_start)):
        y = B[b_start[q] : b_start[q] + b_length[q]]
        _begin(table, n, len(y))
        for i in range(n):
            for j in range(low[i], min(high[i], len(y))):
                above, across, left = table[i, j + 1], table[i, j], table[i + 1, j]
                least = min(above, min(across, left))
                ways[i, j, 0] = _weight(least, above, gamma)
                ways[i, j, 1] = _weight(least, across, gamma)
                ways[i, j, 2] = _weight(least, left, gamma)
                total = ways[i, j, 0] + ways[i, j, 1] + ways[i, j, 2]
                for way in range(3):
                    ways[i, j, way] /= total
                table[i + 1, j + 1] = _cost(center, i, y, j) + least - gamma * log(total)
                share[i, j] = 0.0
        cost[q] = table[n, len(y)]
        share[n - 1, len(y) - 1] = w[q]
        _hand_back(center, y, low, high, ways, share, sum_dx, met)


@jit_inner
def _hand_back(center, y, low, high, ways, share, sum_dx, met):
    """From the last moments to the first, adding up what meets each moment of the center."""
    for i in range(len(center) - 1, -1, -1):
        for j in range(min(high[i], len(y)) - 1, low[i] - 1, -1):
            own = share[i, j]
            if own == 0.0:
                continue
            met[i] += own
            for channel in range(y.shape[1]):
                sum_dx[i, channel] += own * (y[j, channel] - center[i, channel])
            if ways[i, j, 0] > 0.0 and i > 0:
                share[i - 1, j] += own * ways[i, j, 0]
            if ways[i, j, 1] > 0.0 and i > 0 and j > 0:
                share[i - 1, j - 1] += own * ways[i, j, 1]
            if ways[i, j, 2] > 0.0 and j > 0:
                share[i, j - 1] += own * ways[i, j, 2]
