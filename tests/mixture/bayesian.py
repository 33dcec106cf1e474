"""Forms, starts and fits of variational mixtures."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

FORMS = ("full", "tied", "diag", "spherical")
MIXING = ("dirichlet_process", "dirichlet_distribution")


def start(n, k, seed=0):
    resp = np.random.default_rng(seed).random((n, k)) ** 3
    return resp / resp.sum(axis=1, keepdims=True)


def fit_quietly(model, X, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **how)
