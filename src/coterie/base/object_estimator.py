"""The base class of estimators that store the objects of a fit, or the distance between them."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from coterie.base.distance_estimator import DistanceEstimator
from coterie.core.arrays import Array
from coterie.data import opened
from coterie.distances.distance import Distance
from coterie.distances.precomputed import as_cross, as_square


class Objects(NamedTuple):
    """Rows prepared for a distance; or, without a distance, the precomputed distances to the objects of the fit."""

    distance: Distance | None
    A: Any


class ObjectEstimator(DistanceEstimator):
    """An estimator whose fit uses the rows of positive weight, by their distances."""

    _distance: Distance | None  # fitted to the rows
    _columns: tuple[int, Array]  # number of objects of the fit, and the indices of those of positive weight

    def _objects(self, X: Any) -> Objects:
        """The objects to cluster."""
        distance = self._as_distance()
        if distance is None:
            return Objects(None, as_square(X))
        rows = distance.rows(X)
        distance = distance.fitted(rows)
        return Objects(distance, distance.prepare(rows))

    def _new_objects(self, X: Any) -> Any:
        """New rows prepared for the distance of the fit; or precomputed distances to the objects of positive weight."""
        check_is_fitted(self)
        X = opened(X)
        if self._distance is None:
            count, rows = self._columns
            D = as_cross(X, count)
            return D if len(rows) == count else D[:, rows]
        new_rows = self._distance.rows(X)
        self._check_columns(X, reset=False)
        return self._distance.prepare(new_rows)

    def _subset(self, X: Any, rows: Array) -> Any:
        """The objects `rows` of `X`."""
        subset = _safe_indexing(X, rows)
        return np.asarray(subset)[:, rows] if self._is_precomputed else subset
