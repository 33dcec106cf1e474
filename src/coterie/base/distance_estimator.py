"""The base classes of estimators that use only distances, and store the objects of a fit or the distance."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from coterie.base.estimator import COLUMNS, check_columns
from coterie.core.arrays import Array
from coterie.core.attachments import detach
from coterie.core.protocols import takes_series
from coterie.core.repr_html import EstimatorHTMLMixin
from coterie.data import opened
from coterie.data.frames import empty_frame, is_frame
from coterie.data.memory import as_weights
from coterie.distances.distance import Distance, as_distance
from coterie.distances.pairwise import as_cross, as_square
from coterie.errors import ParameterError
from coterie.sklearn_export import SklearnExport


@dataclass(eq=False, repr=False, kw_only=True)
class DistanceEstimator(EstimatorHTMLMixin, ClusterMixin, SklearnExport, BaseEstimator):
    """Base class of estimators that use only distances: those of a `metric`, or precomputed ones."""

    metric: Any = "euclidean"
    metric_params: dict[str, Any] | None = None
    n_jobs: int | None = None

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _as_distance(self) -> Distance | None:
        """The distance; None if distances are precomputed."""
        if not self._is_precomputed:
            params = self.metric_params or {}
            if not isinstance(params, dict):
                raise ParameterError(f"metric_params must be a dict or None; got {params!r}")
            # copied, since the caller may change an array later
            copies = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in params.items()}
            return as_distance(self.metric, **copies)
        if self.metric_params:
            raise ParameterError(
                f"metric='precomputed' takes no metric_params; got {self.metric_params!r}: set metric_params=None"
            )
        return None

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and return the cluster of every row."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def _check_columns(self, X: Any, reset: bool) -> None:
        """Check, or with `reset` (in a fit) store, number and names of the columns; ragged series have none."""
        if reset:
            detach(self, *COLUMNS)
        if isinstance(X, list) and (len({np.shape(row) for row in X}) > 1 or (not reset and takes_series(self))):
            return
        names = getattr(X, "columns", None)
        columns = X if is_frame(X) else np.asarray(X) if names is None else empty_frame(names)
        check_columns(self, columns, reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        return tags


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

    def _weighted_objects(self, X: Any, sample_weight: Any) -> tuple[Objects, Array, Array, int]:
        """The objects of positive weight, their weights and indices, and the number of all objects."""
        objects = self._objects(X)
        n = len(objects.A)
        weight = as_weights(sample_weight, n)
        weight = np.ones(n) if weight is None else weight
        rows = np.flatnonzero(weight)
        if len(rows) < n:
            objects = self._objects(self._subset(X, rows))
        return objects, weight[rows], rows, n

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
