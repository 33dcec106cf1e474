"""Groups of very different sizes, and the cost of an assignment."""

import numpy as np


def groups(n, d, k, seed=0, apart=4.0):
    """Groups of very different sizes."""
    rng = np.random.default_rng(seed)
    share = np.arange(1.0, k + 1) ** 2
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[rng.choice(k, p=share / share.sum(), size=n)]


def cost_of(X, labels, centers, w=None):
    squares = ((np.asarray(X, np.float64) - np.asarray(centers, np.float64)[labels]) ** 2).sum(axis=1)
    return float(squares @ (np.ones(len(squares)) if w is None else w))
