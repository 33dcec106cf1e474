"""Resampling: the same estimator fitted to many random samples of the rows."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from coterie.core.arguments import is_number
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.in_memory import check_in_memory
from coterie.core.protocols import can_predict, parameters_of, takes_series
from coterie.core.scale import Scale, times_power
from coterie.data import as_source
from coterie.data.scale_check import check_weights
from coterie.data.summary import summarize
from coterie.engines.local import Serial
from coterie.errors import InputError, ParameterError, ScaleError
from coterie.kmeans.center_estimator import CenterEstimator
from coterie.kmeans.minibatch_kmeans import MiniBatchKMeans
from coterie.mixture.base_mixture import MixtureEstimator
from coterie.selection.kmeans_path import too_few_distinct_rows

RESAMPLINGS = ("bootstrap", "subsample", "halves")
MAX_COUNT = 2.0**53  # float64 holds whole numbers exactly up to this one
COUNT_OPTIONS = ("n_clusters", "n_components")  # names of the parameter for the number of clusters
COMPARABLE = (CenterEstimator, MiniBatchKMeans, MixtureEstimator)  # fits of these can start from each other's results
SIZE_OPTION = "min_cluster_size"  # parameter that is varied instead for estimators that find the number of clusters


class Resample(NamedTuple):
    """A sample of the rows, and the seed of the fit on it."""

    rows: Array  # (m,) ascending
    weights: Array | None  # (m,) how often each row was drawn, or its weight; None if all are 1
    seed: int


class ResamplingData:
    """Rows to sample from, or a distance matrix, with the estimator to fit."""

    def __init__(self, estimator: Any, X: Any, sample_weight: Any):
        source = as_source(X, sample_weight)
        check_in_memory(source, "resampling")
        self.X, self.w = source.X, source.w  # type: ignore[attr-defined]
        check_weights(source)
        if isinstance(estimator, COMPARABLE):
            estimator, self.X = _in_range(estimator, source)
        self.estimator, self.options, self.count = estimator, estimator.get_params(), varied_option(estimator)
        self.takes_weights = has_fit_parameter(estimator, "sample_weight")
        if self.w is not None and not self.takes_weights:
            raise InputError(
                f"sample_weight was passed, but {type(estimator).__name__} does not support it: omit it, or repeat rows"
            )
        self.pairwise = get_tags(estimator).input_tags.pairwise
        self.positive_rows = np.arange(self.X.shape[0]) if self.w is None else np.flatnonzero(self.w)

    def check_distinct_rows(self, k: int) -> None:
        """Raise an error if fewer than `k` rows are distinct: empty clusters are always the same."""
        is_table = isinstance(self.X, np.ndarray) and self.X.ndim == 2 and not self.pairwise
        if not is_table or self.count == SIZE_OPTION:
            return
        size = distinct = 0
        while distinct < k:
            if size >= len(self.positive_rows):
                raise too_few_distinct_rows(distinct)
            size = max(4 * size, 4 * k)
            distinct = len(np.unique(self.X[self.positive_rows[:size]], axis=0))

    @property
    def unit(self) -> float:
        """Weight of one row: 1 if all weights are whole numbers (counts of rows) of an exact sum, else 0."""
        return 1.0 if self.w is None or ((self.w == np.floor(self.w)).all() and self.w.sum() <= MAX_COUNT) else 0.0

    def full_sample(self, rng: np.random.Generator) -> Resample:
        return Resample(self.positive_rows, None if self.w is None else self.w[self.positive_rows], _seed(rng))

    def resamples(self, resampling: str, share: float, rng: np.random.Generator) -> Iterator[Resample]:
        """Yield one resample, or two disjoint ones for 'halves'."""
        n = len(self.positive_rows)
        if resampling == "bootstrap":
            counts = self._bootstrap_counts(rng)
            yield Resample(self.positive_rows[counts > 0], counts[counts > 0], _seed(rng))
            return
        order, size = rng.permutation(n), max(1, round(n * (0.5 if resampling == "halves" else share)))
        for part in (order[:size], order[size:]) if resampling == "halves" else (order[:size],):
            rows = self.positive_rows[np.sort(part)]
            yield Resample(rows, None if self.w is None else self.w[rows], _seed(rng))

    def fit(self, k: int, resample: Resample, start: Callable[[Any], dict[str, Any]] | None = None) -> Any:
        """Fit the estimator to a resample; `start` returns options of the initialisation for these rows."""
        rows, options = self._fitted_rows(resample), {}
        if len(resample.rows) < k and self.count != SIZE_OPTION:
            raise InputError(
                f"ks contain {k}, but a resample has only {count(len(resample.rows), 'different row')}: use smaller "
                "ks, or resampling='subsample' with a larger share"
            )
        # One thread, because the resamples run in parallel.
        parameters = {self.count: k, "random_state": resample.seed, "n_jobs": 1, "checkpoint": None}
        known = {name: value for name, value in parameters.items() if name in self.options}
        model = clone(self.estimator).set_params(**known)
        if resample.weights is not None and self.takes_weights:
            options["sample_weight"] = resample.weights
        X = self.X[np.ix_(rows, rows)] if self.pairwise else self._rows(rows)
        if start is not None:
            model.set_params(**start(X))
        return model.fit(X, **options)

    def labels(self, model: Any, resample: Resample, label_rows: Array) -> Array:
        """Labels of `label_rows` by the fit to a resample; -1 for rows without a cluster."""
        rows = self._fitted_rows(resample)
        if can_predict(model):
            predicted = model.predict(self.X[np.ix_(label_rows, rows)] if self.pairwise else self._rows(label_rows))
            return np.maximum(np.asarray(predicted), -1).astype(np.int32)
        labels = np.full(self.X.shape[0], -1, np.int32)
        labels[rows] = np.maximum(np.asarray(model.labels_), -1)
        return labels[label_rows]

    def _fitted_rows(self, resample: Resample) -> Array:
        """Rows that are passed to a fit; those drawn several times are repeated if it does not take weights."""
        if resample.weights is None or self.takes_weights:
            return resample.rows
        return np.repeat(resample.rows, resample.weights.astype(np.int64))

    def _rows(self, rows: Array) -> Any:
        """Some of the rows. Series of different lengths are a list: a sample need not have the longest ones."""
        X = self.X[rows]
        if takes_series(self.estimator) and np.isnan(X).any():
            return [row[~np.isnan(row)] for row in X]
        return X

    def _bootstrap_counts(self, rng: np.random.Generator) -> Array:
        """How often each row is drawn: as many draws as the sum of the weights if these are counts, else as rows."""
        n = len(self.positive_rows)
        if self.w is None:
            return np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        p = self.w[self.positive_rows] / self.w.sum()
        n_draws = int(self.w.sum()) if self.unit else n
        return rng.multinomial(n_draws, p / p.sum()).astype(np.float64)


def between_0_and_1(name: str, value: Any) -> float:
    """Return the value, or raise an error if it is not a number between 0 and 1."""
    if not is_number(value) or not 0 < value < 1:
        raise ParameterError(f"{name} must be a number between 0 and 1; got {value!r}")
    return float(value)


def count_option(estimator: Any) -> str:
    """Name of the parameter for the number of clusters."""
    for name in COUNT_OPTIONS:
        if name in parameters_of(estimator):
            return name
    raise ParameterError(
        f"{type(estimator).__name__} has no parameter for the number of clusters: estimator must have "
        f"{' or '.join(COUNT_OPTIONS)}"
    )


def varied_option(estimator: Any) -> str:
    """Name of the parameter for the number of clusters, or for their minimum size if the estimator finds the number."""
    return SIZE_OPTION if SIZE_OPTION in parameters_of(estimator) else count_option(estimator)


def _in_range(estimator: Any, source: Any) -> tuple[Any, Any]:
    """The estimator and rows whose objectives can be represented: both are divided by the scale of the rows if not."""
    try:
        summarize(source, Serial(), allow_missing=parameters_of(estimator).get("missing") == "ignore", rescales=True)
    except ScaleError as error:
        if error.rows:
            estimator._check_rescalable(error)
            scale = Scale(error.rows, 0)
            return estimator._with_divided_options(scale), times_power(-scale.rows, source.X)
    return estimator, source.X


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))
