"""Statistics of all rows, and the random sample of rows that most checks use."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie.base import Estimator
from coterie.core.arrays import Array, is_sparse
from coterie.core.protocols import Chunk
from coterie.core.scale import Scale
from coterie.core.stats import Stats
from coterie.data import as_source
from coterie.data.scale_check import divide_by_scale
from coterie.data.summary import column_names, summarize
from coterie.engines import as_engine
from coterie.errors import InputError, ScaleError


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
    index = np.arange(n) if n <= sample_size else np.sort(rng.choice(n, sample_size, replace=False))
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
