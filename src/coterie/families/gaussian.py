"""Gaussian distribution with a mean and a covariance."""

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families import forms, packed_moments
from coterie.families.exponential_family import ExponentialFamily, Linear, Sums
from coterie.families.location_scale import LocationScaleFamily
from coterie.families.normal_posterior import NormalPosterior
from coterie.families.normal_prior import Penalty, as_penalty
from coterie.families.scaled_gaussians import LOG_TWO_PI
from coterie.families.structures import ALIASES, STRUCTURES, as_structure, separate_covariances


@stored("parameters.Gaussian")
class Normals(NamedTuple):
    mean: np.ndarray  # (k, d)
    covariance: np.ndarray  # (k, d, d), (k, d) the diagonals, or (k,) one variance for all columns


@stored("family.Gaussian", attributes="structure reg_covar prior has_missing _origin _unit _rows")
class Gaussian(LocationScaleFamily, ExponentialFamily):
    r"""Gaussian distribution with a mean and a covariance.

    .. math:: p(x) = |2 \pi \Sigma|^{-1/2} e^{-\frac12 (x - \mu)' \Sigma^{-1} (x - \mu)}, \quad
       T(x) = (x, x x'), \quad \hat\mu = \bar x, \quad \hat\Sigma = \overline{(x - \hat\mu)(x - \hat\mu)'}

    A mixture of Gaussian components only is a `GaussianMixture`, with its kernels, initialisations and all fourteen
    covariance structures. In a `Product` with other families, or fitted on its own, it is an exponential family like
    the others.

    Do not use it for clusters with heavy tails (use StudentT), or for bounded values that are concentrated at the
    bounds.

    Parameters
    ----------
    structure : str, default='full'
        'full', 'diag' (independent columns, missing values are supported) or 'spherical' (one variance for all
        columns). In mixtures of Gaussian components only, any `covariance_type` of `GaussianMixture`.
    reg_covar : float, default=1e-6
        Regularisation of covariances in mixtures, in units of the variances of the columns, as in `GaussianMixture`.
    prior : `coterie.mixture.Prior` or 'default', default=None
        Normal-inverse-Wishart prior of mean and covariance. The estimate is then the posterior mode.

    Attributes
    ----------
    mean_ : array (d,)
        Mean.
    covariance_ : array (d, d), (d,) or float
        Covariance, its diagonal, or one variance. This is the maximum-likelihood estimate, with divisor n instead of
        n - 1. Directions without variance get a small one.

    Examples
    --------
    >>> from coterie.families import Gaussian
    >>> family = Gaussian().fit([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]])
    >>> family.mean_.tolist(), family.covariance_.round(3).tolist()
    ([1.0, 1.0], [[0.667, 0.0], [0.0, 2.0]])
    """

    name = "gaussian"
    powers: ClassVar[dict[str, int]] = {"mean": 1, "covariance": 2}
    statistics_per_column = 2
    filler = 0.0

    def __init__(self, structure: Any = "full", reg_covar: float = 1e-6, prior: Any = None):
        self.structure = structure
        self.reg_covar = reg_covar
        self.prior = prior

    @property
    def form(self) -> str:
        form = as_structure(self.structure).form
        return "full" if form == "tied" else form

    @property
    def by_column(self) -> bool:  # type: ignore[override]
        return self.form == "diag"

    def in_units(self, rows: float, mean: np.ndarray, variance: np.ndarray) -> Any:
        family = super().in_units(rows, mean, variance)
        if self.form == "spherical":
            family._unit = np.full(len(family._unit), np.sqrt((family._unit**2).mean()))
        return family

    @property
    def penalty(self) -> Penalty:
        """The prior, in the units of the standardised rows."""
        penalty = as_penalty(self.prior, self.reg_covar, 1, self._origin, self._unit**2)
        return replace(penalty.moved(self._origin, self._unit), concentration=1.0)

    # density

    def features(self, X: Any) -> Any:
        return ExponentialFamily.features(self, LocationScaleFamily.features(self, X))

    def sufficient(self, X: np.ndarray) -> np.ndarray:
        return packed_moments.products(self.form, X)

    def prepare(self, params: Normals) -> Any:
        return self._scaled(params)

    def scores(self, prepared: Any, features: Any) -> np.ndarray:
        """Log densities from squared distances; expected log densities from products with the statistics."""
        return super().scores(prepared, features) if isinstance(prepared, Linear) else prepared.scores(features)

    # parameters

    def params(self, means: np.ndarray, covariances: np.ndarray, form: str) -> Normals:
        """The parameters of a `GaussianMixture`; a tied covariance is repeated for each component."""
        return Normals(means, forms.dense(form, covariances, *means.shape) if form == "tied" else covariances)

    def natural(self, params: Normals) -> np.ndarray:
        return self._scaled(params).natural()

    def log_normalizer(self, params: Normals) -> np.ndarray:
        return self._scaled(params).log_normalizer()

    def n_parameters(self, k: int, params: Normals) -> int:
        d = params.mean.shape[1]
        return k * d + STRUCTURES[ALIASES[self.form]].n_parameters(k, d)

    # estimates

    def estimate(self, stats: Sums, before: Any = None) -> Normals:
        k = len(stats.weight)
        if k > 1 and as_structure(self.structure).name != ALIASES[self.form]:
            raise ParameterError(
                f"structure={self.structure!r} is supported only in a mixture of Gaussian components without other "
                "families: use 'full', 'diag' or 'spherical'"
            )
        first, second = packed_moments.moments(self.form, stats.sum_t, len(self._unit))
        weight = self._divisors(stats.weight)
        penalty, shrinkage = self.penalty, self.penalty.shrinkage
        means = (first + shrinkage * penalty.mean) / (weight + shrinkage)
        scatter = self._scatter(stats.weight, first, second, means)
        scatter = penalty.with_scatter(scatter, self.form, means, np.array(k * self._rows))
        covariances = separate_covariances(self.form, weight + penalty.rows, scatter, len(self._unit))
        return Normals(self._origin + self._unit * means, covariances * self._units())

    def _scatter(self, weight: np.ndarray, first: np.ndarray, second: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Scatter about the means, by form, from the moments about the origin."""
        if self.form == "diag":  # with missing values, each column has its own weight
            return second - 2 * first * means + weight * means**2
        return forms.recentered(self.form, weight[:, 0], first, second, means)

    def log_prior(self, params: Normals) -> float:
        return float(self.penalty.log_density(self._scaled(params), self.form, np.array(len(params.mean) * self._rows)))

    def fit_one(self, X: Any, w: np.ndarray) -> Normals:
        exact = copy(self)
        exact.reg_covar, exact._rows = 0.0, float(w.sum())
        return super(Gaussian, exact).fit_one(X, w)

    # the posterior: normal-inverse-Wishart

    def expected(self, stats: Sums) -> Linear:
        return self._posterior(stats).expected(self.has_missing)

    def log_evidence(self, stats: Sums) -> np.ndarray:
        gain = self._posterior(stats).log_size() - self._posterior(stats.scaled(0.0)).log_size()
        return gain - 0.5 * LOG_TWO_PI * (stats.weight * (len(self._unit) / stats.weight.shape[1])).sum(axis=1)

    def _posterior(self, stats: Sums) -> NormalPosterior:
        if self.prior is None:
            raise ParameterError("the posterior of Gaussian needs a prior: coterie.mixture.Prior, or 'default'")
        moments = packed_moments.moments(self.form, stats.sum_t, len(self._unit))
        return NormalPosterior.of(self.form, self.penalty, stats.weight, *moments)

    # sampling

    def draw(self, params: Normals, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        noise = rng.normal(size=(n, params.mean.shape[1]))
        return params.mean[j] + self._unit * forms.correlated(noise, self.form, params.covariance[j] / self._units())
