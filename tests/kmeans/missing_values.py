"""Rows with missing values, and K-means of them by its definition."""

import numpy as np
import pytest

from coterie import KMeans, seeding

# NumPy kernels; compiled kernels
SIZES = pytest.mark.parametrize("n, d, k", [(90, 3, 4), (4000, 10, 6)], ids=["small", "large"])
STARTS = tuple(seeding.METHODS)


def groups(n, d, k, seed=0, apart=4.0):
    """Rows around k centers, and their labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[labels], labels


def with_missing(X, share=0.3, seed=1):
    """Each value is missing with probability `share`, except for one value of every row."""
    rng = np.random.default_rng(seed)
    is_missing = rng.random(X.shape) < share
    is_missing[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    return np.where(is_missing, np.nan, X).astype(X.dtype)


def rows_with_missing(n, d, k, share=0.3, seed=0):
    return with_missing(groups(n, d, k, seed)[0], share)


def squares(X, centers, v=1.0):
    difference = np.asarray(X, np.float64)[:, None] - np.asarray(centers, np.float64)
    return (v * np.where(np.isnan(difference), 0.0, difference) ** 2).sum(axis=2)


def means(X, w, labels, default):
    """Mean of each cluster and column over the rows that have a value; `default` if none has."""
    result = np.array(default, np.float64)
    for j in range(len(result)):
        for t in range(X.shape[1]):
            rows = (labels == j) & ~np.isnan(X[:, t])
            if w[rows].sum() > 0:
                result[j, t] = np.average(X[rows, t].astype(np.float64), weights=w[rows])
    return result


def kmeans_ignoring_missing(k, **options):
    return KMeans(k, missing="ignore", **({"random_state": 0} | options))
