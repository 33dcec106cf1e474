"""Gaussian components in the units of the standardised rows, and their densities."""

from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.families import forms, packed_moments
from coterie.families.exponential_family import ObservedStatistics
from coterie.kernels.plain.gaussian import Gaussians

LOG_TWO_PI = float(np.log(2 * np.pi))


class ScaledGaussians(NamedTuple):
    """Gaussian components with the fields that `Penalty` needs."""

    form: str
    weights: np.ndarray  # (k,) not used
    means: np.ndarray  # (k, d)
    covariances: np.ndarray  # by form
    factor: np.ndarray  # by form: upper triangular U with U U' the inverse covariance
    log_det: np.ndarray  # (k,) log |U|

    @classmethod
    def of(cls, form: str, means: np.ndarray, covariances: np.ndarray) -> "ScaledGaussians":
        f = forms.factors(form, covariances, *means.shape)
        return cls(form, np.ones(len(means)), means, f.covariances, f.factor, f.log_det)

    # log densities from squared distances

    def scores(self, features: Any) -> np.ndarray:
        """Log densities (n, k) of rows in the form of `packed_moments.products`, whose first columns are the rows."""
        k, d = self.means.shape
        if not isinstance(features, ObservedStatistics):
            Z = features[:, :d] if kernels.is_on_device(features) else np.ascontiguousarray(features[:, :d])
            offset = self.log_det - 0.5 * d * LOG_TWO_PI
            return kernels.for_centers(Z, k).log_joint(
                Z, Gaussians(self.form, offset, self.means, self.factor, np.zeros(d))
            )
        scores = features.observed @ (np.log(self.factor) - 0.5 * LOG_TWO_PI).T
        for j in range(k):
            difference = (features.T[:, :d] - self.means[j]) * self.factor[j] * features.observed
            scores[:, j] -= 0.5 * np.square(difference).sum(axis=1)
        return scores

    def magnitude(self) -> np.ndarray:
        """Factor of the rounding errors of log densities, which is large for thin components (k,)."""
        return self.means.shape[1] * forms.magnitude(self.form, self)

    # as an exponential family

    def natural(self) -> np.ndarray:
        U = self.factor
        return packed_moments.natural(self.form, U @ np.swapaxes(U, 1, 2) if self.form == "full" else U**2, self.means)

    def log_normalizer(self) -> np.ndarray:
        """The log normalizer (k,), or (k, d) if columns are independent."""
        d = self.means.shape[1]
        if self.form == "diag":
            return 0.5 * LOG_TWO_PI + 0.5 * (self.factor * self.means) ** 2 - np.log(self.factor)
        wide = self.factor if self.form == "full" else self.factor[:, None, None] * np.eye(d)
        squares = ((self.means[:, None, :] @ wide) ** 2).sum(axis=(1, 2))
        return 0.5 * (d * LOG_TWO_PI + squares) - self.log_det
