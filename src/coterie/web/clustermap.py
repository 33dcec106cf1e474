"""The map of clusters: rows on any two of several axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coterie.core.errors import ParameterError
from coterie.palette import NOISE, colours
from coterie.web.density import Densities, Density
from coterie.web.ellipses import ellipses_of
from coterie.web.markup import Markup, tag
from coterie.web.packing import pack_labels, pack_values, span
from coterie.web.still import MANY, point_colours, still

Array = np.ndarray[Any, Any]

ROOM, TIGHT = 200_000, 85_000  # letters that densities take at most, of few clusters and of many: their pages are long
FIRST = ((2, 1), (4, 2), (8, 4))  # cells up and across that are one in the first view, which is twice as wide as high
OTHERS = ((2, 2),)  # in others, which are seen either way


@dataclass(frozen=True, eq=False)
class ClusterMap:
    """Rows in their clusters, seen along two of p axes at a time: columns, principal axes, or both.

    Where there are too many rows to draw, `densities` shade how many of all of them lie where; `points` are then a
    sample, seen when one looks closer.

    `to_dict` is what the script draws, `figure` the picture that is there without it. A page holds both:

    >>> import numpy as np
    >>> from coterie.web import ClusterMap, page
    >>> points = np.array([[0.0, 0.0], [1.0, 0.5], [9.0, 4.0], [9.5, 4.5]])
    >>> shown = ClusterMap(("age", "income"), points, np.array([0, 0, 1, 1]), ("0", "1"), rows=4)
    >>> html = page("Map", shown.figure("map"), scripts=("report",), data={"map": shown.to_dict()})
    >>> shown.told
    '4 rows'
    """

    axes: Sequence[str]  # (p,) what there is to look along
    points: Array  # (m, p) of all rows, or of a sample
    labels: Array  # (m,) -1: none
    names: Sequence[str]  # (k,) of the clusters
    rows: int  # that there are
    centers: Array | None = None  # (k, p)
    covariances: Array | None = None  # (k, p, p); ellipses are drawn from these
    deviations: float = 2.0  # radius of the ellipses
    start: tuple[int, int] = (0, 1)  # axes seen first
    densities: Densities | None = None  # of all rows along the axes, where they are too many to draw

    def __post_init__(self) -> None:
        points, labels, p = np.asarray(self.points, dtype=np.float64), np.asarray(self.labels), len(self.axes)
        if p < 2 or points.ndim != 2 or points.shape != (len(labels), p) or len(points) == 0:
            raise ParameterError(
                f"points must be (m, p) for {p} axes, of two at least, and m labels; got {points.shape}"
            )
        if not np.isfinite(points).all():
            raise ParameterError("points must be finite: leave rows with holes out, or fill them")
        counted = self.densities
        if counted is not None and (len(counted.low), counted.k, counted.rows) != (p, len(self.names), self.rows):
            raise ParameterError(
                f"densities must be of {self.rows} rows in {len(self.names)} clusters along {p} axes; got "
                f"{counted.rows} in {counted.k} along {len(counted.low)}"
            )
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "labels", labels)

    @property
    def colors(self) -> list[str]:
        return colours(len(self.names))

    @property
    def told(self) -> str:
        """How many rows are shown, of how many."""
        if self._start in self._grids:
            return f"density of all {self.rows:,} rows, stronger where there are more"
        if len(self.points) < self.rows:
            return f"showing {len(self.points):,} of {self.rows:,} rows"
        return f"{self.rows:,} row{'' if self.rows == 1 else 's'}"

    def to_dict(self) -> dict[str, Any]:
        """What `web/src/map.ts` reads."""
        centers = None if self.centers is None else _rounded(self.centers)
        spreads = None if self.covariances is None else [_rounded(one[_upper(one)]) for one in self.covariances]
        return {
            "kind": "map", "axes": [self._axis(j) for j in range(len(self.axes))], "start": list(self.start),
            "labels": pack_labels(self.labels, len(self.names)), "names": [str(name) for name in self.names],
            "colors": self.colors, "noise": NOISE if self._strays else None, "rows": int(self.rows),
            "shown": len(self.points), "centers": centers, "spreads": spreads, "deviations": self.deviations,
            "grids": [_grid(pair, density) for pair, density in self._grids.items()],
        }  # fmt: skip

    def figure(self, key: str) -> Markup:
        """The picture, in an element that the script turns into the map of `data[key]`."""
        seen = " against ".join(self.axes[j] for j in reversed(self.start))
        caption = tag("figcaption", f"{seen}; {self.told}", cls="muted")
        return tag("figure", self.picture(), self._legend(), caption, cls="map", data_map=key)

    def picture(self) -> Markup:
        """The first view, as SVG."""
        i, j = self.start
        return still(
            [self.axes[i], self.axes[j]], self.points[:, [i, j]], point_colours(self.labels, self.colors),
            [*self._span(i), *self._span(j)], shades=self._shades(i, j),
            centers=() if self.centers is None else self.centers[:, [i, j]], ellipses=self._ellipses(i, j),
            names=self.names, colors=self.colors, label=f"{self.told} in {len(self.names)} clusters",
        )  # fmt: skip

    @property
    def _start(self) -> tuple[int, int]:
        """The axes seen first, as densities have them."""
        return min(self.start), max(self.start)

    @property
    def _strays(self) -> bool:
        """Whether there are rows in no cluster."""
        return bool((self.labels < 0).any()) or (self.densities is not None and self.densities.strays > 0)

    @cached_property
    def _grids(self) -> dict[tuple[int, int], Density]:
        """Densities that there is room for, the first view first; along other axes, points are all there is to see."""
        if self.densities is None:
            return {}
        found, room = {}, ROOM if len(self.names) <= MANY else TIGHT
        for pair in sorted(self.densities.pairs, key=lambda pair: pair != self._start):
            steps = FIRST if pair == self._start else OTHERS
            grids = (self.densities.of(*pair).merged(*step) for step in steps)
            if (grid := next((grid for grid in grids if len(grid.packed()) <= room), None)) is not None:
                found[pair] = grid
                room -= len(grid.packed())
        return found

    def _shades(self, i: int, j: int) -> Array | None:
        """Pixels of the density, i across and j up."""
        grid = self._grids.get((min(i, j), max(i, j)))
        if grid is None:
            return None
        pixels = grid.pixels(self.colors)
        return pixels if i < j else np.rot90(pixels, 2).transpose(1, 0, 2)

    def _span(self, j: int) -> tuple[float, float]:
        if self.densities is None:
            return span(self.points[:, j])
        return float(self.densities.low[j]), float(self.densities.high[j])

    def _ellipses(self, i: int, j: int) -> list[Any] | None:
        if self.covariances is None or self.centers is None:
            return None
        pair = np.ix_([i, j], [i, j])
        return ellipses_of(self.centers[:, [i, j]], np.array([s[pair] for s in self.covariances]), self.deviations)

    def _axis(self, j: int) -> dict[str, Any]:
        low, high = self._span(j)
        return {
            "name": str(self.axes[j]),
            "low": low,
            "high": high,
            "values": pack_values(self.points[:, j], low, high),
        }

    def _legend(self) -> Markup | None:
        if len(self.names) < 2:
            return None
        entries = list(zip(self.names, self.colors, strict=True))[:30]
        return tag("ul", [tag("li", swatch(color), name) for name, color in entries], cls="legend")


def swatch(color: str) -> Markup:
    """A little square of a colour, to stand before a name."""
    square = tag("rect", width=10, height=10, rx=2.5, fill=color)
    return tag("svg", square, cls="swatch", viewBox="0 0 10 10", width=10, height=10, aria_hidden="true")


def _grid(pair: tuple[int, int], density: Density) -> dict[str, Any]:
    return {"axes": list(pair), "shape": list(density.shape), "counts": density.packed()}


def _upper(matrix: Array) -> tuple[Array, Array]:
    return np.triu_indices(len(matrix))


def _rounded(values: Any) -> Any:
    """Numbers to six digits: less than a pixel, and half the text."""
    given = np.asarray(values, dtype=np.float64)
    if not np.isfinite(given).all():
        raise ParameterError("centers and covariances must be finite; leave empty clusters out")
    flat = [float(f"{value:.6g}") for value in given.ravel()]
    return np.array(flat).reshape(given.shape).tolist()
