"""Sums over arrays that many kernels need, in float64."""

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_reassociating


@jit_reassociating
def sum_of(values):
    total = 0.0
    for i in range(values.shape[0]):
        total += np.float64(values[i])
    return total


@jit_reassociating
def inner(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@jit
def squared_distance(x, y):
    """Squared distance of two rows, in the order of the columns: symmetric to the last bit."""
    total = 0.0
    for t in range(x.shape[0]):
        difference = x[t] - y[t]
        total += difference * difference
    return total
