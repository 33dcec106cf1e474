"""Soft dynamic time warping, compiled; `kernels/plain/soft_dtw.py` says what each kernel means."""

from __future__ import annotations

from math import exp, log

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_inner

FAR = 40.0  # powers of e by which what is further than this is below rounding


@jit_inner
def _cost(x, i, y, j):
    total = 0.0
    for channel in range(x.shape[1]):
        apart = x[i, channel] - y[j, channel]
        total += apart * apart
    return total


@jit_inner
def _soft_least(a, b, c, gamma):
    least = min(a, min(b, c))
    if least == np.inf:
        return np.inf
    reach, total = least + FAR * gamma, 0.0
    for value in (a, b, c):
        if value == least:
            total += 1.0
        elif value < reach:
            total += exp((least - value) / gamma)
    return least - gamma * log(total) if total > 1.0 else least


@jit_inner
def _fill(x, y, low, high, gamma, table):
    """Column j + 1 of row i + 1 is that of moments i and j."""
    for i in range(len(x) + 1):
        for j in range(len(y) + 1):
            table[i, j] = np.inf
    table[0, 0] = 0.0
    for i in range(len(x)):
        for j in range(low[i], min(high[i], len(y))):
            before = _soft_least(table[i, j + 1], table[i, j], table[i + 1, j], gamma)
            table[i + 1, j + 1] = _cost(x, i, y, j) + before


@jit
def soft_table(x, y, low, high, gamma):
    table = np.empty((len(x) + 1, len(y) + 1))
    _fill(x, y, low, high, gamma, table)
    return table[1:, 1:].copy()


@jit
def soft_alignment(x, y, table, gamma):
    n, m = table.shape
    share = np.zeros((n, m))
    share[n - 1, m - 1] = 1.0
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            here = table[i, j]
            if here == np.inf:
                continue
            total = share[i, j]
            if i + 1 < n and share[i + 1, j] > 0:
                total += share[i + 1, j] * exp((table[i + 1, j] - _cost(x, i + 1, y, j) - here) / gamma)
            if j + 1 < m and share[i, j + 1] > 0:
                total += share[i, j + 1] * exp((table[i, j + 1] - _cost(x, i, y, j + 1) - here) / gamma)
            if i + 1 < n and j + 1 < m and share[i + 1, j + 1] > 0:
                total += share[i + 1, j + 1] * exp((table[i + 1, j + 1] - _cost(x, i + 1, y, j + 1) - here) / gamma)
            share[i, j] = total
    return share


@jit
def soft_between(A, a_start, a_length, B, b_start, b_length, low, high, gamma, out):
    room = np.empty((a_length.max() + 1, b_length.max() + 1))
    for i in range(len(a_start)):
        x = A[a_start[i] : a_start[i] + a_length[i]]
        for j in range(len(b_start)):
            y = B[b_start[j] : b_start[j] + b_length[j]]
            _fill(x, y, low, high, gamma, room)
            out[i, j] = room[len(x), len(y)]


@jit
def soft_align(center, B, b_start, b_length, w, low, high, gamma, sum_dx, met, cost):
    for q in range(len(b_start)):
        y = B[b_start[q] : b_start[q] + b_length[q]]
        table = soft_table(center, y, low, high, gamma)
        share = soft_alignment(center, y, table, gamma)
        cost[q] = table[len(center) - 1, len(y) - 1]
        for i in range(len(center)):
            for j in range(len(y)):
                if share[i, j] > 0:
                    own = w[q] * share[i, j]
                    met[i] += own
                    for channel in range(B.shape[1]):
                        sum_dx[i, channel] += own * (y[j, channel] - center[i, channel])
