"""What a trace has to ask all rows, chunk by chunk, once a fit is over."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats


@dataclass(frozen=True)
class Divided(Stats):
    """How rows are divided, and how many were elsewhere before."""

    sizes: Any  # (k,) weight of the rows of each cluster
    changed: Any  # rows


@dataclass(frozen=True)
class Sums(Stats):
    """Sums of rows under their shares, over the values that are there."""

    weight: Any  # (k, d)
    sum_x: Any  # (k, d)


class Passes:
    """Questions to all rows of a fit, answered where they were computed on."""

    def __init__(self, model: Any, source: Source, engine: Engine):
        self.model, self.source, self.engine = model, source, engine

    def divided(self, params: Any, before: Any, k: int, renamed: np.ndarray | None) -> Divided:
        """Sizes of the clusters at `params`, and rows that were in another one at `before` (None: no answer).

        `renamed` (k,) says which component now is which of those before.
        """
        found: Divided = self.engine.sum(partial(_divided, self.model, params, before, k, renamed), self.source)
        return found

    def halfway(self, one: Any, other: Any, order: np.ndarray | None = None) -> float:
        """The objective with the rows divided as at `one`, and the parameters of `other`."""
        how = {} if order is None else {"order": order}
        stats = self.engine.sum(partial(self.model.halfway, one, other, **how), self.source)
        return float(self.model.objective(other, stats))

    def means(self, params: Any) -> np.ndarray:
        """The mean row of each component (k, d), rows counting by their shares; the mean of all where it has none."""
        sums = self.engine.sum(partial(_sums, self.model, params), self.source)
        everywhere = sums.sum_x.sum(axis=0) / np.maximum(sums.weight.sum(axis=0), np.finfo(np.float64).tiny)
        filled = sums.weight > 0
        found: np.ndarray = np.where(filled, sums.sum_x / np.where(filled, sums.weight, 1.0), everywhere)
        return found


def _divided(model: Any, params: Any, before: Any, k: int, renamed: np.ndarray | None, chunk: Chunk) -> Divided:
    labels = np.asarray(model.assign(params, chunk))
    sizes = np.bincount(labels, chunk.w, k).astype(np.float64)
    if before is None:
        return Divided(sizes, 0)
    now = labels if renamed is None else renamed[labels]
    return Divided(sizes, int(np.count_nonzero(now != np.asarray(model.assign(before, chunk)))))


def _sums(model: Any, params: Any, chunk: Chunk) -> Sums:
    r = np.asarray(model.probabilities(params, chunk), dtype=np.float64)
    r = (r if chunk.w is None else chunk.w[:, None] * r).T
    if hasattr(chunk.X, "indptr"):
        weight = np.broadcast_to(r.sum(axis=1)[:, None], (len(r), chunk.X.shape[1]))
        return Sums(weight, np.asarray((chunk.X.T @ r.T).T, dtype=np.float64))
    there = ~np.isnan(chunk.X)
    return Sums(r @ there, r @ np.where(there, chunk.X, 0.0))
