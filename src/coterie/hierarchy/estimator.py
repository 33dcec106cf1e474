"""What estimators of trees share: a distance or distances, and the columns they saw."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from coterie.base import DistanceEstimator
from coterie.core.arguments import not_negative, whole_number
from coterie.core.errors import InputError, ParameterError
from coterie.data import opened
from coterie.data.memory import as_weights
from coterie.data.picking import some
from coterie.distances.distance import Distance
from coterie.distances.precomputed import as_cross, as_square
from coterie.hierarchy.linkage import linkage
from coterie.hierarchy.tree import Array

PAIRS = 32  # that are looked at to see whether rows are those of a fit


class Objects(NamedTuple):
    """Rows, prepared for a distance; or, without one, the distances (rows) of things to those of a fit (columns)."""

    distance: Distance | None
    A: Any


class TreeEstimator(ClusterMixin, DistanceEstimator):
    """An estimator with the options `n_clusters`, `distance_threshold`, `metric` and `metric_params`."""

    n_clusters: Any
    distance_threshold: Any
    _distance: Distance | None  # with what it learned from the rows of the fit
    _columns: tuple[int, Array]  # how many objects the fit had, and those that are in the tree

    def _how_many(self) -> tuple[int | None, float | None]:
        """The number of clusters, or the threshold: one of them."""
        if (self.n_clusters is None) == (self.distance_threshold is None):
            raise ParameterError(
                "one of n_clusters and distance_threshold must be given and the other None; got "
                f"n_clusters={self.n_clusters!r}, distance_threshold={self.distance_threshold!r}"
            )
        if self.n_clusters is None:
            return None, not_negative("distance_threshold", self.distance_threshold)
        return whole_number("n_clusters", self.n_clusters, 1), None

    def _objects(self, X: Any) -> Objects:
        """What is clustered."""
        distance = self._as_distance()
        if distance is None:
            return Objects(None, as_square(X))
        rows = distance.rows(X)
        distance = distance.fitted(rows)
        return Objects(distance, distance.prepare(rows))

    def _new_objects(self, X: Any) -> Any:
        """New rows, prepared for the distance of the fit; without one, distances to the objects of the fit."""
        check_is_fitted(self)
        X = opened(X)
        if self._distance is None:
            count, kept = self._columns
            D = as_cross(X, count)
            return D if len(kept) == count else D[:, kept]
        rows = self._distance.rows(X)
        self._check_columns(X, reset=False)
        return self._distance.prepare(rows)

    def _is_of_fit(self, X: Any, sample_weight: Any) -> bool:
        """Whether `X`, as many rows as those of the fit, are these in their order, as far as some pairs tell: rows that
        the tree merges first must be as far apart as its heights say."""
        new, (n, kept), Z = self._new_objects(X), self._columns, self.linkage_matrix_
        w = as_weights(sample_weight, n)
        if Z is None or not (w is None or w[kept].all()):
            return False
        pairs = np.flatnonzero((Z[:, :2] <= len(Z)).all(axis=1))
        pairs = pairs[some(len(pairs), PAIRS)]
        found = [self._merged(new, w, kept, *Z[i, :2].astype(np.int64)) for i in pairs]
        return bool(np.allclose(found, Z[pairs, 2], rtol=1e-3, atol=1e-6 * np.abs(Z[:, 2]).max()))

    def _merged(self, new: Any, w: Array | None, kept: Array, i: int, j: int) -> float:
        """The height at which the leaves i and j are merged, as if there were no others."""
        two, D = kept[[i, j]], np.zeros((2, 2), new.dtype)
        if self._distance is None:
            D[0, 1] = D[1, 0] = new[two[0], j]
        else:
            self._distance.between(new[two], new[two], D)
            np.fill_diagonal(D, 0)
        method = getattr(self, "linkage", "single")
        return float(linkage(D, method, "precomputed", sample_weight=None if w is None else w[two])[0, 2])

    def _some(self, X: Any, which: Array) -> Any:
        """Those objects of `X` alone."""
        some = _safe_indexing(X, which)
        return np.asarray(some)[:, which] if self._is_precomputed else some

    def _keep_tree(self, Z: Array) -> None:
        self.linkage_matrix_ = Z
        self.children_, self.distances_, self.n_leaves_ = Z[:, :2].astype(np.int64), Z[:, 2].copy(), len(Z) + 1


def check_enough(n: int, n_clusters: int | None) -> None:
    if n < 2:
        raise InputError(f"n_samples={n} makes no tree: there must be two rows at least")
    if n_clusters is not None and n < n_clusters:
        raise InputError(f"n_samples={n} rows cannot make n_clusters={n_clusters}: ask for fewer")
