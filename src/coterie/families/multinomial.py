"""Multinomial: counts of words, or other kinds, of a total."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from scipy import special

from coterie.core.stored import stored
from coterie.families import simplex
from coterie.families.counts import LARGE, Sizes, dense_blocks, deviances, saturated, sizes
from coterie.families.family import TINY
from coterie.families.linear import ExponentialFamily, Linear, Sums, of_stored
from coterie.families.prior import DirichletPrior, Pseudo, as_prior


@stored("parameters.Multinomial")
class Shares(NamedTuple):
    probability: np.ndarray  # (k, d)
    total: np.ndarray  # (k,) mean of the rows' totals; only samples need it


@stored("family.Multinomial", attributes="prior holes _large")
class Multinomial(ExponentialFamily):
    r"""Rows of counts, each given its total: words of a text, species of a site.

    .. math:: P(x) = \frac{(\sum_j x_j)!}{\prod_j x_j!} \prod_j p_j^{x_j}, \quad T(x) = x, \quad
       \hat p_j = \sum_i x_{ij} / \sum_{ij} x_{ij}

    Rows may be sparse (CSR) and stay so. Do not use it where totals tell clusters apart (Poisson does that).

    Parameters
    ----------
    prior : DirichletPrior or 'default', optional
        Of the probabilities; the estimate is then in proportion to counts + concentration - 1. 'default' is
        DirichletPrior(1.1): for texts, where most words are in no row of a component.

    Attributes
    ----------
    probability_ : array (d,)
        At least 1e-10: a word is never impossible.
    total_ : float
        The mean of the rows' totals; samples have it, rounded.

    Examples
    --------
    >>> from coterie.families import Multinomial
    >>> Multinomial().fit([[2, 0, 1], [1, 3, 1]]).probability_.tolist()
    [0.375, 0.375, 0.25]
    """

    name = "multinomial"
    support = "counts: whole numbers from 0 up"
    remedy = "round or drop them"
    takes_sparse = True
    starts_smoothed = True
    _large: bool = False  # whether counts are above 1e5

    def __init__(self, prior: Any = None):
        self.prior = prior

    # density

    def supports(self, values: np.ndarray) -> np.ndarray:
        return (values >= 0) & (values == np.floor(values)) & np.isfinite(values)

    def survey(self, X: Any) -> Sizes:
        return sizes(self, X)

    def learned(self, survey: Any, holes: bool = False) -> Self:
        found = super().learned(survey, holes)
        found._large = bool(survey.largest.max() > LARGE)
        return found

    def prepare(self, params: Shares) -> Linear:
        if not self._large:
            return super().prepare(params)
        p = params.probability
        return Linear(np.zeros(p.shape), np.zeros(len(p)), p)

    def direct_scores(self, direct: np.ndarray, features: Any) -> np.ndarray:
        """Minus the deviances of large counts from their share of the total."""
        scores = np.empty((features.shape[0], len(direct)))
        for rows, X in dense_blocks(features):
            total = X.sum(axis=1, keepdims=True)
            means = np.where(total > 0, total, 1.0)
            for j, p in enumerate(direct):
                scores[rows, j] = -np.where(total > 0, deviances(X, means * p), 0.0).sum(axis=1)
        return scores

    def log_base(self, X: Any) -> np.ndarray:
        total = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
        if self._large:
            return np.asarray(of_stored(X, saturated).sum(axis=1)).ravel() - saturated(total)
        each = of_stored(X, lambda x: special.gammaln(x + 1.0)).sum(axis=1)
        return special.gammaln(total + 1.0) - np.asarray(each).ravel()

    # parameters

    def natural(self, params: Shares) -> np.ndarray:
        return np.log(params.probability)

    def log_normalizer(self, params: Shares) -> np.ndarray:
        return np.zeros(len(params.probability))

    def n_parameters(self, k: int, params: Shares) -> int:
        return k * (params.probability.shape[1] - 1)

    def magnitude(self, params: Shares) -> np.ndarray:
        return np.sqrt(params.total * params.probability.shape[1]) if self._large else np.zeros(len(params.total))

    def expected_log_prob(self, params: Shares, stats: Sums) -> float:
        """Of large counts up to what the statistics alone decide."""
        if not self._large:
            return super().expected_log_prob(params, stats)
        means = stats.sum_t.sum(axis=1, keepdims=True) * params.probability
        return -float(deviances(stats.sum_t, np.maximum(means, TINY)).sum())

    # estimates: T(x) = x

    def from_means(self, mean: np.ndarray) -> Shares:
        return Shares(simplex.likeliest(mean), np.maximum(mean, 0.0).sum(axis=1))

    def pseudo(self) -> Pseudo:
        prior = as_prior(self.prior, DirichletPrior, DirichletPrior(1.1), "Multinomial")
        return Pseudo() if prior is None else Pseudo(0.0, np.asarray(prior.concentration) - 1.0)

    # the posterior: a Dirichlet density

    def expected(self, stats: Sums) -> Linear:
        a = self._posterior(stats)
        natural = special.digamma(a) - special.digamma(a.sum(axis=1, keepdims=True))
        return Linear(natural, np.zeros(len(a)))

    def log_evidence(self, stats: Sums) -> np.ndarray:
        def log_size(a: np.ndarray) -> np.ndarray:
            return special.gammaln(a).sum(axis=1) - special.gammaln(a.sum(axis=1))

        return log_size(self._posterior(stats)) - log_size(self._posterior(stats.scaled(0.0)))

    def _posterior(self, stats: Sums) -> np.ndarray:
        """The concentration (k, d); no prior is flat."""
        return stats.sum_t + self.pseudo().sum_t + 1.0

    # sampling

    def draw(self, params: Shares, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        p = params.probability[j] / params.probability[j].sum()
        return rng.multinomial(round(params.total[j]), p, size=n).astype(np.float64)
