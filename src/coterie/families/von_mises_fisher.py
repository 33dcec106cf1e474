"""Von Mises-Fisher: directions about a mean direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie.core.errors import InputError, ParameterError
from coterie.core.stored import stored
from coterie.families.bessel import log_bessel, log_scaled_bessel
from coterie.families.concentration import concentration_of
from coterie.families.counts import dense_blocks
from coterie.families.family import Survey
from coterie.families.linear import ExponentialFamily, Linear
from coterie.families.prior import Pseudo

HIGH = 1e4  # concentrations from which products of matrices would lose digits that can be seen


@stored("parameters.VonMisesFisher")
class Directions(NamedTuple):
    mean_direction: np.ndarray  # (k, d) of length 1
    concentration: np.ndarray  # (k,)


@dataclass(frozen=True)
class Lengths(Survey):
    """Values that no family takes, and the first row of length 0."""

    rows: Any
    at: Any  # its number; infinite where there is none

    def __add__(self, other: Survey) -> Lengths:
        assert isinstance(other, Lengths)
        values = Survey.__add__(self, other)
        return Lengths(values.off, values.example, self.rows + other.rows, min(self.at, self.rows + other.at))


@stored("family.VonMisesFisher", attributes="prior holes")
class VonMisesFisher(ExponentialFamily):
    r"""Directions: rows of which only the angles count, each divided by its length; text, profiles, wind.

    .. math:: p(x) = C_d(\kappa) e^{\kappa \mu \cdot x}, \quad \lVert x \rVert = 1, \quad
       C_d(\kappa) = \frac{\kappa^{d/2 - 1}}{(2 \pi)^{d/2} I_{d/2 - 1}(\kappa)}, \quad T(x) = x, \quad
       \hat\mu = \frac{\bar x}{\lVert \bar x \rVert}, \quad A_d(\hat\kappa) = \lVert \bar x \rVert

    a density on the unit sphere, with :math:`A_d = I_{d/2} / I_{d/2 - 1}` [1]_. The concentration is found to full
    precision, between bounds that are known [2]_, for any number of columns. `SphericalKMeans` is its limit for hard
    assignment and one concentration for all, however large.

    Do not use it where length matters, or where opposite directions mean the same.

    Attributes
    ----------
    mean_direction_ : array (d,)
    concentration_ : float
        At most 1e10.

    References
    ----------
    .. [1] A. Banerjee, I. S. Dhillon, J. Ghosh & S. Sra (2005), Clustering on the unit hypersphere using von
       Mises-Fisher distributions, Journal of Machine Learning Research 6, 1345-1382.
    .. [2] K. Hornik & B. Grün (2014), On maximum likelihood estimation of the concentration parameter of von
       Mises-Fisher distributions, Computational Statistics 29. https://doi.org/10.1007/s00180-013-0471-0
    .. [3] A. T. A. Wood (1994), Simulation of the von Mises Fisher distribution, Communications in Statistics 23.
       https://doi.org/10.1080/03610919408813161

    Examples
    --------
    >>> from coterie.families import VonMisesFisher
    >>> found = VonMisesFisher().fit([[3.0, 4.0], [4.0, 3.0], [1.0, 1.0]])
    >>> found.mean_direction_.round(3).tolist(), round(float(found.concentration_), 1)
    ([0.707, 0.707], 74.9)
    """

    name = "von_mises_fisher"
    takes_sparse = True

    # density

    def survey(self, X: Any) -> Lengths:
        found = super().survey(X)
        empty = _lengths(X) == 0
        return Lengths(found.off, found.example, X.shape[0], int(empty.argmax()) if empty.any() else np.inf)

    def check(self, survey: Any, names: list[str] | None = None) -> None:
        super().check(survey, names)
        if np.isfinite(survey.at):
            raise InputError(
                f"row {int(survey.at)} of X (counted from 0) has length 0, and so no direction: drop such rows"
            )

    @property
    def translates(self) -> bool:
        return True

    def translate(self, X: Any) -> Any:
        """Rows of length 1."""
        inverse = 1.0 / _lengths(X)
        if hasattr(X, "indptr"):
            data = (X.data * np.repeat(inverse, np.diff(X.indptr))).astype(X.dtype)
            return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
        return (X * inverse[:, None]).astype(X.dtype)

    def features(self, X: Any) -> Any:
        """Rows of length 1 in float64: to float32 they are so to seven digits only."""
        return super().features(X if X.dtype == np.float64 else self.translate(X.astype(np.float64)))

    def prepare(self, params: Directions) -> Linear:
        found, high = super().prepare(params), params.concentration > HIGH
        if not high.any():
            return found
        return Linear(np.where(high[:, None], 0.0, found.natural), np.where(high, 0.0, found.constant), (params, high))

    def direct_scores(self, direct: tuple[Directions, np.ndarray], features: Any) -> np.ndarray:
        """Of high concentrations: 1 less the cosine is half the squared distance, and so without cancellation."""
        (mean, kappa), high = direct
        d, scores = mean.shape[1], np.zeros((features.shape[0], len(mean)))
        constant = -0.5 * d * np.log(2.0 * np.pi) - log_scaled_bessel(0.5 * d - 1.0, kappa)
        for rows, X in dense_blocks(features):
            for j in np.flatnonzero(high):
                scores[rows, j] = constant[j] - 0.5 * kappa[j] * np.square(X - mean[j]).sum(axis=1)
        return scores

    # parameters

    def natural(self, params: Directions) -> np.ndarray:
        return params.concentration[:, None] * params.mean_direction

    def log_normalizer(self, params: Directions) -> np.ndarray:
        d = params.mean_direction.shape[1]
        return 0.5 * d * np.log(2.0 * np.pi) + log_bessel(0.5 * d - 1.0, params.concentration)

    def magnitude(self, params: Directions) -> np.ndarray:
        kappa, d = params.concentration, params.mean_direction.shape[1]
        return np.where(kappa > HIGH, np.sqrt(kappa * d), kappa)

    # estimates: T(x) = x

    def from_means(self, mean: np.ndarray) -> Directions:
        length = np.linalg.norm(mean, axis=1)
        some = np.full(mean.shape, mean.shape[1] ** -0.5)  # any direction will do where rows cancel out
        direction = np.where((length > 0)[:, None], mean / np.where(length > 0, length, 1.0)[:, None], some)
        return Directions(direction, concentration_of(length, mean.shape[1]))

    def pseudo(self) -> Pseudo:
        if self.prior is not None:
            raise ParameterError(f"VonMisesFisher has no prior: leave prior=None; got {self.prior!r}")
        return Pseudo()

    # sampling

    def draw(self, params: Directions, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        mean, kappa = params.mean_direction[j], float(params.concentration[j])
        away = _one_less_cosines(kappa, len(mean), n, rng)[:, None]
        side = rng.normal(size=(n, len(mean)))
        side -= (side @ mean)[:, None] * mean
        side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return (1.0 - away) * mean + np.sqrt(away * (2.0 - away)) * side


def _one_less_cosines(kappa: float, d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """1 - cos of the angles of `n` rows to the mean direction, by rejection [3]_."""
    if d == 1:
        return 2.0 * (rng.random(n) > 1.0 / (1.0 + np.exp(-2.0 * kappa)))
    b = (d - 1.0) / (2.0 * kappa + np.hypot(2.0 * kappa, d - 1.0))
    peak = 2.0 * b / (1.0 + b)  # 1 - x0
    found = np.empty(0)
    while len(found) < n:
        z, u = rng.beta(0.5 * (d - 1.0), 0.5 * (d - 1.0), n), rng.random(n)
        away = 2.0 * b * z / (1.0 - (1.0 - b) * z)
        odds = kappa * (peak - away) + (d - 1.0) * (np.log(peak + (1.0 - peak) * away) - np.log(peak * (2.0 - peak)))
        found = np.append(found, away[odds >= np.log(u)])
    return found[:n]


def _lengths(X: Any) -> np.ndarray:
    """The length of every row (n,), in float64; by its largest value, so that no square is lost."""
    dense = not hasattr(X, "indptr")
    with np.errstate(invalid="ignore"):
        size = np.abs(X).max(axis=1).astype(np.float64) if dense else abs(X).max(axis=1).toarray().ravel()
        unit = np.where(size > 0, size, 1.0)
        if dense:
            return unit * np.sqrt(((X / unit[:, None]) ** 2).sum(axis=1))
        squares = (X.data / np.repeat(unit, np.diff(X.indptr))) ** 2
        return unit * np.sqrt(sparse.csr_array((squares, X.indices, X.indptr), shape=X.shape) @ np.ones(X.shape[1]))
