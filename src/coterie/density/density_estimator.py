"""The base class of density-based estimators."""

from typing import Any

import numpy as np

from coterie.base import ObjectEstimator, Objects
from coterie.core.arrays import Array
from coterie.data.scale_check import unsafe_exponent
from coterie.errors import ScaleError


class DensityEstimator(ObjectEstimator):
    """An estimator whose clusters are dense regions; rows in no cluster have the label -1."""

    def _weighted_objects(self, X: Any, sample_weight: Any) -> tuple[Objects, Array, Array, int]:
        weighted = super()._weighted_objects(X, sample_weight)
        if exponent := unsafe_exponent(float(weighted[1].max()), np.float64):
            raise ScaleError(weights=exponent)
        return weighted
