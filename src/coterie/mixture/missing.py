"""EM where values are missing (NaN): rows count for what was observed of them, nothing is filled in.

Rows that lack the same columns are one pattern. Under a component the hidden columns are a linear function of the
observed ones plus noise whose covariance is the same for every row, so all that EM needs of a pattern follows from the
ordinary sums over its observed columns [1]_:

.. math:: E[x_h - m_h | x_o] = B (x_o - m_o), \\quad \\mathrm{cov}[x_h | x_o] = S_{hh} - B S_{oh}, \\quad
   B = S_{ho} S_{oo}^{-1}

Values must be missing at random: whether one is missing may depend on what was observed, not on the value itself.

.. [1] Ghahramani & Jordan (1994), Supervised learning from incomplete data via an EM approach, NIPS 6.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie import kernels
from coterie.kernels.plain.gaussian import Gaussians, SoftSums, Weights, posterior

LOG_2PI = float(np.log(2 * np.pi))


class Pattern(NamedTuple):
    """The rows of a chunk that lack the same columns."""

    rows: np.ndarray  # (m,) ascending
    observed: np.ndarray  # (o,) columns
    hidden: np.ndarray  # (d - o,) columns


class View(NamedTuple):
    """Components as the rows of one pattern see them. Full forms have a matrix a component, tied ones one for all."""

    marginal: Gaussians  # of the observed columns
    slope: np.ndarray | None  # (k or 1, h, o) the regression of hidden on observed columns; None: 0
    spare: np.ndarray  # the covariance it leaves: (k or 1, h, h); variances (k, h) of diag; (k,) of spherical


def patterns(X: np.ndarray) -> list[Pattern]:
    """The patterns of these rows: the complete rows first, then in an order that only the columns decide."""
    gaps = np.isnan(X)
    columns, incomplete = np.arange(X.shape[1]), gaps.any(axis=1)
    complete, rows = np.flatnonzero(~incomplete), np.flatnonzero(incomplete)
    found = [Pattern(complete, columns, columns[:0])] if len(complete) else []
    if len(rows):
        bits = np.packbits(gaps[rows], axis=1)
        keys = bits.view(np.dtype((np.void, bits.shape[1])))[:, 0]
        _, which, count = np.unique(keys, return_inverse=True, return_counts=True)
        members = np.split(rows[np.argsort(which, kind="stable")], np.cumsum(count)[:-1])
        found += [Pattern(mine, columns[~gaps[mine[0]]], columns[gaps[mine[0]]]) for mine in members]
    return found


def log_joint(X: np.ndarray, g: Gaussians, found: list[Pattern]) -> np.ndarray:
    """log p(observed part of x, z) of every row and component (n, k)."""
    k, covariances = len(g.offset), _covariances(g)
    joint = np.empty((len(X), k), X.dtype)
    for pattern in found:
        rows = _rows(X, pattern)
        joint[pattern.rows] = kernels.for_centers(rows, k).log_joint(rows, _view(g, covariances, pattern).marginal)
    return joint


def em(
    X: np.ndarray,
    w: Weights,
    g: Gaussians,
    found: list[Pattern],
    e_step: str = "soft",
    known: np.ndarray | None = None,
    u: np.ndarray | None = None,
) -> SoftSums:
    """One pass, as that of the kernels: the posterior given what was observed, and the expected sums under it."""
    k, covariances = len(g.offset), _covariances(g)
    weight, sum_dx, sum_dxx = np.zeros(k), np.zeros_like(g.means), np.zeros_like(g.factor)
    log_likelihood = bound = 0.0
    for pattern in found:
        view, rows = _view(g, covariances, pattern), _rows(X, pattern)
        own_w, own_known, own_u = (None if each is None else each[pattern.rows] for each in (w, known, u))
        sums = kernels.for_centers(rows, k).em(rows, own_w, view.marginal, e_step, own_known, own_u)
        weight += sums.weight
        log_likelihood += sums.log_likelihood
        bound += sums.bound
        _expect(sums, view, pattern, sum_dx, sum_dxx)
    return SoftSums(weight, sum_dx, sum_dxx, log_likelihood, bound)


def impute(X: np.ndarray, g: Gaussians, found: list[Pattern]) -> np.ndarray:
    """Rows with every missing value replaced by its expectation given what was observed of its row."""
    k, covariances = len(g.offset), _covariances(g)
    filled = X.copy()
    for pattern in found:
        if len(pattern.hidden) == 0:
            continue
        view, rows = _view(g, covariances, pattern), _rows(X, pattern).astype(np.float64, copy=False)
        r, _, _ = posterior(kernels.for_centers(rows, k).log_joint(rows, view.marginal))
        expected = r @ g.means[:, pattern.hidden]
        if view.slope is not None:
            for r_j, mean, slope in zip(r.T, view.marginal.means, _each(view.slope, k), strict=True):
                expected += r_j[:, None] * ((rows - mean) @ slope.T)
        filled[np.ix_(pattern.rows, pattern.hidden)] = expected
    return filled


def _expect(
    sums: SoftSums,  # in   over the observed columns
    view: View,  # in
    pattern: Pattern,  # in
    sum_dx: np.ndarray,  # i/o  (k, d)
    sum_dxx: np.ndarray,  # i/o  by form
) -> None:
    """Adds what the sums over the observed columns say of all columns."""
    form, o, h = view.marginal.form, pattern.observed, pattern.hidden
    sum_dx[:, o] += sums.sum_dx
    if len(h) == 0:
        sum_dxx += sums.sum_dxx
    elif form == "spherical":
        sum_dxx += sums.sum_dxx + len(h) * sums.weight * view.spare
    elif form == "diag":
        sum_dxx[:, o] += sums.sum_dxx
        sum_dxx[:, h] += sums.weight[:, None] * view.spare
    else:
        sum_dx[:, h] += (view.slope @ sums.sum_dx[:, :, None])[:, :, 0]
        squares = sums.sum_dxx
        weight = sums.weight[:, None, None] if form == "full" else sums.weight.sum()
        slope, spare = (view.slope, view.spare) if form == "full" else (view.slope[0], view.spare[0])
        across = slope @ squares
        sum_dxx[..., o[:, None], o] += squares
        sum_dxx[..., h[:, None], o] += across
        sum_dxx[..., o[:, None], h] += across.swapaxes(-2, -1)
        sum_dxx[..., h[:, None], h] += across @ slope.swapaxes(-2, -1) + weight * spare


def _view(g: Gaussians, covariances: np.ndarray, pattern: Pattern) -> View:
    o, h = pattern.observed, pattern.hidden
    if len(h) == 0:  # not by way of the covariance and back: complete rows get the very numbers they get elsewhere
        return View(g, None, covariances)
    slope, factor, spare = None, g.factor, covariances
    if g.form == "diag":
        factor, spare = g.factor[:, o], covariances[:, h]
    elif g.form != "spherical":
        lower = np.linalg.cholesky(covariances[:, o[:, None], o])
        factor = np.linalg.inv(lower).swapaxes(1, 2)
        shared = covariances[:, h[:, None], o] @ factor
        slope = shared @ factor.swapaxes(1, 2)
        spare = covariances[:, h[:, None], h] - shared @ shared.swapaxes(1, 2)
        factor = factor if g.form == "full" else factor[0]
    offset = g.offset - _log_scale(g.form, g.factor, g.means.shape[1]) + _log_scale(g.form, factor, len(o))
    means = np.ascontiguousarray(g.means[:, o])
    return View(Gaussians(g.form, offset, means, np.ascontiguousarray(factor), g.origin[o]), slope, spare)


def _log_scale(form: str, factor: np.ndarray, d: int) -> np.ndarray:
    """log |U| - d/2 log(2 pi): what a log density adds to half its square."""
    if form == "spherical":
        determinant = d * np.log(factor)
    else:
        diagonal = factor if form == "diag" else np.diagonal(factor, axis1=-2, axis2=-1)
        determinant = np.log(diagonal).sum(axis=-1)
    return determinant - 0.5 * d * LOG_2PI


def _covariances(g: Gaussians) -> np.ndarray:
    """(k, d, d) of full, (1, d, d) of tied components; the variances of the others, by form."""
    if g.form in ("diag", "spherical"):
        return g.factor**-2.0
    inverse = np.linalg.inv(g.factor if g.form == "full" else g.factor[None])
    return inverse.swapaxes(1, 2) @ inverse


def _rows(X: np.ndarray, pattern: Pattern) -> np.ndarray:
    """The observed part of the pattern's rows, contiguous; of a chunk without gaps the chunk itself."""
    if len(pattern.hidden) == 0:
        return X if len(pattern.rows) == len(X) else X[pattern.rows]
    return X[pattern.rows[:, None], pattern.observed]


def _each(matrices: np.ndarray, k: int) -> np.ndarray:
    return np.broadcast_to(matrices, (k, *matrices.shape[1:]))
