"""How the fit to one table relates to the fit to another: repeated, scaled, rounded, permuted."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from fuzz import estimators, tables
from fuzz.estimators import having
from fuzz.finding import require, require_close, require_same
from fuzz.law import Case, law
from fuzz.laws.fits import fit

Array = np.ndarray[Any, Any]

TAKES_START = having("takes_start")
SCALE_FREE = having("scale_free")
ABSOLUTE = ("KernelKMeans", "TimeSeriesKMeans", "Mixture")  # rows have a unit for some of their options


def separated(case: Case, n: int, k: int) -> tuple[Array, Array]:
    """Clusters so far apart that rounding decides nothing, and a start with a row of each."""
    d = case.draw.integer(2, 5)
    centers = 50.0 * np.eye(k, max(d, k)) + case.draw.rng.normal(size=(k, max(d, k)))
    labels = np.r_[np.arange(k), case.draw.rng.integers(k, size=n - k)]
    X = centers[labels] + case.draw.rng.normal(size=(n, max(d, k)))
    return X, X[:k].copy()


def started(case: Case, n: int, k: int, start: Array) -> Any:
    """The subject of the case with `start` for its centers, and no random choices left."""
    changed: dict[str, Any] = {"n_clusters": k, "init": start, "n_init": 1, "max_iter": 30, "tol": 0.0}
    if case.subject == "KMeans":
        changed |= {"search": "none", "search_budget": None}
    if case.subject == "FuzzyCMeans":
        # A center on a row belongs to that row alone, and with a large m the row holds it there: rounding decides
        # whether the objective still falls, and the fit goes on. Beside the rows it does not.
        changed["init"] = start + 0.5
    if case.subject == "BalancedKMeans":
        changed |= {"size_min": None, "size_max": None}
    return estimators.build(case, n, **changed)


def objective(model: Any) -> float:
    return float(model.inertia_ if hasattr(model, "inertia_") else model.objective_)


@law([name for name in TAKES_START if name != "BalancedKMeans"])  # sizes of clusters count rows there
def weights_are_repeated_rows(case: Case) -> None:
    """A whole weight is the row that often; weight zero is no row."""
    n, k = case.draw.integer(8, 60), case.draw.integer(1, 3)
    X, start = separated(case, n, k)
    w = case.draw.rng.integers(0, 4, size=n).astype(float)
    w[:k] = 1.0
    estimator = started(case, n, k, start)
    weighted = fit(clone(estimator), X, w)
    rows = np.repeat(np.arange(n), w.astype(int))
    repeated = fit(clone(estimator), X[rows])
    require_same(weighted.labels_[rows], repeated.labels_, "labels_ with weights and with repeated rows")
    require_close(objective(weighted), objective(repeated), "objective", 1e-6)
    require_close(weighted.cluster_centers_, repeated.cluster_centers_, "cluster_centers_", 1e-6, 1e-5)


@law(TAKES_START)
def float32_is_close_to_float64(case: Case) -> None:
    n, k = case.draw.integer(8, 60), case.draw.integer(1, 3)
    X, start = separated(case, n, k)
    estimator = started(case, n, k, start)
    double, single = fit(clone(estimator), X), fit(clone(estimator), X.astype(np.float32))
    require(single.cluster_centers_.dtype == np.float32, f"centers of float32 rows: {single.cluster_centers_.dtype}")
    require_same(single.labels_, double.labels_, "labels_ of float32 and float64")
    require_close(objective(single), objective(double), "objective of float32 and float64", 1e-3)
    require_close(single.cluster_centers_, double.cluster_centers_, "cluster_centers_", 1e-3, 1e-2)


@law(TAKES_START)
def the_order_of_the_columns_does_not_matter(case: Case) -> None:
    n, k = case.draw.integer(8, 60), case.draw.integer(1, 3)
    X, start = separated(case, n, k)
    columns = case.draw.rng.permutation(X.shape[1])
    estimator = started(case, n, k, start)
    straight = fit(clone(estimator), X)
    permuted = fit(clone(estimator).set_params(init=estimator.init[:, columns]), X[:, columns])
    require_same(permuted.labels_, straight.labels_, "labels_ with permuted columns")
    require_close(permuted.cluster_centers_, straight.cluster_centers_[:, columns], "cluster_centers_", 1e-6, 1e-6)


@law((*SCALE_FREE, *ABSOLUTE), weight=2)
def a_power_of_two_changes_no_label(case: Case) -> None:
    """Multiplying all rows, or all weights, by 2^p changes the exponents of results and nothing else."""
    draw = case.draw
    n = draw.integer(4, 60)
    estimator = estimators.build(case, n)
    X = estimators.rows(case, estimator, tables.benign(draw, n, draw.integer(1, 4)))
    dtype = draw.one_of(["float64", "float64", "float32"])
    X = X.astype(dtype)
    w = draw.rng.integers(1, 4, size=n).astype(float)
    largest = tables.EXPONENTS[dtype]
    if "Mixture" in case.subject or getattr(estimator, "metric", "") == "sqeuclidean":
        largest //= 2  # covariances and squared distances must have exponents of their type
    p = 0 if case.subject in ABSOLUTE else draw.integer(-largest, largest)
    # A prior is worth a number of rows, so that weights have a scale.
    q = 0 if case.subject == "BayesianGaussianMixture" else draw.one_of([0, draw.integer(-900, 900)])
    case.note(f"X * 2^{p}, sample_weight * 2^{q}")
    plain = fit(clone(estimator), X, w)
    scaled = fit(clone(estimator), np.ldexp(X, p), np.ldexp(w, q))
    require_same(scaled.labels_, plain.labels_, f"labels_ of X * 2^{p} with weights * 2^{q}")
    if isinstance(getattr(plain, "cluster_centers_", None), np.ndarray) and plain.cluster_centers_.dtype.kind == "f":
        centers = scaled.cluster_centers_
        centers = centers if case.subject == "SphericalKMeans" else np.ldexp(centers, -p)
        require_close(centers, plain.cluster_centers_, "cluster_centers_", 1e-6, 1e-6)
