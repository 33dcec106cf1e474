"""Gamma distribution of independent columns."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from coterie.core.stored import stored
from coterie.families.counts import stirling
from coterie.families.exponential_family import ExponentialFamily, Linear, ObservedStatistics
from coterie.families.family import TINY

HIGH = 1e4  # shapes above it are computed directly, because matrix products would lose too many digits
LARGEST = 1e8  # maximum shape; the relative standard deviation of a column is then 1e-4
STEPS = 20  # maximum number of Newton steps; three to five are enough


@stored("parameters.Gamma")
class Shapes(NamedTuple):
    shape: np.ndarray  # (k, d)
    rate: np.ndarray  # (k, d)


@stored("family.Gamma", attributes="prior has_missing")
class Gamma(ExponentialFamily):
    r"""Gamma distribution of positive columns, which are independent within a component; for sizes and durations.

    .. math:: p(x) = \prod_j \frac{\beta_j^{\alpha_j}}{\Gamma(\alpha_j)} x_j^{\alpha_j - 1} e^{-\beta_j x_j}, \quad
       T(x) = (\log x, x), \quad \log \hat\alpha - \psi(\hat\alpha) = \log \bar x - \overline{\log x}, \quad
       \hat\beta = \hat\alpha / \bar x

    The shape is estimated by Newton's method in 1 / alpha [1]_; the solution is unique.

    Do not use it for values that can be 0, or whose smallest values are rounded: the shape depends on their logarithms.

    Attributes
    ----------
    shape_ : array (d,)
        alpha, at most 1e8.
    rate_ : array (d,)
        beta. The mean is shape / rate.

    References
    ----------
    .. [1] T. P. Minka (2002), Estimating a Gamma distribution.

    Examples
    --------
    >>> from coterie.families import Gamma
    >>> family = Gamma().fit([[1.0], [2.0], [6.0]])
    >>> family.shape_.round(3).tolist(), (family.shape_ / family.rate_).round(3).tolist()
    ([2.0], [3.0])
    """

    name = "gamma"
    powers: ClassVar[dict[str, int]] = {"rate": -1}
    support = "numbers > 0"
    remedy = "drop or shift zeros, or use Exponential, which supports them"
    by_column = True
    statistics_per_column = 2

    # density

    def supports(self, values: np.ndarray) -> np.ndarray:
        return (values > 0) & np.isfinite(values)

    def prepare(self, params: Shapes) -> Linear:
        linear, high = super().prepare(params), params.shape > HIGH
        if not high.any():
            return linear
        natural = np.where(np.tile(high, 2), np.repeat([-1.0, 0.0], high.shape[1]), linear.natural)
        constant = np.where(high, 0.0, -self.log_normalizer(params))
        return Linear(natural, constant if self.has_missing else constant.sum(axis=1), (params, high))

    def direct_scores(self, direct: tuple[Shapes, np.ndarray], features: Any) -> np.ndarray:
        r"""Scores of high shapes: :math:`\alpha (\log(1 + e) - e)` with e = x / mean - 1, plus a function of alpha."""
        (shape, rate), high = direct
        T = features.T if isinstance(features, ObservedStatistics) else features
        X, scores = T[:, shape.shape[1] :], np.zeros((len(T), len(shape)))
        for j in np.flatnonzero(high.any(axis=1)):
            columns, alpha = high[j], shape[j, high[j]]
            mean = alpha / rate[j, columns]
            e = (X[:, columns] - mean) / mean
            constant = 0.5 * np.log(alpha / (2.0 * np.pi)) - stirling(1.0 / alpha)
            observed = features.observed[:, columns] if isinstance(features, ObservedStatistics) else 1.0
            log_ratio = T[:, : shape.shape[1]][:, columns] - np.log(mean)  # far below the mean, 1 + e would be 0
            logs = np.where(e < -0.5, log_ratio, np.log1p(np.maximum(e, -0.5)))
            scores[:, j] = np.where(observed, alpha * (logs - e) + constant, 0.0).sum(axis=1)
        return scores

    # parameters

    def natural(self, params: Shapes) -> np.ndarray:
        return np.concatenate([params.shape - 1.0, -params.rate], axis=1)

    def log_normalizer(self, params: Shapes) -> np.ndarray:
        return special.gammaln(params.shape) - params.shape * np.log(params.rate)

    def magnitude(self, params: Shapes) -> np.ndarray:
        logs = 1.0 + np.abs(np.log(params.shape / params.rate))
        return np.where(params.shape > HIGH, np.sqrt(params.shape) + logs, params.shape * logs).sum(axis=1)

    # estimates

    def sufficient(self, X: np.ndarray) -> np.ndarray:
        return np.concatenate([np.log(X), X], axis=1)

    def from_means(self, mean: np.ndarray) -> Shapes:
        mean_log, mean = np.split(mean, 2, axis=1)
        mean = np.where(mean > 0, mean, 1.0)  # it is 0 for components without rows
        shape = shape_of(np.log(mean) - mean_log, LARGEST)
        return Shapes(shape, shape / np.maximum(mean, LARGEST * TINY))

    # sampling

    def draw(self, params: Shapes, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        return np.maximum(rng.gamma(params.shape[j], 1.0 / params.rate[j], (n, params.shape.shape[1])), TINY)


def shape_of(excess: np.ndarray, largest: float) -> np.ndarray:
    r"""The shape :math:`\alpha`, at most `largest`, with :math:`\log \alpha - \psi(\alpha)` = `excess`.

    The left side decreases from infinity to 0. Newton's method in 1 / alpha starts at Minka's approximation, whose
    error is always a few percent.
    """
    excess = np.maximum(excess, 0.5 / largest)
    shape = (3.0 - excess + np.sqrt((excess - 3.0) ** 2 + 24.0 * excess)) / (12.0 * excess)
    for _ in range(STEPS):
        error = log_minus_digamma(shape) - excess
        slope = 1.0 - shape * special.polygamma(1, shape)  # of log alpha - psi(alpha), times alpha
        step = error / slope
        shape = shape / (1.0 + step)
        if np.all(np.abs(step) <= 1e-9):
            break
    return np.minimum(shape, largest)


def log_minus_digamma(shape: np.ndarray) -> np.ndarray:
    """log alpha - psi(alpha); by its series for large shapes, for which the difference would lose all digits."""
    inverse = 1.0 / shape
    series = inverse * (0.5 + inverse * (1 / 12 - inverse**2 * (1 / 120 - inverse**2 / 252)))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(shape > 40.0, series, np.log(shape) - special.digamma(shape))
