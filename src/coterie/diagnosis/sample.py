"""Statistics of all rows, and the random sample of rows that most checks use."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from coterie.base import Estimator
from coterie.core.arguments import is_integer
from coterie.core.arrays import Array, is_sparse
from coterie.core.protocols import Chunk, is_estimator, parameters_of
from coterie.core.scale import Scale
from coterie.core.stats import Stats
from coterie.data import as_source
from coterie.data.row_sample import random_rows
from coterie.data.scale_check import divide_by_scale
from coterie.data.summary import column_names, summarize
from coterie.engines import as_engine
from coterie.errors import InputError, ScaleError
from coterie.kmeans.time_series_kmeans import TimeSeriesKMeans
from coterie.metrics.labels import clusters_of_rows
from coterie.metrics.model_labels import check_fitted, labels_by


@dataclass(frozen=True)
class Sample:
    """Statistics of all rows and a random sample of them, centered and divided by a power of two."""

    names: list[str]  # (d,) names of the columns
    n: int  # complete rows of positive weight
    n_incomplete: int  # rows of positive weight with missing values
    n_missing: Array  # (d,) missing values in each column
    spread: Array  # (d,) standard deviations of all complete rows, in the units of the sample
    n_duplicates: int  # rows that are equal to an earlier row
    rows: Array  # (m,) index of the sampled rows in the user's data
    X: Array  # (m, d) the sample
    w: Array  # (m,) weights with mean 1
    n_given: int  # rows of the user's data, of any weight
    source: Any  # all complete rows of positive weight, as the model transforms them
    complete: Array  # (n,) index of these rows in the user's data

    @property
    def description(self) -> str:
        m = len(self.rows)
        return f"all {m:,} rows" if m == self.n else f"a sample of {m:,} of {self.n:,} rows"

    def draw(self, limit: int, rng: np.random.Generator, among: Array | None = None) -> Array:
        """Draw at most `limit` rows of the sample in proportion to their weights; return indices in ascending order."""
        among = np.arange(len(self.rows)) if among is None else among
        if len(among) <= limit:
            return among
        w = self.w[among]
        return np.sort(rng.choice(among, limit, replace=False, p=w / w.sum()))


@dataclass(frozen=True)
class _Missing(Stats):
    by_column: Any  # (d,) missing values
    rows: Any  # rows with missing values


def draw_sample(
    X: Any, sample_weight: Any, model: Any, sample_size: int, rng: np.random.Generator, n_jobs: int | None
) -> Sample:
    """Read the rows as `model` transforms them. Rows of weight 0 are ignored, incomplete rows are only counted."""
    source = as_source(X, sample_weight)
    if is_sparse(getattr(source, "X", None)):
        raise InputError(
            "Input X is sparse: diagnose needs dense rows. Convert it with X.toarray(), or reduce many sparse columns "
            "to a few dense ones with sklearn.decomposition.TruncatedSVD"
        )
    n_given = source.shape[0]
    names = column_names(source)
    engine = as_engine("auto", source, n_jobs)
    missing = engine.sum(_count_missing, source)
    complete = np.flatnonzero(np.asarray(source.join(engine.map(_is_complete, source))))
    n = len(complete)
    if n == 0:
        empty = np.zeros((0, len(names)))
        return Sample(
            names, 0, int(missing.rows), missing.by_column, empty.sum(0), 0, complete, empty, np.zeros(0), n_given,
            source, complete,
        )  # fmt: skip
    if n < n_given:
        source = source.subset(complete)
    if isinstance(model, Estimator):
        source = model._prepare_rows(source, engine, first=False)
    try:
        summary = summarize(source, engine)
    except ScaleError as error:  # no check depends on the scale
        source = divide_by_scale(source, Scale(error.rows, error.weights), engine)
        summary = summarize(source, engine)
    factors = np.random.default_rng(0).integers(1 << 62, size=len(names), dtype=np.uint64)
    factors = factors * np.uint64(2) + np.uint64(1)  # odd
    hashes = np.sort(np.asarray(source.join(engine.map(partial(_hash, factors), source))))
    index = random_rows(n, sample_size, rng)
    chunk, spread = source.pick(index), np.sqrt(summary.variance)
    spread[spread <= 4 * np.finfo(source.dtype).eps * np.abs(summary.mean)] = 0.0  # rounding errors of the values
    return Sample(
        names=names,
        n=n,
        n_incomplete=int(missing.rows),
        n_missing=missing.by_column,
        spread=spread / summary.unit,
        n_duplicates=int(np.count_nonzero(hashes[1:] == hashes[:-1])),
        rows=complete[index],
        X=(chunk.X.astype(np.float64) - summary.mean) / summary.unit,
        w=np.ones(len(index)) if chunk.w is None else chunk.w / chunk.w.mean(),
        n_given=n_given,
        source=source,
        complete=complete,
    )


def count_distinct(X: Array) -> int:
    """Return the number of distinct rows; rows that sums of squares cannot distinguish count as equal."""
    return len(np.unique(X.round(5), axis=0))


def _has_weight(chunk: Chunk) -> Any:
    return True if chunk.w is None else chunk.w > 0


def _count_missing(chunk: Chunk) -> _Missing:
    missing = np.isnan(chunk.X) & np.reshape(_has_weight(chunk), (-1, 1))
    return _Missing(missing.sum(axis=0), np.count_nonzero(missing.any(axis=1)))


def _is_complete(chunk: Chunk) -> Array:
    """Return whether each row has a positive weight and no missing values (n,)."""
    return ~np.isnan(chunk.X).any(axis=1) & _has_weight(chunk)


def _hash(factors: Array, chunk: Chunk) -> Array:
    """Return a 64-bit hash of each row."""
    kind = np.uint64 if chunk.X.dtype == np.float64 else np.uint32
    mixed = np.zeros(len(chunk.X), np.uint64)
    for j, factor in enumerate(factors):
        bits = (chunk.X[:, j] + 0.0).view(kind).astype(np.uint64)  # + 0.0 because -0.0 and 0.0 are equal
        mixed = (mixed ^ bits) * factor
        mixed ^= mixed >> np.uint64(32)
    return mixed


# The clusters that `diagnose` checks: those of a fitted model, or given labels.


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
    codes, names = clusters_of_rows(labels, sample.n_given)
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
    check_fitted(model)
    is_series = isinstance(model, TimeSeriesKMeans)
    if is_series or parameters_of(model).get("metric") == "precomputed":
        reason = "clusters time series" if is_series else "was fitted to precomputed distances"
        raise InputError(
            f"model is a {type(model).__name__} that {reason}: diagnose supports only models of rows of numbers"
        )


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
