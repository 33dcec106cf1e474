"""First and second moments of the columns, in float64."""

import numpy as np

from coterie.kernels.cpu.jit import jit


@jit
def moments(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,)
    pivot,  # in  (d,)
    sum_x,  # out (d,) of w (x - pivot)
    sum_xx,  # out (d,) of w (x - pivot)^2
):
    """Add moments about `pivot` to the sums; return the sum of the weights."""
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
