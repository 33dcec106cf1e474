"""Trees for tests."""

from __future__ import annotations

import numpy as np
from scipy.cluster import hierarchy as scipy_tree

METHODS = ["single", "complete", "average", "weighted", "ward", "centroid", "median"]


def rows(n, seed=0):
    """Normal rows."""
    return np.random.default_rng(seed).normal(size=(n, 3))


def tree(n, method, seed=0):
    """SciPy's tree of normal rows."""
    return scipy_tree.linkage(rows(n, seed), method)


def chain(n):
    """The deepest tree there is, one leaf joining at every merge."""
    steps = np.arange(1, n)
    return np.stack([np.concatenate([[0], np.arange(n, 2 * n - 2)]), steps, steps, steps + 1], axis=1).astype(float)


def same_partition(a, b):
    """Whether two lists of labels are equal up to the numbers of the clusters."""
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))
