"""Dynamic time warping (DTW): the distance of two series after an optimal alignment of their time points."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from coterie import kernels
from coterie.core.arguments import is_number, one_of
from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.data.scale_check import unsafe_exponent
from coterie.distances.distance import Distance
from coterie.distances.euclidean import multiply
from coterie.distances.series import Series, as_one_series, as_series, check_same_channels, concatenated
from coterie.distances.windows import Band, Mask, NoWindow, as_window
from coterie.errors import InputError, ParameterError, RangeWarning

COSTS = ("squared", "absolute")


class Warping(NamedTuple):
    """The optimal alignment of two series."""

    cost: Array  # (n, m) minimum cost of a path from (0, 0) to each pair of time points; infinite if there is no path
    path: Array  # (steps, 2) the aligned pairs of time points, from (0, 0) to (n - 1, m - 1)


def dtw(x: Any, y: Any, *, window: Any = None, cost: str = "squared", best_so_far: float | None = None) -> float:
    r"""Compute the distance of two series by dynamic time warping (DTW).

    .. math:: \Bigl(\min_\pi \sum_{(i, j) \in \pi} \lVert x_i - y_j \rVert^2\Bigr)^{1/2}

    over all paths from (0, 0) to the last time points, whose steps advance by one time point in one series or in both
    [1]_. With ``cost="absolute"`` it is :math:`\min_\pi \sum \lVert x_i - y_j \rVert_1`, without a root. The sum is not
    divided by the length of the path, and all steps have the same weight. dtaidistance and tslearn use the same
    definition; aeon returns the square.

    The triangle inequality does not hold, and the distance of different series can be 0. Do not use DTW if the time of
    an event matters. If level and scale of the series do not matter, standardise each series first.

    Parameters
    ----------
    x, y : array (length,) or (length, channels)
        The series, of any lengths. NaN at the end is ignored.
    window : None, int, float, Itakura or array of bool (n, m), default=None
        Pairs of time points that can be aligned. An int is the radius of a Sakoe-Chiba band around the diagonal; a
        float is the radius as a share of the longer series. Series of different lengths have two diagonals, and the
        band contains all pairs between them. `coterie.distances.windows.Itakura(slope)` is a parallelogram. An array
        states for each pair whether it is allowed.
    cost : {'squared', 'absolute'}, default='squared'
        Cost of a pair of time points: the sum of squared or of absolute differences over all channels.
    best_so_far : float, default=None
        If the distance is larger than this value, the result is infinity, and the computation stops early.

    Returns
    -------
    float

    Notes
    -----
    Takes n m channels operations, or fewer with a window, and memory for one row of the cost matrix. For many series,
    `pairwise(series, metric="dtw")` takes a tenth of the time per pair.

    References
    ----------
    .. [1] H. Sakoe & S. Chiba (1978), Dynamic programming algorithm optimization for spoken word recognition, IEEE
       Transactions on Acoustics, Speech, and Signal Processing 26, 43-49. https://doi.org/10.1109/TASSP.1978.1163055

    Examples
    --------
    >>> from coterie.distances import dtw
    >>> dtw([1, 2, 3], [1, 2, 2, 3])
    0.0
    >>> dtw([0, 0, 4, 4], [0, 4, 4, 4], window=0)  # no warping: the Euclidean distance
    4.0
    >>> dtw([0, 0, 4, 4], [0, 4, 4, 4], window=1)
    0.0
    """
    A, B, exponent = to_safe_range(*as_pair(x, y))
    absolute = as_cost(cost) == "absolute"
    limit = _limit(best_so_far, absolute, A.dtype, exponent)
    out = np.empty((1, 1), A.dtype)
    bounded_path_costs(kernels_for(A, B), A, B, as_window(window), absolute, limit, out)
    if best_so_far is None:
        check_overflow(out)
    elif np.isinf(out[0, 0]):
        return np.inf
    distance = out if absolute else np.sqrt(out)
    multiply(distance, exponent)
    return float(distance[0, 0]) if best_so_far is None or distance[0, 0] <= best_so_far else np.inf


def dtw_path(x: Any, y: Any, *, window: Any = None, cost: str = "squared") -> Warping:
    """Compute the accumulated cost matrix of two series, and the optimal path that `dtw` measures.

    Parameters
    ----------
    x, y, window, cost
        As in `dtw`.

    Returns
    -------
    Warping
        The pair (cost, path). ``cost[-1, -1]`` is the cost of the path: the square of `dtw`, or `dtw` itself with
        ``cost="absolute"``. Among paths of equal cost, diagonal steps are preferred. Costs that underflow are 0, with
        a `RangeWarning`; the path is correct nevertheless.

    Examples
    --------
    >>> from coterie.distances import dtw_path
    >>> cost, path = dtw_path([1, 2, 3], [1, 2, 2, 4])
    >>> float(cost[-1, -1])
    1.0
    >>> path.tolist()
    [[0, 0], [1, 1], [1, 2], [2, 3]]
    """
    A, B, exponent = to_safe_range(*as_pair(x, y))
    n, m = int(A.length[0]), int(B.length[0])
    low, high = as_window(window).band(n, m)
    ops = kernels.select("dtw", 1, n, m)
    absolute = as_cost(cost) == "absolute"
    table = ops.accumulated_costs(A(0), B(0), low, high, absolute)
    path = ops.warping_path(table)
    return Warping(_in_units(table, exponent if absolute else 2 * exponent), path)


@stored("distance.DTW")
@dataclass(frozen=True)
class DTW(Distance):
    """Dynamic time warping between series of any lengths; see `dtw`."""

    window: Any = None
    cost: str = "squared"
    exponent_: int = 0  # series are divided by 2^exponent_, if their squares would overflow or underflow

    name = "dtw"
    triangle = False
    definite = False  # repeated values do not change the distance
    work = 256

    def __post_init__(self) -> None:
        as_cost(self.cost)
        if isinstance(as_window(self.window), Mask):
            raise ParameterError("window: a boolean array is for one pair of series; pass it to dtw or dtw_path")

    def rows(self, X: Any, name: str = "X") -> Series:
        return as_series(X, name)

    def fitted(self, X: Series, Y: Any = None) -> Self:
        if Y is not None:
            check_same_channels(X, Y)
        return replace(self, exponent_=shared_exponent(*([X] if Y is None else [X, Y])))

    def prepare(self, X: Series) -> Series:
        return X.times_power(-self.exponent_)

    def up_to_scale(self) -> Self:
        return replace(self, exponent_=0)

    def between(self, A: Series, B: Series, out: Array) -> None:
        with np.errstate(over="ignore"):  # new series may be much larger than those of the fit
            path_costs(A.astype(out.dtype), B.astype(out.dtype), as_window(self.window), self.cost == "absolute", out)
        check_overflow(out)
        if self.cost == "squared":
            np.sqrt(out, out=out)
        self.put_to_scale(out)

    def put_to_scale(self, values: Array) -> None:
        multiply(values, self.exponent_)


def path_costs(A: Series, B: Series, window: Any, absolute: bool, out: Array) -> None:
    """The minimum path costs (a, b) between all series of `A` and `B`, which have the same dtype."""
    ops = kernels_for(A, B)
    if len(A) <= len(B) or isinstance(window, Mask):
        bounded_path_costs(ops, A, B, window, absolute, np.empty(0, out.dtype), out)
        return
    # Kernels process the series of the second argument in parallel lanes, so it should be the larger one.
    transposed = np.empty(out.shape[::-1], out.dtype)
    bounded_path_costs(ops, B, A, window, absolute, np.empty(0, out.dtype), transposed)
    out[:] = transposed.T


def bounded_path_costs(ops: Any, A: Series, B: Series, window: Any, absolute: bool, limit: Array, out: Array) -> None:
    """The minimum path costs (a, b); infinite above the `limit` of a series of `B`, (b,), or (0,) for no limit."""
    for rows, columns, (low, high) in window_groups(A, B, window):
        a, b = A[rows], B[columns]
        part = np.empty((len(a), len(b)), out.dtype)
        bound = limit[columns] if len(limit) else limit
        ops.path_costs(a.values, a.start, a.length, b.values, b.start, b.length, low, high, absolute, bound, part)
        out[np.ix_(rows, columns)] = part


def kernels_for(A: Series, B: Series, passes: int = 1) -> Any:
    return kernels.select("dtw", passes * len(A) * len(B), A.longest, B.longest)


def window_groups(A: Series, B: Series, window: Any) -> Iterator[tuple[Array, Array, Band]]:
    """Groups of rows of `A` and of `B` with the same band, and the band; each pair is in exactly one group."""
    if len(A) == 0 or len(B) == 0:
        return
    if isinstance(window, NoWindow):  # series of all lengths can share the band of the longest ones
        band = window.band(A.longest, B.longest)
        yield np.arange(len(A)), np.argsort(B.length, kind="stable"), band
        return
    for n in np.unique(A.length):
        rows = np.flatnonzero(A.length == n)
        for m in np.unique(B.length):
            yield rows, np.flatnonzero(B.length == m), window.band(int(n), int(m))


def as_cost(cost: Any) -> str:
    return str(one_of("cost", cost, COSTS))


def as_pair(x: Any, y: Any) -> tuple[Series, Series]:
    a, b = as_one_series(x, "x"), as_one_series(y, "y")
    dtype = np.result_type(a.dtype, b.dtype)
    A, B = concatenated([a.astype(dtype, copy=False)]), concatenated([b.astype(dtype, copy=False)])
    check_same_channels(A, B, ("x", "y"))
    return A, B


def shared_exponent(*series: Series) -> int:
    """Exponent of the power of two just above the largest value; 0 if sums of squares stay in range."""
    values = [np.abs(part.values) for part in series]  # with NaN after the end of shorter series
    size = max(float(np.fmax.reduce(part, axis=None)) for part in values)
    return unsafe_exponent(size, np.result_type(*values))


def to_safe_range(A: Series, B: Series) -> tuple[Series, Series, int]:
    """Series divided by a power of two if their squares would overflow or underflow; and its exponent."""
    exponent = shared_exponent(A, B)
    return A.times_power(-exponent), B.times_power(-exponent), exponent


def _in_units(table: Array, exponent: int) -> Array:
    """A cost matrix times 2^exponent; overflow raises an error, underflow a warning."""
    if exponent == 0:
        return table
    with np.errstate(over="ignore", under="ignore"):
        costs = np.ldexp(table, exponent)
    check_overflow(costs[np.isfinite(table)])
    if (costs[table > 0] < np.finfo(costs.dtype).tiny).any():
        warnings.warn(
            f"costs of about 2^{exponent} cannot be represented in {costs.dtype}: they are 0 or lose digits. "
            "The path is correct",
            RangeWarning,
            stacklevel=3,
        )
    return costs


def _limit(best_so_far: float | None, absolute: bool, dtype: Any, exponent: int) -> Array:
    """The cost of the distance `best_so_far` plus a margin for rounding, for series divided by 2^exponent."""
    if best_so_far is None:
        return np.empty(0, dtype)
    if not is_number(best_so_far) or not best_so_far >= 0:
        raise ParameterError(f"best_so_far must be a number >= 0; got {best_so_far!r}")
    with np.errstate(over="ignore", under="ignore"):
        largest = np.ldexp(np.float64(best_so_far), -exponent)
        cost = largest if absolute else largest**2
        return np.array([cost * (1 + 8 * np.finfo(dtype).eps)]).astype(dtype)


def check_overflow(costs: Array) -> None:
    if not np.isfinite(costs).all():
        raise InputError(
            "the series contain values so large that their squares overflow: divide all series by the largest value"
        )
