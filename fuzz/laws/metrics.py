"""Metrics equal their plain definitions, scikit-learn, and themselves on repeated, scaled or relabelled rows."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn import metrics as sklearn_metrics

from coterie import metrics
from fuzz import tables, twins
from fuzz.call import attempt
from fuzz.finding import Rejected, require, require_close, require_finite, require_same
from fuzz.law import Case, law

Array = np.ndarray[Any, Any]

INTERNAL = ("bcss", "calinski_harabasz_score", "davies_bouldin_score", "dunn_score", "inertia", "silhouette_samples",
            "silhouette_score", "tss")  # fmt: skip
EXTERNAL = tuple(name for name in metrics.__all__ if name not in (*INTERNAL, "contingency_matrix", "dbcv_score"))
EXPONENT = {"bcss": 2, "inertia": 2, "tss": 2}  # of the scale of X, in the result


def subjects(names: Any) -> list[str]:
    return [f"metrics.{name}" for name in names]


def metric_of(case: Case) -> Any:
    return getattr(metrics, case.subject.partition(".")[2])


def two_labelings(case: Case) -> tuple[Array, Array]:
    n = case.draw.integer(2, 40)
    return case.draw.integers(0, case.draw.integer(0, 4), (n,)), case.draw.integers(0, case.draw.integer(0, 4), (n,))


def numbers(value: Any) -> Array:
    """The result of a metric as an array; of a matched confusion its accuracy."""
    return np.ravel(np.asarray(getattr(value, "accuracy", value), dtype=float))


def external_twin(name: str, a: Array, b: Array) -> float | tuple[float, ...] | None:
    """The same by a plain definition or by scikit-learn."""
    table = twins.contingency(a, b, np.ones(len(a)))
    plain = {
        "rand_score": lambda: twins.rand(a, b),
        "fowlkes_mallows_score": lambda: twins.fowlkes_mallows(a, b),
        "mutual_info_score": lambda: twins.mutual_information(table),
        "purity_score": lambda: twins.purity(table),
        "matched_confusion": lambda: twins.best_match(table) / table.sum(),
        "homogeneity_completeness_v_measure": lambda: sklearn_metrics.homogeneity_completeness_v_measure(a, b),
    }
    if name in plain:
        return plain[name]()
    return getattr(sklearn_metrics, name)(a, b) if hasattr(sklearn_metrics, name) else None


@law(subjects(EXTERNAL), weight=3)
def external_metrics_equal_their_definitions(case: Case) -> None:
    a, b = two_labelings(case)
    metric = metric_of(case)
    value = attempt(metric, a, b)
    expected = external_twin(metric.__name__, a, b)
    require_finite(numbers(value), metric.__name__)
    if expected is not None:
        require_close(numbers(value), numbers(expected), metric.__name__, 1e-8, 1e-9)


@law(subjects(EXTERNAL))
def external_weights_are_repeated_rows(case: Case) -> None:
    a, b = two_labelings(case)
    w = case.draw.integers(0, 3, (len(a),))
    w[0] = 1
    metric = metric_of(case)
    weighted = numbers(attempt(metric, a, b, sample_weight=w.astype(float)))
    require_close(weighted, numbers(attempt(metric, np.repeat(a, w), np.repeat(b, w))), "repeated rows", 1e-8, 1e-9)
    names = np.array(["delta", "alpha", "", "é", "b"])
    renamed, plain = numbers(attempt(metric, names[a], b + 7)), numbers(attempt(metric, a, b))
    require_close(renamed, plain, "labels renamed", 1e-9, 1e-12)


@law(["metrics.contingency_matrix"])
def contingency_matrices_are_those_of_scikit_learn(case: Case) -> None:
    a, b = two_labelings(case)
    expected = sklearn_metrics.cluster.contingency_matrix(a, b)
    require_same(attempt(metrics.contingency_matrix, a, b), expected, "contingency_matrix")
    sparse = attempt(metrics.contingency_matrix, a, b, sparse=True)
    require_same(sparse.toarray(), expected, "contingency_matrix(sparse=True)")


PLAIN = (tables.blobs, tables.grid, tables.far_from_origin)


def rows_and_labels(case: Case, kinds: Any = PLAIN) -> tuple[Array, Array]:
    """A table, and labels of at least two clusters with two rows each."""
    n, d = case.draw.integer(4, 60), case.draw.integer(1, 4)
    X = case.draw.one_of(kinds)(case.draw, n, d)
    labels = case.draw.rng.integers(case.draw.integer(2, 4), size=n)
    labels[:4] = [0, 0, 1, 1]
    return X, labels


def evaluated(metric: Any, X: Any, labels: Array, **options: Any) -> Array:
    """The metric of rows and labels; `tss` has no labels."""
    args = (X,) if metric is metrics.tss else (X, labels)
    return numbers(attempt(metric, *args, **options))


def internal_twin(name: str, X: Array, labels: Array) -> Any:
    ones, k, n = np.ones(len(X)), len(np.unique(labels)), len(X)
    total = twins.within_squares(X, np.zeros(n), ones)
    within = twins.within_squares(X, labels, ones)
    return {
        "tss": lambda: total,
        "inertia": lambda: within,
        "bcss": lambda: total - within,
        "calinski_harabasz_score": lambda: (total - within) / (k - 1) / (within / (n - k)),
        "davies_bouldin_score": lambda: twins.davies_bouldin(X, labels, ones),
        "dunn_score": lambda: twins.dunn(X, labels),
        "silhouette_samples": lambda: twins.silhouettes(X, labels),
        "silhouette_score": lambda: twins.silhouettes(X, labels).mean(),
    }[name]()


@law(subjects(INTERNAL), weight=3)
def internal_metrics_equal_their_definitions(case: Case) -> None:
    """Far from the origin too: the definition gets the rows less their first row, which subtracts exactly."""
    X, labels = rows_and_labels(case)
    metric = metric_of(case)
    value = evaluated(metric, X, labels)
    with np.errstate(all="ignore"):
        expected = numbers(internal_twin(metric.__name__, X - X[0], labels))
    if np.isfinite(expected).all():
        size = twins.within_squares(X, np.zeros(len(X)), np.ones(len(X))) if metric.__name__ == "bcss" else 1.0
        require_close(value, expected, metric.__name__, 1e-7, 1e-9 * size)


@law(subjects(INTERNAL), weight=2)
def internal_metrics_are_finite_on_any_table(case: Case) -> None:
    X, labels = rows_and_labels(case, tables.HOSTILE)
    metric = metric_of(case)
    w = tables.weights(case.draw, len(X))
    value = evaluated(metric, X, labels, sample_weight=w)
    if metric.__name__ in ("dunn_score", "calinski_harabasz_score", "davies_bouldin_score"):
        require(not np.isnan(value).any(), f"{metric.__name__} is NaN")  # infinite where clusters are single points
    else:
        require_finite(value, metric.__name__)
    if "n_jobs" in inspect.signature(metric).parameters:
        for n_jobs in (1, 3):
            require_same(evaluated(metric, X, labels, sample_weight=w, n_jobs=n_jobs), value, f"n_jobs={n_jobs}")


@law(subjects(name for name in INTERNAL if name != "silhouette_samples"))
def internal_weights_are_repeated_rows(case: Case) -> None:
    X, labels = rows_and_labels(case, [tables.blobs])
    w = case.draw.integers(0, 3, (len(X),))
    w[:4] = 1
    metric = metric_of(case)
    rows = np.repeat(np.arange(len(X)), w)
    weighted = evaluated(metric, X, labels, sample_weight=w.astype(float))
    require_close(weighted, evaluated(metric, X[rows], labels[rows]), "weights and repeated rows", 1e-7, 1e-9)


@law(subjects(INTERNAL))
def metrics_of_scaled_rows_differ_by_the_scale(case: Case) -> None:
    X, labels = rows_and_labels(case, [tables.blobs])
    p = case.draw.integer(-900, 900)
    metric = metric_of(case)
    power = EXPONENT.get(metric.__name__, 0)
    if not -1000 < power * p < 990:
        raise Rejected("the result is not representable")
    case.note(f"X * 2^{p}")
    scaled = evaluated(metric, np.ldexp(X, p), labels)
    require_close(scaled, np.ldexp(evaluated(metric, X, labels), power * p), f"of X * 2^{p}", 1e-9)
