"""Moments of Gaussians as one vector, by form; of a symmetric matrix, the diagonal and the entries above it."""

import numpy as np


def products(form: str, X: np.ndarray) -> np.ndarray:
    """Every row, followed by its products: of all pairs of columns, squares of all columns, or the sum of squares."""
    if form == "full":
        i, j = np.triu_indices(X.shape[1])
        return np.concatenate([X, X[:, i] * X[:, j]], axis=1)
    return np.concatenate([X, X**2 if form == "diag" else (X**2).sum(axis=1, keepdims=True)], axis=1)


def moments(form: str, sums: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """First moments (k, d) and second moments by form, from sums of `products`."""
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
    """Coefficients of `products` in the log densities of components with these precisions, by form, and means."""
    if form == "full":
        i, j = np.triu_indices(means.shape[1])
        slope = (precision @ means[..., None])[..., 0]
        return np.concatenate([slope, precision[:, i, j] * np.where(i == j, -0.5, -1.0)], axis=1)
    wide = precision if form == "diag" else precision[:, None]
    return np.concatenate([wide * means, -0.5 * wide], axis=1)
