"""Exponential distribution of independent columns."""

from typing import ClassVar, NamedTuple

import numpy as np
from scipy import special

from coterie.core.stored import stored
from coterie.errors import ParameterError
from coterie.families.exponential_family import ConjugateFamily, Sums
from coterie.families.prior import GammaPrior, Pseudo, as_prior, log_gamma_size

LARGEST = 1e100  # maximum rate, of a component whose rows are all 0 in a column


@stored("parameters.Exponential")
class Rates(NamedTuple):
    rate: np.ndarray  # (k, d)


@stored("family.Exponential", attributes="prior has_missing")
class Exponential(ConjugateFamily):
    r"""Exponential distribution of columns, which are independent within a component; for waiting times and lifetimes.

    .. math:: p(x) = \prod_j \lambda_j e^{-\lambda_j x_j}, \quad x_j \ge 0, \quad T(x) = x, \quad
       \hat\lambda = 1 / \bar x

    Its standard deviation always equals its mean. Do not use it for values that are concentrated around a mean far from
    0; use Gamma instead. If a column has many exact zeros, a component may contain only these; a `prior` prevents that.

    Parameters
    ----------
    prior : GammaPrior or 'default', default=None
        Prior of each rate. The estimate is then (n + shape - 1) / (sum of x + rate). 'default' means
        GammaPrior(1.5, 0.5), which suits values of about 1.

    Attributes
    ----------
    rate_ : array (d,)
        Rate of each column, at most 1e100.

    Examples
    --------
    >>> from coterie.families import Exponential
    >>> Exponential().fit([[1.0, 0.5], [3.0, 0.0]]).rate_.tolist()
    [0.5, 4.0]
    """

    name = "exponential"
    powers: ClassVar[dict[str, int]] = {"rate": -1}
    support = "numbers >= 0"
    remedy = "shift or drop them, or use another family (Gaussian)"
    by_column = True
    takes_sparse = True

    # density

    def supports(self, values: np.ndarray) -> np.ndarray:
        return (values >= 0) & np.isfinite(values)

    # parameters

    def natural(self, params: Rates) -> np.ndarray:
        return -params.rate

    def log_normalizer(self, params: Rates) -> np.ndarray:
        return -np.log(params.rate)

    # estimates: T(x) = x

    def from_means(self, mean: np.ndarray) -> Rates:
        return Rates(1.0 / np.maximum(mean, 1.0 / LARGEST))

    def pseudo(self) -> Pseudo:
        prior = as_prior(self.prior, GammaPrior, GammaPrior(1.5, 0.5), "Exponential")
        return Pseudo() if prior is None else Pseudo(np.asarray(prior.shape) - 1.0, np.asarray(prior.rate))

    # the posterior: a Gamma density of each rate

    def _expected_natural(self, stats: Sums) -> tuple[np.ndarray, np.ndarray]:
        shape, rate = self._posterior(stats)
        return -shape / rate, special.digamma(shape) - np.log(rate)

    def _log_size(self, stats: Sums) -> np.ndarray:
        return log_gamma_size(*self._posterior(stats))

    def _posterior(self, stats: Sums) -> tuple[np.ndarray, np.ndarray]:
        """Shape and rate (k, d)."""
        before = self.pseudo()
        if np.any(np.equal(before.sum_t, 0.0)):
            raise ParameterError(
                f"the posterior of Exponential needs a GammaPrior with rate > 0; got prior={self.prior!r}"
            )
        rate = stats.sum_t + before.sum_t
        return np.broadcast_to(stats.weight + before.weight + 1.0, rate.shape), rate

    # sampling

    def draw(self, params: Rates, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.exponential(1.0 / params.rate[j], (n, params.rate.shape[1]))
