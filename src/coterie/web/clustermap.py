"""Interactive map of clusters: rows on any two of several axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.errors import ParameterError
from coterie.palette import NOISE, as_rgb, colours
from coterie.web.markup import Markup, tag
from coterie.web.packing import pack_counts, pack_labels, pack_values, span
from coterie.web.plane import beyond_counts, inner_range
from coterie.web.still import MANY, ellipses_of, point_colours, still

MAX_CHARACTERS = 200_000  # maximum size of the packed densities
MAX_CHARACTERS_MANY = 85_000  # the same for many clusters, whose pages are long anyway
FIRST = ((2, 1), (4, 2), (8, 4))  # cells that may be merged vertically and horizontally in the first view, a wide one
OTHERS = ((2, 2),)  # the same for other views, whose axes can be exchanged

# Densities of rows: counts of each cluster in the cells of a grid, added block by block, and their colours.

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


@dataclass(frozen=True, eq=False)
class ClusterMap:
    """Rows by cluster on two of p axes at a time: columns, principal axes, or both.

    If there are too many rows to draw, `densities` show the density of all rows, and `points` are a sample that is
    visible after zooming in. A few rows that are far from all others do not stretch the axes: arrows at the border
    point to them, and `description` counts them.

    `to_dict` returns the data for the script, and `figure` the static figure. A page contains both:

    >>> import numpy as np
    >>> from coterie.web import ClusterMap, page
    >>> points = np.array([[0.0, 0.0], [1.0, 0.5], [9.0, 4.0], [9.5, 4.5]])
    >>> cluster_map = ClusterMap(("age", "income"), points, np.array([0, 0, 1, 1]), ("0", "1"), rows=4)
    >>> html = page("Map", cluster_map.figure("map"), scripts=("report",), data={"map": cluster_map.to_dict()})
    >>> cluster_map.description
    '4 rows'
    """

    axes: Sequence[str]  # (p,) names of the axes
    points: Array  # (m, p) all rows, or a sample
    labels: Array  # (m,) clusters of the points; -1: none
    names: Sequence[str]  # (k,) of the clusters
    rows: int  # number of rows
    centers: Array | None = None  # (k, p)
    covariances: Array | None = None  # (k, p, p) for ellipses
    deviations: float = 2.0  # radius of the ellipses, in standard deviations
    start: tuple[int, int] = (0, 1)  # axes of the first view
    densities: Densities | None = None  # densities of all rows, if there are too many to draw
    limits: Array | None = None  # (2, p) of the axes, without a margin; None: those of `densities` or `points`
    beyond: Array | None = None  # (p, p) number of rows beyond the limits of either of two axes; None: of `points`
    title: str | None = None  # in place of the names and ticks of axes that have no unit

    def __post_init__(self) -> None:
        points, labels, p = np.asarray(self.points, dtype=np.float64), np.asarray(self.labels), len(self.axes)
        if p < 2 or points.ndim != 2 or points.shape != (len(labels), p) or len(points) == 0:
            raise ParameterError(
                f"points must have the shape (m, p), with m labels and p = {p} axes, at least two; got {points.shape}"
            )
        if not np.isfinite(points).all():
            raise ParameterError("points must be finite: drop rows with missing values, or impute the values")
        d = self.densities
        if d is not None and (len(d.low), d.k, d.rows) != (p, len(self.names), self.rows):
            raise ParameterError(
                f"densities must have {self.rows} rows, {len(self.names)} clusters and {p} axes, like the map; got "
                f"{d.rows} rows, {d.k} clusters and {len(d.low)} axes"
            )
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "labels", labels)

    @property
    def colors(self) -> list[str]:
        return colours(len(self.names))

    @property
    def description(self) -> str:
        """The number of rows that are shown, and of rows beyond the border of the first view."""
        n_beyond = int(self._beyond[self.start])
        note = f"; {beyond_text(n_beyond)}" if n_beyond else ""
        if self._start in self._grids:
            return f"density of all {self.rows:,} rows, stronger where there are more{note}"
        if len(self.points) < self.rows:
            return f"showing {len(self.points):,} of {self.rows:,} rows{note}"
        return count(self.rows) + note

    def to_dict(self) -> dict[str, Any]:
        """Return the data for `web/src/map.ts`."""
        centers = None if self.centers is None else _round(self.centers)
        upper = np.triu_indices(len(self.axes))
        spreads = None if self.covariances is None else [_round(one[upper]) for one in self.covariances]
        has_noise = (self.labels < 0).any() or (self.densities is not None and self.densities.n_noise > 0)
        axes = []
        for j, name in enumerate(self.axes):
            low, high = self._spans[:, j].tolist()
            values = pack_values(self.points[:, j], low, high)
            axes.append({"name": str(name), "low": low, "high": high, "values": values})
        grids = [
            {"axes": list(pair), "shape": list(density.shape), "counts": density.packed()}
            for pair, density in self._grids.items()
        ]
        return {
            "kind": "map", "axes": axes, "start": list(self.start),
            "labels": pack_labels(self.labels, len(self.names)), "names": [str(name) for name in self.names],
            "colors": self.colors, "noise": NOISE if has_noise else None, "rows": int(self.rows),
            "shown": len(self.points), "centers": centers, "spreads": spreads, "deviations": self.deviations,
            "grids": grids, "beyond": self._beyond.tolist(), "title": self.title,
        }  # fmt: skip

    def figure(self, key: str) -> Markup:
        """Return the static figure, in an element that the script replaces by the map of `data[key]`."""
        view = self.title or " against ".join(self.axes[j] for j in reversed(self.start))
        caption = tag("figcaption", f"{view}; {self.description}", cls="muted")
        entries = list(zip(self.names, self.colors, strict=True))[:30] if len(self.names) > 1 else []
        legend = [tag("li", swatch(color), name) for name, color in entries]
        return tag("figure", self.picture(), tag("ul", legend, cls="legend") if legend else None, caption, cls="map",
                   data_map=key)  # fmt: skip

    def picture(self) -> Markup:
        """Return the first view as SVG."""
        i, j = self.start
        ellipses = None
        if self.covariances is not None and self.centers is not None:
            spreads = np.array([spread[np.ix_([i, j], [i, j])] for spread in self.covariances])
            ellipses = ellipses_of(self.centers[:, [i, j]], spreads, self.deviations)
        return still(
            [] if self.title else [self.axes[i], self.axes[j]], self.points[:, [i, j]],
            point_colours(self.labels, self.colors), [*self._spans[:, i], *self._spans[:, j]],
            shades=self._shades(i, j), centers=() if self.centers is None else self.centers[:, [i, j]],
            ellipses=ellipses, names=self.names, colors=self.colors,
            label=f"{self.description} in {len(self.names)} clusters",
        )  # fmt: skip

    @property
    def _start(self) -> tuple[int, int]:
        """The axes of the first view, in ascending order as in `densities`."""
        return min(self.start), max(self.start)

    @cached_property
    def _grids(self) -> dict[tuple[int, int], Density]:
        """Densities that fit into the size limit, the first view first; other views show only points."""
        if self.densities is None:
            return {}
        grids, budget = {}, MAX_CHARACTERS if len(self.names) <= MANY else MAX_CHARACTERS_MANY
        for pair in sorted(self.densities.pairs, key=lambda pair: pair != self._start):
            steps = FIRST if pair == self._start else OTHERS
            candidates = (self.densities.of(*pair).merged(*step) for step in steps)
            if (grid := next((grid for grid in candidates if len(grid.packed()) <= budget), None)) is not None:
                grids[pair] = grid
                budget -= len(grid.packed())
        return grids

    def _shades(self, i: int, j: int) -> Array | None:
        """Return the pixels of the density, with axis i horizontal and j vertical."""
        grid = self._grids.get((min(i, j), max(i, j)))
        if grid is None:
            return None
        pixels = grid.pixels(self.colors)
        return pixels if i < j else np.rot90(pixels, 2).transpose(1, 0, 2)

    @cached_property
    def _spans(self) -> Array:
        """(2, p) the lower and the upper limits of the axes."""
        if self.densities is not None:
            return np.array([self.densities.low, self.densities.high])
        limits = [inner_range(values) for values in self.points.T] if self.limits is None else self.limits.T
        return np.array([span(ends) for ends in limits]).T

    @cached_property
    def _beyond(self) -> Array:
        """(p, p) the number of rows beyond the limits of either of two axes."""
        return beyond_counts(self.points, *self._spans) if self.beyond is None else self.beyond


def beyond_text(n_beyond: int) -> str:
    """Return the part of a caption about rows that are not within the limits of the axes."""
    return f"{count(n_beyond)} beyond the border ({'arrow' if n_beyond == 1 else 'arrows'})"


def swatch(color: str) -> Markup:
    """Return a small square of a colour, for a legend."""
    square = tag("rect", width=10, height=10, rx=2.5, fill=color)
    return tag("svg", square, cls="swatch", viewBox="0 0 10 10", width=10, height=10, aria_hidden="true")


def _round(values: Any) -> Any:
    """Round to six digits, which is less than a pixel, and convert to lists."""
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ParameterError("centers and covariances must be finite: leave out empty clusters")
    flat = [float(f"{value:.6g}") for value in values.ravel()]
    return np.array(flat).reshape(values.shape).tolist()
