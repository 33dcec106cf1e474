"""Densities of rows: counts of each cluster in the cells of a grid, added block by block, and their colours."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.errors import ParameterError
from coterie.palette import NOISE, as_rgb
from coterie.web.packing import pack_counts, span

CELLS = 320  # cells along each axis; merged in pairs if they would be too small, or too many
BUFFER = 1 << 20  # minimum number of keys that are collected before they are counted
MIN_OPACITY = 0.45  # opacity of a cell with one row, which must be visible
FULL_OPACITY = 0.995  # quantile of the counts that has full opacity, so that one large count does not hide the others
GAMMA = 2.2  # colours are mixed as light, not as sRGB values
SHARPNESS = 4.0  # colours are mixed by this power of the shares, so that the largest cluster of a cell dominates


@dataclass(frozen=True, eq=False)
class Density:
    """Number of rows of each cluster in each cell of a grid: the positive counts, in order."""

    shape: tuple[int, int]  # number of cells vertically and horizontally
    k: int
    cluster: Array  # (e,) k: in no cluster
    place: Array  # (e,) index of the cell, row by row from the lower left
    count: Array  # (e,)

    @property
    def total(self) -> Array:
        """Number of rows in each cell (vertical, horizontal), from the bottom."""
        return np.bincount(self.place, self.count, self._cells).astype(np.int64).reshape(self.shape)

    @property
    def owner(self) -> Array:
        """Cluster with the most rows in each cell (vertical, horizontal); the first of ties; -1: none, or no row."""
        order = np.lexsort((-self.cluster, self.count, self.place))
        owner = np.full(self._cells, self.k)
        owner[self.place[order]] = self.cluster[order]  # for repeated places, the last assignment wins
        return np.where(owner == self.k, -1, owner).reshape(self.shape)

    def merged(self, up: int, across: int) -> "Density":
        """Return the counts in cells that are `up` times as high and `across` times as wide."""
        (high, rest_up), (wide, rest_across) = divmod(self.shape[0], up), divmod(self.shape[1], across)
        if rest_up or rest_across:
            raise ParameterError(f"up and across must divide the shape {self.shape}; got {up} and {across}")
        y, x = np.divmod(self.place, self.shape[1])
        keys, count = _sum_counts((self.cluster * high + y // up) * wide + x // across, self.count)
        cluster, place = np.divmod(keys, high * wide)
        return Density((high, wide), self.k, cluster, place, count)

    def packed(self) -> str:
        """Return the counts of all cells, cluster by cluster, in the format of `web/src/density.ts`."""
        return pack_counts(self.cluster * self._cells + self.place, self.count)

    def pixels(self, colors: Sequence[str]) -> Array:
        """Return the grid as RGBA (vertical, horizontal, 4) from the top: hue shows the cluster, opacity the count.

        Opacity is linear in the logarithm of the count: ten times as many rows always add the same opacity.
        `web/src/density.ts` does the same in the browser.
        """
        total = self.total.ravel()
        weight = (self.count / total[self.place]) ** SHARPNESS
        light = as_rgb([*colors, NOISE])[self.cluster] ** GAMMA
        mass = np.maximum(np.bincount(self.place, weight, len(total)), 1e-300)
        sums = [np.bincount(self.place, weight * channel, len(total)) for channel in light.T]
        rgb = (np.stack(sums, axis=1) / mass[:, None]) ** (1 / GAMMA)
        counts = np.sort(total[total > 0])
        full = int(counts[int(FULL_OPACITY * (len(counts) - 1))]) if len(counts) else 1
        depth = np.log(np.maximum(total, 1)) / np.log(max(full, 2))
        alpha = np.where(total > 0, MIN_OPACITY + (1 - MIN_OPACITY) * np.minimum(depth, 1.0), 0.0)
        pixels = np.concatenate([rgb, alpha[:, None]], axis=1) * 255
        return np.rint(pixels).astype(np.uint8).reshape(*self.shape, 4)[::-1]

    @property
    def _cells(self) -> int:
        return self.shape[0] * self.shape[1]


class Densities:
    """Counts of rows for every pair of p axes, added block by block; the result does not depend on blocks and order.

    `low` and `high` (p,) are the limits of the rows along each axis, so the rows need not be in memory together. Rows
    outside are counted in the cells at the edge. The cost is O(p²) per row, for all pairs of axes. Memory is
    proportional to the number of cells with rows, plus about a million rows that are not yet counted.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.web import Densities
    >>> points, codes = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]]), np.array([0, 1, -1])
    >>> counted = Densities(points.min(axis=0), points.max(axis=0), k=2, cells=2)
    >>> counted.add(points[:1], codes[:1])
    >>> counted.add(points[1:], codes[1:])
    >>> counted.of(0, 1).total.tolist()
    [[1, 0], [0, 2]]
    """

    def __init__(self, low: Any, high: Any, k: int, cells: int = CELLS) -> None:
        ends = [span((a, b)) for a, b in zip(low, high, strict=True)]
        if len(ends) < 2 or not np.isfinite(ends).all():
            raise ParameterError(f"low and high must be finite and have at least two axes; got {low} and {high}")
        self.low, self.high = np.array(ends).T
        self.k, self.cells, self.rows, self.n_noise = k, cells, 0, 0
        self._tallies = {pair: _Tally() for pair in combinations(range(len(ends)), 2)}

    def add(self, points: Any, codes: Any) -> None:
        """Count rows (m, p) of clusters (m,); -1 means no cluster."""
        rows, cluster = np.asarray(points, dtype=np.float64), np.asarray(codes, dtype=np.int64)
        if rows.shape != (len(cluster), len(self.low)) or not np.isfinite(rows).all():
            raise ParameterError(
                f"points must be finite and have the shape ({len(cluster)}, {len(self.low)}); got {rows.shape}"
            )
        if len(cluster) and not (cluster.min() >= -1 and cluster.max() < self.k):
            raise ParameterError(f"codes must be from -1 to {self.k - 1}; got {cluster.min()} to {cluster.max()}")
        steps = (rows - self.low) * (self.cells / (self.high - self.low))
        x = np.clip(steps, 0, self.cells - 1, out=steps).astype(np.int64).T
        first = np.where(cluster < 0, self.k, cluster) * self.cells**2
        for (i, j), tally in self._tallies.items():
            tally.add(first + x[j] * self.cells + x[i])
        self.rows += len(cluster)
        self.n_noise += int((cluster < 0).sum())

    def of(self, i: int, j: int) -> Density:
        """Return the density along axes i < j, with i horizontal and j vertical."""
        keys, count = self._tallies[i, j].counted()
        cluster, place = np.divmod(keys, self.cells**2)
        return Density((self.cells, self.cells), self.k, cluster, place, count)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(self._tallies)


class _Tally:
    """Counter of integer keys, which collects keys and counts many at a time."""

    def __init__(self) -> None:
        self._keys, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting: list[Array] = []
        self._n_waiting = 0

    def add(self, keys: Array) -> None:
        self._waiting.append(keys)
        self._n_waiting += len(keys)
        if self._n_waiting > max(BUFFER, 4 * len(self._keys)):
            self.counted()

    def counted(self) -> tuple[Array, Array]:
        """Return the keys in ascending order, and their counts."""
        if self._n_waiting:
            keys, counts = _count_keys(np.concatenate(self._waiting))
            self._keys, self._counts = _sum_counts(np.append(self._keys, keys), np.append(self._counts, counts))
            self._waiting, self._n_waiting = [], 0
        return self._keys, self._counts


def _count_keys(keys: Array) -> tuple[Array, Array]:
    """Return the unique keys in ascending order and their counts; sorting is used only for sparse keys."""
    if int(keys.max()) > 8 * len(keys):
        return np.unique(keys, return_counts=True)
    counts = np.bincount(keys)
    unique = np.flatnonzero(counts)
    return unique, counts[unique]


def _sum_counts(keys: Array, counts: Array) -> tuple[Array, Array]:
    """Return the unique keys in ascending order and the sums of their counts."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    sums: Array = np.add.reduceat(counts[order], starts) if len(keys) else counts
    return keys[starts], sums
