"""The models of K-medians: centers that are medians of their rows, under distances that are not squared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from coterie import kernels, seeding
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.kmeans.lloyd import Bounds, Costliest, Lloyd, alike, by_cluster, costliest_of
from coterie.seeding import costs

BINS = (16, 4)  # powers of two; the fewer where the more would take much room
CELLS = 1 << 16  # clusters x columns beyond which there are fewer bins
REACH = (0.0, *(sign * 2.0**-i for i in (1, 2, 4, 6, 8) for sign in (-1, 1)))  # parts of a bin, about its median
ALIKE = 1e-12  # numbers that differ by no more of them are equal, but for rounding
STEPS = 10  # of Weiszfeld's in one iteration, at most
ROUGH_STEPS = 3  # the same, of descents that are only tried
CLOSE = 1e-4  # of the tolerance of a fit: smaller squared steps of Weiszfeld's are not worth another


@dataclass(frozen=True)
class ManhattanStats(Stats):
    """Sums under the L1 distance."""

    weight: Any  # (k,)
    spread: Any  # (k, d) of w |x - c|, column by column
    moved: Any  # rows that changed cluster


@dataclass(frozen=True)
class Counts(Stats):
    """What lies in each bin of each cluster and column."""

    weight: Any  # (k, d, bins)
    least: Any  # (k, d, bins)
    most: Any  # (k, d, bins)

    def __add__(self, other: Counts) -> Counts:
        least, most = np.minimum(self.least, other.least), np.maximum(self.most, other.most)
        return Counts(self.weight + other.weight, least, most)


@dataclass(frozen=True)
class Pulls(Stats):
    """How the rows of each cluster pull at its center: each with its weight, however far it is."""

    on: Any  # (k,) of w, of the rows on the center
    inverse: Any  # (k,) of w / |x - c|, of the others
    pull: Any  # (k, d) of w (x - c) / |x - c|
    cost: Any  # (k,) of w |x - c|


@dataclass(frozen=True)
class EuclideanStats(Pulls):
    """The same, and who pulls."""

    weight: Any  # (k,)
    moved: Any  # rows that changed cluster


@dataclass(frozen=True)
class Nearest(Stats):
    """The row of each cluster that is nearest to its center; of several, the first."""

    apart: Any  # (k,) infinite where there is none
    rows: Any  # (k, d)

    def __add__(self, other: Nearest) -> Nearest:
        mine = self.apart <= other.apart
        return Nearest(np.where(mine, self.apart, other.apart), np.where(mine[:, None], self.rows, other.rows))


@dataclass(frozen=True)
class Manhattan:
    r"""Minimises :math:`\sum_i w_i \min_k \|x_i - c_k\|_1`: centers are medians, column by column.

    Medians are not sums, but the weight up to a value is: passes that count what lies in bins, each time within the
    bin that has the median, end at a single value. It takes a pass or two once the centers have almost settled, and
    about log16 of the rows of a cluster before.
    """

    n_clusters: int
    start: Any = "k-means++"  # the name of a method, or centers
    unit: float = 1.0  # a power of two of the size of the data
    tol: float = 0.0  # the squared step of all centers that ends a fit

    converges = True

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        return seeding.start(self.start, source, engine, rng, self.n_clusters, self.unit, cost=self.cost)

    def initial_memos(self, source: Source) -> list[np.ndarray | None]:
        return source.room(-1, np.int32)

    def e_step(
        self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray | None = None
    ) -> tuple[ManhattanStats, np.ndarray]:
        chunk, centers = alike(chunk, centers)
        labels = np.full(len(chunk.X), -1, np.int32) if labels is None else labels
        found = kernels.select("medians", chunk.X, len(centers)).deviations(chunk.X, chunk.w, centers, labels)
        return ManhattanStats(*found), labels

    def m_step(self, centers: np.ndarray, stats: ManhattanStats) -> np.ndarray:
        """What sums alone can tell: nothing. `repair` has the rows, and finds the medians."""
        return centers

    def repair(
        self, centers: np.ndarray, stats: ManhattanStats, source: Source, engine: Engine, memos: list[np.ndarray]
    ) -> np.ndarray:
        found = medians(centers, stats, source, engine, memos).astype(centers.dtype)
        return filled_up(found, stats, partial(_costliest, "l1"), source, engine, memos)

    def halfway(self, before: np.ndarray, after: np.ndarray, chunk: Chunk) -> ManhattanStats:
        """What rows cost that stay in the clusters of the centers `before`, with these already at `after`."""
        weight, cost = _staying("l1", self.assign(before, chunk), after, chunk)
        return ManhattanStats(weight, cost[:, None], 0)

    def objective(self, centers: np.ndarray, stats: ManhattanStats) -> float:
        return float(stats.spread.sum())

    def has_converged(
        self,
        before: np.ndarray,
        after: np.ndarray,
        stats: ManhattanStats,
        history: Sequence[float],
        stretch: float | None = None,
    ) -> bool:
        return bool(stats.moved == 0 or squared_step(before, after) <= self.tol)

    def assign(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray | None = None) -> np.ndarray:
        return self.e_step(centers, chunk)[1] if labels is None else labels

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        chunk, centers = alike(chunk, centers)
        return kernels.select("medians", chunk.X, len(centers)).distances(chunk.X, centers)

    @property
    def cost(self) -> costs.Cost:
        return costs.Manhattan()


@dataclass(frozen=True)
class Euclidean:
    r"""Minimises :math:`\sum_i w_i \min_k \|x_i - c_k\|_2`: centers are geometric medians, by Weiszfeld's steps [1]_.

    A step minimises squares about the old center that lie above the distances and touch them there, so it never
    raises their sum. A center on a row leaves it by as much as the others pull more than the row holds [2]_, and stays
    if they do not: then it is the median. Steps towards a row that is the median may become ever smaller, so the row
    nearest to a center is asked whether it is.

    .. [1] Weiszfeld (1937), Sur le point pour lequel la somme des distances de n points donnés est minimum, Tohoku
       Math. J. 43.
    .. [2] Vardi & Zhang (2000), The multivariate L1-median and associated data depth, PNAS 97.
    """

    n_clusters: int
    start: Any = "k-means++"  # the name of a method, or centers
    unit: float = 1.0  # a power of two of the size of the data
    tol: float = 0.0  # the squared step of all centers that ends a fit
    steps: int = STEPS  # of Weiszfeld's in one iteration, at most

    converges = True

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        return seeding.start(self.start, source, engine, rng, self.n_clusters, self.unit, cost=self.cost)

    def initial_memos(self, source: Source) -> list[Bounds | None]:
        return self._squares.initial_memos(source)

    def e_step(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> tuple[EuclideanStats, Bounds]:
        """The nearest center is that of K-means, squares or not."""
        sums, memo = self._squares.e_step(centers, chunk, memo)
        pulls, _ = _pulls(centers, chunk, memo)
        return EuclideanStats(*pulls.leaves(), sums.weight, sums.moved), memo

    def m_step(self, centers: np.ndarray, stats: Pulls) -> np.ndarray:
        length = np.linalg.norm(stats.pull, axis=1)
        moves = (length > stats.on) & (stats.inverse > 0)
        share = np.where(moves, 1.0 - stats.on / np.where(moves, length, 1.0), 0.0)
        step = stats.pull * (share / np.where(moves, stats.inverse, 1.0))[:, None]
        return (centers + step).astype(centers.dtype)

    def repair(
        self, centers: np.ndarray, stats: EuclideanStats, source: Source, engine: Engine, memos: list[Bounds]
    ) -> np.ndarray:
        """A few steps more for the same clusters: a pass to a center is cheaper than one to all of them."""
        for _ in range(self.steps - 1):
            pulls, _ = engine.scan(partial(_pulls, centers), source, memos)
            before, centers = centers, self.m_step(centers, pulls)
            if squared_step(before, centers) <= CLOSE * self.tol:
                break
        near, _ = engine.scan(partial(_nearest, centers), source, memos)
        pulls, _ = engine.scan(partial(_pulls, near.rows), source, memos)
        held = np.isfinite(near.apart) & (np.linalg.norm(pulls.pull, axis=1) <= (1.0 + ALIKE) * pulls.on)
        centers = np.where(held[:, None], near.rows, centers)
        return filled_up(centers, stats, partial(_costliest, "l2"), source, engine, memos)

    def halfway(self, before: np.ndarray, after: np.ndarray, chunk: Chunk) -> EuclideanStats:
        """What rows cost that stay in the clusters of the centers `before`, with these already at `after`."""
        weight, cost = _staying("l2", self.assign(before, chunk), after, chunk)
        return EuclideanStats(0.0, 0.0, 0.0, cost, weight, 0)

    def objective(self, centers: np.ndarray, stats: EuclideanStats) -> float:
        return float(stats.cost.sum())

    def has_converged(
        self,
        before: np.ndarray,
        after: np.ndarray,
        stats: EuclideanStats,
        history: Sequence[float],
        stretch: float | None = None,
    ) -> bool:
        return bool(squared_step(before, after) <= self.tol or history[-1] >= (1.0 - ALIKE) * history[-2])

    def assign(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> np.ndarray:
        return self._squares.assign(centers, chunk, memo)

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        return self._squares.distances(centers, chunk)

    @property
    def _squares(self) -> Lloyd:
        return Lloyd(self.n_clusters, self.start, self.unit)

    @property
    def cost(self) -> costs.Cost:
        return costs.Euclidean()

    @property
    def rough(self) -> Euclidean:
        """The same model with fewer steps, to find out whether a descent is worthwhile."""
        return replace(self, steps=ROUGH_STEPS)


def medians(
    centers: np.ndarray, stats: ManhattanStats, source: Source, engine: Engine, memos: list[np.ndarray]
) -> np.ndarray:
    """The median of every cluster and column, in float64; where a cluster is empty, its center as it is."""
    bins = BINS[0] if centers.size <= CELLS else BINS[1]
    filled = np.broadcast_to(stats.weight[:, None] > 0, centers.shape)
    weight = np.where(filled, stats.weight[:, None], 1.0)
    found, open_ = centers.astype(np.float64), filled.copy()
    low, high, below = np.where(open_, -np.inf, np.inf), np.where(open_, np.inf, -np.inf), np.zeros(centers.shape)
    edges = _edges_about(found, stats.spread / weight, bins)
    while open_.any():
        counts, _ = engine.scan(partial(_counts, low, high, edges), source, memos)
        until = np.cumsum(np.concatenate([below[..., None], counts.weight], axis=2), axis=2)
        there, beyond = counts.weight > 0, until[..., 1:] / weight[..., None] - 0.5
        lower, upper = _first(there, beyond >= -ALIKE), _first(there, beyond > ALIKE)
        first, last = _at(counts.least, lower), _at(counts.most, lower)
        # Two bins: half of the weight is up to the one, half from the other on.
        closed = open_ & ((lower != upper) | (first == last))
        above = np.where(lower == upper, last, _at(counts.least, upper))
        found[closed] = last[closed] + 0.5 * (above[closed] - last[closed])
        open_ &= ~closed
        low, high = np.where(open_, first, np.inf), np.where(open_, last, -np.inf)
        below = _at(until, lower)
        share = (0.5 * weight - below) / np.where(open_, _at(counts.weight, lower), 1.0)
        edges = _edges_between(np.where(open_, low, 0.0), np.where(open_, high, 0.0), share, bins)
    return found


def _at(values: np.ndarray, place: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, place[..., None], axis=2)[..., 0]


def _first(there: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The first bin that is wanted of those that have rows; where none is, but for rounding, the last that has."""
    wanted = wanted & there
    last = there.shape[2] - 1 - np.argmax(there[..., ::-1], axis=2)
    return np.where(wanted.any(axis=2), np.argmax(wanted, axis=2), last)


def _edges_about(centers: np.ndarray, spread: np.ndarray, bins: int) -> np.ndarray:
    """Edges (k, d, bins - 1) about the old centers, close to them closer: the last iterations move them but little."""
    if bins == BINS[0]:
        reach = np.array([*-(2.0 ** -np.arange(7)), 0.0, *2.0 ** -np.arange(6)])
    else:
        reach = np.array([0.0, 0.25])
    about = centers[..., None] + spread[..., None] * reach
    # A center that is a median still has a bin of its own.
    return np.sort(np.concatenate([about, np.nextafter(centers, -np.inf)[..., None]], axis=2), axis=2)


def _edges_between(low: np.ndarray, high: np.ndarray, share: np.ndarray, bins: int) -> np.ndarray:
    """Edges (k, d, bins - 1) from `low` on, most of them about where the median is if the values lie evenly.

    `share` of the weight is below it. Others are even in the order of all floating numbers: they see to it that values
    of any size are divided in few passes.
    """
    middle = _between(low, high)
    if bins == BINS[0]:
        ordered, reach = [_between(low, middle), middle, _between(middle, high)], REACH
    else:
        ordered, reach = [middle], REACH[:1]
    about = [low + (high - low) * np.clip(share + r, 0.0, 1.0) for r in reach]
    return np.sort(np.stack([low, *ordered, *about], axis=2), axis=2)


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The number amid those from a to b."""
    a, b = _order(a.view(np.int64)), _order(b.view(np.int64))
    return _order((a & b) + ((a ^ b) >> 1)).view(np.float64)


def _order(bits: np.ndarray) -> np.ndarray:
    """Bits of float64 as whole numbers in the same order, and back."""
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def filled_up(
    centers: np.ndarray, stats: Any, search: Any, source: Source, engine: Engine, memos: list[Any]
) -> np.ndarray:
    """An empty cluster starts anew at the row that costs most; where all rows sit on centers it stays."""
    empty = np.flatnonzero(stats.weight == 0)
    if len(empty) == 0:
        return centers
    found, _ = engine.scan(partial(search, centers, len(empty)), source, memos)
    useful = min(len(empty), int(np.count_nonzero(found.cost > 0)))
    centers = centers.copy()
    centers[empty[:useful]] = found.rows[:useful]
    return centers


def squared_step(before: np.ndarray, after: np.ndarray) -> float:
    return float(((after.astype(np.float64) - before) ** 2).sum())


def _costliest(metric: str, centers: np.ndarray, most: int, chunk: Chunk, memo: Any) -> tuple[Costliest, Any]:
    """By the distance to the center the row was last nearest to: no new search for the sake of a few rows."""
    labels = memo.labels if isinstance(memo, Bounds) else memo
    cost = kernels.select("medians", chunk.X, len(centers)).own_distances(chunk.X, centers, labels, metric)
    return costliest_of(chunk, cost, most, lambda X, rows: X[rows]), memo


def _staying(metric: str, labels: np.ndarray, centers: np.ndarray, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """Weight and cost of each cluster (k,)."""
    chunk, centers = alike(chunk, centers)
    apart = kernels.select("medians", chunk.X, len(centers)).own_distances(chunk.X, centers, labels, metric)
    weight, _, cost = by_cluster(chunk, labels, apart, len(centers))
    return weight, cost


def _counts(
    low: np.ndarray, high: np.ndarray, edges: np.ndarray, chunk: Chunk, labels: np.ndarray
) -> tuple[Counts, np.ndarray]:
    ops = kernels.select("medians", chunk.X, len(low))
    return Counts(*ops.counts(chunk.X, chunk.w, labels, low, high, edges)), labels


def _nearest(centers: np.ndarray, chunk: Chunk, memo: Bounds) -> tuple[Nearest, Bounds]:
    apart = kernels.select("medians", chunk.X, len(centers)).own_distances(chunk.X, centers, memo.labels, "l2")
    if chunk.w is not None:
        apart = np.where(chunk.w > 0, apart, np.inf)
    least, rows = np.full(len(centers), np.inf), centers.copy()
    np.minimum.at(least, memo.labels, apart)
    found = np.flatnonzero((apart == least[memo.labels]) & (apart < np.inf))
    clusters, first = np.unique(memo.labels[found], return_index=True)
    rows[clusters] = chunk.X[found[first]]
    return Nearest(least, rows), memo


def _pulls(centers: np.ndarray, chunk: Chunk, memo: Bounds) -> tuple[Pulls, Bounds]:
    chunk, centers = alike(chunk, centers)
    ops = kernels.select("medians", chunk.X, len(centers))
    return Pulls(*ops.pulls(chunk.X, chunk.w, centers, memo.labels)), memo
