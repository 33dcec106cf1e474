"""Rows as points, for pictures and examples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie import machine
from coterie.data.picking import some
from coterie.jobs.passes import Moments, closest, extremes, moments, scatter
from coterie.jobs.prepare import Prepared
from coterie.plots.cloud import Cloud
from coterie.plots.ellipses_plot import gaussian_components
from coterie.plots.projection import WIDE, Groups, Rows, View, as_rows
from coterie.web import ClusterMap, Densities

Array = NDArray[Any]

POINTS = 10_000  # that a map shows at most
VALUES = 50_000  # that it holds at most: points times axes
DENSE = 50_000  # rows, above which the map shows how dense all of them lie, not a sample alone
BLOCK = 1 << 20  # values at a time
MANY_COLUMNS = 1 << 26  # values of the rows that tell the axes, of tables with more columns than have all products
COLUMNS = 8  # that can be looked along, beside principal axes


@dataclass(frozen=True)
class Space:
    """Rows as the algorithm sees them, holes filled by the means of their columns: ``space[rows]`` are some of them."""

    S: Array  # (n, d) scaled; on disk where they are too many
    names: tuple[str, ...]  # (d,)
    own: int  # columns that are numbers of the table; the others are made of categories
    middle: Array  # (d,) means of the values of S that are there
    deviation: Array  # (d,) their standard deviations
    known: Array  # (d,) the share of rows that have one
    shift: Array  # (d,) space[rows] * spread + shift are the table's own units
    spread: Array  # (d,)
    filled: bool  # whether there were holes
    standardised: bool  # whether only the picture is scaled, not the fit
    threads: int | None = None

    @property
    def n(self) -> int:
        return len(self.S)

    def __len__(self) -> int:
        return len(self.S)

    def __getitem__(self, rows: Any) -> Array:
        """Some rows as points (m, d)."""
        return self.points(self.S[rows])

    def points(self, X: Array) -> Array:
        """What rows of S (m, d) are as points."""
        found = np.array(X, dtype=np.float64)
        if self.filled:
            found = np.where(np.isnan(found), self.middle, found)
        if self.standardised:
            found -= self.shift
            found /= self.spread
        return found

    def blocks(self) -> Iterator[slice]:
        """All rows, some at a time."""
        rows = max(1, BLOCK // self.S.shape[1])
        return (slice(start, start + rows) for start in range(0, self.n, rows))

    def seen(self, rows: Any, A: Array, b: Array) -> Array:
        """Rows along the axes A (d, p), moved by b (p,)."""
        parts = np.array_split(rows, 1 + len(rows) * self.S.shape[1] // BLOCK)
        return np.concatenate([self[part] @ A + b for part in parts])

    def rows(self) -> Rows:
        """For principal axes: all rows as they are asked for; of a very wide table, as many as can be held."""
        wide = self.S.shape[1] > WIDE
        X: Any = self[some(self.n, self.judged)] if wide else self
        mean = np.zeros(len(self.names)) if self.standardised else self.middle
        width = np.where(self.deviation > 0, 1.0, 0.0) if self.standardised else self.deviation
        return Rows(X, list(self.names), mean, self.known * width**2)

    @property
    def judged(self) -> int:
        """How many rows principal axes are made of."""
        d = self.S.shape[1]
        return self.n if d <= WIDE else min(self.n, max(POINTS // 10, MANY_COLUMNS // d))


def space_of(prepared: Prepared, threads: int | None = None) -> Space:
    """The given rows; a table of columns of several kinds is standardised for the purpose."""
    how, rows = prepared.preparation, prepared.rows
    found = moments(rows.S, holes=rows.holes, threads=threads)
    deviation = np.sqrt(found.variance)
    shift, spread = (found.mean, np.where(deviation > 0, deviation, 1.0)) if how.mixed else how.units
    return Space(
        rows.S, how.names, len(how.numbers), found.mean, deviation, found.there / rows.n, shift, spread,
        rows.holes, how.mixed, threads,
    )  # fmt: skip


def clusters_of(space: Space, codes: Array, k: int, weight: Array | None = None) -> Moments:
    """Means of the points of each cluster, and their sums of squares."""
    return moments(space.S, codes, k, weight=weight, points=space.points, threads=space.threads)


def cluster_map(
    space: Space,
    codes: Array,
    names: list[str],
    model: Any = None,
    first: Array | None = None,
    clusters: Moments | None = None,
) -> Any:
    """Rows in their clusters: a map of two columns or more, bars of one.

    `codes` are the clusters of the rows (-1: none), `clusters` their means where these are known already. `first` are
    columns to look along, the most telling ones first.
    """
    if space.S.shape[1] == 1:
        rows = as_rows(space[:] * space.spread + space.shift)
        return Cloud.of(rows, Groups(codes, names), View(np.zeros(1), np.ones((1, 1)), [space.names[0]]))
    kept = some(space.n, POINTS)
    axes, A, b = _axes(space, len(kept), first)
    points = space.seen(kept, A, b)
    if len(names) < 2:
        none = np.full(space.n, -1)
        return ClusterMap(axes, points, none[kept], (), space.n, densities=_densities(space, none, 0, A, b))
    centers, spreads = _ellipses(space, codes, len(names), A, b, model, clusters)
    round_about = None if space.standardised else spreads  # rows of categories lie in lumps, no ellipse describes them
    densities = _densities(space, codes, len(names), A, b)
    return ClusterMap(axes, points, codes[kept], names, space.n, centers, round_about, densities=densities)


def map_note(space: Space, shown: Any) -> str:
    """What the map shows, in a sentence or three."""
    if not isinstance(shown, ClusterMap):
        return f"{space.n:,} rows along their one column."
    two = space.S.shape[1] == 2
    told = "The two columns." if two else "The first two principal axes, or any two of the columns that differ most."
    if space.judged < space.n:
        told += f" The axes are those of {space.judged:,} rows, drawn at random."
    if shown.covariances is not None:
        told += " Ellipses are two standard deviations wide about the centers."
    if space.standardised:
        told += " Columns were standardised for this picture, categories taken as zeros and ones."
    if space.filled:
        told += " Missing values are shown at the means of their columns."
    return told


def nearest(space: Space, codes: Array, clusters: Moments, count: int) -> list[list[int]]:
    """The rows nearest to the mean of each cluster."""
    return closest(space.S, codes, clusters.means, space.points, count, space.threads)


def explained(clusters: Moments) -> float | None:
    """The share of the sum of squares that lies between clusters; None where all rows are equal."""
    return 1 - clusters.within / clusters.total if clusters.total > 0 else None


def _axes(space: Space, m: int, first: Array | None) -> tuple[list[str], Array, Array]:
    """Names of the axes, and what makes places on them of points: points @ A + b."""
    d = space.S.shape[1]
    order = np.arange(space.own) if first is None else first
    room = max(0, min(COLUMNS, VALUES // m - 2)) if d > 2 else d
    columns = order[order < space.own][:room] if d > 2 else np.arange(d)
    units = np.zeros((d, len(columns)))
    units[columns, range(len(columns))] = space.spread[columns]
    names = [space.names[j] for j in columns]
    if d == 2:
        return names, units, space.shift[columns]
    view = View.of(space.rows())
    A = np.hstack([view.directions, units])
    return (
        [*(axis.replace(" of the variance", "") for axis in view.axes), *names],
        A,
        np.concatenate([-view.origin @ view.directions, space.shift[columns]]),
    )


def _ellipses(
    space: Space, codes: Array, k: int, A: Array, b: Array, model: Any, clusters: Moments | None
) -> tuple[Array, Array]:
    """Centers (k, p) and covariances (k, p, p): of the components of a mixture, else of the rows of each cluster."""
    gaussian = hasattr(model, "covariances_") and hasattr(model, "means_")
    if gaussian and not space.standardised and len(model.means_) == k:
        normals = gaussian_components(model, space.S.shape[1])
        return normals.means @ A + b, np.einsum("di,kde,ej->kij", A, normals.covariances, A)
    means = (clusters or clusters_of(space, codes, k)).means
    return means @ A + b, scatter(space.S, codes, means, space.points, A, space.threads)


def _densities(space: Space, codes: Array, k: int, A: Array, b: Array) -> Densities | None:
    """How many rows there are where, if they are too many to be drawn one by one."""
    if space.n <= DENSE:
        return None
    counted = Densities(*extremes(space.S, lambda X: space.points(X) @ A + b, space.threads), k)
    with machine.one_blas_thread:  # products are too small to be shared out
        for part in space.blocks():
            counted.add(space[part] @ A + b, codes[part])
    return counted
