"""k-means||: each pass samples many candidates in proportion to their costs; k-means++ then chooses among them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.random_numbers import uniform
from coterie.core.stats import Stats
from coterie.seeding.costs import SQUARES, Cost
from coterie.seeding.plusplus import forgy, plusplus

OVERSAMPLING = 2  # expected number of candidates per round, for each center
ROUNDS = 5  # sufficient according to the paper, unless the potential still decreases
MAX_ROUNDS = 20
STEPS = 8  # iterations of Lloyd's algorithm among the candidates


@dataclass(frozen=True)
class Arrivals(Stats):
    """The potential, and the rows that arrive before the time `expected` / potential.

    The arrival time of a row is exponential, and its rate is the weighted cost of the row. A chunk knows only its own
    potential, which is at most the total. So it reports all rows that are needed, and some that are removed when the
    chunks are added.
    """

    potential: Any
    arrival: Any  # (m,)
    rows: Any  # (m, d)
    expected: float  # number of rows

    def __add__(self, other: "Arrivals") -> "Arrivals":
        potential = self.potential + other.potential
        arrival, rows = np.concatenate([self.arrival, other.arrival]), np.concatenate([self.rows, other.rows])
        in_time = arrival * potential < self.expected
        return Arrivals(potential, arrival[in_time], rows[in_time], self.expected)


class Nearest(NamedTuple):
    """The memo of a part between two rounds."""

    cost: np.ndarray[Any, Any]  # (n,) at the candidates
    owner: np.ndarray[Any, Any]  # (n,) nearest candidate


def scalable(
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    k: int,
    unit: float,
    chosen: Any = None,
    cost: Cost = SQUARES,
) -> np.ndarray[Any, Any]:
    r"""Compute initial centers by k-means|| [1]_: with a few passes instead of one pass per center.

    A round samples each row, independently of the others, with probability

    .. math:: 1 - \exp(-2 k w_i c_i / \psi), \qquad \psi = \sum_i w_i c_i

    where :math:`c_i` is its `cost` at the candidates so far. This is about :math:`\min(1, 2 k w_i c_i / \psi)` as in
    the paper, but makes a row of weight 2 equivalent to two equal rows. There are at least five rounds, and up to
    twenty while a round reduces the potential by more than half, or there are fewer than k candidates. The weight of a
    candidate is the weight of the rows nearest to it. Greedy k-means++ chooses k of the candidates. If costs are
    squared distances, some iterations of Lloyd's algorithm on the candidates then improve them. `chosen` centers (f, d)
    are candidates from the beginning, and are not returned.

    The number of passes is the number of rounds plus two. Each takes as long as one iteration of Lloyd's algorithm with
    2 k centers. k-means++ among about 10 k candidates follows, on one thread. The method is faster than `plusplus` for
    hundreds of centers, and if passes are expensive, for example over files or on a cluster. The centers are not rows
    of the data. It needs 12 bytes of memory per row, and the dense candidates.

    .. [1] Bahmani, Moseley, Vattani, Kumar & Vassilvitskii (2012), Scalable k-means++, PVLDB 5(7).
       https://doi.org/10.14778/2180912.2180915
    """
    first = forgy(source, engine, rng, 1, unit, cost) if chosen is None else chosen.astype(source.dtype, copy=False)
    candidates, weight = _oversample(source, engine, rng, k, unit, first, cost)
    is_free = weight > 0  # of equal candidates, the first has all the weight
    if chosen is not None:
        is_free[: len(chosen)] = False
    single: Any = _SingleChunk(Chunk(candidates[is_free], weight[is_free], 0))
    if len(single.chunk.X) > k:
        centers = plusplus(single, single, rng, k, unit, chosen=chosen, cost=cost)
        return _lloyd(single.chunk, centers, chosen) if cost.has_means else centers
    n_missing = k - len(single.chunk.X)
    if n_missing == 0:
        return single.chunk.X
    fixed = single.chunk.X if chosen is None else np.concatenate([first, single.chunk.X])
    return np.concatenate([single.chunk.X, plusplus(source, engine, rng, n_missing, unit, chosen=fixed, cost=cost)])


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
    room = zip(source.allocate(np.inf, np.float64), source.allocate(0, np.int32), strict=True)
    memos = [None if costs is None or owners is None else Nearest(costs, owners) for costs, owners in room]
    rounds, count, potential = [first], len(first), [np.inf]
    while _needs_round(len(rounds), count - len(first), k, potential):
        apply = partial(_apply, rounds[-1], count - len(rounds[-1]), unit, cost)
        step = partial(_draw, apply, int(rng.integers(2**63)), OVERSAMPLING * k, cost)
        arrivals, memos = engine.scan(step, source, memos)
        rounds.append(arrivals.rows)
        potential.append(arrivals.potential)
        count += len(arrivals.rows)
    apply = partial(_apply, rounds[-1], count - len(rounds[-1]), unit, cost)
    weights, _ = engine.scan(partial(_candidate_weights, apply, count), source, memos)
    return np.concatenate(rounds), weights


def _needs_round(n_rounds: int, n_candidates: int, k: int, potential: list[float]) -> bool:
    """Whether another round is needed; the choice of the first candidate is included in `n_rounds`."""
    if potential[-1] == 0 or n_rounds > MAX_ROUNDS:
        return False
    return n_rounds <= ROUNDS or n_candidates < k or potential[-1] < 0.5 * potential[-2]


def _apply(
    points: np.ndarray[Any, Any], n_before: int, unit: float, cost: Cost, chunk: Chunk, memo: Nearest | None
) -> tuple[np.ndarray[Any, Any], Nearest]:
    """Update the memo with new candidates `points`, which follow `n_before` others; return weights and memo."""
    n = chunk.X.shape[0]
    if memo is None:
        memo = Nearest(np.full(n, np.inf), np.zeros(n, np.int32))
    if len(points):
        label, is_nearer = cost.add(chunk.X, unit, points, memo.cost)
        memo.owner[is_nearer] = n_before + label[is_nearer]
    return chunk.weights, memo


def _draw(
    apply: Callable[..., Any], seed: int, expected: float, cost: Cost, chunk: Chunk, memo: Nearest | None
) -> tuple[Arrivals, Nearest]:
    w, memo = apply(chunk, memo)
    mass = np.multiply(w, memo.cost, out=np.zeros(len(w)), where=w > 0)  # costs of rows of weight 0 can be infinite
    potential = float(mass.sum())
    positive = np.flatnonzero(mass)
    arrival = -np.log(uniform(seed, chunk.first, len(mass))[positive]) / mass[positive]
    in_time = arrival * potential < expected
    rows = cost.take(chunk.X, positive[in_time])
    return Arrivals(potential, arrival[in_time], rows, expected), memo


def _candidate_weights(
    apply: Callable[..., Any], count: int, chunk: Chunk, memo: Nearest | None
) -> tuple[np.ndarray[Any, Any], Nearest]:
    w, memo = apply(chunk, memo)
    return np.bincount(memo.owner, w, count), memo


class _SingleChunk:
    """A single chunk as a source, and as the engine for it."""

    engine = "serial"

    def __init__(self, chunk: Chunk):
        self.chunk, self.dtype, self.shape = chunk, chunk.X.dtype, chunk.X.shape

    def allocate(self, fill: Any, dtype: Any) -> list[Any]:
        return [np.full(len(self.chunk.X), fill, dtype)]

    def scan(self, step: Callable[..., Any], source: "_SingleChunk", memos: list[Any]) -> tuple[Any, list[Any]]:
        stats, memo = step(self.chunk, memos[0])
        return stats, [memo]


def _lloyd(chunk: Chunk, centers: np.ndarray[Any, Any], chosen: Any) -> np.ndarray[Any, Any]:
    """The centers after some iterations of Lloyd's algorithm; `chosen` centers are included, but do not move."""
    n_fixed = 0 if chosen is None else len(chosen)
    if n_fixed:
        centers = np.concatenate([chosen.astype(centers.dtype), centers])
    ops, labels = kernels.for_centers(chunk.X, len(centers)), np.full(len(chunk.X), -1, np.int32)
    no_bounds = np.zeros(0, "f4")
    for _ in range(STEPS):
        sums = ops.lloyd(chunk.X, chunk.w, centers, centers, labels, no_bounds)
        if sums.moved == 0:
            break
        step = sums.sum_dx / np.where(sums.weight > 0, sums.weight, 1)[:, None]
        step[:n_fixed] = 0
        centers = (centers + step).astype(centers.dtype)
    return centers[n_fixed:]
