"""Soft dynamic time warping, compiled; for the definitions and arguments see `kernels.plain.soft_dtw`."""

from math import exp, log

import numpy as np

from coterie.kernels.cpu.dtw import lanes, many_channels, pack, square, sweep
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.simd import aligned
from coterie.kernels.cpu.soft_simd import _exp
from coterie.kernels.cpu.sums import squared_distance
from coterie.kernels.cpu.vectors import vector_code
from coterie.kernels.plain.soft_dtw import MAX_EXCESS

OUTSIDE = 1e300  # cost of cells outside the window: infinity would give NaN in differences

__all__ = ["soft_align", "soft_path_costs"]


@jit
def _weight(minimum, value, gamma):
    """exp((minimum - value) / gamma)"""
    if value == minimum:
        return 1.0
    return exp((minimum - value) / gamma) if value < minimum + MAX_EXCESS * gamma else 0.0


@vector_code
def soft_row(v, tile, x, x_at, channels, rows, before, after, low, high, gamma):
    sweep(v, many_channels(square), _soft_minimum, OUTSIDE)


def _soft_minimum(v, above, across, left):
    """Soft minimum of three: the minimum, less gamma times the log of the sum of weights, which is between 1 and 3."""
    b, gamma = v.b, v.spread(v["gamma"])
    one = v.constant(1.0)
    inverse = b.fdiv(one, gamma)
    near, far = v.lower(above, across), v.higher(above, across)
    minimum, middle = v.lower(near, left), v.higher(near, left)
    weights = [_exp(v, b.fmul(b.fsub(minimum, value), inverse)) for value in (middle, far)]
    total = b.fadd(b.fadd(one, weights[0]), weights[1])
    return b.fsub(minimum, b.fmul(gamma, _log(v, total)))


def _log(v, x):
    """log(x) for x from 1 to 3: log 2 + 2 artanh((x - 2) / (x + 2))."""
    b = v.b
    interval = [0.0, 1 / 9]
    series = np.polynomial.Chebyshev.interpolate(lambda u: np.arctanh(np.sqrt(u)) / np.sqrt(u), 10, interval).convert(
        kind=np.polynomial.Polynomial
    )

    ratio = b.fdiv(b.fsub(x, v.constant(2)), b.fadd(x, v.constant(2)))
    square, value = b.fmul(ratio, ratio), v.constant(2 * series.coef[-1])
    for c in series.coef[-2::-1]:
        value = v.fma(value, square, v.constant(2 * c))
    return v.fma(ratio, value, v.constant(np.log(2.0)))


@jit
def soft_path_costs(A, a_start, a_length, B, b_start, b_length, low, high, gamma, out):
    """Soft-DTW values of all series of `A` and `B`; each lane has one pair, as in `dtw.path_costs`."""
    width, channels, longest = lanes(B.itemsize), B.shape[1], b_length.max()
    tile, row = aligned(longest * channels * width, B), aligned((longest + 1) * width, B)
    for first in range(0, len(b_start), width):
        m = pack(B, b_start, b_length, first, tile)
        for p in range(len(a_start)):
            for index in range((m + 1) * width):
                row[index] = 0 if index < width else OUTSIDE
            for i in range(a_length[p]):
                at = (a_start[p] + i) * channels
                soft_row(tile, A, at, channels, row, 0, 0, low[i], min(high[i], m), gamma)
                for lane in range(width):
                    row[low[i] * width + lane] = OUTSIDE
            for lane in range(min(width, len(b_start) - first)):
                out[p, first + lane] = row[b_length[first + lane] * width + lane]


@jit
def soft_align(center, B, b_start, b_length, w, low, high, gamma, sum_dx, weight, cost):
    """Align series with `center`; shares of preceding cells are stored, so the backward pass needs no exponentials."""
    n, longest = len(center), b_length.max()
    table, alignment, shares = np.empty((n + 1, longest + 1)), np.empty((n, longest)), np.empty((n, longest, 3))
    for q in range(len(b_start)):
        y = B[b_start[q] : b_start[q] + b_length[q]]
        table[:, : len(y) + 1] = np.inf
        table[0, 0] = 0.0
        for i in range(n):
            for j in range(low[i], min(high[i], len(y))):
                above, across, left = table[i, j + 1], table[i, j], table[i + 1, j]
                minimum = min(above, min(across, left))
                shares[i, j, 0] = _weight(minimum, above, gamma)
                shares[i, j, 1] = _weight(minimum, across, gamma)
                shares[i, j, 2] = _weight(minimum, left, gamma)
                total = shares[i, j, 0] + shares[i, j, 1] + shares[i, j, 2]
                for step in range(3):
                    shares[i, j, step] /= total
                table[i + 1, j + 1] = squared_distance(center[i], y[j]) + minimum - gamma * log(total)
                alignment[i, j] = 0.0
        cost[q] = table[n, len(y)]
        alignment[n - 1, len(y) - 1] = w[q]
        _propagate_back(center, y, low, high, shares, alignment, sum_dx, weight)


@jit
def _propagate_back(center, y, low, high, shares, alignment, sum_dx, weight):
    """Propagate shares of paths from the last to the first pair of time points, and add to the sums of the center."""
    for i in range(len(center) - 1, -1, -1):
        for j in range(min(high[i], len(y)) - 1, low[i] - 1, -1):
            path_share = alignment[i, j]
            if path_share == 0.0:
                continue
            weight[i] += path_share
            for channel in range(y.shape[1]):
                sum_dx[i, channel] += path_share * (y[j, channel] - center[i, channel])
            if shares[i, j, 0] > 0.0 and i > 0:
                alignment[i - 1, j] += path_share * shares[i, j, 0]
            if shares[i, j, 1] > 0.0 and i > 0 and j > 0:
                alignment[i - 1, j - 1] += path_share * shares[i, j, 1]
            if shares[i, j, 2] > 0.0 and j > 0:
                alignment[i, j - 1] += path_share * shares[i, j, 2]
