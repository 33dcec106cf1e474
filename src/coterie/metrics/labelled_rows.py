"""Rows in clusters with a distance, whose distances are computed in strips: the full matrix is never stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from coterie import machine
from coterie.data.memory import as_weights
from coterie.data.scale_check import unsafe_exponent
from coterie.distances.distance import Distance, as_distance
from coterie.distances.pairwise import fit_and_prepare, strips
from coterie.distances.precomputed import as_square
from coterie.errors import InputError, ParameterError, ScaleError
from coterie.metrics.labels import Array, check_several, labels_of_rows


class Precomputed(Distance):
    """Precomputed distances; the rows are their indices."""

    name = "precomputed"
    triangle = definite = False

    def __init__(self, D: Array):
        self.D = D

    def between(self, A: Array, B: Array, out: Array) -> None:
        out[:] = self.D[np.ix_(A, B)]


@dataclass(frozen=True)
class LabelledRows:
    """Rows, their clusters and their distance."""

    distance: Distance
    rows: Any  # (n, ...) prepared
    dtype: Any  # of the distances
    codes: Array  # (n,) clusters, from 0
    w: Array | None  # (n,)
    k: int

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def weights(self) -> Array:
        """The weight of each row (n,)."""
        return np.ones(len(self)) if self.w is None else self.w

    @cached_property
    def cluster_weight(self) -> Array:
        """The weight of each cluster (k,)."""
        return np.bincount(self.codes, self.w, self.k).astype(np.float64)

    @cached_property
    def rest_weight(self) -> Array:
        """The weight of the other rows in the cluster of each row (n,)."""
        return weight_of_others(self.codes, self.weights, self.cluster_weight)

    @cached_property
    def counts(self) -> Array:
        """The number of rows of each cluster (k,)."""
        return np.bincount(self.codes, minlength=self.k)

    @cached_property
    def order(self) -> Array:
        """Indices of the rows, sorted by cluster (n,)."""
        return np.argsort(self.codes, kind="stable")

    @property
    def starts(self) -> Array:
        """Position of the first row of each cluster in `order` (k,)."""
        return np.cumsum(self.counts) - self.counts

    def with_positive_weight(self) -> LabelledRows:
        """Only the rows with positive weight, with clusters renumbered."""
        if self.w is None or self.w.all():
            return self
        positive = np.flatnonzero(self.w)
        names, codes = np.unique(self.codes[positive], return_inverse=True)
        return LabelledRows(self.distance, self.rows[positive], self.dtype, codes.ravel(), self.w[positive], len(names))

    def strips(self, rows: Array, n_jobs: int | None, reduce: Any) -> Iterator[Any]:
        """Yield ``reduce(indices, distances)`` for strips of `rows`, in parallel.

        `distances` are those of the rows `indices` to all rows, whose columns are in the `order` of the clusters.
        """
        others = self.rows[self.order]
        bounds = strips(len(rows), len(self), self.distance.work)
        calls = [(rows[start:stop],) for start, stop in bounds]
        return machine.in_threads(partial(self._strip, others, reduce), calls, n_jobs)

    def _strip(self, others: Any, reduce: Any, rows: Array) -> Any:
        distances = np.empty((len(rows), len(self)), self.dtype)
        self.distance.between(self.rows[rows], others, distances)
        return reduce(rows, distances)


def check_finite(*values: Any) -> None:
    """Raise an error if distances, or sums of distances, overflowed."""
    if not all(np.isfinite(value).all() for value in values):
        raise InputError(
            "X contains rows so far apart that their distances overflow: divide the columns by their scale first"
        )


def weight_of_others(codes: Array, w: Array, cluster_weight: Array) -> Array:
    """The weight of the other rows in the cluster of each row (n,): a row is not compared with itself.

    A row of weight m > 1 is equivalent to m equal rows. It is compared with the other m - 1 of them.
    """
    rest: Array = cluster_weight[codes] - np.minimum(w, 1.0)
    return rest


def as_labelled_rows(X: Any, labels: Any, metric: Any, metric_params: Any, sample_weight: Any) -> LabelledRows:
    """Rows or precomputed distances with labels of at least two clusters."""
    params = dict(metric_params or {})
    if isinstance(metric, str) and metric == "precomputed":
        if params:
            raise ParameterError(f"metric='precomputed' takes no parameters; got {', '.join(params)}")
        D = as_square(X)
        distance: Distance = Precomputed(D)
        rows: Any = np.arange(len(D))
        dtype = D.dtype
    else:
        distance, rows, _ = fit_and_prepare(as_distance(metric, **params), X)
        distance, dtype = distance.up_to_scale(), rows.dtype  # the indices are ratios of distances
    encoded = labels_of_rows(labels, len(rows))
    check_several(encoded)
    w = as_weights(sample_weight, len(rows))
    if w is not None and (exponent := unsafe_exponent(float(w.max()), np.float64)):
        raise ScaleError(weights=exponent)
    return LabelledRows(distance, rows, dtype, encoded.codes, w, encoded.k)
