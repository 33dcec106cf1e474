"""Von Mises-Fisher distribution of directions."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from coterie.core.arrays import is_sparse
from coterie.core.stored import stored
from coterie.errors import InputError
from coterie.families.bessel import log_bessel, log_ratio, log_scaled_bessel
from coterie.families.counts import dense_blocks
from coterie.families.exponential_family import ExponentialFamily, Linear
from coterie.families.family import Survey

HIGH = 1e4  # concentrations above it are computed directly, because matrix products would lose too many digits
LARGEST = 1e10  # maximum concentration
STEPS = 60  # maximum number of iterations: Newton steps, or bisections if a Newton step leaves the bounds


@stored("parameters.VonMisesFisher")
class Directions(NamedTuple):
    mean_direction: np.ndarray  # (k, d) of length 1
    concentration: np.ndarray  # (k,)


@dataclass(frozen=True)
class Lengths(Survey):
    """Invalid values, and the first row of length 0."""

    rows: Any  # number of rows
    zero_row: Any  # index of the first row of length 0; infinite if there is none

    def _sum_of_others(self, other: Self) -> tuple[Any, ...]:
        return self.rows + other.rows, min(self.zero_row, self.rows + other.zero_row)


@stored("family.VonMisesFisher", attributes="prior has_missing")
class VonMisesFisher(ExponentialFamily):
    r"""Von Mises-Fisher distribution of directions: rows are divided by their length; for texts, profiles and wind.

    .. math:: p(x) = C_d(\kappa) e^{\kappa \mu \cdot x}, \quad \lVert x \rVert = 1, \quad
       C_d(\kappa) = \frac{\kappa^{d/2 - 1}}{(2 \pi)^{d/2} I_{d/2 - 1}(\kappa)}, \quad T(x) = x, \quad
       \hat\mu = \frac{\bar x}{\lVert \bar x \rVert}, \quad A_d(\hat\kappa) = \lVert \bar x \rVert

    It is a density on the unit sphere, with :math:`A_d = I_{d/2} / I_{d/2 - 1}` [1]_. The concentration is computed to
    full precision for any number of columns, starting from known bounds [2]_. `SphericalKMeans` is the limit for hard
    assignments and one large concentration for all components.

    Do not use it if the length of rows matters, or if opposite directions are equivalent.

    Attributes
    ----------
    mean_direction_ : array (d,)
        Mean direction, of length 1.
    concentration_ : float
        Concentration, at most 1e10.

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
    >>> family = VonMisesFisher().fit([[3.0, 4.0], [4.0, 3.0], [1.0, 1.0]])
    >>> family.mean_direction_.round(3).tolist(), round(float(family.concentration_), 1)
    ([0.707, 0.707], 74.9)
    """

    name = "von_mises_fisher"
    powers: ClassVar[dict[str, int]] = {}  # directions have no unit
    takes_sparse = True

    # density

    def survey(self, X: Any) -> Lengths:
        invalid, is_zero = super().survey(X), _lengths(X) == 0
        zero_row = int(is_zero.argmax()) if is_zero.any() else np.inf
        return Lengths(invalid.n_invalid, invalid.example, X.shape[0], zero_row)

    def check(self, survey: Any, names: list[str] | None = None) -> None:
        super().check(survey, names)
        if np.isfinite(survey.zero_row):
            raise InputError(
                f"row {int(survey.zero_row)} of X (counted from 0) has length 0, so it has no direction: drop such rows"
            )

    @property
    def translates(self) -> bool:
        return True

    def translate(self, X: Any) -> Any:
        """Divide rows by their length."""
        inverse = 1.0 / _lengths(X)
        if is_sparse(X):
            data = (X.data * np.repeat(inverse, np.diff(X.indptr))).astype(X.dtype)
            return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
        return (X * inverse[:, None]).astype(X.dtype)

    def features(self, X: Any) -> Any:
        """Rows of length 1 in float64; rows in float32 have length 1 to seven digits only."""
        return super().features(X if X.dtype == np.float64 else self.translate(X.astype(np.float64)))

    def prepare(self, params: Directions) -> Linear:
        linear, high = super().prepare(params), params.concentration > HIGH
        if not high.any():
            return linear
        natural, constant = np.where(high[:, None], 0.0, linear.natural), np.where(high, 0.0, linear.constant)
        return Linear(natural, constant, (params, high))

    def direct_scores(self, direct: tuple[Directions, np.ndarray], features: Any) -> np.ndarray:
        """Scores of high concentrations: 1 - cosine is half the squared distance, which avoids cancellation."""
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
        default = np.full(mean.shape, mean.shape[1] ** -0.5)  # if the mean is 0, all directions are equally good
        direction = np.where((length > 0)[:, None], mean / np.where(length > 0, length, 1.0)[:, None], default)
        return Directions(direction, concentration_of(length, mean.shape[1]))

    # sampling

    def draw(self, params: Directions, j: int, n: int, rng: np.random.Generator) -> np.ndarray:
        mean, kappa = params.mean_direction[j], float(params.concentration[j])
        one_minus_cos = _one_minus_cosines(kappa, len(mean), n, rng)[:, None]
        tangent = rng.normal(size=(n, len(mean)))
        tangent -= (tangent @ mean)[:, None] * mean
        tangent /= np.maximum(np.linalg.norm(tangent, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return (1.0 - one_minus_cos) * mean + np.sqrt(one_minus_cos * (2.0 - one_minus_cos)) * tangent


def _one_minus_cosines(kappa: float, d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Sample 1 - cos of the angles of `n` rows to the mean direction, by rejection [3]_."""
    if d == 1:
        return 2.0 * (rng.random(n) > 1.0 / (1.0 + np.exp(-2.0 * kappa)))
    b = (d - 1.0) / (2.0 * kappa + np.hypot(2.0 * kappa, d - 1.0))
    peak = 2.0 * b / (1.0 + b)  # 1 - x0
    accepted = np.empty(0)
    while len(accepted) < n:
        z, u = rng.beta(0.5 * (d - 1.0), 0.5 * (d - 1.0), n), rng.random(n)
        t = 2.0 * b * z / (1.0 - (1.0 - b) * z)
        log_acceptance = kappa * (peak - t) + (d - 1.0) * (
            np.log(peak + (1.0 - peak) * t) - np.log(peak * (2.0 - peak))
        )
        accepted = np.append(accepted, t[log_acceptance >= np.log(u)])
    return accepted[:n]


def _lengths(X: Any) -> np.ndarray:
    """The length of every row (n,), in float64; rows are scaled by their largest value, to avoid underflow."""
    is_dense = not is_sparse(X)
    with np.errstate(invalid="ignore"):
        size = np.abs(X).max(axis=1).astype(np.float64) if is_dense else abs(X).max(axis=1).toarray().ravel()
        unit = np.where(size > 0, size, 1.0)
        if is_dense:
            return unit * np.sqrt(((X / unit[:, None]) ** 2).sum(axis=1))
        squares = (X.data / np.repeat(unit, np.diff(X.indptr))) ** 2
        return unit * np.sqrt(sparse.csr_array((squares, X.indices, X.indptr), shape=X.shape) @ np.ones(X.shape[1]))


def concentration_of(length: np.ndarray, d: int) -> np.ndarray:
    """The concentration (k,), from 0 to 1e10, for which the mean of unit rows of `d` columns has this `length` (k,)."""
    if d == 1:  # rows are 1 or -1
        return np.arctanh(np.minimum(length, 1.0 - 1e-16))
    order, complement = 0.5 * d - 1.0, 1.0 - np.clip(length, 0.0, 1.0)
    r = 1.0 - np.clip(complement, 0.5 * (d - 1.0) / LARGEST, 1.0 - 1e-15)
    low, high = (_inverse_bound(r, order + a, order + b) for a, b in ((0.0, 2.0), (1.0, 1.0)))
    low, high = np.minimum(low, LARGEST), np.minimum(high, LARGEST)
    kappa = 0.5 * (low + high)
    for _ in range(STEPS):
        one_minus_A = -np.expm1(log_ratio(order, kappa))
        error = (1.0 - r) - one_minus_A  # A - r
        low, high = np.where(error <= 0, kappa, low), np.where(error >= 0, kappa, high)
        slope = one_minus_A * (2.0 - one_minus_A) - (d - 1.0) / kappa * (1.0 - one_minus_A)
        newton = kappa - error / np.where(slope > 0, slope, np.inf)
        before, kappa = kappa, np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        if np.all(np.abs(kappa - before) <= 1e-12 * kappa):
            break
    return np.where(length > 1e-15, kappa, 0.0)


def _inverse_bound(r: np.ndarray, a: float, b: float) -> np.ndarray:
    """The x for which x / (a + sqrt(x² + b²)), a bound of A, equals `r`."""
    rest = (1.0 - r) * (1.0 + r)
    return r / rest * (a + np.sqrt((a * r) ** 2 + b**2 * rest))
