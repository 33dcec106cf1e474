"""Fits of every kind, interrupted so that a checkpoint remains."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import coterie
from persistence.fitted import COUNTS, HOLES, SERIES, SPARSE, X

MIXED = np.random.default_rng(0).normal(size=(130, 3))  # which nothing settles on at once
K = {"n_clusters": 6, "random_state": 0, "n_init": 2}
C = {"n_components": 3, "random_state": 0, "n_init": 2, "max_iter": 8}
ROUGH = "ignore:.*did not converge"
CASES = {  # name: estimator, rows
    "KMeans": (coterie.KMeans(**K), MIXED),
    "KMeans float32": (coterie.KMeans(**K, n_jobs=1), MIXED.astype(np.float32)),
    "KMeans sparse": (coterie.KMeans(**K), SPARSE),
    "KMeans holes": (coterie.KMeans(**K, missing="ignore"), HOLES),
    "KMeans scaled": (coterie.KMeans(**K, metric_weights=[1, 2, 0], frozen_centers=X[:1]), MIXED),
    "KMeans chance": (coterie.KMeans(4, n_init=2, random_state=None), MIXED),
    "KMeans search": (coterie.KMeans(**K, search="thorough", search_budget=600), MIXED),
    "SphericalKMeans": (coterie.SphericalKMeans(**K, search="none"), MIXED),
    "KMedians": (coterie.KMedians(**K, search="none"), MIXED),
    "KMedians l2": (coterie.KMedians(**K, metric="l2", search="none"), MIXED),
    "KMedians search": (coterie.KMedians(**K, search="thorough"), MIXED),
    "FuzzyCMeans": (coterie.FuzzyCMeans(**K, max_iter=8, search="none"), MIXED),
    "BalancedKMeans": (coterie.BalancedKMeans(**K, must_link=[(0, 1)]), MIXED),
    "TimeSeriesKMeans": (coterie.TimeSeriesKMeans(3, random_state=0, n_init=2), SERIES),
    "GaussianMixture": (coterie.GaussianMixture(**C, init_params="random"), MIXED),
    "GaussianMixture EVE": (coterie.GaussianMixture(**C, covariance_type="EVE", init_params="random"), MIXED),
    "GaussianMixture hard": (coterie.GaussianMixture(**C, e_step="hard", init_params="random"), MIXED),
    "GaussianMixture stochastic": (coterie.GaussianMixture(**C, e_step="stochastic"), MIXED),
    "GaussianMixture accelerated": (coterie.GaussianMixture(**C, accelerate=True, init_params="random"), MIXED),
    "BayesianGaussianMixture": (coterie.BayesianGaussianMixture(**C), MIXED),
    "Mixture": (coterie.Mixture(family="poisson", **C, init_params="random"), COUNTS),
    "Mixture sparse": (coterie.Mixture(family="multinomial", **C, init_params="random"), SPARSE),
    "Mixture student": (coterie.Mixture(family="student_t", **C), MIXED),
    "Mixture auto": (coterie.Mixture("auto", "poisson", random_state=0), COUNTS),
    "MiniBatchKMeans": (coterie.MiniBatchKMeans(4, batch_size=16, random_state=0), MIXED),
}


class CutShortError(Exception):
    pass


def cut_after(calls):
    left = [calls]

    def callback(progress):
        left[0] -= 1
        if left[0] < 0:
            raise CutShortError

    return callback


def cut_short(model, rows, path, calls=3):
    """A checkpoint of that model after this number of iterations."""
    with pytest.raises(CutShortError):
        clone(model).set_params(checkpoint=path, callback=cut_after(calls)).fit(rows)
    assert path.exists()


def results(model):
    return {name: value for name, value in vars(model).items() if name not in model.get_params()}
