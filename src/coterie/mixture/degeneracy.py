"""Degenerate components of Gaussian mixtures: on too few rows, or without variance in some direction."""

import numpy as np

from coterie.families import forms
from coterie.mixture.gaussian_em import Components, GaussianEM

SHARED = 0.5  # rows that a component must exceed if all share their covariance
FLAT = 2e-3  # a component is thin if its smallest variance is less than this share of that of the mixture
AT_FLOOR = 20.0  # a variance is at the floor of `reg_covar` if it is less than this multiple of it
LARGE = 0.1  # weight from which on a thin component is no accident


def required_rows(structure: str, d: int) -> float:
    """Number of rows that a component must exceed; it is smaller if components share shape or volume.

    If they share the whole covariance, the likelihood is bounded, and one row is a component.
    """
    if "V" in (structure[1:] if d > 1 else structure):
        return d + 1.0
    return 2.5 if structure[0] == "V" else SHARED


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
    undecided = (result == 0) & _may_be_thin(model, c, minimum_rows)
    if undecided.any():
        weights, means, covariances = c.weights[undecided], c.means[undecided], c.covariances[undecided]
        result[undecided] = _is_flat(model, rows, weights, means, covariances, raw).any(axis=-1)
    return result


def degeneracy_of_fit(model: GaussianEM, rows: int, c: Components) -> int:
    """The same for one fitted mixture."""
    return int(degeneracy(model, rows, c, np.ones_like(model.unit)))


def _flat_share(minimum_rows: float) -> float:
    """`FLAT`, or 0 for components that share their whole covariance."""
    return 0.0 if minimum_rows == SHARED else FLAT


def _may_be_thin(model: GaussianEM, c: Components, minimum_rows: float) -> np.ndarray:
    """A mask of mixtures, without those none of whose components can be flat.

    If the covariance of a component is nowhere less than a share of that of the mixture, none of its eigenvalues is.
    The smallest such share is at least the inverse of a trace, so most mixtures need no eigenvalues.
    """
    d = c.means.shape[-1]
    total = _total(model, c.weights, c.means, c.covariances)
    if model.form in ("full", "tied"):
        factor = c.factor if model.form == "full" else c.factor[..., None, :, :]
        traces = ((total[..., None, :, :] @ factor) * factor).sum(axis=(-1, -2))
    else:
        precision = np.broadcast_to((c.factor**2).reshape(*c.weights.shape, -1), (*c.weights.shape, d))
        traces = (precision * np.diagonal(total, axis1=-2, axis2=-1)[..., None, :]).sum(axis=-1)
    share = max(_flat_share(minimum_rows), AT_FLOOR * model.reg_covar)
    return np.asarray((share * traces > 1.0).any(axis=-1))


def _total(model: GaussianEM, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """Covariance of the mixture (..., d, d)."""
    d = means.shape[-1]
    offset = means - weights[..., None, :] @ means
    total = np.swapaxes(weights[..., None] * offset, -1, -2) @ offset
    if model.form == "tied":
        return total + covariances
    if model.form == "full":
        return total + (weights[..., None, :] @ covariances.reshape(*weights.shape, d * d)).reshape(total.shape)
    variances = (weights[..., None, :] @ covariances.reshape(*weights.shape, -1))[..., 0, :]
    return total + variances[..., None] * np.eye(d)


def _is_flat(
    model: GaussianEM, rows: int, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, raw: np.ndarray
) -> np.ndarray:
    """A mask (..., k) of flat components; weights (..., k), means (..., k, d), covariances by form."""
    minimum_rows = required_rows(model.structure.name, means.shape[-1])
    flat = _flat_share(minimum_rows)
    total = _total(model, weights, means, covariances)
    covariances = forms.dense(model.form, covariances, *means.shape[-2:])
    is_thin = np.zeros(covariances.shape[:-2], bool)
    for size in (raw, model.unit):
        scale = np.outer(size, size)
        smallest = np.linalg.eigvalsh(total / scale)[..., :1]
        is_thin |= np.linalg.eigvalsh(covariances / scale)[..., 0] < flat * smallest
    whiten = np.linalg.inv(np.linalg.cholesky(total / scale + 1e-12 * np.eye(len(raw))))[..., None, :, :]
    values = np.linalg.eigvalsh(whiten @ (covariances / scale) @ np.swapaxes(whiten, -1, -2))
    at_floor = values[..., 0] < AT_FLOOR * model.reg_covar
    has_collapsed = (values[..., 0] < flat * values[..., -1]) & (weights < LARGE) | at_floor
    return is_thin & (has_collapsed | (weights * rows < 5 * minimum_rows)) | (at_floor & (flat == 0))
