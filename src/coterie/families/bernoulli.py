"""Bernoulli distribution of independent binary columns."""

from typing import NamedTuple

import numpy as np
from scipy import special

from coterie.core.stored import stored
from coterie.families.exponential_family import ConjugateFamily, Sums
from coterie.families.prior import BetaPrior, Pseudo, as_prior

FLOOR = 1e-10  # minimum probability of either value, so that new rows never have the likelihood 0


@stored("parameters.Bernoulli")
class Probabilities(NamedTuple):
    probability: np.ndarray  # (k, d) of a one


@stored("family.Bernoulli", attributes="prior has_missing")
class Bernoulli(ConjugateFamily):
    r"""Bernoulli distribution of binary columns, which are independent within a component.

    .. math:: P(x) = \prod_j p_j^{x_j} (1 - p_j)^{1 - x_j}, \quad T(x) = x, \quad \hat p = \bar x

    A mixture of Bernoulli components is latent class analysis. Do not use it if columns depend on each other within a
    cluster: a mixture then splits clusters to describe this dependence.

    Parameters
    ----------
    prior : BetaPrior or 'default', default=None
        Prior of each probability. The estimate is then (ones + a - 1) / (n + a + b - 2). 'default' means
        BetaPrior(1.5, 1.5).

    Attributes
    ----------
    probability_ : array (d,)
        Probability of a one in each column, from 1e-10 to 1 - 1e-10.

    Examples
    --------
    >>> from coterie.families import Bernoulli
    >>> Bernoulli().fit([[1, 0], [1, 1], [0, 0], [1, 0]]).probability_.tolist()
    [0.75, 0.25]
    """

    name = "bernoulli"
    support = "zeros and ones"
    remedy = "convert X to zeros and ones (such as X > 0), or use Poisson or Categorical"
    by_column = True
    takes_sparse = True

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

    def _expected_natural(self, stats: Sums) -> tuple[np.ndarray, np.ndarray]:
        a, b = self._posterior(stats)
        return special.digamma(a) - special.digamma(b), special.digamma(b) - special.digamma(a + b)

    def _log_size(self, stats: Sums) -> np.ndarray:
        return special.betaln(*self._posterior(stats))

    def _posterior(self, stats: Sums) -> tuple[np.ndarray, np.ndarray]:
        """a and b (k, d)."""
        before = self.pseudo()  # without a prior, the density is flat
        a = stats.sum_t + before.sum_t + 1.0
        return a, stats.weight + before.weight + 2.0 - a

    # sampling

    def draw(self, params: Probabilities, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        return (rng.random((n, params.probability.shape[1])) < params.probability[j]).astype(np.float64)
