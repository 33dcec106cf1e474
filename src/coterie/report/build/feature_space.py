"""Rows as points of the feature space, for maps and examples."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.arrays import Array
from coterie.core.protocols import GaussianClusters
from coterie.data.row_sample import sample_rows
from coterie.plots.cloud import Cloud
from coterie.plots.ellipses_display import gaussian_components
from coterie.plots.neighbour_map import LITTLE
from coterie.plots.projection import WIDE, Groups, Rows, View, as_rows
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.scaling import extremes
from coterie.report.build.cluster_moments import Moments, moments, scatter
from coterie.web import ClusterMap, Densities, beyond_counts, inner_range, outward, span

POINTS = 10_000  # points of a map
VALUES = 50_000  # values of a map: points times axes
DENSE = 50_000  # above this number of rows the map shows densities of all rows, besides a sample
BLOCK = 1 << 20  # values processed together
AXIS_VALUES = 1 << 26  # values of the sample that gives the principal axes of a very wide table
FAR_ROWS = 100  # rows beyond the border of the first view that are added to a sample, so that arrows point to them
COLUMNS = 8  # columns that a map offers as axes, besides the principal axes


@dataclass(frozen=True)
class FeatureSpace:
    """Rows as points, missing values filled with the means of their columns: ``space[rows]`` are points (m, d)."""

    X: Array  # (n, d) scaled; may be on disk
    names: tuple[str, ...]  # (d,) of axes: ``log(amount)`` for a transformed column
    n_numbers: int  # numeric columns; the others are one-hot columns
    mean: Array  # (d,) of the values of X that are not missing
    deviation: Array  # (d,) their standard deviations
    present: Array  # (d,) share of rows whose value is not missing
    shift: Array  # (d,) space[rows] * spread + shift is in units of the table
    spread: Array  # (d,)
    has_missing: bool
    standardised: bool  # whether points are standardised for the map, although the fit was not
    threads: int | None = None

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Any) -> Array:
        return self.points(self.X[rows])

    def points(self, X: Array) -> Array:
        """Points of rows of X (m, d)."""
        points = np.array(X, dtype=np.float64)
        if self.has_missing:
            points = np.where(np.isnan(points), self.mean, points)
        if self.standardised:
            points -= self.shift
            points /= self.spread
        return points

    def project(self, rows: Any, A: Array, b: Array) -> Array:
        """Points of rows, in ascending order, projected on the axes A (d, p), plus b (p,)."""
        n_parts = 1 + len(rows) * self.X.shape[1] // BLOCK
        if len(rows) == len(self):  # all rows: slices need no copy
            bounds = np.linspace(0, len(self), n_parts + 1).astype(int)
            parts: Any = [slice(*pair) for pair in pairwise(bounds.tolist())]
        else:
            parts = np.array_split(rows, n_parts)
        return np.concatenate([self[part] @ A + b for part in parts])

    def rows(self) -> Rows:
        """Rows for principal axes: all rows, or a sample of a very wide table."""
        X: Any = self[sample_rows(len(self), self.axis_rows)] if self.X.shape[1] > WIDE else self
        mean = np.zeros(len(self.names)) if self.standardised else self.mean
        width = np.where(self.deviation > 0, 1.0, 0.0) if self.standardised else self.deviation
        return Rows(X, list(self.names), mean, self.present * width**2)

    @cached_property
    def view(self) -> View:
        """The first two principal axes, or the columns of a table with two."""
        return View.of(self.rows())

    @property
    def axis_rows(self) -> int:
        """Number of rows from which principal axes are computed."""
        d = self.X.shape[1]
        return len(self) if d <= WIDE else min(len(self), max(POINTS // 10, AXIS_VALUES // d))


def feature_space(prepared: PreparedTable, threads: int | None = None) -> FeatureSpace:
    """The feature space of prepared rows; mixed columns are standardised."""
    preparation, rows = prepared.preparation, prepared.rows
    columns = moments(rows.X, has_missing=rows.has_missing, threads=threads)
    deviation = columns.deviation
    shift, spread = (columns.mean, np.where(deviation > 0, deviation, 1.0)) if preparation.mixed else preparation.units
    return FeatureSpace(
        rows.X, preparation.axis_names, len(preparation.numbers), columns.mean, deviation, columns.present / rows.n,
        shift, spread, rows.has_missing, preparation.mixed, threads,
    )  # fmt: skip


def cluster_points(space: FeatureSpace, codes: Array, k: int, weight: Array | None = None) -> Moments:
    """Means and sums of squares of the points of each cluster."""
    return moments(space.X, codes, k, weight=weight, points=space.points, threads=space.threads)


def cluster_map(
    space: FeatureSpace, codes: Array, names: list[str], model: Any = None, column_order: Array | None = None,
    clusters: Moments | None = None,
) -> Any:  # fmt: skip
    """A map of the clusters on two or more axes, or a histogram of a single column.

    `codes` are the clusters of the rows (-1: none), `clusters` their means, if known. Columns that come first in
    `column_order` are offered as axes.
    """
    if space.X.shape[1] == 1:
        rows = as_rows(space[:] * space.spread + space.shift)
        view = View(np.zeros(1), np.ones((1, 1)), [space.names[0]])
        return Cloud.of(rows, Groups(codes, names), view, inner=True)
    sample = sample_rows(len(space), POINTS)
    axes, A, b = _axes(space, len(sample), column_order)
    centers = ellipses = None
    if len(names) < 2:
        codes, names = np.full(len(space), -1), []
    else:
        centers, covariances = _ellipses(space, codes, len(names), A, b, model, clusters)
        # One-hot rows lie on few points, which ellipses do not describe.
        ellipses = None if space.standardised or not np.isfinite(covariances).all() else covariances
    points = space.project(sample, A, b)
    if len(sample) == len(space):
        return ClusterMap(axes, points, codes, names, len(space), centers, ellipses)
    low, high = extremes(space.X, points=lambda X: space.points(X) @ A + b, threads=space.threads)
    limits = np.array([inner_range(*column) for column in zip(points.T, low, high, strict=True)]).T
    densities, beyond, far_rows = _densities(space, codes, len(names), A, b, limits)
    shown = np.union1d(sample, np.array(far_rows, np.int64))
    return ClusterMap(
        axes, space.project(shown, A, b), codes[shown], names, len(space), centers, ellipses, densities=densities,
        limits=limits, beyond=beyond,
    )  # fmt: skip


def map_note(space: FeatureSpace, shown: Any) -> str:
    """What the map shows, in one to five sentences."""
    if not isinstance(shown, ClusterMap):
        return f"Histogram of the single column, {len(space):,} rows."
    two = space.X.shape[1] == 2
    note = "The two columns." if two else "The first two principal axes, or any two of the columns that differ most."
    if (share := space.view.share) is not None and share < LITTLE:
        note += (
            f" The two principal axes show {100 * share:.0f} % of the variance: clusters that are apart may overlap."
        )
    if space.axis_rows < len(space):
        note += f" The axes are computed from a random sample of {space.axis_rows:,} rows."
    if shown.covariances is not None:
        note += " Ellipses are two standard deviations wide about the centers."
    if space.standardised:
        note += " For the map, columns are standardised and categories are one-hot encoded."
    if space.has_missing:
        note += " Missing values are shown at the means of their columns."
    return note


def _axes(space: FeatureSpace, n_points: int, column_order: Array | None) -> tuple[list[str], Array, Array]:
    """Names of the axes, and their coordinates: points @ A + b."""
    d = space.X.shape[1]
    order = np.arange(space.n_numbers) if column_order is None else column_order
    n_columns = max(0, min(COLUMNS, VALUES // n_points - 2)) if d > 2 else d
    columns = order[order < space.n_numbers][:n_columns] if d > 2 else np.arange(d)
    units = np.zeros((d, len(columns)))
    units[columns, range(len(columns))] = space.spread[columns]
    names = [space.names[j] for j in columns]
    if d == 2:
        return names, units, space.shift[columns]
    view = space.view
    return (
        [*(axis.replace(" of the variance", "") for axis in view.axes), *names],
        np.hstack([view.directions, units]),
        np.concatenate([-view.origin @ view.directions, space.shift[columns]]),
    )


def _ellipses(
    space: FeatureSpace, codes: Array, k: int, A: Array, b: Array, model: Any, clusters: Moments | None
) -> tuple[Array, Array]:
    """Centers (k, p) and covariances (k, p, p): of the components of a Gaussian mixture, or of the rows of clusters."""
    if isinstance(model, GaussianClusters) and not space.standardised and len(model.means_) == k:
        normals = gaussian_components(model, space.X.shape[1])
        return normals.means @ A + b, np.einsum("di,kde,ej->kij", A, normals.covariances, A)
    means = (clusters or cluster_points(space, codes, k)).means
    return means @ A + b, scatter(space.X, codes, means, space.points, A, space.threads)


def _densities(
    space: FeatureSpace, codes: Array, k: int, A: Array, b: Array, limits: Array
) -> tuple[Densities | None, Array, list[int]]:
    """Counts of rows in cells of the map, if there are too many to draw each, and rows beyond the limits.

    These are counted for each pair of axes (p, p), and the first of them on the first two axes are listed.
    """
    densities = Densities(limits[0], limits[1], k) if len(space) > DENSE else None
    low, high = np.array([span(ends) for ends in limits.T]).T
    beyond, far_rows = np.zeros((A.shape[1],) * 2, np.int64), list[int]()
    with machine.one_blas_thread:  # the products are too small for threads
        rows = max(1, BLOCK // space.X.shape[1])
        for start in range(0, len(space), rows):
            block = slice(start, start + rows)
            points = space[block] @ A + b
            if densities is not None:
                densities.add(points, codes[block])
            beyond += beyond_counts(points, low, high)
            is_far = outward(points[:, :2], low[:2], high[:2]).any(axis=1)
            far_rows += (start + np.flatnonzero(is_far)[: FAR_ROWS - len(far_rows)]).tolist()
    return densities, beyond, far_rows
