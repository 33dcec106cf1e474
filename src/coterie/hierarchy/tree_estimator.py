"""The base class of estimators of trees."""

from typing import Any

import numpy as np

from coterie.base import ObjectEstimator
from coterie.core.arguments import not_negative, whole_number
from coterie.core.arrays import Array
from coterie.data.memory import as_weights
from coterie.data.row_sample import sample_rows
from coterie.errors import InputError, ParameterError
from coterie.hierarchy.linkage import linkage

PAIRS = 32  # pairs of leaves that are compared to decide whether rows are those of the fit


class TreeEstimator(ObjectEstimator):
    """An estimator with the options `n_clusters`, `distance_threshold`, `metric` and `metric_params`."""

    n_clusters: Any
    distance_threshold: Any

    def _stopping_rule(self) -> tuple[int | None, float | None]:
        """The number of clusters or the threshold; the other is None."""
        if (self.n_clusters is None) == (self.distance_threshold is None):
            raise ParameterError(
                "exactly one of n_clusters and distance_threshold must be set, and the other must be None; got "
                f"n_clusters={self.n_clusters!r}, distance_threshold={self.distance_threshold!r}"
            )
        if self.n_clusters is None:
            return None, not_negative("distance_threshold", self.distance_threshold)
        return whole_number("n_clusters", self.n_clusters, 1), None

    def _is_of_fit(self, X: Any, sample_weight: Any) -> bool:
        """Whether `X` has the rows of the fit in the same order: some pairs must be as far apart as their heights."""
        new, (n, leaf_rows), Z = self._new_objects(X), self._columns, self.linkage_matrix_
        w = as_weights(sample_weight, n)
        if Z is None or not (w is None or w[leaf_rows].all()):
            return False
        pairs = np.flatnonzero((Z[:, :2] <= len(Z)).all(axis=1))
        pairs = pairs[sample_rows(len(pairs), PAIRS)]
        heights = [self._merge_height(new, w, leaf_rows, *Z[i, :2].astype(np.int64)) for i in pairs]
        return bool(np.allclose(heights, Z[pairs, 2], rtol=1e-3, atol=1e-6 * np.abs(Z[:, 2]).max()))

    def _merge_height(self, new: Any, w: Array | None, leaf_rows: Array, i: int, j: int) -> float:
        """The height at which the leaves i and j are merged if there are no others."""
        pair, D = leaf_rows[[i, j]], np.zeros((2, 2), new.dtype)
        if self._distance is None:
            D[0, 1] = D[1, 0] = new[pair[0], j]
        else:
            self._distance.between(new[pair], new[pair], D)
            np.fill_diagonal(D, 0)
        method = getattr(self, "linkage", "single")
        return float(linkage(D, method, "precomputed", sample_weight=None if w is None else w[pair])[0, 2])

    def _store_tree(self, Z: Array) -> None:
        self.linkage_matrix_ = Z
        self.children_, self.distances_, self.n_leaves_ = Z[:, :2].astype(np.int64), Z[:, 2].copy(), len(Z) + 1


def check_enough(n: int, n_clusters: int | None) -> None:
    if n < 2:
        raise InputError(f"X has n_samples={n}: a tree needs at least 2 rows")
    if n_clusters is not None and n < n_clusters:
        raise InputError(f"X has n_samples={n} rows, fewer than n_clusters={n_clusters}: use n_clusters <= {n}")
