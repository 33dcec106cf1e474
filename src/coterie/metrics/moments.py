"""Weight, mean and scatter of each cluster, in two passes over the rows on any engine.

A mean is stored in two parts: a row of the cluster (its pivot), and the mean of the cluster minus this row. For rows
far from the origin, rounding their sum could change it by more than the differences between clusters.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie import kernels
from coterie.core.arrays import Array, as_dense
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import Scale
from coterie.core.stats import Stats, WeightedSums
from coterie.data import as_source
from coterie.data.scale_check import divide_by_scale
from coterie.data.summary import summarize
from coterie.engines import as_engine
from coterie.errors import InputError, ScaleError
from coterie.kernels.membership import membership
from coterie.metrics.labels import Labels, check_several, labels_of_rows


@dataclass(frozen=True)
class Scatter(Stats):
    sum_square: Any  # (k,) of w |x - center|^2
    sum_distance: Any  # (k,) of w |x - center|


class Means(NamedTuple):
    """The means of clusters, each stored as a sum of two parts."""

    pivot: Array  # (k, d) a row of each cluster; zero for sparse rows
    offset: Array  # (k, d)

    def minus(self, j: int) -> Array:
        """All means minus the mean of cluster j (k, d)."""
        return (self.pivot - self.pivot[j]) + (self.offset - self.offset[j])

    def subset(self, clusters: Array) -> "Means":
        return Means(self.pivot[clusters], self.offset[clusters])

    def distances(self, X: Any) -> Array:
        """Euclidean distances of rows to all means (n, k), in float64."""
        k = len(self.pivot)
        ops = kernels.for_centers(X, k)
        if sparse.issparse(X):
            return ops.distances(_as_float64(X), self.pivot + self.offset)
        columns = [ops.distances(_as_float64(X) - self.pivot[j], self.offset[j : j + 1]) for j in range(k)]
        return np.concatenate(columns, axis=1)


class Moments(NamedTuple):
    """Moments of the clusters with positive weight."""

    weight: Array  # (k,)
    means: Means  # (k, d)
    sum_square: Array  # (k,) of w |x - mean|^2
    sum_distance: Array  # (k,) of w |x - mean|
    clusters: Array  # (k,) codes of their labels

    @property
    def between(self) -> float:
        """The weighted sum of squares between the means and the mean of all rows."""
        shifted = self.means.minus(0)
        squares = ((shifted - self.weight @ shifted / self.weight.sum()) ** 2).sum(axis=1)
        return float(self.weight @ squares)


class LabelledSource(NamedTuple):
    """Rows with labels, divided by their scale if they are out of range, and the engine for them."""

    source: Source  # its `y` are the codes of the labels
    engine: Engine
    labels: Labels
    scale: Scale


def as_labelled_source(X: Any, labels: Any, sample_weight: Any, n_jobs: int | None) -> LabelledSource:
    """The rows of `X` with their labels; if `labels` is None, all rows are one cluster."""
    rows: Any = as_source(X, device="auto")
    n = rows.shape[0]
    encoded = labels_of_rows(np.zeros(n, np.int64) if labels is None else labels, n)
    source: Any = as_source(getattr(rows, "X", rows), sample_weight, encoded.codes, device="auto")
    source, scale = replace(source, columns=rows.columns), Scale(0, 0)
    engine = as_engine("auto", source, n_jobs)
    try:
        summarize(source, engine, rescales=True)
    except ScaleError as error:
        scale = Scale(error.rows, error.weights)
        source = divide_by_scale(source, scale, engine)
    return LabelledSource(source, engine, encoded, scale)


def as_counted_source(X: Any, labels: Any, sample_weight: Any, n_jobs: int | None) -> LabelledSource:
    """Rows of at least two clusters, whose weights are numbers of rows, and must not be rescaled."""
    labelled = as_labelled_source(X, labels, sample_weight, n_jobs)
    if labelled.scale.weights:
        raise ScaleError(*labelled.scale)
    check_several(labelled.labels)
    return labelled


def cluster_moments(source: Source, engine: Engine, labels: Labels) -> Moments:
    """Moments of the clusters with positive weight; the `y` of the source are the codes of the labels.

    Sums are relative to a row of each cluster: they are small, and exactly 0 if all rows of a cluster are equal.
    """
    pivots = _first_rows(source, labels)
    totals = engine.sum(partial(_totals, pivots), source)
    clusters = np.flatnonzero(totals.weight)
    means = Means(pivots, totals.sum_x / np.where(totals.weight > 0, totals.weight, 1.0)[:, None])
    if sparse.issparse(source.pick([0]).X):  # sparse rows minus a pivot would be dense
        means = Means(np.zeros_like(pivots), pivots + means.offset)
    scatter = engine.sum(partial(scatter_about, means), source)
    weight, squares, distances = (
        values[clusters] for values in (totals.weight, scatter.sum_square, scatter.sum_distance)
    )
    return Moments(weight, means.subset(clusters), squares, distances, clusters)


def moments_of_several(X: Any, labels: Any, sample_weight: Any, n_jobs: int | None) -> tuple[Moments, Scale]:
    """Moments of at least two weighted clusters, and the scale by which rows and weights were divided."""
    source, engine, encoded, scale = as_labelled_source(X, labels, sample_weight, n_jobs)
    check_several(encoded)
    moments = cluster_moments(source, engine, encoded)
    check_several_weighted(moments.weight)
    return moments, scale


def check_several_weighted(weight: Array) -> None:
    """Raise an error if fewer than two clusters have positive weight (k,)."""
    if np.count_nonzero(weight) < 2:
        raise InputError("only one cluster has rows with positive sample_weight: this index needs at least two")


def scatter_about(means: Means, chunk: Chunk) -> Scatter:
    """The scatter of the rows of each cluster about its mean, or about another center."""
    if kernels.is_on_device(chunk.X):
        return Scatter(*kernels.for_labels(chunk.X).cluster_scatter(chunk.X, chunk.w, chunk.y, *means))
    k, w, labels = len(means.pivot), chunk.w, chunk.y.astype(np.int32)
    shifted = _as_float64(chunk.X) if sparse.issparse(chunk.X) else _as_float64(chunk.X) - means.pivot[labels]
    if w is not None and not sparse.issparse(shifted):
        shifted[w == 0] = 0.0  # in units of the other rows, their squares could overflow
    squares = kernels.for_centers(shifted, k).assigned_squares(shifted, means.offset, labels)
    distances = np.sqrt(squares)
    return Scatter(*(np.bincount(labels, part if w is None else part * w, k) for part in (squares, distances)))


def _first_rows(source: Source, labels: Labels) -> Array:
    """The first row with positive weight of each cluster, or its first row if there is none (k, d)."""
    first, w = np.empty(labels.k, np.int64), getattr(source, "w", None)
    for rows in (np.arange(len(labels.codes)), None if w is None else np.flatnonzero(np.asarray(w))):
        if rows is not None:
            first[labels.codes[rows[::-1]]] = rows[::-1]
    return _as_float64(as_dense(source.pick(first).X))


def _totals(pivots: Array, chunk: Chunk) -> WeightedSums:
    """Weight, and sum of the differences from the pivot, of each cluster."""
    if kernels.is_on_device(chunk.X):
        return WeightedSums(*kernels.for_labels(chunk.X).cluster_totals(chunk.X, chunk.w, chunk.y, pivots))
    k = len(pivots)
    members, weight = membership(chunk.y, k, chunk.w), np.bincount(chunk.y, chunk.w, k).astype(np.float64)
    if sparse.issparse(chunk.X):
        return WeightedSums(weight, (members @ _as_float64(chunk.X)).toarray() - weight[:, None] * pivots)
    return WeightedSums(weight, members @ (_as_float64(chunk.X) - pivots[chunk.y]))


def _as_float64(X: Any) -> Any:
    return X.astype(np.float64, copy=False)
