"""HDBSCAN and DBSCAN: random options, metrics and precomputed distances, on hostile and on plain tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import coterie
from coterie.distances import pairwise
from coterie.metrics import adjusted_rand_score
from fuzz import tables
from fuzz.call import attempt
from fuzz.draw import Draw
from fuzz.estimators import METRICS, results
from fuzz.finding import require, require_close, require_finite, require_same
from fuzz.law import Case, law
from fuzz.laws.fits import fit, require_same_results

BOTH = ("DBSCAN", "HDBSCAN")
Array = np.ndarray[Any, Any]


def radius(draw: Draw, X: Array) -> float | str:
    """A radius between distances of the table, or 'auto'."""
    if draw.happens(0.3) or len(X) < 2:
        return "auto"
    sample = X[draw.rng.permutation(len(X))[:20]].astype(float)
    with np.errstate(over="ignore"):
        typical = float(np.median(np.abs(sample - sample[:1]).max(axis=1)))
    return typical * draw.one_of([0.1, 0.5, 1.0]) if 0 < typical < np.inf else 0.5


def build(case: Case, X: Array, **changed: Any) -> Any:
    """The subject of the case with random options that suit the table."""
    draw, n = case.draw, len(X)
    options: dict[str, Any] = {"metric": draw.one_of(METRICS), "n_jobs": draw.one_of([1, 2, 3])}
    if case.subject == "DBSCAN":
        options |= {"eps": radius(draw, X), "min_samples": draw.one_of([1, 2, 5, draw.integer(1, n + 3)])}
    else:
        options |= {
            "min_cluster_size": draw.one_of([2, 5, draw.integer(2, n + 3)]),
            "min_samples": draw.one_of([None, 1, 3, draw.integer(1, n)]),
            "cluster_selection_epsilon": draw.one_of([0.0, 0.0, 0.5]),
            "max_cluster_size": draw.one_of([None, None, draw.integer(1, n)]),
            "cluster_selection_method": draw.one_of(["eom", "leaf"]),
            "allow_single_cluster": draw.happens(0.4),
        }
    estimator = getattr(coterie, case.subject)(**{**options, **changed})
    case.note(f"{estimator!r}".replace("\n", " "))
    return estimator


def hostile(case: Case) -> tuple[Any, Array, Array | None]:
    n, d = tables.shape(case.draw)
    X = tables.hostile(case.draw, n, d)
    case.note(f"X: {X.shape} of {X.dtype}, from {X.min():g} to {X.max():g}")
    return build(case, X), X, tables.weights(case.draw, n)


def plain(case: Case, **changed: Any) -> tuple[Any, Array]:
    """Rows without equal distances, so that rounding decides nothing."""
    X = tables.benign(case.draw, case.draw.integer(4, 80), case.draw.integer(1, 4))
    return build(case, X, **({"metric": case.draw.one_of(["euclidean", "manhattan", "chebyshev"])} | changed)), X


def require_same_partition(actual: Array, expected: Array, what: str) -> None:
    require_same(actual == -1, expected == -1, f"noise {what}")
    require(
        len(actual) == 0 or adjusted_rand_score(actual, expected) == 1,
        f"clusters {what}: {actual.tolist()}, {expected.tolist()}",
    )


@law(BOTH, weight=6)
def density_based_fits_are_finite_and_labels_are_predictions(case: Case) -> None:
    estimator, X, w = hostile(case)
    model = fit(estimator, X, w)
    k = model.n_clusters_
    require(model.labels_.shape == (len(X),), f"labels_ has shape {model.labels_.shape} for {len(X)} rows")
    used = np.unique(model.labels_[model.labels_ >= 0] if w is None else model.labels_[(model.labels_ >= 0) & (w > 0)])
    require_same(used, np.arange(k), "labels besides noise")
    for name, value in results(model).items():
        require_finite(value, name)
    require_same(attempt(model.predict, X), model.labels_, "predict(X) is not labels_")
    if case.subject == "HDBSCAN":
        for values in (model.probabilities_, model.outlier_scores_, model.cluster_persistence_):
            require(((values >= 0) & (values <= 1)).all(), f"shares: {values}")
        require(((model.probabilities_ == 0) == (model.labels_ == -1)).all(), "probability 0 is not noise")
        require(attempt(model.predict_proba, X).shape == (len(X), k), "shape of predict_proba")
        require(sorted(model.ordering_.tolist()) == np.flatnonzero(np.ones(len(X)) if w is None else w).tolist(),
                "ordering_ is not a permutation of the rows of positive weight")  # fmt: skip


@law(BOTH, weight=2)
def density_based_weights_are_repeated_rows(case: Case) -> None:
    estimator, X = plain(case)
    w = case.draw.rng.integers(0, 4, size=len(X))
    w[0] = 1
    rows = np.repeat(np.arange(len(X)), w)
    weighted, repeated = fit(clone(estimator), X, w.astype(float)), fit(clone(estimator), X[rows])
    require_same_partition(weighted.labels_[rows], repeated.labels_, "with weights and with repeated rows")
    if case.subject == "HDBSCAN":
        require_close(weighted.probabilities_[rows], repeated.probabilities_, "probabilities_", 1e-6, 1e-9)
        require_close(weighted.outlier_scores_[rows], repeated.outlier_scores_, "outlier_scores_", 1e-6, 1e-9)


@law(BOTH, weight=2)
def density_based_clusters_do_not_depend_on_the_order_of_the_rows(case: Case) -> None:
    """Only a border row of several clusters of DBSCAN does."""
    estimator, X = plain(case)
    order = case.draw.rng.permutation(len(X))
    straight, permuted = fit(clone(estimator), X), fit(clone(estimator), X[order])
    compared = np.arange(len(X))
    if case.subject == "DBSCAN":
        require_same(np.sort(order[permuted.core_sample_indices_]), straight.core_sample_indices_, "core rows")
        compared = np.flatnonzero(np.isin(order, straight.core_sample_indices_))
    require_same_partition(permuted.labels_[compared], straight.labels_[order][compared], "of permuted rows")


@law(BOTH, weight=2)
def a_power_of_two_changes_no_density_based_label(case: Case) -> None:
    estimator, X = plain(case)
    p = case.draw.integer(-900, 900)
    case.note(f"X * 2^{p}")
    scaled = clone(estimator)
    if case.subject == "DBSCAN" and estimator.eps != "auto":
        scaled.set_params(eps=float(np.ldexp(estimator.eps, p)))
    if case.subject == "HDBSCAN":
        epsilon = float(np.ldexp(estimator.cluster_selection_epsilon, p))
        scaled.set_params(cluster_selection_epsilon=epsilon)
    require_same(fit(scaled, np.ldexp(X, p)).labels_, fit(estimator, X).labels_, f"labels_ of X * 2^{p}")


@law(BOTH)
def density_based_fits_have_the_same_bits_in_any_number_of_threads_and_when_repeated(case: Case) -> None:
    estimator, X, w = hostile(case)
    model = fit(clone(estimator), X, w)
    require_same_results(fit(clone(estimator).set_params(n_jobs=case.draw.one_of([1, 2, 4])), X, w), model, "threads")
    again = fit(estimator, X[::-1])
    require_same_results(fit(again, X, w), model, "second fit")


@law(BOTH)
def loaded_density_based_models_have_the_same_bits(case: Case) -> None:
    estimator, X, w = hostile(case)
    model, path = fit(estimator, X, w), Path("density.safetensors")
    attempt(coterie.save, model, path, overwrite=True)
    loaded = attempt(coterie.load, path)
    require_same_results(loaded, model, "loaded model")
    require_same(loaded.predict(X), model.predict(X), "predictions of the loaded model")


@law(BOTH)
def precomputed_distances_give_the_same_density_based_clusters(case: Case) -> None:
    estimator, X = plain(case)
    D = pairwise(X, metric=estimator.metric)
    matrix = fit(clone(estimator).set_params(metric="precomputed"), D)
    require_same_partition(matrix.labels_, fit(estimator, X).labels_, "of a matrix of distances")
    require_same(matrix.predict(D), matrix.labels_, "predictions for precomputed distances")
