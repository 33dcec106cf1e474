"""Initial centers: by k-means++, at random, and the farthest rows.

In k-means++, each new center is a row sampled in proportion to its cost at the previous centers.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie import interrupts, kernels
from coterie.core.arrays import as_dense
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.random_numbers import by_row
from coterie.core.stats import Stats, WeightedSums
from coterie.kernels.membership import membership
from coterie.seeding.costs import SQUARES, WORK, Cost

MAX_CANDIDATES = 7  # of a round: with the last center, as many points as the kernels compare with a row at once
ROUNDS = 64  # maximum number that run before their results are looked at
VALUES = 1 << 28  # maximum number of values that they read, so that Ctrl-C works


def greedy(
    chunk: Chunk,
    rng: np.random.Generator,
    k: int,
    unit: float,
    chosen: Any = None,
    cost: Cost = SQUARES,
) -> np.ndarray[Any, Any]:
    """Compute initial centers by greedy k-means++: `greedy_rows` as centers (k, d)."""
    return cost.take(chunk.X, greedy_rows(chunk, rng, k, unit, None, chosen, cost))


def greedy_rows(
    chunk: Chunk,
    rng: np.random.Generator,
    k: int,
    unit: float,
    n_candidates: int | None = None,
    chosen: Any = None,
    cost: Cost = SQUARES,
) -> np.ndarray[Any, Any]:
    """Choose rows (k,) by greedy k-means++ [1]_: each is the best of several sampled candidates.

    A round is a pass over the rows. It evaluates the candidates, and samples rows for the next round in proportion to
    the costs without the new center. Each of these rows is then accepted with probability (cost with the new center) /
    (cost without). This is rejection sampling from the right distribution. If too few rows are accepted, the next round
    has no candidates and samples again. `chosen` centers (f, d) are already fixed, and are not returned. `cost` is the
    cost that the model minimises; it is used for sampling and for evaluating candidates.

    .. [1] Arthur & Vassilvitskii (2007), k-means++: the advantages of careful seeding, SODA.
    """
    X, w, size = chunk.X, chunk.w, n_candidates or min(2 + int(np.log(k)), MAX_CANDIDATES)
    ops, n_wanted = kernels.for_centers(X, max(k, WORK)), k - (chosen is None)
    rounds = ops.plusplus_rounds(X, w, n_wanted, size, unit, chosen) if cost is SQUARES else None
    if rounds is None:
        rounds = _Rounds(chunk, n_wanted, size, unit, cost)
    first = ops.draw(kernels.row_values(X, 1, X.dtype), w, rng.random(1))[1]
    *others, last = cost.take(X, first) if chosen is None else chosen.astype(X.dtype, copy=False)
    for center in others:
        rounds.add(center)
    rounds.start(last)
    n_centers, is_done, at_once = 0, n_wanted == 0, min(ROUNDS, 1 + VALUES // (X.shape[0] * X.shape[1] + 1))
    while not is_done:
        interrupts.check()
        rounds.run(rng.random((min(n_wanted - n_centers + 1, at_once), 2, 2 * size + 6)))
        n_centers, is_done = rounds.progress()
    missing = np.repeat(first, n_wanted - n_centers)  # X has fewer distinct rows than centers: repeat one
    return np.concatenate([*([first] if chosen is None else []), rounds.rows(n_centers), missing])


class _Rounds:
    """The rounds for any cost; kernels have faster ones for squared distances."""

    def __init__(self, chunk: Chunk, k: int, size: int, unit: float, cost: Cost) -> None:
        self.chunk, self.k, self.size, self.unit, self.cost = chunk, k, size, unit, cost
        self.closest = kernels.row_values(chunk.X, np.inf, chunk.X.dtype)
        self.candidates: Any = np.zeros(0, np.int64)
        self.centers: list[int] = []
        self.is_done = False

    def add(self, center: np.ndarray[Any, Any]) -> None:
        self.start(center)
        self._potentials()

    def start(self, center: np.ndarray[Any, Any]) -> None:
        self.last, self.is_added = center[None], False

    def run(self, u: np.ndarray[Any, Any]) -> None:
        X = self.chunk.X
        for to_sample, to_accept in u:
            interrupts.check()
            potential = self._potentials()
            total, rows = kernels.for_centers(X, WORK).draw(self.closest, self.chunk.w, to_sample)
            self.is_done = self.is_done or not total > 0
            if self.is_done:
                return
            if len(self.candidates):
                best = int(self.candidates[np.argmin(potential[1:])])
                self.centers.append(best)
                self.is_done = len(self.centers) == self.k
                self.start(self.cost.take(X, np.array([best]))[0])
                before = np.asarray(self.closest[rows], np.float64)
                costs = self.cost.table(self.cost.take(X, rows), self.last)[:, 0] / self.unit**self.cost.degree
                rows = rows[to_accept * before < self.cost.beside(before, costs)]
            self.candidates = rows[: self.size] if len(rows) >= self.size else rows[:0]

    def progress(self) -> tuple[int, bool]:
        return len(self.centers), self.is_done

    def rows(self, count: int) -> np.ndarray[Any, Any]:
        return np.array(self.centers[:count], np.int64)

    def _potentials(self) -> np.ndarray[Any, Any]:
        X, w = self.chunk.X, self.chunk.w
        points = np.concatenate([self.last, self.cost.take(X, self.candidates)]).astype(self.last.dtype, copy=False)
        potential, self.is_added = self.cost.spread(X, w, self.unit, points, self.closest, self.is_added), True
        return potential


# Random initial centers: random rows (Forgy), and the means of a random partition.


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


# Farthest-first traversal: each new center is the row farthest from the previous centers.


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
        total = engine.sum(partial(_mean_row, cost), source)
        point = total.sum_x / total.weight
    else:
        *others, point = chosen
        for other in others:
            _, memos = engine.scan(partial(_farthest, other.astype(source.dtype), unit, cost), source, memos)
    for _ in range(k):
        if chosen is None and len(centers) == 1:  # the mean is not a center: its costs do not count
            memos = source.allocate(np.inf, source.dtype)
        farthest_row, memos = engine.scan(partial(_farthest, point.astype(source.dtype), unit, cost), source, memos)
        point = farthest_row.row
        centers.append(point)
    return np.stack(centers)


def _mean_row(cost: Cost, chunk: Chunk) -> WeightedSums:
    X = cost.as_centers(chunk.X)
    weight, sum_x, _ = kernels.for_centers(X, 1).moments(X, chunk.w, np.zeros(X.shape[1]))
    return WeightedSums(weight, sum_x)


def _farthest(
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
