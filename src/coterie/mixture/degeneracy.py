"""Degenerate components of Gaussian mixtures: on too few rows, or without variance in some direction."""

from __future__ import annotations

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


def degeneracy(
    model: GaussianEM, rows: int, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, unit: np.ndarray
) -> np.ndarray:
    """2 if a component has too few rows, 1 if one is flat in some direction, else 0.

    weights (..., k), means (..., k, d), covariances (..., k, d, d), and the scale of the columns `unit` (d,). A
    component that shares shape and orientation with the others needs fewer rows than one with its own covariance. A
    flat component is thinner than the mixture is in any direction. Unless it has few rows, it must also be much thinner
    in one direction than in others: a small round cluster is not flat. A component with a weight of at least `LARGE`
    is flat only if its covariance is at the floor of `reg_covar`. So is one that shares its whole covariance.
    """
    d = covariances.shape[-1]
    minimum_rows = required_rows(model.structure.name, d)
    flat = 0.0 if minimum_rows == 1.5 else FLAT
    offset = means - weights[..., None, :] @ means
    total = (weights[..., None, None] * covariances).sum(axis=-3)
    total = total + np.swapaxes(weights[..., None] * offset, -1, -2) @ offset
    is_thin = np.zeros(covariances.shape[:-2], bool)
    for size in (np.ones_like(unit), unit):
        scale = np.outer(size, size)
        smallest = np.linalg.eigvalsh(total / scale)[..., :1]
        is_thin |= np.linalg.eigvalsh(covariances / scale)[..., 0] < flat * smallest
    whiten = np.linalg.inv(np.linalg.cholesky(total / scale + 1e-12 * np.eye(d)))[..., None, :, :]
    values = np.linalg.eigvalsh(whiten @ (covariances / scale) @ np.swapaxes(whiten, -1, -2))
    at_floor = values[..., 0] < 20 * model.reg_covar
    has_collapsed = (values[..., 0] < flat * values[..., -1]) & (weights < LARGE) | at_floor
    counts = weights * rows
    is_flat = is_thin & (has_collapsed | (counts < 5 * minimum_rows)) | (at_floor & (flat == 0))
    return np.where((counts < minimum_rows).any(axis=-1), 2, is_flat.any(axis=-1))


def degeneracy_of_fit(model: GaussianEM, rows: int, c: Components) -> int:
    """The same for fitted components."""
    matrices = forms.dense(model.form, c.covariances, *c.means.shape)
    return int(degeneracy(model, rows, c.weights, c.means, matrices, model.unit))
