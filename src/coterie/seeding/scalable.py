"""k-means||: each pass samples many candidates in proportion to their costs; k-means++ then chooses among them."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.seeding.costs import SQUARES, WORK, Cost
from coterie.seeding.plusplus import greedy

MAX_WORK = 1 << 24  # values of the table, times centers, up to which k-means++ on all rows is as fast
MAX_WORK_SPARSE = 1 << 27  # the same for the stored values of sparse rows, whose samples are dense
FEW = 10  # rows for each center up to which k-means++ runs on all rows
SAMPLE, SHARE, MIN_SAMPLE = 32, 0.1, 64  # rows of the first sample: for each center, maximum share of all rows, minimum
SAMPLE_VALUES = 1 << 24  # maximum number of values of the first sample
OVERSAMPLING = 1  # expected number of candidates per round, for each center
MAX_ROUNDS = 20
STEPS = 3  # iterations of Lloyd's algorithm among the candidates


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
    weight: Any  # (m,)
    expected: float  # number of rows

    def __add__(self, other: "Arrivals") -> "Arrivals":
        potential = self.potential + other.potential
        arrival, rows, weight = (
            np.concatenate(pair)
            for pair in ((self.arrival, other.arrival), (self.rows, other.rows), (self.weight, other.weight))
        )
        in_time = arrival * potential < self.expected
        return Arrivals(potential, arrival[in_time], rows[in_time], weight[in_time], self.expected)


@dataclass(frozen=True)
class Round(Stats):
    """One pass over the rows."""

    weight: Any  # (candidates,) of the rows nearest to each
    arrivals: Arrivals  # new candidates


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

    The first candidates are the centers of a random sample of the rows: those of greedy k-means++ and, if costs are
    squared distances, some iterations of Lloyd's algorithm. A round then samples each row, independently of the others,
    with probability

    .. math:: 1 - \exp(-k w_i c_i / \psi), \qquad \psi = \sum_i w_i c_i

    where :math:`c_i` is its `cost` at the candidates so far. This is about :math:`\min(1, k w_i c_i / \psi)` as in
    the paper, but makes a row of weight 2 equivalent to two equal rows. There is one round, and up to twenty while a
    round reduces the potential by more than half, or fewer than k candidates are nearest to a row. The weight of a
    candidate is the weight of the rows nearest to it. k of the candidates become the centers, as in the sample.
    `chosen` centers (f, d) are candidates from the beginning, and are not returned.

    The paper begins with a single row, and needs five rounds. The sample has 32 k rows, at most a tenth of all, so that
    k-means++ on it takes about as long as a pass. Of at most 10 k rows all are the sample, and its centers the result.

    The number of passes is the number of rounds plus two. Each takes as long as one iteration of Lloyd's algorithm,
    those for the samples less. The centers are not rows of the data. It needs 12 bytes of memory per row, and the dense
    sample.

    .. [1] Bahmani, Moseley, Vattani, Kumar & Vassilvitskii (2012), Scalable k-means++, PVLDB 5(7).
       https://doi.org/10.14778/2180912.2180915
    """
    n, d = source.shape
    is_whole = n <= FEW * k

    def centers_among(rows: np.ndarray[Any, Any], weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        chunk, inner = Chunk(rows, weight, 0), SQUARES if cost.has_means else cost  # no values are missing
        with kernels.selected_for(1 + n // len(rows), rows, k):
            centers = greedy(chunk, rng, k, unit, chosen=chosen, cost=inner)
            return _lloyd(chunk, centers, chosen) if cost.has_means and not is_whole else centers

    expected = np.inf if is_whole else max(min(SAMPLE * k, SHARE * n, SAMPLE_VALUES / d), 2 * k, MIN_SAMPLE)
    sample = engine.sum(partial(_sample, int(rng.integers(2**63)), expected, cost), source)
    share = -np.expm1(-expected * sample.weight / sample.potential)  # probability of each row to be in the sample
    centers = centers_among(sample.rows, sample.weight / share)
    if is_whole:
        return centers
    n_fixed = 0 if chosen is None else len(chosen)
    first = np.concatenate([chosen.astype(source.dtype), centers]) if n_fixed else centers
    candidates, weight = _oversample(source, engine, rng, k, unit, first, cost)
    is_free = weight > 0  # of equal candidates, the first has all the weight
    is_free[:n_fixed] = False
    rows = candidates[is_free]
    if len(rows) > k:
        return centers_among(rows, weight[is_free])
    return np.concatenate([rows, np.repeat(first[:1], k - len(rows), axis=0)])  # X has few distinct rows


def plusplus(
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    k: int,
    unit: float,
    chosen: Any = None,
    cost: Cost = SQUARES,
) -> np.ndarray[Any, Any]:
    """Compute initial centers by greedy k-means++ on all rows, or by `scalable` if that is faster."""
    if not runs_on_all_rows(source, k):
        return scalable(source, engine, rng, k, unit, chosen, cost)
    return greedy(source.gather(slice(None)), rng, k, unit, chosen=chosen, cost=cost)


def runs_on_all_rows(source: Source, k: int) -> bool:
    """Whether `plusplus` runs on all rows: for small tables, and if all rows are on one GPU, which is fast enough."""
    X: Any = getattr(source, "X", None)
    limit, size = (MAX_WORK_SPARSE, X.nnz) if hasattr(X, "nnz") else (MAX_WORK, source.shape[0] * source.shape[1])
    return size * k <= limit or (source.engine == "cuda" and len(source.parts()) == 1)


def _sample(seed: int, expected: float, cost: Cost, chunk: Chunk) -> Arrivals:
    """Rows sampled in proportion to their weights."""
    return arrivals(np.ones(chunk.X.shape[0]), seed, expected, cost, chunk)


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
    candidates, new, potential = first[:0], first, [np.inf, np.inf]
    while True:
        step = partial(_round, new, len(candidates), unit, int(rng.integers(2**63)), OVERSAMPLING * k, cost)
        result, memos = engine.scan(step, source, memos)
        candidates = np.concatenate([candidates, new])
        new = result.arrivals.rows
        potential.append(result.arrivals.potential)
        is_enough = potential[-1] >= 0.5 * potential[-2] and np.count_nonzero(result.weight) >= k
        if potential[-1] == 0 or is_enough or len(potential) > MAX_ROUNDS + 2:
            return candidates, result.weight


def _round(
    points: np.ndarray[Any, Any],
    n_before: int,
    unit: float,
    seed: int,
    expected: float,
    cost: Cost,
    chunk: Chunk,
    memo: Nearest | None,
) -> tuple[Round, Nearest]:
    """Update the memo with new candidates `points`, which follow `n_before` others, and sample the next ones."""
    n = chunk.X.shape[0]
    if memo is None:
        memo = Nearest(np.full(n, np.inf), np.zeros(n, np.int32))
    if len(points):
        label, is_nearer = cost.add(chunk.X, unit, points, memo.cost)
        memo = Nearest(memo.cost, np.where(is_nearer, n_before + label, memo.owner))
    weight = np.bincount(memo.owner, chunk.w, n_before + len(points)).astype(np.float64)
    return Round(weight, arrivals(memo.cost, seed, expected, cost, chunk)), memo


def arrivals(costs: np.ndarray[Any, Any], seed: int, expected: float, cost: Cost, chunk: Chunk) -> Arrivals:
    ops = kernels.for_centers(chunk.X, WORK)
    potential, rows, arrival = ops.arrivals(costs, chunk.w, seed, chunk.first, expected)
    weight = np.ones(len(rows)) if chunk.w is None else np.asarray(chunk.w[rows], np.float64)
    return Arrivals(potential, arrival, cost.take(chunk.X, rows), weight, expected)


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
