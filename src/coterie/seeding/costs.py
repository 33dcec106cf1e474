"""What a row costs at centers: each model seeds by the cost that it minimises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels

Array = np.ndarray[Any, Any]
WORK = 8  # centers a pass is about as much work as, for the choice of kernels
BLOCK = 1 << 20  # costs that are held together
LARGEST_FUZZIFIER = 8.0  # of seeding: k to the power of the fuzzifier must be a number in float32


class Cost:
    """The cost of rows at points, and at several points together.

    A subclass defines `table`. All other methods follow from it; a subclass overrides one where it has a faster way.
    """

    degree = 1  # the power of the unit of the data that costs are measured in
    has_means = False  # whether the mean of some rows is their best center

    def table(self, X: Any, points: Array) -> Array:
        """The cost of every row at each point (n, m), in the units of the data."""
        raise NotImplementedError

    def beside(self, costs: Array, others: Array) -> Array:
        """What rows cost at two centers together: at the nearer one alone, unless rows share."""
        return np.minimum(costs, others)

    def spread(self, X: Any, w: Any, unit: float, points: Array, closest: Array, again: bool = False) -> Array:
        """Update `closest` (n,) with points[0]; the potential of that, and with each other point beside it.

        The potential is the weighted sum of all costs in `unit`. `again`: points[0] is in `closest` already.
        """
        costs = self.table(X, points) / unit**self.degree
        if not again:
            closest[:] = self.beside(closest, costs[:, 0])
        together = self.beside(closest[:, None], costs)
        together[:, 0] = closest
        return together.sum(axis=0, dtype=np.float64) if w is None else w @ together.astype(np.float64, copy=False)

    def add(self, X: Any, unit: float, points: Array, closest: Array, owner: Any = None) -> tuple[Array, Array]:
        """Update `closest` with all points: the nearest of them (n,), and where it is nearer than all before.

        `owner` is that nearest point, where it is known already.
        """
        n, size = X.shape[0], max(1, BLOCK // len(points))
        owner, is_nearer = np.zeros(n, np.int32), np.zeros(n, bool)
        for first in range(0, n, size):
            rows = slice(first, first + size)
            costs = self.table(X[rows], points) / unit**self.degree
            owner[rows] = costs.argmin(axis=1)
            is_nearer[rows] = costs.min(axis=1) < closest[rows]
            for column in costs.T:
                closest[rows] = self.beside(closest[rows], column)
        return owner, is_nearer

    def as_centers(self, X: Any) -> Any:
        """Rows in the form of centers: without missing values."""
        return X

    def take(self, X: Any, rows: Array) -> Array:
        """Some rows, dense, as centers."""
        taken: Array = self.as_centers(kernels.for_centers(X, WORK).take(X, rows))
        return taken


@dataclass(frozen=True)
class Squares(Cost):
    """Squared Euclidean distances to the nearest center, of dense and sparse rows."""

    degree = 2
    has_means = True

    def table(self, X: Any, points: Array) -> Array:
        found: Array = kernels.for_centers(X, len(points)).distances(X, points).astype(np.float64) ** 2
        return found

    def spread(self, X: Any, w: Any, unit: float, points: Array, closest: Array, again: bool = False) -> Array:
        found: Array = kernels.for_centers(X, WORK).spread(X, w, unit, points, closest)
        return found

    def add(self, X: Any, unit: float, points: Array, closest: Array, owner: Any = None) -> tuple[Array, Array]:
        ops = kernels.for_centers(X, len(points))
        owner = ops.nearest(X, points) if owner is None else owner
        squares = ops.own_squares(X, points, owner) / unit**2
        is_nearer: Array = squares < closest
        closest[is_nearer] = squares[is_nearer]
        return owner, is_nearer


@dataclass(frozen=True)
class ObservedSquares(Cost):
    """Squared distances over the columns observed; a row that becomes a center is filled up with `fill` (d,)."""

    fill: Array

    degree = 2
    has_means = True

    def table(self, X: Any, points: Array) -> Array:
        found: Array = kernels.select("observed", X, len(points)).distances(X, points).astype(np.float64) ** 2
        return found

    def as_centers(self, X: Any) -> Any:
        return kernels.select("observed", X, 1).filled(X, self.fill)

    def take(self, X: Any, rows: Array) -> Array:
        taken: Array = self.as_centers(X[rows])
        return taken


@dataclass(frozen=True)
class Manhattan(Cost):
    """L1 distances to the nearest center."""

    def table(self, X: Any, points: Array) -> Array:
        found: Array = kernels.select("medians", X, len(points)).distances(X, points)
        return found


@dataclass(frozen=True)
class Euclidean(Cost):
    """Euclidean distances to the nearest center, not squared."""

    def table(self, X: Any, points: Array) -> Array:
        found: Array = kernels.for_centers(X, len(points)).distances(X, points)
        return found


@dataclass(frozen=True)
class Shared(Squares):
    r"""What rows cost in fuzzy c-means, whose memberships are those that cost least.

    .. math:: \Bigl(\sum_k \lVert x - c_k \rVert^{-2p}\Bigr)^{-1/p}, \qquad p = 1 / (m - 1)

    The cost of some centers is all that is needed to add another one. For m near 1 it is the cost at the nearest.
    """

    m: float

    has_means = False
    spread = Cost.spread
    add = Cost.add

    def beside(self, costs: Array, others: Array) -> Array:
        p = 1.0 / (min(self.m, LARGEST_FUZZIFIER) - 1.0)
        low, high = np.minimum(costs, others), np.maximum(costs, others)
        ratio = np.divide(low, high, out=np.zeros(low.shape, low.dtype), where=(high > 0) & np.isfinite(high))
        return low * np.exp(np.log1p(ratio**p) / -p)


SQUARES = Squares()
