"""Soft assignment to Gaussian components, and the sums that move them; what `cpu.gaussian` does, in NumPy.

Covariances come in four forms, and so do precision factors and second moments. A factor `U` is upper triangular with
``inverse(covariance) = U @ U.T``:

==========  ============  ====================================================
form        factor        sum_dxx
==========  ============  ====================================================
full        (k, d, d)     (k, d, d) of w r (x - m)(x - m)'
tied        (d, d)        (d, d) the same, summed over the components
diag        (k, d)        (k, d) the diagonals
spherical   (k,)          (k,) the traces
==========  ============  ====================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Weights = np.ndarray | None  # one a row; None: 1 for all


class Gaussians(NamedTuple):
    """Components as a kernel wants them."""

    form: str
    offset: np.ndarray  # (k,) log weight - d/2 log(2 pi) + log |U|
    means: np.ndarray  # (k, d) float64
    factor: np.ndarray  # by form, float64
    origin: np.ndarray  # (d,) a point amid the rows; compiled kernels count from it


class SoftSums(NamedTuple):
    """What one pass of EM adds up, about the means it was taken with; `r` is what the E-step makes of the posterior."""

    weight: np.ndarray  # (k,) of w r
    sum_dx: np.ndarray  # (k, d) of w r (x - m)
    sum_dxx: np.ndarray  # by form
    log_likelihood: float  # of w log p(x); of w log p(x, z) where z is known
    bound: float  # J: the same for soft r; of w log p(x, z) for the component chosen


def log_joint(X: np.ndarray, g: Gaussians) -> np.ndarray:
    """log p(x, z) of every row and component (n, k)."""
    squares = _squares(X.astype(np.float64, copy=False), g)
    return (g.offset - 0.5 * squares).astype(X.dtype, copy=False)


def em(
    X: np.ndarray,
    w: Weights,
    g: Gaussians,
    e_step: str = "soft",
    known: np.ndarray | None = None,
    u: np.ndarray | None = None,
) -> SoftSums:
    """One pass: posterior, and the sums under it.

    `e_step` is "soft", "hard" (all weight to the first of the likeliest components) or "stochastic" (to one drawn by
    the uniform numbers `u` (n,)). `known` (n,) holds the component of each row, -1 where it is unknown.
    """
    X = X.astype(np.float64, copy=False)
    w = np.broadcast_to(np.ones(1) if w is None else w, len(X))
    joint = g.offset - 0.5 * _squares(X, g)
    r, per_row, bound = posterior(joint, e_step, known, u)
    sums = weighted_sums(X, w[:, None] * r, g)
    return SoftSums(*sums, float(w @ per_row), float(w @ bound))


def posterior(
    joint: np.ndarray, e_step: str = "soft", known: np.ndarray | None = None, u: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the E-step makes of log p(x, z) (n, k): `r` (n, k), and of every row log p(x) and its share of the bound."""
    n, k = joint.shape
    if known is not None:
        others = (known >= 0)[:, None] & (known[:, None] != np.arange(k))
        joint = np.where(others, -np.inf, joint)
    most = joint.max(axis=1, keepdims=True)
    r = np.exp(joint - most)
    total = r.sum(axis=1, keepdims=True)
    r /= total
    per_row = most[:, 0] + np.log(total[:, 0])
    if e_step == "soft":
        return r, per_row, per_row
    if e_step == "hard":
        chosen = joint.argmax(axis=1)
    else:
        chosen = np.minimum((r.cumsum(axis=1) <= u[:, None]).sum(axis=1), k - 1)
    return (chosen[:, None] == np.arange(k)).astype(np.float64), per_row, joint[np.arange(n), chosen]


def weighted_sums(X: np.ndarray, resp: np.ndarray, g: Gaussians) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`weight`, `sum_dx` and `sum_dxx` about the means of `g` (its factor does not matter), for given w r (n, k)."""
    X = X.astype(np.float64, copy=False)
    k, d = g.means.shape
    sum_dx = np.empty((k, d))
    sum_dxx = np.zeros({"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[g.form])
    for j, (mean, r) in enumerate(zip(g.means, resp.T, strict=True)):
        dx = X - mean
        rdx = r[:, None] * dx
        sum_dx[j] = rdx.sum(axis=0)
        if g.form == "full":
            sum_dxx[j] = rdx.T @ dx
        elif g.form == "tied":
            sum_dxx += rdx.T @ dx
        elif g.form == "diag":
            sum_dxx[j] = (rdx * dx).sum(axis=0)
        else:
            sum_dxx[j] = (rdx * dx).sum()
    return resp.sum(axis=0), sum_dx, sum_dxx


def _squares(X: np.ndarray, g: Gaussians) -> np.ndarray:
    """|U'(x - m)|^2 of every row and component (n, k)."""
    squares = np.empty((len(X), len(g.means)))
    for j, mean in enumerate(g.means):
        factor = g.factor if g.form == "tied" else g.factor[j]
        y = (X - mean) @ factor if factor.ndim == 2 else (X - mean) * factor
        np.einsum("ij,ij->i", y, y, out=squares[:, j])
    return squares
