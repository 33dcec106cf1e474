"""EM with missing values (NaN): the likelihood is that of the observed values, and nothing is imputed.

Rows with the same missing columns form a pattern. Given a component, the missing columns are a linear function of the
observed ones plus noise with the same covariance for every row. So the statistics of a pattern follow from the ordinary
sums over its observed columns [1]_:

.. math:: E[x_h - m_h | x_o] = B (x_o - m_o), \\quad \\mathrm{cov}[x_h | x_o] = S_{hh} - B S_{oh}, \\quad
   B = S_{ho} S_{oo}^{-1}

Values must be missing at random: whether a value is missing may depend on observed values, but not on the value itself.

.. [1] Ghahramani & Jordan (1994), Supervised learning from incomplete data via an EM approach, NIPS 6.
"""

from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.families.scaled_gaussians import LOG_TWO_PI
from coterie.kernels.plain.gaussian import Gaussians, SoftSums, Weights, posterior


class Pattern(NamedTuple):
    """The rows of a chunk with the same missing columns."""

    rows: np.ndarray  # (m,) ascending
    observed: np.ndarray  # (o,) columns
    hidden: np.ndarray  # (d - o,) columns


class View(NamedTuple):
    """Components for one pattern. Full forms have a matrix for each component, tied forms one for all."""

    marginal: Gaussians  # of the observed columns
    slope: Any  # (k or 1, h, o) regression of hidden on observed columns; None: 0
    residual: np.ndarray  # covariance of the residuals: (k or 1, h, h); variances (k, h) of diag; (k,) of spherical


def patterns(X: np.ndarray) -> list[Pattern]:
    """The patterns of these rows: complete rows first, then in an order that depends only on the columns."""
    is_missing = np.isnan(X)
    columns, is_incomplete = np.arange(X.shape[1]), is_missing.any(axis=1)
    complete, incomplete = np.flatnonzero(~is_incomplete), np.flatnonzero(is_incomplete)
    result = [Pattern(complete, columns, columns[:0])] if len(complete) else []
    if len(incomplete):
        bits = np.packbits(is_missing[incomplete], axis=1)
        keys = bits.view(np.dtype((np.void, bits.shape[1])))[:, 0]
        _, codes, counts = np.unique(keys, return_inverse=True, return_counts=True)
        groups = np.split(incomplete[np.argsort(codes, kind="stable")], np.cumsum(counts)[:-1])
        result += [Pattern(rows, columns[~is_missing[rows[0]]], columns[is_missing[rows[0]]]) for rows in groups]
    return result


def log_joint(X: np.ndarray, g: Gaussians, patterns: list[Pattern]) -> np.ndarray:
    """log p(observed part of x, z) of each row and component (n, k)."""
    k, covariances = len(g.offset), _covariances(g)
    parts = []
    for pattern in patterns:
        rows = _rows(X, pattern)
        parts.append(kernels.for_centers(rows, k).log_joint(rows, _view(g, covariances, pattern).marginal))
    joint = np.empty((len(X), k), np.result_type(X.dtype, *parts))
    for pattern, part in zip(patterns, parts, strict=True):
        joint[pattern.rows] = part
    return joint


def em(
    X: np.ndarray,
    w: Weights,
    g: Gaussians,
    patterns: list[Pattern],
    e_step: str = "soft",
    known: np.ndarray | None = None,
    u: np.ndarray | None = None,
) -> SoftSums:
    """One E-step, as that of the kernels: posteriors given the observed values, and the expected sums."""
    k, covariances = len(g.offset), _covariances(g)
    weight, sum_dx, sum_dxx = np.zeros(k), np.zeros_like(g.means), np.zeros_like(g.factor)
    log_likelihood = bound = 0.0
    for pattern in patterns:
        view, rows = _view(g, covariances, pattern), _rows(X, pattern)
        rows_w, rows_known, rows_u = (None if each is None else each[pattern.rows] for each in (w, known, u))
        sums = kernels.for_centers(rows, k).em(rows, rows_w, view.marginal, e_step, rows_known, rows_u)
        weight += sums.weight
        log_likelihood += sums.log_likelihood
        bound += sums.bound
        _add_expected(sums, view, pattern, sum_dx, sum_dxx)
    return SoftSums(weight, sum_dx, sum_dxx, log_likelihood, bound)


def impute(X: np.ndarray, g: Gaussians, patterns: list[Pattern]) -> np.ndarray:
    """Rows with each missing value replaced by its expectation given the observed values of the row."""
    k, covariances = len(g.offset), _covariances(g)
    filled = X.copy()
    for pattern in patterns:
        if len(pattern.hidden) == 0:
            continue
        view, rows = _view(g, covariances, pattern), _rows(X, pattern).astype(np.float64, copy=False)
        r, _, _ = posterior(kernels.for_centers(rows, k).log_joint(rows, view.marginal))
        expected = r @ g.means[:, pattern.hidden]
        if view.slope is not None:
            slopes = np.broadcast_to(view.slope, (k, *view.slope.shape[1:]))
            for r_j, mean, slope in zip(r.T, view.marginal.means, slopes, strict=True):
                expected += r_j[:, None] * ((rows - mean) @ slope.T)
        filled[np.ix_(pattern.rows, pattern.hidden)] = expected
    return filled


def _add_expected(
    sums: SoftSums,  # in   over the observed columns
    view: View,  # in
    pattern: Pattern,  # in
    sum_dx: np.ndarray,  # i/o  (k, d)
    sum_dxx: np.ndarray,  # i/o  by form
) -> None:
    """Add the expected sums over all columns, from the sums over the observed columns."""
    form, o, h = view.marginal.form, pattern.observed, pattern.hidden
    sum_dx[:, o] += sums.sum_dx
    if len(h) == 0:
        sum_dxx += sums.sum_dxx
    elif form == "spherical":
        sum_dxx += sums.sum_dxx + len(h) * sums.weight * view.residual
    elif form == "diag":
        sum_dxx[:, o] += sums.sum_dxx
        sum_dxx[:, h] += sums.weight[:, None] * view.residual
    else:
        sum_dx[:, h] += (view.slope @ sums.sum_dx[:, :, None])[:, :, 0]
        squares = sums.sum_dxx
        weight = sums.weight[:, None, None] if form == "full" else sums.weight.sum()
        slope, residual = (view.slope, view.residual) if form == "full" else (view.slope[0], view.residual[0])
        cross = slope @ squares
        sum_dxx[..., o[:, None], o] += squares
        sum_dxx[..., h[:, None], o] += cross
        sum_dxx[..., o[:, None], h] += cross.swapaxes(-2, -1)
        sum_dxx[..., h[:, None], h] += cross @ slope.swapaxes(-2, -1) + weight * residual


def _view(g: Gaussians, covariances: np.ndarray, pattern: Pattern) -> View:
    o, h = pattern.observed, pattern.hidden
    if len(h) == 0:  # no inversion, so that complete rows have bitwise the same densities as without missing values
        return View(g, None, covariances)
    slope, factor, residual = None, g.factor, covariances
    if g.form == "diag":
        factor, residual = g.factor[:, o], covariances[:, h]
    elif g.form != "spherical":
        lower = np.linalg.cholesky(covariances[:, o[:, None], o])
        factor = np.linalg.inv(lower).swapaxes(1, 2)
        shared = covariances[:, h[:, None], o] @ factor
        slope = shared @ factor.swapaxes(1, 2)
        residual = covariances[:, h[:, None], h] - shared @ shared.swapaxes(1, 2)
        factor = factor if g.form == "full" else factor[0]
    offset = g.offset - _log_scale(g.form, g.factor, g.means.shape[1]) + _log_scale(g.form, factor, len(o))
    means = np.ascontiguousarray(g.means[:, o])
    return View(Gaussians(g.form, offset, means, np.ascontiguousarray(factor), g.origin[o]), slope, residual)


def _log_scale(form: str, factor: np.ndarray, d: int) -> np.ndarray:
    """log |U| - d/2 log(2 pi): the log of the normalising constant of a density."""
    if form == "spherical":
        determinant = d * np.log(factor)
    else:
        diagonal = factor if form == "diag" else np.diagonal(factor, axis1=-2, axis2=-1)
        determinant = np.log(diagonal).sum(axis=-1)
    return determinant - 0.5 * d * LOG_TWO_PI


def _covariances(g: Gaussians) -> np.ndarray:
    """Covariances (k, d, d) of full and (1, d, d) of tied components; variances of the others, by form."""
    if g.form in ("diag", "spherical"):
        return g.factor**-2.0
    inverse = np.linalg.inv(g.factor if g.form == "full" else g.factor[None])
    return inverse.swapaxes(1, 2) @ inverse


def _rows(X: np.ndarray, pattern: Pattern) -> np.ndarray:
    """The observed values of the rows of a pattern, contiguous; the chunk itself if it is complete."""
    if len(pattern.hidden) == 0:
        return X if len(pattern.rows) == len(X) else X[pattern.rows]
    return X[pattern.rows[:, None], pattern.observed]
