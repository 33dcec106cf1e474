"""Base class of the location-scale families Gaussian and StudentT, which compute with standardised rows."""

from copy import copy
from typing import Any, Self

import numpy as np

from coterie.core.arrays import as_float64
from coterie.families.family import Family
from coterie.families.normal_prior import positive_variances
from coterie.families.scaled_gaussians import ScaledGaussians

MIN_WEIGHT = 1e-8  # minimum weight of a component in divisions, as a share of the mean component weight


class LocationScaleFamily(Family):
    """A family that computes with standardised rows (x - origin) / unit; both come from `in_units`."""

    _origin: Any = 0.0  # (d,)
    _unit: Any = 1.0  # (d,)
    _finest: float = 1e-10  # minimum share of the variance of a column; below it, sums of squares are inaccurate
    _rows: float = 1.0  # mean component weight; `reg_covar` is added to the variance of as many rows

    def in_units(self, rows: float, mean: np.ndarray, variance: np.ndarray) -> Self:
        family = copy(self)
        family._rows, family._origin, family._unit = rows, mean, np.sqrt(positive_variances(mean, variance))
        return family

    @property
    def form(self) -> str:
        """The form of the scale matrices: 'full', 'diag' or 'spherical'."""
        raise NotImplementedError

    def _units(self) -> Any:
        """The units of scale matrices, by form."""
        if self.form == "full":
            return np.multiply.outer(self._unit, self._unit)
        return np.square(self._unit) if self.form == "diag" else np.square(self._unit)[0]

    def _scaled(self, params: Any) -> ScaledGaussians:
        """Gaussians with these locations and scale matrices, the first two parameters, in the units of the rows."""
        location, scale = params[:2]
        return ScaledGaussians.of(self.form, (location - self._origin) / self._unit, scale / self._units())

    def magnitude(self, params: Any) -> np.ndarray:
        gaussians = self._scaled(params)
        return gaussians.magnitude() + self._location_rounding(params[0], gaussians.factor)

    def in_units_of(self, X: Any, w: np.ndarray) -> Self:
        observed = ~np.isnan(X)
        weight = w @ observed
        share = w[:, None] * observed / np.where(weight > 0, weight, 1.0)
        values = np.where(observed, X, 0.0)
        mean = (share * values).sum(axis=0)
        return self.in_units(self._rows, mean, (share * (values - mean) ** 2).sum(axis=0))

    def _divisors(self, weight: np.ndarray) -> np.ndarray:
        """Component weights with a lower bound, so that quotients do not overflow."""
        return np.maximum(weight, MIN_WEIGHT * self._rows)

    def _location_rounding(self, locations: np.ndarray, factor: np.ndarray) -> np.ndarray:
        """Error of log densities caused by rounding of the locations, in units of the machine epsilon (k,).

        `factor`, by form, belongs to the standardised components. It matters for thin components far from the origin.
        """
        inverse = np.sqrt(np.square(factor).sum(axis=-1)) if factor.ndim == 3 else factor.reshape(len(factor), -1)
        eps = float(np.finfo(np.float64).eps)
        distance: np.ndarray = (np.abs(locations) / self._unit * inverse).sum(axis=1)
        return 0.5 * eps * distance**2

    def features(self, X: Any) -> Any:
        return (as_float64(X) - self._origin) / self._unit

    def row_base(self, X: Any) -> np.ndarray:
        """The term of the log density of each row that comes from the units of its observed columns."""
        logs = np.log(np.broadcast_to(self._unit, X.shape[1]))
        return -(~np.isnan(X) @ logs) if self.has_missing else np.full(X.shape[0], -logs.sum())
