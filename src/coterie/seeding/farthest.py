"""Farthest-first traversal: each new center is the row farthest from those there are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.seeding.costs import SQUARES, Cost


@dataclass(frozen=True)
class Farthest(Stats):
    """The farthest row; of two equally far, the first."""

    cost: Any
    row: Any  # (d,)

    def __add__(self, other: Farthest) -> Farthest:
        return self if self.cost >= other.cost else other


@dataclass(frozen=True)
class Mean(Stats):
    weight: Any
    sum_x: Any  # (d,)


def farthest(
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    k: int,
    unit: float,
    chosen: Any = None,
    cost: Cost = SQUARES,
) -> np.ndarray[Any, Any]:
    """Centers that do not depend on chance [1]_: the row farthest from the mean, then the one farthest from that, ...

    Finds every well-separated group, and every outlier too. One pass a center. With centers `chosen` before, the first
    is the row farthest from those. The farthest row is the one with the highest `cost`.

    .. [1] Gonzalez (1985), Clustering to minimize the maximum intercluster distance, Theor. Comput. Sci. 38.
    """
    centers: list[np.ndarray[Any, Any]] = []
    memos = source.room(np.inf, source.dtype)
    if chosen is None:
        total = engine.sum(partial(_mean, cost), source)
        point = total.sum_x / total.weight
    else:
        *others, point = chosen
        for other in others:
            _, memos = engine.scan(partial(_step, other.astype(source.dtype), unit, cost), source, memos)
    for _ in range(k):
        if chosen is None and len(centers) == 1:  # the mean is no center: it only says where the first one is
            memos = source.room(np.inf, source.dtype)
        found, memos = engine.scan(partial(_step, point.astype(source.dtype), unit, cost), source, memos)
        point = found.row
        centers.append(point)
    return np.stack(centers)


def _mean(cost: Cost, chunk: Chunk) -> Mean:
    X = cost.as_centers(chunk.X)
    weight, sum_x, _ = kernels.for_centers(X, 1).moments(X, chunk.w, np.zeros(X.shape[1]))
    return Mean(weight, sum_x)


def _step(
    point: np.ndarray[Any, Any], unit: float, cost: Cost, chunk: Chunk, closest: Any
) -> tuple[Farthest, np.ndarray[Any, Any]]:
    if closest is None:
        closest = np.full(chunk.X.shape[0], np.inf, chunk.X.dtype)
    if len(closest) == 0:
        return Farthest(-np.inf, np.zeros(chunk.X.shape[1], chunk.X.dtype)), closest
    cost.spread(chunk.X, chunk.w, unit, point[None], closest)
    counted = closest if chunk.w is None else np.where(chunk.w > 0, closest, -1.0)
    row = int(np.argmax(counted))
    return Farthest(float(counted[row]), cost.take(chunk.X, np.array([row]))[0]), closest
