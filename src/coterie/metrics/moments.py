"""Weight, mean and scatter of every cluster, by two passes over the rows on any engine.

A mean is kept in two parts: a row of the cluster (its pivot), and the mean of the cluster less that row. Far from the
origin their sum would be rounded by more than the clusters may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie import data, kernels
from coterie.core.errors import InputError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.scale import Scale, ScaleError
from coterie.core.stats import Stats
from coterie.data import as_source
from coterie.data.scale import divided
from coterie.data.summary import summarize
from coterie.engines import as_engine
from coterie.metrics.labels import Array, Labels, check_several, labels_of_rows


@dataclass(frozen=True)
class Totals(Stats):
    weight: Any  # (k,)
    sum_dx: Any  # (k, d) about a pivot of each cluster


@dataclass(frozen=True)
class Scatter(Stats):
    sum_square: Any  # (k,) of w |x - center|^2
    sum_distance: Any  # (k,) of w |x - center|


class Means(NamedTuple):
    """The means of clusters, each as the sum of two parts."""

    pivot: Array  # (k, d) a row of each cluster; zero for sparse rows
    offset: Array  # (k, d)

    def less(self, j: int) -> Array:
        """All means less the one of cluster j (k, d)."""
        return (self.pivot - self.pivot[j]) + (self.offset - self.offset[j])

    def only(self, clusters: Array) -> Means:
        return Means(self.pivot[clusters], self.offset[clusters])

    def distances(self, X: Any) -> Array:
        """Euclidean distances of rows to all means (n, k), in float64."""
        k = len(self.pivot)
        ops = kernels.for_centers(X, k)
        if sparse.issparse(X):
            return ops.distances(_wide(X), self.pivot + self.offset)
        apart = [ops.distances(_wide(X) - self.pivot[j], self.offset[j : j + 1]) for j in range(k)]
        return np.concatenate(apart, axis=1)


class Moments(NamedTuple):
    """What the clusters that count are like."""

    weight: Array  # (k,)
    means: Means  # (k, d)
    sum_square: Array  # (k,)
    sum_distance: Array  # (k,)
    clusters: Array  # (k,) which of all they are

    @property
    def between(self) -> float:
        """The sum of squares between the means and the mean of all rows."""
        moved = self.means.less(0)
        squares = ((moved - self.weight @ moved / self.weight.sum()) ** 2).sum(axis=1)
        return float(self.weight @ squares)


class Opened(NamedTuple):
    """Rows with their labels, divided by their scale if they are out of range, and where to compute on them."""

    source: Source  # whose `y` are the codes of the labels
    engine: Engine
    labels: Labels
    scale: Scale


def opened(X: Any, labels: Any, sample_weight: Any, n_jobs: int | None) -> Opened:
    """The rows with their labels; `labels` None is one cluster."""
    X = data.opened(X)
    n = (getattr(X, "shape", None) or as_source(X).shape)[0]
    found = labels_of_rows(np.zeros(n, np.int64) if labels is None else labels, n)
    source, scale = as_source(X, sample_weight, found.codes), Scale(0, 0)
    engine = as_engine("auto", source, n_jobs)
    try:
        summarize(source, engine, rescales=True)
    except ScaleError as error:
        scale = error.scale
        source = divided(source, scale, engine)
    return Opened(source, engine, found, scale)


def cluster_moments(source: Source, engine: Engine, labels: Labels) -> Moments:
    """Of the clusters whose weight is not 0; the codes of the labels are the `y` of the source.

    Sums are taken about a row of each cluster: small numbers, and none where all rows of a cluster are equal.
    """
    pivots = _one_row_each(source, labels)
    totals = engine.sum(partial(_totals, pivots), source)
    counted = np.flatnonzero(totals.weight)
    means = Means(pivots, totals.sum_dx / np.where(totals.weight > 0, totals.weight, 1.0)[:, None])
    if sparse.issparse(source.pick([0]).X):  # rows less a pivot would be dense
        means = Means(np.zeros_like(pivots), pivots + means.offset)
    scatter = engine.sum(partial(scatter_about, means), source)
    weight, squares, distances = (
        values[counted] for values in (totals.weight, scatter.sum_square, scatter.sum_distance)
    )
    return Moments(weight, means.only(counted), squares, distances, counted)


def moments_of_several(X: Any, labels: Any, sample_weight: Any, n_jobs: int | None) -> tuple[Moments, Scale]:
    """The same straight from the user's rows, for indices that compare clusters: two of them must count.

    They are those of rows and weights divided by their scale.
    """
    source, engine, found, scale = opened(X, labels, sample_weight, n_jobs)
    check_several(found)
    moments = cluster_moments(source, engine, found)
    if len(moments.weight) < 2:
        raise InputError("only one cluster has rows whose sample_weight is not 0: this index needs at least two")
    return moments, scale


def scatter_about(means: Means, chunk: Chunk) -> Scatter:
    """How far the rows of each cluster lie from its mean, or from another center."""
    k, w, own = len(means.pivot), chunk.w, chunk.y.astype(np.int32)
    moved = _wide(chunk.X) if sparse.issparse(chunk.X) else _wide(chunk.X) - means.pivot[own]
    squares = kernels.for_centers(moved, k).own_squares(moved, means.offset, own)
    distances = np.sqrt(squares)
    return Scatter(*(np.bincount(own, part if w is None else part * w, k) for part in (squares, distances)))


def _one_row_each(source: Source, labels: Labels) -> Array:
    """The first row of each cluster that has a weight, or the first of all (k, d)."""
    first, w = np.empty(labels.k, np.int64), getattr(source, "w", None)
    for rows in (np.arange(len(labels.codes)), None if w is None else np.flatnonzero(np.asarray(w))):
        if rows is not None:
            first[labels.codes[rows[::-1]]] = rows[::-1]
    picked = source.pick(first).X
    return _wide(picked.toarray() if sparse.issparse(picked) else picked)


def _totals(pivots: Array, chunk: Chunk) -> Totals:
    n, k = len(chunk.y), len(pivots)
    w = np.ones(n) if chunk.w is None else chunk.w
    member = sparse.csr_array((w, chunk.y, np.arange(n + 1)), shape=(n, k)).T
    weight = np.bincount(chunk.y, w, k)
    if sparse.issparse(chunk.X):
        return Totals(weight, (member @ _wide(chunk.X)).toarray() - weight[:, None] * pivots)
    return Totals(weight, member @ (_wide(chunk.X) - pivots[chunk.y]))


def _wide(X: Any) -> Any:
    return X.astype(np.float64, copy=False)
