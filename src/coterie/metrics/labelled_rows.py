"""Rows in clusters with a distance, whose distances are computed in strips: the full matrix is never stored."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from coterie import machine
from coterie.core.arrays import Array, as_dense
from coterie.data import as_source
from coterie.data.memory import as_weights
from coterie.data.scale_check import unsafe_exponent
from coterie.distances.distance import Distance, as_distance
from coterie.distances.pairwise import as_square, fit_and_prepare, strips
from coterie.errors import InputError, ParameterError, ScaleError
from coterie.metrics.labels import check_several, labels_of_rows


class Precomputed(Distance):
    """Precomputed distances; the rows are their indices."""

    name = "precomputed"
    triangle = definite = False

    def __init__(self, D: Array):
        self.D = D

    def between(self, A: Array, B: Array, out: Array) -> None:
        out[:] = self.D[np.ix_(A, B)]


@dataclass(frozen=True)
class SparseEuclidean(Distance):
    """Euclidean distances of sparse rows from their dot products: a few digits are lost for nearly equal rows.

    With `root` False they are squared, and half of the squares if `is_cosine`: the cosine distances of unit rows.
    """

    root: bool
    is_cosine: bool = False

    def between(self, A: Any, B: Any, out: Array) -> None:
        squares = [np.asarray(part.multiply(part).sum(axis=1), np.float64).ravel() for part in (A, B)]
        np.subtract(squares[0][:, None] + squares[1], 2 * (A @ B.T).toarray(), out=out, casting="same_kind")
        np.maximum(out, 0, out=out)
        if self.root:
            np.sqrt(out, out=out)
        elif self.is_cosine:
            out /= 2


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

    def with_positive_weight(self) -> "LabelledRows":
        """Only the rows with positive weight, with clusters renumbered."""
        return self if self.w is None or self.w.all() else self.subset(np.flatnonzero(self.w))

    def subset(self, index: Array) -> "LabelledRows":
        """Only these rows, with clusters renumbered."""
        names, codes = np.unique(self.codes[index], return_inverse=True)
        w = None if self.w is None else self.w[index]
        return LabelledRows(self.distance, self.rows[index], self.dtype, codes.ravel(), w, len(names))

    def strips(self, rows: Array, n_jobs: int | None, reduce: Any) -> Iterator[Any]:
        """Yield ``reduce(indices, distances)`` for strips of `rows`, in parallel.

        `distances` are those of the rows `indices` to all rows, whose columns are in the `order` of the clusters.
        """
        others = self.rows[self.order]
        calls = [(rows[start:stop],) for start, stop in strips(len(rows), len(self), self.distance.work)]
        return machine.in_threads(lambda part: reduce(part, self.table(self.rows[part], others)), calls, n_jobs)

    def distances(self, rows: Any, others: Any) -> Array:
        """Distances of rows to others, by index or slice."""
        return self.table(self.rows[rows], self.rows[others])

    def table(self, A: Any, B: Any) -> Array:
        """Distances of the rows `A` to the rows `B`."""
        n, m = (part.shape[0] if sparse.issparse(part) else len(part) for part in (A, B))
        distances = np.empty((n, m), self.dtype)
        self.distance.between(A, B, distances)
        return distances


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
    return cluster_weight[codes] - np.minimum(w, 1.0)


SPARSE_METRICS = {
    "euclidean": SparseEuclidean(True),
    "l2": SparseEuclidean(True),
    "sqeuclidean": SparseEuclidean(False),
    "cosine": SparseEuclidean(False, is_cosine=True),
}


def as_labelled_rows(
    X: Any, labels: Any, metric: Any, metric_params: dict[str, Any], sample_weight: Any
) -> LabelledRows:
    """Rows or precomputed distances with labels of at least two clusters."""
    if isinstance(metric, str) and metric == "precomputed":
        if metric_params:
            raise ParameterError(f"metric='precomputed' takes no parameters; got {', '.join(metric_params)}")
        D = as_square(as_dense(X))
        distance: Distance = Precomputed(D)
        rows: Any = np.arange(len(D))
        dtype = D.dtype
    elif sparse.issparse(X) and isinstance(metric, str) and metric in SPARSE_METRICS and not metric_params:
        distance, dtype = SPARSE_METRICS[metric], np.dtype(np.float64)
        rows = as_source(X).pick(slice(None)).X.astype(np.float64)
        if not np.isfinite(rows.data).all():
            raise InputError("Input X contains NaN or infinity: drop these rows")
        if distance.is_cosine:
            lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
            if not lengths.all():
                i = int(lengths.argmin())
                raise InputError(f"row {i} is zero in every column: it has no direction; drop such rows")
            rows = sparse.csr_array(sparse.diags_array(1 / lengths) @ rows)
    else:
        distance, rows, _ = fit_and_prepare(as_distance(metric, **metric_params), X)
        distance, dtype = distance.up_to_scale(), rows.dtype  # the indices are ratios of distances
    n = rows.shape[0] if sparse.issparse(rows) else len(rows)
    encoded = labels_of_rows(labels, n)
    check_several(encoded)
    w = as_weights(sample_weight, n)
    if w is not None and (exponent := unsafe_exponent(float(w.max()), np.float64)):
        raise ScaleError(weights=exponent)
    return LabelledRows(distance, rows, dtype, encoded.codes, w, encoded.k)
