"""Weights of the columns, and conversion of centers between scaled and original columns."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from coterie.base import Summary
from coterie.core.arguments import as_numbers
from coterie.core.arrays import is_sparse
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import WeightedSums
from coterie.errors import ParameterError
from coterie.kernels.membership import membership
from coterie.kmeans.lloyd import Lloyd
from coterie.traces import Trace


def as_roots(metric_weights: Any, d: int) -> np.ndarray | None:
    """Square roots of the column weights (d,), or None if there are no weights."""
    if metric_weights is None:
        return None
    expected = f"None or {d} numbers >= 0, one per column, not all 0"
    weights = as_numbers("metric_weights", metric_weights, expected)
    if weights.shape != (d,):
        shape = f"its shape is {weights.shape}" if weights.ndim else f"got {metric_weights!r}"
        raise ParameterError(f"metric_weights must be {expected}; {shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ParameterError(f"metric_weights must be {expected}; got {weights.tolist()}")
    return np.sqrt(weights)


def scale_columns(roots: np.ndarray, X: Any) -> Any:
    """Multiply every column by its root, in the dtype of `X`."""
    if is_sparse(X):
        return type(X)(((X.data * roots[X.indices]).astype(X.dtype), X.indices, X.indptr), shape=X.shape)
    return (X * roots).astype(X.dtype)


def scaled(model: Lloyd, roots: np.ndarray | None) -> Lloyd:
    """Model for rows whose columns are multiplied by `roots`."""
    if roots is None:
        return model
    is_method = isinstance(model.start, str) or callable(model.start)
    start = model.start if is_method else np.asarray(model.start, dtype=np.float64) * roots
    return replace(model, start=start, frozen=None if model.frozen is None else model.frozen * roots)


def in_units(
    model: Lloyd, centers: np.ndarray, roots: np.ndarray | None, open_rows: Callable[[], tuple[Source, Engine, Summary]]
) -> np.ndarray:
    """Centers of scaled rows in the original units; columns of weight 0 get the means of the clusters."""
    if roots is None:
        return centers
    result = centers / np.where(roots > 0, roots, 1)
    if (roots == 0).any():
        source, engine, summary = open_rows()
        sums = engine.sum(partial(zero_weight_sums, model, roots, centers), source)
        filled = sums.weight > 0
        means = sums.sum_x / np.where(filled, sums.weight, 1)
        result[:, roots == 0] = np.where(filled, means, summary.mean[roots == 0])
    return result.astype(centers.dtype)


def trace_in_units(trace: Trace, roots: np.ndarray) -> Trace:
    """Trace in the units of the original rows, without columns of weight 0."""
    has_weight = roots > 0
    steps = [replace(step, centers=step.centers[:, has_weight] / roots[has_weight]) for step in trace.steps]
    columns = [name for name, included in zip(trace.columns, has_weight, strict=True) if included]
    return replace(trace, steps=steps, rows=trace.rows[:, has_weight] / roots[has_weight], columns=columns)


def zero_weight_sums(model: Lloyd, roots: np.ndarray, centers: np.ndarray, chunk: Chunk) -> WeightedSums:
    """Sums over clusters of the columns whose root is 0. `centers` are centers of scaled rows."""
    labels = model.assign(centers, chunk._replace(X=scale_columns(roots, chunk.X)))
    members = membership(labels, len(centers), chunk.w)
    X = chunk.X[:, np.flatnonzero(roots == 0)].astype(np.float64)
    if sparse.issparse(X):
        return WeightedSums(np.repeat(members.sum(axis=1)[:, None], X.shape[1], axis=1), (members @ X).toarray())
    is_observed = ~np.isnan(X)
    return WeightedSums(members @ is_observed.astype(np.float64), members @ np.where(is_observed, X, 0.0))
