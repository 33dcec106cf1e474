"""Components of a mixture as ellipses, and the density they make together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from coterie.core.errors import ParameterError
from coterie.families.structures import as_structure
from coterie.palette import INK
from coterie.plots.cloud import Bars, Cloud
from coterie.plots.display import Display, caption, counted
from coterie.plots.rows import Array, Groups, Rows, View, rows_by, rows_of, spread_over

CELLS = 120  # along each axis, of the density
DEVIATIONS = (1.0, 2.0)
CONTOURS = 7
ROUND = 120  # corners of an ellipse


class Normals(NamedTuple):
    """Gaussian components."""

    weights: Array  # (k,)
    means: Array  # (k, d)
    covariances: Array  # (k, d, d)


@dataclass(eq=False, repr=False)
class EllipsesDisplay(Display):
    """Gaussian components, as the picture sees them: their shadows on its axes."""

    kind: ClassVar[str] = "ellipses"
    cloud: Cloud
    weights: Array  # (k,)
    means: Array  # (k, p) in the picture
    covariances: Array  # (k, p, p)
    deviations: Array  # radii of the ellipses, in standard deviations
    x: Array  # (g,) where the density is known
    y: Array | None  # (g,); None for one column
    density: Array  # (g, g) row by row from the bottom, or (g,)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        deviations: Any = DEVIATIONS,
        columns: Any = None,
        sample_weight: Any = None,
        ax: Any = None,
    ) -> Self:
        """Of a fitted mixture of Gaussians (or of Student's t, whose scales are drawn)."""
        rows, groups = rows_by(model, X, sample_weight)
        return cls._made(rows, groups, normals_of(model, len(rows.columns)), deviations, columns)._on(ax)

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: Any,
        *,
        deviations: Any = DEVIATIONS,
        columns: Any = None,
        sample_weight: Any = None,
        ax: Any = None,
    ) -> Self:
        """Of labels, one a row: the mean and covariance of each cluster."""
        rows, groups = rows_of(X, labels, sample_weight)
        if not groups.names:
            raise ParameterError("labels are all -1: there is no cluster to draw an ellipse of")
        found = Normals(groups.sizes / groups.sizes.sum(), groups.means(rows.X), _covariances(rows, groups))
        return cls._made(rows, groups, found, deviations, columns)._on(ax)

    @classmethod
    def _made(cls, rows: Rows, groups: Groups, normals: Normals, deviations: Any, columns: Any) -> Self:
        radii = np.atleast_1d(np.asarray(deviations, dtype=np.float64))
        if radii.ndim != 1 or len(radii) == 0 or not (np.isfinite(radii) & (radii > 0)).all():
            raise ParameterError(f"deviations must be numbers above 0; got {deviations!r}")
        if len(groups.names) != len(normals.weights):  # components without rows have ellipses, too
            groups = groups._replace(names=[str(j) for j in range(len(normals.weights))])
        view = View.of(rows, columns)
        cloud = Cloud.of(rows, groups, view, normals.means)
        means, spreads = view.points(normals.means), view.directions.T @ normals.covariances @ view.directions
        steps = [spread_over(values, CELLS if len(view.axes) == 2 else 4 * CELLS, 0.12) for values in cloud.reach.T]
        grid = np.stack(np.meshgrid(*steps), axis=-1)
        density = _density(grid.reshape(-1, len(steps)), normals.weights, means, spreads).reshape(grid.shape[:-1])
        return cls(
            cloud, normals.weights, means, spreads, radii, steps[0], steps[1] if len(steps) == 2 else None, density
        )

    def outlines(self) -> Array:
        """Closed lines (radii, k, corners, 2) at each of the deviations."""
        angle = np.linspace(0, 2 * np.pi, ROUND + 1)
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        values, vectors = np.linalg.eigh(self.covariances)
        halves = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]  # (k, p, p) columns are half axes
        around = np.einsum("ca,kpa->kcp", circle, halves)
        lines: Array = self.means[:, None] + self.deviations[:, None, None, None] * around
        return lines

    def _draw(self, ax: Any) -> None:
        self.rows_ = self.cloud.draw(ax, alpha=0.35)
        shown = [f"{radius:g}" for radius in self.deviations]
        if self.cloud.bars is not None:
            self._draw_curves(ax, self.cloud.bars)
            caption(ax, f"{counted(len(self.weights), 'component')} and their sum; {self.cloud.told}")
            return
        levels = np.geomspace(max(self.density.max(), 1e-300) / 300, max(self.density.max(), 2e-300) * 0.9, CONTOURS)
        self.contours_ = ax.contour(self.x, self.y, self.density, levels=levels, colors=INK, linewidths=0.5, alpha=0.45)
        self.ellipses_ = []
        for lines, radius in zip(self.outlines(), self.deviations, strict=True):
            for line, colour, weight in zip(lines, self.cloud.colours, self.weights, strict=True):
                if weight * self.cloud.n >= 0.5:
                    self.ellipses_ += ax.plot(
                        *line.T, color=colour, linewidth=1.8 if radius == self.deviations[0] else 1.1
                    )
        self.numbers_ = self.cloud.number(ax)
        caption(
            ax, f"ellipses at {' and '.join(shown)} standard deviations, contours of the density; {self.cloud.told}"
        )

    def _draw_curves(self, ax: Any, bars: Bars) -> None:
        """One column: the density of each component and of all, on the scale of the bars."""
        scale = self.cloud.total * float(bars.edges[1] - bars.edges[0])
        self.ellipses_ = []
        for j, colour in enumerate(self.cloud.colours):
            one = _density(self.x[:, None], self.weights[j : j + 1], self.means[j : j + 1], self.covariances[j : j + 1])
            self.ellipses_ += ax.plot(self.x, scale * one, color=colour, linewidth=1.8)
        self.contours_ = ax.plot(self.x, scale * self.density, color=INK, linewidth=1.2, linestyle="--")
        top = float(bars.counts.sum(axis=0).max())
        ax.set_ylim(0, 1.15 * min(max(top, scale * float(self.density.max())), 1.5 * top))
        self.numbers_ = self.cloud.number(ax)


def _covariances(rows: Rows, groups: Groups) -> Array:
    """Of the rows of each cluster (k, d, d)."""
    d, w = len(rows.columns), np.ones(len(rows.X)) if rows.w is None else rows.w
    members = [np.flatnonzero(groups.codes == j) for j in range(len(groups.names))]
    found = [
        np.zeros((d, d)) if not len(own) else _covariance(rows.X[own].astype(np.float64), w[own]) for own in members
    ]
    return np.array(found)


def _covariance(X: Array, w: Array) -> Array:
    away = X - np.average(X, axis=0, weights=w)
    found: Array = (w * away.T) @ away / w.sum()
    return found


def normals_of(model: Any, d: int) -> Normals:
    """Weights, means and covariances of a fitted mixture, whatever form it keeps them in."""
    if hasattr(model, "covariances_"):
        means = np.asarray(model.means_, dtype=np.float64)
        k = len(means)
        form, given = as_structure(model.covariance_type).form, np.asarray(model.covariances_, dtype=np.float64)
    else:
        parts = getattr(model, "components_", ())
        means, given = (np.asarray(part, dtype=np.float64) for part in _location_and_scale(model, parts))
        k = len(means)
        form = {3: "full", 2: "diag", 1: "spherical"}[given.ndim]
    if form in ("full", "tied"):
        full = np.broadcast_to(given, (k, d, d))
    else:
        full = np.reshape(given, (k, -1))[:, :, None] * np.eye(d)
    return Normals(np.asarray(model.weights_, dtype=np.float64), means, np.array(full))


def _location_and_scale(model: Any, parts: Any) -> tuple[Any, Any]:
    for names in (("mean", "covariance"), ("location", "scale")):
        if all(hasattr(parts, name) for name in names):
            return tuple(getattr(parts, name) for name in names)
    raise ParameterError(
        f"{type(model).__name__} has no Gaussian components, and no ellipses: use plots.clusters, or give labels"
    )


def _density(P: Array, weights: Array, means: Array, covariances: Array) -> Array:
    """Of the mixture, at points (m, p)."""
    p = P.shape[1]
    total = np.zeros(len(P))
    wide = float(np.ptp(P, axis=0).max())
    for weight, mean, covariance in zip(weights, means, covariances, strict=True):
        factor = np.linalg.cholesky(covariance + (1e-4 * wide) ** 2 * np.eye(p))  # what is flat is drawn thin
        away = np.linalg.solve(factor, (P - mean).T)
        scale = np.sqrt(2 * np.pi) ** p * np.diag(factor).prod()
        total += weight * np.exp(-0.5 * (away**2).sum(axis=0)) / scale
    return total


def ellipses(
    result: Any,
    X: Any,
    *,
    deviations: Any = DEVIATIONS,
    columns: Any = None,
    sample_weight: Any = None,
    ax: Any = None,
) -> Any:
    r"""Draw Gaussian components as ellipses, with contours of the density, over the rows.

    An ellipse is :math:`\{\mu + r \Sigma^{1/2} u : |u| = 1\}`; of two columns that with r = 1 holds 39 % of a component
    and that with r = 2 holds 86 %. Of more columns the picture shows the marginal on its axes: :math:`V^\top \mu` and
    :math:`V^\top \Sigma V`, which is exact. Contours are of the density of the whole mixture, a factor apart. One
    column is drawn as curves over a histogram.

    Parameters
    ----------
    result : fitted mixture of Gaussians or Student's t, or labels (n,)
        Of labels, the mean and covariance of each cluster.
    X : array or frame (n, d)
    deviations : numbers, default=(1, 2)
        Radii r.
    columns : one or two names or numbers of columns, optional
    sample_weight : array (n,), optional
        As in `clusters`; of labels, in means and covariances too.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

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
    how: dict[str, Any] = {"deviations": deviations, "columns": columns, "sample_weight": sample_weight, "ax": ax}
    if hasattr(result, "fit"):
        return EllipsesDisplay.from_estimator(result, X, **how).ax_
    return EllipsesDisplay.from_predictions(X, result, **how).ax_
