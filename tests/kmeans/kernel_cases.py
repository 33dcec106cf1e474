"""Rows and kernel matrices to cluster, and kernel K-means by its definition."""

from functools import partial

import numpy as np
import pytest
from sklearn.metrics import pairwise

from coterie.core import loop
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.kmeans.kernel_functions import Cosine, Linear, Polynomial, Rbf, Sigmoid

WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
NAMES = ["linear", "rbf", "poly", "sigmoid", "cosine"]
BY_NAME = pytest.mark.parametrize("kernel", NAMES)


def blobs(n=700, d=3, k=4, seed=0):
    """More rows than a part and a tile have."""
    rng = np.random.default_rng(seed)
    return 2 * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def apart(k=3, each=60, seed=0):
    """Well separated groups around a common mean."""
    rng = np.random.default_rng(seed)
    return 10 * np.repeat(np.eye(k), each, axis=0) + rng.normal(size=(k * each, k))


def some_labels(n, k, seed=0):
    return np.random.default_rng(seed).permutation(np.arange(n) % k)


def some_weights(n, weighted=True):
    return np.random.default_rng(5).exponential(size=n) if weighted else None


def indefinite(n=300, seed=0):
    """A symmetric matrix with as many negative eigenvalues as others."""
    K = np.random.default_rng(seed).normal(size=(n, n))
    return (K + K.T) / 2


def built(kernel, X):
    """Kernel object of the estimator."""
    mean, total = X.mean(axis=0), X.var(axis=0).sum()
    return {
        "linear": Linear(mean, 1.0), "rbf": Rbf(mean, 1 / total), "poly": Polynomial(1 / X.shape[1], 3, 1.0),
        "sigmoid": Sigmoid(1 / X.shape[1], 1.0), "cosine": Cosine(),
    }[kernel]  # fmt: skip


def gram(kernel, X, Y=None):
    """Kernel matrix of scikit-learn with the default options."""
    X = np.asarray(X, np.float64)
    Y = X if Y is None else np.asarray(Y, np.float64)
    gamma = {"gamma": 1 / X.var(axis=0).sum() if kernel == "rbf" else 1 / X.shape[1]}
    named = {"rbf": gamma, "poly": {**gamma, "degree": 3, "coef0": 1}, "sigmoid": {**gamma, "coef0": 1}}
    return pairwise.pairwise_kernels(X, Y, metric=kernel, **named.get(kernel, {}))


def squares_to_means(K, w, labels, k):
    """(n, k), straight from the definition."""
    share = np.eye(k)[labels] * w[:, None]
    share /= share.sum(axis=0)
    return np.diag(K)[:, None] - 2 * K @ share + np.einsum("ik,ij,jk->k", share, K, share, optimize=True)


def cost_of(K, w, labels, k):
    """Cost of a partition."""
    return float(w @ squares_to_means(K, w, labels, k)[np.arange(len(K)), labels])


def descent(model, X, w=None, rows=256, **how):
    source = MemorySource(X, w, chunk_rows=rows, **how)
    found = loop.fit(model, source, Serial(), rng=np.random.default_rng(0), max_iter=1000)
    return found, np.concatenate(Serial().map(partial(model.assign, found.params), source))
