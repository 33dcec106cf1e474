"""What the laws need to know of each estimator: random options, tables that suit it, and what it promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import coterie
from fuzz import tables
from fuzz.draw import Draw
from fuzz.law import Case

Array = np.ndarray[Any, Any]
Options = dict[str, Any]

STARTS = ("k-means++", "forgy", "random_partition", "farthest", "k-means||")
STRUCTURES = ("full", "tied", "diag", "spherical", "VEV", "EVE", "EEV", "VVI", "EII")
FAMILIES = ("gaussian", "student_t", "poisson", "bernoulli", "categorical", "multinomial", "exponential", "gamma",
            "von_mises_fisher")  # fmt: skip
METRICS = ("euclidean", "sqeuclidean", "manhattan", "chebyshev", "minkowski", "seuclidean", "mahalanobis", "cosine",
           "correlation", "hamming", "jaccard", "braycurtis", "canberra", "gower", "nan_euclidean")  # fmt: skip
SEARCHES = ("none", "auto", "thorough")


@dataclass(frozen=True)
class Kind:
    """An estimator as the laws see it."""

    options: Callable[[Draw, int], Options]  # random valid options, for a table of n rows
    labels_are_predictions: bool = True  # labels_ equals predict(X)
    history_falls: bool = False  # history_ is the objective of each iteration, which never rises
    has_engine: bool = True
    takes_start: bool = False  # init may be an array of centers
    scale_free: bool = True  # multiplying X by a power of two changes no label
    sparse: bool = False
    missing: bool = False


def clusters(draw: Draw, n: int) -> int:
    """A number of clusters for n rows: often small, sometimes all rows."""
    return draw.one_of([1, min(2, n), min(n, draw.integer(1, 8)), draw.integer(1, min(n, 20)), min(n, 20)])


def _centers(draw: Draw, n: int, **more: Any) -> Options:
    return {
        "n_clusters": clusters(draw, n),
        "init": draw.one_of(STARTS),
        "n_init": draw.one_of([1, 1, 2]),
        "max_iter": draw.one_of([1, 3, 30, 300]),
        "tol": draw.one_of([0.0, 1e-4]),
        **more,
    }


def _kmeans(draw: Draw, n: int) -> Options:
    search = draw.one_of(["none", "auto", "auto", "auto", "thorough"])
    budget = draw.one_of([1, 5]) if search == "thorough" else None
    return _centers(draw, n, search=search, search_budget=budget, algorithm=draw.one_of(["auto", "lloyd", "bounds"]))


def _balanced(draw: Draw, n: int) -> Options:
    return _centers(draw, n, size_min=draw.one_of([None, 0]), size_max=draw.one_of([None, n]))


def _mini_batch(draw: Draw, n: int) -> Options:
    return _centers(draw, n, max_iter=draw.one_of([1, 5]), batch_size=draw.one_of([1, 7, 64, 1024]))


def _bisecting(draw: Draw, n: int) -> Options:
    return _centers(draw, n, bisecting_strategy=draw.one_of(["biggest_inertia", "largest_cluster"]))


def _medians(draw: Draw, n: int) -> Options:
    return _centers(draw, n, metric=draw.one_of(["l1", "l2"]), search=draw.one_of(SEARCHES))


def _spherical(draw: Draw, n: int) -> Options:
    return _centers(draw, n, search=draw.one_of(SEARCHES))


def _fuzzy(draw: Draw, n: int) -> Options:
    search = draw.one_of(["none", "none", "auto"])
    return _centers(
        draw, n, search=search, fuzzifier=draw.one_of([1.01, 1.3, 2.0, 5.0, 60.0]), max_iter=draw.one_of([1, 3, 30])
    )


def _kernel(draw: Draw, n: int) -> Options:
    return {
        "n_clusters": clusters(draw, n),
        "kernel": draw.one_of(["rbf", "linear", "poly", "cosine", "sigmoid"]),
        "n_init": 1,
        "max_iter": draw.one_of([1, 30]),
        "approximation": draw.one_of(["auto", "exact"]),
    }


def _medoids(draw: Draw, n: int) -> Options:
    return {
        "n_clusters": clusters(draw, n),
        "metric": draw.one_of(METRICS),
        "search": draw.one_of(("none", "auto", "thorough")),
        "n_init": draw.one_of(["auto", 1]),
        "max_iter": draw.one_of([1, 100]),
    }


def _agglomerative(draw: Draw, n: int) -> Options:
    linkage = draw.one_of(["ward", "single", "complete", "average", "weighted", "centroid", "median"])
    metric = "euclidean" if linkage in ("ward", "centroid", "median") else draw.one_of(METRICS)
    return {"n_clusters": clusters(draw, n), "linkage": linkage, "metric": metric}


def _divisive(draw: Draw, n: int) -> Options:
    method = draw.one_of(["diana", "bisecting"])
    metric = "euclidean" if method == "bisecting" else draw.one_of(METRICS)
    return {"n_clusters": clusters(draw, n), "method": method, "metric": metric}


def _series(draw: Draw, n: int) -> Options:
    return {
        "n_clusters": min(n, draw.integer(1, 4)),
        "metric": draw.one_of(["dtw", "softdtw"]),
        "window": draw.one_of([None, 1, 0.3]),
        "n_init": 1,
        "max_iter": draw.one_of([1, 4]),
    }


def _gaussian(draw: Draw, n: int) -> Options:
    return {
        "n_components": min(n, draw.integer(1, 4)),
        "covariance_type": draw.one_of(STRUCTURES),
        "init_params": draw.one_of(["auto", "kmeans", "k-means++", "random", "random_from_data"]),
        "max_iter": draw.one_of([1, 5, 60]),
    }


def _bayesian(draw: Draw, n: int) -> Options:
    return {
        "n_components": min(n, draw.integer(1, 5)),
        "covariance_type": draw.one_of(["full", "tied", "diag", "spherical"]),
        "weight_concentration_prior_type": draw.one_of(["dirichlet_process", "dirichlet_distribution"]),
        "max_iter": draw.one_of([1, 5, 60]),
    }


def _mixture(draw: Draw, n: int) -> Options:
    family = draw.one_of(FAMILIES)
    return {"family": family, "n_components": min(n, draw.integer(1, 4)), "max_iter": draw.one_of([1, 5, 60])}


KINDS: dict[str, Kind] = {
    "KMeans": Kind(_kmeans, history_falls=True, takes_start=True, sparse=True, missing=True),
    "KMedians": Kind(_medians, history_falls=True, takes_start=True),
    "SphericalKMeans": Kind(_spherical, history_falls=True, takes_start=True, sparse=True),
    "FuzzyCMeans": Kind(_fuzzy, history_falls=True, takes_start=True),
    "BalancedKMeans": Kind(_balanced, labels_are_predictions=False, takes_start=True),
    "MiniBatchKMeans": Kind(_mini_batch, sparse=True),
    "BisectingKMeans": Kind(_bisecting),
    "KernelKMeans": Kind(_kernel, scale_free=False),
    "KMedoids": Kind(_medoids, has_engine=False),
    "TimeSeriesKMeans": Kind(_series, scale_free=False),
    "AgglomerativeClustering": Kind(_agglomerative, labels_are_predictions=False, has_engine=False),
    "DivisiveClustering": Kind(_divisive, labels_are_predictions=False, has_engine=False),
    "GaussianMixture": Kind(_gaussian, missing=True),
    "BayesianGaussianMixture": Kind(_bayesian),
    "Mixture": Kind(_mixture, scale_free=False),
}
ALL = tuple(KINDS)


def having(flag: str) -> tuple[str, ...]:
    """Names of the estimators of which that is true."""
    return tuple(name for name, kind in KINDS.items() if getattr(kind, flag))


def build(case: Case, n: int, **changed: Any) -> Any:
    """The estimator that is the subject of the case, with random options for n rows."""
    kind = KINDS[case.subject]
    kwargs: Options = {}
    if kind.has_engine:
        engines = ("serial", "threads") if case.engine == "both" else (case.engine,)
        kwargs["engine"] = case.draw.one_of(engines)
    if case.subject != "AgglomerativeClustering":  # which is not random
        kwargs["random_state"] = case.draw.integer(0, 99)
    kwargs["n_jobs"] = case.draw.one_of([1, 2, 3])
    estimator = getattr(coterie, case.subject)(**{**kind.options(case.draw, n), **kwargs, **changed})
    case.note(f"{estimator!r}".replace("\n", " "))
    return estimator


def rows(case: Case, estimator: Any, X: Array) -> Array:
    """`X` changed to values that the estimator takes, noted for the report."""
    if case.subject == "Mixture":
        X = in_support(estimator.family, X)
    case.note(f"X: {X.shape} of {X.dtype}, from {np.nanmin(X):g} to {np.nanmax(X):g}")
    return X


def in_support(family: str, X: Array) -> Array:
    """`X` changed to values that the family takes: counts, categories, or positive numbers."""
    largest = float(np.abs(X).max(initial=0.0)) or 1.0
    if family in ("poisson", "multinomial"):
        return np.round(np.abs(X) if largest < 1e15 else 9 * np.abs(X / largest))
    if family == "bernoulli":
        return (np.median(X, axis=0) < X).astype(X.dtype)
    if family == "categorical":
        return np.round(np.abs(X / largest) * 3)
    if family in ("exponential", "gamma"):
        return np.abs(X) + (largest if family == "gamma" else 0.0) * np.finfo(X.dtype).eps
    return X


def problem(case: Case, largest: int = 200, **changed: Any) -> tuple[Any, Array, Array | None]:
    """An estimator with random options, a hostile table and sample weights."""
    n, d = tables.shape(case.draw, largest)
    estimator = build(case, n, **changed)
    X = rows(case, estimator, tables.hostile(case.draw, n, d))
    w = tables.weights(case.draw, n)
    if w is not None:
        case.note(f"sample_weight: from {w.min():g} to {w.max():g}, {np.count_nonzero(w == 0)} zeros")
    return estimator, X, w


def benign_problem(case: Case, n: int = 60, **changed: Any) -> tuple[Any, Array]:
    """An estimator with random options, and a table of clusters on which every fit must succeed."""
    estimator = build(case, n, **changed)
    return estimator, rows(case, estimator, tables.benign(case.draw, n, case.draw.integer(2, 5)))


def results(model: Any) -> dict[str, Array]:
    """Fitted attributes that are numbers or arrays of numbers, by name."""
    numeric = {}
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            numeric.update(numbers_in(name, value))
    return numeric


def numbers_in(name: str, value: Any) -> dict[str, Array]:
    """All numbers and arrays of numbers in `value`, in its fields and items, by name."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return {name: value}
    if isinstance(value, float | int | np.number):
        return {name: np.asarray(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, list | tuple):
        value = dict(enumerate(value))
    elif hasattr(value, "__dataclass_fields__"):
        value = vars(value) if hasattr(value, "__dict__") else {}
    if isinstance(value, dict):
        return {key: v for part, each in value.items() for key, v in numbers_in(f"{name}.{part}", each).items()}
    return {}
