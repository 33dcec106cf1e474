"""The clusters a diagnosis looks at: those of a model, or given labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie.core.errors import InputError, ParameterError
from coterie.data import opened
from coterie.diagnosis.table import Array, Table
from coterie.kmeans.time_series_kmeans import TimeSeriesKMeans
from coterie.metrics.labels import labels_of_rows


@dataclass(frozen=True)
class Clusters:
    """Which cluster every row of the sample is in, and what its model thinks of clusters."""

    table: Table
    codes: Array  # (m,) from 0 up; -1: in none
    names: list[str]  # (k,) what the user calls them
    told: str  # where they come from, in words
    takes_round: bool = True  # whether the model takes clusters for round
    takes_equal: bool = True  # whether for equally wide and heavy
    least_squares: bool = True  # whether the model sought the least sum of squares

    @property
    def k(self) -> int:
        return len(self.names)

    @cached_property
    def members(self) -> list[Array]:
        """Rows of the sample in each cluster."""
        return [np.flatnonzero(self.codes == j) for j in range(self.k)]

    @cached_property
    def weight(self) -> Array:
        """(k,)"""
        return np.bincount(self.codes[self.codes >= 0], self.table.w[self.codes >= 0], self.k)

    @cached_property
    def within(self) -> Array:
        """(d,) variances of the columns about the means of the clusters."""
        X, w = self.table.X, self.table.w
        rows = self.codes >= 0
        return w[rows] @ (X[rows] - self.means[self.codes[rows]]) ** 2 / w[rows].sum()

    @cached_property
    def means(self) -> Array:
        """(k, d)"""
        X, w = self.table.X, self.table.w
        return np.array([w[own] @ X[own] / max(w[own].sum(), 1e-300) for own in self.members])


def clusters_of(model: Any, X: Any, table: Table, sample_weight: Any = None) -> Clusters:
    """Those of a fitted model, or of labels, one a row of X."""
    if hasattr(model, "fit"):
        labels, told = labels_by(model, X, table.size, sample_weight), type(model).__name__
    else:
        labels, told = model, "the given labels"
    found = labels_of_rows(labels, table.size)
    codes, names = found.codes[table.rows], [str(name) for name in found.names]
    noise = next((j for j, name in enumerate(names) if name in ("-1", "-1.0")), None)
    if noise is not None:  # other libraries' rows in no cluster
        codes = np.where(codes == noise, -1, codes - (codes > noise))
        names.pop(noise)
    there = np.unique(codes[codes >= 0])
    place = np.full(len(names) + 1, -1)
    place[there] = np.arange(len(there))
    least_squares = told in ("KMeans", "MiniBatchKMeans", "BisectingKMeans")
    return Clusters(table, place[codes], [names[j] for j in there], told, *_beliefs(model), least_squares)


def check_model(model: Any) -> None:
    """A model must be fitted, and to rows; labels pass."""
    if not hasattr(model, "fit"):
        return
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise ParameterError(f"model must be fitted: call {type(model).__name__}.fit(X) first") from None
    if isinstance(model, TimeSeriesKMeans) or getattr(model, "metric", None) == "precomputed":
        raise InputError(
            "diagnose looks at rows as points: it has nothing to say of series, or of distances without rows"
        )


def labels_by(model: Any, X: Any, n: int, sample_weight: Any = None) -> Any:
    """The cluster of each of the n rows of `X`, those of the fit in any order or others: what the model predicts.

    Trees and `BalancedKMeans` divide the rows of their fit otherwise than they place new ones. If `X` are these rows in
    their order, as far as distances tell (`_is_of_fit`; with the weights of the fit), their clusters are `labels_`.
    What cannot predict has no other labels: rows and columns must be as many as those of the fit, and that they are
    the same ones, in the same order, nothing tells.
    """
    labels = getattr(model, "labels_", None)
    same = labels is not None and len(labels) == n
    if same and hasattr(model, "_is_of_fit") and model._is_of_fit(X, sample_weight):
        return np.asarray(labels)
    if hasattr(model, "predict"):
        return _predicted(model, X, labels)
    if not same:
        raise InputError(
            f"model was fitted to {0 if labels is None else len(labels)} rows and cannot predict; X has {n}: "
            "give the rows of the fit"
        )
    if isinstance(model, BaseEstimator):
        validate_data(model, opened(X), reset=False, skip_check_array=True)
    return np.asarray(labels)


def _predicted(model: Any, X: Any, labels: Any) -> Any:
    found = np.asarray(model.predict(X))
    own = getattr(model, "metric", None)
    if isinstance(own, str) and own == "precomputed" and not np.array_equal(found, labels):
        raise InputError(
            "X must be the distances that the model was fitted to, rows and columns in their order: those of other "
            "rows among each other do not tell how far they are from its clusters"
        )
    return found


def _beliefs(model: Any) -> tuple[bool, bool]:
    """Whether a model takes clusters for round, and for equally wide and heavy; labels are taken for K-means'."""
    if hasattr(model, "covariance_type"):
        return model.covariance_type in ("spherical", "EII", "VII"), False
    if hasattr(model, "linkage") or hasattr(model, "kernel"):
        ward = getattr(model, "linkage", None) == "ward"
        return ward, ward
    return True, True
