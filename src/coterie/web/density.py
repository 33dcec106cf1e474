"""How dense rows lie: counts of each cluster in the cells of a grid, which add up block by block, and their colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from coterie.core.errors import ParameterError
from coterie.palette import NOISE, as_rgb
from coterie.web.packing import pack_counts, span

Array = np.ndarray[Any, Any]

CELLS = 320  # along each axis; halved again and again where they would be too small, or too many
WAITING = 1 << 20  # keys that are counted at a time, at least
FAINTEST = 0.45  # opacity of a cell with one row: it must be seen
STRONGEST = 0.995  # of the cells have fewer rows than those of full opacity: one full cell does not pale all others
GAMMA = 2.2  # light adds up, not its code
LEAD = 4.0  # clusters are mixed by this power of their shares, so that a cell looks like the one that has most of it


@dataclass(frozen=True, eq=False)
class Density:
    """How many rows of each cluster there are in each cell of a grid: the counts above 0, in order."""

    shape: tuple[int, int]  # cells up and across
    k: int
    cluster: Array  # (e,) k: none
    place: Array  # (e,) row by row from the lower left
    count: Array  # (e,)

    @property
    def total(self) -> Array:
        """Rows of all clusters in each cell (up, across), from the bottom."""
        return np.bincount(self.place, self.count, self._cells).astype(np.int64).reshape(self.shape)

    @property
    def owner(self) -> Array:
        """The cluster with most rows in each cell (up, across), the first of equals; -1: none, or no row."""
        order = np.lexsort((-self.cluster, self.count, self.place))
        owner = np.full(self._cells, self.k)
        owner[self.place[order]] = self.cluster[order]  # where a place comes more than once, its last one stays
        return np.where(owner == self.k, -1, owner).reshape(self.shape)

    def merged(self, up: int, across: int) -> Density:
        """The same rows in cells so many times as high and as wide."""
        (high, rest), (wide, more) = divmod(self.shape[0], up), divmod(self.shape[1], across)
        if rest or more:
            raise ParameterError(f"up and across must divide {self.shape}; got {up} and {across}")
        y, x = np.divmod(self.place, self.shape[1])
        keys, count = _summed((self.cluster * high + y // up) * wide + x // across, self.count)
        cluster, place = np.divmod(keys, high * wide)
        return Density((high, wide), self.k, cluster, place, count)

    def packed(self) -> str:
        """What `web/src/density.ts` reads: the counts of all places, cluster by cluster."""
        return pack_counts(self.cluster * self._cells + self.place, self.count)

    def pixels(self, colors: Sequence[str]) -> Array:
        """The grid as RGBA (up, across, 4) from the top: hue says which cluster, opacity how many rows.

        Opacity grows with the logarithm of the rows: a cell of ten times as many is as much stronger, wherever it is.
        `web/src/density.ts` does the same in the browser.
        """
        total = self.total.ravel()
        weight = (self.count / total[self.place]) ** LEAD
        light = as_rgb([*colors, NOISE])[self.cluster] ** GAMMA
        mass = np.maximum(np.bincount(self.place, weight, len(total)), 1e-300)
        sums = [np.bincount(self.place, weight * channel, len(total)) for channel in light.T]
        rgb = (np.stack(sums, axis=1) / mass[:, None]) ** (1 / GAMMA)
        depth = np.log(np.maximum(total, 1)) / np.log(max(_strong(total), 2))
        alpha = np.where(total > 0, FAINTEST + (1 - FAINTEST) * np.minimum(depth, 1.0), 0.0)
        pixels = np.concatenate([rgb, alpha[:, None]], axis=1) * 255
        return np.rint(pixels).astype(np.uint8).reshape(*self.shape, 4)[::-1]

    @property
    def _cells(self) -> int:
        return self.shape[0] * self.shape[1]


class Densities:
    """Counts of rows along every two of p axes, taken block by block: in whatever blocks and order, they are the same.

    `low` and `high` (p,) are those of all rows, so that rows need not be in memory together; what lies outside is
    counted at the edge. All p (p - 1) / 2 pairs of axes are counted, which is what it costs a row; memory goes by the
    cells that have rows, and by about a million rows that wait to be counted.

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

    def __init__(self, low: Any, high: Any, k: int, cells: int = CELLS, margin: float = 0.04) -> None:
        ends = [span((a, b), margin) for a, b in zip(low, high, strict=True)]
        if len(ends) < 2 or not np.isfinite(ends).all():
            raise ParameterError(f"low and high must be finite, of two axes at least; got {low} and {high}")
        self.low, self.high = np.array(ends).T
        self.k, self.cells, self.rows, self.strays = k, cells, 0, 0
        self._tallies = {pair: _Tally() for pair in combinations(range(len(ends)), 2)}

    def add(self, points: Any, codes: Any) -> None:
        """Count rows (m, p) of clusters (m,), -1 for those in none."""
        given, cluster = np.asarray(points, dtype=np.float64), np.asarray(codes, dtype=np.int64)
        if given.shape != (len(cluster), len(self.low)) or not np.isfinite(given).all():
            raise ParameterError(f"points must be finite, ({len(cluster)}, {len(self.low)}); got {given.shape}")
        if len(cluster) and not (cluster.min() >= -1 and cluster.max() < self.k):
            raise ParameterError(f"codes must be of -1 .. {self.k - 1}; got {cluster.min()} .. {cluster.max()}")
        steps = (given - self.low) * (self.cells / (self.high - self.low))
        x = np.clip(steps, 0, self.cells - 1, out=steps).astype(np.int64).T
        first = np.where(cluster < 0, self.k, cluster) * self.cells**2
        for (i, j), tally in self._tallies.items():
            tally.add(first + x[j] * self.cells + x[i])
        self.rows += len(cluster)
        self.strays += int((cluster < 0).sum())

    def of(self, i: int, j: int) -> Density:
        """Seen along two axes, i < j: the first of them across, the other up."""
        keys, count = self._tallies[i, j].counted()
        cluster, place = np.divmod(keys, self.cells**2)
        return Density((self.cells, self.cells), self.k, cluster, place, count)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(self._tallies)


class _Tally:
    """How often each key came; keys wait until they are many, then are added to those before."""

    def __init__(self) -> None:
        self._keys, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting: list[Array] = []
        self._many = 0

    def add(self, keys: Array) -> None:
        self._waiting.append(keys)
        self._many += len(keys)
        if self._many > max(WAITING, 4 * len(self._keys)):
            self.counted()

    def counted(self) -> tuple[Array, Array]:
        """Keys in rising order, and how often each came."""
        if self._many:
            keys, counts = _counted(np.concatenate(self._waiting))
            self._keys, self._counts = _summed(np.append(self._keys, keys), np.append(self._counts, counts))
            self._waiting, self._many = [], 0
        return self._keys, self._counts


def _counted(keys: Array) -> tuple[Array, Array]:
    """Each key once, in rising order, and how often it came: sorted only where there are few among many places."""
    if int(keys.max()) > 8 * len(keys):
        return np.unique(keys, return_counts=True)
    counts = np.bincount(keys)
    found = np.flatnonzero(counts)
    return found, counts[found]


def _summed(keys: Array, counts: Array) -> tuple[Array, Array]:
    """Each key once, in rising order, with the sum of its counts."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    sums: Array = np.add.reduceat(counts[order], starts) if len(keys) else counts
    return keys[starts], sums


def _strong(total: Array) -> int:
    """The rows of a cell of full opacity."""
    found = np.sort(total[total > 0])
    return int(found[int(STRONGEST * (len(found) - 1))]) if len(found) else 1
