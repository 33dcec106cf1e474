"""Sums of the distances of each row to each cluster, without storing distances.

Rows are sorted by cluster, and clusters are padded to whole *groups* by copies of a row with weight 0. A group consists
of whole tiles, whose rows are in the lanes, and of whole panels (see `simd`). A panel is compared with each later tile
once: the distances are added to the sums of the rows of the panel, lane by lane, and to those of the tile.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.simd import PANEL, VECTORS, points, reduce_panel
from coterie.kernels.cpu.vectors import REGISTER, vector_code
from coterie.kernels.plain.silhouette import Sums

BLOCKS = 32  # maximum number of blocks of groups; threads compute pairs of blocks
BLOCK_ROWS = 768  # minimum number of rows of a block
SPAN_ROWS = 2048  # number of rows that are added in the precision of the data
SPAN_BYTES = 1 << 18  # size of the rows that a panel is compared with while they are in the cache
EXPONENT = {4: 60, 8: 500}  # exponent of the largest distance, by itemsize: squares neither underflow nor overflow


class Layout(NamedTuple):
    """Rows in tiles and panels, and their positions in the sums."""

    tiles: Any  # (tiles, d, points), flat
    panels: Any  # (panels, d, PANEL), flat
    w: Any  # (groups * rows of a group,)
    cluster: Any  # (groups,) cluster of each group
    position: Any  # (n,) index of each row in the sums
    d: int


def group_rows(itemsize: int) -> int:
    """Number of rows of a group: whole tiles, and whole panels."""
    return math.lcm(points(itemsize), PANEL)


def padded_size(counts: np.ndarray, itemsize: int) -> int:
    """Number of rows after padding of clusters with `counts` rows."""
    size = group_rows(itemsize)
    return int((-(-counts // size) * size).sum())


def layout(X: np.ndarray, w: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> Layout:
    """Sort and pad rows (n, d) with weights (n,) and clusters `codes` (n,), which have `counts` rows.

    Rows and weights are divided by powers of two, so the sums have another unit.
    """
    (n, d), size = X.shape, group_rows(X.itemsize)
    groups = -(-counts // size)
    first = np.concatenate([[0], np.cumsum(counts)])
    order = np.argsort(codes, kind="stable")
    position = np.empty(n, np.int64)
    position[order] = np.arange(n) + np.repeat((np.cumsum(groups) - groups) * size - first[:-1], counts)
    scaled = np.ldexp(X, EXPONENT[X.itemsize] - _exponent(_extent(X)))
    rows, weight = np.tile(scaled[0], (groups.sum() * size, 1)), np.zeros(groups.sum() * size, X.dtype)
    rows[position], weight[position] = scaled, np.ldexp(w, -_exponent(w.max()))
    tiles, panels = (
        np.ascontiguousarray(rows.reshape(-1, width, d).transpose(0, 2, 1)).ravel()
        for width in (points(X.itemsize), PANEL)
    )
    cluster = np.repeat(np.arange(len(counts)), groups)
    return Layout(tiles, panels, weight, cluster, position, d)


def blocks(layout: Layout) -> list[tuple[int, int, int, int]]:
    """Pairs of blocks of groups, each with itself and all later ones: (start, stop) of both."""
    groups = len(layout.cluster)
    step = max(-(-groups // BLOCKS), -(-BLOCK_ROWS // group_rows(layout.w.itemsize)))
    cuts = [(start, min(start + step, groups)) for start in range(0, groups, step)]
    return [(*block, *other) for i, block in enumerate(cuts) for other in cuts[i:]]


def sums(layout: Layout, start: int, stop: int, other: int, end: int) -> tuple[Sums, ...]:
    """Sums of the distances between the rows of groups `start` to `stop` and of groups `other` to `end`."""
    size = group_rows(layout.w.itemsize)
    cluster = layout.cluster
    clusters = slice(cluster[other], cluster[end - 1] + 1), slice(cluster[start], cluster[stop - 1] + 1)
    rows = slice(start * size, stop * size), slice(other * size, end * size)
    values = [np.zeros((c.stop - c.start, r.stop - r.start)) for c, r in zip(clusters, rows, strict=True)]
    span = max(1, min(SPAN_ROWS // size, SPAN_BYTES // (size * layout.d * layout.w.itemsize)))
    _sums(layout.tiles, layout.panels, layout.w, cluster, layout.d, start, stop, other, end, span, *values)
    return tuple(Sums(*block) for block in zip(clusters, rows, values, strict=True))


def _exponent(x: float) -> int:
    """Exponent of the smallest power of two above x."""
    return int(np.frexp(x)[1])


def _extent(X: np.ndarray) -> float:
    """Upper bound of half of the largest distance of two rows, and of the rounding of the largest value."""
    half = X.max(axis=0).astype(np.float64) / 2 - X.min(axis=0).astype(np.float64) / 2
    return float(max(half.max() * np.sqrt(X.shape[1]), np.abs(X).max() * np.finfo(X.dtype).eps))


@vector_code
def add_distances(v, tile, tile_at, panels, panel_at, w, w_tile, w_panel, by_row, by_column, column_at, d):
    """Add the weighted distances of a panel and a tile to their sums.

    by_row (PANEL, lanes) += w of the rows of the tile times distances; by_column (points,) from `column_at` on += w of
    the rows of the panel times distances.
    """
    b = v.b
    squares = reduce_panel(v, [v.zero] * PANEL, lambda x, c, total: v.add_square(b.fsub(x, c), total))
    tile0, panel0 = v.start(w, w_tile), v.start(w, w_panel)
    row0, column0 = v.start(by_row), v.start(by_column, column_at)
    tile_weights = [v.load(v.at(tile0, r * v.lanes)) for r in range(VECTORS)]
    columns = [v.load(v.at(column0, r * v.lanes)) for r in range(VECTORS)]
    for j in range(PANEL):
        panel_weight, at = v.spread(b.load(v.at(panel0, j))), v.at(row0, j * v.lanes)
        row = v.load(at)
        for r in range(VECTORS):
            distance = v.call("sqrt", squares[j][r])
            row = v.fma(distance, tile_weights[r], row)
            columns[r] = v.fma(distance, panel_weight, columns[r])
        v.store(row, at)
    for r in range(VECTORS):
        v.store(columns[r], v.at(column0, r * v.lanes))


@jit
def _sums(
    tiles,  # in  as in `Layout`
    panels,  # in
    w,  # in
    cluster,  # in
    d,  # in
    start,  # in  groups of the panels
    stop,
    other,  # in  groups of the tiles
    end,
    span,  # in  number of groups that are added in the precision of the data
    by_row,  # out (clusters of other:end, rows of start:stop)
    by_column,  # out (clusters of start:stop, rows of other:end)
):
    """Add the distances between two blocks to the sums of both."""
    size, width = len(w) // len(cluster), points(w.itemsize)
    row, column = np.zeros(PANEL * REGISTER // w.itemsize, w.dtype), np.zeros(span * size, w.dtype)
    unused = np.zeros(size, w.dtype)
    for low in range(other, end, span):
        high = min(low + span, end)
        first = start
        for g in range(start, min(stop, high)):
            for i in range(g * size, (g + 1) * size, PANEL):
                if low <= g:
                    for t in range(g * size, (g + 1) * size, width):
                        add_distances(tiles, t * d, panels, i * d, w, t, i, row, unused, t - g * size, d)
                    _flush_rows(row, by_row, cluster[g] - cluster[other], i - start * size)
                for h in range(max(low, g + 1), high):
                    for t in range(h * size, (h + 1) * size, width):
                        add_distances(tiles, t * d, panels, i * d, w, t, i, row, column, t - low * size, d)
                    if h + 1 == high or cluster[h + 1] != cluster[h]:
                        _flush_rows(row, by_row, cluster[h] - cluster[other], i - start * size)
            if g + 1 == min(stop, high) or cluster[g + 1] != cluster[g] or g + 1 - first == span:
                _flush_columns(column, by_column, cluster[g] - cluster[start], (low - other) * size)
                first = g + 1


@jit
def _flush_rows(row, total, cluster, first):
    """Add the sums of a panel to float64, and set them to zero."""
    lanes = len(row) // PANEL
    for p in range(PANEL):
        row_sum = 0.0
        for lane in range(lanes):
            row_sum += row[p * lanes + lane]
            row[p * lanes + lane] = 0
        total[cluster, first + p] += row_sum


@jit
def _flush_columns(column, total, cluster, first):
    """Add the sums of tiles to float64, and set them to zero."""
    for j in range(min(len(column), total.shape[1] - first)):
        total[cluster, first + j] += column[j]
        column[j] = 0


@jit
def silhouettes_of_cells(
    D,  # in  (n, m)
    w,  # in  (n,)
    starts,  # in  (cells + 1,)
    clusters,  # in  (cells, p)
    first,  # in  (p + 1,)
    weight,  # in  (clusters,)
    own,  # in  (p, m)
    rest,  # in  (p, m)
    values,  # out (p, m)
):
    """See `plain.silhouette`."""
    m, part = D.shape[1], np.empty(D.shape[1])
    sums = np.zeros((len(weight), m))
    for c in range(len(clusters)):
        part[:] = 0.0
        for j in range(starts[c], starts[c + 1]):
            _add_scaled(w[j], D[j], part)
        for q in range(clusters.shape[1]):
            _add_scaled(1.0, part, sums[clusters[c, q]])
    for q in range(len(values)):
        nearest = values[q]
        nearest[:] = np.inf
        for k in range(first[q], first[q + 1]):
            if weight[k] > 0:
                _lower_others(sums[k], 1.0 / weight[k], k, own[q], nearest)
        for i in range(m):
            a = sums[own[q, i], i] / rest[q, i] if rest[q, i] > 0 else 0.0
            largest = max(a, nearest[i])
            nearest[i] = (nearest[i] - a) / largest if rest[q, i] > 0 and largest > 0 else 0.0


@jit
def _add_scaled(factor, values, total):
    for i in range(len(total)):
        total[i] += factor * values[i]


@jit
def _lower_others(sums, factor, cluster, own, nearest):
    """Lower `nearest` to the means of rows that are not in this cluster."""
    for i in range(len(nearest)):
        mean = sums[i] * factor
        nearest[i] = mean if own[i] != cluster and mean < nearest[i] else nearest[i]
