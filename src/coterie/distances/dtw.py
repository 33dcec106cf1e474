"""Dynamic time warping: the distance of two series once each may wait for the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from coterie import kernels
from coterie.core.errors import InputError, ParameterError, RangeWarning
from coterie.core.stored import stored
from coterie.data.scale import unsafe_exponent
from coterie.distances.distance import Array, Distance
from coterie.distances.euclidean import multiply
from coterie.distances.series import Series, as_series, joined, one_series, same_channels
from coterie.distances.windows import Band, Everywhere, Mask, as_window

COSTS = ("squared", "absolute")


class Warping(NamedTuple):
    """How two series meet."""

    cost: Array  # (n, m) the least cost of a path from the beginnings to each pair of moments; infinite where none goes
    path: Array  # (steps, 2) the pairs of moments that meet, from (0, 0) to (n - 1, m - 1)


def dtw(x: Any, y: Any, *, window: Any = None, cost: str = "squared", best_so_far: float | None = None) -> float:
    r"""The distance of two series by dynamic time warping.

    .. math:: \Bigl(\min_\pi \sum_{(i, j) \in \pi} \lVert x_i - y_j \rVert^2\Bigr)^{1/2}

    over all paths from (0, 0) to the last moments whose steps go one moment on in one series or in both [1]_. With
    ``cost="absolute"`` it is :math:`\min_\pi \sum \lVert x_i - y_j \rVert_1`, without a root. Nothing is divided by the
    length of the path, and no step counts twice. So do dtaidistance and tslearn; what aeon gives is the square.

    It is no metric: a detour can be shorter, and series of different lengths can be 0 apart. Do not use it where the
    time at which something happens is what matters, nor on series of different levels or scales unless that is meant:
    standardise each first.

    Parameters
    ----------
    x, y : array (length,) or (length, channels)
        The series, of any lengths; NaN after the end is left out.
    window : None, int, float, Itakura or array of bool (n, m), default=None
        Which moments may meet. A whole number is the radius of a band about the diagonal (Sakoe & Chiba), a float such
        a radius as a share of the longer series; series of different lengths have two diagonals, and all between them
        is in the band. `coterie.distances.windows.Itakura(slope)` is a parallelogram. A table says it cell by cell.
    cost : {'squared', 'absolute'}, default='squared'
        What it costs that two moments meet: over all channels, squared differences or absolute ones.
    best_so_far : float, optional
        Where the distance is above this one the answer is infinity, found as early as it is known.

    Returns
    -------
    float

    Notes
    -----
    Costs n m channels operations, with a window only those of the cells in it, and memory for one row of the table.
    Many series at once take a tenth of the time each: `pairwise(series, metric="dtw")`.

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
    A, B, exponent = in_range(*pair(x, y))
    absolute = one_cost(cost) == "absolute"
    limit = _limit(best_so_far, absolute, A.dtype, exponent)
    out = np.empty((1, 1), A.dtype)
    costs_within(kernels_for(A, B), A, B, as_window(window), absolute, limit, out)
    if best_so_far is None:
        check_overflow(out)
    elif np.isinf(out[0, 0]):
        return np.inf
    distance = out if absolute else np.sqrt(out)
    multiply(distance, exponent)
    return float(distance[0, 0]) if best_so_far is None or distance[0, 0] <= best_so_far else np.inf


def dtw_path(x: Any, y: Any, *, window: Any = None, cost: str = "squared") -> Warping:
    """The table of least costs of two series, and the path through it that `dtw` measures.

    Parameters
    ----------
    x, y, window, cost
        As in `dtw`.

    Returns
    -------
    Warping
        The pair (cost, path). ``cost[-1, -1]`` is the cost of the path, the square of `dtw` (with ``cost="absolute"``
        `dtw` itself). Of equally cheap paths it is one that steps on in both series where it can. Costs too small for
        their type are 0, with a `RangeWarning`; the path is right nevertheless.

    Examples
    --------
    >>> from coterie.distances import dtw_path
    >>> cost, path = dtw_path([1, 2, 3], [1, 2, 2, 4])
    >>> float(cost[-1, -1])
    1.0
    >>> path.tolist()
    [[0, 0], [1, 1], [1, 2], [2, 3]]
    """
    A, B, exponent = in_range(*pair(x, y))
    n, m = int(A.length[0]), int(B.length[0])
    low, high = as_window(window).band(n, m)
    ops = kernels.select("dtw", 1, n, m)
    absolute = one_cost(cost) == "absolute"
    table = ops.accumulated(A(0), B(0), low, high, absolute)
    path = ops.path(table)
    return Warping(_in_units(table, exponent if absolute else 2 * exponent), path)


@stored("distance.DTW")
@dataclass(frozen=True)
class DTW(Distance):
    """Dynamic time warping between series of any lengths; see `dtw`."""

    window: Any = None
    cost: str = "squared"
    exponent_: int = 0  # series are divided by 2^exponent_ where their squares would leave the range of numbers

    name = "dtw"
    triangle = False
    definite = False  # a series may be another one that waits
    work = 256

    def __post_init__(self) -> None:
        one_cost(self.cost)
        if isinstance(as_window(self.window), Mask):
            raise ParameterError("window: a table of cells is for one pair of series, in dtw or dtw_path")

    def rows(self, X: Any, name: str = "X") -> Series:
        return as_series(X, name)

    def fitted(self, X: Series, Y: Any = None) -> Self:
        if Y is not None:
            same_channels(X, Y)
        return replace(self, exponent_=shared_exponent(*([X] if Y is None else [X, Y])))

    def prepare(self, X: Series) -> Series:
        return X.times_power(-self.exponent_)

    def up_to_scale(self) -> Self:
        return replace(self, exponent_=0)

    def between(self, A: Series, B: Series, out: Array) -> None:
        with np.errstate(over="ignore"):  # new series may be much larger than those of the fit
            least_costs(A.astype(out.dtype), B.astype(out.dtype), as_window(self.window), self.cost == "absolute", out)
        check_overflow(out)
        if self.cost == "squared":
            np.sqrt(out, out=out)
        self.put_to_scale(out)

    def put_to_scale(self, values: Array) -> None:
        multiply(values, self.exponent_)


def least_costs(A: Series, B: Series, window: Any, absolute: bool, out: Array) -> None:
    """The costs (a, b) of the best paths between all series of `A` and `B`, which are of one type."""
    ops = kernels_for(A, B)
    if len(A) <= len(B) or isinstance(window, Mask):
        costs_within(ops, A, B, window, absolute, np.empty(0, out.dtype), out)
        return
    turned = np.empty(out.shape[::-1], out.dtype)  # B is what is worked on side by side: it should be the larger
    costs_within(ops, B, A, window, absolute, np.empty(0, out.dtype), turned)
    out[:] = turned.T


def costs_within(ops: Any, A: Series, B: Series, window: Any, absolute: bool, limit: Array, out: Array) -> None:
    """The same, infinite where above the `limit` of a series of `B`, (b,) or (0,) for none."""
    for rows, columns, (low, high) in meetings(A, B, window):
        a, b = A[rows], B[columns]
        part = np.empty((len(a), len(b)), out.dtype)
        bound = limit[columns] if len(limit) else limit
        ops.between(a.values, a.start, a.length, b.values, b.start, b.length, low, high, absolute, bound, part)
        out[np.ix_(rows, columns)] = part


def kernels_for(A: Series, B: Series, passes: int = 1) -> Any:
    return kernels.select("dtw", passes * len(A) * len(B), A.longest, B.longest)


def meetings(A: Series, B: Series, window: Any) -> Iterator[tuple[Array, Array, Band]]:
    """Rows of `A` and of `B` that share a window, and the window; together all pairs, each once."""
    if len(A) == 0 or len(B) == 0:
        return
    if isinstance(window, Everywhere):  # an end that comes early does not change what comes before it
        band = window.band(A.longest, B.longest)
        yield np.arange(len(A)), np.argsort(B.length, kind="stable"), band
        return
    for n in np.unique(A.length):
        rows = np.flatnonzero(A.length == n)
        for m in np.unique(B.length):
            yield rows, np.flatnonzero(B.length == m), window.band(int(n), int(m))


def one_cost(cost: Any) -> str:
    if cost not in COSTS:
        raise ParameterError(f"cost must be {' or '.join(map(repr, COSTS))}; got {cost!r}")
    return str(cost)


def pair(x: Any, y: Any) -> tuple[Series, Series]:
    a, b = one_series(x, "x"), one_series(y, "y")
    dtype = np.result_type(a.dtype, b.dtype)
    A, B = joined([a.astype(dtype, copy=False)]), joined([b.astype(dtype, copy=False)])
    same_channels(A, B, ("x", "y"))
    return A, B


def shared_exponent(*series: Series) -> int:
    """Exponent of the power of two just above the largest value; 0 where sums of squares stay in range."""
    values = [np.abs(part.values) for part in series]  # NaN after the end of short series
    size = max(float(np.fmax.reduce(part, axis=None)) for part in values)
    return unsafe_exponent(size, np.result_type(*values))


def in_range(A: Series, B: Series) -> tuple[Series, Series, int]:
    """Series divided by a power of two where their squares would leave the range of numbers; and its exponent."""
    exponent = shared_exponent(A, B)
    return A.times_power(-exponent), B.times_power(-exponent), exponent


def _in_units(table: Array, exponent: int) -> Array:
    """A table of costs times 2^exponent: an error where they are too large, a warning where too small."""
    if exponent == 0:
        return table
    with np.errstate(over="ignore", under="ignore"):
        costs = np.ldexp(table, exponent)
    check_overflow(costs[np.isfinite(table)])
    if (costs[table > 0] < np.finfo(costs.dtype).tiny).any():
        warnings.warn(
            f"costs of about 2^{exponent} cannot be represented in {costs.dtype}: they are 0 or lose digits. "
            "The path is exact",
            RangeWarning,
            stacklevel=3,
        )
    return costs


def _limit(best_so_far: float | None, absolute: bool, dtype: Any, exponent: int) -> Array:
    """A little above the largest cost whose distance is not above `best_so_far`, for series divided by 2^exponent."""
    if best_so_far is None:
        return np.empty(0, dtype)
    if isinstance(best_so_far, bool) or not isinstance(best_so_far, int | float | np.number) or not best_so_far >= 0:
        raise ParameterError(f"best_so_far must be a number from 0 up; got {best_so_far!r}")
    with np.errstate(over="ignore", under="ignore"):
        largest = np.ldexp(np.float64(best_so_far), -exponent)
        cost = largest if absolute else largest**2
        return np.array([cost * (1 + 8 * np.finfo(dtype).eps)]).astype(dtype)


def check_overflow(costs: Array) -> None:
    if not np.isfinite(costs).all():
        raise InputError(
            "the series hold values so large that their squares overflow: divide all of them by their size"
        )
