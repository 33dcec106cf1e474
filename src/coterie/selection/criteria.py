"""Cluster validity indices over the number of clusters."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from coterie import metrics
from coterie.core.arguments import as_rng, one_of
from coterie.core.arrays import Array
from coterie.core.protocols import parameters_of
from coterie.core.repr_html import ReprHTMLMixin
from coterie.data import as_source
from coterie.data.memory import as_weights
from coterie.data.row_sample import random_rows
from coterie.errors import InputError
from coterie.kmeans.metric_of_model import metric_of
from coterie.metrics.silhouette_labelings import silhouette_scores
from coterie.selection.text_table import aligned, as_rows

Estimate = tuple[float, float] | None  # value and standard error; None where an index is not defined
Index = Callable[[list[Any]], list[Estimate]]  # of the labels for each K
MAX_ROWS = 10_000  # with more rows, indices that need all pairs of rows use a sample
SILHOUETTE_ROWS = 2_000  # size of that sample for silhouettes
NAMES = ("objective", "inertia", "silhouette", "calinski_harabasz", "davies_bouldin", "dunn")


@dataclass(frozen=True, repr=False)
class Curve(ReprHTMLMixin):
    """Values of a criterion at the K where it is defined and finite; the result of `Sweep.curve`."""

    name: str
    ks: Array  # (m,)
    values: Array  # (m,)
    best: int | None  # K of the best value; None for the objective and inertia, and without values
    higher_is_better: bool
    errors: Array | None = None  # (m,) standard errors, if the values are estimates
    note: str | None = None  # how the values were estimated; None if they are exact

    @property
    def lead(self) -> float | None:
        """Relative difference between the best and the second best value; None if there are fewer than two."""
        if self.best is None or len(self.values) < 2:
            return None
        first = float(self.values[self.ks == self.best][0])
        others = self.values[self.ks != self.best]
        second = float(others.max() if self.higher_is_better else others.min())
        size = max(abs(first), abs(second))
        return abs(first - second) / size if size > 0 else 0.0

    def restricted_to(self, ks: list[int]) -> Self:
        """The same curve with the values at these K only."""
        mask = np.isin(self.ks, ks)
        values, errors = self.values[mask], None if self.errors is None else self.errors[mask]
        best = None
        if self.best is not None and len(values):
            best = int(self.ks[mask][values.argmax() if self.higher_is_better else values.argmin()])
        return replace(self, ks=self.ks[mask], values=values, errors=errors, best=best)

    def table(self) -> list[dict[str, Any]]:
        """One row per K."""
        errors = {} if self.errors is None else {"error": self.errors}
        return as_rows({"k": self.ks, self.name: self.values, **errors, "best": self.ks == self.best})

    def __str__(self) -> str:
        return aligned(self.table()) + (f"\n{self.note}" if self.note else "")


def curve_of(sweep: Any, name: str, random_state: Any) -> Curve:
    """Compute the criterion `name` of a `Sweep`."""
    one_of("name", name, NAMES)
    if name == "objective" or (name == "inertia" and hasattr(sweep.models[0], "inertia_")):
        return Curve(name, sweep.ks, sweep.objectives, None, False)
    rows = _Rows(sweep, random_state)
    choices: dict[str, tuple[Index, bool]] = {
        "inertia": (_one_by_one(rows.inertia), False),
        "silhouette": (rows.silhouettes, True),
        "calinski_harabasz": (_one_by_one(rows.calinski_harabasz), True),
        "davies_bouldin": (_one_by_one(rows.davies_bouldin), False),
        "dunn": (_one_by_one(rows.dunn), True),
    }
    index, higher = choices[name]
    ks, values, errors = _defined(sweep.ks, sweep.labels, index)
    best = None
    if name != "inertia" and len(ks):
        best = int(ks[values.argmax() if higher else values.argmin()])
    estimated = rows.is_large and name in ("silhouette", "dunn")
    return Curve(
        name, ks, values, best, higher, errors if name == "silhouette" and estimated else None,
        rows.note(name) if estimated else None,
    )  # fmt: skip


def _one_by_one(index: Callable[[Any], Estimate]) -> Index:
    return lambda labelings: [index(labels) for labels in labelings]


def _defined(ks: Array, labels: list[Any], index: Index) -> tuple[Array, Array, Array]:
    """The K where an index is finite, with its values and their standard errors."""
    estimates = zip(ks.tolist(), index(labels), strict=True)
    defined = [(k, *estimate) for k, estimate in estimates if estimate is not None and np.isfinite(estimate[0])]
    table = np.array(defined, dtype=np.float64).reshape(-1, 3)
    return table[:, 0].astype(np.int64), table[:, 1], table[:, 2]


class _Rows:
    """Rows of a sweep and the metric of its estimator. Its methods compute indices: a value and its standard error.

    A method returns None where the index is not defined: one cluster, or too many.
    """

    def __init__(self, sweep: Any, random_state: Any):
        self.X, self.sample_weight = sweep.X, sweep.sample_weight
        self.n, self.seed = len(sweep.labels[0]), int(as_rng(random_state).integers(2**31))
        w = as_weights(self.sample_weight, self.n)
        self.w = np.ones(self.n) if w is None else w
        self.n_jobs = parameters_of(sweep.models[0]).get("n_jobs")
        self.metric = metric_of(sweep.models[0])
        self.is_large = self.n > MAX_ROWS

    def note(self, name: str) -> str:
        if name == "dunn":
            return f"computed from a sample of {MAX_ROWS} of {self.n} rows, which overestimates the index"
        return f"estimates from {SILHOUETTE_ROWS} of {self.n} rows, each compared with all rows"

    def inertia(self, labels: Any) -> tuple[float, float]:
        return metrics.inertia(self.X, labels, sample_weight=self.sample_weight, n_jobs=self.n_jobs), 0.0

    def silhouettes(self, labelings: list[Any]) -> list[Estimate]:
        options: dict[str, Any] = {**self.metric, "sample_weight": self.sample_weight, "n_jobs": self.n_jobs}
        defined = [i for i, labels in enumerate(labelings) if self._has_silhouettes(labels)]
        estimates: list[Estimate] = [None] * len(labelings)
        if self.is_large:
            options |= {"approximation": "sampled", "sample_size": SILHOUETTE_ROWS, "random_state": self.seed}
            for i in defined:
                estimates[i] = metrics.silhouette_score(self.X, labelings[i], return_error=True, **options)
        else:
            scores = silhouette_scores(self.X, [labelings[i] for i in defined], **options)
            for i, score in zip(defined, scores, strict=True):
                estimates[i] = score, 0.0
        return estimates

    def _has_silhouettes(self, labels: Any) -> bool:
        weight = self._weights(labels)
        alone = weight[np.asarray(labels)] - np.minimum(self.w, 1.0) <= 0
        return bool(np.count_nonzero(weight) >= 2 and not alone[self.w > 0].all())

    def calinski_harabasz(self, labels: Any) -> tuple[float, float] | None:
        weight = self._weights(labels)
        if not 2 <= np.count_nonzero(weight) < weight.sum():
            return None
        return self._by_means(metrics.calinski_harabasz_score, labels)

    def davies_bouldin(self, labels: Any) -> tuple[float, float] | None:
        if np.count_nonzero(self._weights(labels)) < 2:
            return None
        return self._by_means(metrics.davies_bouldin_score, labels)

    def dunn(self, labels: Any) -> tuple[float, float] | None:
        X, w, labels = self.X, self.w, np.asarray(labels)
        if self.is_large:
            rows = random_rows(self.n, MAX_ROWS, np.random.default_rng(self.seed))
            X, w, labels = self._subset(rows), w[rows], labels[rows]
        if len(np.unique(labels[w > 0])) < 2:
            return None
        return metrics.dunn_score(X, labels, **self.metric, sample_weight=w, n_jobs=self.n_jobs), 0.0

    def _weights(self, labels: Any) -> Array:
        """Weights of the clusters (k,)."""
        weight: Array = np.bincount(np.asarray(labels), self.w)
        return weight

    def _by_means(self, score: Callable[..., float], labels: Any) -> tuple[float, float]:
        if self.metric["metric"] == "precomputed":
            raise InputError("X contains distances, so clusters have no means: use the curves 'silhouette' or 'dunn'")
        return score(self.X, labels, sample_weight=self.sample_weight, n_jobs=self.n_jobs), 0.0

    def _subset(self, rows: Array) -> Any:
        if self.metric["metric"] == "precomputed":
            return np.asarray(self.X)[np.ix_(rows, rows)]
        return as_source(self.X).pick(rows).X
