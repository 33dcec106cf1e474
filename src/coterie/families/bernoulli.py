"""Bernoulli: yes or no in each column, independent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from coterie.core.stored import stored
from coterie.families.linear import ExponentialFamily, Linear, Sums
from coterie.families.prior import BetaPrior, Pseudo, as_prior

FLOOR = 1e-10  # the least probability of either value: a component that never saw one does not rule it out


@stored("parameters.Bernoulli")
class Probabilities(NamedTuple):
    probability: np.ndarray  # (k, d) of a one


@stored("family.Bernoulli", attributes="prior holes")
class Bernoulli(ExponentialFamily):
    r"""Zeros and ones, columns independent given the component: with a mixture of it, latent class analysis.

    .. math:: P(x) = \prod_j p_j^{x_j} (1 - p_j)^{1 - x_j}, \quad T(x) = x, \quad \hat p = \bar x

    Do not use it for columns that depend on each other within a cluster: they are then told apart by that alone.

    Parameters
    ----------
    prior : BetaPrior or 'default', optional
        Of each probability; the estimate is then (ones + a - 1) / (n + a + b - 2). 'default' is BetaPrior(1.5, 1.5).

    Attributes
    ----------
    probability_ : array (d,)
        Of a one; from 1e-10 to 1 - 1e-10: a value is never impossible.

    Examples
    --------
    >>> from coterie.families import Bernoulli
    >>> Bernoulli().fit([[1, 0], [1, 1], [0, 0], [1, 0]]).probability_.tolist()
    [0.75, 0.25]
    """

    name = "bernoulli"
    support = "zeros and ones"
    remedy = "say which values count as one (X > 0), or choose Poisson or Categorical"
    by_column = True
    takes_sparse = True

    def __init__(self, prior: Any = None):
        self.prior = prior

    # density

    def supports(self, values: np.ndarray) -> np.ndarray:
        return (values == 0) | (values == 1)

    # parameters

    def natural(self, params: Probabilities) -> np.ndarray:
        return special.logit(params.probability)

    def log_normalizer(self, params: Probabilities) -> np.ndarray:
        return -np.log1p(-params.probability)

    # estimates: T(x) = x

    def from_means(self, mean: np.ndarray) -> Probabilities:
        return Probabilities(np.clip(mean, FLOOR, 1.0 - FLOOR))

    def pseudo(self) -> Pseudo:
        prior = as_prior(self.prior, BetaPrior, BetaPrior(1.5, 1.5), "Bernoulli")
        return Pseudo() if prior is None else Pseudo(np.add(prior.a, prior.b) - 2.0, np.asarray(prior.a) - 1.0)

    # the posterior: a Beta density of each probability

    def expected(self, stats: Sums) -> Linear:
        a, b = self._posterior(stats)
        constant = special.digamma(b) - special.digamma(a + b)
        return Linear(special.digamma(a) - special.digamma(b), constant if self.holes else constant.sum(axis=1))

    def log_evidence(self, stats: Sums) -> np.ndarray:
        before, after = self._posterior(stats.scaled(0.0)), self._posterior(stats)
        return (special.betaln(*after) - special.betaln(*before)).sum(axis=1)

    def _posterior(self, stats: Sums) -> tuple[np.ndarray, np.ndarray]:
        """a and b (k, d)."""
        before = self.pseudo()  # none is flat
        a = stats.sum_t + before.sum_t + 1.0
        return a, stats.weight + before.weight + 2.0 - a

    # sampling

    def draw(self, params: Probabilities, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        return (rng.random((n, params.probability.shape[1])) < params.probability[j]).astype(np.float64)
