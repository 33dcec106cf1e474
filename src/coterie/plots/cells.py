"""The regions that centers own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.errors import InputError, ParameterError
from coterie.distances import pairwise
from coterie.palette import INK, as_rgb
from coterie.plots.cloud import Cloud
from coterie.plots.display import Display, caption, counted
from coterie.plots.rows import Array, Rows, View, as_groups, asked, rows_by, rows_of, spread_over

CELLS = 300  # along each axis
SLIM = 0.4  # of the longer side, what the shorter one has at least where both are to one scale


@dataclass(eq=False, repr=False)
class VoronoiDisplay(Display):
    """Which cluster a row would be in, for each place of the picture, behind the rows that there are."""

    kind: ClassVar[str] = "voronoi"
    cloud: Cloud
    x: Array  # (g,) middles of the cells
    y: Array | None  # (g,); None for one column
    owner: Array  # (g, g) row by row from the bottom, or (g,): the cluster of each cell
    sliced: bool  # whether the picture is a plane through more columns than two
    alike: bool = False  # whether both axes have one unit, and are drawn to one scale

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None
    ) -> Self:
        """Of a fitted model that predicts; `columns` are one or two to show instead of principal axes."""
        rows, groups = rows_by(model, X, sample_weight)
        if not hasattr(model, "predict"):
            raise ParameterError(
                f"{type(model).__name__} cannot predict, so no place has a cluster: use plots.clusters"
            )
        centers = getattr(model, "cluster_centers_", getattr(model, "means_", None))
        if centers is not None and np.shape(centers) != (len(groups.names), len(rows.columns)):
            centers = None
        view = View.of(rows, columns)
        kind = rows.X.dtype

        place = {name: j for j, name in enumerate(groups.names)}

        def owner(places: Array) -> Array:
            try:
                found = as_groups(asked(model, "predict", places.astype(kind)), len(places))
            except InputError as error:
                raise InputError(
                    f"the picture has places that {type(model).__name__} cannot predict, so it has no cells: use "
                    f"plots.clusters ({error})"
                ) from None
            return np.array([*(place.get(name, -1) for name in found.names), -1])[found.codes]

        return cls._made(rows, Cloud.of(rows, groups, view, centers), view, owner)._on(ax)

    @classmethod
    def from_predictions(
        cls, X: Any, labels: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None
    ) -> Self:
        """Of labels, one a row: the places nearest to the mean of each cluster."""
        rows, groups = rows_of(X, labels, sample_weight)
        view = View.of(rows, columns)
        centers = groups.means(rows.X)
        if len(centers) == 0:
            raise ParameterError("labels are all -1: there is no cluster, and no center to be near to")
        nearest = lambda places: pairwise(places, centers, metric="sqeuclidean").argmin(axis=1)  # noqa: E731
        return cls._made(rows, Cloud.of(rows, groups, view, centers), view, nearest)._on(ax)

    @classmethod
    def _made(cls, rows: Rows, cloud: Cloud, view: View, owner: Callable[[Array], Array]) -> Self:
        reach = np.concatenate([cloud.reach, cloud.centers])
        steps = [spread_over(values, CELLS) for values in (_evened(reach) if view.alike else reach).T]
        grid = np.stack(np.meshgrid(*steps), axis=-1)
        cells = owner(view.lifted(grid.reshape(-1, len(steps)))).reshape(grid.shape[:-1])
        across = steps[1] if len(steps) == 2 else None
        return cls(cloud, steps[0], across, cells, len(rows.columns) > len(steps), view.alike)

    def _draw(self, ax: Any) -> None:
        flat, across = self.y is not None, np.array([0.0, 1.0]) if self.y is None else self.y
        light = 0.78 + 0.22 * as_rgb([*self.cloud.colours, "#ffffff"])
        image = light[self.owner] if flat else light[self.owner][None, :]
        half = [(steps[1] - steps[0]) / 2 for steps in (self.x, across)]
        extent = (self.x[0] - half[0], self.x[-1] + half[0], across[0] - half[1], across[-1] + half[1])
        self.rows_ = self.cloud.draw(ax)
        upright = extent[2:] if flat else ax.get_ylim()
        self.cells_ = ax.imshow(
            image, origin="lower", aspect="auto", interpolation="nearest", zorder=0,
            extent=extent if flat else (*extent[:2], 0.0, 1.0),
            transform=ax.transData if flat else ax.get_xaxis_transform(),
        )  # fmt: skip
        self.borders_ = None if self.y is None else self._draw_borders(ax, self.y)
        ax.set_xlim(*extent[:2])
        ax.set_ylim(*upright)
        if self.alike:
            ax.set_aspect("equal")
        self.numbers_ = self.cloud.number(ax)
        where = ", where the plane of the picture cuts them" if self.sliced else ""
        caption(ax, f"cells of {counted(len(self.cloud.names), 'cluster')}{where}; {self.cloud.told}")

    def _draw_borders(self, ax: Any, y: Array) -> Any:
        """Lines along the edges of cells whose neighbour has another owner."""
        from matplotlib.collections import LineCollection

        x, dx, dy = self.x, (self.x[1] - self.x[0]) / 2, (y[1] - y[0]) / 2
        i, j = np.nonzero(self.owner[:, 1:] != self.owner[:, :-1])
        upright = np.stack([np.stack([x[j] + dx, y[i] + s * dy], axis=-1) for s in (-1, 1)], axis=1)
        i, j = np.nonzero(self.owner[1:] != self.owner[:-1])
        level = np.stack([np.stack([x[j] + s * dx, y[i] + dy], axis=-1) for s in (-1, 1)], axis=1)
        lines = LineCollection(
            list(np.concatenate([upright, level])), colors=INK, linewidths=0.7, alpha=0.6, zorder=0.5
        )
        return ax.add_collection(lines, autolim=False)


def _evened(reach: Array) -> Array:
    """Places, and others about them that make the shorter side at least `SLIM` of the longer one."""
    middle, length = (reach.max(axis=0) + reach.min(axis=0)) / 2, np.ptp(reach, axis=0)
    half = np.maximum(length, SLIM * length.max()) / 2
    return np.concatenate([reach, [middle - half, middle + half]])


def voronoi(result: Any, X: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw the region that belongs to each cluster, behind the rows.

    Each place is asked of the model's `predict`, so regions are those of its own distance and weights: straight borders
    for K-means, bent ones for mixtures. Of more than two columns it is the plane of the picture through the mean of the
    rows that is coloured; rows off that plane may be of another colour than the region they are drawn in. Principal
    axes are drawn to one scale.

    Parameters
    ----------
    result : fitted model, or labels (n,)
        Of labels, regions are nearest to the mean of each cluster.
    X : array or frame (n, d)
    columns : one or two names or numbers of columns, optional
    sample_weight : array (n,), optional
        As in `clusters`.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans, plots
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> ax = plots.voronoi(KMeans(2, random_state=0).fit(X), X)
    >>> ax.get_title(loc="left")
    'cells of 2 clusters; 6 rows'
    """
    if hasattr(result, "fit"):
        return VoronoiDisplay.from_estimator(result, X, columns=columns, sample_weight=sample_weight, ax=ax).ax_
    return VoronoiDisplay.from_predictions(X, result, columns=columns, sample_weight=sample_weight, ax=ax).ax_
