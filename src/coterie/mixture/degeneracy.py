"""Degenerate components of Gaussian mixtures: on too few rows, or without variance in some direction."""

import numpy as np

from coterie.families import forms
from coterie.mixture.gaussian_em import Components, GaussianEM

FLAT = 2e-3  # a component is thin if its smallest variance is less than this share of that of the mixture
LARGE = 0.1  # weight from which on a thin component is no accident


def required_rows(structure: str, d: int) -> float:
    """Number of rows that a component must exceed; it is smaller if components share shape or volume."""
    if "V" in (structure[1:] if d > 1 else structure):
        return d + 1.0
    return 2.5 if structure[0] == "V" else 1.5


def degeneracy(model: GaussianEM, rows: int, c: Components, raw: np.ndarray) -> np.ndarray:
    """2 if a component has too few rows, 1 if one is flat in some direction, else 0; for each mixture of `c`.

    `raw` (d,) is the unit of the original columns in the coordinates of `c`. A component that shares shape and
    orientation with the others needs fewer rows than one with its own covariance. A flat component is thinner than the
    mixture is in any direction, in original or standardised columns. Unless it has few rows, it must also be much
    thinner in one direction than in others: a small round cluster is not flat. A component with a weight of at least
    `LARGE` is flat only if its covariance is at the floor of `reg_covar`. So is one that shares its whole covariance.
    """
    minimum_rows = required_rows(model.structure.name, c.means.shape[-1])
    result = np.where((c.weights * rows < minimum_rows).any(axis=-1), 2, 0)
    undecided = (result == 0) & _may_be_thin(model, c, raw, minimum_rows)
    if undecided.any():
        weights, means = c.weights[undecided], c.means[undecided]
        covariances = forms.dense(model.form, c.covariances[undecided], *means.shape[-2:])
        result[undecided] = _is_flat(model, rows, weights, means, covariances, raw).any(axis=-1)
    return result


def degeneracy_of_fit(model: GaussianEM, rows: int, c: Components) -> int:
    """The same for one fitted mixture."""
    return int(degeneracy(model, rows, c, np.ones_like(model.unit)))


def _flat_share(minimum_rows: float) -> float:
    """`FLAT`, or 0 for components that share their whole covariance."""
    return 0.0 if minimum_rows == 1.5 else FLAT


def _may_be_thin(model: GaussianEM, c: Components, raw: np.ndarray, minimum_rows: float) -> np.ndarray:
    """A mask of mixtures, without those none of whose components can be flat.

    The smallest eigenvalue of a component is at least the inverse of the trace of its precision, and that of the
    mixture is at most its smallest variance. So most mixtures need no eigenvalues.
    """
    flat = _flat_share(minimum_rows)
    if flat == 0.0:
        return np.ones(c.weights.shape[:-1], bool)
    variances, precisions = forms.diagonals(model.form, c)
    offset = c.means - c.weights[..., None, :] @ c.means
    total = (c.weights[..., None] * (variances + offset**2)).sum(axis=-2)
    is_thin: np.ndarray = np.zeros(c.weights.shape, bool)
    for size in (raw, model.unit):
        is_thin |= flat * (total / size**2).min(axis=-1)[..., None] * (precisions * size**2).sum(axis=-1) > 1.0
    return np.asarray(is_thin.any(axis=-1))


def _is_flat(
    model: GaussianEM, rows: int, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, raw: np.ndarray
) -> np.ndarray:
    """A mask (..., k) of flat components; weights (..., k), means (..., k, d), covariances (..., k, d, d)."""
    minimum_rows = required_rows(model.structure.name, means.shape[-1])
    flat = _flat_share(minimum_rows)
    offset = means - weights[..., None, :] @ means
    total = (weights[..., None, None] * covariances).sum(axis=-3)
    total = total + np.swapaxes(weights[..., None] * offset, -1, -2) @ offset
    is_thin = np.zeros(covariances.shape[:-2], bool)
    for size in (raw, model.unit):
        scale = np.outer(size, size)
        smallest = np.linalg.eigvalsh(total / scale)[..., :1]
        is_thin |= np.linalg.eigvalsh(covariances / scale)[..., 0] < flat * smallest
    whiten = np.linalg.inv(np.linalg.cholesky(total / scale + 1e-12 * np.eye(len(raw))))[..., None, :, :]
    values = np.linalg.eigvalsh(whiten @ (covariances / scale) @ np.swapaxes(whiten, -1, -2))
    at_floor = values[..., 0] < 20 * model.reg_covar
    has_collapsed = (values[..., 0] < flat * values[..., -1]) & (weights < LARGE) | at_floor
    return is_thin & (has_collapsed | (weights * rows < 5 * minimum_rows)) | (at_floor & (flat == 0))
