"""Rows of counts, answers, words and categories to fit mixtures to."""

from __future__ import annotations

import numpy as np
import pytest

FAMILIES = ("poisson", "bernoulli", "multinomial", "categorical")
EACH = pytest.mark.parametrize("family", FAMILIES)


def planted(family, n=900, k=4, d=8, seed=0):
    """Rows of k components, and the component of each."""
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(k), rng.integers(k, size=n - k)]
    if family == "poisson":
        X = rng.poisson(rng.gamma(2.0, 2.0, (k, d))[labels])
    elif family == "bernoulli":
        X = rng.random((n, d)) < rng.beta(0.6, 0.6, (k, d))[labels]
    elif family == "multinomial":
        X = np.stack([rng.multinomial(30, p) for p in rng.dirichlet(np.full(d, 0.5), k)[labels]])
    else:
        until = rng.dirichlet(np.full(4, 0.6), (k, d)).cumsum(axis=-1)[labels]
        X = np.minimum((rng.random((n, d, 1)) > until).sum(axis=-1), 3)
    return X.astype(np.float64), labels
