"""K-means where rows are known by their products alone: batch steps, then single rows, and never a step uphill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie.core.errors import InputError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.kmeans.kernel_functions import COLUMNS, Kernel, first_alike
from coterie.kmeans.kernel_hartigan import best_moves, exchanged, first_of, together, weight_together
from coterie.kmeans.kernel_seeding import METHODS, Space, check_labels

SLACK = 8.0  # roundings that squared distances may differ by and count as equal
NOTHING = 2.0**-100  # of the largest weight: what weighs less could not be told from 0 in sums of float32
MOVES = 1024  # rows that are moved one by one between two passes
UNKNOWN = (
    "kernel='precomputed': distances need k(x, x) of every row, which X holds for the rows of the fit alone (a square "
    "and symmetric X); give the kernel as a function for other rows, or use predict, which needs none"
)


def _is_consistent(means: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether a precomputed kernel has as many columns as there were rows."""
    rows = len(means["labels"])
    return means["rows"] is not None or lengths.get("D", rows) == rows


@stored(
    "kernel_kmeans.Means",
    check=_is_consistent,
    rows="none | real n D",
    labels="index-<K n",
    counts="real n",
    first="index<n n",
    weight="real K",
    norms="real K",
)
class Means(NamedTuple):
    """Means of a space without coordinates: the rows each is made of, and how long it is."""

    rows: Any  # (n, d) as the kernel wants them; None where chunks hold products with them already
    labels: np.ndarray  # (n,) which mean a row counts for, -1: none
    counts: np.ndarray  # (n,) weights, in units of about the largest
    first: np.ndarray  # (n,) the first row that counts and equals each: equal rows move together
    weight: np.ndarray  # (k,) sums of counts
    norms: np.ndarray  # (k,) squared lengths
    cost: float  # of the rows they are made of, by counts: what no step may raise; infinite for a start at rows


class Seen(NamedTuple):
    """What one part remembers between two passes. Losing it costs time, never the result."""

    first: int  # the number of its first row; -1: not of the rows of the fit
    labels: np.ndarray  # (n,)
    diagonal: np.ndarray | None = None  # (n,) k(x, x); None before the first pass
    sums: np.ndarray | None = None  # (n, k) products with the rows of each mean, added up by their counts
    members: np.ndarray | None = None  # labels of all rows, those of the means that `sums` belong to

    def belongs_to(self, means: Means) -> bool:
        return self.sums is not None and np.array_equal(self.members, means.labels)

    def own(self, values: np.ndarray) -> np.ndarray:
        """The part's share of values of all rows."""
        return values[self.first : self.first + len(self.labels)]


@dataclass(frozen=True)
class KernelStats(Stats):
    weight: Any  # (k,)
    cost: Any  # (k,) of w |phi(x) - m|^2
    moved: Any  # rows that changed cluster


@dataclass(frozen=True)
class Lengths(Stats):
    square: Any  # (k,) of the sums of the rows of each mean


@dataclass(frozen=True)
class Cost(Stats):
    cost: Any  # of w |phi(x) - m|^2, m the mean that the row counts for


@dataclass(frozen=True)
class KernelLloyd:
    r"""Minimises :math:`\sum_i w_i \min_k \|\varphi(x_i) - m_k\|^2`, where :math:`m_k` are means of :math:`\varphi(x)`
    and only products :math:`k(x, y) = \varphi(x) \cdot \varphi(y)` are known [1]_.

    Statistics cannot hold a mean that has no coordinates. It is its rows: their labels stay with the parts, `repair`
    collects them, and takes the pass that finds how long the new means are. In that pass only the products with rows
    that changed cluster count. Where all rows stay, or gain no more than `tol`, rows are moved one at a time by what
    the move is worth when the means follow [2]_.

    .. [1] Dhillon, Guan & Kulis (2004), Kernel k-means, spectral clustering and normalized cuts, KDD.
    .. [2] Telgarsky & Vattani (2010), Hartigan's method: k-means clustering without Voronoi, AISTATS.
    """

    n_clusters: int
    kernel: Kernel
    start: Any = "k-means++"  # the name of a method, labels, or a function of k and a RandomState that makes them
    stored: bool = False  # chunks are rows of the kernel matrix, their y as `gram.facts` says
    tol: float = 0.0  # the share of the objective that a step must gain to be followed by another
    finish: bool = True  # with moves of single rows

    converges = True

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Means:
        w = np.concatenate(engine.map(_weights, source))
        counts = w / 2.0 ** np.ceil(np.log2(w.max()))
        counts[counts < NOTHING] = 0
        rows = None if self.stored else stacked(engine.map(self._rows, source))
        diagonal = np.concatenate(engine.map(self._diagonal, source))
        labels = self._start(source, engine, rng, rows, Space(diagonal, counts, None, None))
        labels = np.where(counts > 0, labels, -1).astype(np.int32)
        none = np.zeros(self.n_clusters)
        first = first_of(self._first_alike(rows, source, engine), counts)
        nothing = Means(rows, np.full_like(labels, -1), counts, first, none, none, np.inf)
        if np.count_nonzero(labels >= 0) > self.n_clusters:
            return self._turned(nothing, labels, source, engine, self.begin(source))[0]
        norms = none.copy()  # a row each
        norms[labels[labels >= 0]] = diagonal[labels >= 0]
        return nothing._replace(labels=labels, weight=self._by_cluster(labels, counts), norms=norms)

    def begin(self, source: Source) -> list[Seen]:
        labels = source.room(-1, np.int32)
        firsts = accumulate(map(len, labels), initial=0)
        return [Seen(first, mine) for first, mine in zip(firsts, labels, strict=False)]

    def e_step(self, means: Means, chunk: Chunk, memo: Seen | None = None) -> tuple[KernelStats, Seen]:
        seen = memo if memo is not None and memo.belongs_to(means) else self._look(means, chunk)
        near, slack = self._near(means, seen, chunk)
        labels = np.argmax(near <= (near.min(axis=1) + slack)[:, None], axis=1).astype(np.int32)
        own = self._sound(seen.diagonal + near[np.arange(len(labels)), labels])
        w = _weights(chunk)
        moved = np.count_nonzero((labels != (seen if memo is None else memo).labels) & (w > 0))
        stats = KernelStats(self._by_cluster(labels, w), self._by_cluster(labels, w * own), moved)
        return stats, seen._replace(labels=labels, first=-1 if memo is None else memo.first)

    def m_step(self, means: Means, stats: KernelStats) -> Means:
        """Nothing yet: what the means are made of is known to the parts alone."""
        return means

    def repair(self, means: Means, stats: KernelStats, source: Source, engine: Engine, memos: list[Seen]) -> Means:
        """The means of rows at their nearest ones, and where that gains little, of rows moved one by one as well."""
        if np.isinf(means.cost):  # of a start at rows what all rows cost is known by now
            unit = float(means.counts.sum()) / float(stats.weight.sum())
            means = means._replace(cost=float(stats.cost.sum()) * unit)
        batch = self._tried((means, memos), self._batch(means, source, engine, memos), source, engine)
        if self.finish and not self._gained(means, batch[0]):
            batch = self._tried(batch, self._single_moves(*batch, source, engine), source, engine)
        means, memos[:] = batch
        return means

    def objective(self, means: Means, stats: KernelStats) -> float:
        cost = float(stats.cost.sum()) * self.kernel.factor
        if np.isnan(cost):
            raise InputError(UNKNOWN)
        return cost

    def settled(
        self, before: Means, after: Means, stats: KernelStats, history: Sequence[float], stretch: float | None = None
    ) -> bool:
        return not self._gained(before, after)

    def assign(self, means: Means, chunk: Chunk, memo: Seen | None = None) -> np.ndarray:
        """From sums that are added up anew, not as the fit corrected them step by step: what any later call says."""
        return self.e_step(means, chunk)[1].labels

    def distances(self, means: Means, chunk: Chunk) -> np.ndarray:
        """In feature space; 0 within rounding is 0, and a cluster without rows is where the first one with rows is."""
        seen = self._look(means, chunk)
        if np.isnan(seen.diagonal).any():
            raise InputError(UNKNOWN)
        near, slack = self._near(means, seen, chunk)
        near[:, means.weight == 0] = near[:, [int(np.argmax(means.weight > 0))]]
        squares = seen.diagonal[:, None] + near
        squares = np.where(squares > slack[:, None], squares, 0)
        return np.sqrt(squares * self.kernel.factor).astype(chunk.X.dtype)

    # products

    def _rows(self, chunk: Chunk) -> Any:
        return chunk.X if self.stored else self.kernel.ready(chunk.X)

    def _diagonal(self, chunk: Chunk) -> np.ndarray:
        if not self.stored:
            return _finite(self.kernel.diagonal(self._rows(chunk)))
        return np.full(chunk.X.shape[0], np.nan) if chunk.y is None else chunk.y[:, 0]

    def _first_alike(self, rows: Any, source: Source, engine: Engine) -> np.ndarray:
        if not self.stored:
            return first_alike(rows)
        return np.concatenate(engine.map(attrgetter("y"), source))[:, 1].astype(np.int64)

    def _products(self, X: Any, rows: Any, columns: slice) -> np.ndarray:
        """Of rows as `_rows` gives them with the reference rows `columns`."""
        return X[:, columns] if self.stored else self.kernel.block(X, rows[columns])

    def _sums(self, rows: Any, columns: np.ndarray, shares: np.ndarray, chunk: Chunk) -> np.ndarray:
        """The products with the reference rows `columns`, added up by `shares` (m, k): (n, k), in float64."""
        X = self._rows(chunk)
        total = np.zeros((X.shape[0], shares.shape[1]))
        shares = shares.astype(chunk.X.dtype)
        for tile, some in tiles(columns):
            block = self._products(X, rows, tile)
            if some.stop - some.start < block.shape[1]:
                block = np.ascontiguousarray(block[:, columns[some] - tile.start])
            total += block @ shares[some]
        return _finite(total)

    def _look(self, means: Means, chunk: Chunk) -> Seen:
        columns = np.flatnonzero(means.labels >= 0)
        shares = one_hot(means.labels[columns], means.counts[columns], self.n_clusters)
        unlabelled = np.full(chunk.X.shape[0], -1, np.int32)
        sums = self._sums(means.rows, columns, shares, chunk)
        return Seen(-1, unlabelled, self._diagonal(chunk), sums, means.labels)

    def _near(self, means: Means, seen: Seen, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances less k(x, x) (n, k), infinite for clusters without rows; what rounding may make of them."""
        filled = means.weight > 0
        cross = 2 * seen.sums[:, filled] / means.weight[filled]
        near = np.full(seen.sums.shape, np.inf)
        near[:, filled] = means.norms[filled] - cross
        size = np.abs(cross).max(axis=1) + np.abs(means.norms[filled]).max()
        return near, SLACK * np.finfo(chunk.X.dtype).eps * size

    def _sound(self, squares: np.ndarray) -> np.ndarray:
        return np.maximum(squares, 0) if self.kernel.definite else squares

    # steps

    def _gained(self, before: Means, after: Means) -> bool:
        """Whether a step paid enough to be followed by another; a start at rows has cost nothing yet."""
        if after is before or np.isinf(before.cost):
            return after is not before
        return before.cost - after.cost > self.tol * abs(before.cost)

    def _tried(
        self, state: tuple[Means, list[Seen]], labels: np.ndarray, source: Source, engine: Engine
    ) -> tuple[Means, list[Seen]]:
        """The means of rows labelled so, if they cost less than those there are."""
        means, memos = state
        if np.array_equal(labels, means.labels):
            return state
        made = self._turned(means, labels, source, engine, memos)
        return made if made[0].cost < means.cost else state

    def _turned(
        self, means: Means, labels: np.ndarray, source: Source, engine: Engine, memos: list[Seen]
    ) -> tuple[Means, list[Seen]]:
        """The means of rows labelled so: most rows changed, and all products are added up anew; else those changed."""
        changed = np.flatnonzero(labels != means.labels)
        anew = not all(seen.belongs_to(means) for seen in memos) or 2 * len(changed) > np.count_nonzero(labels >= 0)
        columns = np.flatnonzero(labels >= 0) if anew else changed
        shares = one_hot(labels[columns], means.counts[columns], self.n_clusters)
        if not anew:
            shares -= one_hot(means.labels[columns], means.counts[columns], self.n_clusters)
        made = means._replace(labels=labels, weight=self._by_cluster(labels, means.counts))
        lengths, memos = engine.scan(partial(self._turned_part, made, columns, shares, anew), source, memos)
        made = made._replace(norms=lengths.square / np.where(made.weight > 0, made.weight, 1) ** 2)
        found, _ = engine.scan(partial(self._cost, made), source, memos)
        return made._replace(cost=float(found.cost)), memos

    def _turned_part(
        self, means: Means, columns: np.ndarray, shares: np.ndarray, anew: bool, chunk: Chunk, seen: Seen
    ) -> tuple[Lengths, Seen]:
        sums = self._sums(means.rows, columns, shares, chunk)
        if not anew:
            sums += seen.sums
        diagonal = self._diagonal(chunk) if seen.diagonal is None else seen.diagonal
        labels = seen.own(means.labels)
        own = sums[np.arange(len(labels)), labels]
        return Lengths(self._by_cluster(labels, seen.own(means.counts) * own)), Seen(
            seen.first, labels, diagonal, sums, means.labels
        )

    def _cost(self, means: Means, chunk: Chunk, seen: Seen) -> tuple[Cost, Seen]:
        labels, counts = seen.own(means.labels), seen.own(means.counts)
        counted = np.flatnonzero(labels >= 0)
        near, _ = self._near(means, seen, chunk)
        return Cost(float(counts[counted] @ (seen.diagonal + near[np.arange(len(labels)), labels])[counted])), seen

    def _batch(self, means: Means, source: Source, engine: Engine, memos: list[Seen]) -> np.ndarray:
        """Every row to its nearest mean; a cluster without rows starts anew at the row that costs most."""
        labels = np.concatenate([seen.labels for seen in memos])
        labels = np.where(means.counts > 0, labels, -1).astype(np.int32)
        empty = np.flatnonzero(self._by_cluster(labels, means.counts) == 0)
        if len(empty):
            cost = np.concatenate(engine.map(partial(self._excess, means), source, memos))
            cost = np.bincount(means.first, np.maximum(cost, 0), len(cost))
            costliest = np.argsort(-cost, kind="stable")[: len(empty)]
            labels[costliest] = np.where(cost[costliest] > 0, empty, labels[costliest])
            labels = together(labels, costliest, means.first)
        return labels

    def _excess(self, means: Means, chunk: Chunk, seen: Seen) -> np.ndarray:
        """What every row costs, beyond rounding."""
        near, slack = self._near(means, seen, chunk)
        own = seen.diagonal + near[np.arange(len(seen.labels)), seen.labels]
        return _weights(chunk) * (own - 4 * slack)

    def _single_moves(self, means: Means, memos: list[Seen], source: Source, engine: Engine) -> np.ndarray:
        """The labels, with those rows moved that gain most by it, one after the other."""
        whole = weight_together(means.labels, means.counts, means.first)
        gain = np.concatenate(engine.map(partial(self._gains, means, whole), source, memos))
        rows = np.sort(np.argsort(-gain, kind="stable")[: min(MOVES, np.count_nonzero(gain > 0))])
        if len(rows) == 0:
            return means.labels
        block, diagonal = self._block_of(rows, source)
        sums = np.concatenate([seen.sums for seen in memos])[rows]
        labels = means.labels.copy()
        labels[rows] = exchanged(
            labels[rows], whole[rows], diagonal, block, sums, means.weight, means.norms * means.weight**2,
            SLACK * np.finfo(source.dtype).eps,
        )  # fmt: skip
        return together(labels, rows, means.first)

    def _gains(self, means: Means, counts: np.ndarray, chunk: Chunk, seen: Seen) -> np.ndarray:
        """By how much the best move of every row lowers the objective, means following; not above 0: not at all."""
        near, slack = self._near(means, seen, chunk)
        squares = seen.diagonal[:, None] + near
        return best_moves(squares, seen.own(means.labels), seen.own(counts), means.weight, slack)[1]

    def _block_of(self, rows: np.ndarray, source: Source) -> tuple[np.ndarray, np.ndarray]:
        """The products of a few rows with each other (m, m), and their own (m,)."""
        chunk = source.pick(rows)
        X = self._rows(chunk)
        block = X[:, rows] if self.stored else self.kernel.block(X, X)
        return block.astype(np.float64), self._diagonal(chunk)

    # starts

    def _start(self, source: Source, engine: Engine, rng: np.random.Generator, rows: Any, space: Space) -> np.ndarray:
        if isinstance(self.start, str):
            columns = partial(self._columns, source, engine)
            middle = partial(self._middle, source, engine, rows, space.counts)
            return METHODS[self.start](space._replace(columns=columns, middle=middle), rng, self.n_clusters)
        labels = self.start
        if callable(labels):
            labels = labels(self.n_clusters, np.random.RandomState(rng.integers(2**32)))
        return check_labels(labels, source.shape[0], self.n_clusters, space.counts)

    def _columns(self, source: Source, engine: Engine, rows: np.ndarray) -> np.ndarray:
        picked = None if self.stored else self._rows(source.pick(rows))
        return _finite(np.concatenate(engine.map(partial(self._column_part, picked, rows), source)))

    def _column_part(self, picked: Any, rows: np.ndarray, chunk: Chunk) -> np.ndarray:
        X = self._rows(chunk)
        return X[:, rows] if self.stored else self.kernel.block(X, picked)

    def _middle(self, source: Source, engine: Engine, rows: Any, counts: np.ndarray) -> np.ndarray:
        shares = counts[:, None] / counts.sum()
        step = partial(self._sums, rows, np.arange(len(counts)), shares)
        return np.concatenate(engine.map(step, source))[:, 0]

    def _by_cluster(self, labels: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values added up by cluster (k,)."""
        counted = labels >= 0
        return np.bincount(labels[counted], values[counted], self.n_clusters)


@dataclass(frozen=True)
class Partition(KernelLloyd):
    """The same for products that may be those of no space, where a mean need not be the best center of its rows.

    The objective is then that of the partition, the cost of all rows at the means they count for. What it is for rows
    at their nearest means could rise, and fall for partitions that are no good.
    """

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Means:
        means = super().init(source, engine, rng)
        if np.isfinite(means.cost):
            return means
        labels = np.concatenate(engine.map(partial(self.assign, means), source))
        return self._turned(means, np.where(means.counts > 0, labels, -1), source, engine, self.begin(source))[0]

    def objective(self, means: Means, stats: KernelStats) -> float:
        return means.cost * float(stats.weight.sum()) / float(means.weight.sum()) * self.kernel.factor


def tiles(columns: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """The tiles that ascending `columns` lie in, and which of them lie there."""
    if len(columns) == 0:
        return
    edges = np.arange(columns[0] // COLUMNS, columns[-1] // COLUMNS + 2) * COLUMNS
    cuts = np.searchsorted(columns, edges)
    for edge, start, stop in zip(edges, cuts, cuts[1:], strict=False):
        if start < stop:
            yield slice(edge, edge + COLUMNS), slice(start, stop)


def one_hot(labels: np.ndarray, counts: np.ndarray, k: int) -> np.ndarray:
    """(n, k): a row's count in the column of its label, zeros for rows without one."""
    found = np.zeros((len(labels), k))
    counted = np.flatnonzero(labels >= 0)
    found[counted, labels[counted]] = counts[counted]
    return found


def stacked(pieces: list[Any]) -> Any:
    return sparse.vstack(pieces, format="csr") if hasattr(pieces[0], "indptr") else np.concatenate(pieces)


def _weights(chunk: Chunk) -> np.ndarray:
    return np.ones(chunk.X.shape[0]) if chunk.w is None else chunk.w


def _finite(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise InputError("the kernel gives NaN or infinity for rows of X: scale the columns, or take another kernel")
    return values
