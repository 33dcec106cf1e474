"""What users say about the centers and columns of K-means: centers that stay, weights of the columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from coterie.base import Summary
from coterie.core.arguments import as_floats
from coterie.core.errors import ParameterError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.kmeans.lloyd import Lloyd
from coterie.traces import Trace


def as_frozen(frozen_centers: Any, k: int, d: int) -> np.ndarray | None:
    """Centers that stay where they are (f, d); None where there are none."""
    if frozen_centers is None:
        return None
    try:
        centers = as_floats(frozen_centers)
    except (TypeError, ValueError):
        raise ParameterError(f"frozen_centers must be None or numbers (f, {d}); got {frozen_centers!r}") from None
    if centers.ndim != 2 or centers.shape[1] != d or not 1 <= len(centers) <= k:
        raise ParameterError(
            f"frozen_centers must be None or 1 to n_clusters={k} centers of {d} columns; its shape is {centers.shape}"
        )
    if not np.isfinite(centers).all():
        raise ParameterError("frozen_centers contains NaN or infinity: every center needs finite coordinates")
    return centers


def as_roots(metric_weights: Any, d: int) -> np.ndarray | None:
    """Square roots of the weights of the columns (d,); None where all weigh the same."""
    if metric_weights is None:
        return None
    wanted = f"metric_weights must be None or {d} numbers of at least 0, one a column, and not all 0"
    try:
        weights = as_floats(metric_weights)
    except (TypeError, ValueError):
        raise ParameterError(f"{wanted}; got {metric_weights!r}") from None
    if weights.shape != (d,):
        shape = f"its shape is {weights.shape}" if weights.ndim else f"got {metric_weights!r}"
        raise ParameterError(f"{wanted}; {shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ParameterError(f"{wanted}; got {weights.tolist()}")
    return np.sqrt(weights)


def scale_columns(roots: np.ndarray, X: Any) -> Any:
    """Every column times its root, in the type of `X`."""
    if hasattr(X, "indptr"):
        return type(X)(((X.data * roots[X.indices]).astype(X.dtype), X.indices, X.indptr), shape=X.shape)
    return (X * roots).astype(X.dtype)


def scaled(model: Lloyd, roots: np.ndarray | None) -> Lloyd:
    """The model for rows whose columns are multiplied by `roots`."""
    if roots is None:
        return model
    named = isinstance(model.start, str) or callable(model.start)
    start = model.start if named else np.asarray(model.start, dtype=np.float64) * roots
    return replace(model, start=start, frozen=None if model.frozen is None else model.frozen * roots)


def in_units(
    model: Lloyd, centers: np.ndarray, roots: np.ndarray | None, rows: Callable[[], tuple[Source, Engine, Summary]]
) -> np.ndarray:
    """Centers the model found of scaled rows in the units of the `rows`; of columns distances do not see, the means."""
    if roots is None:
        return centers
    made = centers / np.where(roots > 0, roots, 1)
    if (roots == 0).any():
        source, engine, summary = rows()
        sums = engine.sum(partial(unseen, model, roots, centers), source)
        filled = sums.weight > 0
        means = sums.sum_x / np.where(filled, sums.weight, 1)
        made[:, roots == 0] = np.where(filled, means, summary.mean[roots == 0])
    return made.astype(centers.dtype)


def trace_in_units(trace: Trace, roots: np.ndarray) -> Trace:
    """The trace of scaled rows in the units of the rows, without columns that distances do not see."""
    seen = roots > 0
    steps = [replace(step, centers=step.centers[:, seen] / roots[seen]) for step in trace.steps]
    columns = [name for name, there in zip(trace.columns, seen, strict=True) if there]
    return replace(trace, steps=steps, rows=trace.rows[:, seen] / roots[seen], columns=columns)


@dataclass(frozen=True)
class Unseen(Stats):
    """Sums of columns that distances do not see."""

    weight: Any  # (k, columns) of w, where there is a value
    sum_x: Any  # (k, columns)


def unseen(model: Lloyd, roots: np.ndarray, centers: np.ndarray, chunk: Chunk) -> Unseen:
    """Sums over clusters of the columns whose root is 0; `centers` are those of scaled rows."""
    n, k = chunk.X.shape[0], len(centers)
    labels = model.assign(centers, chunk._replace(X=scale_columns(roots, chunk.X)))
    w = np.ones(n) if chunk.w is None else chunk.w
    picked = sparse.csr_array((w, labels, np.arange(n + 1)), shape=(n, k)).T
    X = chunk.X[:, np.flatnonzero(roots == 0)].astype(np.float64)
    if sparse.issparse(X):
        return Unseen(np.repeat(picked.sum(axis=1)[:, None], X.shape[1], axis=1), (picked @ X).toarray())
    there = ~np.isnan(X)
    return Unseen(picked @ there.astype(np.float64), picked @ np.where(there, X, 0.0))
