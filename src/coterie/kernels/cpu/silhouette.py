"""Sums of the distances of every row to every cluster, of which no distance is ever stored.

Rows are sorted by cluster, and each cluster is filled up, by copies of a row that weigh 0, to whole *groups*. A group
is cut both into tiles, whose rows sit in the lanes, and into panels (see `simd`). A panel meets every tile behind it
once: the distances go straight into the sums of the panel's rows, lane by lane, and into those of the tile's rows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.pairwise import _root
from coterie.kernels.cpu.simd import PANEL, VECTORS, against_panel, points
from coterie.kernels.cpu.vectors import REGISTER, Vectors
from coterie.kernels.plain.silhouette import Sums

BLOCKS = 32  # so many blocks of groups at most: what threads share is pairs of blocks
BLOCK_ROWS = 768  # rows of a block at least: less does not repay a call
SPAN_ROWS = 2048  # rows that are added up in the data's own precision
SPAN_BYTES = 1 << 18  # of rows that a panel meets while they are in the cache
EXPONENT = {4: 60, 8: 500}  # by itemsize, of the largest distance: squares are far from underflow and from overflow


class Layout(NamedTuple):
    """Rows as the kernel takes them, and how to read its sums."""

    tiles: Any  # (all tiles, d, points) in one row
    panels: Any  # (all panels, d, PANEL) likewise
    w: Any  # (groups * rows of a group,)
    owner: Any  # (groups,) the cluster of each group
    where: Any  # (n,) the place of each row
    d: int


def group_rows(itemsize: int) -> int:
    """Rows of a group: whole tiles, and whole panels."""
    return math.lcm(points(itemsize), PANEL)


def places(counts: np.ndarray, itemsize: int) -> int:
    """Rows there are once each of the clusters, of so many rows, is filled up."""
    size = group_rows(itemsize)
    return int((-(-counts // size) * size).sum())


def layout(X: np.ndarray, w: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> Layout:
    """Rows (n, d) with weights (n,) in clusters `codes` of `counts` rows, sorted and filled up.

    Rows and weights are scaled by powers of two, and so are the sums, to units of their own.
    """
    (n, d), size = X.shape, group_rows(X.itemsize)
    groups = -(-counts // size)
    first = np.concatenate([[0], np.cumsum(counts)])
    order = np.argsort(codes, kind="stable")
    where = np.empty(n, np.int64)
    where[order] = np.arange(n) + np.repeat((np.cumsum(groups) - groups) * size - first[:-1], counts)
    scaled = np.ldexp(X, EXPONENT[X.itemsize] - _exponent(_extent(X)))
    rows, weight = np.tile(scaled[0], (groups.sum() * size, 1)), np.zeros(groups.sum() * size, X.dtype)
    rows[where], weight[where] = scaled, np.ldexp(w, -_exponent(w.max()))
    tiles, panels = (
        np.ascontiguousarray(rows.reshape(-1, wide, d).transpose(0, 2, 1)).ravel()
        for wide in (points(X.itemsize), PANEL)
    )
    owner = np.repeat(np.arange(len(counts)), groups)
    return Layout(tiles, panels, weight, owner, where, d)


def blocks(given: Layout) -> list[tuple[int, int, int, int]]:
    """Pairs of blocks of groups, the second from the first on: (start, stop) of both."""
    groups = len(given.owner)
    step = max(-(-groups // BLOCKS), -(-BLOCK_ROWS // group_rows(given.w.itemsize)))
    cuts = [(start, min(start + step, groups)) for start in range(0, groups, step)]
    return [(*mine, *other) for i, mine in enumerate(cuts) for other in cuts[i:]]


def sums(given: Layout, start: int, stop: int, other: int, end: int) -> tuple[Sums, ...]:
    """Sums of the distances between the rows of groups `start` to `stop` and those of `other` to `end`."""
    size = group_rows(given.w.itemsize)
    clusters = slice(given.owner[other], given.owner[end - 1] + 1), slice(given.owner[start], given.owner[stop - 1] + 1)
    rows = slice(start * size, stop * size), slice(other * size, end * size)
    found = [np.zeros((c.stop - c.start, r.stop - r.start)) for c, r in zip(clusters, rows, strict=True)]
    span = max(1, min(SPAN_ROWS // size, SPAN_BYTES // (size * given.d * given.w.itemsize)))
    _sums(given.tiles, given.panels, given.w, given.owner, given.d, start, stop, other, end, span, *found)
    return tuple(Sums(*one) for one in zip(clusters, rows, found, strict=True))


def _exponent(x: float) -> int:
    """Of the power of two above x."""
    return int(np.frexp(x)[1])


def _extent(X: np.ndarray) -> float:
    """No less than half the largest distance of two rows, nor than what rounding makes of the largest number."""
    half = X.max(axis=0).astype(np.float64) / 2 - X.min(axis=0).astype(np.float64) / 2
    return float(max(half.max() * np.sqrt(X.shape[1]), np.abs(X).max() * np.finfo(X.dtype).eps))


@intrinsic
def add_distances(typingctx, tiles, tile_at, panels, panel_at, w, w_tile, w_panel, by_row, by_column, column_at, d):
    """Adds the distances of a panel and a tile, weighted, to their sums.

    by_row (PANEL, lanes) += w of the tile's rows times distances; by_column (points,) from `column_at` on += w of the
    panel's rows times distances.
    """
    sig = types.void(tiles, tile_at, panels, panel_at, w, w_tile, w_panel, by_row, by_column, column_at, d)

    def codegen(context, b, sig, args):
        names = "tile tile_at panels panel_at w w_tile w_panel by_row by_column column_at d"
        v = Vectors(names, context, b, sig, args)

        def square(x, c, total):
            difference = b.fsub(x, c)
            return v.fma(difference, difference, total)

        squares = against_panel(v, [v.zero] * PANEL, square)
        tile0, panel0 = v.start("w", v["w_tile"]), v.start("w", v["w_panel"])
        row0, column0 = v.start("by_row"), v.start("by_column", v["column_at"])
        mine = [v.load(v.at(tile0, r * v.lanes)) for r in range(VECTORS)]
        columns = [v.load(v.at(column0, r * v.lanes)) for r in range(VECTORS)]
        for j in range(PANEL):
            theirs, at = v.spread(b.load(v.at(panel0, j))), v.at(row0, j * v.lanes)
            row = v.load(at)
            for r in range(VECTORS):
                distance = _root(v, squares[j][r])
                row = v.fma(distance, mine[r], row)
                columns[r] = v.fma(distance, theirs, columns[r])
            v.store(row, at)
        for r in range(VECTORS):
            v.store(columns[r], v.at(column0, r * v.lanes))
        return context.get_dummy_value()

    return sig, codegen


@jit
def _sums(
    tiles,  # in  as in `Layout`
    panels,  # in
    w,  # in
    owner,  # in
    d,  # in
    start,  # in  first group whose panels are taken, and the one behind the last
    stop,
    other,  # in  the same of the tiles
    end,
    span,  # in  groups that are added up in the data's precision
    by_row,  # out (clusters of other:end, rows of start:stop)
    by_column,  # out (clusters of start:stop, rows of other:end)
):
    size, wide = len(w) // len(owner), points(w.itemsize)
    row, column = np.zeros(PANEL * REGISTER // w.itemsize, w.dtype), np.zeros(span * size, w.dtype)
    unused = np.zeros(size, w.dtype)
    for low in range(other, end, span):
        high = min(low + span, end)
        begun = start
        for g in range(start, min(stop, high)):
            for i in range(g * size, (g + 1) * size, PANEL):
                if low <= g:
                    for t in range(g * size, (g + 1) * size, wide):
                        add_distances(tiles, t * d, panels, i * d, w, t, i, row, unused, t - g * size, d)
                    _move_rows(row, by_row, owner[g] - owner[other], i - start * size)
                for h in range(max(low, g + 1), high):
                    for t in range(h * size, (h + 1) * size, wide):
                        add_distances(tiles, t * d, panels, i * d, w, t, i, row, column, t - low * size, d)
                    if h + 1 == high or owner[h + 1] != owner[h]:
                        _move_rows(row, by_row, owner[h] - owner[other], i - start * size)
            if g + 1 == min(stop, high) or owner[g + 1] != owner[g] or g + 1 - begun == span:
                _move_columns(column, by_column, owner[g] - owner[start], (low - other) * size)
                begun = g + 1


@jit
def _move_rows(row, total, cluster, first):
    lanes = len(row) // PANEL
    for p in range(PANEL):
        found = 0.0
        for lane in range(lanes):
            found += row[p * lanes + lane]
            row[p * lanes + lane] = 0
        total[cluster, first + p] += found


@jit
def _move_columns(column, total, cluster, first):
    for j in range(min(len(column), total.shape[1] - first)):
        total[cluster, first + j] += column[j]
        column[j] = 0
