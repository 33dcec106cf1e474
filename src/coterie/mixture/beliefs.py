r"""What is believed of the parameters of a mixture, before and after the rows are seen.

Weights have a Dirichlet distribution, or are broken off a stick (`Dirichlet`, `Sticks`); each component's mean and
precision have the normal-Wishart distribution (`NormalWishart`)

.. math:: \Lambda_k \sim W(\nu_0, \Psi_0^{-1}), \qquad \mu_k \mid \Lambda_k \sim N(m_0, (\beta_0 \Lambda_k)^{-1}).

Every belief says what it becomes when rows are added, the expected logarithms that an E-step needs, and how far it
has moved from where it was: its divergence KL(after || before), which the lower bound pays for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from coterie.core.stored import stored
from coterie.families import forms

LOG_TWO = float(np.log(2.0))


@stored("bayesian.Dirichlet")
@dataclass(frozen=True)
class Dirichlet:
    """Weights of k components, each as if `concentration` rows of it had been seen."""

    concentration: float

    def after(self, weight: np.ndarray) -> np.ndarray:
        return self.concentration + weight

    def mean(self, after: np.ndarray) -> np.ndarray:
        return after / after.sum()

    def expected_log(self, after: np.ndarray) -> np.ndarray:
        return special.digamma(after) - special.digamma(after.sum())

    def divergence(self, after: np.ndarray) -> float:
        k, a = len(after), self.concentration
        moved = (after - a) @ self.expected_log(after)
        log_norm = special.gammaln(after.sum()) - special.gammaln(after).sum()
        return float(moved + log_norm - special.gammaln(k * a) + k * special.gammaln(a))


@stored("bayesian.StickBreaking")
@dataclass(frozen=True)
class Sticks:
    """A Dirichlet process: component k takes the share v_k ~ Beta(1, concentration) of what its predecessors left.

    Rows are in the first k components; what is left of the stick stays as it was believed to be. The belief after
    rows is two numbers of a Beta distribution a stick (2, k) [1]_.

    .. [1] D. M. Blei & M. I. Jordan (2006), Variational inference for Dirichlet process mixtures, Bayesian Analysis 1,
       121-143. https://doi.org/10.1214/06-BA104
    """

    concentration: float

    def after(self, weight: np.ndarray) -> np.ndarray:
        beyond = np.append(weight[:0:-1].cumsum()[::-1], 0.0)
        return np.stack([1.0 + weight, self.concentration + beyond])

    def mean(self, after: np.ndarray) -> np.ndarray:
        """Mean weights, those of the first k components alone."""
        share = after[0] / after.sum(axis=0)
        weights = share * np.append(1.0, np.cumprod(1 - share)[:-1])
        return weights / weights.sum()

    def expected_log(self, after: np.ndarray) -> np.ndarray:
        taken, left = special.digamma(after) - special.digamma(after.sum(axis=0))
        return taken + np.append(0.0, left.cumsum()[:-1])

    def divergence(self, after: np.ndarray) -> float:
        taken, left = special.digamma(after) - special.digamma(after.sum(axis=0))
        moved = (after[0] - 1) * taken + (after[1] - self.concentration) * left
        return float((moved - special.betaln(*after) - np.log(self.concentration)).sum())

    def log_evidence(self, weight: np.ndarray) -> float:
        """What the weights' part of the bound is right after `after(weight)`: log E[prod_k pi_k^weight_k]."""
        return float((special.betaln(*self.after(weight)) + np.log(self.concentration)).sum())


class Moments(NamedTuple):
    """Normal-Wishart beliefs of k components."""

    means: np.ndarray  # (k, d)
    mean_precision: np.ndarray  # (k,) beta: rows that the mean rests on
    dof: np.ndarray  # (k,) nu
    covariances: np.ndarray  # by form: the inverse of the expected precision


@stored("bayesian.NormalWishart")
@dataclass(frozen=True)
class NormalWishart:
    r"""The belief of every component's mean and precision.

    After rows, the precision of component k is Wishart again, with its scale matrix free ("full"), the same as its
    degrees of freedom for all ("tied"), diagonal, or a multiple of the identity ("spherical"). The last three are the
    nearest such distributions to the posterior, in KL divergence: the diagonal of the full scale's inverse, its mean.
    """

    form: str
    mean: np.ndarray  # (d,) m_0
    mean_precision: float  # beta_0
    dof: float  # nu_0
    scale: np.ndarray  # (d, d) Psi_0, or (d,) if it is diagonal

    @property
    def matrix(self) -> np.ndarray:
        return np.diag(self.scale) if self.scale.ndim == 1 else self.scale

    def after(self, about: np.ndarray, weight: np.ndarray, sum_dx: np.ndarray, sum_dxx: np.ndarray) -> Moments:
        """The belief after rows of these sums about points `about` (k, d)."""
        k, d = about.shape
        precision, dof = self.mean_precision + weight, self.dof + weight
        step = (sum_dx + self.mean_precision * (self.mean - about)) / precision[:, None]
        scatter = forms.recentered(self.form, weight, sum_dx, sum_dxx, step) + self._scatter(about + step)
        if self.form == "tied":
            dof = np.full(k, dof.mean())
        rows = {"full": dof[:, None, None], "tied": dof.sum(), "diag": dof[:, None], "spherical": d * dof}[self.form]
        return Moments(about + step, precision, dof, scatter / rows)

    def expected_log_det(self, dof: np.ndarray, log_det: np.ndarray) -> np.ndarray:
        """E log |precision| (k,); `log_det` is that of the expected precision."""
        d = len(self.mean)
        return _digammas(dof, d) + d * LOG_TWO + log_det - d * np.log(dof)

    def divergence(self, after: Moments, factor: np.ndarray, log_det: np.ndarray) -> float:
        """KL of the beliefs of all components; `factor` and `log_det` are those of the expected precisions."""
        d, beta, dof = len(self.mean), after.mean_precision, after.dof
        ratio = self.mean_precision / beta
        means = d * (ratio - np.log(ratio) - 1).sum()
        log_scale = log_det - d * np.log(dof) + np.linalg.slogdet(self.matrix)[1]
        precisions = (
            self.dof * log_scale
            + d * dof
            + 2 * (special.multigammaln(dof / 2, d) - special.multigammaln(self.dof / 2, d))
            - (dof - self.dof) * _digammas(dof, d)
        ).sum()
        return float(means - precisions + forms.mahalanobis(self.form, factor, self._scatter(after.means))) / 2

    def _scatter(self, means: np.ndarray) -> np.ndarray:
        """What the prior adds to the scatter of components that lie at `means`."""
        k, away = len(means), means - self.mean
        return forms.constant(self.form, k, self.matrix) + forms.outer(
            self.form, np.full(k, self.mean_precision), away, away
        )


def _digammas(dof: np.ndarray, d: int) -> np.ndarray:
    """The sum of psi((dof - i) / 2), i from 0 to d - 1: the derivative of the multivariate log gamma at dof / 2."""
    return special.digamma((dof[:, None] - np.arange(d)) / 2).sum(axis=1)
