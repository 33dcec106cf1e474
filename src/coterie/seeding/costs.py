"""Costs of rows at centers: each model is initialised with the cost that it minimises."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.arrays import Array

WORK = 8  # work of a pass in numbers of centers, by which the kernels are selected
BLOCK = 1 << 20  # maximum number of costs in memory at once
LARGEST_FUZZIFIER = 8.0  # for initialisation: k to the power of the fuzzifier must not overflow float32


class Cost:
    """The cost of rows at one center, and at several centers together.

    A subclass defines `table`. All other methods follow from it; a subclass can override them with faster ones.
    """

    degree = 1  # costs are proportional to this power of the unit of the data
    has_means = False  # whether the mean of rows minimises their cost
    is_nearest = True  # whether the cost at several centers is that at the nearest one

    def table(self, X: Any, points: Array) -> Array:
        """The cost of every row at each point (n, m), in the units of the data."""
        raise NotImplementedError

    def beside(self, costs: Array, others: Array) -> Array:
        """The cost of rows at two sets of centers together: the smaller one, unless memberships are fuzzy."""
        return np.minimum(costs, others)

    def spread(self, X: Any, w: Any, unit: float, points: Array, closest: Array, again: bool = False) -> Array:
        """Update the costs `closest` (n,) with points[0]; return the potential, then that with each other point added.

        The potential is the weighted sum of all costs, in `unit`. `again`: `closest` already includes points[0].
        """
        costs = self._in_unit(X, points, unit, closest.dtype)
        if not again:
            closest[:] = self.beside(closest, costs[:, 0])
        combined = self.beside(closest[:, None], costs)
        combined[:, 0] = closest
        return np.asarray(
            combined.sum(axis=0, dtype=np.float64) if w is None else w @ combined.astype(np.float64, copy=False)
        )

    def add(self, X: Any, unit: float, points: Array, closest: Array, owner: Any = None) -> tuple[Array, Array]:
        """Update `closest` with all points; return the nearest point (n,), and whether it is nearer than before (n,).

        `owner` is the nearest point of each row, if it is already known.
        """
        n, size = X.shape[0], max(1, BLOCK // len(points))
        owner, is_nearer = np.zeros(n, np.int32), np.zeros(n, bool)
        for first in range(0, n, size):
            rows = slice(first, first + size)
            costs = self._in_unit(X[rows], points, unit, closest.dtype)
            owner[rows] = costs.argmin(axis=1)
            is_nearer[rows] = costs.min(axis=1) < closest[rows]
            for column in costs.T:
                closest[rows] = self.beside(closest[rows], column)
        return owner, is_nearer

    def _in_unit(self, X: Any, points: Array, unit: float, dtype: Any) -> Array:
        """`table` in `unit`; a row of weight 0 may be so far away that its cost is limited to the range of `dtype`."""
        return np.minimum(self.table(X, points) / unit**self.degree, np.finfo(dtype).max)

    def as_centers(self, X: Any) -> Any:
        """Rows as centers: missing values are imputed."""
        return X

    def take(self, X: Any, rows: Array) -> Array:
        """These rows as dense centers."""
        return self.as_centers(kernels.for_centers(X, WORK).take(X, rows))


@dataclass(frozen=True)
class Squares(Cost):
    """Squared Euclidean distances to the nearest center, of dense and sparse rows."""

    degree = 2
    has_means = True

    def table(self, X: Any, points: Array) -> Array:
        return kernels.for_centers(X, len(points)).distances(X, points).astype(np.float64) ** 2

    def spread(self, X: Any, w: Any, unit: float, points: Array, closest: Array, again: bool = False) -> Array:
        return kernels.for_centers(X, WORK).potentials(X, w, unit, points, closest)

    def add(self, X: Any, unit: float, points: Array, closest: Array, owner: Any = None) -> tuple[Array, Array]:
        ops = kernels.for_centers(X, len(points))
        owner = ops.nearest(X, points) if owner is None else owner
        squares = np.minimum(ops.assigned_squares(X, points, owner) / unit**2, np.finfo(np.float64).max)
        is_nearer: Array = squares < closest
        np.minimum(closest, squares, out=closest)
        return owner, is_nearer


@dataclass(frozen=True)
class ObservedSquares(Cost):
    """Squared distances over the observed columns; missing values of centers are replaced by `fill` (d,)."""

    fill: Array

    degree = 2
    has_means = True

    def table(self, X: Any, points: Array) -> Array:
        return kernels.select("nan_kmeans", X, len(points)).distances(X, points).astype(np.float64) ** 2

    def as_centers(self, X: Any) -> Any:
        return kernels.select("nan_kmeans", X, 1).fill_missing(X, self.fill)

    def take(self, X: Any, rows: Array) -> Array:
        return self.as_centers(X[rows])


@dataclass(frozen=True)
class Manhattan(Cost):
    """L1 distances to the nearest center."""

    def table(self, X: Any, points: Array) -> Array:
        return kernels.select("medians", X, len(points)).distances(X, points)


@dataclass(frozen=True)
class Euclidean(Cost):
    """Euclidean distances to the nearest center, not squared."""

    def table(self, X: Any, points: Array) -> Array:
        return kernels.for_centers(X, len(points)).distances(X, points)


@dataclass(frozen=True)
class Shared(Squares):
    r"""The cost of rows in fuzzy c-means, at their optimal memberships.

    .. math:: \Bigl(\sum_k \lVert x - c_k \rVert^{-2p}\Bigr)^{-1/p}, \qquad p = 1 / (m - 1)

    To add a center, only the cost at the other centers is needed. For m near 1 it is the cost at the nearest center.
    """

    m: float

    has_means = False
    is_nearest = False
    spread = Cost.spread
    add = Cost.add

    def beside(self, costs: Array, others: Array) -> Array:
        p = 1.0 / (min(self.m, LARGEST_FUZZIFIER) - 1.0)
        if p == 1.0:
            with np.errstate(divide="ignore", over="ignore"):  # the cost at a center is 0
                return 1.0 / (1.0 / costs + 1.0 / others)
        low, high = np.minimum(costs, others), np.maximum(costs, others)
        is_ratio = (high > 0) & np.isfinite(high)
        ratio = np.where(is_ratio, low, 0.0) / np.where(is_ratio, high, 1.0)
        return low * np.exp(np.log1p(ratio**p) / -p)


SQUARES = Squares()
