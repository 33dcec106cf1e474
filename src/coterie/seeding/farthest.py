"""Farthest-first traversal: each new center is the row farthest from the previous centers."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats, WeightedSums
from coterie.seeding.costs import SQUARES, Cost


@dataclass(frozen=True)
class Farthest(Stats):
    """The farthest row; the first one for ties."""

    cost: Any
    row: Any  # (d,)

    def __add__(self, other: "Farthest") -> "Farthest":
        return self if self.cost >= other.cost else other


def farthest(
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    k: int,
    unit: float,
    chosen: Any = None,
    cost: Cost = SQUARES,
) -> np.ndarray[Any, Any]:
    """Compute initial centers by farthest-first traversal [1]_, without randomness.

    The first center is the row farthest from the mean, or from the `chosen` centers if given. Each further center is
    the row with the largest `cost` at all centers before. The method finds all well-separated clusters, but also all
    outliers. It takes one pass over the data per center.

    .. [1] Gonzalez (1985), Clustering to minimize the maximum intercluster distance, Theor. Comput. Sci. 38.
    """
    centers: list[np.ndarray[Any, Any]] = []
    memos = source.allocate(np.inf, source.dtype)
    if chosen is None:
        total = engine.sum(partial(_mean, cost), source)
        point = total.sum_x / total.weight
    else:
        *others, point = chosen
        for other in others:
            _, memos = engine.scan(partial(_step, other.astype(source.dtype), unit, cost), source, memos)
    for _ in range(k):
        if chosen is None and len(centers) == 1:  # the mean is not a center: its costs do not count
            memos = source.allocate(np.inf, source.dtype)
        farthest_row, memos = engine.scan(partial(_step, point.astype(source.dtype), unit, cost), source, memos)
        point = farthest_row.row
        centers.append(point)
    return np.stack(centers)


def _mean(cost: Cost, chunk: Chunk) -> WeightedSums:
    X = cost.as_centers(chunk.X)
    weight, sum_x, _ = kernels.for_centers(X, 1).moments(X, chunk.w, np.zeros(X.shape[1]))
    return WeightedSums(weight, sum_x)


def _step(
    point: np.ndarray[Any, Any], unit: float, cost: Cost, chunk: Chunk, closest: Any
) -> tuple[Farthest, np.ndarray[Any, Any]]:
    if closest is None:
        closest = np.full(chunk.X.shape[0], np.inf, chunk.X.dtype)
    if len(closest) == 0:
        return Farthest(-np.inf, np.zeros(chunk.X.shape[1], chunk.X.dtype)), closest
    cost.spread(chunk.X, chunk.w, unit, point[None], closest)
    costs = closest if chunk.w is None else np.where(chunk.w > 0, closest, -1.0)
    row = int(np.argmax(costs))
    return Farthest(float(costs[row]), cost.take(chunk.X, np.array([row]))[0]), closest
