"""The objective of a fit is that of its definition, at the centers and labels that the fit returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie.distances import pairwise
from fuzz import estimators, tables, twins
from fuzz.call import attempt
from fuzz.finding import require_close
from fuzz.law import Case, law
from fuzz.laws.fits import fit

Array = np.ndarray[Any, Any]

LABELLED = ("KMeans", "MiniBatchKMeans", "BalancedKMeans", "BisectingKMeans")
NEAREST = ("KMedians", "SphericalKMeans", "FuzzyCMeans", "KMedoids")
MIXTURES = ("GaussianMixture", "Mixture")


def unscaled_problem(case: Case) -> tuple[Any, Array, Array]:
    """An estimator, a hostile table whose squares are representable, and weights of a moderate size."""
    n, d = tables.shape(case.draw)
    estimator = estimators.build(case, n)
    X = estimators.rows(case, estimator, tables.hostile(case.draw, n, d, scaled=False))
    w = case.draw.one_of(
        [np.ones(n), case.draw.rng.integers(1, 4, size=n).astype(float), case.draw.rng.random(n) + 0.1]
    )
    return estimator, X, w


def require_objective(actual: float, costs: Array, w: Array, X: Array, what: str, power: int) -> None:
    """The sum of the costs of all rows must agree up to the rounding of a row, to the `power` of the cost."""
    eps = float(np.finfo(X.dtype).eps)
    size = np.float64(np.abs(X).max(initial=0.0))
    allowed = 16.0 * w.sum() * X.shape[1] * (eps * size) ** power
    require_close(actual, w @ costs, what, 1e-9 if X.dtype == np.float64 else 1e-4, allowed)


@law(LABELLED, weight=4)
def inertia_is_the_sum_of_squares_to_the_center_of_each_row(case: Case) -> None:
    estimator, X, w = unscaled_problem(case)
    model = fit(estimator, X, w)
    costs = ((X.astype(float) - model.cluster_centers_[model.labels_].astype(float)) ** 2).sum(axis=1)
    require_objective(model.inertia_, costs, w, X, "inertia_", 2)


@law(NEAREST, weight=4)
def the_objective_is_the_sum_of_costs_at_the_centers(case: Case) -> None:
    estimator, X, w = unscaled_problem(case)
    model = fit(estimator, X, w)
    rows, centers = X.astype(float), np.asarray(model.cluster_centers_, dtype=float)
    if case.subject == "KMedoids":
        costs = attempt(pairwise, X, metric=model.metric)[:, model.medoid_indices_].astype(float).min(axis=1)
        require_objective(model.inertia_, costs, w, X, "inertia_", 2 if model.metric == "sqeuclidean" else 1)
    elif case.subject == "SphericalKMeans":
        costs = twins.cosine_costs(rows, centers).min(axis=1)
        require_objective(model.inertia_, costs, w, np.ones_like(X), "inertia_", 1)
    elif case.subject == "KMedians":
        costs = twins.lengths(rows[:, None] - centers, model.metric).min(axis=1)
        require_objective(model.objective_, costs, w, X, "objective_", 1)
    else:
        costs = twins.fuzzy_costs(((rows[:, None] - centers) ** 2).sum(axis=2), model.fuzzifier)
        require_objective(model.objective_, costs, w, X, "objective_", 2)


@law(MIXTURES, weight=3)
def the_log_likelihood_is_that_of_all_rows(case: Case) -> None:
    estimator, X, w = unscaled_problem(case)
    model = fit(estimator, X, w)
    values = attempt(model.score_samples, X).astype(float)
    rounding = 1e-9 if X.dtype == np.float64 else 1e-4
    require_close(model.log_likelihood_, w @ values, "log_likelihood_", 0.0, rounding * float(w @ (1 + np.abs(values))))
