"""The rows a diagnosis looks at: all of them once or twice, then a sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie.base import Estimator
from coterie.core.errors import InputError
from coterie.core.protocols import Chunk
from coterie.core.scale import ScaleError
from coterie.core.stats import Stats
from coterie.data import as_source
from coterie.data.scale import divided
from coterie.data.summary import Summary, summarize
from coterie.engines import as_engine

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Table:
    """What is known of all rows, and some of them, moved to their mean and divided by a power of two."""

    names: list[str]  # (d,)
    n: int  # rows that count and are complete
    left_out: int  # rows that count and have holes
    holes: Array  # (d,) missing values of each column
    spread: Array  # (d,) standard deviations, in the units of the sample
    copies: int  # rows equal to an earlier one
    rows: Array  # (m,) which rows of the user's the sample is
    X: Array  # (m, d)
    w: Array  # (m,) weights, 1 on average
    size: int  # rows the user had, whatever they weigh

    @property
    def drawn(self) -> str:
        """What the sample is, in words."""
        m = len(self.rows)
        return f"all {m:,} rows" if m == self.n else f"a sample of {m:,} of {self.n:,} rows"

    def draw(self, most: int, rng: np.random.Generator, among: Array | None = None) -> Array:
        """Rows of the sample, no more than `most`, heavier ones more likely; in ascending order."""
        among = np.arange(len(self.rows)) if among is None else among
        if len(among) <= most:
            return among
        w = self.w[among]
        return np.sort(rng.choice(among, most, replace=False, p=w / w.sum()))


@dataclass(frozen=True)
class _Holes(Stats):
    by_column: Any  # (d,)
    rows: Any


def open_table(
    X: Any, sample_weight: Any, model: Any, sample_size: int, rng: np.random.Generator, n_jobs: int | None
) -> Table:
    """Rows as `model` sees them; those of weight 0 are not there, those with holes only counted."""
    source = as_source(X, sample_weight)
    if hasattr(getattr(source, "X", None), "indptr"):
        raise InputError(
            "Input X is sparse: diagnose needs dense rows (X.toarray() makes them so; "
            "sklearn.decomposition.TruncatedSVD makes a few dense columns of many sparse ones)"
        )
    size, names = source.shape[0], getattr(source, "columns", None) or [f"column {j}" for j in range(source.shape[1])]
    engine = as_engine("auto", source, n_jobs)
    holes = engine.sum(_holes, source)
    whole = np.flatnonzero(np.asarray(source.join(engine.map(_whole, source))))
    if len(whole) == 0:
        none = np.zeros((0, len(names)))
        return Table(names, 0, int(holes.rows), holes.by_column, none.sum(0), 0, whole, none, np.zeros(0), size)
    if len(whole) < size:
        source = source.subset(whole)
    if isinstance(model, Estimator):
        source = model._prepare_rows(source, engine, first=False)
    try:
        summary = summarize(source, engine)
    except ScaleError as error:  # no check depends on the scale
        source = divided(source, error.scale, engine)
        summary = summarize(source, engine)
    hashes = np.sort(np.asarray(source.join(engine.map(partial(_hash, _odd(len(names))), source))))
    n = len(whole)
    drawn = np.arange(n) if n <= sample_size else np.sort(rng.choice(n, sample_size, replace=False))
    chunk = source.pick(drawn)
    return Table(
        names=names,
        n=n,
        left_out=int(holes.rows),
        holes=holes.by_column,
        spread=_spread(summary, source.dtype) / summary.unit,
        copies=int(np.count_nonzero(hashes[1:] == hashes[:-1])),
        rows=whole[drawn],
        X=(chunk.X.astype(np.float64) - summary.mean) / summary.unit,
        w=np.ones(len(drawn)) if chunk.w is None else chunk.w / chunk.w.mean(),
        size=size,
    )


def distinct(X: Array) -> int:
    """How many places the rows of a sample are at, as far as sums of squares can tell."""
    return len(np.unique(X.round(5), axis=0))


def _spread(summary: Summary, dtype: Any) -> Array:
    """Standard deviations; 0 where the rounding of the values explains them."""
    spread = np.sqrt(summary.variance)
    return np.where(spread > 4 * np.finfo(dtype).eps * np.abs(summary.mean), spread, 0.0)


def _counts(chunk: Chunk) -> Any:
    return True if chunk.w is None else chunk.w > 0


def _holes(chunk: Chunk) -> _Holes:
    hole = np.isnan(chunk.X) & np.reshape(_counts(chunk), (-1, 1))
    return _Holes(hole.sum(axis=0), np.count_nonzero(hole.any(axis=1)))


def _whole(chunk: Chunk) -> Array:
    """Whether a row counts and has no holes (n,)."""
    return ~np.isnan(chunk.X).any(axis=1) & _counts(chunk)


def _odd(d: int) -> Array:
    """Fixed odd factors, one a column."""
    return np.random.default_rng(0).integers(1 << 62, size=d, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _hash(factors: Array, chunk: Chunk) -> Array:
    """A number of 64 bits for each row; equal rows have equal ones, and hardly any others."""
    kind = np.uint64 if chunk.X.dtype == np.float64 else np.uint32
    mixed = np.zeros(len(chunk.X), np.uint64)
    for j, factor in enumerate(factors):
        bits = (chunk.X[:, j] + 0.0).view(kind).astype(np.uint64)  # -0.0 is 0.0
        mixed = (mixed ^ bits) * factor
        mixed ^= mixed >> np.uint64(32)
    return mixed
