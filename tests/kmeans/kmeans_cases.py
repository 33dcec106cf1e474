"""Rows to cluster, the cases that tests run over, and K-means by its definition."""

import numpy as np
import pytest

from coterie import KMeans, MiniBatchKMeans

STARTS = ["k-means++", "forgy", "random", "random_partition", "farthest"]
BOTH = pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
SINGLE = pytest.mark.parametrize("dtype", [np.float64, np.float32])
# NumPy kernels are used for up to 131072 multiply-adds, compiled kernels for more; large k * d uses bounds.
SIZES = pytest.mark.parametrize("n, d, k", [(90, 2, 4), (4000, 8, 5), (3000, 8, 20)], ids=["small", "large", "bounds"])


def squares(X, centers):
    """Squared distances in float64, column by column."""
    total = np.zeros((len(X), len(centers)))
    for x, c in zip(np.asarray(X, np.float64).T, np.asarray(centers, np.float64).T, strict=True):
        total += (x[:, None] - c) ** 2
    return total


def objective(X, centers, weight=None):
    return float(
        np.average(squares(X, centers).min(axis=1), weights=weight) * (len(X) if weight is None else sum(weight))
    )


def groups(n, d, k, seed=0, apart=4.0):
    """`n` rows in `k` overlapping groups."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[rng.integers(k, size=n)]


def islands():
    """Three well separated groups of 20 rows, and their means."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [100, 0], [0, 100]], 20, axis=0)
    return X, X.reshape(3, 20, 2).mean(axis=1)


def in_order(centers):
    return centers[np.lexsort(centers.T)]
