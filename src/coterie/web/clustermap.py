"""Interactive map of clusters: rows on any two of several axes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.errors import ParameterError
from coterie.palette import NOISE, colours
from coterie.web.density import Densities, Density
from coterie.web.markup import Markup, tag
from coterie.web.packing import pack_labels, pack_values, span
from coterie.web.plane import beyond_counts, inner_range
from coterie.web.still import MANY, ellipses_of, point_colours, still

MAX_CHARACTERS = 200_000  # maximum size of the packed densities
MAX_CHARACTERS_MANY = 85_000  # the same for many clusters, whose pages are long anyway
FIRST = ((2, 1), (4, 2), (8, 4))  # cells that may be merged vertically and horizontally in the first view, a wide one
LEGEND = 30  # maximum number of clusters in a legend
OTHERS = ((2, 2),)  # the same for other views, whose axes can be exchanged


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
        with np.errstate(over="ignore"):
            for j in np.flatnonzero(np.isinf(np.ptp(points, axis=0))).tolist():
                raise ParameterError(f"column {self.axes[j]!r} has differences above 1.8e308: divide its values by 10")
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
        names = legend(self.names, self.colors) if len(self.names) > 1 else None
        return tag("figure", self.picture(), names, caption, cls="map", data_map=key)

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


def legend(names: Sequence[str], colors: Sequence[str], others: Mapping[str, str] | None = None) -> Markup:
    """Return a legend of the first clusters, and of other things by name."""
    entries = [*list(zip(names, colors, strict=True))[:LEGEND], *(others or {}).items()]
    return tag("ul", [tag("li", swatch(color), name) for name, color in entries], cls="legend")


def _round(values: Any) -> Any:
    """Round to six digits, which is less than a pixel, and convert to lists."""
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ParameterError("centers and covariances must be finite: leave out empty clusters")
    flat = [float(f"{value:.6g}") for value in values.ravel()]
    return np.array(flat).reshape(values.shape).tolist()
