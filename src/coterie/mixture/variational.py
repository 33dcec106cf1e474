r"""Variational Bayes for Gaussian mixtures: posterior distributions of the parameters instead of estimates.

Weights have a Dirichlet distribution (`Dirichlet`), or that of a Dirichlet process (`StickBreaking`). The mean and the
precision of each component have the normal-Wishart distribution (`NormalWishart`)

.. math:: \Lambda_k \sim W(\nu_0, \Psi_0^{-1}), \qquad \mu_k \mid \Lambda_k \sim N(m_0, (\beta_0 \Lambda_k)^{-1}).

Each prior computes its posterior from the statistics of rows, the expected logarithms that an E-step needs, and the
divergence KL(posterior || prior), which is a term of the evidence lower bound.
"""

from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from coterie.core.protocols import Engine, Source
from coterie.core.stored import stored
from coterie.families import forms
from coterie.families.scaled_gaussians import LOG_TWO_PI
from coterie.kernels.plain.gaussian import Gaussians
from coterie.mixture.em import Event
from coterie.mixture.gaussian_em import BY_FORM, MODEL_STORED, Components, GaussianEM, GaussianStats

# Conjugate priors of the parameters of a Gaussian mixture, and their posteriors.


@stored("bayesian.Dirichlet")
@dataclass(frozen=True)
class Dirichlet:
    """Dirichlet prior of the weights: `concentration` is the number of rows that the prior adds to each component."""

    concentration: float

    def posterior(self, weight: np.ndarray) -> np.ndarray:
        """Concentrations of the posterior (k,) after rows of these weights (k,)."""
        return self.concentration + weight

    def mean(self, posterior: np.ndarray) -> np.ndarray:
        return posterior / posterior.sum()

    def expected_log(self, posterior: np.ndarray) -> np.ndarray:
        return special.digamma(posterior) - special.digamma(posterior.sum())

    def divergence(self, posterior: np.ndarray) -> float:
        k, a = len(posterior), self.concentration
        cross = (posterior - a) @ self.expected_log(posterior)
        log_norm = special.gammaln(posterior.sum()) - special.gammaln(posterior).sum()
        return float(cross + log_norm - special.gammaln(k * a) + k * special.gammaln(a))


@stored("bayesian.StickBreaking")
@dataclass(frozen=True)
class StickBreaking:
    """Dirichlet process: component k takes the share v_k ~ Beta(1, concentration) of the weight that is left over.

    Rows belong to the first k components; the rest of the stick keeps its prior. The posterior is a Beta distribution
    for each component, with two parameters (2, k) [1]_.

    .. [1] D. M. Blei & M. I. Jordan (2006), Variational inference for Dirichlet process mixtures, Bayesian Analysis 1,
       121-143. https://doi.org/10.1214/06-BA104
    """

    concentration: float

    def posterior(self, weight: np.ndarray) -> np.ndarray:
        """Parameters of the Beta posteriors (2, k) after rows of these weights (k,)."""
        later = np.append(weight[:0:-1].cumsum()[::-1], 0.0)
        return np.stack([1.0 + weight, self.concentration + later])

    def mean(self, posterior: np.ndarray) -> np.ndarray:
        """Mean weights of the first k components, normalised to sum to 1."""
        share = posterior[0] / posterior.sum(axis=0)
        weights = share * np.append(1.0, np.cumprod(1 - share)[:-1])
        return weights / weights.sum()

    def expected_log(self, posterior: np.ndarray) -> np.ndarray:
        log_share, log_rest = special.digamma(posterior) - special.digamma(posterior.sum(axis=0))
        return log_share + np.append(0.0, log_rest.cumsum()[:-1])

    def divergence(self, posterior: np.ndarray) -> float:
        log_share, log_rest = special.digamma(posterior) - special.digamma(posterior.sum(axis=0))
        cross = (posterior[0] - 1) * log_share + (posterior[1] - self.concentration) * log_rest
        return float((cross - special.betaln(*posterior) - np.log(self.concentration)).sum())

    def log_evidence(self, weight: np.ndarray) -> float:
        """The term of the weights in the lower bound at `posterior(weight)`: log E[prod_k pi_k^weight_k]."""
        return float((special.betaln(*self.posterior(weight)) + np.log(self.concentration)).sum())


class NormalWishartPosterior(NamedTuple):
    """Parameters of the normal-Wishart posteriors of k components."""

    means: np.ndarray  # (k, d)
    mean_precision: np.ndarray  # (k,) beta: number of rows that determine the mean
    dof: np.ndarray  # (k,) nu
    covariances: np.ndarray  # by form: the inverse of the expected precision


@stored("bayesian.NormalWishart")
@dataclass(frozen=True)
class NormalWishart:
    r"""Normal-Wishart prior of the mean and the precision of each component.

    The posterior of a precision is a Wishart distribution. Its scale matrix is free ("full"), common to all components
    with the degrees of freedom ("tied"), diagonal, or a multiple of the identity ("spherical"). The last three are the
    closest such distributions to the posterior in KL divergence: "diag" uses the diagonal of the inverse scale matrix,
    "spherical" its mean.
    """

    form: str
    mean: np.ndarray  # (d,) m_0
    mean_precision: float  # beta_0
    dof: float  # nu_0
    scale: np.ndarray  # (d, d) Psi_0, or (d,) if it is diagonal

    @property
    def matrix(self) -> np.ndarray:
        return np.diag(self.scale) if self.scale.ndim == 1 else self.scale

    def posterior(
        self, about: np.ndarray, weight: np.ndarray, sum_dx: np.ndarray, sum_dxx: np.ndarray
    ) -> NormalWishartPosterior:
        """The posterior after rows with these sums of deviations from the points `about` (k, d)."""
        k, d = about.shape
        precision, dof = self.mean_precision + weight, self.dof + weight
        step = (sum_dx + self.mean_precision * (self.mean - about)) / precision[:, None]
        scatter = forms.recentered(self.form, weight, sum_dx, sum_dxx, step) + self._scatter(about + step)
        if self.form == "tied":
            dof = np.full(k, dof.mean())
        rows = {"full": dof[:, None, None], "tied": dof.sum(), "diag": dof[:, None], "spherical": d * dof}[self.form]
        return NormalWishartPosterior(about + step, precision, dof, scatter / rows)

    def expected_log_det(self, dof: np.ndarray, log_det: np.ndarray) -> np.ndarray:
        """E log |precision| (k,); `log_det` is that of the expected precision."""
        d = len(self.mean)
        return _digammas(dof, d) + d * float(np.log(2.0)) + log_det - d * np.log(dof)

    def divergence(self, posterior: NormalWishartPosterior, factor: np.ndarray, log_det: np.ndarray) -> float:
        """KL divergence, summed over components; `factor` and `log_det` are those of the expected precisions."""
        d, beta, dof = len(self.mean), posterior.mean_precision, posterior.dof
        ratio = self.mean_precision / beta
        means = d * (ratio - np.log(ratio) - 1).sum()
        log_scale = log_det - d * np.log(dof) + np.linalg.slogdet(self.matrix)[1]
        precisions = (
            self.dof * log_scale
            + d * dof
            + 2 * (special.multigammaln(dof / 2, d) - special.multigammaln(self.dof / 2, d))
            - (dof - self.dof) * _digammas(dof, d)
        ).sum()
        return float(means - precisions + forms.mahalanobis(self.form, factor, self._scatter(posterior.means))) / 2

    def _scatter(self, means: np.ndarray) -> np.ndarray:
        """The term that the prior adds to the scatter of components with these means."""
        k, offset = len(means), means - self.mean
        return forms.constant(self.form, k, self.matrix) + forms.outer(
            self.form, np.full(k, self.mean_precision), offset, offset
        )


def _digammas(dof: np.ndarray, d: int) -> np.ndarray:
    """The sum of psi((dof - i) / 2), i from 0 to d - 1: the derivative of the multivariate log gamma at dof / 2."""
    return special.digamma((dof[:, None] - np.arange(d)) / 2).sum(axis=1)


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
