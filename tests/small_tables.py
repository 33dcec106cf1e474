"""Fits of small integer tables, each within a limit of CPU time: run as a script by `test_every_fit_ends`.

    python small_tables.py FIRST COUNT NAME...

prints the name of a fit and the number of its table before it begins. A fit that takes more than `LIMIT` seconds of CPU
time ends the process, with a traceback of where it was; a compiled kernel is interrupted, too.
"""

from __future__ import annotations

import faulthandler
import resource
import signal
import sys
import warnings
from contextlib import suppress
from itertools import product

import numpy as np

from coterie import (
    AgglomerativeClustering,
    BalancedKMeans,
    BayesianGaussianMixture,
    BisectingKMeans,
    DivisiveClustering,
    FuzzyCMeans,
    GaussianMixture,
    KernelKMeans,
    KMeans,
    KMedians,
    KMedoids,
    MiniBatchKMeans,
    Mixture,
    SphericalKMeans,
    TimeSeriesKMeans,
)
from coterie.diagnosis.dip import dip_test
from coterie.errors import InputError, ParameterError
from coterie.selection import g_means, x_means

LIMIT = 300  # seconds of CPU time, which other processes do not shorten: the exact solver may take a minute


def table(number):
    """Rows with ties, duplicates and constant columns, weights of which some are 0, and a number of clusters."""
    rng = np.random.default_rng(number)
    n, d = int(rng.integers(4, 41)), int(rng.integers(1, 4))
    kind = number % 4
    if kind == 0:  # copies of a few rows
        corners = rng.integers(0, 3, (int(rng.integers(2, 7)), d))
        X = corners[rng.integers(len(corners), size=n)]
    elif kind == 1:  # a grid
        X = rng.integers(0, int(rng.integers(2, 5)), (n, d))
    elif kind == 2:  # a few values far from the others
        X = rng.integers(0, 3, (n, d)) * np.where(rng.random((n, 1)) < 0.1, 1000, 1)
    else:  # one column is the other
        X = np.repeat(rng.integers(-2, 3, (n, 1)), d, axis=1)
    weights = (None, rng.integers(1, 4, n), rng.integers(0, 3, n), rng.integers(1, 4, n) * 0.1)[rng.integers(4)]
    if weights is not None and not weights.any():
        weights = None
    return X.astype(float), None if weights is None else weights.astype(float), int(rng.integers(2, 6))


def of(kind, name="n_clusters", **options):
    """A function that fits an estimator of that class; `name` is its parameter for the number of clusters."""

    def fit(X, w, k, seed):
        random_state = {"random_state": seed} if "random_state" in kind().get_params() else {}
        model = kind(**{name: k}, **options, **random_state)
        return model.fit(X) if w is None else model.fit(X, sample_weight=w)

    return fit


FITS = {
    "fast search": of(KMeans, search="fast", search_budget=2.0),
    "global search": of(KMeans, search="global", search_budget=2.0),
    "exact": of(KMeans, algorithm="exact"),
    "k-means||": of(KMeans, init="k-means||"),
    "mini-batch": of(MiniBatchKMeans, batch_size=8),
    "bisecting": of(BisectingKMeans),
    "balanced": of(BalancedKMeans),
    "kernel": of(KernelKMeans),
    "linear kernel": of(KernelKMeans, kernel="linear"),
    "sigmoid kernel": of(KernelKMeans, kernel="sigmoid"),
    "landmarks": of(KernelKMeans, approximation="nystrom"),
    "medians": of(KMedians),
    "geometric medians": of(KMedians, metric="euclidean"),
    "medoids": of(KMedoids),
    "medoid silhouettes": of(KMedoids, objective="silhouette"),
    "spherical": lambda X, w, k, seed: of(SphericalKMeans)(X + 3.0, w, k, seed),
    "fuzzy": of(FuzzyCMeans),
    "series": of(TimeSeriesKMeans),
    **{each: of(AgglomerativeClustering, linkage=each) for each in ("ward", "average", "centroid", "median", "single")},
    "divisive": of(DivisiveClustering),
    "Gaussian mixture": of(GaussianMixture, "n_components"),
    # its M-step is a loop of its own; the loops of the search are those of the Gaussian mixture above
    "EVE": of(GaussianMixture, "n_components", covariance_type="EVE", init_params="k-means++"),
    "Bayesian mixture": of(BayesianGaussianMixture, "n_components"),
    "categorical mixture": lambda X, w, k, seed: of(Mixture, "n_components", family="categorical")(X, w, k, seed),
    "Poisson mixture": lambda X, w, k, seed: of(Mixture, "n_components", family="poisson")(abs(X), w, k, seed),
    "Dirichlet process": lambda X, w, k, seed: of(Mixture, "n_components", family="poisson")(abs(X), w, "auto", seed),
    "x-means": lambda X, w, k, seed: x_means(X, sample_weight=w, random_state=seed),
    "g-means": lambda X, w, k, seed: g_means(X, sample_weight=w, random_state=seed),
    "dip": lambda X, w, k, seed: dip_test(X[:, 0]),
}


def check_finite(model):
    for name, value in vars(model).items() if hasattr(model, "get_params") else ():
        if name.endswith("_") and isinstance(value, np.ndarray | float) and np.asarray(value).dtype.kind == "f":
            assert not np.isnan(value).any(), name


def main(first, count, *names):
    faulthandler.register(signal.SIGXCPU, chain=True)
    warnings.simplefilter("ignore")
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    for name, number in product(names, range(int(first), int(first) + int(count))):
        spent = resource.getrusage(resource.RUSAGE_SELF)
        until = int(spent.ru_utime + spent.ru_stime) + LIMIT
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))
        print(f"{name}, table {number}", flush=True)
        with suppress(InputError, ParameterError):  # some tables are invalid for some fits
            check_finite(FITS[name](*table(number), number))
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
