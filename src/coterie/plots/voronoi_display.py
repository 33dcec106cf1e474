"""Regions of the clusters (Voronoi cells for K-means)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import in_order
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.protocols import can_predict
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.palette import INK, as_rgb
from coterie.plots.cloud import Cloud
from coterie.plots.display import caption, drawn_display
from coterie.plots.projection import Groups, Rows, RowsDisplay, View, as_groups, call_method, grid_centers

CELLS = 300  # cells along each axis
MIN_ASPECT = 0.4  # minimum ratio of the shorter to the longer side if both axes have the same scale


@dataclass(eq=False, repr=False)
class VoronoiDisplay(RowsDisplay):
    """The cluster that is predicted at each place of the figure, and the rows."""

    kind: ClassVar[str] = "voronoi"
    cloud: Cloud
    x: Array  # (g,) centers of the cells
    y: Array | None  # (g,); None for one column
    owner: Array  # (g, g), rows of cells from the bottom, or (g,): the cluster of each cell
    sliced: bool  # whether the figure is a slice through more columns than it shows
    alike: bool = False  # whether both axes have the same unit and are drawn to the same scale

    @classmethod
    def _build(cls, rows: Rows, groups: Groups, model: Any, columns: Any = None) -> Self:
        view = View.of(rows, columns)
        if model is None:
            centers: Any = groups.means(rows.X)
            if len(centers) == 0:
                raise ParameterError(
                    "labels are all -1, so there are no clusters to draw: pass labels with at least one cluster"
                )
        else:
            if not can_predict(model):
                raise ParameterError(
                    f"{type(model).__name__} has no predict, so its regions are unknown: use plots.clusters"
                )
            centers = getattr(model, "cluster_centers_", getattr(model, "means_", None))
            if centers is not None and np.shape(centers) != (len(groups.names), len(rows.columns)):
                centers = None
        cloud = Cloud.of(rows, groups, view, centers)
        extent = np.concatenate([cloud.limits, cloud.centers])
        if view.has_equal_units:  # the shorter side is at least `MIN_ASPECT` of the longer one
            middle, length = (extent.max(axis=0) + extent.min(axis=0)) / 2, np.ptp(extent, axis=0)
            half = np.maximum(length, MIN_ASPECT * length.max()) / 2
            extent = np.concatenate([extent, [middle - half, middle + half]])
        steps = [grid_centers(values, CELLS) for values in extent.T]
        grid = np.stack(np.meshgrid(*steps), axis=-1)
        places = view.to_rows(grid.reshape(-1, len(steps)))
        if model is None:
            owner = pairwise(places, centers, metric="sqeuclidean").argmin(axis=1)
        else:
            owner = _predicted(model, places.astype(rows.X.dtype), groups.names)
        cells = owner.reshape(grid.shape[:-1])
        across = steps[1] if len(steps) == 2 else None
        return cls(cloud, steps[0], across, cells, len(rows.columns) > len(steps), view.has_equal_units)

    def _draw(self, ax: Any) -> None:
        is_plane, across = self.y is not None, np.array([0.0, 1.0]) if self.y is None else self.y
        light = 0.78 + 0.22 * as_rgb([*self.cloud.colours, "#ffffff"])
        image = light[self.owner] if is_plane else light[self.owner][None, :]
        half = [(steps[1] - steps[0]) / 2 for steps in (self.x, across)]
        extent = (self.x[0] - half[0], self.x[-1] + half[0], across[0] - half[1], across[-1] + half[1])
        self.rows_ = self.cloud.draw(ax)
        upright = extent[2:] if is_plane else ax.get_ylim()
        self.cells_ = ax.imshow(
            image, origin="lower", aspect="auto", interpolation="nearest", zorder=0,
            extent=extent if is_plane else (*extent[:2], 0.0, 1.0),
            transform=ax.transData if is_plane else ax.get_xaxis_transform(),
        )  # fmt: skip
        self.borders_ = None if self.y is None else self._draw_borders(ax, self.y)
        ax.set_xlim(*extent[:2])
        ax.set_ylim(*upright)
        if self.alike:
            ax.set_aspect("equal")
        self.numbers_ = self.cloud.draw_names(ax)
        slice_text = ", on a slice through the mean of the rows" if self.sliced else ""
        caption(ax, f"cells of {count(len(self.cloud.names), 'cluster')}{slice_text}; {self.cloud.description}")

    def _draw_borders(self, ax: Any, y: Array) -> Any:
        """Draw lines between cells of different clusters."""
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


def _predicted(model: Any, places: Array, names: list[str]) -> Array:
    """Return the index in `names` of the cluster that is predicted at each place; -1 for any other."""
    try:
        predicted = as_groups(call_method(model, "predict", places), len(places))
    except InputError as error:
        raise InputError(
            f"{type(model).__name__} cannot predict all places of the figure, so its regions are unknown: use "
            f"plots.clusters ({error})"
        ) from None
    codes = {name: j for j, name in enumerate(names)}
    return np.array([*(codes.get(name, -1) for name in predicted.names), -1])[predicted.codes]


@in_order("plots.voronoi(model, X)")
def voronoi(model: Any, X: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw the region of each cluster, behind the rows.

    The regions are predictions of the model on a grid. They follow its distance and weights: borders are straight for
    K-means and curved for mixtures. If the rows have more columns than the figure shows, the regions are those on a
    slice through the mean of the rows, and a row may lie in a region of another colour. Principal axes are drawn to the
    same scale.

    Parameters
    ----------
    model : fitted estimator or labels of shape (n,)
        For labels, the regions are the places nearest to the mean of each cluster.
    X : array or DataFrame of shape (n, d)
        The rows, as in `clusters`.
    columns : str, int, sequence of one or two of these, or None, default=None
        Names or numbers of the columns to show. None: all columns, or the first two principal axes of more than two.
    sample_weight : array of shape (n,) or None, default=None
        Row weights, as in `clusters`.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    VoronoiDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans, plots
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> ax = plots.voronoi(KMeans(2, random_state=0).fit(X), X)
    >>> ax.get_title(loc="left")
    'cells of 2 clusters; 6 rows'
    """
    return drawn_display(VoronoiDisplay, model, X, columns=columns, sample_weight=sample_weight, ax=ax)
