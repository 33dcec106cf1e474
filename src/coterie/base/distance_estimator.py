"""The base class of estimators that use only distances."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from coterie.base.estimator import COLUMNS
from coterie.core.attachments import detach
from coterie.core.protocols import takes_series
from coterie.core.repr_html import EstimatorHTMLMixin
from coterie.data.frames import empty_frame, is_frame
from coterie.distances.distance import Distance, as_distance
from coterie.errors import ParameterError
from coterie.sklearn_export import SklearnExport


class DistanceEstimator(EstimatorHTMLMixin, ClusterMixin, SklearnExport, BaseEstimator):
    """Base class of estimators that use only distances: those of a `metric`, or precomputed ones."""

    metric: Any
    metric_params: Any

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
        validate_data(self, columns, reset=reset, skip_check_array=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed
        return tags
