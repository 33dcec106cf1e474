"""Families of probabilities that sum to 1, and their estimates, which have a lower bound."""

from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, gammaln

from coterie.families.exponential_family import ConjugateFamily, Sums
from coterie.families.prior import DirichletPrior, Pseudo, as_prior

FLOOR = 1e-10  # minimum probability, so that new rows never have the likelihood 0


def max_likelihood(counts: np.ndarray) -> np.ndarray:
    """Maximum-likelihood probabilities (..., m) of at least `FLOOR`, from counts (..., m).

    Smaller probabilities are set to `FLOOR`, and the others share the rest in proportion to their counts. This is the
    constrained maximum, so EM stays monotone. If all counts are 0, the probabilities are equal.
    """
    counts = np.maximum(counts, 0.0)
    m, total = counts.shape[-1], counts.sum(axis=-1, keepdims=True)
    counts = np.where(total > 0, counts, 1.0)
    low = np.zeros(counts.shape, bool)
    while True:
        rest = np.where(low, 0.0, counts).sum(axis=-1, keepdims=True)
        probability = np.where(low, FLOOR, counts * (1.0 - FLOOR * low.sum(axis=-1, keepdims=True)) / rest)
        too_low = probability < FLOOR
        if not too_low.any() or m == 1:
            return probability
        low |= too_low


class SimplexFamily(ConjugateFamily):
    """Base class of families whose parameter `probability` (k, p) is split into groups that sum to 1."""

    default_prior: ClassVar[DirichletPrior]

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """Split values (k, p) into the groups; by default there is one."""
        return [values]

    def natural(self, params: Any) -> np.ndarray:
        return np.log(params.probability)

    def log_normalizer(self, params: Any) -> np.ndarray:
        return np.zeros(len(params.probability))

    def pseudo(self) -> Pseudo:
        prior = as_prior(self.prior, DirichletPrior, self.default_prior, type(self).__name__)
        return Pseudo() if prior is None else Pseudo(0.0, np.asarray(prior.concentration) - 1.0)

    # the posterior: a Dirichlet density for each group

    def _expected_natural(self, stats: Sums) -> tuple[np.ndarray, np.ndarray]:
        natural = [digamma(a) - digamma(a.sum(axis=1, keepdims=True)) for a in self._posterior(stats)]
        return np.concatenate(natural, axis=1), np.zeros(len(stats.weight))

    def _log_size(self, stats: Sums) -> np.ndarray:
        sizes = [gammaln(a).sum(axis=1) - gammaln(a.sum(axis=1)) for a in self._posterior(stats)]
        return np.sum(sizes, axis=0)

    def _posterior(self, stats: Sums) -> list[np.ndarray]:
        """The concentrations of each group; without a prior, the density is flat."""
        return self.split(stats.sum_t + self.pseudo().sum_t + 1.0)
