"""Rows in their clusters, as they lie: points, shades where they are too many, bars where they have one column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coterie.data.picking import some
from coterie.palette import INK, NOISE, as_rgb, colours
from coterie.plots.display import amount, counted, short
from coterie.plots.rows import MANY, SHOWN, Array, Groups, Rows, View, spread_over
from coterie.web import Density, span

CELLS = 240  # of shades, along each axis
BARS = 60  # of a histogram at most
LEGEND = 12  # clusters that are named beside the picture
NAME = 12  # letters of a name that are shown
FEW = 100  # rows, none of which may be hidden by a number
AWAY = 14.0  # points (of 1/72 inch) from a center to a number beside it


@dataclass(frozen=True)
class Shades:
    """How many rows (or how much weight) there are in each cell of a grid, and which cluster has most of them."""

    x: Array  # (g,) middles of the cells
    y: Array  # (g,)
    counts: Array  # (g, g) row by row from the bottom
    owner: Array  # (g, g) -1: no cluster, or no row


@dataclass(frozen=True)
class Bars:
    """How many rows (or how much weight) of each cluster there are in each step of one column."""

    edges: Array  # (b + 1,)
    counts: Array  # (k + 1, b) the last: rows in no cluster


@dataclass(frozen=True)
class Cloud:
    """Rows in their clusters as a picture shows them."""

    axes: list[str]  # (p,) what is shown along each axis
    names: list[str]  # (k,) of the clusters
    sizes: Array  # (k,) rows, or their weight
    centers: Array  # (k, p)
    n: int  # rows there are
    points: Array  # (m, p) all of them, or a sample of many
    codes: Array  # (m,) their clusters; -1: none
    shades: Shades | None = None  # of all rows, where they are many
    bars: Bars | None = None  # of all rows, where they have one column
    weight: float | None = None  # of all rows, where they have weights
    missing: int = 0  # values, drawn at the means of their columns

    @classmethod
    def of(cls, rows: Rows, groups: Groups, view: View, centers: Array | None = None) -> Self:
        P, n = view.points(rows.X), len(rows.X)
        places = groups.means(P) if centers is None else view.points(centers)
        kept = some(n, n if n <= MANY else SHOWN)
        flat = P.shape[1] == 2
        return cls(
            view.axes, groups.names, groups.sizes, places, n, P[kept], groups.codes[kept],
            shades=_shades(P, groups) if flat and n > MANY else None,
            bars=None if flat else _bars(P[:, 0], groups),
            weight=None if rows.w is None else rows.weight,
            missing=rows.missing,
        )  # fmt: skip

    @property
    def weighted(self) -> bool:
        return self.weight is not None

    @property
    def total(self) -> float:
        """All rows, or all weight."""
        return self.n if self.weight is None else self.weight

    @property
    def colours(self) -> list[str]:
        return colours(len(self.names))

    @property
    def reach(self) -> Array:
        """The lowest and the highest value along each axis, of all rows (2, p)."""
        if self.shades is not None:
            return np.array([_ends(self.shades.x), _ends(self.shades.y)]).T
        if self.bars is not None:
            return self.bars.edges[[0, -1], None]
        return np.array([self.points.min(axis=0), self.points.max(axis=0)])

    @property
    def told(self) -> str:
        """How many rows, and how they are shown."""
        told = counted(self.n) + (", darker where there are more" if self.shades is not None else "")
        return told + notes(self.weighted, self.missing)

    def draw(self, ax: Any, alpha: float = 0.75) -> Any:
        """The rows, as scatter, image or bars, which are returned; axes are named."""
        if self.bars is not None:
            drawn = self._draw_bars(ax, self.bars, alpha)
        else:
            drawn = self._draw_points(ax, alpha) if self.shades is None else self._draw_shades(ax, self.shades)
            ax.set_ylabel(self.axes[1])
        ax.set_xlabel(self.axes[0])
        ax.spines[["top", "right"]].set_visible(False)
        if 1 < len(self.names) <= LEGEND:
            self._draw_legend(ax)
        return drawn

    def _amounts(self, sizes: Any) -> list[str]:
        return [amount(size, self.weighted) for size in sizes]

    def number(self, ax: Any) -> list[Any]:
        """The name of each cluster that has rows, at its center; at the upper edge, for one column."""
        named = zip(self.names, self.sizes, self.centers, self.colours, strict=True)
        return [self._number(ax, name, center, colour) for name, size, center, colour in named if size]

    def _number(self, ax: Any, name: str, center: Array, colour: str) -> Any:
        few, flat = len(self.names) <= 20, self.bars is None
        where = ax.transData if flat else ax.get_xaxis_transform()
        box = {"facecolor": "white", "edgecolor": colour, "linewidth": 1.6 if few else 1.0, "alpha": 0.9}
        return ax.text(
            center[0], center[1] if flat else 0.95, short(name, NAME), color=INK, ha="center", va="center",
            fontsize=9 if few and len(name) < 4 else 6.5, fontweight="bold", zorder=6, clip_on=False,
            transform=where + self._aside(ax, center) if flat and len(self.points) <= FEW else where,
            bbox={"boxstyle": f"{'circle' if len(name) < 3 else 'round'},pad=0.2", **box},
        )  # fmt: skip

    def _aside(self, ax: Any, center: Array) -> Any:
        """From a center to where its number hides none of few points: the place near it that is farthest from all."""
        from matplotlib.transforms import ScaledTranslation

        dots = 72 / ax.figure.dpi
        ax.autoscale_view()
        points, middle = (dots * ax.transData.transform(places) for places in (self.points, center))
        angle = np.arange(8) * np.pi / 4
        tried = np.concatenate([[[0.0, 0.0]], AWAY * np.stack([np.cos(angle), np.sin(angle)], axis=1)])
        near = np.sqrt((((middle + tried)[:, None] - points) ** 2).sum(axis=2)).min(axis=1)
        x, y = tried[0 if near[0] >= AWAY else near.argmax()] / 72
        return ScaledTranslation(x, y, ax.figure.dpi_scale_trans)

    def _draw_points(self, ax: Any, alpha: float) -> Any:
        area = float(np.clip(20_000 / max(len(self.points), 1), 2.0, 24.0))
        shown = np.array([*self.colours, NOISE])[self.codes]
        drawn = ax.scatter(
            *self.points.T, s=area, c=shown, linewidths=0, alpha=alpha, rasterized=len(self.points) > 5000
        )
        ax.margins(0.05)
        return drawn

    def _draw_shades(self, ax: Any, shades: Shades) -> Any:
        rgb = as_rgb([*self.colours, NOISE])[shades.owner]
        rows = shades.counts * (self.n / self.total)
        depth = np.log1p(rows) / np.log1p(rows.max())
        alpha = np.where(shades.counts > 0, 0.25 + 0.75 * depth, 0.0)
        drawn = ax.imshow(
            np.dstack([rgb, alpha]), origin="lower", aspect="auto", interpolation="nearest", zorder=1,
            extent=(*_ends(shades.x), *_ends(shades.y)),
        )  # fmt: skip
        return drawn

    def _draw_bars(self, ax: Any, bars: Bars, alpha: float) -> Any:
        base, drawn = np.zeros(bars.counts.shape[1]), []
        for counts, colour in zip(bars.counts, [*self.colours, NOISE], strict=True):
            drawn.append(ax.stairs(base + counts, bars.edges, baseline=base, fill=True, color=colour, alpha=alpha))
            base = base + counts
        ax.set_ylabel("weight of the rows" if self.weighted else "rows")
        ax.margins(x=0.02)
        ax.set_ylim(0, 1.15 * float(base.max()))
        return drawn

    def _draw_legend(self, ax: Any) -> None:
        from matplotlib.lines import Line2D

        handles = [
            Line2D([], [], color=colour, marker="o", linestyle="", label=f"{short(name, 2 * NAME)}: {told}")
            for name, told, colour in zip(self.names, self._amounts(self.sizes), self.colours, strict=True)
        ]
        outside = self.total - float(self.sizes.sum())
        if outside > 1e-12 * self.total:
            told = self._amounts([outside])[0]
            handles.append(Line2D([], [], color=NOISE, marker="o", linestyle="", label=f"none: {told}"))
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)


def notes(weighted: bool, missing: int) -> str:
    """What a caption says of rows that count by weights, and of values that are not there."""
    told = ", counted by weights" if weighted else ""
    return told + (f"; {counted(missing, 'missing value')} at the means of their columns" if missing else "")


def _shades(P: Array, groups: Groups) -> Shades:
    low, high = np.array([span(ends, 0.05) for ends in zip(P.min(axis=0), P.max(axis=0), strict=True)]).T
    step = np.clip((P - low) * (CELLS / (high - low)), 0, CELLS - 1).astype(np.int64)
    place, k = step[:, 1] * CELLS + step[:, 0], len(groups.names)
    keys, at = np.unique(np.where(groups.codes < 0, k, groups.codes) * CELLS**2 + place, return_inverse=True)
    density = Density((CELLS, CELLS), k, *np.divmod(keys, CELLS**2), np.bincount(at, groups.w))
    x, y = np.linspace(low, high, 2 * CELLS + 1)[1::2].T
    return Shades(x, y, np.bincount(place, groups.w, CELLS**2).reshape(CELLS, CELLS), density.owner)


def steps_of(n: int) -> int:
    """Of a histogram of so many rows."""
    return int(np.clip(3 * np.cbrt(n), 10, BARS))


def _bars(x: Array, groups: Groups) -> Bars:
    count = steps_of(len(x))
    low, high = float(x.min()), float(x.max())
    edges = np.linspace(*((low, high) if high > low else _ends(spread_over(x, count))), count + 1)
    places = [*range(len(groups.names)), -1]
    w = groups.w
    rows = [np.flatnonzero(groups.codes == code) for code in places]
    return Bars(
        edges, np.array([np.histogram(x[own], edges, weights=None if w is None else w[own])[0] for own in rows])
    )


def _ends(middles: Array) -> tuple[float, float]:
    """Where cells of these middles begin and end."""
    half = float(middles[1] - middles[0]) / 2
    return float(middles[0]) - half, float(middles[-1]) + half
