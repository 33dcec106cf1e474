"""The base class of density-based estimators."""

from typing import Any

import numpy as np

from coterie.base import ObjectEstimator, Objects
from coterie.core.arrays import Array
from coterie.data.memory import as_weights
from coterie.data.scale_check import unsafe_exponent
from coterie.errors import ScaleError


class DensityEstimator(ObjectEstimator):
    """An estimator whose clusters are dense regions; rows in no cluster have the label -1."""

    def _weighted_objects(self, X: Any, sample_weight: Any) -> tuple[Objects, Array, Array, int]:
        """The objects of positive weight, their weights and indices, and the number of all objects."""
        objects = self._objects(X)
        n = len(objects.A)
        weight = as_weights(sample_weight, n)
        if weight is None:
            return objects, np.ones(n), np.arange(n), n
        if exponent := unsafe_exponent(float(weight.max()), weight.dtype):
            raise ScaleError(weights=exponent)
        rows = np.flatnonzero(weight)
        if len(rows) < n:
            objects = self._objects(self._subset(X, rows))
        return objects, weight[rows], rows, n
