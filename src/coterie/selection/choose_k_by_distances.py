"""`choose_k` by the distances of all pairs: of time series, and of rows with missing values, which are ignored."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from coterie.core.arrays import Array
from coterie.core.protocols import parameters_of
from coterie.data.memory import as_weights
from coterie.data.row_sample import random_rows
from coterie.distances import pairwise
from coterie.distances.series import as_series, from_table
from coterie.distances.soft_dtw import soft_values
from coterie.distances.windows import as_window
from coterie.errors import InputError, ParameterError
from coterie.kmeans.metric_of_model import metric_of
from coterie.medoids.kmedoids import KMedoids
from coterie.metrics.silhouette_labelings import silhouette_scores
from coterie.selection.choose_k_criteria import MAX_DENSE_K, CriteriaRun, Effort
from coterie.selection.criteria import Curve
from coterie.selection.tendency import Tendency, early_tendency
from coterie.selection.votes import Vote, single_choice

QUICK = ("tendency", "silhouette", "elbow", "prediction_strength")
THOROUGH = (*QUICK, "stability", "dunn")
CELLS = {"quick": 8e6, "normal": 2e7, "thorough": 1e8}  # series times cells of the cost matrix of a pair
TEST_ROWS, TEST_KS = 100, (2, 3, 4, 5)  # series and numbers of clusters of the test for clusters
MIN_ROWS = 60  # series, however long they are
SOFT_COST = 50  # time of a soft-DTW value, as a multiple of that of DTW
OBSERVED_ROWS = 4_000  # with missing values, whose distances are stored
MIN_COMPLETE = 0.5  # share of the rows without missing values, from which on these stand for all rows
PRECOMPUTED = KMedoids(metric="precomputed")


def effort_by_distances(effort: Effort, budget: str, criteria: Any, kind: str, rows: int) -> Effort:
    """The effort for criteria of the distances of all pairs of `rows` rows; other `criteria` are rejected."""
    known = THOROUGH if budget == "thorough" else QUICK
    names = () if isinstance(criteria, str) and criteria == "auto" else criteria
    other = [name for name in ((names,) if isinstance(names, str) else names) if name not in THOROUGH]
    if other:
        raise ParameterError(
            f"criteria for {kind} are {', '.join(THOROUGH)}; got {other[0]!r}, which needs complete rows of numbers"
        )
    rows = min(effort.rows, rows)
    return replace(effort, rows=rows, mixture_rows=min(effort.mixture_rows, rows), criteria=known)


def effort_for_series(effort: Effort, budget: str, X: Array, estimator: Any, criteria: Any) -> Effort:
    """The effort for series of this length."""
    work = SOFT_COST if parameters_of(estimator).get("metric") == "softdtw" else 1
    rows = max(MIN_ROWS, int(CELLS[budget] / (work * X.shape[1] ** 2)))
    effort = effort_by_distances(effort, budget, criteria, "series", rows)
    return replace(effort, mixture_rows=effort.rows, resamples=min(effort.resamples, 10))


def series_rows(X: Any, sample_weight: Any) -> tuple[Array, Array | None]:
    """Series of positive weight as rows that end in NaN, and their weights."""
    series = as_series(X)
    if series.channels > 1:
        raise InputError(f"X has series of {series.channels} channels, and K can be chosen for one: pass one of them")
    table, w = series.table(), as_weights(sample_weight, len(series))
    if w is None:
        return table, None
    positive = np.flatnonzero(w)
    return table[positive], w[positive]


class SeriesRun(CriteriaRun):
    """Fits and criteria of series, of which only small K are fitted."""

    def __init__(self, X: Array, *options: Any) -> None:
        super().__init__(X, *options)
        self.distinct = self.distinct_few = len(np.unique(np.where(np.isnan(X), np.inf, X), axis=0))

    def automatic_ks(self, names: tuple[str, ...]) -> list[int]:
        ks = list(range(1, min(MAX_DENSE_K, self.max_k) + 1))
        self.fit(ks)
        return ks

    def curve(self, name: str) -> Curve:
        if name not in self.curves:
            models = [PRECOMPUTED] * len(self.sweep.ks)
            self.curves[name] = replace(self.sweep, X=self.distances, models=models).curve(name, random_state=0)
        return self.curves[name]

    def _tendency_test(self) -> Tendency | None:
        options = (max(5, self.effort.references // 4), self.n_jobs, self.rngs["tendency"])
        return series_tendency(self.estimator, self.X, *options) if self.distinct > TEST_KS[0] else None

    @cached_property
    def distances(self) -> Array:
        """Distances of all pairs of series, in the metric of the estimator."""
        return series_distances(self.estimator, self.X, self.n_jobs)


class ObservedRun(SeriesRun):
    """Fits to all observed values; distances are those in the columns in which both rows have a value."""

    @cached_property
    def distances(self) -> Array:
        weights = metric_of(self.estimator).get("w")
        rows = self.X if weights is None else self.X * np.sqrt(weights)
        return pairwise(rows, metric="nan_euclidean", n_jobs=self.n_jobs)

    def _tendency_test(self) -> Tendency | None:
        """The test of the rows without missing values; None if most rows have some."""
        complete = ~np.isnan(self.X).any(axis=1)
        rows, w = self.X[complete], None if self.w is None else self.w[complete]
        ks = [k for k in self.sweep.ks.tolist() if 2 <= k < len(np.unique(rows, axis=0))]
        options = (self.effort.references, w, self.n_jobs, self.rngs["tendency"])
        return early_tendency(rows, ks, *options) if ks and complete.mean() >= MIN_COMPLETE else None

    def _vote(self, name: str, ks: Array) -> Vote:
        """A criterion that some rows, or halves of the rows, have too few values for does not vote, and says so."""
        if name == "tendency" and self.tendency_test() is None:
            return single_choice(name, ks, None, "not computed: most rows have missing values")
        try:
            return super()._vote(name, ks)
        except InputError as error:
            return single_choice(name, ks, None, f"not computed: {error}")


def series_tendency(
    estimator: Any, X: Array, n_references: int, n_jobs: int | None, rng: np.random.Generator
) -> Tendency:
    """Test whether series split better, by K-medoids in their metric, than series without clusters.

    These have the mean and the covariances of the series over time, and their lengths: Gaussian ones, and ones that
    are uniform along the principal axes.
    """
    X = X[random_rows(len(X), TEST_ROWS, rng)]
    lengths = np.count_nonzero(~np.isnan(X), axis=1)
    width = int(np.median(lengths))
    P = np.array([_stretched(row[:length], width) for row, length in zip(X, lengths, strict=True)])
    mean = P.mean(axis=0)
    U, scales, axes = np.linalg.svd(P - mean, full_matrices=False)
    scores, deviations = U * scales, scales / np.sqrt(max(1, len(P) - 1))
    low, high = scores.min(axis=0), scores.max(axis=0)
    draws: tuple[Callable[[], Array], ...] = (
        lambda: rng.uniform(low, high, scores.shape), lambda: rng.normal(size=scores.shape) * deviations,
    )  # fmt: skip
    ks = [k for k in TEST_KS if k < len(X)]
    even, normal = (
        [
            max(_silhouettes(estimator, _padded(mean + draw() @ axes, lengths, X.shape[1]), ks, n_jobs))
            for _ in range(n_references)
        ]
        for draw in draws
    )
    silhouettes = _silhouettes(estimator, X, ks, n_jobs)
    return Tendency(np.array(ks), np.array(silhouettes), {"box": np.array(even), "normal": np.array(normal)})


def _silhouettes(estimator: Any, X: Array, ks: list[int], n_jobs: int | None) -> list[float]:
    """Silhouettes of the clusters of K-medoids; -1 where all series are equal."""
    D = series_distances(estimator, X, n_jobs)
    labels = [KMedoids(k, metric="precomputed", search="none", random_state=0).fit_predict(D) for k in ks]
    if any(len(np.unique(each)) < 2 for each in labels):
        return [-1.0] * len(ks)
    return silhouette_scores(D, labels, metric="precomputed", n_jobs=n_jobs)


def _stretched(values: Array, width: int) -> Array:
    """A series at `width` equally spaced times."""
    return np.interp(np.linspace(0, 1, width), np.linspace(0, 1, len(values)), values)


def _padded(P: Array, lengths: Array, width: int) -> Array:
    """Series of these lengths, as rows that end in NaN."""
    table = np.full((len(P), width), np.nan)
    for row, values, length in zip(table, P, lengths, strict=True):
        row[:length] = _stretched(values, int(length))
    return table


def series_distances(estimator: Any, X: Array, n_jobs: int | None = None) -> Array:
    """Distances (n, n) of series that end in NaN: DTW, its smooth version, or Euclidean."""
    options = parameters_of(estimator)
    if options.get("metric") != "softdtw":
        return pairwise(X, n_jobs=n_jobs, **metric_of(estimator))
    series = from_table(np.ascontiguousarray(X, np.float64), 1)
    values = np.empty((len(series), len(series)))
    soft_values(series, series, as_window(options["window"]), float(options["gamma"]), values)
    own = np.diag(values)
    divergences = np.maximum(values - 0.5 * (own[:, None] + own), 0.0)
    return np.sqrt(0.5 * (divergences + divergences.T))
