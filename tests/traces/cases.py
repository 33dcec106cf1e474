"""Models for traces, at least one of every kind."""

from functools import cache

import numpy as np
import pytest
from scipy import sparse

import zoo
from coterie import (
    BalancedKMeans,
    BayesianGaussianMixture,
    FuzzyCMeans,
    GaussianMixture,
    KMeans,
    KMedians,
    MiniBatchKMeans,
    Mixture,
    SphericalKMeans,
    TimeSeriesKMeans,
)
from coterie.data.memory import MemorySource
from coterie.datasets import make_blobs
from coterie.engines.local import Serial
from coterie.families import Poisson, Product

X = make_blobs(300, 3, centers=4, cluster_std=2.5, random_state=0)[0]
W = np.random.default_rng(1).exponential(size=300)
HOLES = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
HOLES = HOLES[~np.isnan(HOLES).all(axis=1)]
COUNTS = np.random.default_rng(3).poisson(np.repeat([[1.0, 8.0], [9.0, 2.0], [4.0, 4.0]], 100, axis=0)).astype(float)
HINTS = np.where(np.arange(300) % 10 == 0, np.random.default_rng(4).integers(0, 4, 300), -1)
RANDOM = {"init": "forgy", "n_init": 3, "random_state": 0}

CENTERS = {
    "kmeans": (KMeans(4, **RANDOM), X),
    "kmeans of float32": (KMeans(4, **RANDOM), X.astype(np.float32)),
    "kmeans with holes": (KMeans(4, missing="ignore", **RANDOM), HOLES),
    "kmeans of weighted columns": (KMeans(4, metric_weights=[1, 4, 0], **RANDOM), X),
    "kmeans with a frozen center": (KMeans(4, frozen_centers=X[:1], **RANDOM), X),
    "kmeans of sparse rows": (KMeans(4, **RANDOM), sparse.csr_array(np.where(np.abs(X) > 3, X, 0.0))),
    "kmeans after a search": (KMeans(4, search="fast", random_state=0), X),
    "kmeans to the optimum": (KMeans(3, random_state=0), X[:, :1].copy()),
    "spherical": (SphericalKMeans(4, **RANDOM), X),
    "medians": (KMedians(4, **RANDOM), X),
    "geometric medians": (KMedians(4, metric="l2", **RANDOM), X),
    "fuzzy": (FuzzyCMeans(4, **RANDOM), X),
    "sizes": (BalancedKMeans(4, **RANDOM), X),
    "sizes and links": (BalancedKMeans(4, size_min=50, must_link=[[0, 1], [2, 3]], cannot_link=[[0, 5]], **RANDOM), X),
    "series": (TimeSeriesKMeans(4, n_init=2, random_state=0), zoo.WAVES),
    "series of all lengths": (TimeSeriesKMeans(4, n_init=2, random_state=0), zoo.RAGGED),
}
SOFT = {
    "gaussians": (GaussianMixture(4, init_params="random", random_state=0), X),
    "gaussians of float32": (GaussianMixture(4, init_params="random_from_data", random_state=0), X.astype(np.float32)),
    "the best of three": (GaussianMixture(4, init_params="random_from_data", n_init=3, random_state=0), X),
    "gaussians of a form": (GaussianMixture(4, covariance_type="VEI", init_params="random", random_state=0), X),
    "tied gaussians": (GaussianMixture(4, covariance_type="tied", init_params="random", random_state=0), X),
    "gaussians without a penalty": (GaussianMixture(3, reg_covar=0, init_params="random", random_state=0), X),
    "gaussians with a prior": (GaussianMixture(4, prior="default", init_params="random", random_state=0), X),
    "gaussians with holes": (GaussianMixture(3, missing="ignore", init_params="random", random_state=0), HOLES),
    "gaussians of a mixture": (Mixture(4, "gaussian", init_params="random_from_data", random_state=0), X),
    "tails": (Mixture(3, "student_t", random_state=0, max_iter=40), X),
    "poisson": (Mixture(3, "poisson", random_state=0), COUNTS),
    "poisson with a concentration": (Mixture(3, "poisson", concentration=2.0, random_state=0), COUNTS),
    "product": (Mixture(3, Product([(Poisson(), [0]), ("gaussian", [1])]), random_state=0), COUNTS),
}
BELIEFS = {
    "beliefs": (BayesianGaussianMixture(6, random_state=0), X),
    "process": (Mixture("auto", "gaussian", random_state=0), X),
    "process of counts": (Mixture("auto", "poisson", random_state=0), COUNTS),
}
OTHERS = {
    "hard": (GaussianMixture(4, e_step="hard", init_params="random", random_state=0), X),
    "stochastic": (GaussianMixture(4, e_step="stochastic", max_iter=15, init_params="random", random_state=0), X),
    "hard poisson": (Mixture(3, "poisson", e_step="hard", random_state=0), COUNTS),
    "accelerated": (GaussianMixture(4, accelerate=True, init_params="random_from_data", random_state=0), X),
    "batches": (MiniBatchKMeans(4, batch_size=64, random_state=0), X),
}
ALL = CENTERS | SOFT | BELIEFS | OTHERS
weights = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def over(table):
    return pytest.mark.parametrize("name", table)


def weights_of(rows, weighted):
    return W[: rows.shape[0]] if weighted else None


@cache
def traced(name, weighted=False):
    estimator, rows = ALL[name]
    return anew(estimator).fit_trace(rows, weights_of(rows, weighted))


def anew(estimator):
    return type(estimator)(**estimator.get_params(deep=False))


def much(trace):
    return (1e-11 if trace.rows.dtype == np.float64 else 3e-6) * np.abs(trace.objectives).max()


def in_thirds():
    """A source of all rows in three parts, and an engine."""
    return MemorySource(X, None, chunk_rows=100), Serial()
