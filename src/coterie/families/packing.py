"""Moments of Gaussians as one row of numbers, by form: the diagonal of a matrix and what is above it, once each."""

from __future__ import annotations

import numpy as np


def products(form: str, X: np.ndarray) -> np.ndarray:
    """Every row, and its squares: of all pairs of columns, of each, or of all together."""
    if form == "full":
        i, j = np.triu_indices(X.shape[1])
        return np.concatenate([X, X[:, i] * X[:, j]], axis=1)
    return np.concatenate([X, X**2 if form == "diag" else (X**2).sum(axis=1, keepdims=True)], axis=1)


def moments(form: str, sums: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums of `products` as sums (k, d), and second moments by form."""
    first, second = sums[:, :d], sums[:, d:]
    if form == "diag":
        return first, second
    if form == "spherical":
        return first, second[:, 0]
    i, j = np.triu_indices(d)
    square = np.empty((len(sums), d, d))
    square[:, i, j] = square[:, j, i] = second
    return first, square


def natural(form: str, precision: np.ndarray, means: np.ndarray) -> np.ndarray:
    """What multiplies `products` in the log densities of components of these precisions, by form, and means (k, d)."""
    if form == "full":
        i, j = np.triu_indices(means.shape[1])
        slope = (precision @ means[..., None])[..., 0]
        return np.concatenate([slope, precision[:, i, j] * np.where(i == j, -0.5, -1.0)], axis=1)
    wide = precision if form == "diag" else precision[:, None]
    return np.concatenate([wide * means, -0.5 * wide], axis=1)
