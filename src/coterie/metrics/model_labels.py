"""The clusters of a fitted model for rows, and a warning if these are unlike the rows of the fit."""

import sys
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.protocols import FittedRows, can_predict, is_estimator, last_step, parameters_of, takes_series
from coterie.data import as_source, opened
from coterie.data.row_sample import sample_rows
from coterie.data.tensors import as_array
from coterie.errors import InputError, ParameterError, UnlikeRowsWarning

FEW = 5  # with fewer expected rows, it can be chance that a cluster has none
RARE = 0.1  # of the expected rows
SAMPLE = 1000  # rows whose distances are compared
FAR = 100.0  # times the mean cost of a row of the fit, where costs are often squares
OBJECTIVES = ("inertia_", "objective_")  # sums of costs over the rows of the fit


def check_fitted(model: Any) -> None:
    if isinstance(model, type) or not is_estimator(model):
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise ParameterError(f"model must be a fitted estimator; got {kind}")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ParameterError(f"model must be fitted: call {type(model).__name__}.fit(X) first") from None


def labels_by(model: Any, X: Any, n: int, sample_weight: Any = None) -> Any:
    """Return the cluster of each of the n rows of `X`, which may be the fitted rows or others.

    These are the predictions of the model, with two exceptions. Hierarchical models and `BalancedKMeans` assign the
    fitted rows differently from new ones: if `X` holds the fitted rows in the same order (according to `_is_of_fit`,
    which compares distances and weights), the result is `labels_`. An estimator without `predict` has only `labels_`:
    the number of rows and columns must be that of the fit. Whether the rows and their order are the same is not
    checked.
    """
    labels = getattr(model, "labels_", None)
    has_labels = labels is not None and len(labels) == n
    if has_labels and isinstance(model, FittedRows) and model._is_of_fit(X, sample_weight):
        return np.asarray(labels)
    if can_predict(model):
        return _predict(model, X, labels)
    if not has_labels:
        raise InputError(
            f"X has {n} rows, but model was fitted to {0 if labels is None else len(labels)} rows and cannot predict: "
            "pass the rows of the fit, or labels instead of the model"
        )
    if isinstance(model, BaseEstimator):
        validate_data(model, opened(X), reset=False, skip_check_array=True)
    return np.asarray(labels)


def _predict(model: Any, X: Any, labels: Any) -> Any:
    predicted = np.asarray(model.predict(X))
    metric = parameters_of(model).get("metric")
    if isinstance(metric, str) and metric == "precomputed" and not np.array_equal(predicted, labels):
        raise InputError(
            "X must be the matrix of distances that the model was fitted to, with rows and columns in the same order: "
            "distances between other rows do not determine their distances to the clusters"
        )
    check_alike(model, X, predicted)
    return predicted


def check_alike(model: Any, X: Any, predicted: Array) -> None:
    """Warn if rows with these predictions are unlike those of the fit, for example in other units.

    The reasons are that nearly all of them are in one cluster, and more than in the fit; or that most of them are far
    from all centers. None of them applies to a part of the rows of the fit.
    """
    fitted = getattr(last_step(model), "labels_", None)
    if fitted is None or len(fitted) == 0 or len(predicted) == 0:
        return
    fitted = np.asarray(as_array(fitted))
    reason = _one_cluster(fitted, predicted) or _far_from_centers(model, X, len(fitted))
    if reason:
        name = type(last_step(model)).__name__
        warnings.warn(
            f"X is unlike the rows that {name} was fitted to: {reason}. Pass rows in the units of the fit; or, for "
            "clusters of the fit and rows in other units, pass model.labels_ instead of the model",
            UnlikeRowsWarning,
            stacklevel=_level_of_caller(),
        )


def _level_of_caller() -> int:
    """The `stacklevel` of the function above that is not of coterie, so that each of its lines warns."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("coterie."):
        level, frame = level + 1, frame.f_back
    return level


def _one_cluster(fitted: Array, predicted: Array) -> str:
    """The reason if nearly all rows are in one cluster, or in none, and more than in the fit; otherwise empty."""
    names, counts = np.unique(predicted, return_counts=True)
    name, rows, n = names[counts.argmax()], int(counts.max()), len(predicted)
    before = int(np.count_nonzero(fitted == name))
    expected = n * (1 - before / len(fitted))  # rows of other clusters
    if rows <= before or expected < FEW or n - rows >= RARE * expected:
        return ""
    where = "in no cluster" if name == -1 else f"in cluster {name}"
    return f"{rows:,} of {count(n)} are {where}, and {before:,} of {len(fitted):,} in the fit"


def _far_from_centers(model: Any, X: Any, n_fitted: int) -> str:
    """The reason if rows cost far more than in the fit, and most are farther away than the centers from each other."""
    centers: Any = getattr(model, "cluster_centers_", ())
    objective = next((getattr(model, name) for name in OBJECTIVES if hasattr(model, name)), None)
    is_comparable = can_predict(model, "transform") and can_predict(model, "score") and not takes_series(model)
    if objective is None or not is_comparable or np.ndim(centers) != 2 or len(centers) < 2:
        return ""
    source = as_source(X)
    rows = source.pick(sample_rows(source.shape[0], SAMPLE)).X
    n = rows.shape[0]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        distance = float(np.median(np.asarray(model.transform(rows)).min(axis=1)))
        between = float(np.asarray(model.transform(centers)).max())
        cost = -float(model.score(rows)) / n
    if distance <= between or cost <= FAR * max(1.0, n_fitted / n) * float(objective) / n_fitted:
        return ""
    return f"most of them are at {distance / between:.3g} times the largest distance between centers, or farther"
