"""Time series of each cluster as lines, with the center of the cluster."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import in_order, whole_number
from coterie.core.arrays import Array
from coterie.core.formatting import count, truncate
from coterie.data import opened
from coterie.data.row_sample import sample_rows
from coterie.distances.series import Series, as_series
from coterie.errors import ParameterError
from coterie.kmeans.time_series_kmeans import TimeSeriesKMeans
from coterie.metrics.model_labels import check_fitted
from coterie.palette import INK, colours
from coterie.plots.display import Display, caption, drawn_display
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
