"""Soft-DTW: a differentiable version of dynamic time warping, with a soft minimum over all paths."""

from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.arguments import is_number
from coterie.distances.dtw import as_pair, check_overflow, window_groups
from coterie.distances.series import Series
from coterie.distances.windows import as_window
from coterie.errors import InputError, ParameterError

MAX_GAMMA = 2.0**700  # for series in range: sums of their soft-DTW values, with weights in range, do not overflow


def soft_dtw(x: Any, y: Any, gamma: float = 1.0, *, window: Any = None, divergence: bool = False) -> float:
    r"""Compute soft dynamic time warping (soft-DTW) of two series.

    .. math:: -\gamma \log \sum_\pi \exp\Bigl(-\frac{1}{\gamma} \sum_{(i, j) \in \pi} \lVert x_i - y_j \rVert^2\Bigr)

    over the paths of `dtw`. It is at most the square of `dtw`, and converges to it as `gamma` goes to 0. For large
    `gamma`, all paths have the same weight. It is differentiable, so barycenters can be computed by gradient descent
    [1]_.

    It is not a distance: it can be negative, and the value of a series with itself is not the minimum. The soft-DTW
    divergence subtracts the mean of the values of both series with themselves. It is 0 for equal series and never
    negative [2]_.

    Parameters
    ----------
    x, y, window
        As in `dtw`.
    gamma : float, default=1.0
        Smoothing parameter, in the unit of squared values; it must be positive.
    divergence : bool, default=False
        Return the soft-DTW divergence instead.

    Returns
    -------
    float

    Notes
    -----
    Takes n m (channels + three exponentials) operations, and memory for the cost matrix.

    References
    ----------
    .. [1] M. Cuturi & M. Blondel (2017), Soft-DTW: a differentiable loss function for time-series, ICML.
    .. [2] M. Blondel, A. Mensch & J.-P. Vert (2021), Differentiable divergences between time series, AISTATS.

    Examples
    --------
    >>> from coterie.distances import dtw, soft_dtw
    >>> round(soft_dtw([1, 2, 3], [1, 2, 4], gamma=0.01), 6), dtw([1, 2, 3], [1, 2, 4]) ** 2
    (1.0, 1.0)
    >>> round(soft_dtw([1, 2, 3], [1, 2, 2, 3]), 4)
    -1.5813
    >>> soft_dtw([1, 2, 3], [1, 2, 3], divergence=True)
    0.0
    """
    A, B = (series.astype(np.float64) for series in as_pair(x, y))
    gamma, window = as_gamma(gamma), as_window(window)
    value = _value(A, B, gamma, window)
    return value - 0.5 * (_value(A, A, gamma, window) + _value(B, B, gamma, window)) if divergence else value


def soft_values(A: Series, B: Series, window: Any, gamma: float, out: np.ndarray, passes: int = 1) -> None:
    """The soft-DTW values (a, b) of all series of `A` and `B`, all in float64."""
    ops = soft_kernels_for(A, B, passes)
    if len(B) < len(A):  # kernels process the series of B in parallel lanes, so it should be the larger one
        A, B, out = B, A, out.T
    for rows, columns, (low, high) in window_groups(A, B, window):
        a, b = A[rows], B[columns]
        part = np.empty((len(a), len(b)))
        ops.soft_path_costs(a.values, a.start, a.length, b.values, b.start, b.length, low, high, gamma, part)
        out[np.ix_(rows, columns)] = part


def soft_kernels_for(A: Series, B: Series, passes: int = 1) -> Any:
    return kernels.select("soft_dtw", passes * len(A) * len(B), A.longest, B.longest)


def as_gamma(gamma: Any) -> float:
    if not is_number(gamma) or not 0 < gamma < np.inf:
        raise ParameterError(f"gamma must be a finite number above 0 (use dtw for the limit 0); got {gamma!r}")
    return float(gamma)


def gamma_in_units(gamma: float, exponent: int) -> float:
    """`gamma` for series that were divided by 2^exponent."""
    with np.errstate(over="ignore", under="ignore"):
        divided = float(np.ldexp(gamma, -2 * exponent))
    if not 0 < divided <= MAX_GAMMA:
        raise InputError(
            f"gamma={gamma:g} is too far from the squares of the series: set gamma to a fraction of these squares"
        )
    return divided


def _value(A: Series, B: Series, gamma: float, window: Any) -> float:
    out = np.empty((1, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        soft_values(A, B, window, gamma, out)
    check_overflow(out)
    return float(out[0, 0])
