"""Averages of series under dynamic time warping."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie import kernels, machine
from coterie.core.arguments import as_floats
from coterie.core.errors import InputError, ParameterError
from coterie.distances.distance import Array
from coterie.distances.dtw import least_costs, meetings
from coterie.distances.series import Series, as_series, joined, one_series, same_channels
from coterie.distances.soft_dtw import as_gamma
from coterie.distances.windows import Mask, as_window

CANDIDATES = 64  # series of which the most central is where an average starts
PIECE = 128  # series that one thread aligns at a time


class Met(NamedTuple):
    """What meets the moments of a center: sums over series, which add up."""

    sum_dx: Array  # (n, channels) of w (y - center)
    weight: Array  # (n,) of w
    cost: float  # of w times the cost of the path, or the soft value

    def __add__(self, other: Any) -> Met:
        return Met(*(a + b for a, b in zip(self, other, strict=True)))


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
    r"""The average of series by DTW barycenter averaging [1]_: a series c for which

    .. math:: \sum_i w_i \, \mathrm{dtw}(x_i, c)^2

    is small. Every series is aligned to c, then each moment of c becomes the mean of all that meets it, in turn:
    neither raises the sum. With `gamma` the sum is of `soft_dtw`, made small by L-BFGS [2]_: smoother, and often a
    better optimum.

    The answer is a local optimum and as long as the series it starts from. Do not average series that are not alike:
    what meets is then chance; cluster them first (`TimeSeriesKMeans`).

    Parameters
    ----------
    series : list of arrays, or array (n, length) or (n, length, channels)
        Of any lengths; in an array shorter ones end in NaN.
    weights : array (n,), optional
        How much each counts.
    window
        As in `dtw`.
    gamma : float, optional
        Soft-DTW of this softness instead.
    init : array (length,) or (length, channels), optional
        Where to start; by default at the most central of the series (of at most 64 of them, evenly spaced).
    max_iter : int, default=100
    tol : float, default=1e-6
        It ends when the sum falls by less than this share of it.
    n_jobs : int or None, default=None
        Threads. The result does not depend on it.

    Returns
    -------
    array (length,), or (length, channels) for several channels
        In the type of the series.

    Notes
    -----
    Costs the table of `dtw` for each series and iteration.

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
    given = as_series(series, "series")
    rows, bound = given.astype(np.float64), as_window(window)
    if isinstance(bound, Mask):
        raise ParameterError("window: a table of cells is for one pair of series, in dtw or dtw_path")
    w, soft = _weights(weights, len(rows)), None if gamma is None else as_gamma(gamma)
    center = _start(init, rows, w, bound)
    if soft is None:
        center = _descend(center, rows, w, bound, max_iter, tol, n_jobs)
    else:
        center = _descend_softly(center, rows, w, bound, soft, max_iter, tol, n_jobs)
    center = center.astype(given.dtype)
    return center[:, 0] if given.channels == 1 else center


def meet(ops: Any, center: Array, rows: Series, w: Array, window: Any, gamma: float | None = None) -> Met:
    """All `rows` aligned to the `center` (n, channels); all in float64. `ops` are kernels, soft ones with `gamma`."""
    sum_dx, weight, total = np.zeros(center.shape), np.zeros(len(center)), 0.0
    for _, own, (low, high) in meetings(joined([center]), rows, window):
        group, cost = rows[own], np.empty(len(own))
        series, to = (group.values, group.start, group.length, w[own], low, high), (sum_dx, weight, cost)
        if gamma is None:
            ops.align(center, *series, *to)
        else:
            ops.soft_align(center, *series, gamma, *to)
        total += float(w[own] @ cost)
    return Met(sum_dx, weight, total)


def _meet_all(center: Array, rows: Series, w: Array, window: Any, gamma: float | None, n_jobs: int | None) -> Met:
    ops = kernels.select("dtw" if gamma is None else "soft_dtw", len(rows), len(center), rows.longest)
    center = joined([center])(0)
    pieces = [slice(first, first + PIECE) for first in range(0, len(rows), PIECE)]
    found = machine.in_threads(lambda own: meet(ops, center, rows[own], w[own], window, gamma), zip(pieces), n_jobs)
    total = next(found)
    for each in found:
        total += each
    return total


def _descend(
    center: Array, rows: Series, w: Array, window: Any, max_iter: int, tol: float, n_jobs: int | None
) -> Array:
    found = _meet_all(center, rows, w, window, None, n_jobs)
    for _ in range(max_iter):
        moved = center + found.sum_dx / found.weight[:, None]
        after = _meet_all(moved, rows, w, window, None, n_jobs)
        if after.cost > found.cost:  # by rounding: it cannot fall any more
            break
        fallen, center, found = found.cost - after.cost, moved, after
        if fallen <= tol * abs(found.cost):
            break
    return center


def _descend_softly(
    center: Array, rows: Series, w: Array, window: Any, gamma: float, max_iter: int, tol: float, n_jobs: int | None
) -> Array:
    from scipy.optimize import minimize

    def value_and_gradient(flat: Array) -> tuple[float, Array]:
        found = _meet_all(flat.reshape(center.shape), rows, w, window, gamma, n_jobs)
        return found.cost / w.sum(), (-2.0 / w.sum() * found.sum_dx).reshape(-1)

    options = {"maxiter": max_iter, "ftol": tol}
    found = minimize(value_and_gradient, center.reshape(-1), jac=True, method="L-BFGS-B", options=options)
    best: Array = found.x.reshape(center.shape)
    return best


def _start(init: Any, rows: Series, w: Array, window: Any) -> Array:
    if init is not None:
        center = one_series(init, "init").astype(np.float64)
        same_channels(joined([center]), rows, ("init", "series"))
        return center
    some = rows[np.flatnonzero(w > 0)]
    some = some[np.unique(np.linspace(0, len(some) - 1, CANDIDATES).astype(int))]
    costs = np.empty((len(some), len(some)))
    least_costs(some, some, window, False, costs)
    return some(int(costs.sum(axis=1).argmin())).copy()


def _weights(weights: Any, n: int) -> Array:
    try:
        w = np.ones(n) if weights is None else as_floats(weights)
    except (TypeError, ValueError):
        raise InputError(f"weights must be {n} numbers, one a series") from None
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise InputError(f"weights must be {n} finite numbers from 0 up, one a series, not all of them 0")
    return w
