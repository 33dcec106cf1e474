"""Rows by cluster as a scatter plot, a density image of many rows, or a histogram of one column."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coterie.core.arrays import Array
from coterie.core.formatting import count, truncate
from coterie.data.row_sample import sample_rows
from coterie.palette import INK, NOISE, as_rgb, colours
from coterie.plots.display import amount
from coterie.plots.neighbour_map import central_points
from coterie.plots.projection import MANY, Groups, Rows, View, grid_centers, max_points
from coterie.web import Density, beyond_text, inner_range, outward, span

CELLS = 240  # cells of a density image along each axis
BARS = 60  # maximum number of bars of a histogram
LEGEND = 12  # maximum number of clusters in a legend
NAME = 12  # characters of a name that are shown
FEW = 100  # up to this number of rows, names of clusters are moved so that they hide no row
FAR_ROWS = 100  # rows beyond the limits that are added to a sample, so that arrows point to them
OFFSET = 14.0  # distance of such a name from the center, in points (1/72 inch)


@dataclass(frozen=True)
class Shades:
    """The number of rows (or their weight) in each cell of a grid, and the cluster with the most rows."""

    x: Array  # (g,) centers of the cells
    y: Array  # (g,)
    counts: Array  # (g, g) rows of cells from the bottom
    owner: Array  # (g, g) cluster with the most rows; -1: no cluster, or no row


@dataclass(frozen=True)
class Bars:
    """The number of rows (or their weight) of each cluster in each bin of one column."""

    edges: Array  # (b + 1,)
    counts: Array  # (k + 1, b) the last are rows in no cluster


@dataclass(frozen=True)
class Cloud:
    """Rows by cluster, as a figure shows them."""

    axes: list[str]  # (p,) names of the axes
    names: list[str]  # (k,) of the clusters
    sizes: Array  # (k,) number of rows, or their weight
    centers: Array  # (k, p)
    n: int  # number of rows
    points: Array  # (m, p) all rows, or a sample of many
    codes: Array  # (m,) clusters of the points; -1: none
    shades: Shades | None = None  # density of all rows, if there are many
    bars: Bars | None = None  # histogram of all rows, if there is one column
    weight: float | None = None  # total weight, if rows have weights
    missing: int = 0  # number of missing values, drawn at the means of their columns
    box: Array | None = None  # (2, p) limits of the axes, if some rows are beyond them
    beyond: int = 0  # number of rows beyond the limits
    note: str = ""  # end of the caption, about the axes

    @classmethod
    def of(cls, rows: Rows, groups: Groups, view: View, centers: Array | None = None, *, inner: bool = False) -> Self:
        """The rows in a view; with `inner`, a few rows far from all others are beyond the limits of the axes."""
        P, n = view.points(rows.X), len(rows.X)
        places = groups.means(P) if centers is None else view.points(centers)
        index = sample_rows(n, max_points(n))
        limits = np.array([inner_range(x) if inner else (x.min(), x.max()) for x in P.T]).T
        is_far = outward(P, *limits).any(axis=1)
        index = np.union1d(index, np.flatnonzero(is_far)[:FAR_ROWS])
        is_plane = P.shape[1] == 2
        return cls(
            view.axes, groups.names, groups.sizes, places, n, P[index], groups.codes[index],
            shades=_shades(P, groups, limits) if is_plane and n > MANY else None,
            bars=None if is_plane else _bars(P[:, 0], groups, *limits[:, 0]),
            weight=None if rows.w is None else rows.weight,
            missing=rows.missing,
            box=limits if is_far.any() else None,
            beyond=int(np.count_nonzero(is_far)),
        )  # fmt: skip

    @classmethod
    def on_map(cls, rows: Rows, groups: Groups, points: Array, index: Array, axes: list[str], note: str = "") -> Self:
        """Some rows at given points of a plane, whose axes have no unit if they have no names."""
        codes = groups.codes[index]
        return cls(
            axes, groups.names, groups.sizes, central_points(points, codes, len(groups.names)), len(groups.codes),
            points, codes, weight=None if rows.w is None else rows.weight, note=note,
        )  # fmt: skip

    @property
    def weighted(self) -> bool:
        return self.weight is not None

    @property
    def total(self) -> float:
        """Number of rows, or their total weight."""
        return self.n if self.weight is None else self.weight

    @property
    def colours(self) -> list[str]:
        return colours(len(self.names))

    @property
    def limits(self) -> Array:
        """Minimum and maximum of all rows within the limits, along each axis (2, p)."""
        if self.box is not None:
            return self.box
        if self.shades is not None:
            return np.array([_ends(self.shades.x), _ends(self.shades.y)]).T
        if self.bars is not None:
            return self.bars.edges[[0, -1], None]
        return np.array([self.points.min(axis=0), self.points.max(axis=0)])

    @property
    def description(self) -> str:
        """The number of rows, and how they are shown."""
        is_sample = self.shades is None and self.bars is None and len(self.points) < self.n
        text = f"{len(self.points):,} of {count(self.n)}" if is_sample else count(self.n)
        text += ", darker where there are more" if self.shades is not None else ""
        text += notes(self.weighted, self.missing)
        return text + (f"; {beyond_text(self.beyond)}" if self.beyond else "") + self.note

    def draw(self, ax: Any, alpha: float = 0.75) -> Any:
        """Draw the rows as points, image or bars, label the axes, and return the artists."""
        if self.bars is not None:
            artists = self._draw_bars(ax, self.bars, alpha)
        else:
            artists = self._draw_points(ax, alpha) if self.shades is None else self._draw_shades(ax, self.shades)
            ax.set_ylabel(self.axes[1])
        if self.box is not None:
            self._draw_arrows(ax, self.box)
        ax.set_xlabel(self.axes[0])
        if not any(self.axes):
            ax.set_xticks([])
            ax.set_yticks([])
        ax.spines[["top", "right"]].set_visible(False)
        if 1 < len(self.names) <= LEGEND:
            self._draw_legend(ax)
        return artists

    def draw_names(self, ax: Any) -> list[Any]:
        """Write the name of each cluster that has rows at its center, or at the upper edge for one column."""
        named = zip(self.names, self.sizes, self.centers, self.colours, strict=True)
        return [self._draw_name(ax, name, center, colour) for name, size, center, colour in named if size]

    def _draw_name(self, ax: Any, name: str, center: Array, colour: str) -> Any:
        is_few, is_plane = len(self.names) <= 20, self.bars is None
        center = center if self.box is None else np.clip(center, *self.box)
        transform = ax.transData if is_plane else ax.get_xaxis_transform()
        box = {"facecolor": "white", "edgecolor": colour, "linewidth": 1.6 if is_few else 1.0, "alpha": 0.9}
        return ax.text(
            center[0], center[1] if is_plane else 0.95, truncate(name, NAME), color=INK, ha="center", va="center",
            fontsize=9 if is_few and len(name) < 4 else 6.5, fontweight="bold", zorder=6, clip_on=False,
            transform=transform + self._offset(ax, center) if is_plane and len(self.points) <= FEW else transform,
            bbox={"boxstyle": f"{'circle' if len(name) < 3 else 'round'},pad=0.2", **box},
        )  # fmt: skip

    def _offset(self, ax: Any, center: Array) -> Any:
        """Return the offset of a name from its center to the nearby place that is farthest from all points."""
        from matplotlib.transforms import ScaledTranslation

        points_per_pixel = 72 / ax.figure.dpi
        ax.autoscale_view()
        points, middle = (points_per_pixel * ax.transData.transform(places) for places in (self.points, center))
        angle = np.arange(8) * np.pi / 4
        offsets = np.concatenate([[[0.0, 0.0]], OFFSET * np.stack([np.cos(angle), np.sin(angle)], axis=1)])
        nearest = np.sqrt((((middle + offsets)[:, None] - points) ** 2).sum(axis=2)).min(axis=1)
        x, y = offsets[0 if nearest[0] >= OFFSET else nearest.argmax()] / 72
        return ScaledTranslation(x, y, ax.figure.dpi_scale_trans)

    def _draw_points(self, ax: Any, alpha: float) -> Any:
        area = float(np.clip(20_000 / max(len(self.points), 1), 2.0, 24.0))
        is_inside = slice(None) if self.box is None else ~outward(self.points, *self.box).any(axis=1)
        point_colours = np.array([*self.colours, NOISE])[self.codes[is_inside]]
        artist = ax.scatter(
            *self.points[is_inside].T,
            s=area,
            c=point_colours,
            linewidths=0,
            alpha=alpha,
            rasterized=len(self.points) > 5000,
        )
        ax.margins(0.05)
        return artist

    def _draw_arrows(self, ax: Any, box: Array) -> None:
        """Set the limits of the axes, and draw arrows at the border to the rows beyond."""
        low, high = np.array([span(ends, 0.05) for ends in box.T]).T
        sides, shades = outward(self.points, *box), np.array([*self.colours, NOISE])[self.codes]
        ax.set_xlim(low[0], high[0])
        if self.bars is None:
            ax.set_ylim(low[1], high[1])
        shares = (np.clip(self.points, low, high) - low) / (high - low)
        for direction in np.unique(sides[sides.any(axis=1)], axis=0):
            index = np.flatnonzero((sides == direction).all(axis=1))
            across, up = (*direction, 0)[:2]
            angle = np.degrees(np.arctan2(up, across)) - 90
            places = np.where(direction == 0, shares[index], (direction + 1) / 2)
            places = places if self.bars is None else np.column_stack([places, np.full(len(index), 0.03)])
            ax.scatter(
                *places.T, s=60, c=shades[index], marker=(3, 0, angle), transform=ax.transAxes, clip_on=False, zorder=5,
                linewidths=0.5, edgecolors="white",
            )  # fmt: skip

    def _draw_shades(self, ax: Any, shades: Shades) -> Any:
        rgb = as_rgb([*self.colours, NOISE])[shades.owner]
        rows = shades.counts * (self.n / self.total)
        depth = np.log1p(rows) / np.log1p(rows.max())
        alpha = np.where(shades.counts > 0, 0.25 + 0.75 * depth, 0.0)
        return ax.imshow(
            np.dstack([rgb, alpha]), origin="lower", aspect="auto", interpolation="nearest", zorder=1,
            extent=(*_ends(shades.x), *_ends(shades.y)),
        )  # fmt: skip

    def _draw_bars(self, ax: Any, bars: Bars, alpha: float) -> Any:
        base, artists = np.zeros(bars.counts.shape[1]), []
        for counts, colour in zip(bars.counts, [*self.colours, NOISE], strict=True):
            artists.append(ax.stairs(base + counts, bars.edges, baseline=base, fill=True, color=colour, alpha=alpha))
            base = base + counts
        ax.set_ylabel("weight of the rows" if self.weighted else "rows")
        ax.margins(x=0.02)
        ax.set_ylim(0, 1.15 * float(base.max()))
        return artists

    def _draw_legend(self, ax: Any) -> None:
        from matplotlib.lines import Line2D

        names = [truncate(name, 2 * NAME) for name in self.names]
        entries = list(zip(names, self.sizes, self.colours, strict=True))
        outside = self.total - float(self.sizes.sum())
        if outside > 1e-12 * self.total:
            entries.append(("none", outside, NOISE))
        handles = [
            Line2D([], [], color=colour, marker="o", linestyle="", label=f"{name}: {amount(size, self.weighted)}")
            for name, size, colour in entries
        ]
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)


def notes(weighted: bool, missing: int) -> str:
    """Return the part of a caption about weights and missing values."""
    text = ", counted by weights" if weighted else ""
    return text + (f"; {count(missing, 'missing value')} at the means of their columns" if missing else "")


def _shades(P: Array, groups: Groups, limits: Array) -> Shades:
    low, high = np.array([span(ends, 0.05) for ends in limits.T]).T
    step = np.clip((P - low) * (CELLS / (high - low)), 0, CELLS - 1).astype(np.int64)
    place, k = step[:, 1] * CELLS + step[:, 0], len(groups.names)
    keys, at = np.unique(np.where(groups.codes < 0, k, groups.codes) * CELLS**2 + place, return_inverse=True)
    density = Density((CELLS, CELLS), k, *np.divmod(keys, CELLS**2), np.bincount(at, groups.w))
    x, y = np.linspace(low, high, 2 * CELLS + 1)[1::2].T
    return Shades(x, y, np.bincount(place, groups.w, CELLS**2).reshape(CELLS, CELLS), density.owner)


def n_bins_for(n: int) -> int:
    """Return the number of bins of a histogram of n rows."""
    return int(np.clip(3 * np.cbrt(n), 10, BARS))


def _bars(x: Array, groups: Groups, low: float, high: float) -> Bars:
    n_bins = n_bins_for(len(x))
    edges = np.linspace(*((low, high) if high > low else _ends(grid_centers(x, n_bins))), n_bins + 1)
    codes = [*range(len(groups.names)), -1]
    w = groups.w
    rows = [np.flatnonzero(groups.codes == code) for code in codes]
    return Bars(
        edges, np.array([np.histogram(x[index], edges, weights=None if w is None else w[index])[0] for index in rows])
    )


def _ends(centers: Array) -> tuple[float, float]:
    """Return the lower end of the first cell and the upper end of the last cell."""
    half = float(centers[1] - centers[0]) / 2
    return float(centers[0]) - half, float(centers[-1]) + half
