r"""A Gaussian row of covariance :math:`\Sigma / u`, with u unseen, is a row of Student's t.

u has a Gamma density of shape and rate :math:`\nu / 2`. Given the row, at the Mahalanobis distance
:math:`\delta^{1/2}`, its shape is :math:`(\nu + d) / 2` and its rate :math:`(\nu + \delta) / 2`. For infinite
:math:`\nu` it is 1.

Where tails are light EM moves :math:`\nu` by no more than d in a step, and that often for hundreds of steps. So the
likelihood itself of a higher one and of a lower one is taken along: it adds up as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special
from scipy.spatial.distance import cdist

from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.families.gamma import log_less_digamma, shape_of
from coterie.kernels.plain.gaussian import Gaussians

FIRST = 2.0  # degrees of freedom before there are any: outliers should not shape what is to come
MOST = 100.0  # for each column, at most, that are estimated: with more it is all but a Gaussian
FEWEST = 1.0  # that are estimated: with fewer, a component of equal rows can be made ever likelier
LEAPS = np.array([0.6, 1.7])  # times as many are tried
STEPS, TOL = 1000, 1e-12  # of a fit of one component; the tolerance is relative
SAMPLE, SCREENING = 400, 20  # rows, and steps, by which dense groups of rows are compared as starting points
SHARES = (3, 8, 20)  # a dense group is a third of the rows, an eighth, or a twentieth
BEST = 2  # of these starting points that are fitted to all rows
THINNEST = 1e-10  # times the variances of all rows: a thinner scatter is one of equal rows, not of a group


@stored("parameters.StudentT")
class Tails(NamedTuple):
    """Parameters."""

    location: np.ndarray  # (k, d)
    scale: np.ndarray  # (k, d, d), or (k, d) the diagonals
    dof: np.ndarray  # (k,)


class Prepared(NamedTuple):
    """What a pass needs of them."""

    gaussians: Gaussians  # in the rows' units
    dof: np.ndarray  # (k,)
    log_det: np.ndarray  # (k,) minus half the logarithms of the determinants of the scales
    constant: np.ndarray  # (k,) what log densities have whatever the row


class Rows(NamedTuple):
    """A block of rows, in the rows' units."""

    Z: np.ndarray  # (n, d)
    memory: dict[str, Any]  # the last distances, and what they were taken with


class Latent(NamedTuple):
    """What the posterior of u has to say."""

    u: Any  # (n, k) E[u]
    sum_log_u: np.ndarray  # (k,)
    entropy: np.ndarray  # (k,)
    inverse_dof: np.ndarray  # (k,)
    likelihood: np.ndarray  # (k, 1 + leaps)


@stored("statistics.StudentT")
@dataclass(frozen=True)
class TailSums(Stats):
    """Sums under r and the posterior of u; x in the rows' units."""

    weight: Any  # (k,) of w r
    sum_u: Any  # (k,) of w r E[u]
    sum_ux: Any  # (k, d) of w r E[u] x
    sum_uxx: Any  # by form, of w r E[u] x x'
    sum_log_u: Any  # (k,) of w r E[log u]
    entropy: Any  # (k,) of w r H(u)
    inverse_dof: Any  # (k,) of w r / nu
    likelihood: Any  # (k, 1 + leaps) of w r log p(x), with nu and with those tried


def unknown(weight: np.ndarray) -> Latent:
    """Before there are components: u is 1, as unsure as with `FIRST` degrees of freedom."""
    nothing, none = np.zeros(len(weight)), np.zeros((len(weight), 1 + len(LEAPS)))
    return Latent(1.0, -weight * log_less_digamma(np.array(0.5 * FIRST)), nothing, nothing, none)


def posterior(
    squares: np.ndarray, kernel: np.ndarray, dof: np.ndarray, d: int, resp: np.ndarray, weight: np.ndarray
) -> Latent:
    """Of rows at these squared Mahalanobis distances (n, k), where `log_kernel` is `kernel`; no likelihoods yet."""
    finite = np.isfinite(dof)
    nu = np.where(finite, dof, 1.0)
    shape = 0.5 * (nu + d)
    u = (2.0 * shape) / (nu + squares) if finite.all() else np.where(finite, 2.0 * shape / (nu + squares), 1.0)
    log_rate = weight * np.log(0.5 * nu) - np.einsum("ij,ij->j", resp, kernel) / shape
    sum_log_u = np.where(finite, weight * special.digamma(shape) - log_rate, 0.0)
    own = np.where(finite, shape + special.gammaln(shape) - shape * special.digamma(shape), 0.0)
    return Latent(u, sum_log_u, weight * own + sum_log_u, weight / dof, np.zeros((len(dof), 1 + len(LEAPS))))


def likelihoods(
    squares: np.ndarray, kernel: np.ndarray, dof: np.ndarray, d: int, resp: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """The sums of w r log p(x), but for determinants: as they are, and with the degrees of freedom tried."""
    others = tried(dof, d).T
    kernels = kernel, *(log_kernel(squares, each, d) for each in others)
    sums = (np.einsum("ij,ij->j", resp, each) for each in kernels)
    return np.stack([weight * log_constant(nu, d) + x for nu, x in zip((dof, *others), sums, strict=True)], axis=1)


def tried(dof: np.ndarray, d: int) -> np.ndarray:
    """Degrees of freedom whose likelihood is taken along (k, leaps)."""
    most, fewest = MOST * d * (1.0 - 1e-6), FEWEST * (1.0 + 1e-6)  # the bounds themselves are where steps end
    return np.clip(np.multiply.outer(dof, LEAPS), fewest, most)


def likely(excess: np.ndarray, d: int) -> np.ndarray:
    """Degrees of freedom of EM's next step, within their bounds; `excess` is of E[u] - E[log u] above 1."""
    return np.maximum(2.0 * shape_of(excess, 0.5 * MOST * d), FEWEST)


def leaping(found: Tails, before: Tails, stats: TailSums, stepped: np.ndarray) -> Tails:
    """`found`, a step that reaches `stepped` (k,); of components that gain more by it, a leap from `before`."""
    leaps = stats.likelihood[:, 1:]
    best = leaps.argmax(axis=1)[:, None]
    leap = leaps.max(axis=1) > np.maximum(stepped, stats.likelihood[:, 0])
    dof = np.take_along_axis(tried(before.dof, before.location.shape[1]), best, axis=1)[:, 0]
    pairs = zip(found, before._replace(dof=dof), strict=True)
    return Tails(*(np.where(leap.reshape(-1, *[1] * (a.ndim - 1)), b, a) for a, b in pairs))


def fitted(family: Any, features: Rows, w: np.ndarray) -> Tails:
    """Parameters of one component for rows of weight `w` (n,).

    The likelihood can have several maxima, such as a light-tailed one over all rows and a heavy-tailed one at each
    dense group of rows. So unknown degrees of freedom start from both ends and from the best of the dense groups, and
    the likeliest result is returned.
    """
    first = family.estimate(family.statistics(None, features, w[:, None]))
    if family.dof is not None:
        return _climbed(family, features, w, first, False)[0]
    heavy, _ = _climbed(family, features, w, first._replace(dof=np.array([FEWEST])), False)
    starts = first, heavy, *_dense_groups(family, features, w, first)
    return max((_climbed(family, features, w, start, True) for start in starts), key=lambda fit: fit[1])[0]


def _dense_groups(family: Any, features: Rows, w: np.ndarray, first: Tails) -> list[Tails]:
    """The likeliest of components that begin at dense groups of a sample of the rows."""
    rows = np.flatnonzero(w > 0)
    rows = rows[:: -(-len(rows) // SAMPLE)]
    sample, weight = Rows(features.Z[rows], {}), w[rows]
    candidates = []
    for group in _groups(sample.Z):
        start = family.estimate(family.statistics(None, sample, (weight * group)[:, None]))
        start = start._replace(dof=np.array([FEWEST]))
        candidates.append(_climbed(family, sample, weight, start, True, SCREENING, roughly_likeliest))
    sound = [fit for fit in candidates if np.isfinite(fit[1]) and _is_thick(fit[0], first)]
    return [params for params, _ in sorted(sound, key=lambda fit: -fit[1])[:BEST]]


def _groups(Z: np.ndarray) -> Iterator[np.ndarray]:
    """Masks (n,) of groups of neighbouring rows, the densest first, until all rows are in one; for each size."""
    n, d = Z.shape
    squares = cdist(Z, Z, "sqeuclidean")
    neighbours = np.argsort(squares, axis=1, kind="stable")
    for size in sorted({min(n, max(d + 2, -(-n // share))) for share in SHARES}):
        reach = squares[np.arange(n), neighbours[:, size - 1]]
        left = np.ones(n, bool)
        while left.any():
            row = int(np.argmin(np.where(left, reach, np.inf)))
            group = np.zeros(n, bool)
            group[neighbours[row, :size]] = True
            left &= ~group
            left[row] = False
            yield group


def _is_thick(params: Tails, first: Tails) -> bool:
    """Whether a scatter is no thinner in any direction than `THINNEST` times that of all rows."""
    scale, whole = params.scale[0], first.scale[0]
    if scale.ndim == 1:
        return bool((scale >= THINNEST * whole).all())
    deviation = np.sqrt(np.diag(whole))
    return bool(np.linalg.eigvalsh(scale / np.multiply.outer(deviation, deviation))[0] >= THINNEST)


def _climbed(
    family: Any,
    features: Rows,
    w: np.ndarray,
    params: Tails,
    free: bool,
    steps: int = STEPS,
    choose: Callable[[np.ndarray, np.ndarray, int], float] | None = None,
) -> tuple[Tails, float]:
    """A maximum near `params` and its log-likelihood; `free` degrees of freedom are chosen anew at every step."""
    before, choose = -np.inf, likeliest if choose is None else choose
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


def likeliest(squares: np.ndarray, w: np.ndarray, d: int) -> float:
    """The degrees of freedom under which rows of weight `w` at these squared distances (n, 1) are likeliest."""

    total = w.sum()

    def cost(log_dof: float) -> float:
        dof = np.exp([log_dof])
        return -float(np.einsum("i,ij->", w, log_kernel(squares, dof, d)) + total * log_constant(dof, d)[0])

    found = optimize.minimize_scalar(cost, bounds=np.log([FEWEST, MOST * d]), method="bounded", options={"xatol": 1e-8})
    ends = min(FEWEST, MOST * d, key=lambda dof: cost(np.log(dof)))
    return ends if cost(np.log(ends)) <= found.fun else float(np.exp(found.x))


def roughly_likeliest(squares: np.ndarray, w: np.ndarray, d: int) -> float:
    """The same, of a few degrees of freedom."""
    dof = np.geomspace(FEWEST, MOST * d, 20)
    return float(dof[np.argmax(w @ log_kernel(squares, dof, d) + w.sum() * log_constant(dof, d))])


def known(stats: TailSums, dof: np.ndarray, d: int) -> np.ndarray:
    """The sum of w r log p(x) over the rows (k,), if `dof` is one of those tried; else minus infinity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        same = np.isclose(dof[:, None], tried(stats.weight / stats.inverse_dof, d), rtol=1e-9)
    return np.where(same, stats.likelihood[:, 1:], -np.inf).max(axis=1)


def log_density(stats: TailSums, dof: np.ndarray) -> np.ndarray:
    """The sum of w r E[log p(u)] + w r H(u) over the rows (k,)."""
    finite = np.isfinite(dof)
    half = 0.5 * np.where(finite, dof, 2.0)
    each = stats.weight * (half * np.log(half) - special.gammaln(half)) + (half - 1.0) * stats.sum_log_u
    return np.where(finite, each - half * stats.sum_u, 0.0) + stats.entropy


def log_constant(dof: np.ndarray, d: int) -> np.ndarray:
    """Of the log density of Student's t of `d` columns, but for the determinant (k,)."""
    finite = np.isfinite(dof)
    half = 0.5 * np.where(finite, dof, 2.0)
    heavy = special.gammaln(0.5 * d) - special.betaln(half, 0.5 * d) - 0.5 * d * np.log(half)
    return np.where(finite, heavy, 0.0) - 0.5 * d * np.log(2.0 * np.pi)


def log_kernel(squares: np.ndarray, dof: np.ndarray, d: int) -> np.ndarray:
    """The rest of it (n, k)."""
    finite = np.isfinite(dof)
    if not finite.all():
        nu = np.where(finite, dof, 1.0)
        return np.where(finite, -0.5 * (nu + d) * np.log1p(squares / nu), -0.5 * squares)
    kernel = squares / dof
    np.log1p(kernel, out=kernel)
    kernel *= -0.5 * (dof + d)
    return kernel
