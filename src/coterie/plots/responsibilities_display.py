"""Responsibilities as blended colours."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.arguments import in_order
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.protocols import can_predict
from coterie.data.row_sample import sample_rows
from coterie.errors import InputError, ParameterError
from coterie.metrics.model_labels import check_alike, check_fitted
from coterie.palette import INK, blends
from coterie.plots.cloud import Cloud, n_bins_for, notes
from coterie.plots.display import Display, caption, drawn_display
from coterie.plots.projection import MANY, SHOWN, Groups, Rows, View, as_rows, call_method, grid_centers

MAX_VALUES = 400_000  # maximum number of responsibilities that are stored
SURE = 0.9  # rows whose largest responsibility is below this are counted as uncertain
GRID = 400  # places along one column
LINES, NEAR = 3, 0.05  # names that are nearer to each other than this share of the width are put on 3 lines in turn


@dataclass(eq=False, repr=False)
class ResponsibilitiesDisplay(Display):
    """The responsibilities of the components for each row, as shares of their colours."""

    kind: ClassVar[str] = "responsibilities"
    cloud: Cloud
    shares: Array  # (m, k) responsibilities for the points of the cloud
    unsure: float  # share of rows whose largest responsibility is below `SURE`
    x: Array | None = None  # (g,) for one column: values, or centers of bins
    bands: Array | None = None  # (g, k) responsibilities at these values, or means of the rows in each bin (0 if empty)
    exact: bool = False  # whether `bands` are responsibilities at single values

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None
    ) -> Self:
        """Responsibilities of a fitted model with `predict_proba`, such as a mixture or fuzzy c-means."""
        check_fitted(model)
        rows = as_rows(X, sample_weight).without_zero_weights()
        if not can_predict(model, "predict_proba"):
            raise ParameterError(
                f"{type(model).__name__} has no predict_proba, so no responsibilities: use plots.clusters"
            )
        index = _sample(len(rows.X), call_method(model, "predict_proba", rows.X_with_nan[:1]).shape[1])
        shares = call_method(model, "predict_proba", rows.X_with_nan[index])
        check_alike(model, rows.X_with_nan[index], shares.argmax(axis=1))
        display = cls._build(rows, index, shares, columns)
        if len(rows.columns) == 1:
            display = display._with_exact_bands(model, rows.X.dtype)
        return display._plot_into(ax)

    @classmethod
    def from_predictions(
        cls, X: Any, shares: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None
    ) -> Self:
        """Responsibilities (n, k), with one row for each row of `X`."""
        rows = as_rows(X, sample_weight)
        resp = np.asarray(shares, dtype=np.float64)
        if resp.ndim != 2 or len(resp) != len(rows.X):
            raise InputError(f"shares must have the shape (n, k) for the n = {len(rows.X)} rows of X; got {resp.shape}")
        if not (np.isfinite(resp).all() and (resp >= 0).all() and np.allclose(resp.sum(axis=1), 1.0, atol=1e-3)):
            raise InputError("shares must be at least 0 and sum to 1 in every row")
        if rows.w is not None:
            resp = resp[rows.w > 0]
        rows = rows.without_zero_weights()
        index = _sample(len(resp), resp.shape[1])
        return cls._build(rows, index, resp[index], columns)._plot_into(ax)

    @classmethod
    def _build(cls, rows: Rows, index: Array, shares: Array, columns: Any) -> Self:
        view, k, sample = View.of(rows, columns), shares.shape[1], rows.take(index)
        P, w = view.points(sample.X), np.ones(len(index)) if sample.w is None else sample.w
        mass = w[:, None] * shares
        centers = (mass.T @ P) / np.maximum(mass.sum(axis=0), 1e-300)[:, None]
        groups = Groups(shares.argmax(axis=1), [str(j) for j in range(k)], sample.w)
        cloud = Cloud(
            view.axes, groups.names, groups.sizes, centers, len(rows.X), P, groups.codes,
            weight=None if rows.w is None else rows.weight, missing=rows.missing,
        )  # fmt: skip
        unsure = float(np.average(shares.max(axis=1) < SURE, weights=w))
        x, bands = _bin_means(P[:, 0], shares, w) if P.shape[1] == 1 else (None, None)
        return cls(cloud, shares.astype(np.float64), unsure, x, bands)

    def _with_exact_bands(self, model: Any, dtype: Any) -> Self:
        """Return the display with responsibilities at equal steps of its only column, if the model accepts them."""
        x = grid_centers(self.cloud.points[:, 0], GRID, 0.0)
        try:
            bands = call_method(model, "predict_proba", x[:, None].astype(dtype)).astype(np.float64)
        except InputError:  # the model accepts only some values, such as counts
            return self
        return replace(self, x=x, bands=bands, exact=True)

    def _draw(self, ax: Any) -> None:
        m, n = len(self.shares), self.cloud.n
        if self.x is not None and self.bands is not None:
            self._draw_bands(ax, self.x, self.bands)
        else:
            area = float(np.clip(20_000 / m, 3.0, 26.0))
            point_colours = blends(self.shares, self.cloud.colours)
            self.rows_ = ax.scatter(*self.cloud.points.T, s=area, c=point_colours, linewidths=0, rasterized=m > 5000)
            ax.set_ylabel(self.cloud.axes[1])
            ax.margins(0.05)
            self.numbers_ = self.cloud.draw_names(ax)
        ax.set_xlabel(self.cloud.axes[0])
        ax.spines[["top", "right"]].set_visible(False)
        shown = count(n) if m == n else f"{m:,} of {count(n)}"
        text = f"responsibilities as colours; {shown}, {100 * self.unsure:.3g} % of them below {SURE}"
        caption(ax, text + notes(self.cloud.weighted, self.cloud.missing))

    def _draw_bands(self, ax: Any, x: Array, bands: Array) -> None:
        """Draw the responsibilities along one column as stacked bands."""
        half = (x[1] - x[0]) / 2
        ends, step = (x[0] - half, x[-1] + half), None if self.exact else "mid"
        x, bands = np.array([ends[0], *x, ends[1]]), np.concatenate([bands[:1], bands, bands[-1:]])
        self.rows_ = ax.stackplot(x, bands.T, colors=self.cloud.colours, alpha=0.8, step=step, linewidth=0)
        ax.set_xlim(*ends)
        ax.set_ylabel("responsibility" if self.exact else "mean responsibility")
        ax.set_ylim(0, 1)
        self.numbers_ = self._draw_names(ax, float(ends[1] - ends[0]))

    def _draw_names(self, ax: Any, width: float) -> list[Any]:
        """Write names at the upper edge, on different lines if they would overlap."""
        from matplotlib.patheffects import withStroke

        artists, last, line = [], -np.inf, 0
        for j in np.argsort(self.cloud.centers[:, 0], kind="stable"):
            if not self.cloud.sizes[j]:
                continue
            at = float(self.cloud.centers[j, 0])
            line = (line + 1) % LINES if at - last < NEAR * width else 0
            edge = [withStroke(linewidth=2, foreground=INK)]
            style = {"ha": "center", "va": "top", "fontweight": "bold", "color": "white", "path_effects": edge}
            artists.append(ax.text(at, 0.96 - 0.07 * line, self.cloud.names[j], **style))
            last = at
        return artists


def _bin_means(x: Array, shares: Array, w: Array) -> tuple[Array, Array]:
    """Return the centers of bins along a column (g,), and the mean responsibilities of the rows in each (g, k)."""
    n_bins = n_bins_for(len(x))
    centers = grid_centers(x, n_bins, 0.0)
    half = (centers[1] - centers[0]) / 2
    index = np.clip(((x - centers[0] + half) / (2 * half)).astype(int), 0, n_bins - 1)
    sums = np.stack([np.bincount(index, w * column, n_bins) for column in shares.T], axis=1)
    return centers, sums / np.maximum(np.bincount(index, w, n_bins), 1e-300)[:, None]


def _sample(n: int, k: int) -> Array:
    return sample_rows(n, min(n if n <= MANY else SHOWN, max(MAX_VALUES // max(k, 1), 2000)))


@in_order("plots.responsibilities(model, X)")
def responsibilities(model: Any, X: Any, *, columns: Any = None, sample_weight: Any = None, ax: Any = None) -> Any:
    """Draw each row in a blend of the colours of the components, by its responsibilities.

    A row that belongs to one component has its colour; a row between two components has a mixture of both (mixed as
    light is). One column is drawn as stacked bands: the responsibilities at every value if the model has this column
    only, otherwise the mean responsibilities of the rows in bins.

    Parameters
    ----------
    model : fitted estimator with `predict_proba`, or responsibilities of shape (n, k)
        The responsibilities must be at least 0 and sum to 1 in every row.
    X : array or DataFrame of shape (n, d)
        If there are many rows, a sample is drawn; the caption says so.
    columns : str, int, sequence of one or two of these, or None, default=None
        Names or numbers of the columns to show. None: all columns, or the first two principal axes of more than two.
    sample_weight : array of shape (n,) or None, default=None
        Row weights, used in sizes, centers and the share below 0.9.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    ResponsibilitiesDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GaussianMixture, plots
    >>> X = np.array([[1.0, 2], [2, 4], [3, 0], [10, 2], [11, 4], [12, 0]])
    >>> model = GaussianMixture(2, covariance_type="EEI", random_state=0).fit(X)
    >>> ax = plots.responsibilities(model, X)
    >>> ax.get_title(loc="left")
    'responsibilities as colours; 6 rows, 0 % of them below 0.9'
    """
    return drawn_display(ResponsibilitiesDisplay, model, X, columns=columns, sample_weight=sample_weight, ax=ax)
