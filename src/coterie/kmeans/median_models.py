"""Models of K-medians: centers that are medians of their rows, for distances that are not squared."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.kmeans.center_model import CenterModel, same_dtype, squared_step
from coterie.kmeans.lloyd import Bounds, NearestCenters
from coterie.seeding import costs

BINS = (16, 4)  # powers of two; the second number saves memory if there are many cells
CELLS = 1 << 16  # clusters x columns above which there are fewer bins
SORTED = 1 << 17  # rows x columns of a single part up to which values are sorted instead
REACH = (0.0, *(sign * 2.0**-i for i in (1, 2, 4, 6, 8) for sign in (-1, 1)))  # edges in fractions of a bin
ROUNDING = 1e-12  # relative difference that is attributed to rounding
STEPS = 10  # maximum number of Weiszfeld steps in one iteration
CLOSE = 1e-4  # Weiszfeld steps end if the squared movement is below this fraction of the tolerance of the fit


@dataclass(frozen=True)
class ManhattanStats(Stats):
    """Sums for the L1 distance."""

    weight: Any  # (k,)
    cost: Any  # (k, d) of w |x - c|, column by column
    moved: Any  # rows that changed cluster


@dataclass(frozen=True)
class Counts(Stats):
    """Weight, minimum and maximum of the values in each bin of each cluster and column."""

    weight: Any  # (k, d, bins)
    minimum: Any  # (k, d, bins)
    maximum: Any  # (k, d, bins)

    def __add__(self, other: "Counts") -> "Counts":
        minimum, maximum = np.minimum(self.minimum, other.minimum), np.maximum(self.maximum, other.maximum)
        return Counts(self.weight + other.weight, minimum, maximum)


@dataclass(frozen=True)
class Medians(Stats):
    """Medians of the clusters of a single part."""

    values: Any  # (k, d)


@dataclass(frozen=True)
class WeiszfeldStats(Stats):
    """Sums of a Weiszfeld step: unit vectors from each center to its rows, by weight."""

    on: Any  # (k,) of w, over the rows on the center
    inverse: Any  # (k,) of w / |x - c|, over the other rows
    pull: Any  # (k, d) of w (x - c) / |x - c|
    cost: Any  # (k,) of w |x - c|


@dataclass(frozen=True)
class EuclideanStats(WeiszfeldStats):
    """Sums of a Weiszfeld step, and the weight of each cluster."""

    weight: Any  # (k,)
    moved: Any  # rows that changed cluster


@dataclass(frozen=True)
class NearestRows(Stats):
    """Row of each cluster that is nearest to its center; the first if there are several."""

    distance: Any  # (k,) infinite for a cluster without rows
    rows: Any  # (k, d)

    def __add__(self, other: "NearestRows") -> "NearestRows":
        is_first = self.distance <= other.distance
        return NearestRows(
            np.where(is_first, self.distance, other.distance), np.where(is_first[:, None], self.rows, other.rows)
        )


@dataclass(frozen=True)
class Manhattan(CenterModel):
    r"""Minimises :math:`\sum_i w_i \min_k \|x_i - c_k\|_1`: centers are medians, column by column.

    Medians are not sums, but the weight up to a value is. Each pass counts the weight in bins within the bin that
    contains the median, until a single value is left. It takes one or two passes when the centers have nearly
    converged, and about log16 of the number of rows of a cluster before. The values of a small table are sorted.
    """

    center_kind = "medians"

    def e_step(
        self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray | None = None
    ) -> tuple[ManhattanStats, np.ndarray]:
        chunk, centers = same_dtype(chunk, centers)
        labels = np.full(len(chunk.X), -1, np.int32) if labels is None else labels
        sums = kernels.select("medians", chunk.X, len(centers)).deviations(chunk.X, chunk.w, centers, labels)
        return ManhattanStats(*sums), labels

    def m_step(self, centers: np.ndarray, stats: ManhattanStats) -> np.ndarray:
        """Return the centers unchanged: `repair` computes the medians, which are not functions of sums."""
        return centers

    def repair(
        self, centers: np.ndarray, stats: ManhattanStats, source: Source, engine: Engine, memos: list[np.ndarray]
    ) -> np.ndarray:
        if len(memos) == 1 and source.shape[0] * source.shape[1] <= SORTED:
            values = engine.scan(partial(_sorted_medians, centers), source, memos)[0].values
        else:
            values = medians(centers, stats, source, engine, memos)
        new_centers = values.astype(centers.dtype)
        return super().repair(new_centers, stats, source, engine, memos)

    def assign(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray | None = None) -> np.ndarray:
        return self.e_step(centers, chunk)[1] if labels is None else labels

    def distances(self, centers: np.ndarray, chunk: Chunk) -> np.ndarray:
        chunk, centers = same_dtype(chunk, centers)
        return kernels.select("medians", chunk.X, len(centers)).distances(chunk.X, centers)

    def assigned_costs(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray) -> np.ndarray:
        return _assigned_distances(centers, chunk, labels, "l1")

    @property
    def cost(self) -> costs.Cost:
        return costs.Manhattan()


@dataclass(frozen=True)
class Euclidean(NearestCenters):
    r"""Minimises :math:`\sum_i w_i \min_k \|x_i - c_k\|_2`: centers are geometric medians, by Weiszfeld.

    A step minimises squared distances that are an upper bound of the distances and touch them at the old center, so it
    never increases their sum. A center on a row moves away if the pull of the other rows exceeds the weight of that
    row; otherwise the row is the median. Steps towards a row that is the median can become ever smaller. `repair`
    therefore checks whether the row nearest to each center is its median. `KMedians` cites the papers.
    """

    center_kind = "geometric medians"

    def e_step(self, centers: np.ndarray, chunk: Chunk, memo: Bounds | None = None) -> tuple[EuclideanStats, Bounds]:
        """The nearest center is that of K-means, because squaring does not change the order."""
        sums, memo = super().e_step(centers, chunk, memo)
        pulls, _ = _weiszfeld_sums(centers, chunk, memo)
        return EuclideanStats(**vars(pulls), weight=sums.weight, moved=sums.moved), memo

    def m_step(self, centers: np.ndarray, stats: WeiszfeldStats) -> np.ndarray:
        length = np.linalg.norm(stats.pull, axis=1)
        is_moving = (length > stats.on) & (stats.inverse > 0)
        share = np.where(is_moving, 1.0 - stats.on / np.where(is_moving, length, 1.0), 0.0)
        step = stats.pull * (share / np.where(is_moving, stats.inverse, 1.0))[:, None]
        return (centers + step).astype(centers.dtype)

    def repair(
        self, centers: np.ndarray, stats: EuclideanStats, source: Source, engine: Engine, memos: list[Bounds]
    ) -> np.ndarray:
        """More steps for the same clusters: a pass over one center per row is cheaper than a pass over all centers."""
        for _ in range(STEPS - 1):
            pulls, _ = engine.scan(partial(_weiszfeld_sums, centers), source, memos)
            before, centers = centers, self.m_step(centers, pulls)
            if squared_step(before, centers) <= CLOSE * self.tol:
                break
        nearest, _ = engine.scan(partial(_nearest, centers), source, memos)
        pulls, _ = engine.scan(partial(_weiszfeld_sums, nearest.rows), source, memos)
        excess = np.linalg.norm(pulls.pull, axis=1) - (1.0 + ROUNDING) * pulls.on
        is_median = np.isfinite(nearest.distance) & (excess <= 0)
        centers = np.where(is_median[:, None], nearest.rows, centers)
        return super().repair(centers, stats, source, engine, memos)

    def has_converged(self, before: np.ndarray, after: np.ndarray, stats: Any, history: Any, *rest: Any) -> bool:
        return bool(squared_step(before, after) <= self.tol or history[-1] >= (1.0 - ROUNDING) * history[-2])

    def assigned_costs(self, centers: np.ndarray, chunk: Chunk, labels: np.ndarray) -> np.ndarray:
        return _assigned_distances(centers, chunk, labels, "l2")

    @property
    def cost(self) -> costs.Cost:
        return costs.Euclidean()


def medians(
    centers: np.ndarray, stats: ManhattanStats, source: Source, engine: Engine, memos: list[np.ndarray]
) -> np.ndarray:
    """Median of every cluster and column, in float64. An empty cluster keeps its center."""
    bins = BINS[0] if centers.size <= CELLS else BINS[1]
    filled = np.broadcast_to(stats.weight[:, None] > 0, centers.shape)
    weight = np.where(filled, stats.weight[:, None], 1.0)
    result, is_open = centers.astype(np.float64), filled.copy()
    low, high, below = np.where(is_open, -np.inf, np.inf), np.where(is_open, np.inf, -np.inf), np.zeros(centers.shape)
    edges = _edges_about(result, stats.cost / weight, bins)
    while is_open.any():
        counts, _ = engine.scan(partial(_counts, low, high, edges), source, memos)
        cumulative = np.cumsum(np.concatenate([below[..., None], counts.weight], axis=2), axis=2)
        has_rows, beyond = counts.weight > 0, cumulative[..., 1:] / weight[..., None] - 0.5
        lower, upper = _first(has_rows, beyond >= -ROUNDING), _first(has_rows, beyond > ROUNDING)
        first, last = _at(counts.minimum, lower), _at(counts.maximum, lower)
        # If the two bins differ, half of the weight is up to the lower one, and half from the upper one.
        is_closed = is_open & ((lower != upper) | (first == last))
        above = np.where(lower == upper, last, _at(counts.minimum, upper))
        result[is_closed] = last[is_closed] + 0.5 * (above[is_closed] - last[is_closed])
        is_open &= ~is_closed
        low, high = np.where(is_open, first, np.inf), np.where(is_open, last, -np.inf)
        below = _at(cumulative, lower)
        share = (0.5 * weight - below) / np.where(is_open, _at(counts.weight, lower), 1.0)
        edges = _edges_between(np.where(is_open, low, 0.0), np.where(is_open, high, 0.0), share, bins)
    return result


def _sorted_medians(centers: np.ndarray, chunk: Chunk, labels: np.ndarray) -> tuple[Medians, np.ndarray]:
    """The same as `medians`, from the sorted values of each cluster."""
    result = centers.astype(np.float64)
    for j in range(len(centers)):
        rows = np.flatnonzero(labels == j if chunk.w is None else (labels == j) & (chunk.w > 0))
        if len(rows) > 0:
            values = chunk.X[rows].T.astype(np.float64)
            low, high = _middle(values) if chunk.w is None else _weighted_middle(values, chunk.w[rows])
            result[j] = low + 0.5 * (high - low)
    return Medians(result), labels


def _middle(values: np.ndarray) -> np.ndarray:
    """The two middle values (2, d) of each row; the same value twice if their number is odd."""
    count = values.shape[1]
    return np.sort(values, axis=1).T[[(count - 1) // 2, count // 2]]


def _weighted_middle(values: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The values (2, d) of each row at which the weight up to them reaches, and then exceeds, half of the total."""
    order = np.argsort(values, axis=1)
    cumulative = np.cumsum(w[order], axis=1, dtype=np.float64)
    beyond = cumulative / cumulative[:, -1:] - 0.5
    middle = np.stack([np.argmax(beyond >= -ROUNDING, axis=1), np.argmax(beyond > ROUNDING, axis=1)], axis=1)
    return np.take_along_axis(values, np.take_along_axis(order, middle, axis=1), axis=1).T


def _at(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, index[..., None], axis=2)[..., 0]


def _first(has_rows: np.ndarray, condition: np.ndarray) -> np.ndarray:
    """First bin that has rows and satisfies `condition`. If rounding leaves none, the last bin that has rows."""
    condition = condition & has_rows
    last = has_rows.shape[2] - 1 - np.argmax(has_rows[..., ::-1], axis=2)
    return np.where(condition.any(axis=2), np.argmax(condition, axis=2), last)


def _edges_about(centers: np.ndarray, spread: np.ndarray, bins: int) -> np.ndarray:
    """Edges (k, d, bins - 1) around the old centers, denser near them, because the last iterations move them little."""
    if bins == BINS[0]:
        reach = np.array([*-(2.0 ** -np.arange(7)), 0.0, *2.0 ** -np.arange(6)])
    else:
        reach = np.array([0.0, 0.25])
    about = centers[..., None] + spread[..., None] * reach
    # A center that is still the median gets its own bin.
    return np.sort(np.concatenate([about, np.nextafter(centers, -np.inf)[..., None]], axis=2), axis=2)


def _edges_between(low: np.ndarray, high: np.ndarray, share: np.ndarray, bins: int) -> np.ndarray:
    """Edges (k, d, bins - 1) from `low` on, most of them near the median of evenly distributed values.

    `share` of the weight is below the median. The other edges are evenly spaced in the order of all floating-point
    numbers, so that values of any magnitude are separated in few passes.
    """
    middle = _between(low, high)
    if bins == BINS[0]:
        ordered, reach = [_between(low, middle), middle, _between(middle, high)], REACH
    else:
        ordered, reach = [middle], REACH[:1]
    about = [low + (high - low) * np.clip(share + r, 0.0, 1.0) for r in reach]
    return np.sort(np.stack([low, *ordered, *about], axis=2), axis=2)


def _between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Midpoint of a and b in the order of all floating-point numbers."""
    a, b = _order(a.view(np.int64)), _order(b.view(np.int64))
    return _order((a & b) + ((a ^ b) >> 1)).view(np.float64)


def _order(bits: np.ndarray) -> np.ndarray:
    """Map the bits of float64 to integers in the same order, and back."""
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _assigned_distances(centers: np.ndarray, chunk: Chunk, labels: np.ndarray, metric: str) -> np.ndarray:
    chunk, centers = same_dtype(chunk, centers)
    return kernels.select("medians", chunk.X, len(centers)).assigned_distances(chunk.X, centers, labels, metric)


def _counts(
    low: np.ndarray, high: np.ndarray, edges: np.ndarray, chunk: Chunk, labels: np.ndarray
) -> tuple[Counts, np.ndarray]:
    ops = kernels.select("medians", chunk.X, len(low))
    return Counts(*ops.bin_counts(chunk.X, chunk.w, labels, low, high, edges)), labels


def _nearest(centers: np.ndarray, chunk: Chunk, memo: Bounds) -> tuple[NearestRows, Bounds]:
    distances = _assigned_distances(centers, chunk, memo.labels, "l2")
    if chunk.w is not None:
        distances = np.where(chunk.w > 0, distances, np.inf)
    minimum, rows = np.full(len(centers), np.inf), centers.copy()
    np.minimum.at(minimum, memo.labels, distances)
    candidates = np.flatnonzero((distances == minimum[memo.labels]) & (distances < np.inf))
    clusters, first = np.unique(memo.labels[candidates], return_index=True)
    rows[clusters] = chunk.X[candidates[first]]
    return NearestRows(minimum, rows), memo


def _weiszfeld_sums(centers: np.ndarray, chunk: Chunk, memo: Bounds) -> tuple[WeiszfeldStats, Bounds]:
    chunk, centers = same_dtype(chunk, centers)
    ops = kernels.select("medians", chunk.X, len(centers))
    return WeiszfeldStats(*ops.weiszfeld_sums(chunk.X, chunk.w, centers, memo.labels)), memo
