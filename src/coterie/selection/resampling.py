"""The same clustering of many draws of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from coterie import machine
from coterie.core.errors import InputError, ParameterError
from coterie.data import as_source

Array = np.ndarray[Any, Any]

METHODS = ("bootstrap", "subsample", "halves")
COUNTS = ("n_clusters", "n_components")  # what estimators call their number of clusters


class Draw(NamedTuple):
    """Some of the rows, and the chance of the fit on them."""

    rows: Array  # (m,) ascending
    times: Array | None  # (m,) how often each was drawn, or its weight; None: 1 for all
    seed: int


class Table:
    """Rows to draw from, or distances between things of which some are drawn."""

    def __init__(self, estimator: Any, X: Any, sample_weight: Any):
        source = as_source(X, sample_weight)
        if source.engine == "dask":
            raise InputError("X is a Dask array: resamples need rows in memory; pass X.compute(), or a sample of them")
        self.X, self.w = source.X, source.w  # type: ignore[attr-defined]
        self.estimator, self.options, self.count = estimator, estimator.get_params(), count_option(estimator)
        self.weighs = has_fit_parameter(estimator, "sample_weight")
        if self.w is not None and not self.weighs:
            raise InputError(
                f"{type(estimator).__name__} takes no sample_weight: leave the weights out, or repeat rows"
            )
        self.pairwise = get_tags(estimator).input_tags.pairwise
        self.counting = np.arange(self.X.shape[0]) if self.w is None else np.flatnonzero(self.w)

    @property
    def unit(self) -> float:
        """The weight of one row: 1 if weights are counts of rows; 0 if they are shares."""
        return 1.0 if self.w is None or (self.w == np.floor(self.w)).all() else 0.0

    def everything(self, rng: np.random.Generator) -> Draw:
        return Draw(self.counting, None if self.w is None else self.w[self.counting], _seed(rng))

    def draws(self, method: str, share: float, rng: np.random.Generator) -> Iterator[Draw]:
        """One draw; of 'halves' two, that have no row in common."""
        n = len(self.counting)
        if method == "bootstrap":
            times = self._drawn_with_replacement(rng)
            yield Draw(self.counting[times > 0], times[times > 0], _seed(rng))
            return
        order, size = rng.permutation(n), max(1, round(n * (0.5 if method == "halves" else share)))
        for part in (order[:size], order[size:]) if method == "halves" else (order[:size],):
            rows = self.counting[np.sort(part)]
            yield Draw(rows, None if self.w is None else self.w[rows], _seed(rng))

    def labels(self, k: int, draw: Draw, asked: Array) -> Array:
        """The clusters that the estimator, fitted to a draw, has for the rows `asked`; -1 where it has none."""
        model, rows, options = self._estimator(k, draw.seed), draw.rows, {}
        if draw.times is not None and self.weighs:
            options["sample_weight"] = draw.times
        elif draw.times is not None:
            rows = np.repeat(rows, draw.times.astype(np.int64))
        model.fit(self.X[np.ix_(rows, rows)] if self.pairwise else self.X[rows], **options)
        if hasattr(model, "predict"):
            found = model.predict(self.X[np.ix_(asked, rows)] if self.pairwise else self.X[asked])
            return np.maximum(np.asarray(found), -1).astype(np.int32)
        labels = np.full(self.X.shape[0], -1, np.int32)
        labels[rows] = np.maximum(np.asarray(model.labels_), -1)
        return labels[asked]

    def _estimator(self, k: int, seed: int) -> Any:
        """A fresh one for k clusters, that leaves the threads to the draws."""
        options = {self.count: k, "random_state": seed, "n_jobs": 1, "checkpoint": None}
        return clone(self.estimator).set_params(**{name: options[name] for name in options if name in self.options})

    def _drawn_with_replacement(self, rng: np.random.Generator) -> Array:
        """How often each row that counts was drawn, by its weight: as many draws as the rows stand for."""
        n = len(self.counting)
        if self.w is None:
            return np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        p = self.w[self.counting] / self.w.sum()
        many = int(self.w.sum()) if self.unit else n
        return rng.multinomial(many, p / p.sum()).astype(np.float64)


def count_option(estimator: Any) -> str:
    """What the estimator calls its number of clusters."""
    known = estimator.get_params() if hasattr(estimator, "get_params") else {}
    for name in COUNTS:
        if name in known:
            return name
    raise ParameterError(
        f"estimator must have an option {' or '.join(COUNTS)} to set; {type(estimator).__name__} has none"
    )


def all_labels(table: Table, k: int, draws: list[Draw], asked: Array, n_jobs: int | None) -> Array:
    """The clusters of the rows `asked` by the estimator on every draw (draws, m)."""
    with machine.one_blas_thread:
        return np.stack(list(machine.in_threads(table.labels, [(k, draw, asked) for draw in draws], n_jobs)))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))
