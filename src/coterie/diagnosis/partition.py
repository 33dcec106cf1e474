"""The clusters that `diagnose` checks: those of a fitted model, or given labels."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie.core.arguments import is_integer
from coterie.core.arrays import Array
from coterie.core.protocols import FittedRows, can_predict, is_estimator, parameters_of
from coterie.data import opened
from coterie.diagnosis.sample import Sample
from coterie.errors import InputError, ParameterError
from coterie.kmeans.time_series_kmeans import TimeSeriesKMeans
from coterie.metrics.labels import labels_of_rows


@dataclass(frozen=True)
class Partition:
    """The cluster of each row of the sample, and the assumptions of the model."""

    sample: Sample
    codes: Array  # (m,) index of the cluster; -1: in no cluster
    names: list[str]  # (k,) labels of the clusters, as the user knows them
    source: str  # where the clusters come from, such as 'KMeans'
    assumes_round: bool = True  # whether the model assumes round clusters
    assumes_equal: bool = True  # whether the model assumes clusters of equal width and weight
    minimises_inertia: bool = True
    all_codes: Array | None = None  # (n,) index of the cluster of all complete rows; None if only the sample has one
    random_state: int = 0  # that of the model, if it is a number

    @property
    def k(self) -> int:
        return len(self.names)

    @cached_property
    def members(self) -> list[Array]:
        """Indices of the rows of the sample in each cluster."""
        return [np.flatnonzero(self.codes == j) for j in range(self.k)]

    @cached_property
    def weight(self) -> Array:
        """Total weight of the rows in each cluster (k,)."""
        return np.bincount(self.codes[self.codes >= 0], self.sample.w[self.codes >= 0], self.k)

    @cached_property
    def variance_within(self) -> Array:
        """Variance of each column about the means of the clusters (d,)."""
        X, w = self.sample.X, self.sample.w
        is_member = self.codes >= 0
        squares = (X[is_member] - self.means[self.codes[is_member]]) ** 2
        return w[is_member] @ squares / w[is_member].sum()

    @cached_property
    def means(self) -> Array:
        """Mean of each cluster (k, d)."""
        X, w = self.sample.X, self.sample.w
        return np.array([w[index] @ X[index] / max(w[index].sum(), 1e-300) for index in self.members])


def partition_of(model: Any, X: Any, sample: Sample, sample_weight: Any = None) -> Partition:
    """Return the clusters of a fitted model, or of labels with one entry for each row of `X`."""
    if is_estimator(model):
        labels, source = labels_by(model, X, sample.n_given, sample_weight), type(model).__name__
    else:
        labels, source = model, "the given labels"
    encoded = labels_of_rows(labels, sample.n_given)
    codes, names = encoded.codes, [str(name) for name in encoded.names]
    noise = next((j for j, name in enumerate(names) if name in ("-1", "-1.0")), None)
    if noise is not None:  # other libraries use -1 for rows in no cluster
        codes = np.where(codes == noise, -1, codes - (codes > noise))
        names.pop(noise)
    sampled = codes[sample.rows]
    present = np.unique(sampled[sampled >= 0])
    new_code = np.full(len(names) + 1, -1)
    new_code[present] = np.arange(len(present))
    seed: Any = parameters_of(model).get("random_state") if is_estimator(model) else None
    return Partition(
        sample, new_code[codes[sample.rows]], [names[j] for j in present], source, *_assumptions(model),
        minimises_inertia=source in ("KMeans", "MiniBatchKMeans", "BisectingKMeans"),
        all_codes=new_code[codes[sample.complete]],
        random_state=int(seed) if is_integer(seed) else 0,
    )  # fmt: skip


def check_model(model: Any) -> None:
    """Raise an error if `model` is an estimator that is not fitted, or not fitted to rows; labels pass."""
    if not is_estimator(model):
        return
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ParameterError(f"model must be fitted: call {type(model).__name__}.fit(X) first") from None
    is_series = isinstance(model, TimeSeriesKMeans)
    if is_series or parameters_of(model).get("metric") == "precomputed":
        reason = "clusters time series" if is_series else "was fitted to precomputed distances"
        raise InputError(
            f"model is a {type(model).__name__} that {reason}: diagnose supports only models of rows of numbers"
        )


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
            "pass the rows of the fit"
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
    return predicted


def _assumptions(model: Any) -> tuple[bool, bool]:
    """Return whether the model assumes round clusters, and clusters of equal width and weight.

    Labels are treated like those of K-means.
    """
    parameters = parameters_of(model)
    if "covariance_type" in parameters:
        return parameters["covariance_type"] in ("spherical", "EII", "VII"), False
    if "linkage" in parameters or "kernel" in parameters:
        is_ward = parameters.get("linkage") == "ward"
        return is_ward, is_ward
    return True, True
