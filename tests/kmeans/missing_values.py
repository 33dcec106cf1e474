"""Rows with holes, and K-means of them by its definition."""

import numpy as np
import pytest

from coterie import KMeans, seeding

# NumPy kernels; compiled kernels
SIZES = pytest.mark.parametrize("n, d, k", [(90, 3, 4), (4000, 10, 6)], ids=["small", "large"])
STARTS = tuple(seeding.METHODS)


def groups(n, d, k, seed=0, apart=4.0):
    """Rows about k places, and the place of each."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[labels], labels


def with_holes(X, share=0.3, seed=1):
    """Each value is missing with this chance, but one of every row."""
    rng = np.random.default_rng(seed)
    gaps = rng.random(X.shape) < share
    gaps[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    return np.where(gaps, np.nan, X).astype(X.dtype)


def gappy(n, d, k, share=0.3, seed=0):
    return with_holes(groups(n, d, k, seed)[0], share)


def squares(X, centers, v=1.0):
    difference = np.asarray(X, np.float64)[:, None] - np.asarray(centers, np.float64)
    return (v * np.where(np.isnan(difference), 0.0, difference) ** 2).sum(axis=2)


def means(X, w, labels, otherwise):
    """Of each cluster and column over the rows that have a value; where none has, what stands in `otherwise`."""
    made = np.array(otherwise, np.float64)
    for j in range(len(made)):
        for t in range(X.shape[1]):
            rows = (labels == j) & ~np.isnan(X[:, t])
            if w[rows].sum() > 0:
                made[j, t] = np.average(X[rows, t].astype(np.float64), weights=w[rows])
    return made


def observing(k, **options):
    return KMeans(k, missing="ignore", **({"random_state": 0} | options))
