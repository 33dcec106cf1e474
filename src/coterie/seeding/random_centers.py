"""Random initial centers: random rows (Forgy), and the means of a random partition."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie.core.arrays import as_dense
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.random_numbers import by_row
from coterie.core.stats import Stats, WeightedSums
from coterie.kernels.membership import membership
from coterie.seeding.costs import SQUARES, Cost


@dataclass(frozen=True)
class FirstRows(Stats):
    """The `count` rows with the smallest keys."""

    key: Any  # (m,) ascending
    rows: Any  # (m, d)
    count: int

    def __add__(self, other: "FirstRows") -> "FirstRows":
        key, rows = np.concatenate([self.key, other.key]), np.concatenate([self.rows, other.rows])
        first = np.argsort(key, kind="stable")[: self.count]
        return FirstRows(key[first], rows[first], self.count)


def forgy(
    source: Source, engine: Engine, rng: np.random.Generator, k: int, unit: float, cost: Cost = SQUARES
) -> np.ndarray[Any, Any]:
    """Choose `k` different rows at random, with probabilities proportional to their weights [1]_.

    Takes one pass over the data. If fewer than `k` rows have a positive weight, they are repeated.

    .. [1] Efraimidis & Spirakis (2006), Weighted random sampling with a reservoir, Inf. Process. Lett. 97.
    """
    rows = engine.sum(partial(_first_rows, int(rng.integers(2**63)), k, cost), source).rows
    return rows[np.arange(k) % len(rows)]


def random_partition(
    source: Source, engine: Engine, rng: np.random.Generator, k: int, unit: float, cost: Cost = SQUARES
) -> np.ndarray[Any, Any]:
    """Compute the means of a random partition into `k` clusters; all are near the mean of the data. Takes one pass."""
    sums = engine.sum(partial(_labelled_sums, int(rng.integers(2**63)), k, cost), source)
    empty = sums.weight == 0
    means = sums.sum_x / np.where(empty, 1, sums.weight)[:, None]
    if empty.any():
        means[empty] = forgy(source, engine, rng, k, unit, cost)[empty]
    return means


def _first_rows(seed: int, k: int, cost: Cost, chunk: Chunk) -> FirstRows:
    key = by_row(np.random.Generator.standard_exponential, seed, chunk.first, chunk.X.shape[0])
    if chunk.w is not None:
        key = np.where(chunk.w > 0, key / np.where(chunk.w > 0, chunk.w, 1), np.inf)
    first = np.argsort(key, kind="stable")[:k]
    first = first[np.isfinite(key[first])]
    return FirstRows(key[first], cost.take(chunk.X, first), k)


def _labelled_sums(seed: int, k: int, cost: Cost, chunk: Chunk) -> WeightedSums:
    labels = by_row(lambda rng, size: rng.integers(k, size=size), seed, chunk.first, chunk.X.shape[0])
    members = membership(labels, k, chunk.w)
    return WeightedSums(members.sum(axis=1), as_dense(members @ cost.as_centers(chunk.X)))
