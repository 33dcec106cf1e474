"""Multinomial distribution of counts with given totals."""

from typing import Any, NamedTuple

import numpy as np

from coterie.core.arrays import row_sums
from coterie.core.stored import stored
from coterie.core.ufuncs import gammaln
from coterie.families import simplex
from coterie.families.counts import CountFamily, dense_blocks, deviances, saturated
from coterie.families.exponential_family import Linear, Sums, of_stored
from coterie.families.family import TINY
from coterie.families.prior import DirichletPrior


@stored("parameters.Multinomial")
class Shares(NamedTuple):
    probability: np.ndarray  # (k, d)
    total: np.ndarray  # (k,) mean of the row totals; used for sampling only


@stored("family.Multinomial", attributes="prior has_missing _large")
class Multinomial(CountFamily, simplex.SimplexFamily):
    r"""Multinomial distribution of counts, given the total of each row; for words of texts or species of sites.

    .. math:: P(x) = \frac{(\sum_j x_j)!}{\prod_j x_j!} \prod_j p_j^{x_j}, \quad T(x) = x, \quad
       \hat p_j = \sum_i x_{ij} / \sum_{ij} x_{ij}

    Rows can be sparse (CSR) and are not converted. Do not use it if clusters differ in their totals; use Poisson.

    Parameters
    ----------
    prior : DirichletPrior or 'default', default=None
        Prior of the probabilities. The estimate is then proportional to counts + concentration - 1. 'default' means
        DirichletPrior(1.1), which suits texts, where most words do not occur in a component.

    Attributes
    ----------
    probability_ : array (d,)
        Probability of each column, at least 1e-10.
    total_ : float
        Mean of the row totals; sampled rows have this total, rounded.

    Examples
    --------
    >>> from coterie.families import Multinomial
    >>> Multinomial().fit([[2, 0, 1], [1, 3, 1]]).probability_.tolist()
    [0.375, 0.375, 0.25]
    """

    name = "multinomial"
    remedy = "round or drop them"
    starts_smoothed = True
    default_prior = DirichletPrior(1.1)

    # density

    def prepare(self, params: Shares) -> Linear:
        if not self._has_large:
            return super().prepare(params)
        p = params.probability
        return Linear(np.zeros(p.shape), np.zeros(len(p)), p)

    def direct_scores(self, direct: np.ndarray, features: Any) -> np.ndarray:
        """Minus the deviances of large counts from their expected share of the total."""
        scores = np.empty((features.shape[0], len(direct)))
        for rows, X in dense_blocks(features):
            total = X.sum(axis=1, keepdims=True)
            means = np.where(total > 0, total, 1.0)
            for j, p in enumerate(direct):
                scores[rows, j] = -np.where(total > 0, deviances(X, means * p), 0.0).sum(axis=1)
        return scores

    def log_base(self, X: Any) -> np.ndarray:
        total = row_sums(X)
        if self._has_large:
            return row_sums(of_stored(X, saturated)) - saturated(total)
        return gammaln(total + 1.0) - row_sums(of_stored(X, lambda x: gammaln(x + 1.0)))

    # parameters

    def n_parameters(self, k: int, params: Shares) -> int:
        return k * (params.probability.shape[1] - 1)

    def magnitude(self, params: Shares) -> np.ndarray:
        return np.sqrt(params.total * params.probability.shape[1]) if self._has_large else np.zeros(len(params.total))

    def expected_log_prob(self, params: Shares, stats: Sums) -> float:
        """As in the base class; for large counts, up to a function of the statistics."""
        if not self._has_large:
            return super().expected_log_prob(params, stats)
        means = stats.sum_t.sum(axis=1, keepdims=True) * params.probability
        return -float(deviances(stats.sum_t, np.maximum(means, TINY)).sum())

    # estimates: T(x) = x

    def from_means(self, mean: np.ndarray) -> Shares:
        return Shares(simplex.max_likelihood(mean), np.maximum(mean, 0.0).sum(axis=1))

    # sampling

    def draw(self, params: Shares, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        p = params.probability[j] / params.probability[j].sum()
        return rng.multinomial(round(params.total[j]), p, size=n).astype(np.float64)
