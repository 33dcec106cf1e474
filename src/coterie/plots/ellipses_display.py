"""Ellipses of Gaussian components, and the density of the mixture."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from coterie.core.arguments import in_order
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.protocols import GaussianClusters, LocationScale, can_predict
from coterie.data.row_sample import sample_rows
from coterie.errors import InputError, ParameterError
from coterie.families.structures import as_structure
from coterie.metrics.model_labels import check_alike, check_fitted
from coterie.palette import INK, blends
from coterie.plots.cloud import Bars, Cloud, n_bins_for, notes
from coterie.plots.display import Display, caption, drawn_display
from coterie.plots.projection import Groups, Rows, RowsDisplay, View, as_rows, call_method, grid_centers, max_points

CELLS = 120  # cells of the density along each axis
DEVIATIONS = (1.0, 2.0)
CONTOURS = 7
CORNERS = 120  # corners of an ellipse


class GaussianComponents(NamedTuple):
    """Gaussian components."""

    weights: Array  # (k,)
    means: Array  # (k, d)
    covariances: Array  # (k, d, d)


@dataclass(eq=False, repr=False)
class EllipsesDisplay(RowsDisplay):
    """Gaussian components (of labels: mean and covariance of each cluster), projected onto the axes of the figure."""

    kind: ClassVar[str] = "ellipses"
    cloud: Cloud
    weights: Array  # (k,)
    means: Array  # (k, p) projected means
    covariances: Array  # (k, p, p)
    deviations: Array  # radii of the ellipses, in standard deviations
    x: Array  # (g,) grid of the density
    y: Array | None  # (g,); None for one column
    density: Array  # (g, g) rows of the grid from the bottom, or (g,)

    @classmethod
    def _build(cls, rows: Rows, groups: Groups, model: Any, deviations: Any = DEVIATIONS, columns: Any = None) -> Self:
        if model is not None:
            components = gaussian_components(model, len(rows.columns))
        else:
            groups.check_any()
            weights = groups.sizes / groups.sizes.sum()
            components = GaussianComponents(weights, groups.means(rows.X), _covariances(rows, groups))
        radii = np.atleast_1d(np.asarray(deviations, dtype=np.float64))
        if radii.ndim != 1 or len(radii) == 0 or not (np.isfinite(radii) & (radii > 0)).all():
            raise ParameterError(f"deviations must be numbers above 0; got {deviations!r}")
        if len(groups.names) != len(components.weights):  # components without rows also have ellipses
            groups = groups._replace(names=[str(j) for j in range(len(components.weights))])
        view = View.of(rows, columns)
        cloud = Cloud.of(rows, groups, view, components.means)
        means, spreads = view.points(components.means), view.directions.T @ components.covariances @ view.directions
        steps = [grid_centers(values, CELLS if len(view.axes) == 2 else 4 * CELLS, 0.12) for values in cloud.limits.T]
        grid = np.stack(np.meshgrid(*steps), axis=-1)
        density = _density(grid.reshape(-1, len(steps)), components.weights, means, spreads).reshape(grid.shape[:-1])
        return cls(
            cloud, components.weights, means, spreads, radii, steps[0], steps[1] if len(steps) == 2 else None, density
        )

    def outlines(self) -> Array:
        """Closed lines (radii, k, corners, 2), one for each radius and component."""
        angle = np.linspace(0, 2 * np.pi, CORNERS + 1)
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        values, vectors = np.linalg.eigh(self.covariances)
        halves = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]  # (k, p, p) columns are half axes
        around = np.einsum("ca,kpa->kcp", circle, halves)
        return self.means[:, None] + self.deviations[:, None, None, None] * around

    def _draw(self, ax: Any) -> None:
        self.rows_ = self.cloud.draw(ax, alpha=0.35)
        if self.cloud.bars is not None:
            self._draw_curves(ax, self.cloud.bars)
            caption(ax, f"{count(len(self.weights), 'component')} and their sum; {self.cloud.description}")
            return
        levels = np.geomspace(max(self.density.max(), 1e-300) / 300, max(self.density.max(), 2e-300) * 0.9, CONTOURS)
        self.contours_ = ax.contour(self.x, self.y, self.density, levels=levels, colors=INK, linewidths=0.5, alpha=0.45)
        self.ellipses_ = []
        for lines, radius in zip(self.outlines(), self.deviations, strict=True):
            for line, colour, weight in zip(lines, self.cloud.colours, self.weights, strict=True):
                if weight * self.cloud.n >= 0.5:
                    width = 1.8 if radius == self.deviations[0] else 1.1
                    self.ellipses_ += ax.plot(*line.T, color=colour, linewidth=width)
        self.numbers_ = self.cloud.draw_names(ax)
        radii = " and ".join(f"{radius:g}" for radius in self.deviations)
        caption(ax, f"ellipses at {radii} standard deviations, contours of the density; {self.cloud.description}")

    def _draw_curves(self, ax: Any, bars: Bars) -> None:
        """Draw the density of each component and of the mixture over a histogram of one column."""
        scale = self.cloud.total * float(bars.edges[1] - bars.edges[0])
        self.ellipses_ = []
        for j, colour in enumerate(self.cloud.colours):
            one = _density(self.x[:, None], self.weights[j : j + 1], self.means[j : j + 1], self.covariances[j : j + 1])
            self.ellipses_ += ax.plot(self.x, scale * one, color=colour, linewidth=1.8)
        self.contours_ = ax.plot(self.x, scale * self.density, color=INK, linewidth=1.2, linestyle="--")
        top = float(bars.counts.sum(axis=0).max())
        ax.set_ylim(0, 1.15 * min(max(top, scale * float(self.density.max())), 1.5 * top))
        self.numbers_ = self.cloud.draw_names(ax)


def _covariances(rows: Rows, groups: Groups) -> Array:
    """Return the covariance of the rows of each cluster (k, d, d)."""
    d, weights = len(rows.columns), np.ones(len(rows.X)) if rows.w is None else rows.w
    result = np.zeros((len(groups.names), d, d))
    for j in range(len(groups.names)):
        index = np.flatnonzero(groups.codes == j)
        if len(index):
            X, w = rows.X[index].astype(np.float64), weights[index]
            centered = X - np.average(X, axis=0, weights=w)
            result[j] = (w * centered.T) @ centered / w.sum()
    return result


def gaussian_components(model: Any, d: int) -> GaussianComponents:
    """Return the weights, means and full covariances of a fitted mixture."""
    parts: Any = getattr(model, "components_", ())
    form = None
    if isinstance(model, GaussianClusters):
        means, covariances, form = model.means_, model.covariances_, as_structure(model.covariance_type).form
    elif hasattr(parts, "mean") and hasattr(parts, "covariance"):
        means, covariances = parts.mean, parts.covariance
    elif isinstance(parts, LocationScale):
        means, covariances = parts.location, parts.scale
    else:
        raise ParameterError(
            f"{type(model).__name__} has no Gaussian components: use plots.clusters, or pass labels instead of the "
            "model"
        )
    means, covariances = np.asarray(means, dtype=np.float64), np.asarray(covariances, dtype=np.float64)
    k, form = len(means), form or {3: "full", 2: "diag", 1: "spherical"}[covariances.ndim]
    if form in ("full", "tied"):
        full = np.broadcast_to(covariances, (k, d, d))
    else:
        full = np.reshape(covariances, (k, -1))[:, :, None] * np.eye(d)
    return GaussianComponents(np.asarray(model.weights_, dtype=np.float64), means, np.array(full))


def _density(P: Array, weights: Array, means: Array, covariances: Array) -> Array:
    """Return the density of the mixture at points (m, p)."""
    p = P.shape[1]
    total = np.zeros(len(P))
    width = float(np.ptp(P, axis=0).max())
    for weight, mean, covariance in zip(weights, means, covariances, strict=True):
        visible = covariance + (1e-4 * width) ** 2 * np.eye(p)  # also if the component is singular
        factor = np.linalg.cholesky(visible)
        scaled = np.linalg.solve(factor, (P - mean).T)
        scale = np.sqrt(2 * np.pi) ** p * np.diag(factor).prod()
        total += weight * np.exp(-0.5 * (scaled**2).sum(axis=0)) / scale
    return total


@in_order("plots.ellipses(model, X)")
def ellipses(
    model: Any, X: Any, *, deviations: Any = DEVIATIONS, columns: Any = None, sample_weight: Any = None, ax: Any = None
) -> Any:
    r"""Draw Gaussian components as ellipses, with contours of the density, over the rows.

    An ellipse is :math:`\{\mu + r \Sigma^{1/2} u : |u| = 1\}`. In two columns, the ellipse with r = 1 contains 39 %
    of a component, and the ellipse with r = 2 contains 86 %. More columns are projected onto the axes of the figure:
    the ellipses are those of the marginal distribution, :math:`V^\top \mu` and :math:`V^\top \Sigma V`, which is exact.
    The contours show the density of the mixture at levels of constant ratio. One column is drawn as curves over a
    histogram.

    Parameters
    ----------
    model : fitted mixture of Gaussians or Student's t, or labels of shape (n,)
        For labels, the mean and covariance of each cluster are drawn.
    X : array or DataFrame of shape (n, d)
        The rows, as in `clusters`.
    deviations : float or sequence of float, default=(1, 2)
        Radii r of the ellipses, in standard deviations.
    columns : str, int, sequence of one or two of these, or None, default=None
        Names or numbers of the columns to show. None: all columns, or the first two principal axes of more than two.
    sample_weight : array of shape (n,) or None, default=None
        Row weights, as in `clusters`; for labels, also used in means and covariances.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    EllipsesDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie import GaussianMixture, plots
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [9, 2], [9, 4], [9, 0]])
    >>> model = GaussianMixture(2, covariance_type="EEI", random_state=0).fit(X)
    >>> ax = plots.ellipses(model, X)
    >>> len(ax.lines)  # two for each component
    4
    """
    options: dict[str, Any] = {"deviations": deviations, "columns": columns, "sample_weight": sample_weight, "ax": ax}
    return drawn_display(EllipsesDisplay, model, X, **options)


# Responsibilities as blended colours.

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
    return sample_rows(n, min(max_points(n), max(MAX_VALUES // max(k, 1), 2000)))


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
