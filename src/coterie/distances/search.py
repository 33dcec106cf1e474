"""The nearest of several series, without measuring those that bounds rule out."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from coterie.distances.distance import Array
from coterie.distances.dtw import costs_within, in_range, kernels_for, meetings, one_cost, pair
from coterie.distances.euclidean import multiply
from coterie.distances.series import Series, as_series, same_channels
from coterie.distances.windows import as_window


def lb_kim(x: Any, y: Any, *, cost: str = "squared") -> float:
    r"""No more than `dtw(x, y)`: what it costs that both first and both last moments meet [1]_.

    .. [1] Kim, Park & Chu (2001), An index-based approach for similarity search supporting time warping in large
       sequence databases, ICDE. https://doi.org/10.1109/ICDE.2001.914875
    """
    A, B, exponent = in_range(*pair(x, y))
    a, b = A(0), B(0)
    one = len(a) == 1 and len(b) == 1
    apart = np.abs((a[:1] - b[:1]) if one else np.stack([a[0] - b[0], a[-1] - b[-1]])).astype(np.float64)
    return _distance(apart.sum() if one_cost(cost) == "absolute" else np.sqrt((apart**2).sum()), exponent)


def lb_keogh(x: Any, y: Any, *, window: Any = None, cost: str = "squared") -> float:
    r"""No more than `dtw(x, y, window=window)`: how far `y` leaves the envelope of `x` [1]_, and the ends of `lb_kim`.

    The envelope is what `x` reaches within the window of each moment of `y`; every moment of `y` meets one of these.

    .. [1] Keogh & Ratanamahatana (2005), Exact indexing of dynamic time warping, Knowl. Inf. Syst. 7.
       https://doi.org/10.1007/s10115-004-0154-9
    """
    A, B, exponent = in_range(*(series.astype(np.float64) for series in pair(x, y)))
    absolute = one_cost(cost) == "absolute"
    bound = lower_bounds(kernels_for(A, B), B, A, as_window(window), absolute)[0, 0]
    return _distance(bound if absolute else np.sqrt(bound), exponent)


def _distance(value: Any, exponent: int) -> float:
    """The distance of series that were divided by 2^exponent, in their units."""
    distance = np.array([value], np.float64)
    multiply(distance, exponent)
    return float(distance[0])


def nearest(X: Any, references: Any, *, window: Any = None, cost: str = "squared") -> tuple[Array, Array]:
    """The nearest of `references` for each series of `X`, the first of several, and how far it is by `dtw`.

    Bounds rule most references out where one is clearly nearest: the answer is that of measuring all.

    Examples
    --------
    >>> from coterie.distances.search import nearest
    >>> index, distance = nearest([[0, 0, 1], [5, 6, 6]], [[0, 1], [5, 6], [9, 9, 9]])
    >>> index.tolist(), distance.tolist()
    ([0, 1], [0.0, 0.0])
    """
    rows, among = (as_series(x, name).astype(np.float64) for x, name in ((X, "X"), (references, "references")))
    same_channels(rows, among, ("X", "references"))
    absolute = one_cost(cost) == "absolute"
    rows, among, exponent = in_range(rows, among)
    labels, costs = nearest_of(kernels_for(rows, among), rows, among, as_window(window), absolute)
    distances = costs if absolute else np.sqrt(costs)
    multiply(distances, exponent)
    return labels, distances


def nearest_of(
    ops: Any, rows: Series, centers: Series, window: Any, absolute: bool, guess: Array | None = None
) -> tuple[Array, Array]:
    """The nearest center of each row (n,), and the cost of the best path to it (n,); all in float64.

    A row first meets the center it is likely to stay with, its `guess` or the one of the least bound; then those whose
    bounds are no higher than what that costs.
    """
    n, k = len(rows), len(centers)
    improve = partial(_improve, ops, rows, centers, window, absolute)
    bound = lower_bounds(ops, rows, centers, window, absolute) if k > 1 else np.zeros((n, 1))
    first = np.argmin(bound, axis=1)
    if guess is not None:
        first = np.where(guess >= 0, guess, first)
    labels, best = first.astype(np.int32), np.full(n, np.inf)
    for center in range(k):
        improve(center, np.flatnonzero(first == center), labels, best)
    for center in range(k):
        improve(center, np.flatnonzero((bound[:, center] <= best) & (first != center)), labels, best)
    return labels, best


def _improve(
    ops: Any, rows: Series, centers: Series, window: Any, absolute: bool,
    center: int, open_: Array, labels: Array, best: Array,
) -> None:  # fmt: skip
    """Rows `open_` that are nearer to this center, or as near to it and it comes first, take it."""
    if len(open_) == 0:
        return
    costs = np.empty((1, len(open_)))
    costs_within(ops, centers[center : center + 1], rows[open_], window, absolute, best[open_], costs)
    before, found = best[open_], costs[0]
    nearer = (found < before) | ((found == before) & (center < labels[open_]))
    best[open_[nearer]] = found[nearer]
    labels[open_[nearer]] = center


def lower_bounds(ops: Any, rows: Series, centers: Series, window: Any, absolute: bool) -> Array:
    """What no path between a row and a center costs less than (n, k); a little less, for what rounding may add."""
    bound = np.empty((len(rows), len(centers)))
    for own, others, (low, high) in meetings(rows, centers, window):
        group, found = rows[own], np.empty(len(own))
        for center in others:
            x = centers(int(center))
            envelope = ops.envelope(x, low, high)
            ops.bounds(x, *envelope, group.values, group.start, group.length, absolute, found)
            bound[own, center] = found
    most = (rows.longest + centers.longest) * rows.channels
    bound *= 1 - 4 * most * np.finfo(np.float64).eps
    return bound
