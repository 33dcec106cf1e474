"""Row by row in float64: distances, and the moments of the columns."""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.exact import distance
from coterie.kernels.cpu.jit import jit


@jit
def distances(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    inverse,  # in  1 / unit
    out,  # out (n, k)
):
    """Euclidean distance of every row to every center."""
    for i in range(X.shape[0]):
        for j in range(centers.shape[0]):
            out[i, j] = distance(X, i, centers, j, inverse) / inverse


@jit
def own_squares(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    labels,  # in  (n,)
    inverse,  # in  1 / unit
    out,  # out (n,)
):
    """Squared distance of every row to the center of its cluster."""
    for i in range(X.shape[0]):
        out[i] = (distance(X, i, centers, labels[i], inverse) / inverse) ** 2


@jit
def moments(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,)
    pivot,  # in  (d,)
    sum_x,  # out (d,) of w (x - pivot)
    sum_xx,  # out (d,) of w (x - pivot)^2
):
    """Sum of the weights; first and second moments about `pivot`."""
    stride = 0 if w.shape[0] == 1 else 1
    total = 0.0
    for i in range(X.shape[0]):
        wi = w[i * stride]
        total += wi
        for t in range(X.shape[1]):
            q = np.float64(X[i, t]) - pivot[t]
            sum_x[t] += wi * q
            sum_xx[t] += wi * q * q
    return total
