"""Initial centers: by k-means++, at random, and the farthest rows.

In k-means++, each new center is a row sampled in proportion to its cost at the previous centers.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import interrupts, kernels
from coterie.core.arrays import as_dense
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.random_numbers import by_row, uniform
from coterie.core.stats import Stats, WeightedSums
from coterie.kernels.membership import membership
from coterie.seeding.costs import SQUARES, WORK, Cost

TILES_BYTES = 1 << 25  # maximum size of rows of which a copy is made that passes read faster
TILES_FROM = 8  # number of passes from which the copy pays off


class Costs(NamedTuple):
    """State of one part of the rows between two passes."""

    closest: np.ndarray[Any, Any]  # (n,) cost of each row at its nearest center
    tiles: Any = None  # copy of the rows that passes read faster


@dataclass(frozen=True)
class Draws(Stats):
    """The potential with each candidate added, and rows sampled for the next round.

    Each chunk samples rows and gives each an exponential arrival time, whose rate is the potential of the chunk. Of
    several chunks, the row that arrives first is kept: the probability that it comes from a chunk is proportional to
    the potential of this chunk (exponential race). So samples of chunks can be added like sums, on any engine.
    """

    potential: Any  # (1 + candidates,)
    arrival: Any  # (m,)
    rows: Any  # (m, d)
    cost: Any  # (m,) of each row at the current centers

    def __add__(self, other: "Draws") -> "Draws":
        is_first = self.arrival <= other.arrival
        return Draws(
            self.potential + other.potential,
            np.where(is_first, self.arrival, other.arrival),
            np.where(is_first[:, None], self.rows, other.rows),
            np.where(is_first, self.cost, other.cost),
        )


def plusplus(
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    k: int,
    unit: float,
    n_candidates: int | None = None,
    chosen: Any = None,
    cost: Cost = SQUARES,
) -> np.ndarray[Any, Any]:
    r"""Compute initial centers by greedy k-means++ [1]_: each center is the best of several sampled candidates.

    Takes one pass over the data per center. The pass that evaluates the candidates of a round also samples rows for the
    next round, in proportion to the costs without the new center. Each of these rows is then accepted with probability
    (cost with the new center) / (cost without). This is rejection sampling from the right distribution. If too few rows
    are accepted, another pass samples new ones. `chosen` centers (f, d) are already fixed, and are not returned. `cost`
    is the cost that the model minimises; it is used for sampling and for evaluating candidates.

    .. [1] Arthur & Vassilvitskii (2007), k-means++: the advantages of careful seeding, SODA.
    """
    size = n_candidates or 2 + int(np.log(k))
    if cost is SQUARES and (found := on_device(source, engine, rng, k, unit, size, chosen)) is not None:
        return found
    use_tiles = k >= TILES_FROM and source.dtype.itemsize * source.shape[0] * source.shape[1] <= TILES_BYTES
    count = 2 * size + 6
    sampler = _Sampler(source, engine, rng, unit, count, has_centers=chosen is not None, cost=cost, use_tiles=use_tiles)
    centers = [sampler.sample(None, 1).rows[0]] if chosen is None else list(chosen.astype(source.dtype, copy=False))
    n_fixed = 0 if chosen is None else len(centers)
    k += n_fixed
    for center in centers[:-1]:
        sampler.sample_with(center)
    candidates = sampler.sample_with(centers[-1])[:size]
    while len(centers) < k and len(candidates):
        draws = sampler.sample(np.concatenate([centers[-1][None], candidates]), sampler.count)
        if draws.potential[0] == 0:
            break
        centers.append(candidates[int(np.argmin(draws.potential[1:]))])
        if len(centers) < k:
            candidates = sampler.accepted(draws, centers[-1])[:size]
            if len(candidates) < size:
                candidates = sampler.sample_with(centers[-1])[:size]
    centers += [centers[0]] * (k - len(centers))  # X has fewer distinct rows than centers: repeat one
    return np.stack(centers[n_fixed:])


class _Sampler:
    """The passes of one k-means++ initialisation; the memos are the costs of all rows at the current centers."""

    def __init__(
        self,
        source: Source,
        engine: Engine,
        rng: np.random.Generator,
        unit: float,
        count: int,
        has_centers: bool = False,
        cost: Cost = SQUARES,
        use_tiles: bool = False,
    ):
        self.source, self.engine, self.rng, self.unit, self.count = source, engine, rng, unit, count
        self.cost, self.last_center, self.use_tiles = cost, np.empty((0, source.shape[1])), use_tiles
        costs = source.allocate(np.inf if has_centers else 1, source.dtype)
        self.memos: Any = [None if closest is None else Costs(closest) for closest in costs]

    def sample_with(self, center: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Add `center`, and sample rows in proportion to their costs; none if all costs are 0."""
        draws = self.sample(center[None], self.count)
        return draws.rows[np.isfinite(draws.arrival)]

    def accepted(self, draws: Draws, center: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The rows that rejection sampling accepts, if they were sampled before `center` was added."""
        costs = self.cost.table(draws.rows, center[None])[:, 0] / self.unit**self.cost.degree
        is_accepted = self.rng.random(self.count) * draws.cost < self.cost.beside(draws.cost, costs)
        return draws.rows[is_accepted & np.isfinite(draws.arrival)]

    def sample(self, points: np.ndarray[Any, Any] | None, count: int) -> Draws:
        """Add points[0], evaluate the other points, and sample `count` rows; without points, by their weights."""
        again = points is not None and np.array_equal(points[:1], self.last_center, equal_nan=True)
        seed = int(self.rng.integers(2**63))
        step = partial(_step, points, again, self.unit, seed, count, self.cost, self.use_tiles)
        draws, self.memos = self.engine.scan(step, self.source, self.memos)
        if points is not None:
            self.last_center = points[:1]
        return draws


def _step(
    points: np.ndarray[Any, Any] | None,
    again: bool,
    unit: float,
    seed: int,
    count: int,
    cost: Cost,
    use_tiles: bool,
    chunk: Chunk,
    costs: Costs | None,
) -> tuple[Draws, Costs]:
    if costs is None:
        costs = Costs(kernels.row_values(chunk.X, 1 if points is None else np.inf, chunk.X.dtype))
    closest, potential = costs.closest, np.zeros(1)
    if points is not None:  # without a center all rows have the same cost
        if use_tiles and costs.tiles is None:
            costs = Costs(closest, cost.tiles(chunk.X))
        potential = cost.spread(chunk.X, chunk.w, unit, points, closest, again, costs.tiles)
    draws = sample_rows(kernels.for_centers(chunk.X, WORK), chunk, closest, seed, count, cost, potential)
    if points is None:
        closest.fill(np.inf)
    return draws, costs


def sample_rows(
    ops: Any,  # kernels
    chunk: Chunk,
    closest: np.ndarray[Any, Any],  # (n,) cost of each row at its nearest center
    seed: int,
    count: int,
    cost: Cost,
    potential: np.ndarray[Any, Any],
) -> Draws:
    """Sample `count` rows by their weighted costs (D² sampling); arrival times are infinite if all costs are 0."""
    X, u = chunk.X, uniform(seed, chunk.part << 32, 2 * count)
    total, rows = ops.draw(closest, chunk.w, u[:count])
    if not total > 0:
        return Draws(potential, np.full(count, np.inf), np.zeros((count, X.shape[1]), X.dtype), np.zeros(count))
    arrival = -np.log(u[count:]) / total
    return Draws(potential, arrival, cost.take(X, rows), closest[rows].astype(np.float64))


# The same rounds for rows on one GPU, without copies between host and device.

ROUNDS = 64  # that the device runs before the host looks at their results


def on_device(
    source: Source, engine: Engine, rng: np.random.Generator, k: int, unit: float, size: int, chosen: Any
) -> np.ndarray[Any, Any] | None:
    """Centers (k, d) as those of `plusplus`; None if rows are not on one GPU, or its kernels do not support them."""
    if source.engine != "cuda" or len(source.parts()) > 1:
        return None
    return engine.map(partial(_centers, rng, k, unit, size, chosen), source)[0]


def _centers(
    rng: np.random.Generator, k: int, unit: float, size: int, chosen: Any, chunk: Chunk
) -> np.ndarray[Any, Any] | None:
    X, w, ops = chunk.X, chunk.w, kernels.for_centers(chunk.X, WORK)
    wanted = k - (chosen is None)
    rounds = ops.plusplus_rounds(X, w, wanted, size, unit, chosen)
    if rounds is None:
        return None
    first = X[ops.draw(ops.row_values(X, 1, X.dtype), w, rng.random(1))[1]] if chosen is None else chosen
    fixed = first.astype(X.dtype, copy=False)
    for center in fixed[:-1]:
        rounds.add(center)
    rounds.start(fixed[-1])
    found, is_done = 0, wanted == 0
    while not is_done:
        interrupts.check()
        rounds.run(rng.random((min(wanted - found + 1, ROUNDS), 2, 2 * size + 6)))
        found, is_done = rounds.progress()
    missing = np.repeat(fixed[:1], wanted - found, axis=0)  # X has fewer distinct rows than centers: repeat one
    return np.concatenate([*([fixed] if chosen is None else []), X[rounds.rows(found)], missing])


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
