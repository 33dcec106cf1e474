r"""Normal-inverse-Wishart posteriors of means and covariances.

With shrinkage :math:`\kappa`, mean :math:`m`, degrees of freedom :math:`\nu` and scale :math:`\Psi`,
:math:`\Sigma \sim W^{-1}(\Psi, \nu)` and :math:`\mu \mid \Sigma \sim N(m, \Sigma / \kappa)`. If columns are
independent, each column has its own posterior with :math:`\nu + d - 1` degrees of freedom: the density of matrices,
restricted to diagonal ones.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families import forms, packed_moments
from coterie.families.exponential_family import Linear
from coterie.families.normal_prior import Penalty


@stored("posterior.Normal")
@dataclass(frozen=True)
class NormalPosterior:
    """The posterior of each component. If columns are independent, arrays are (k, d), and `scale` has the diagonals."""

    shrinkage: np.ndarray  # (k,)
    mean: np.ndarray  # (k, d)
    dof: np.ndarray  # (k,)
    scale: np.ndarray  # (k, d, d)

    @classmethod
    def of(cls, form: str, prior: Penalty, weight: np.ndarray, first: np.ndarray, second: np.ndarray) -> Self:
        """The posterior for rows with these moments about the origin."""
        k, d = first.shape
        if form == "spherical":
            raise ParameterError("the posterior of Gaussian needs structure='full' or 'diag'; got 'spherical'")
        n = weight[:, 0] if form == "full" else np.broadcast_to(weight, (k, d))
        shrinkage = n + prior.shrinkage
        if not np.all(shrinkage > 0):
            raise ParameterError("the posterior of Gaussian needs a prior with shrinkage > 0")
        wide = shrinkage[:, None] if form == "full" else shrinkage
        mean = (first + prior.shrinkage * prior.mean) / wide
        scale = second + prior.scatter(form, k, np.array(float(k)))
        ones, center = np.full(k, prior.shrinkage), np.broadcast_to(prior.mean, (k, d))
        scale = scale + forms.outer(form, ones, center, center)
        scale = scale - (forms.outer(form, shrinkage, mean, mean) if form == "full" else shrinkage * mean**2)
        dof = n + prior.rows - d - 2.0 + (0.0 if form == "full" else d - 1.0)
        return cls(shrinkage, mean, dof, scale)

    def log_size(self) -> np.ndarray:
        """Logarithms of the normalising constants of the densities (k,)."""
        if self.scale.ndim == 2:
            half = 0.5 * self.dof
            columns = special.gammaln(half) - half * np.log(0.5 * self.scale)
            return (columns + 0.5 * np.log(2.0 * np.pi / self.shrinkage)).sum(axis=1)
        d = self.mean.shape[1]
        volume = np.linalg.slogdet(self.scale)[1] - d * np.log(2.0)
        halves = 0.5 * (self.dof[:, None] - np.arange(d))
        size = special.gammaln(halves).sum(axis=1) + 0.25 * d * (d - 1) * np.log(np.pi)
        return size - 0.5 * self.dof * volume + 0.5 * d * np.log(2.0 * np.pi / self.shrinkage)

    def expected(self, by_column: bool) -> Linear:
        """The expected natural parameters, and minus the expected log normalizers, summed or `by_column`."""
        d = self.mean.shape[1]
        if self.scale.ndim == 2:
            P = self.dof / self.scale
            log_det = special.digamma(0.5 * self.dof) - np.log(0.5 * self.scale)
            normalizer = 0.5 * (np.log(2.0 * np.pi) + 1.0 / self.shrinkage + P * self.mean**2 - log_det)
            return Linear(
                packed_moments.natural("diag", P, self.mean), -normalizer if by_column else -normalizer.sum(axis=1)
            )
        P = self.dof[:, None, None] * np.linalg.inv(self.scale)
        steps = special.digamma(0.5 * (self.dof[:, None] - np.arange(d))).sum(axis=1)
        log_det = steps + d * np.log(2.0) - np.linalg.slogdet(self.scale)[1]
        squares = d / self.shrinkage + np.einsum("ki,kij,kj->k", self.mean, P, self.mean)
        return Linear(
            packed_moments.natural("full", P, self.mean), -0.5 * (d * np.log(2.0 * np.pi) + squares - log_det)
        )
