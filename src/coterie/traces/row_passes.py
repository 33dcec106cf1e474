"""Statistics of all rows at the parameters of a recorded fit, computed by passes over the data."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie.core.arrays import is_sparse
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats, WeightedSums


@dataclass(frozen=True)
class Assignment(Stats):
    """Sizes of the clusters, and the number of rows whose cluster changed."""

    sizes: Any  # (k,) weight of the rows of each cluster
    changed: Any  # number of rows


class RowPasses:
    """Passes over all rows of a fit, on the engine of the fit."""

    def __init__(self, model: Any, source: Source, engine: Engine):
        self.model, self.source, self.engine = model, source, engine

    def assignment(self, params: Any, previous: Any, k: int, component_map: np.ndarray | None) -> Assignment:
        """Return the sizes of the clusters at `params`, and the number of rows whose cluster at `previous` differs.

        `component_map` (k,) maps components at `params` to components at `previous`, which may be None.
        """
        step = partial(_assignment, self.model, params, previous, k, component_map)
        return self.engine.sum(step, self.source)

    def labels(self, params: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of all rows at `params` (n,), and the sizes of the clusters (k,)."""
        parts = self.engine.map(partial(_labels, self.model, params, k), self.source)
        labels = np.concatenate([np.asarray(part[0]) for part in parts])
        return labels, np.sum([part[1] for part in parts], axis=0)

    def halfway(self, assign_params: Any, params: Any, order: np.ndarray | None = None) -> float:
        """Return the objective at `params` for rows that are assigned by `assign_params`."""
        options = {} if order is None else {"order": order}
        stats = self.engine.sum(partial(self.model.halfway, assign_params, params, **options), self.source)
        return float(self.model.objective(params, stats))

    def means(self, params: Any) -> np.ndarray:
        """Return the mean of each component (k, d), weighted by responsibilities; the overall mean if it is empty."""
        sums = self.engine.sum(partial(_sums, self.model, params), self.source)
        overall = sums.sum_x.sum(axis=0) / np.maximum(sums.weight.sum(axis=0), np.finfo(np.float64).tiny)
        has_weight = sums.weight > 0
        return np.where(has_weight, sums.sum_x / np.where(has_weight, sums.weight, 1.0), overall)


def _assignment(
    model: Any, params: Any, previous: Any, k: int, component_map: np.ndarray | None, chunk: Chunk
) -> Assignment:
    labels = np.asarray(model.assign(params, chunk))
    sizes = np.bincount(labels, chunk.w, k).astype(np.float64)
    if previous is None:
        return Assignment(sizes, 0)
    labels = labels if component_map is None else component_map[labels]
    return Assignment(sizes, int(np.count_nonzero(labels != np.asarray(model.assign(previous, chunk)))))


def _labels(model: Any, params: Any, k: int, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    labels = np.asarray(model.assign(params, chunk))
    return labels, np.bincount(labels, chunk.w, k).astype(np.float64)


def _sums(model: Any, params: Any, chunk: Chunk) -> WeightedSums:
    r = np.asarray(model.probabilities(params, chunk), dtype=np.float64)
    r = (r if chunk.w is None else chunk.w[:, None] * r).T
    if is_sparse(chunk.X):
        weight = np.broadcast_to(r.sum(axis=1)[:, None], (len(r), chunk.X.shape[1]))
        return WeightedSums(weight, np.asarray((chunk.X.T @ r.T).T, dtype=np.float64))
    is_known = ~np.isnan(chunk.X)
    return WeightedSums(r @ is_known, r @ np.where(is_known, chunk.X, 0.0))
