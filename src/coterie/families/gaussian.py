"""Gaussian: clouds with a mean and a covariance."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie.core.errors import ParameterError
from coterie.core.stored import stored
from coterie.families import forms, packing
from coterie.families.linear import ExponentialFamily, Linear, Observed, Sums
from coterie.families.normal_posterior import NormalPosterior
from coterie.families.normal_prior import Penalty, as_penalty
from coterie.families.placed import LOG_TWO_PI, Placed
from coterie.families.spread import Cloud
from coterie.families.structures import ALIASES, STRUCTURES, as_structure, own_covariances


@stored("parameters.Gaussian")
class Normals(NamedTuple):
    mean: np.ndarray  # (k, d)
    covariance: np.ndarray  # (k, d, d), (k, d) the diagonals, or (k,) one variance for all columns


@stored("family.Gaussian", attributes="structure reg_covar prior holes _origin _unit _rows")
class Gaussian(Cloud, ExponentialFamily):
    r"""Clouds of any size and direction, by mean and covariance.

    .. math:: p(x) = |2 \pi \Sigma|^{-1/2} e^{-\frac12 (x - \mu)' \Sigma^{-1} (x - \mu)}, \quad
       T(x) = (x, x x'), \quad \hat\mu = \bar x, \quad \hat\Sigma = \overline{(x - \hat\mu)(x - \hat\mu)'}

    A mixture of it alone is a `GaussianMixture`, with its kernels, starts and all fourteen structures; beside other
    families (`Product`), or fitted to rows of one kind, it is an exponential family like others.

    Do not use it for clouds with heavy tails (StudentT), or for rows of bounded values that crowd at the bounds.

    Parameters
    ----------
    structure : str, default='full'
        'full', 'diag' (columns independent; values may be missing), 'spherical' (one variance for all columns); in
        mixtures of it alone any `covariance_type` of `GaussianMixture`.
    reg_covar : float, default=1e-6
        In mixtures: what keeps covariances away from 0, in units of the columns' variances. See `GaussianMixture`;
        beside other families it works in the same way.
    prior : `coterie.mixture.Prior` or 'default', optional
        Normal-inverse-Wishart, of mean and covariance. Its posterior mode is then the estimate.

    Attributes
    ----------
    mean_ : array (d,)
    covariance_ : array (d, d), (d,) the diagonal, or a number
        The likeliest: divided by n, not n - 1. Directions without any spread are given a little.

    Examples
    --------
    >>> from coterie.families import Gaussian
    >>> found = Gaussian().fit([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]])
    >>> found.mean_.tolist(), found.covariance_.round(3).tolist()
    ([1.0, 1.0], [[0.667, 0.0], [0.0, 2.0]])
    """

    name = "gaussian"
    statistics_per_column = 2

    def __init__(self, structure: Any = "full", reg_covar: float = 1e-6, prior: Any = None):
        self.structure = structure
        self.reg_covar = reg_covar
        self.prior = prior

    @property
    def form(self) -> str:
        found = as_structure(self.structure).form
        return "full" if found == "tied" else found

    @property
    def by_column(self) -> bool:  # type: ignore[override]
        return self.form == "diag"

    def in_units(self, rows: float, mean: np.ndarray, variance: np.ndarray) -> Any:
        found = super().in_units(rows, mean, variance)
        if self.form == "spherical":
            found._unit = np.full(len(found._unit), np.sqrt((found._unit**2).mean()))
        return found

    @property
    def penalty(self) -> Penalty:
        """The prior, in the rows' units."""
        asked = as_penalty(self.prior, self.reg_covar, 1, self._origin, self._unit**2)
        return replace(asked.moved(self._origin, self._unit), concentration=1.0)

    # density

    def features(self, X: Any) -> Any:
        Z = Cloud.features(self, X)
        gaps = np.isnan(Z) if self.holes else None
        if gaps is None or not gaps.any():
            return self.sufficient(Z)
        return Observed(self.sufficient(np.where(gaps, 0.0, Z)), (~gaps).astype(np.float64))

    def sufficient(self, X: np.ndarray) -> np.ndarray:
        return packing.products(self.form, X)

    def prepare(self, params: Normals) -> Any:
        return self._placed(params)

    def scores(self, prepared: Any, features: Any) -> np.ndarray:
        """By squared distances; expected densities, which are linear in the statistics, by products."""
        return super().scores(prepared, features) if isinstance(prepared, Linear) else prepared.scores(features)

    def magnitude(self, params: Normals) -> np.ndarray:
        placed = self._placed(params)
        return placed.magnitude() + self._place_rounding(params.mean, placed.factor)

    # parameters

    def params(self, means: np.ndarray, found: np.ndarray, form: str) -> Normals:
        """Of a `GaussianMixture`, whose one matrix for all becomes that of each."""
        return Normals(means, forms.dense(form, found, *means.shape) if form == "tied" else found)

    def natural(self, params: Normals) -> np.ndarray:
        return self._placed(params).natural()

    def log_normalizer(self, params: Normals) -> np.ndarray:
        return self._placed(params).log_normalizer()

    def n_parameters(self, k: int, params: Normals) -> int:
        d = params.mean.shape[1]
        return k * d + STRUCTURES[ALIASES[self.form]].n_parameters(k, d)

    def _placed(self, params: Normals) -> Placed:
        return Placed.of(self.form, (params.mean - self._origin) / self._unit, params.covariance / self._units())

    def _units(self) -> Any:
        if self.form == "full":
            return np.multiply.outer(self._unit, self._unit)
        return np.square(self._unit) if self.form == "diag" else np.square(self._unit)[0]

    # estimates

    def estimate(self, stats: Sums, before: Any = None) -> Normals:
        k = len(stats.weight)
        if k > 1 and as_structure(self.structure).name != ALIASES[self.form]:
            raise ParameterError(
                f"structure={self.structure!r} ties components, which only a mixture of Gaussian alone can do: "
                "choose 'full', 'diag' or 'spherical'"
            )
        first, second = packing.moments(self.form, stats.sum_t, len(self._unit))
        weight = self._divisors(stats.weight)
        penalty, pull = self.penalty, self.penalty.shrinkage
        means = (first + pull * penalty.mean) / (weight + pull)
        away = means - penalty.mean
        floor = penalty.scatter(self.form, k, np.array(k * self._rows))
        scatter = self._restated(stats.weight, first, second, means) + floor
        if pull:
            scatter = scatter + forms.outer(self.form, np.full(k, pull), away, away)
        found = own_covariances(self.form, weight + penalty.rows, scatter, len(self._unit))
        return Normals(self._origin + self._unit * means, found * self._units())

    def _restated(self, weight: np.ndarray, first: np.ndarray, second: np.ndarray, means: np.ndarray) -> np.ndarray:
        if self.form == "diag":  # each column may have a weight of its own
            return second - 2 * first * means + weight * means**2
        return forms.restated(self.form, weight[:, 0], first, second, means)

    def log_prior(self, params: Normals) -> float:
        return float(self.penalty.log_density(self._placed(params), self.form, np.array(len(params.mean) * self._rows)))

    def fit_one(self, X: Any, w: np.ndarray) -> Normals:
        exact = copy(self)
        exact.reg_covar, exact._rows = 0.0, float(w.sum())
        return super(Gaussian, exact).fit_one(X, w)

    # the posterior: normal-inverse-Wishart

    def expected(self, stats: Sums) -> Linear:
        return self._posterior(stats).expected(self.holes)

    def log_evidence(self, stats: Sums) -> np.ndarray:
        nothing = Sums(0.0 * stats.weight, 0.0 * stats.sum_t)
        gain = self._posterior(stats).log_size() - self._posterior(nothing).log_size()
        return gain - 0.5 * LOG_TWO_PI * (stats.weight * (len(self._unit) / stats.weight.shape[1])).sum(axis=1)

    def _posterior(self, stats: Sums) -> NormalPosterior:
        if self.prior is None:
            raise ParameterError("the posterior of Gaussian needs a prior: coterie.mixture.Prior, or 'default'")
        moments = packing.moments(self.form, stats.sum_t, len(self._unit))
        return NormalPosterior.of(self.form, self.penalty, stats.weight, *moments)

    # sampling

    def draw(self, params: Normals, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        noise = rng.normal(size=(n, params.mean.shape[1]))
        return params.mean[j] + self._unit * forms.correlated(noise, self.form, params.covariance[j] / self._units())
