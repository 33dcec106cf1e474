"""k-means||: many rows a pass, drawn by what they cost, then as many centers as wanted from these few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.seeding.costs import SQUARES, Cost
from coterie.seeding.plusplus import plusplus, uniform
from coterie.seeding.rows import forgy

OVERSAMPLING = 2  # candidates that a round draws for each center wanted, on average
ROUNDS = 5  # enough, says the paper, unless the potential still falls
MOST_ROUNDS = 20
STEPS = 8  # of Lloyd, among the candidates


@dataclass(frozen=True)
class Arrivals(Stats):
    """The potential, and the rows that arrive before time `wanted` / potential.

    Each row arrives at the rate of its share of the potential. A chunk knows its own potential alone, which is no more
    than that of all: it reports rows that turn out to be late when sums are added, and never misses one.
    """

    potential: Any
    arrival: Any  # (m,)
    rows: Any  # (m, d)
    wanted: float

    def __add__(self, other: Arrivals) -> Arrivals:
        potential = self.potential + other.potential
        arrival, rows = np.concatenate([self.arrival, other.arrival]), np.concatenate([self.rows, other.rows])
        in_time = arrival * potential < self.wanted
        return Arrivals(potential, arrival[in_time], rows[in_time], self.wanted)


@dataclass(frozen=True)
class Owned(Stats):
    weight: Any  # (m,) of the rows nearest to each candidate


class Nearest(NamedTuple):
    """What a part remembers of its rows between two rounds."""

    cost: np.ndarray[Any, Any]  # (n,) at the candidates
    owner: np.ndarray[Any, Any]  # (n,) the nearest candidate


def scalable(
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    k: int,
    unit: float,
    chosen: Any = None,
    cost: Cost = SQUARES,
) -> np.ndarray[Any, Any]:
    r"""Centers by k-means|| [1]_: a few passes instead of one for each center.

    A round takes every row, independently of the others, with probability

    .. math:: 1 - \exp(-2 k w_i c_i / \psi), \qquad \psi = \sum_i w_i c_i

    where :math:`c_i` is its `cost` at the candidates so far: about :math:`\min(1, 2 k w_i c_i / \psi)` as in
    the paper, but so that a row of weight two is that row twice. There are five rounds, and more, up to twenty, while
    one takes away more than half of the potential or fewer than k candidates are found. Candidates count as much as
    the rows nearest to them; greedy k-means++ chooses k of them; where costs are squares, some steps of Lloyd among
    them move these. Centers `chosen` before (f, d) are candidates from the beginning, and are not returned.

    Passes: the rounds and two, each as much work as one step of Lloyd with 2 k centers; then k-means++ among about 10 k
    candidates, on one thread. Quicker than `plusplus` for hundreds of centers, and wherever a pass is dear, because it
    reads a disk or asks a cluster. Its centers are no rows. Memory: 12 bytes a row, and the candidates, dense.

    .. [1] Bahmani, Moseley, Vattani, Kumar & Vassilvitskii (2012), Scalable k-means++, PVLDB 5(7).
       https://doi.org/10.14778/2180912.2180915
    """
    first = forgy(source, engine, rng, 1, unit, cost) if chosen is None else chosen.astype(source.dtype, copy=False)
    candidates, weight = _oversample(source, engine, rng, k, unit, first, cost)
    free = weight > 0  # of equal rows the first has all
    if chosen is not None:
        free[: len(chosen)] = False
    few: Any = _Few(Chunk(candidates[free], weight[free], 0))
    if len(few.chunk.X) > k:
        centers = plusplus(few, few, rng, k, unit, chosen=chosen, cost=cost)
        return _improved(few.chunk, centers, chosen) if cost.has_means else centers
    missing = k - len(few.chunk.X)
    if missing == 0:
        return few.chunk.X
    there = few.chunk.X if chosen is None else np.concatenate([first, few.chunk.X])
    return np.concatenate([few.chunk.X, plusplus(source, engine, rng, missing, unit, chosen=there, cost=cost)])


def _oversample(
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    k: int,
    unit: float,
    first: np.ndarray[Any, Any],
    cost: Cost,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Candidates (m, d), and the weight of the rows nearest to each."""
    room = zip(source.room(np.inf, np.float64), source.room(0, np.int32), strict=True)
    memos = [None if costs is None or owners is None else Nearest(costs, owners) for costs, owners in room]
    rounds, count, potential = [first], len(first), [np.inf]
    while _worthwhile(len(rounds), count - len(first), k, potential):
        apply = partial(_apply, rounds[-1], count - len(rounds[-1]), unit, cost)
        step = partial(_draw, apply, int(rng.integers(2**63)), OVERSAMPLING * k, cost)
        found, memos = engine.scan(step, source, memos)
        rounds.append(found.rows)
        potential.append(found.potential)
        count += len(found.rows)
    apply = partial(_apply, rounds[-1], count - len(rounds[-1]), unit, cost)
    owned, _ = engine.scan(partial(_weigh, apply, count), source, memos)
    return np.concatenate(rounds), owned.weight


def _worthwhile(drawn: int, found: int, k: int, potential: list[float]) -> bool:
    """Whether to go on; the first row counts as one of those `drawn`."""
    if potential[-1] == 0 or drawn > MOST_ROUNDS:
        return False
    return drawn <= ROUNDS or found < k or potential[-1] < 0.5 * potential[-2]


def _apply(
    points: np.ndarray[Any, Any], before: int, unit: float, cost: Cost, chunk: Chunk, memo: Nearest | None
) -> tuple[np.ndarray[Any, Any], Nearest]:
    """Rows that are nearer to one of the new `points` than to the `before` older ones learn so; the weights."""
    n = chunk.X.shape[0]
    if memo is None:
        memo = Nearest(np.full(n, np.inf), np.zeros(n, np.int32))
    if len(points):
        label, nearer = cost.add(chunk.X, unit, points, memo.cost)
        memo.owner[nearer] = before + label[nearer]
    return np.ones(n) if chunk.w is None else chunk.w, memo


def _draw(
    apply: Callable[..., Any], seed: int, wanted: float, cost: Cost, chunk: Chunk, memo: Nearest | None
) -> tuple[Arrivals, Nearest]:
    w, memo = apply(chunk, memo)
    mass = np.multiply(w, memo.cost, out=np.zeros(len(w)), where=w > 0)  # rows without weight may be infinitely far
    potential = float(mass.sum())
    can = np.flatnonzero(mass)
    arrival = -np.log(uniform(seed, chunk.part, len(mass))[can]) / mass[can]
    in_time = arrival * potential < wanted
    rows = cost.take(chunk.X, can[in_time])
    return Arrivals(potential, arrival[in_time], rows, wanted), memo


def _weigh(apply: Callable[..., Any], count: int, chunk: Chunk, memo: Nearest | None) -> tuple[Owned, Nearest]:
    w, memo = apply(chunk, memo)
    return Owned(np.bincount(memo.owner, w, count)), memo


class _Few:
    """Rows few enough to be one chunk: as a source, and as the engine that goes over it."""

    def __init__(self, chunk: Chunk):
        self.chunk, self.dtype, self.shape = chunk, chunk.X.dtype, chunk.X.shape

    def room(self, fill: Any, dtype: Any) -> list[Any]:
        return [np.full(len(self.chunk.X), fill, dtype)]

    def scan(self, step: Callable[..., Any], source: _Few, memos: list[Any]) -> tuple[Any, list[Any]]:
        stats, memo = step(self.chunk, memos[0])
        return stats, [memo]


def _improved(chunk: Chunk, centers: np.ndarray[Any, Any], chosen: Any) -> np.ndarray[Any, Any]:
    """The centers after some steps of Lloyd beside those `chosen`, which stay."""
    fixed = 0 if chosen is None else len(chosen)
    if fixed:
        centers = np.concatenate([chosen.astype(centers.dtype), centers])
    ops, labels, no_bounds = (
        kernels.for_centers(chunk.X, len(centers)),
        np.full(len(chunk.X), -1, np.int32),
        np.zeros(0, "f4"),
    )
    for _ in range(STEPS):
        sums = ops.lloyd(chunk.X, chunk.w, centers, centers, labels, no_bounds)
        if sums.moved == 0:
            break
        step = sums.sum_dx / np.where(sums.weight > 0, sums.weight, 1)[:, None]
        step[:fixed] = 0
        centers = (centers + step).astype(centers.dtype)
    return centers[fixed:]
