"""Variational Bayes for Gaussian mixtures: posterior distributions of the parameters instead of estimates."""

from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie.core.protocols import Engine, Source
from coterie.core.stored import stored
from coterie.families import forms
from coterie.families.scaled_gaussians import LOG_TWO_PI
from coterie.kernels.plain.gaussian import Gaussians
from coterie.mixture.conjugate_priors import Dirichlet, NormalWishart, NormalWishartPosterior, StickBreaking
from coterie.mixture.em import Event
from coterie.mixture.gaussian_em import BY_FORM, MODEL_STORED, Components, GaussianEM, GaussianStats


@stored(
    "bayesian.Components",
    weights="real K",
    means="real K D",
    covariances=BY_FORM,
    factor=BY_FORM,
    log_det="real K",
    mean_precision="real K",
    dof="real K",
    concentration="real K | real 2 K",
)
class Posterior(NamedTuple):
    """Posterior of all parameters. `weights` and `means` are expectations; `covariances` invert expected precisions."""

    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, d)
    covariances: np.ndarray  # by form: the inverse of the expected precision
    factor: np.ndarray  # by form: upper triangular U with U U' the expected precision
    log_det: np.ndarray  # (k,) log |U|
    concentration: np.ndarray  # (k,) Dirichlet, or (2, k) Beta
    mean_precision: np.ndarray  # (k,)
    dof: np.ndarray  # (k,)
    events: tuple[Event, ...] = ()
    steps: int = 0


@stored(
    "bayesian.Model",
    **MODEL_STORED,
    mixing="<bayesian.Dirichlet> | <bayesian.StickBreaking>",
    component_prior="<bayesian.NormalWishart>",
)
@dataclass(frozen=True, kw_only=True)
class VariationalGaussians(GaussianEM):
    r"""Maximises the evidence lower bound over q(z) q(weights) prod_k q(mean_k, precision_k) [1]_ [2]_.

    .. math:: L = \sum_i w_i \log \sum_k \exp E_q[\log \pi_k N(x_i; \mu_k, \Lambda_k^{-1})]
              - \mathrm{KL}(q(\pi) \| p(\pi)) - \sum_k \mathrm{KL}(q(\mu_k, \Lambda_k) \| p(\mu_k, \Lambda_k))

    with the optimal q(z). The E-step is that of EM for Gaussians at the mean parameters with other log weights, and the
    M-step needs the same sums, so it runs on every engine. The bound belongs to exactly the posterior returned.

    .. [1] H. Attias (2000), A variational Bayesian framework for graphical models, NIPS 12.
    .. [2] C. M. Bishop (2006), Pattern recognition and machine learning, section 10.2.
    """

    mixing: Dirichlet | StickBreaking
    component_prior: NormalWishart

    maximizes = "evidence lower bound"

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Any:
        """The initial posterior: an M-step with the responsibilities of an initial Gaussian mixture."""
        if isinstance(self.start, Posterior):
            return self.start
        em = GaussianEM(**{field.name: getattr(self, field.name) for field in fields(GaussianEM)})
        initial = em.init(source, engine, rng)
        stats, _ = engine.scan(partial(em.e_step, initial), source, None)
        return self.m_step(initial, stats)

    def gaussians(self, c: Any) -> Gaussians:
        """Gaussians whose unnormalised log densities are the expected log densities."""
        if isinstance(c, Components):
            return super().gaussians(c)
        d = len(self.origin)
        log_precision = self.component_prior.expected_log_det(c.dof, 2 * c.log_det)
        offset = 0.5 * (log_precision - d * LOG_TWO_PI - d / c.mean_precision)
        return Gaussians(
            self.form, self.mixing.expected_log(c.concentration) + offset, c.means, c.factor, c.weights @ c.means
        )

    def m_step(self, c: Any, stats: GaussianStats) -> Any:
        """The posterior for statistics that were computed about the means of `c`."""
        concentration = self.mixing.posterior(stats.weight)
        posterior = self.component_prior.posterior(c.means, stats.weight, stats.sum_dx, stats.sum_dxx)
        f = forms.factors(self.form, posterior.covariances, *posterior.means.shape)
        return Posterior(
            self.mixing.mean(concentration),
            posterior.means,
            f.covariances,
            f.factor,
            f.log_det,
            concentration,
            posterior.mean_precision,
            posterior.dof,
            steps=c.steps + 1,
        )

    def repair(self, c: Any, stats: GaussianStats, source: Source, engine: Engine, memos: list[Any]) -> Any:
        """No repair: the posterior of a component without rows is the prior."""
        return c

    def objective(self, c: Any, stats: GaussianStats) -> float:
        return -(float(stats.bound) - self.divergence(c))

    def divergence(self, c: Posterior) -> float:
        """KL divergence of the posterior from the prior."""
        posterior = NormalWishartPosterior(c.means, c.mean_precision, c.dof, c.covariances)
        components = self.component_prior.divergence(posterior, c.factor, 2 * c.log_det)
        return self.mixing.divergence(c.concentration) + components

    def rounding(self, c: Any, stats: GaussianStats, objective: float) -> float:
        """Adds that of the divergence, whose terms nearly cancel if the rows have little weight."""
        counts = c.dof + c.mean_precision + np.sum(c.concentration, axis=0)
        logs = 1.0 + np.abs(c.log_det) + np.abs(np.log(counts))
        terms = float((counts * logs).sum()) * len(self.origin)
        return super().rounding(c, stats, objective) + 16 * float(np.finfo(np.float64).eps) * terms
