"""Ellipses of Gaussian components, and the density of the mixture."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from coterie.core.arguments import in_order
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.protocols import GaussianClusters, LocationScale
from coterie.errors import ParameterError
from coterie.families.structures import as_structure
from coterie.palette import INK
from coterie.plots.cloud import Bars, Cloud
from coterie.plots.display import caption, drawn_display
from coterie.plots.projection import Groups, Rows, RowsDisplay, View, grid_centers

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
        if model is None and not groups.names:
            raise ParameterError(
                "labels are all -1, so there are no clusters to draw: pass labels with at least one cluster"
            )
        if model is not None:
            components = gaussian_components(model, len(rows.columns))
        else:
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
        text = f"ellipses at {radii} standard deviations, contours of the density; {self.cloud.description}"
        caption(ax, text)

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
