"""Gamma: positive sizes with a shape, columns independent."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from coterie.core.errors import ParameterError
from coterie.core.stored import stored
from coterie.families.counts import stirling
from coterie.families.family import TINY
from coterie.families.linear import ExponentialFamily, Linear, Observed
from coterie.families.prior import Pseudo

HIGH = 1e4  # shapes from which products of matrices would lose digits that can be seen
LARGEST = 1e8  # the highest shape: values that differ by less than 1e-4 of themselves are taken to be alike
STEPS = 20  # of Newton's method at most; it takes three to five


@stored("parameters.Gamma")
class Shapes(NamedTuple):
    shape: np.ndarray  # (k, d)
    rate: np.ndarray  # (k, d)


@stored("family.Gamma", attributes="prior holes")
class Gamma(ExponentialFamily):
    r"""Positive values: sizes, durations, amounts. Each column independent given the component.

    .. math:: p(x) = \prod_j \frac{\beta_j^{\alpha_j}}{\Gamma(\alpha_j)} x_j^{\alpha_j - 1} e^{-\beta_j x_j}, \quad
       T(x) = (\log x, x), \quad \log \hat\alpha - \psi(\hat\alpha) = \log \bar x - \overline{\log x}, \quad
       \hat\beta = \hat\alpha / \bar x

    The shape is found by Newton's method in 1 / alpha [1]_; there is one solution, whatever the values.

    Do not use it for values that may be 0, or where the smallest are rounding: their logarithms decide the shape.

    Attributes
    ----------
    shape_, rate_ : array (d,)
        alpha, at most 1e8, and beta. The mean is shape / rate.

    References
    ----------
    .. [1] T. P. Minka (2002), Estimating a Gamma distribution.

    Examples
    --------
    >>> from coterie.families import Gamma
    >>> found = Gamma().fit([[1.0], [2.0], [6.0]])
    >>> found.shape_.round(3).tolist(), (found.shape_ / found.rate_).round(3).tolist()
    ([2.0], [3.0])
    """

    name = "gamma"
    support = "numbers above 0"
    remedy = "drop or shift zeros, or choose Exponential, which takes them"
    by_column = True
    statistics_per_column = 2

    # density

    def supports(self, values: np.ndarray) -> np.ndarray:
        return (values > 0) & np.isfinite(values)

    def prepare(self, params: Shapes) -> Linear:
        found, high = super().prepare(params), params.shape > HIGH
        if not high.any():
            return found
        natural = np.where(np.tile(high, 2), np.repeat([-1.0, 0.0], high.shape[1]), found.natural)
        constant = np.where(high, 0.0, -self.log_normalizer(params))
        return Linear(natural, constant if self.holes else constant.sum(axis=1), (params, high))

    def direct_scores(self, direct: tuple[Shapes, np.ndarray], features: Any) -> np.ndarray:
        r"""Of high shapes: :math:`\alpha (\log(1 + e) - e)` with e = x / mean - 1, and what alpha alone adds."""
        (shape, rate), high = direct
        T = features.T if isinstance(features, Observed) else features
        X, scores = T[:, shape.shape[1] :], np.zeros((len(T), len(shape)))
        for j in np.flatnonzero(high.any(axis=1)):
            which, alpha = high[j], shape[j, high[j]]
            mean = alpha / rate[j, which]
            away = (X[:, which] - mean) / mean
            constant = 0.5 * np.log(alpha / (2.0 * np.pi)) - stirling(1.0 / alpha)
            there = features.there[:, which] if isinstance(features, Observed) else 1.0
            far = T[:, : shape.shape[1]][:, which] - np.log(mean)  # values far below the mean: 1 + e would be 0
            logs = np.where(away < -0.5, far, np.log1p(np.maximum(away, -0.5)))
            each = np.where(there, alpha * (logs - away) + constant, 0.0)
            scores[:, j] = each.sum(axis=1)
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
        mean = np.where(mean > 0, mean, 1.0)  # of no rows
        shape = shape_of(np.log(mean) - mean_log, LARGEST)
        return Shapes(shape, shape / np.maximum(mean, LARGEST * TINY))

    def pseudo(self) -> Pseudo:
        if self.prior is not None:
            raise ParameterError(f"Gamma has no prior: leave prior=None; got {self.prior!r}")
        return Pseudo()

    # sampling

    def draw(self, params: Shapes, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        return np.maximum(rng.gamma(params.shape[j], 1.0 / params.rate[j], (n, params.shape.shape[1])), TINY)


def shape_of(excess: np.ndarray, largest: float) -> np.ndarray:
    r"""The shape :math:`\alpha`, at most `largest`, with :math:`\log \alpha - \psi(\alpha)` = `excess`.

    The left side falls from infinity to 0. A step is Newton's in 1 / alpha, from Minka's first guess, which is within
    some percent for all of them.
    """
    excess = np.maximum(excess, 0.5 / largest)
    shape = (3.0 - excess + np.sqrt((excess - 3.0) ** 2 + 24.0 * excess)) / (12.0 * excess)
    for _ in range(STEPS):
        error = log_less_digamma(shape) - excess
        slope = 1.0 - shape * special.polygamma(1, shape)  # of log alpha - psi(alpha), times alpha
        step = error / slope
        shape = shape / (1.0 + step)
        if np.all(np.abs(step) <= 1e-9):
            break
    return np.minimum(shape, largest)


def log_less_digamma(shape: np.ndarray) -> np.ndarray:
    """log alpha - psi(alpha), of large shapes by its series: the difference would lose all digits."""
    inverse = 1.0 / shape
    series = inverse * (0.5 + inverse * (1 / 12 - inverse**2 * (1 / 120 - inverse**2 / 252)))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(shape > 40.0, series, np.log(shape) - special.digamma(shape))
