"""DTW barycenters: averages of series under dynamic time warping."""

from typing import Any, NamedTuple

import numpy as np

from coterie import kernels, machine
from coterie.core.arguments import as_floats
from coterie.core.arrays import Array
from coterie.distances.dtw import path_costs, window_groups
from coterie.distances.series import Series, as_one_series, as_series, check_same_channels, concatenated
from coterie.distances.soft_dtw import as_gamma, gamma_in_units
from coterie.distances.windows import Mask, as_window
from coterie.errors import InputError, ParameterError

CANDIDATES = 64  # maximum number of series from which the initial center is chosen
PIECE = 128  # number of series that one thread aligns at a time


class AlignmentSums(NamedTuple):
    """Sums over series, of the values aligned to each time point of a center; sums of different series can be added."""

    sum_dx: Array  # (n, channels) of w (y - center)
    weight: Array  # (n,) of w
    cost: float  # of w times the cost of the path, or times the soft-DTW value

    def __add__(self, other: Any) -> "AlignmentSums":
        return AlignmentSums(*(a + b for a, b in zip(self, other, strict=True)))


def dba(
    series: Any,
    weights: Any = None,
    *,
    window: Any = None,
    gamma: float | None = None,
    init: Any = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    n_jobs: int | None = None,
) -> Array:
    r"""Average series by DTW barycenter averaging (DBA) [1]_.

    The result is a series c that minimises, locally,

    .. math:: \sum_i w_i \, \mathrm{dtw}(x_i, c)^2.

    An iteration aligns every series to c, and then replaces each value of c by the mean of all values aligned to it.
    Neither step increases the sum. With `gamma`, the sum is of `soft_dtw` and is minimised by L-BFGS [2]_; it is
    smoother, and its optimum is often better.

    The result is as long as the initial series. Do not average series with different shapes, because their alignment
    is then arbitrary: cluster them first (`TimeSeriesKMeans`).

    Parameters
    ----------
    series : list of arrays, or array (n, length) or (n, length, channels)
        Series of any lengths. In an array, shorter series end in NaN.
    weights : array (n,), default=None
        Weight of each series; None means 1 for all.
    window : None, int, float or Itakura, default=None
        Constraint on the alignments, as in `dtw`.
    gamma : float, default=None
        If given, use soft-DTW with this smoothing parameter; it must be positive.
    init : array (length,) or (length, channels), default=None
        Initial center. By default the most central of the series, or of 64 evenly spaced ones if there are more.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-6
        Relative tolerance. Iterations stop when the sum decreases by less than this share of it.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result does not depend on it.

    Returns
    -------
    array (length,), or (length, channels) for several channels
        The average, in the dtype of the series.

    Notes
    -----
    An iteration computes one `dtw` cost matrix for each series.

    References
    ----------
    .. [1] F. Petitjean, A. Ketterlin & P. Gançarski (2011), A global averaging method for dynamic time warping, Pattern
       Recognition 44, 678-693. https://doi.org/10.1016/j.patcog.2010.09.013
    .. [2] M. Cuturi & M. Blondel (2017), Soft-DTW: a differentiable loss function for time-series, ICML.

    Examples
    --------
    >>> from coterie.distances import dba
    >>> dba([[0, 0, 1, 2, 0], [0, 2, 3, 0], [0, 0, 0, 1, 3, 0]], init=[0, 1, 2, 0]).round(2).tolist()
    [0.0, 1.33, 2.67, 0.0]
    """
    rows = as_series(series, "series")
    dtype, channels = rows.dtype, rows.channels
    rows, window = rows.astype(np.float64), as_window(window)
    if isinstance(window, Mask):
        raise ParameterError("window: a boolean array is for one pair of series; pass it to dtw or dtw_path")
    w, gamma = _as_weights(weights, len(rows)), None if gamma is None else as_gamma(gamma)
    center = None if init is None else _as_center(init, rows)
    exponent = _exponent(rows.values if center is None else np.concatenate([rows.values, center]))
    rows, w = rows.times_power(-exponent), np.ldexp(w, -_exponent(w))
    center = _most_central(rows, w, window) if center is None else np.ldexp(center, -exponent)
    if gamma is None:
        center = _minimize_dtw(center, rows, w, window, max_iter, tol, n_jobs)
    else:
        gamma = gamma_in_units(gamma, exponent)
        center = _minimize_soft_dtw(center, rows, w, window, gamma, max_iter, tol, n_jobs)
    center = np.ldexp(center, exponent).astype(dtype)
    return center[:, 0] if channels == 1 else center


def align_to_center(
    ops: Any, center: Array, rows: Series, w: Array, window: Any, gamma: float | None = None
) -> AlignmentSums:
    """Align all `rows` to the `center` (n, channels), all in float64; `ops` are soft-DTW kernels with `gamma`."""
    sum_dx, weight, total = np.zeros(center.shape), np.zeros(len(center)), 0.0
    for _, members, (low, high) in window_groups(concatenated([center]), rows, window):
        group, cost = rows[members], np.empty(len(members))
        inputs = group.values, group.start, group.length, w[members], low, high
        outputs = sum_dx, weight, cost
        if gamma is None:
            ops.align(center, *inputs, *outputs)
        else:
            ops.soft_align(center, *inputs, gamma, *outputs)
        total += float(w[members] @ cost)
    return AlignmentSums(sum_dx, weight, total)


def _align_all(
    center: Array, rows: Series, w: Array, window: Any, gamma: float | None, n_jobs: int | None
) -> AlignmentSums:
    ops = kernels.select("dtw" if gamma is None else "soft_dtw", len(rows), len(center), rows.longest)
    center = concatenated([center])(0)

    def align(piece: slice) -> AlignmentSums:
        return align_to_center(ops, center, rows[piece], w[piece], window, gamma)

    pieces = [slice(first, first + PIECE) for first in range(0, len(rows), PIECE)]
    results = machine.in_threads(align, zip(pieces), n_jobs)
    total: AlignmentSums = next(results)
    for sums in results:
        total += sums
    return total


def _minimize_dtw(
    center: Array, rows: Series, w: Array, window: Any, max_iter: int, tol: float, n_jobs: int | None
) -> Array:
    sums = _align_all(center, rows, w, window, None, n_jobs)
    for _ in range(max_iter):
        moved = center + sums.sum_dx / sums.weight[:, None]
        after = _align_all(moved, rows, w, window, None, n_jobs)
        if after.cost > sums.cost:  # only by rounding, so the iterations have converged
            break
        decrease, center, sums = sums.cost - after.cost, moved, after
        if decrease <= tol * abs(sums.cost):
            break
    return center


def _minimize_soft_dtw(
    center: Array, rows: Series, w: Array, window: Any, gamma: float, max_iter: int, tol: float, n_jobs: int | None
) -> Array:
    from scipy.optimize import minimize

    def value_and_gradient(flat: Array) -> tuple[float, Array]:
        sums = _align_all(flat.reshape(center.shape), rows, w, window, gamma, n_jobs)
        return sums.cost / w.sum(), (-2.0 / w.sum() * sums.sum_dx).reshape(-1)

    options = {"maxiter": max_iter, "ftol": tol}
    result = minimize(value_and_gradient, center.reshape(-1), jac=True, method="L-BFGS-B", options=options)
    return result.x.reshape(center.shape)


def _as_center(init: Any, rows: Series) -> Array:
    center = as_one_series(init, "init").astype(np.float64)
    check_same_channels(concatenated([center]), rows, ("init", "series"))
    return center


def _exponent(values: Array) -> int:
    """Exponent of the power of two just above the largest value. NaN after the end of a series is ignored."""
    return int(np.frexp(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))[1])


def _most_central(rows: Series, w: Array, window: Any) -> Array:
    candidates = rows[np.flatnonzero(w > 0)]
    candidates = candidates[np.unique(np.linspace(0, len(candidates) - 1, CANDIDATES).astype(int))]
    costs = np.empty((len(candidates), len(candidates)))
    path_costs(candidates, candidates, window, False, costs)
    return candidates(int(costs.sum(axis=1).argmin())).copy()


def _as_weights(weights: Any, n: int) -> Array:
    try:
        w = np.ones(n) if weights is None else as_floats(weights)
    except (TypeError, ValueError):
        raise InputError(f"weights must be {n} numbers, one per series") from None
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise InputError(f"weights must be {n} finite numbers >= 0, one per series, and not all 0")
    return w
