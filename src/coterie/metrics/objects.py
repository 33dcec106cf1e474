"""Rows in clusters with a distance between them, taken strip by strip: no table of all distances is ever made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.errors import InputError, ParameterError
from coterie.core.scale import Scale, ScaleError
from coterie.data.memory import as_weights
from coterie.data.scale import unsafe_exponent
from coterie.distances.distance import Distance, as_distance
from coterie.distances.pairwise import fit_and_prepare, strips
from coterie.distances.precomputed import as_square
from coterie.metrics.labels import Array, check_several, labels_of_rows


class Precomputed(Distance):
    """Distances that are given: rows are their own numbers."""

    name = "precomputed"
    triangle = definite = False

    def __init__(self, D: Array):
        self.D = D

    def between(self, A: Array, B: Array, out: Array) -> None:
        out[:] = self.D[np.ix_(A, B)]


@dataclass(frozen=True)
class Objects:
    """What there is to measure, cluster by cluster."""

    distance: Distance
    rows: Any  # (n, ...) prepared
    dtype: Any  # of the distances
    codes: Array  # (n,) clusters, from 0 up
    w: Array | None  # (n,)
    k: int

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def weights(self) -> Array:
        return np.ones(len(self)) if self.w is None else self.w

    @cached_property
    def weight(self) -> Array:
        """Of the rows of each cluster (k,)."""
        return np.bincount(self.codes, self.w, self.k).astype(np.float64)

    @cached_property
    def others(self) -> Array:
        """The weight of the rest of each row's cluster (n,)."""
        return weight_of_others(self.codes, self.weights, self.weight)

    @cached_property
    def counts(self) -> Array:
        """Rows of each cluster (k,)."""
        return np.bincount(self.codes, minlength=self.k)

    @cached_property
    def order(self) -> Array:
        """Numbers of the rows, cluster by cluster (n,)."""
        return np.argsort(self.codes, kind="stable")

    @property
    def starts(self) -> Array:
        """Where in this order each cluster starts (k,)."""
        return np.cumsum(self.counts) - self.counts

    def without_weightless(self) -> Objects:
        """Only the rows that count, in clusters numbered anew."""
        if self.w is None or self.w.all():
            return self
        kept = np.flatnonzero(self.w)
        names, codes = np.unique(self.codes[kept], return_inverse=True)
        return Objects(self.distance, self.rows[kept], self.dtype, codes.ravel(), self.w[kept], len(names))

    def strips(self, rows: Array, n_jobs: int | None, fold: Any) -> Iterator[Any]:
        """``fold(numbers of some rows, their distances to all rows)`` for all of `rows`.

        The second argument has a column for each row, in the `order` of the clusters.
        """
        against = self.rows[self.order]
        cuts = strips(len(rows), len(self), self.distance.work)
        calls = [(rows[start:stop],) for start, stop in cuts]
        return machine.in_threads(partial(self._strip, against, fold), calls, n_jobs)

    def _strip(self, against: Any, fold: Any, rows: Array) -> Any:
        apart = np.empty((len(rows), len(self)), self.dtype)
        self.distance.between(self.rows[rows], against, apart)
        return fold(rows, apart)


def refuse_overflow(*values: Any) -> None:
    """What is made of distances must be finite, as the rows are."""
    if not all(np.isfinite(value).all() for value in values):
        raise InputError(
            "X holds rows so far apart that their distances overflow: divide the columns by their size first"
        )


def weight_of_others(codes: Array, w: Array, weight: Array) -> Array:
    """The weight of the rest of each row's cluster (n,), for a row is not compared with itself.

    A row that counts as several has equals, with which it is compared: what is left out is one of them.
    """
    rest: Array = weight[codes] - np.minimum(w, 1.0)
    return rest


def as_objects(X: Any, labels: Any, metric: Any, metric_params: Any, sample_weight: Any) -> Objects:
    """The user's rows, or distances, as objects in two or more clusters."""
    params = dict(metric_params or {})
    if isinstance(metric, str) and metric == "precomputed":
        if params:
            raise ParameterError(f"metric='precomputed' takes no parameters; got {', '.join(params)}")
        given = as_square(X)
        distance: Distance = Precomputed(given)
        rows: Any = np.arange(len(given))
        dtype = given.dtype
    else:
        distance, rows, _ = fit_and_prepare(as_distance(metric, **params), X)
        distance, dtype = distance.up_to_scale(), rows.dtype  # indices are ratios of distances
    found = labels_of_rows(labels, len(rows))
    check_several(found)
    w = as_weights(sample_weight, len(rows))
    if w is not None and (exponent := unsafe_exponent(float(w.max()), np.float64)):
        raise ScaleError(Scale(0, exponent))
    return Objects(distance, rows, dtype, found.codes, w, found.k)
