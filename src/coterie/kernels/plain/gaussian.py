"""E-step of Gaussian mixtures in NumPy: posteriors, and the sums that the M-step needs.

Covariances, precision factors and second moments have one of four forms. A factor `U` is upper triangular with
``inverse(covariance) = U @ U.T``:

==========  ============  ====================================================
form        factor        sum_dxx
==========  ============  ====================================================
full        (k, d, d)     (k, d, d) of w r (x - m)(x - m)'
tied        (d, d)        (d, d) the same, added over all components
diag        (k, d)        (k, d) the diagonals
spherical   (k,)          (k,) the traces
==========  ============  ====================================================
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

Weights = np.ndarray | None  # (n,); None: 1 for all rows
SMALL = 1 << 16  # number of differences in memory at once, unless those of one component are more


class Gaussians(NamedTuple):
    """Parameters of the components."""

    form: str
    offset: np.ndarray  # (k,) log weight - d/2 log(2 pi) + log |U|
    means: np.ndarray  # (k, d) float64
    factor: np.ndarray  # see above, float64
    origin: np.ndarray  # (d,) a point near the rows, which compiled kernels subtract


class SoftSums(NamedTuple):
    """Sums of one pass of EM about the current means; `r` are the responsibilities."""

    weight: np.ndarray  # (k,) of w r
    sum_dx: np.ndarray  # (k, d) of w r (x - m)
    sum_dxx: np.ndarray  # see above
    log_likelihood: float  # of w log p(x), or of w log p(x, z) if the component z is known
    bound: float  # the same for soft r; otherwise of w log p(x, z) for the selected component


def log_joint(X: np.ndarray, g: Gaussians) -> np.ndarray:
    """log p(x, z) of each row and component (n, k), in the dtype of the rows; float64 if some are out of its range."""
    joint = g.offset - 0.5 * _squares(X, g)
    with np.errstate(over="ignore"):
        rounded = joint.astype(X.dtype, order="C", copy=False)
    return rounded if np.array_equal(np.isfinite(rounded), np.isfinite(joint)) else joint


def em(
    X: np.ndarray,
    w: Weights,
    g: Gaussians,
    e_step: str = "soft",
    known: np.ndarray | None = None,
    u: np.ndarray | None = None,
) -> SoftSums:
    """Sums of one pass of EM.

    `e_step` is "soft", "hard" (each row belongs to its most likely component, the first one if several are) or
    "stochastic" (to a random component, by the uniform numbers `u` (n,)). `known` (n,) are known components, -1 if
    unknown.
    """
    w = np.ones(len(X)) if w is None else w
    joint = g.offset - 0.5 * _squares(X, g)
    r, per_row, bound = posterior(joint, e_step, known, u)
    sums = weighted_sums(X, w[:, None] * r, g)
    return SoftSums(*sums, float(w @ per_row), float(w @ bound))


def posterior(
    joint: np.ndarray, e_step: str = "soft", known: np.ndarray | None = None, u: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Responsibilities (n, k) from log p(x, z) (n, k); log p(x) and the term of the bound for each row (n,)."""
    n, k = joint.shape
    if known is not None:
        is_excluded = (known >= 0)[:, None] & (known[:, None] != np.arange(k))
        joint = np.where(is_excluded, -np.inf, joint)
    maximum = joint.max(axis=1, keepdims=True)
    r = np.exp(joint - maximum)
    total = r.sum(axis=1, keepdims=True)
    r /= total
    per_row = maximum[:, 0] + np.log(total[:, 0])
    if e_step == "soft":
        return r, per_row, per_row
    if e_step == "hard":
        component = joint.argmax(axis=1)
    else:
        component = np.minimum((r.cumsum(axis=1) <= u[:, None]).sum(axis=1), k - 1)
    return (component[:, None] == np.arange(k)).astype(np.float64), per_row, joint[np.arange(n), component]


def weighted_sums(X: np.ndarray, resp: np.ndarray, g: Gaussians) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`weight`, `sum_dx` and `sum_dxx` about the means of `g` for given w r (n, k); the factor of `g` is not used."""
    k, d = g.means.shape
    sum_dx = np.empty((k, d))
    sum_dxx = np.zeros({"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[g.form])
    ones = np.ones(len(X))  # products with it are faster than sums
    for some, dx in _differences(X, g.means):
        rdx = resp.T[some, :, None] * dx
        sum_dx[some] = ones @ rdx
        squares = rdx.swapaxes(1, 2) @ dx if g.form in ("full", "tied") else ones @ (rdx * dx)
        if g.form == "tied":
            sum_dxx += squares.sum(axis=0)
        else:
            sum_dxx[some] = squares.sum(axis=1) if g.form == "spherical" else squares
    return resp.sum(axis=0), sum_dx, sum_dxx


def _squares(X: np.ndarray, g: Gaussians) -> np.ndarray:
    """Squared Mahalanobis distances |U'(x - m)|^2 (n, k)."""
    squares, means = np.empty((len(g.means), len(X))), g.means
    if g.form == "tied":  # so that rounding of a far row is the same for all components
        X, means = (X - g.origin) @ g.factor, (means - g.origin) @ g.factor
    for some, y in _differences(X, means):
        if g.form != "tied":
            factor = g.factor[some]
            y = y @ factor if g.form == "full" else y * factor.reshape(len(factor), 1, -1)
        np.einsum("kij,kij->ki", y, y, out=squares[some])
    return squares.T


def _differences(X: np.ndarray, means: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Differences (m, n, d) of all rows from m of the means at once, and which means these are."""
    X = X.astype(np.float64, copy=False)
    step = max(1, SMALL // max(1, X.size))
    for first in range(0, len(means), step):
        some = slice(first, first + step)
        yield some, X - means[some, None]
