"""Silhouette plot."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import in_order
from coterie.core.arrays import Array
from coterie.core.formatting import truncate
from coterie.core.protocols import parameters_of
from coterie.data import opened
from coterie.data.memory import as_weights
from coterie.data.row_sample import affordable_series, sample_groups
from coterie.distances import as_distance
from coterie.distances.dtw import DTW
from coterie.distances.series import as_series
from coterie.errors import InputError
from coterie.kmeans.metric_of_model import metric_of
from coterie.kmeans.time_series_kmeans import TimeSeriesKMeans
from coterie.metrics import silhouette_samples
from coterie.metrics.model_labels import check_fitted
from coterie.palette import INK, MARK, colours
from coterie.plots.display import Display, amount, caption, drawn_display
from coterie.plots.projection import Groups, as_groups, as_rows, groups_of_model

MAX_CLUSTERS = 30  # that are drawn
EXACT = 20_000  # approximate size of the sample if there are more rows
MIN_ROWS = 50  # rows of each cluster in the sample, if it has as many
STEPS = 200  # points of an outline
GAP = 0.12  # space between areas, relative to their mean height


@dataclass(eq=False, repr=False)
class SilhouetteDisplay(Display):
    """The sorted silhouettes of each cluster, drawn as one area for each cluster."""

    kind: ClassVar[str] = "silhouette"
    names: list[str]  # (k,) of the clusters
    sizes: Array  # (k,) number of rows, or their weight
    means: Array  # (k,) mean silhouettes
    below: Array  # (k,) share of rows below 0
    outlines: list[Array]  # (k) silhouettes in descending order, of all rows or at equal steps of rows or weight
    mean: float  # mean silhouette of all rows
    shown: Array  # indices of the clusters that are drawn: all, or the worst of many
    n: int  # number of rows
    sampled: int | None  # size of the sample, if not all rows were used
    weighted: bool = False  # whether rows have weights

    def __post_init__(self) -> None:
        self.rows_: Array | None = None  # (m,) indices of the rows that were measured
        self.silhouettes_: Array | None = None  # (m,) their silhouettes

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, metric: Any = None, sample_weight: Any = None, n_jobs: int | None = None,
        ax: Any = None,
    ) -> Self:  # fmt: skip
        """Silhouettes for a fitted model, by default with its `metric` if `pairwise` supports it, else Euclidean."""
        check_fitted(model)
        if metric is None and isinstance(model, TimeSeriesKMeans):
            metric = as_distance(**metric_of(model))
        model_metric = parameters_of(model).get("metric")
        is_supported = isinstance(model_metric, str) and model_metric not in ("l1", "l2")
        metric = metric or (model_metric if is_supported else "euclidean")
        X = opened(X)
        rows, w = _rows(X, metric, sample_weight)
        return cls._build(rows, groups_of_model(model, X, len(rows), sample_weight), w, metric, n_jobs)._plot_into(ax)

    @classmethod
    def from_predictions(
        cls, X: Any, labels: Any, *, metric: Any = "euclidean", sample_weight: Any = None, n_jobs: int | None = None,
        ax: Any = None,
    ) -> Self:  # fmt: skip
        """Silhouettes for labels, one for each row; rows with label -1 are left out."""
        metric = metric or "euclidean"
        rows, w = _rows(opened(X), metric, sample_weight)
        return cls._build(rows, as_groups(labels, len(rows)), w, metric, n_jobs)._plot_into(ax)

    @classmethod
    def _build(cls, X: Array, groups: Groups, w: Array | None, metric: Any, n_jobs: int | None) -> Self:
        if w is not None:
            groups = Groups(np.where(w > 0, groups.codes, -1), groups.names, w)
        limit = affordable_series(X.shape[1], EXACT) if _is_warped(metric) else EXACT
        index, n = _sample(groups, limit), int(np.count_nonzero(groups.codes >= 0))
        codes, weights = groups.codes[index], None if w is None else w[index]
        if len(np.unique(codes)) < 2:
            raise InputError("silhouettes need at least two clusters with rows; the labels have only one")
        rows = X[np.ix_(index, index)] if _is_precomputed(metric) else X[index]
        values = silhouette_samples(rows, codes, metric=metric, sample_weight=weights, n_jobs=n_jobs)
        by_cluster: list[tuple[Array, Array | None]] = []  # silhouettes in descending order, and their weights
        for j in range(len(groups.names)):
            order = np.argsort(-values[codes == j], kind="stable")
            member_weights = None if weights is None else weights[codes == j][order]
            by_cluster.append((values[codes == j][order].astype(np.float64), member_weights))
        means = np.array([_mean(s, w_s) for s, w_s in by_cluster])
        below = np.array([_mean(s < 0, w_s) for s, w_s in by_cluster])
        sizes, nonempty = groups.sizes, np.flatnonzero(groups.sizes)
        worst = nonempty[np.argsort(means[nonempty], kind="stable")[:MAX_CLUSTERS]]
        mean = float(means[nonempty] @ sizes[nonempty] / sizes.sum())
        sampled = None if len(index) == n else len(index)
        outlines = [outline(s, w_s) for s, w_s in by_cluster]
        display = cls(groups.names, sizes, means, below, outlines, mean, np.sort(worst), n, sampled, w is not None)
        display.rows_, display.silhouettes_ = index, values
        return display

    def _figure_size(self) -> tuple[float, float]:
        return 6.4, float(np.clip(1.6 + 0.42 * len(self.shown), 3.4, 9.0))

    def _draw(self, ax: Any) -> None:
        from matplotlib.ticker import MultipleLocator

        shades = colours(len(self.names))
        share = np.maximum(self.sizes[self.shown] / self.sizes[self.shown].sum(), 0.25 / len(self.shown))
        heights, gap = share, GAP / len(self.shown)
        tops = -np.cumsum(np.append(0.0, heights[:-1] + gap))
        self.areas_ = []
        for j, top, height in zip(self.shown, tops, heights, strict=True):
            values = self.outlines[j]
            y = top - height * np.linspace(0, 1, max(len(values), 2))
            ends = values if len(values) > 1 else np.repeat(values, 2)
            self.areas_.append(ax.fill_betweenx(y, 0, ends, color=shades[j], linewidth=0, alpha=0.85))
        row_labels = [
            f"{truncate(self.names[j], 16)}   {self.means[j]:.2f}   {amount(self.sizes[j], self.weighted)}"
            for j in self.shown
        ]
        ax.set_yticks(tops - heights / 2, row_labels)
        ax.tick_params(axis="y", length=0, labelsize=9 if len(self.shown) <= 16 else 7.5)
        ax.set_ylim(tops[-1] - heights[-1] - gap, gap)
        ax.axvline(0, color=INK, linewidth=0.8)
        self.mean_line_ = ax.axvline(self.mean, color=MARK, linestyle="--", linewidth=1.3)
        lowest = min(float(self.outlines[j].min()) for j in self.shown)
        ax.set_xlim(max(-1.02, min(lowest, 0.0) - 0.04), 1.02)
        ax.xaxis.set_major_locator(MultipleLocator(0.5))
        ax.xaxis.set_minor_locator(MultipleLocator(0.1))
        ax.set_xlabel("silhouette")
        ax.spines[["top", "right", "left"]].set_visible(False)
        text = f"mean silhouette {self.mean:.2f}"
        text += "" if self.sampled is None else f" of {self.sampled:,} of {self.n:,} rows"
        if len(self.shown) < len(self.names):
            text += f", the {len(self.shown)} worst of {len(self.names)} clusters"
        caption(ax, text + (", by weights" if self.weighted else ""))


def _sample(groups: Groups, max_rows: int) -> Array:
    """Return the indices of all rows in clusters, or of a sample that has rows of every cluster.

    A silhouette is computed from mean distances to clusters, so it does not depend on the share of rows in the sample.
    """
    members = np.flatnonzero(groups.codes >= 0)
    min_rows = min(MIN_ROWS, -(-max_rows // max(len(groups.names), 1)))
    return members[sample_groups(groups.codes[members], max_rows, min_rows)]


def _is_warped(metric: Any) -> bool:
    return isinstance(metric, DTW) or (isinstance(metric, str) and metric == "dtw")


def _is_precomputed(metric: Any) -> bool:
    return isinstance(metric, str) and metric == "precomputed"


def _rows(X: Any, metric: Any, sample_weight: Any) -> tuple[Array, Array | None]:
    """Return rows (n, d), precomputed distances (n, n) or series (n, length, channels), and the weights."""
    if _is_precomputed(metric):
        return np.asarray(X), as_weights(sample_weight, len(X))
    if _is_warped(metric):
        series = as_series(X)
        return series.table().reshape(len(series), -1, series.channels), as_weights(sample_weight, len(series))
    rows = as_rows(X, sample_weight)
    if rows.is_missing is not None:
        counts = rows.is_missing.sum(axis=0)
        columns = ", ".join(f"{rows.columns[j]} ({counts[j]})" for j in np.flatnonzero(counts)[:5])
        raise InputError(
            f"Input X contains NaN: {columns}. Silhouettes need complete rows: drop the rows with missing values, or "
            "impute the values (sklearn.impute)"
        )
    return rows.X, rows.w


def _mean(values: Array, w: Array | None) -> float:
    return float(np.average(values, weights=w)) if len(values) else np.nan


def outline(values: Array, w: Array | None = None) -> Array:
    """Return at most `STEPS` of the sorted values, at equal steps of rows or weight."""
    if w is None and len(values) <= STEPS:
        return values
    if w is None:
        return values[np.linspace(0, len(values) - 1, STEPS).round().astype(int)]
    cumulative = np.cumsum(w) / max(float(w.sum()), 1e-300)
    index = np.searchsorted(cumulative, (np.arange(STEPS) + 0.5) / STEPS)
    return values[np.minimum(index, len(values) - 1)] if len(values) else values


@in_order("plots.silhouette(model, X)")
def silhouette(
    model: Any, X: Any, *, metric: Any = None, sample_weight: Any = None, n_jobs: int | None = None, ax: Any = None
) -> Any:
    """Draw the silhouettes of the rows, sorted within each cluster, and their mean as a line.

    Each cluster is an area, labelled with its name, mean silhouette and number of rows. If there are more than 30
    clusters, the 30 with the lowest means are drawn. If there are more than 20,000 rows, a sample of about as many is
    used, with at least 50 rows of each cluster; for long series, a smaller one.

    Parameters
    ----------
    model : fitted estimator or labels of shape (n,)
        The clusters, as in `clusters`; rows with label -1 are left out.
    X : array or DataFrame of shape (n, d)
        The rows, without missing values; for metric='precomputed', the distances of shape (n, n); for 'dtw', series.
    metric : str, function, Distance or None, default=None
        As in `coterie.metrics.silhouette_samples`. None: the metric of the model, or Euclidean distances.
    sample_weight : array of shape (n,) or None, default=None
        Row weights. The height of an area is proportional to the weight of the cluster.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    SilhouetteDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import plots
    >>> ax = plots.silhouette(["a", "a", "b", "b"], [[0.0], [1.0], [9.0], [10.0]])
    >>> ax.get_title(loc="left")
    'mean silhouette 0.89'
    """
    options: dict[str, Any] = {"metric": metric, "sample_weight": sample_weight, "n_jobs": n_jobs, "ax": ax}
    return drawn_display(SilhouetteDisplay, model, X, **options)
