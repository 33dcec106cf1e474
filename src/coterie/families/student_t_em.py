r"""EM for Student's t distribution: a Gaussian with covariance :math:`\Sigma / u` and a latent variable u.

u has a Gamma density with shape and rate :math:`\nu / 2`. Given a row with the Mahalanobis distance
:math:`\delta^{1/2}`, its shape is :math:`(\nu + d) / 2` and its rate :math:`(\nu + \delta) / 2`. For infinite
:math:`\nu`, u is 1.

If tails are light, EM changes :math:`\nu` by at most d per step, often for hundreds of steps. Therefore the statistics
also contain the log-likelihood for a higher and for a lower :math:`\nu`; it is a sum over rows as well.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special
from scipy.spatial.distance import cdist

from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.families.gamma import log_minus_digamma, shape_of
from coterie.kernels.plain.gaussian import Gaussians

INITIAL_DOF = 2.0  # initial degrees of freedom; few, so that outliers have little influence
MAX_DOF_PER_COLUMN = 100.0  # maximum estimate, as a multiple of d; with more it is nearly a Gaussian
MIN_DOF = 1.0  # minimum estimate; with fewer, the likelihood of a component of equal rows is unbounded
FACTORS = np.array([0.6, 1.7])  # of the degrees of freedom whose likelihood is computed as well
STEPS, TOL = 1000, 1e-12  # maximum number of steps and relative tolerance of a fit of one component
SAMPLE, SCREENING = 400, 20  # numbers of rows and of steps for the comparison of initial groups
SHARES = (3, 8, 20)  # sizes of initial groups: a third, an eighth and a twentieth of the rows
BEST = 2  # number of initial groups that are fitted to all rows
MIN_SCALE = 1e-10  # minimum scale relative to that of all rows; a smaller one belongs to equal rows, not to a group


@stored("parameters.StudentT")
class StudentTParameters(NamedTuple):
    """Parameters of K components."""

    location: np.ndarray  # (k, d)
    scale: np.ndarray  # (k, d, d), or (k, d) the diagonals
    dof: np.ndarray  # (k,)


class Prepared(NamedTuple):
    """Quantities derived from the parameters for one pass."""

    gaussians: Gaussians  # in the units of the standardised rows
    dof: np.ndarray  # (k,)
    log_det: np.ndarray  # (k,) minus half the logarithms of the determinants of the scales
    constant: np.ndarray  # (k,) the part of log densities that does not depend on the row


class Rows(NamedTuple):
    """A block of standardised rows."""

    Z: np.ndarray  # (n, d)
    cache: dict[str, Any]  # the last distances, and the parameters they were computed with


class Latent(NamedTuple):
    """Expectations under the posterior of u; the sums are those of `StudentTSums`."""

    u: Any  # (n, k) E[u]
    sum_log_u: np.ndarray  # (k,)
    entropy: np.ndarray  # (k,)
    inverse_dof: np.ndarray  # (k,)
    likelihood: np.ndarray  # (k, 1 + factors)


@stored("statistics.StudentT")
@dataclass(frozen=True)
class StudentTSums(Stats):
    """Sums over rows, with responsibilities r and the posterior of u; x are standardised rows."""

    weight: Any  # (k,) of w r
    sum_u: Any  # (k,) of w r E[u]
    sum_ux: Any  # (k, d) of w r E[u] x
    sum_uxx: Any  # by form, of w r E[u] x x'
    sum_log_u: Any  # (k,) of w r E[log u]
    entropy: Any  # (k,) of w r H(u)
    inverse_dof: Any  # (k,) of w r / nu
    likelihood: Any  # (k, 1 + factors) of w r log p(x), with nu and with nu times `FACTORS`


def initial_latent(weight: np.ndarray) -> Latent:
    """Expectations before the first M-step: E[u] = 1, and E[log u] as with `INITIAL_DOF` degrees of freedom."""
    zeros, likelihood = np.zeros(len(weight)), np.zeros((len(weight), 1 + len(FACTORS)))
    return Latent(1.0, -weight * log_minus_digamma(np.array(0.5 * INITIAL_DOF)), zeros, zeros, likelihood)


def posterior(
    squares: np.ndarray, kernel: np.ndarray, dof: np.ndarray, d: int, resp: np.ndarray, weight: np.ndarray
) -> Latent:
    """Expectations for rows with these squared Mahalanobis distances and log kernels (n, k), without likelihoods."""
    finite = np.isfinite(dof)
    nu = np.where(finite, dof, 1.0)
    shape = 0.5 * (nu + d)
    u = (2.0 * shape) / (nu + squares) if finite.all() else np.where(finite, 2.0 * shape / (nu + squares), 1.0)
    log_rate = weight * np.log(0.5 * nu) - np.einsum("ij,ij->j", resp, kernel) / shape
    sum_log_u = np.where(finite, weight * special.digamma(shape) - log_rate, 0.0)
    entropy = np.where(finite, shape + special.gammaln(shape) - shape * special.digamma(shape), 0.0)
    likelihood = np.zeros((len(dof), 1 + len(FACTORS)))
    return Latent(u, sum_log_u, weight * entropy + sum_log_u, weight / dof, likelihood)


def likelihoods(
    squares: np.ndarray, kernel: np.ndarray, dof: np.ndarray, d: int, resp: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """The sums of w r log p(x) without determinants, with `dof` and with `tried_dof`."""
    others = tried_dof(dof, d).T
    log_kernels = kernel, *(log_kernel(squares, nu, d) for nu in others)
    sums = (np.einsum("ij,ij->j", resp, values) for values in log_kernels)
    return np.stack([weight * log_constant(nu, d) + x for nu, x in zip((dof, *others), sums, strict=True)], axis=1)


def tried_dof(dof: np.ndarray, d: int) -> np.ndarray:
    """Degrees of freedom whose likelihood is computed as well (k, factors)."""
    # They stay inside the bounds, which EM steps reach on their own.
    smallest, largest = MIN_DOF * (1.0 + 1e-6), MAX_DOF_PER_COLUMN * d * (1.0 - 1e-6)
    return np.clip(np.multiply.outer(dof, FACTORS), smallest, largest)


def next_dof(excess: np.ndarray, d: int) -> np.ndarray:
    """Degrees of freedom of the next EM step, within their bounds; `excess` is the mean of E[u] - E[log u] - 1."""
    return np.maximum(2.0 * shape_of(excess, 0.5 * MAX_DOF_PER_COLUMN * d), MIN_DOF)


def with_jumps(
    params: StudentTParameters, before: StudentTParameters, stats: StudentTSums, likelihood: np.ndarray
) -> StudentTParameters:
    """`params` of an EM step with this `likelihood` (k,), or `before` with other degrees of freedom if better."""
    tried = stats.likelihood[:, 1:]
    best = tried.argmax(axis=1)[:, None]
    jumps = tried.max(axis=1) > np.maximum(likelihood, stats.likelihood[:, 0])
    dof = np.take_along_axis(tried_dof(before.dof, before.location.shape[1]), best, axis=1)[:, 0]
    pairs = zip(params, before._replace(dof=dof), strict=True)
    return StudentTParameters(*(np.where(jumps.reshape(-1, *[1] * (a.ndim - 1)), b, a) for a, b in pairs))


def fit_component(family: Any, features: Rows, w: np.ndarray) -> StudentTParameters:
    """Parameters of one component for rows with weights `w` (n,).

    The likelihood can have several maxima, such as a light-tailed one over all rows and a heavy-tailed one at each
    dense group of rows. If the degrees of freedom are estimated, the fit starts from both ends of their range and from
    the best of the dense groups, and returns the result with the highest likelihood.
    """
    first = family.estimate(family.statistics(None, features, w[:, None]))
    if family.dof is not None:
        return _maximized(family, features, w, first, False)[0]
    heavy, _ = _maximized(family, features, w, first._replace(dof=np.array([MIN_DOF])), False)
    starts = first, heavy, *_dense_groups(family, features, w, first)
    return max((_maximized(family, features, w, start, True) for start in starts), key=lambda fit: fit[1])[0]


def _dense_groups(family: Any, features: Rows, w: np.ndarray, first: StudentTParameters) -> list[StudentTParameters]:
    """The components with the highest likelihood among those that start at dense groups of a sample of the rows."""
    rows = np.flatnonzero(w > 0)
    rows = rows[:: -(-len(rows) // SAMPLE)]
    sample, weight = Rows(features.Z[rows], {}), w[rows]
    candidates = []
    for group in _groups(sample.Z):
        start = family.estimate(family.statistics(None, sample, (weight * group)[:, None]))
        start = start._replace(dof=np.array([MIN_DOF]))
        candidates.append(_maximized(family, sample, weight, start, True, SCREENING, approximate_best_dof))
    valid = [fit for fit in candidates if np.isfinite(fit[1]) and _is_wide(fit[0], first)]
    return [params for params, _ in sorted(valid, key=lambda fit: -fit[1])[:BEST]]


def _groups(Z: np.ndarray) -> Iterator[np.ndarray]:
    """Yield masks (n,) of groups of neighbouring rows, densest first, until each row is in one; for each group size."""
    n, d = Z.shape
    squares = cdist(Z, Z, "sqeuclidean")
    neighbours = np.argsort(squares, axis=1, kind="stable")
    for size in sorted({min(n, max(d + 2, -(-n // share))) for share in SHARES}):
        radius = squares[np.arange(n), neighbours[:, size - 1]]
        remaining = np.ones(n, bool)
        while remaining.any():
            row = int(np.argmin(np.where(remaining, radius, np.inf)))
            group = np.zeros(n, bool)
            group[neighbours[row, :size]] = True
            remaining &= ~group
            remaining[row] = False
            yield group


def _is_wide(params: StudentTParameters, first: StudentTParameters) -> bool:
    """Whether the scale is at least `MIN_SCALE` times that of all rows in every direction."""
    scale, total = params.scale[0], first.scale[0]
    if scale.ndim == 1:
        return bool((scale >= MIN_SCALE * total).all())
    deviation = np.sqrt(np.diag(total))
    return bool(np.linalg.eigvalsh(scale / np.multiply.outer(deviation, deviation))[0] >= MIN_SCALE)


def _maximized(
    family: Any,
    features: Rows,
    w: np.ndarray,
    params: StudentTParameters,
    free: bool,
    steps: int = STEPS,
    choose: Callable[[np.ndarray, np.ndarray, int], float] | None = None,
) -> tuple[StudentTParameters, float]:
    """A local maximum near `params` and its log-likelihood; `free` degrees of freedom are optimised in every step."""
    before, choose = -np.inf, best_dof if choose is None else choose
    for _ in range(steps):
        prepared = family.prepare(params)
        if free:
            dof = choose(family.distances(prepared, features)[0], w, features.Z.shape[1])
            params = params._replace(dof=np.array([dof]))
            prepared = family.prepare(params)
        likelihood = float(w @ family.scores(prepared, features)[:, 0])
        if likelihood - before <= TOL * abs(likelihood):
            break
        before, stats = likelihood, family.statistics(prepared, features, w[:, None])
        params = family.estimate(stats)._replace(dof=params.dof)
        params = params._replace(scale=params.scale * float(stats.weight[0] / stats.sum_u[0]))
    return params, likelihood


def best_dof(squares: np.ndarray, w: np.ndarray, d: int) -> float:
    """Maximum-likelihood degrees of freedom for rows with weights `w` and these squared distances (n, 1)."""
    total = w.sum()

    def cost(log_dof: float) -> float:
        dof = np.exp([log_dof])
        return -float(np.einsum("i,ij->", w, log_kernel(squares, dof, d)) + total * log_constant(dof, d)[0])

    bounds = np.log([MIN_DOF, MAX_DOF_PER_COLUMN * d])
    result = optimize.minimize_scalar(cost, bounds=bounds, method="bounded", options={"xatol": 1e-8})
    end = min(MIN_DOF, MAX_DOF_PER_COLUMN * d, key=lambda dof: cost(np.log(dof)))
    return end if cost(np.log(end)) <= result.fun else float(np.exp(result.x))


def approximate_best_dof(squares: np.ndarray, w: np.ndarray, d: int) -> float:
    """The same, on a grid of 20 values."""
    dof = np.geomspace(MIN_DOF, MAX_DOF_PER_COLUMN * d, 20)
    return float(dof[np.argmax(w @ log_kernel(squares, dof, d) + w.sum() * log_constant(dof, d))])


def tried_likelihoods(stats: StudentTSums, dof: np.ndarray, d: int) -> np.ndarray:
    """The sum of w r log p(x) over the rows (k,), if `dof` is one of `tried_dof`; else minus infinity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        same = np.isclose(dof[:, None], tried_dof(stats.weight / stats.inverse_dof, d), rtol=1e-9)
    return np.where(same, stats.likelihood[:, 1:], -np.inf).max(axis=1)


def log_density(stats: StudentTSums, dof: np.ndarray) -> np.ndarray:
    """The sum of w r E[log p(u)] + w r H(u) over the rows (k,)."""
    finite = np.isfinite(dof)
    half = 0.5 * np.where(finite, dof, 2.0)
    density = stats.weight * (half * np.log(half) - special.gammaln(half)) + (half - 1.0) * stats.sum_log_u
    return np.where(finite, density - half * stats.sum_u, 0.0) + stats.entropy


def log_constant(dof: np.ndarray, d: int) -> np.ndarray:
    """The constant of the log density of Student's t with `d` columns, without the determinant (k,)."""
    finite = np.isfinite(dof)
    half = 0.5 * np.where(finite, dof, 2.0)
    heavy = special.gammaln(0.5 * d) - special.betaln(half, 0.5 * d) - 0.5 * d * np.log(half)
    return np.where(finite, heavy, 0.0) - 0.5 * d * np.log(2.0 * np.pi)


def log_kernel(squares: np.ndarray, dof: np.ndarray, d: int) -> np.ndarray:
    """The part of the log density of Student's t that depends on the squared distances (n, k)."""
    finite = np.isfinite(dof)
    if not finite.all():
        nu = np.where(finite, dof, 1.0)
        return np.where(finite, -0.5 * (nu + d) * np.log1p(squares / nu), -0.5 * squares)
    kernel = squares / dof
    np.log1p(kernel, out=kernel)
    kernel *= -0.5 * (dof + d)
    return kernel
