"""Time series of each cluster as lines, with the center of the cluster."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from coterie import distances
from coterie.core.arguments import in_order, whole_number
from coterie.core.arrays import Array
from coterie.core.formatting import count, truncate
from coterie.data import opened
from coterie.data.row_sample import sample_rows
from coterie.distances.dtw import as_pair
from coterie.distances.series import Series, as_series
from coterie.errors import ParameterError
from coterie.kmeans.time_series_kmeans import TimeSeriesKMeans
from coterie.metrics.model_labels import check_fitted
from coterie.palette import FAINT, INK, MARK, colours
from coterie.plots.display import Display, caption, drawn_display, new_figure
from coterie.plots.projection import Groups, as_groups, groups_of_model

LINES, ALL_LINES, MIN_LINES = 40, 400, 6  # series that are drawn: of a cluster, of all clusters, and of each at least
MAX_CLUSTERS = 24  # panels
POINTS = 120  # time points of a line; longer series are drawn by the extremes of their intervals
MEAN = "mean"
CENTERS = {"dtw": "DTW barycenter", "softdtw": "soft-DTW barycenter", "euclidean": MEAN}


@dataclass(eq=False, repr=False)
class SeriesDisplay(Display):
    """Some series of each cluster, and the center of the cluster."""

    kind: ClassVar[str] = "series"
    names: list[str]  # (k,) of the clusters
    sizes: Array  # (k,) number of series
    lengths: Array  # (k, 2) shortest and longest series; 0 without series
    lines: list[list[Array]]  # (k) for each cluster, some of its series: time and value (points, 2)
    centers: list[Array | None]  # (k) centers in the same form; None if a cluster has none
    center: str  # what the centers are
    shown: Array  # indices of the clusters that are drawn: all, or the largest of many
    n: int  # number of series
    channel: int = 0  # that is drawn
    n_channels: int = 1

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, channel: int = 0, ax: Any = None) -> Self:
        """Series by the clusters of a fitted model, with its centers."""
        check_fitted(model)
        X = opened(X)
        series = as_series(X)
        groups = groups_of_model(model, X, len(series))
        return cls._build(series, groups, *_centers_of(model), channel)._plot_into(ax)

    @classmethod
    def from_clusters(cls, X: Any, codes: Array, model: Any, clusters: list[int]) -> Self:
        """Series by known clusters of a model: `codes` are indices of `clusters`, which are labels of the model."""
        centers, center = _centers_of(model)
        centers = None if centers is None else [centers[label] for label in clusters]
        return cls._build(as_series(X), Groups(codes, [str(label) for label in clusters]), centers, center)

    @classmethod
    def from_predictions(cls, X: Any, labels: Any, *, channel: int = 0, ax: Any = None) -> Self:
        """Series by labels, with the mean at each time point; series with label -1 are left out."""
        series = as_series(X)
        return cls._build(series, as_groups(labels, len(series)), None, MEAN, channel)._plot_into(ax)

    @classmethod
    def _build(cls, series: Series, groups: Groups, centers: Any, center: str, channel: int = 0) -> Self:
        whole_number("channel", channel, 0)
        if channel >= series.channels:
            raise ParameterError(f"channel={channel} but the series have {count(series.channels, 'channel')}")
        k = len(groups.names)
        members = [np.flatnonzero(groups.codes == j) for j in range(k)]
        lengths = [series.length[rows] for rows in members]
        n_lines = int(np.clip(ALL_LINES // max(k, 1), MIN_LINES, LINES))
        lines = [
            [_line(series(i)[:, channel]) for i in rows[sample_rows(len(rows), n_lines)].tolist()] for rows in members
        ]
        if centers is None or len(centers) != k:
            center = MEAN
            centers = [_mean(series[rows], channel) if len(rows) else None for rows in members]
        else:
            centers = [np.asarray(each, dtype=np.float64).reshape(len(each), -1)[:, channel] for each in centers]
        return cls(
            groups.names, np.array([len(rows) for rows in members]),
            np.array([[each.min(initial=series.longest), each.max(initial=0)] if len(each) else [0, 0]
                      for each in lengths]).reshape(k, 2),
            lines, [None if each is None else _line(each) for each in centers], center,
            np.sort(np.argsort([-len(rows) for rows in members], kind="stable")[:MAX_CLUSTERS]), len(series), channel,
            series.channels,
        )  # fmt: skip

    def _figure_size(self) -> tuple[float, float]:
        columns, rows = _grid(len(self.shown))
        return 0.6 + 2.6 * columns, 0.7 + 1.7 * rows

    def _draw(self, ax: Any) -> None:
        columns, rows = _grid(len(self.shown))
        ax.set_axis_off()
        shades = colours(len(self.names))
        self.panels_: list[Any] = []
        left, bottom, gap_x, gap_y = 0.02 + 0.06 / columns, 0.04 + 0.08 / rows, 0.12 / columns, 0.26 / rows
        width, height = (1 - left) / columns, (1 - bottom) / rows
        for place, j in enumerate(self.shown.tolist()):
            across, down = place % columns, place // columns
            box = (left + across * width, 1 - (down + 1) * height + gap_y / 2, width - gap_x, height - gap_y)
            shared = {"sharex": self.panels_[0], "sharey": self.panels_[0]} if self.panels_ else {}
            panel = ax.inset_axes(box, **shared)
            self._draw_panel(panel, j, shades[j])
            self.panels_.append(panel)
        for place, panel in enumerate(self.panels_):
            panel.tick_params(
                labelsize=8, labelleft=place % columns == 0, labelbottom=place + columns >= len(self.panels_)
            )
        text = f"{count(self.n, 'series', 'series')} in {count(len(self.names), 'cluster')}; thick lines: {self.center}"
        if any(len(self.lines[j]) < self.sizes[j] for j in self.shown):
            text += f"; up to {max(map(len, self.lines))} series of each cluster"
        if len(self.shown) < len(self.names):
            text += f"; the {len(self.shown)} largest clusters"
        caption(ax, text + (f"; channel {self.channel} of {self.n_channels}" if self.n_channels > 1 else ""))

    def _draw_panel(self, panel: Any, j: int, colour: str) -> None:
        alpha = float(np.clip(10 / max(len(self.lines[j]), 1), 0.5, 0.8))
        for line in self.lines[j]:
            panel.plot(*line.T, color=colour, linewidth=0.8, alpha=alpha)
        if (center := self.centers[j]) is not None:
            panel.plot(*center.T, color="white", linewidth=3.6, solid_capstyle="round")
            panel.plot(*center.T, color=INK, linewidth=1.8)
        title = f"{truncate(self.names[j], 16)}: {count(int(self.sizes[j]), 'series', 'series')}"
        panel.set_title(title, loc="left", fontsize=9, color=colour, fontweight="bold")
        panel.spines[["top", "right"]].set_visible(False)


def _grid(n: int) -> tuple[int, int]:
    """Columns and rows of panels."""
    columns = min(max(n, 1), 2 if n == 4 else 3 if n <= 9 else 4)
    return columns, -(-max(n, 1) // columns)


def _centers_of(model: Any) -> tuple[Any, str]:
    """The centers of a model as series, and their name; None if it has none."""
    centers = getattr(model, "cluster_centers_", None)
    if isinstance(model, TimeSeriesKMeans):
        return centers, CENTERS[model.metric]
    is_table = isinstance(centers, np.ndarray) and centers.ndim == 2 and np.isfinite(centers).all()
    return (centers, "medoid" if hasattr(model, "medoid_indices_") else "center") if is_table else (None, MEAN)


def _mean(series: Series, channel: int) -> Array:
    """The mean of the series at each time point, of those that are long enough."""
    table = series.table().reshape(len(series), series.longest, series.channels)[..., channel]
    return np.nanmean(table.astype(np.float64), axis=0)


def _line(values: Array) -> Array:
    """Time and value (points, 2); a long series is shortened to the extremes of equal intervals."""
    n = len(values)
    index = np.arange(n)
    if n > POINTS:
        ends = np.linspace(0, n, POINTS // 2 + 1).astype(np.int64).tolist()
        extremes = [
            {start + int(values[start:stop].argmin()), start + int(values[start:stop].argmax())}
            for start, stop in pairwise(ends)
        ]
        index = np.array(sorted({0, n - 1}.union(*extremes)))
    return np.column_stack([index, np.asarray(values, dtype=np.float64)[index]])


@in_order("plots.series(model, X)")
def series(model: Any, X: Any, *, channel: int = 0, ax: Any = None) -> Any:
    """Draw the time series of each cluster as thin lines, and its center as a thick line.

    There is a panel for each cluster, with the same axes. Up to 40 series of a cluster are drawn, a random sample if
    there are more. If there are more than 24 clusters, the largest are drawn.

    Parameters
    ----------
    model : fitted estimator or labels of shape (n,)
        The clusters, as in `clusters`. The center is that of the estimator: a barycenter of `TimeSeriesKMeans`, a
        medoid, or a mean. For labels, it is the mean of the series at each time point.
    X : list of series, array or DataFrame of shape (n, length), or array of shape (n, length, channels)
        The series, whose lengths may differ; shorter series of a table end in NaN.
    channel : int, default=0
        Channel that is drawn.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    SeriesDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure, and `panels_` the Axes of the
        clusters.

    Examples
    --------
    >>> from coterie import TimeSeriesKMeans, plots
    >>> X = [[0, 3, 0, 0, 0], [0, 0, 0, 3, 0, 0, 0], [1, 1, 1, 1]]
    >>> display = plots.series(TimeSeriesKMeans(2, random_state=0).fit(X), X)
    >>> display.get_title(loc="left")
    '3 series in 2 clusters; thick lines: DTW barycenter'
    """
    return drawn_display(SeriesDisplay, model, X, channel=channel, ax=ax)


# Dynamic time warping of two series: the cost matrix, the optimal path and the series.

CELLS = 400  # maximum size of the drawn cost matrix; a larger one is subsampled
CHANNELS = 6  # maximum number of channels that are drawn


@dataclass(eq=False, repr=False)
class DTWPathDisplay(Display):
    """Two series, the accumulated cost matrix and the optimal path."""

    kind: ClassVar[str] = "dtw_path"
    size: ClassVar[tuple[float, float]] = (6.4, 6.2)
    x: np.ndarray  # (n, channels)
    y: np.ndarray  # (m, channels)
    cost: np.ndarray  # (n', m') every `steps`-th row and column of the cost matrix; infinite outside the window
    steps: list[int]  # subsampling step of the rows and columns
    path: np.ndarray  # (length, 2)
    distance: float

    @classmethod
    def from_predictions(cls, x: Any, y: Any, *, window: Any = None, cost: str = "squared", ax: Any = None) -> Self:
        """Path of two series; `window` and `cost` as in `coterie.distances.dtw`."""
        A, B = as_pair(x, y)
        result = distances.dtw_path(x, y, window=window, cost=cost)
        steps = [max(1, -(-side // CELLS)) for side in result.cost.shape]
        total = float(result.cost[-1, -1])
        subsampled = result.cost[:: steps[0], :: steps[1]].astype(np.float64)
        one, other = (np.asarray(series(0), dtype=np.float64) for series in (A, B))
        distance = np.sqrt(total) if cost == "squared" else total
        return cls(one, other, subsampled, steps, result.path, distance)._plot_into(ax)

    def _new_axes(self) -> Any:
        return new_figure(self.size).add_axes((0.31, 0.09, 0.65, 0.62))  # leaves space for the series at its sides

    def _draw(self, ax: Any) -> None:
        n, m = len(self.x), len(self.y)
        shown = np.ma.masked_invalid(self.cost)
        self.image_ = ax.imshow(
            shown, origin="lower", aspect="auto", cmap="Blues", interpolation="nearest",
            extent=(-0.5, m - 0.5, -0.5, n - 0.5),
        )  # fmt: skip
        ax.set_facecolor(FAINT)
        (self.path_,) = ax.plot(self.path[:, 1], self.path[:, 0], color=MARK, linewidth=1.8)
        ax.set_xlim(-0.5, m - 0.5)
        ax.set_ylim(-0.5, n - 0.5)
        ax.tick_params(labelleft=False, left=False)
        ax.set_xlabel("time index of y")
        self.side_ = ax.inset_axes((-0.30, 0.0, 0.28, 1.0), sharey=ax)
        self.top_ = ax.inset_axes((0.0, 1.02, 1.0, 0.28), sharex=ax)
        self._draw_series()
        self.side_.set_ylabel("time index of x")
        caption(self.top_, f"DTW distance {self.distance:.4g}, a path of {count(len(self.path), 'step')}")

    def _draw_series(self) -> None:
        from matplotlib.ticker import MaxNLocator

        for j, colour in zip(range(self.x.shape[1]), colours(min(self.x.shape[1], CHANNELS)), strict=False):
            colour = INK if self.x.shape[1] == 1 else colour
            self.side_.plot(self.x[:, j], np.arange(len(self.x)), color=colour, linewidth=1.3)
            self.top_.plot(np.arange(len(self.y)), self.y[:, j], color=colour, linewidth=1.3)
        self.side_.invert_xaxis()
        self.side_.xaxis.set_major_locator(MaxNLocator(3, prune="both"))
        self.side_.tick_params(labelbottom=True, labelsize=8)
        self.top_.tick_params(labelbottom=False, bottom=False, labelsize=8)
        self.side_.spines[["top", "left"]].set_visible(False)
        self.top_.spines[["top", "right"]].set_visible(False)


def dtw_path(x: Any, y: Any, *, window: Any = None, cost: str = "squared", ax: Any = None) -> Any:
    """Draw the dynamic time warping path of two series.

    The image is the accumulated cost matrix: the minimum cost of a path from the first pair of values to each pair.
    Darker cells have a higher cost; grey cells are outside the window. The line is the path of minimum cost. The series
    are drawn along the sides.

    Parameters
    ----------
    x, y : array of shape (length,) or (length, channels)
        The series, drawn at the left and at the top. At most six channels are drawn.
    window, cost
        As in `coterie.distances.dtw`.
    ax : matplotlib Axes or None, default=None
        Axes for the cost matrix. The series are drawn outside of it, at the left and above: leave space there. None
        creates a new figure.

    Returns
    -------
    DTWPathDisplay
        Notebooks show it as a picture. `ax_` are the Axes of the cost matrix, and `figure_` is the figure.

    Examples
    --------
    >>> from coterie import plots
    >>> ax = plots.dtw_path([1, 2, 3], [1, 2, 2, 4])
    >>> ax.lines[0].get_xydata().tolist()
    [[0.0, 0.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]]
    """
    return DTWPathDisplay.from_predictions(x, y, window=window, cost=cost, ax=ax)._drawn()
