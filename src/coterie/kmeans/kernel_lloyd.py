"""Kernel K-means as EM: assignment of all rows, then moves of single rows; no step increases the objective."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from coterie.core.arrays import is_sparse
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.errors import InputError
from coterie.kmeans.kernel_functions import COLUMNS, Kernel, check_kernel_values, first_equal_rows
from coterie.kmeans.kernel_hartigan import (
    best_moves,
    duplicate_weights,
    first_weighted_rows,
    move_duplicates,
    move_rows,
)
from coterie.kmeans.kernel_seeding import METHODS, FeatureSpace, initial_labels

SLACK = 8.0  # squared distances that differ by this many rounding errors count as equal
MIN_WEIGHT = 2.0**-100  # relative to the largest weight; smaller weights would underflow in float32 sums
MOVES = 1024  # maximum number of rows that are moved one by one between two passes
UNKNOWN = (
    "kernel='precomputed': distances need k(x, x) of every row, but X contains it only for the rows of the fit (a "
    "square symmetric X): use a callable kernel for other rows, or use predict, which does not need it"
)


def _is_consistent(means: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether a precomputed kernel has as many columns as the fit had rows."""
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
    """Means in feature space: the rows of each mean, and its length."""

    rows: Any  # (n, d) prepared by the kernel; None if chunks contain kernel values
    labels: np.ndarray  # (n,) mean that each row belongs to, or -1
    counts: np.ndarray  # (n,) weights, in units of about the largest
    first: np.ndarray  # (n,) first equal row of positive weight; equal rows move together
    weight: np.ndarray  # (k,) sums of counts
    norms: np.ndarray  # (k,) squared lengths
    cost: float  # weighted cost of the rows of the means, which no step may increase; inf if means are single rows


class KernelMemo(NamedTuple):
    """State of one part of the data between two passes. Without it a pass takes longer; the result is the same."""

    first: int  # index of its first row; -1 if these are not rows of the fit
    labels: np.ndarray  # (n,)
    diagonal: Any = None  # (n,) k(x, x); None before the first pass
    sums: Any = None  # (n, k) weighted sums of the kernel values with the rows of each mean; None before the first pass
    members: Any = None  # labels of all rows, for the means of `sums`; None before the first pass

    def belongs_to(self, means: Means) -> bool:
        return self.sums is not None and np.array_equal(self.members, means.labels)

    def part_of(self, values: np.ndarray) -> np.ndarray:
        """Values of the rows of this part, from values of all rows."""
        return values[self.first : self.first + len(self.labels)]


@dataclass(frozen=True)
class KernelStats(Stats):
    weight: Any  # (k,)
    cost: Any  # (k,) of w |phi(x) - m|^2
    moved: Any  # rows that changed cluster


@dataclass(frozen=True)
class KernelLloyd:
    r"""Minimises :math:`\sum_i w_i \min_k \|\varphi(x_i) - m_k\|^2` for means :math:`m_k` in the feature space.

    Only values :math:`k(x, y) = \varphi(x) \cdot \varphi(y)` are known. Statistics cannot contain a mean, because it
    has no coordinates: it is defined by its rows. Their labels are stored with the parts. `repair` collects them and
    makes the pass that computes the lengths of the new means. That pass only needs the kernel values with rows that
    changed cluster. If no row changes, or the objective decreases by no more than `tol`, rows are moved one at a time
    by the decrease after the means are updated. `KernelKMeans` cites the papers.
    """

    n_clusters: int
    kernel: Kernel
    start: Any = "k-means++"  # name of a method, labels, or a function of k and a RandomState that returns labels
    stored: bool = False  # chunks are rows of the kernel matrix, with `y` from `diagonal_and_duplicates`
    tol: float = 0.0  # relative decrease of the objective below which iterations stop
    finish: bool = True  # move single rows at the end

    converges = True

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Means:
        w = np.concatenate(engine.map(attrgetter("weights"), source))
        counts = w / 2.0 ** np.ceil(np.log2(w.max()))
        counts[counts < MIN_WEIGHT] = 0
        rows = None if self.stored else stacked(engine.map(self._rows, source))
        diagonal = np.concatenate(engine.map(self._diagonal, source))
        labels = self._initial_labels(source, engine, rng, rows, FeatureSpace(diagonal, counts))
        labels = np.where(counts > 0, labels, -1).astype(np.int32)
        zeros = np.zeros(self.n_clusters)
        first = first_weighted_rows(self._first_equal_rows(rows, source, engine), counts)
        no_means = Means(rows, np.full_like(labels, -1), counts, first, zeros, zeros, np.inf)
        if np.count_nonzero(labels >= 0) > self.n_clusters:
            return self._with_labels(no_means, labels, source, engine, self.initial_memos(source))[0]
        norms = zeros.copy()  # each mean is one row
        norms[labels[labels >= 0]] = diagonal[labels >= 0]
        return no_means._replace(labels=labels, weight=self._by_cluster(labels, counts), norms=norms)

    def initial_memos(self, source: Source) -> list[KernelMemo]:
        labels: list[Any] = source.allocate(-1, np.int32)
        firsts = accumulate(map(len, labels), initial=0)
        return [KernelMemo(first, part_labels) for first, part_labels in zip(firsts, labels, strict=False)]

    def e_step(self, means: Means, chunk: Chunk, memo: KernelMemo | None = None) -> tuple[KernelStats, KernelMemo]:
        current = memo if memo is not None and memo.belongs_to(means) else self._new_memo(means, chunk)
        relative, slack = self._relative_squares(means, current, chunk)
        labels = np.argmax(relative <= (relative.min(axis=1) + slack)[:, None], axis=1).astype(np.int32)
        squares = current.diagonal + relative[np.arange(len(labels)), labels]
        squares = np.maximum(squares, 0) if self.kernel.is_definite else squares
        w = chunk.weights
        moved = np.count_nonzero((labels != (current if memo is None else memo).labels) & (w > 0))
        stats = KernelStats(self._by_cluster(labels, w), self._by_cluster(labels, w * squares), moved)
        return stats, current._replace(labels=labels, first=-1 if memo is None else memo.first)

    def m_step(self, means: Means, stats: KernelStats) -> Means:
        """Return the means unchanged: only the parts know the new labels. `repair` computes the new means."""
        return means

    def repair(
        self, means: Means, stats: KernelStats, source: Source, engine: Engine, memos: list[KernelMemo]
    ) -> Means:
        """Means after all rows are assigned to the nearest mean and, if that gains little, single rows are moved."""
        if np.isinf(means.cost):  # initial means are single rows; the cost of all rows is known now
            unit = float(means.counts.sum()) / float(stats.weight.sum())
            means = means._replace(cost=float(stats.cost.sum()) * unit)
        state = self._better_of((means, memos), self._nearest_labels(means, source, engine, memos), source, engine)
        if self.finish and not self._has_improved(means, state[0]):
            state = self._better_of(state, self._single_moves(*state, source, engine), source, engine)
        means, memos[:] = state
        return means

    def objective(self, means: Means, stats: KernelStats) -> float:
        cost = float(stats.cost.sum()) * self.kernel.factor
        if np.isnan(cost):
            raise InputError(UNKNOWN)
        return cost

    def has_converged(
        self, before: Means, after: Means, stats: KernelStats, history: Sequence[float], stretch: float | None = None
    ) -> bool:
        return not self._has_improved(before, after)

    def assign(self, means: Means, chunk: Chunk, memo: KernelMemo | None = None) -> np.ndarray:
        """Labels from sums that are computed from scratch, so that later calls return the same labels."""
        return self.e_step(means, chunk)[1].labels

    def distances(self, means: Means, chunk: Chunk) -> np.ndarray:
        """Distances in feature space, 0 within rounding. An empty cluster has those of the first cluster with rows."""
        memo = self._new_memo(means, chunk)
        if np.isnan(memo.diagonal).any():
            raise InputError(UNKNOWN)
        relative, slack = self._relative_squares(means, memo, chunk)
        relative[:, means.weight == 0] = relative[:, [int(np.argmax(means.weight > 0))]]
        squares = memo.diagonal[:, None] + relative
        squares = np.where(squares > slack[:, None], squares, 0)
        return np.sqrt(squares * self.kernel.factor).astype(chunk.X.dtype)

    # Kernel values

    def _rows(self, chunk: Chunk) -> Any:
        return chunk.X if self.stored else self.kernel.prepare(chunk.X)

    def _diagonal(self, chunk: Chunk) -> np.ndarray:
        if not self.stored:
            return check_kernel_values(self.kernel.diagonal(self._rows(chunk)))
        return np.full(chunk.X.shape[0], np.nan) if chunk.y is None else chunk.y[:, 0]

    def _first_equal_rows(self, rows: Any, source: Source, engine: Engine) -> np.ndarray:
        if not self.stored:
            return first_equal_rows(rows)
        return np.concatenate(engine.map(attrgetter("y"), source))[:, 1].astype(np.int64)

    def _sums(self, rows: Any, columns: np.ndarray, shares: np.ndarray, chunk: Chunk) -> np.ndarray:
        """Sums of the kernel values with the rows `columns` of the fit, weighted by `shares` (m, k): float64 (n, k)."""
        X = self._rows(chunk)
        total = np.zeros((X.shape[0], shares.shape[1]))
        shares = shares.astype(chunk.X.dtype)
        for tile, inside in tiles(columns):
            block = X[:, tile] if self.stored else self.kernel.block(X, rows[tile])
            if inside.stop - inside.start < block.shape[1]:
                block = np.ascontiguousarray(block[:, columns[inside] - tile.start])
            total += block @ shares[inside]
        return check_kernel_values(total)

    def _new_memo(self, means: Means, chunk: Chunk) -> KernelMemo:
        columns = np.flatnonzero(means.labels >= 0)
        shares = one_hot(means.labels[columns], means.counts[columns], self.n_clusters)
        unlabelled = np.full(chunk.X.shape[0], -1, np.int32)
        sums = self._sums(means.rows, columns, shares, chunk)
        return KernelMemo(-1, unlabelled, self._diagonal(chunk), sums, means.labels)

    def _relative_squares(self, means: Means, memo: KernelMemo, chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances minus k(x, x) (n, k), infinite for empty clusters, and their rounding error (n,)."""
        filled = means.weight > 0
        cross = 2 * memo.sums[:, filled] / means.weight[filled]
        relative = np.full(memo.sums.shape, np.inf)
        relative[:, filled] = means.norms[filled] - cross
        size = np.abs(cross).max(axis=1) + np.abs(means.norms[filled]).max()
        return relative, SLACK * np.finfo(chunk.X.dtype).eps * size

    # Steps

    def _has_improved(self, before: Means, after: Means) -> bool:
        """Whether a step decreased the cost enough to continue. Initial means that are single rows have no cost yet."""
        if after is before or np.isinf(before.cost):
            return after is not before
        return before.cost - after.cost > self.tol * abs(before.cost)

    def _better_of(
        self, state: tuple[Means, list[KernelMemo]], labels: np.ndarray, source: Source, engine: Engine
    ) -> tuple[Means, list[KernelMemo]]:
        """The means of these labels if they cost less, otherwise the current state."""
        means, memos = state
        if np.array_equal(labels, means.labels):
            return state
        new_means = self._with_labels(means, labels, source, engine, memos)
        return new_means if new_means[0].cost < means.cost else state

    def _with_labels(
        self, means: Means, labels: np.ndarray, source: Source, engine: Engine, memos: list[KernelMemo]
    ) -> tuple[Means, list[KernelMemo]]:
        """Means of these labels. If most rows changed, sums are computed again, otherwise updated by these rows."""
        changed = np.flatnonzero(labels != means.labels)
        has_many_changes = bool(2 * len(changed) > np.count_nonzero(labels >= 0))
        from_scratch = has_many_changes or not all(memo.belongs_to(means) for memo in memos)
        columns = np.flatnonzero(labels >= 0) if from_scratch else changed
        shares = one_hot(labels[columns], means.counts[columns], self.n_clusters)
        if not from_scratch:
            shares -= one_hot(means.labels[columns], means.counts[columns], self.n_clusters)
        new_means = means._replace(labels=labels, weight=self._by_cluster(labels, means.counts))
        squares, memos = engine.scan(
            partial(self._with_labels_part, new_means, columns, shares, from_scratch), source, memos
        )
        new_means = new_means._replace(norms=squares / np.where(new_means.weight > 0, new_means.weight, 1) ** 2)
        cost, _ = engine.scan(partial(self._cost, new_means), source, memos)
        return new_means._replace(cost=float(cost)), memos

    def _with_labels_part(
        self, means: Means, columns: np.ndarray, shares: np.ndarray, from_scratch: bool, chunk: Chunk, memo: KernelMemo
    ) -> tuple[np.ndarray, KernelMemo]:
        """Squared lengths of the sums of the rows of each mean (k,), and the new memo."""
        sums = self._sums(means.rows, columns, shares, chunk)
        if not from_scratch:
            sums += memo.sums
        diagonal = self._diagonal(chunk) if memo.diagonal is None else memo.diagonal
        labels = memo.part_of(means.labels)
        cluster_sums = sums[np.arange(len(labels)), labels]
        squares = self._by_cluster(labels, memo.part_of(means.counts) * cluster_sums)
        return squares, KernelMemo(memo.first, labels, diagonal, sums, means.labels)

    def _cost(self, means: Means, chunk: Chunk, memo: KernelMemo) -> tuple[float, KernelMemo]:
        """Weighted cost of the rows at the means they belong to."""
        labels, counts = memo.part_of(means.labels), memo.part_of(means.counts)
        assigned = np.flatnonzero(labels >= 0)
        relative, _ = self._relative_squares(means, memo, chunk)
        squares = memo.diagonal + relative[np.arange(len(labels)), labels]
        return float(counts[assigned] @ squares[assigned]), memo

    def _nearest_labels(self, means: Means, source: Source, engine: Engine, memos: list[KernelMemo]) -> np.ndarray:
        """Nearest mean of every row. An empty cluster is moved to the row with the largest cost."""
        labels = np.concatenate([memo.labels for memo in memos])
        labels = np.where(means.counts > 0, labels, -1).astype(np.int32)
        empty = np.flatnonzero(self._by_cluster(labels, means.counts) == 0)
        if len(empty):
            cost = np.concatenate(engine.map(partial(self._cost_beyond_rounding, means), source, memos))
            cost = np.bincount(means.first, np.maximum(cost, 0), len(cost))
            costliest = np.argsort(-cost, kind="stable")[: len(empty)]
            labels[costliest] = np.where(cost[costliest] > 0, empty, labels[costliest])
            labels = move_duplicates(labels, costliest, means.first)
        return labels

    def _cost_beyond_rounding(self, means: Means, chunk: Chunk, memo: KernelMemo) -> np.ndarray:
        """Cost of every row, minus its rounding error."""
        relative, slack = self._relative_squares(means, memo, chunk)
        squares = memo.diagonal + relative[np.arange(len(memo.labels)), memo.labels]
        return chunk.weights * (squares - 4 * slack)

    def _single_moves(self, means: Means, memos: list[KernelMemo], source: Source, engine: Engine) -> np.ndarray:
        """Labels after the rows with the largest gain have moved, one after the other."""
        whole = duplicate_weights(means.labels, means.counts, means.first)
        gain = np.concatenate(engine.map(partial(self._gains, means, whole), source, memos))
        rows = np.sort(np.argsort(-gain, kind="stable")[: min(MOVES, np.count_nonzero(gain > 0))])
        if len(rows) == 0:
            return means.labels
        block, diagonal = self._kernel_block(rows, source)
        sums = np.concatenate([memo.sums for memo in memos])[rows]
        labels = means.labels.copy()
        labels[rows] = move_rows(
            labels[rows], whole[rows], diagonal, block, sums, means.weight, means.norms * means.weight**2,
            SLACK * np.finfo(source.dtype).eps,
        )  # fmt: skip
        return move_duplicates(labels, rows, means.first)

    def _gains(self, means: Means, counts: np.ndarray, chunk: Chunk, memo: KernelMemo) -> np.ndarray:
        """Decrease of the objective by the best move of every row; at most 0 if no move helps."""
        relative, slack = self._relative_squares(means, memo, chunk)
        squares = memo.diagonal[:, None] + relative
        return best_moves(squares, memo.part_of(means.labels), memo.part_of(counts), means.weight, slack)[1]

    def _kernel_block(self, rows: np.ndarray, source: Source) -> tuple[np.ndarray, np.ndarray]:
        """Kernel matrix of a few rows (m, m), and its diagonal (m,)."""
        chunk = source.pick(rows)
        X = self._rows(chunk)
        block = X[:, rows] if self.stored else self.kernel.block(X, X)
        return block.astype(np.float64), self._diagonal(chunk)

    # Initialisation

    def _initial_labels(
        self, source: Source, engine: Engine, rng: np.random.Generator, rows: Any, space: FeatureSpace
    ) -> np.ndarray:
        if isinstance(self.start, str):
            columns = partial(self._columns, source, engine)
            mean_products = partial(self._mean_products, source, engine, rows, space.counts)
            return METHODS[self.start](
                space._replace(columns=columns, mean_products=mean_products), rng, self.n_clusters
            )
        return initial_labels(self.start, source.shape[0], self.n_clusters, rng, space.counts)

    def _columns(self, source: Source, engine: Engine, rows: np.ndarray) -> np.ndarray:
        prepared = None if self.stored else self._rows(source.pick(rows))
        return check_kernel_values(np.concatenate(engine.map(partial(self._column_part, prepared, rows), source)))

    def _column_part(self, prepared: Any, rows: np.ndarray, chunk: Chunk) -> np.ndarray:
        X = self._rows(chunk)
        return X[:, rows] if self.stored else self.kernel.block(X, prepared)

    def _mean_products(self, source: Source, engine: Engine, rows: Any, counts: np.ndarray) -> np.ndarray:
        shares = counts[:, None] / counts.sum()
        step = partial(self._sums, rows, np.arange(len(counts)), shares)
        return np.concatenate(engine.map(step, source))[:, 0]

    def _by_cluster(self, labels: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sums of values by cluster (k,)."""
        assigned = labels >= 0
        return np.bincount(labels[assigned], values[assigned], self.n_clusters)


@dataclass(frozen=True)
class IndefiniteKernelLloyd(KernelLloyd):
    """Kernel K-means for kernels that may be indefinite, where a mean need not be the best center of its rows.

    The objective is the cost of the partition: the cost of all rows at the means they belong to. The cost at the
    nearest means could increase, and could decrease for poor partitions.
    """

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> Means:
        means = super().init(source, engine, rng)
        if np.isfinite(means.cost):
            return means
        labels = np.concatenate(engine.map(partial(self.assign, means), source))
        return self._with_labels(
            means, np.where(means.counts > 0, labels, -1), source, engine, self.initial_memos(source)
        )[0]

    def objective(self, means: Means, stats: KernelStats) -> float:
        return means.cost * float(stats.weight.sum()) / float(means.weight.sum()) * self.kernel.factor


def tiles(columns: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """Tiles that contain the ascending `columns`, and the positions of the columns in each tile."""
    if len(columns) == 0:
        return
    edges = np.arange(columns[0] // COLUMNS, columns[-1] // COLUMNS + 2) * COLUMNS
    cuts = np.searchsorted(columns, edges)
    for edge, start, stop in zip(edges, cuts, cuts[1:], strict=False):
        if start < stop:
            yield slice(edge, edge + COLUMNS), slice(start, stop)


def one_hot(labels: np.ndarray, counts: np.ndarray, k: int) -> np.ndarray:
    """(n, k): the count of a row in the column of its label, zeros for rows without a label."""
    result = np.zeros((len(labels), k))
    assigned = np.flatnonzero(labels >= 0)
    result[assigned, labels[assigned]] = counts[assigned]
    return result


def stacked(pieces: list[Any]) -> Any:
    return sparse.vstack(pieces, format="csr") if is_sparse(pieces[0]) else np.concatenate(pieces)
