"""Time to an answer: a whole default fit of each library, in a warm process, and how good its result is.

Libraries do different amounts of work here, as their users meet them: read time and cost together. The cost is what a
method minimises, and 1 / the geometric mean of the density of the rows for a mixture. Density-based methods have none.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result

K = 6
MIXTURES = tuple(f"GaussianMixture {form}" for form in ("full", "diag", "tied", "spherical"))
METHODS = ("KMeans", *MIXTURES, "AgglomerativeClustering", "DBSCAN", "HDBSCAN", "KMedoids", "FuzzyCMeans")
SMALL = ("iris", "wine", "breast_cancer", "digits")
LARGE = {  # rows, columns, separation
    "blobs 5k x 8": (5_000, 8, data.SEPARATED),
    "cloud 20k x 16": (20_000, 16, 0.0),
    "blobs 100k x 16": (100_000, 16, data.SEPARATED),
}
ALL_PAIRS = ("AgglomerativeClustering", "DBSCAN", "HDBSCAN", "KMedoids")  # not on more than 5,000 rows
FITS = 3


def cases(tables: tuple[str, ...]) -> Iterator[Case]:
    for table in tables:
        for method in METHODS:
            if not (method in ALL_PAIRS and table in LARGE and LARGE[table][0] > 5_000):
                yield {"label": f"{method}, {table}", "method": method, "table": table, "dtype": "float64"}


def rows(table: str) -> np.ndarray:
    """A table with standardised columns."""
    if table in LARGE:
        n, d, separation = LARGE[table]
        return data.blobs(n, d, K, separation, dtype="float64")
    X = getattr(import_module("sklearn.datasets"), f"load_{table}")().data
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def of_estimators(package: str, lacks: tuple[str, ...] = ()) -> Any:
    """A fit by the estimator of that name; both libraries have the same names, with defaults of their own."""

    def fit(X: np.ndarray, plan: tuple[str, int]) -> Any:
        name, _, form = plan[0].partition(" ")
        if name in lacks:
            raise NotImplementedError(f"no {name}")
        home = package if package == "coterie" else "sklearn.mixture" if form else "sklearn.cluster"
        options: dict[str, Any] = {"covariance_type": form} if form else {}
        if name not in ALL_PAIRS or name == "KMedoids":
            options["random_state"] = plan[1]
        sizes = () if name in ("DBSCAN", "HDBSCAN") else (K,)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(import_module(home), name)(*sizes, **options).fit(X)

    return fit


def fasterpam(X: np.ndarray, plan: tuple[str, int]) -> Any:
    import kmedoids
    from scipy.spatial.distance import cdist

    if plan[0] != "KMedoids":
        raise NotImplementedError(f"no {plan[0]}")
    return kmedoids.fasterpam(cdist(X, X), K, random_state=plan[1])


def cmeans(X: np.ndarray, plan: tuple[str, int]) -> Any:
    import skfuzzy

    if plan[0] != "FuzzyCMeans":
        raise NotImplementedError(f"no {plan[0]}")
    return skfuzzy.cmeans(X.T, K, 2.0, error=1e-4, maxiter=300, seed=plan[1])  # it has no defaults for the last two


COMPETITORS = (
    Competitor("coterie", "coterie", of_estimators("coterie")),
    Competitor("scikit-learn", "sklearn", of_estimators("sklearn", ("KMedoids", "FuzzyCMeans"))),
    Competitor("kmedoids", "kmedoids", fasterpam),
    Competitor("scikit-fuzzy", "skfuzzy", cmeans),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: every fit has a seed of its own."""
    X, seeds = rows(case["table"]), count()
    return timed(
        lambda: competitor.fit(X, (case["method"], next(seeds))), FITS, lambda fitted: cost(case["method"], X, fitted)
    )


def cost(method: str, X: np.ndarray, fitted: Any) -> float:
    if method in MIXTURES:
        return float(np.exp(-fitted.score(X)))
    if method == "KMedoids":
        return float(getattr(fitted, "loss", None) or fitted.inertia_)
    if method in ("DBSCAN", "HDBSCAN"):
        return 0.0
    centers = fitted[0] if isinstance(fitted, tuple) else getattr(fitted, "cluster_centers_", None)
    if centers is None:
        centers = np.array([X[fitted.labels_ == j].mean(axis=0) for j in range(K)])
    squares = ((X[:, None] - centers) ** 2).sum(axis=2)
    if method == "FuzzyCMeans":
        squares = 1 / (1 / np.maximum(squares, 1e-300)).sum(axis=1, keepdims=True)
    return float(squares.min(axis=1).sum())


def run(options: Options) -> Result:
    tables = SMALL[:1] if options.quick else (*SMALL, *LARGE)
    return contest("bench_answer:measure", "time to an answer", list(cases(tables)), COMPETITORS, options, check="cost")


if __name__ == "__main__":
    main("answer", run)
