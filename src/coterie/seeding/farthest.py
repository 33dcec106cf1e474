"""Farthest-first traversal: each new center is the row farthest from those there are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.seeding.plusplus import WORK


@dataclass(frozen=True)
class Farthest(Stats):
    """The farthest row; of two equally far, the first."""

    square: Any
    row: Any  # (d,)

    def __add__(self, other: Farthest) -> Farthest:
        return self if self.square >= other.square else other


@dataclass(frozen=True)
class Mean(Stats):
    weight: Any
    sum_x: Any  # (d,)


def farthest(
    source: Source, engine: Engine, rng: np.random.Generator, k: int, unit: float, chosen: Any = None
) -> np.ndarray[Any, Any]:
    """Centers that do not depend on chance [1]_: the row farthest from the mean, then the one farthest from that, ...

    Finds every well-separated group, and every outlier too. One pass a center. With centers `chosen` before, the first
    is the row farthest from those.

    .. [1] Gonzalez (1985), Clustering to minimize the maximum intercluster distance, Theor. Comput. Sci. 38.
    """
    centers: list[np.ndarray[Any, Any]] = []
    memos = source.room(np.inf, source.dtype)
    if chosen is None:
        total = engine.sum(_mean, source)
        point = total.sum_x / total.weight
    else:
        *others, point = chosen
        for other in others:
            _, memos = engine.scan(partial(_step, other.astype(source.dtype), unit), source, memos)
    for _ in range(k):
        if chosen is None and len(centers) == 1:  # the mean is no center: it only says where the first one is
            memos = source.room(np.inf, source.dtype)
        found, memos = engine.scan(partial(_step, point.astype(source.dtype), unit), source, memos)
        point = found.row
        centers.append(point)
    return np.stack(centers)


def _mean(chunk: Chunk) -> Mean:
    weight, sum_x, _ = kernels.of(chunk.X, 1).moments(chunk.X, chunk.w, np.zeros(chunk.X.shape[1]))
    return Mean(weight, sum_x)


def _step(
    point: np.ndarray[Any, Any], unit: float, chunk: Chunk, closest: Any
) -> tuple[Farthest, np.ndarray[Any, Any]]:
    ops = kernels.of(chunk.X, WORK)
    if closest is None:
        closest = np.full(chunk.X.shape[0], np.inf, chunk.X.dtype)
    if len(closest) == 0:
        return Farthest(-np.inf, np.zeros(chunk.X.shape[1], chunk.X.dtype)), closest
    ops.spread(chunk.X, chunk.w, unit, point[None], closest)
    counted = closest if chunk.w is None else np.where(chunk.w > 0, closest, -1.0)
    row = int(np.argmax(counted))
    return Farthest(float(counted[row]), ops.take(chunk.X, np.array([row]))[0]), closest
