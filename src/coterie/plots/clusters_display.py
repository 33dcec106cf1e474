"""Scatter plot of clusters."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import in_order, one_of
from coterie.core.arrays import Array
from coterie.core.formatting import count, truncate
from coterie.core.protocols import can_predict
from coterie.core.rounding import OF_SUMS
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.kmeans.metric_of_model import metric_of
from coterie.palette import INK, as_rgb, luminance
from coterie.plots.cloud import Cloud
from coterie.plots.display import caption, drawn_display, format_number
from coterie.plots.neighbour_map import ROWS, Trust, is_worthwhile, neighbour_map, principal_coordinates, sample_of_map
from coterie.plots.projection import Groups, Rows, RowsDisplay, View, as_groups, call_method, grid_centers

MAPS = ("axes", "neighbours", "auto")


@dataclass(eq=False, repr=False)
class ClustersDisplay(RowsDisplay):
    """Rows coloured by cluster, on two columns, principal axes or a neighbour map; one column as a histogram."""

    kind: ClassVar[str] = "clusters"
    cloud: Cloud
    trust: Trust | None = None  # of a neighbour map

    @classmethod
    def _build(cls, rows: Rows, groups: Groups, model: Any, columns: Any = None, map: str = "axes") -> Self:
        one_of("map", map, MAPS)
        if columns is not None and map != "axes":
            raise ParameterError(f"columns={columns!r} and map={map!r} both choose the axes: leave out one of them")
        metric = {"metric": "euclidean"} if model is None else metric_of(model)
        index = sample_of_map(groups.codes, len(groups.names), ROWS)
        if metric["metric"] == "precomputed":
            D = rows.X if rows.row_numbers is None else rows.X[:, rows.row_numbers]
            if map == "axes":
                axes = ["principal coordinate 1", "principal coordinate 2"]
                return cls(Cloud.on_map(rows, groups, principal_coordinates(D), np.arange(len(D)), axes))
            D = D[np.ix_(index, index)]
        else:
            view = View.of(rows, columns)
            if map == "axes" or (map == "auto" and not is_worthwhile(view.share, len(rows.X))):
                return cls(Cloud.of(rows, groups, view, inner=True))
            D = pairwise(rows.X[index], **metric)
        result = neighbour_map(D, None if rows.w is None else rows.w[index])
        cloud = Cloud.on_map(rows, groups, result.points, index, ["", ""], f"; {result.trust.caption}")
        return cls(cloud, result.trust)

    def _draw(self, ax: Any) -> None:
        self.rows_ = self.cloud.draw(ax)
        self.numbers_ = self.cloud.draw_names(ax)
        caption(ax, f"{count(len(self.cloud.names), 'cluster')}, {self.cloud.description}")


@in_order("plots.clusters(model, X)")
def clusters(
    model: Any, X: Any, *, columns: Any = None, map: str = "axes", sample_weight: Any = None, ax: Any = None
) -> Any:
    """Draw a scatter plot of the rows, coloured by cluster.

    More than two columns are projected onto the first two principal axes; the axis labels state their shares of the
    variance. Clusters that are separated in all columns may overlap in this projection. One column is drawn as a
    histogram. More than 50,000 rows are drawn as a density image: each cell has the colour of the cluster with the most
    rows in it, and is darker if it has more rows. A few rows that are far from all others do not stretch the axes:
    arrows at the border point to them, and the caption counts them.

    A neighbour map places near rows near each other, by t-SNE. Of more than 1,500 rows it shows a random sample. The
    caption states how many neighbours it keeps. Distances between groups mean nothing on it.

    Parameters
    ----------
    model : fitted estimator or labels of shape (n,)
        The clusters are the predictions of the estimator for `X`. For hierarchical models and `BalancedKMeans`, they
        are those of the fit if `X` (with `sample_weight`) holds the fitted rows. An estimator without `predict` must
        have been fitted to these rows, in this order. Labels can be of any type; -1 means that a row is in no cluster.
    X : array or DataFrame of shape (n, d)
        Missing values, if the model supports them, are drawn at the mean of their column; the caption says so.
    columns : str, int, sequence of one or two of these, or None, default=None
        Names or numbers of the columns to show. None: all columns, or the first two principal axes of more than two.
    map : {'axes', 'neighbours', 'auto'}, default='axes'
        'axes' are principal axes, or principal coordinates of precomputed distances. 'neighbours' is a neighbour map,
        with the metric of the model. 'auto' is a neighbour map if two principal axes show less than 60 % of the
        variance, or if distances are precomputed.
    sample_weight : array of shape (n,) or None, default=None
        Row weights, used in sizes, centers and principal axes. Rows of weight 0 are not drawn.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    ClustersDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans, plots
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> ax = plots.clusters(KMeans(2, random_state=0).fit(X), X)
    >>> ax.get_title(loc="left")
    '2 clusters, 6 rows'
    """
    return drawn_display(ClustersDisplay, model, X, columns=columns, map=map, sample_weight=sample_weight, ax=ax)


# Regions of the clusters (Voronoi cells for K-means).

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
            groups.check_any()
            centers: Any = groups.means(rows.X)
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


# Heat map of the means of clusters.

MAX_COLUMNS = 30  # that are drawn
MAX_NUMBERS = 240  # with more cells, no numbers are written
FULL = 2.0  # standard deviations with the strongest colour
DARK = "#222222"  # colour of numbers on light cells


@dataclass(eq=False, repr=False)
class ProfilesDisplay(RowsDisplay):
    """Means of the clusters, as standard deviations from the mean of all rows in each column."""

    kind: ClassVar[str] = "profiles"
    names: list[str]  # (k,) of the clusters
    sizes: Array  # (k,) number of rows, or their weight
    columns: list[str]  # (d,)
    means: Array  # (k, d) in the units of the columns, without missing values; NaN if all are missing
    scores: Array  # (k, d) in standard deviations; 0 for a constant column
    shown: Array  # indices of the columns that are drawn: all, or those that differ most, the largest difference first
    weighted: bool = False  # whether rows have weights
    missing: int = 0  # number of missing values

    @classmethod
    def _build(cls, rows: Rows, groups: Groups, model: Any) -> Self:
        nonempty = np.flatnonzero(groups.sizes)
        means = groups.means(rows.X, rows.is_missing)[nonempty]
        deviation = rows.deviation
        varies = deviation > 1e-12 * np.abs(rows.mean)
        scores = np.nan_to_num(np.divide(means - rows.mean, deviation, out=np.zeros_like(means), where=varies))
        order = np.argsort(-np.abs(scores).max(axis=0, initial=0.0), kind="stable")
        names = [groups.names[j] for j in nonempty]
        means = np.where(np.abs(means) <= OF_SUMS * deviation, 0.0, means)
        chosen = order[:MAX_COLUMNS] if len(order) > MAX_COLUMNS else np.arange(len(order))
        return cls(names, groups.sizes[nonempty], rows.columns, means, scores, chosen, rows.w is not None, rows.missing)

    def _figure_size(self) -> tuple[float, float]:
        width, height = 3.2 + 0.62 * len(self.shown), 1.9 + 0.3 * len(self.names)
        return float(np.clip(width, 5.0, 16.0)), float(np.clip(height, 2.8, 16.0))

    def _draw(self, ax: Any) -> None:
        scores = self.scores[:, self.shown]
        self.image_ = ax.imshow(scores, cmap="PuOr_r", vmin=-FULL, vmax=FULL, aspect="auto", interpolation="nearest")
        total, k = self.sizes.sum(), len(self.names)
        row_labels = [
            f"{truncate(name, 16)}   {format_number(size) if self.weighted else f'{size:,}'} "
            f"({100 * size / total:.3g} %)"
            for name, size in zip(self.names, self.sizes, strict=True)
        ]
        ax.set_yticks(range(k), row_labels, fontsize=9 if k <= 20 else 7)
        columns = [truncate(self.columns[j], 24) for j in self.shown]
        is_slanted = sum(map(len, columns)) > 60 or max(map(len, columns), default=0) > 9
        ax.set_xticks(
            range(len(columns)), columns, rotation=40 if is_slanted else 0, ha="right" if is_slanted else "center",
            rotation_mode="anchor" if is_slanted else "default", fontsize=9,
        )  # fmt: skip
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        self.texts_ = self._draw_numbers(ax, scores) if scores.size <= MAX_NUMBERS else []
        bar = ax.figure.colorbar(self.image_, ax=ax, extend="both", fraction=0.05, pad=0.02)
        bar.set_label("standard deviations from the mean", fontsize=9)
        bar.outline.set_visible(False)
        text = f"means of {count(k, 'cluster')}"
        if len(columns) < len(self.columns):
            text += f", the {len(columns)} of {len(self.columns)} columns that differ most"
        text += ", by weights" if self.weighted else ""
        caption(ax, text + (f"; {count(self.missing, 'missing value')} left out" if self.missing else ""))

    def _draw_numbers(self, ax: Any, scores: Array) -> list[Any]:
        means, light = self.means[:, self.shown], luminance(self.image_.to_rgba(scores)[..., :3])
        is_dark = 1.05 / (light + 0.05) > (light + 0.05) / (luminance(as_rgb([DARK]))[0] + 0.05)
        return [
            ax.text(
                j, i, format_number(float(means[i, j])), ha="center", va="center", fontsize=8,
                color="white" if is_dark[i, j] else DARK,
            )
            for i, j in np.argwhere(np.isfinite(means))
        ]  # fmt: skip


@in_order("plots.profiles(model, X)")
def profiles(model: Any, X: Any, *, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw a heat map of the means of the clusters.

    Each row of the map is a cluster, labelled with its size, and each column a column of `X`. The colour shows by how
    many standard deviations the mean of the cluster differs from the mean of all rows. The numbers are means in the
    units of the column. If there are more than 30 columns, those in which some cluster differs most are drawn, the
    largest difference first. Missing values, if the model supports them, are left out of the means.

    Parameters
    ----------
    model : fitted estimator or labels of shape (n,)
        The clusters, as in `clusters`.
    X : array or DataFrame of shape (n, d)
        The rows, as in `clusters`.
    sample_weight : array of shape (n,) or None, default=None
        Row weights, used in sizes, means and standard deviations.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    ProfilesDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import KMeans, plots
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> ax = plots.profiles(KMeans(2, random_state=0).fit(X), X)
    >>> np.abs(ax.images[0].get_array()).round(3).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    return drawn_display(ProfilesDisplay, model, X, sample_weight=sample_weight, ax=ax)
