"""Poisson distribution of independent columns of counts."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special

from coterie.core.arrays import is_sparse
from coterie.core.stored import stored
from coterie.core.ufuncs import gammaln
from coterie.errors import ParameterError
from coterie.families.counts import CountFamily, dense_blocks, deviances, saturated
from coterie.families.exponential_family import Linear, ObservedStatistics, Sums, of_stored
from coterie.families.family import TINY
from coterie.families.prior import GammaPrior, Pseudo, as_prior, log_gamma_size

FLOOR = 1e-10  # minimum rate, so that new rows never have the likelihood 0


@stored("parameters.Poisson")
class Rates(NamedTuple):
    rate: np.ndarray  # (k, d)


@stored("family.Poisson", attributes="prior has_missing _large")
class Poisson(CountFamily):
    r"""Poisson distribution of counts in columns, which are independent within a component.

    .. math:: p(x) = \prod_j \lambda_j^{x_j} e^{-\lambda_j} / x_j!, \quad T(x) = x, \quad
       \hat\lambda = \bar x

    Do not use it for counts whose variance is much larger than their mean: a mixture then splits clusters. For counts
    with a known total, use Multinomial or Bernoulli.

    Parameters
    ----------
    prior : GammaPrior or 'default', default=None
        Prior of each rate. The estimate is then (sum of x + shape - 1) / (n + rate). 'default' means
        GammaPrior(1.5, 0.5).

    Attributes
    ----------
    rate_ : array (d,)
        Rate of each column, at least 1e-10.

    Examples
    --------
    >>> from coterie.families import Poisson
    >>> Poisson().fit([[1, 0], [3, 2]]).rate_.tolist()
    [2.0, 1.0]
    """

    name = "poisson"
    remedy = "round or drop them, or use another family (Gamma, Gaussian)"
    by_column = True

    # density

    def log_base(self, X: Any) -> Any:
        if not self._has_large:
            return of_stored(X, lambda x: -gammaln(x + 1.0))
        if not is_sparse(X):
            return np.where(self._large, saturated(X), -gammaln(X + 1.0))
        stored = X.data.astype(np.float64)
        base = np.where(self._large[X.indices], saturated(stored), -gammaln(stored + 1.0))
        return sparse.csr_array((base, X.indices, X.indptr), shape=X.shape)

    def prepare(self, params: Rates) -> Linear:
        if not self._has_large:
            return super().prepare(params)
        natural, constant = (np.where(self._large, 0.0, values) for values in (np.log(params.rate), -params.rate))
        return self._linear(natural, constant, params.rate[:, self._large])

    def direct_scores(self, direct: np.ndarray, features: Any) -> np.ndarray:
        """Minus the deviances of columns with large counts."""
        T = features.T if isinstance(features, ObservedStatistics) else features
        scores = np.empty((T.shape[0], len(direct)))
        for rows, X in dense_blocks(T[:, np.flatnonzero(self._large)]):
            for j, rate in enumerate(direct):
                values = deviances(X, rate)
                if isinstance(features, ObservedStatistics):
                    values = values * features.observed[:, self._large]
                scores[rows, j] = -values.sum(axis=1)
        return scores

    # parameters

    def natural(self, params: Rates) -> np.ndarray:
        return np.log(params.rate)

    def log_normalizer(self, params: Rates) -> np.ndarray:
        return params.rate

    def magnitude(self, params: Rates) -> np.ndarray:
        return np.where(self._large, np.sqrt(params.rate), 0.0).sum(axis=1)

    def expected_log_prob(self, params: Rates, stats: Sums) -> float:
        """As in the base class; for columns with large counts, up to a function of the statistics."""
        if not self._has_large:
            return super().expected_log_prob(params, stats)
        weight = np.broadcast_to(stats.weight, stats.sum_t.shape)
        small = stats.sum_t * np.log(params.rate) - weight * params.rate
        large = -deviances(stats.sum_t, np.maximum(weight * params.rate, TINY))
        return float(np.where(self._large, large, small).sum())

    # estimates: T(x) = x

    def from_means(self, mean: np.ndarray) -> Rates:
        return Rates(np.maximum(mean, FLOOR))

    def pseudo(self) -> Pseudo:
        prior = as_prior(self.prior, GammaPrior, GammaPrior(1.5, 0.5), "Poisson")
        return Pseudo() if prior is None else Pseudo(np.asarray(prior.rate), np.asarray(prior.shape) - 1.0)

    # the posterior: a Gamma density of each rate

    def _expected_natural(self, stats: Sums) -> tuple[np.ndarray, np.ndarray]:
        shape, rate = self._posterior(stats)
        return special.digamma(shape) - np.log(rate), -shape / rate

    def _log_size(self, stats: Sums) -> np.ndarray:
        return log_gamma_size(*self._posterior(stats))

    def _posterior(self, stats: Sums) -> tuple[np.ndarray, np.ndarray]:
        """Shape and rate (k, d)."""
        before = self.pseudo()
        if np.any(np.equal(before.weight, 0.0)):
            raise ParameterError(f"the posterior of Poisson needs a GammaPrior with rate > 0; got prior={self.prior!r}")
        shape = stats.sum_t + before.sum_t + 1.0
        return shape, np.broadcast_to(stats.weight + before.weight, shape.shape)

    # sampling

    def draw(self, params: Rates, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.poisson(params.rate[j], (n, params.rate.shape[1])).astype(np.float64)
