"""Nearest series by DTW, with lower bounds that exclude most candidates."""

from functools import partial
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.distances.dtw import as_cost, as_pair, bounded_path_costs, kernels_for, to_safe_range, window_groups
from coterie.distances.euclidean import multiply
from coterie.distances.series import Series, as_series, check_same_channels
from coterie.distances.windows import as_window


def lb_kim(x: Any, y: Any, *, cost: str = "squared") -> float:
    r"""Lower bound of `dtw(x, y)` by Kim: the cost of aligning the first and the last time points [1]_.

    .. [1] Kim, Park & Chu (2001), An index-based approach for similarity search supporting time warping in large
       sequence databases, ICDE. https://doi.org/10.1109/ICDE.2001.914875
    """
    A, B, exponent = to_safe_range(*as_pair(x, y))
    a, b = A(0), B(0)
    is_single = len(a) == 1 and len(b) == 1
    ends = np.abs((a[:1] - b[:1]) if is_single else np.stack([a[0] - b[0], a[-1] - b[-1]])).astype(np.float64)
    return _distance(ends.sum() if as_cost(cost) == "absolute" else np.sqrt((ends**2).sum()), exponent)


def lb_keogh(x: Any, y: Any, *, window: Any = None, cost: str = "squared") -> float:
    r"""Lower bound of `dtw(x, y, window=window)` by Keogh, combined with `lb_kim` [1]_.

    The envelope of `x` is the range of its values within the window of each time point of `y`. The bound is the cost of
    the values of `y` outside this envelope: each of them is aligned to a value of `x` within its window.

    .. [1] Keogh & Ratanamahatana (2005), Exact indexing of dynamic time warping, Knowl. Inf. Syst. 7.
       https://doi.org/10.1007/s10115-004-0154-9
    """
    A, B, exponent = to_safe_range(*(series.astype(np.float64) for series in as_pair(x, y)))
    absolute = as_cost(cost) == "absolute"
    bound = lower_bounds(kernels_for(A, B), B, A, as_window(window), absolute)[0, 0]
    return _distance(bound if absolute else np.sqrt(bound), exponent)


def _distance(value: Any, exponent: int) -> float:
    """The distance of series that were divided by 2^exponent, in the original units."""
    distance = np.array([value], np.float64)
    multiply(distance, exponent)
    return float(distance[0])


def nearest(X: Any, references: Any, *, window: Any = None, cost: str = "squared") -> tuple[Array, Array]:
    """Find the nearest of `references` for each series of `X` by DTW.

    Lower bounds exclude most references if one is clearly nearest. The result is the same as without bounds.

    Parameters
    ----------
    X, references : list of arrays, or array (n, length) or (n, length, channels)
        Series of any lengths.
    window, cost
        As in `dtw`; `window` must not be an array.

    Returns
    -------
    index : array (n,)
        Index of the nearest reference; the first one if several are equally near.
    distance : array (n,)
        DTW distance to it.

    Examples
    --------
    >>> from coterie.distances.search import nearest
    >>> index, distance = nearest([[0, 0, 1], [5, 6, 6]], [[0, 1], [5, 6], [9, 9, 9]])
    >>> index.tolist(), distance.tolist()
    ([0, 1], [0.0, 0.0])
    """
    rows, centers = (as_series(x, name).astype(np.float64) for x, name in ((X, "X"), (references, "references")))
    check_same_channels(rows, centers, ("X", "references"))
    absolute = as_cost(cost) == "absolute"
    rows, centers, exponent = to_safe_range(rows, centers)
    labels, costs = nearest_of(kernels_for(rows, centers), rows, centers, as_window(window), absolute)
    distances = costs if absolute else np.sqrt(costs)
    multiply(distances, exponent)
    return labels, distances


def nearest_of(
    ops: Any, rows: Series, centers: Series, window: Any, absolute: bool, guess: Array | None = None
) -> tuple[Array, Array]:
    """The nearest center of each row (n,), and the minimum path cost to it (n,); all in float64.

    Each row is first compared with the center that is probably the nearest: its `guess`, or the center with the
    smallest lower bound. Then it is compared with all centers whose bounds do not exceed the best cost so far.
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
    center: int, candidates: Array, labels: Array, best: Array,
) -> None:  # fmt: skip
    """Assign those of the rows `candidates` to this center that are nearer to it, or as near and its index is lower."""
    if len(candidates) == 0:
        return
    costs = np.empty((1, len(candidates)))
    bounded_path_costs(ops, centers[center : center + 1], rows[candidates], window, absolute, best[candidates], costs)
    before, cost = best[candidates], costs[0]
    nearer = (cost < before) | ((cost == before) & (center < labels[candidates]))
    best[candidates[nearer]] = cost[nearer]
    labels[candidates[nearer]] = center


def lower_bounds(ops: Any, rows: Series, centers: Series, window: Any, absolute: bool) -> Array:
    """Lower bounds of the path costs between all rows and centers (n, k), with a margin for rounding."""
    bound = np.empty((len(rows), len(centers)))
    for members, group_centers, (low, high) in window_groups(rows, centers, window):
        group, values = rows[members], np.empty(len(members))
        for center in group_centers:
            x = centers(int(center))
            envelope = ops.envelope(x, low, high)
            ops.lower_bounds(x, *envelope, group.values, group.start, group.length, absolute, values)
            bound[members, center] = values
    max_terms = (rows.longest + centers.longest) * rows.channels
    bound *= 1 - 4 * max_terms * np.finfo(np.float64).eps
    return bound
