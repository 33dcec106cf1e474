"""K-means on what was observed of each row, compiled; the NumPy twin says what each name means.

A pass is that of `hard`, with squares taken directly instead of scores: |c|^2 is another number for every set of
columns. Whatever two squares leave in doubt is settled by the definition (`exact`), for the row and the centers with
zeros in the columns the row lacks.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from coterie.kernels.cpu import _read, _room, exact
from coterie.kernels.cpu.hard import BLOCK_BYTES, FLUSH_ROWS, cleared, flush, pack, pad_centers, panel_size
from coterie.kernels.cpu.hard import relabel_block as relabel
from coterie.kernels.cpu.jit import jit, jit_inner, jit_reassociating
from coterie.kernels.cpu.simd import PANEL, add_observed, aligned, load_tile, padded, points, score_observed
from coterie.kernels.plain import Weights, weights
from coterie.kernels.plain import observed as plain
from coterie.kernels.plain.observed import ObservedSums

FRAME_ROWS = 64  # whose size, beside that of the centers, is the unit

Search = namedtuple(
    "Search",
    (
        "origin",  # (padded d,) zeros: rows stay where they are, and so differences lose no digit
        "panels",  # (panels * d * PANEL,) the centers, negated
        "start",  # (panels * PANEL,) what squares begin with: infinity for those that fill up the last panel
        "rows",  # (block,) the rows searched
        "tile",  # (block * padded d,)
        "norm",  # (block,) squared lengths, unused
        "best",  # (block,) least squares
        "second",  # (block,)
        "index",  # (block,) labels
        "row",  # (1, d) a row in doubt, zeros in its holes
        "others",  # (k, d) the centers, zeros there too
        "squares",  # (k,)
    ),
)


def lloyd(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> ObservedSums:
    room = _room(centers, X.dtype)
    *sums, moved, seen = add_up(_read(X), weights(w), _read(centers), labels, _inverse(X, centers), room)
    if all(np.isfinite(each).all() for each in (*sums, seen)):
        return ObservedSums(*sums, int(moved), seen)
    return _lloyd_in_float64(X, w, centers, labels)._replace(moved=int(moved))


def nearest(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    labels = np.empty(len(X), np.int32)
    label(_read(X), _read(centers), labels, _inverse(X, centers), _room(centers, X.dtype))
    return labels


def own_squares(X: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> np.ndarray:
    out = np.empty(len(X))
    take_own_squares(_read(X), _read(centers), _read(labels), _inverse(X, centers), out)
    return out


def distances(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    out = np.empty((len(X), len(centers)), X.dtype)
    all_distances(_read(X), _read(centers), _inverse(X, centers), out)
    return out


def filled(X: np.ndarray, values: np.ndarray) -> np.ndarray:
    out = np.empty(X.shape, X.dtype)
    fill(_read(X), _read(values.astype(X.dtype)), out)
    return out


def _inverse(X: np.ndarray, centers: np.ndarray) -> float:
    few = plain.filled(X[:FRAME_ROWS], centers[0])
    return 1.0 / exact.frame(_read(few), _read(centers), np.empty(X.shape[1], X.dtype))


def _lloyd_in_float64(X: np.ndarray, w: Weights, centers: np.ndarray, labels: np.ndarray) -> ObservedSums:
    """The same sums where one row lies so far out that its square overflows the data's precision."""
    parts = [slice(start, start + 1024) for start in range(0, len(X), 1024)]
    sums = [plain.lloyd(X[part], None if w is None else w[part], centers, labels[part]) for part in parts]
    return ObservedSums(*(sum(field) for field in zip(*sums, strict=True)))


@jit
def add_up(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,) for one weight for all
    centers,  # in  (k, d)
    labels,  # i/o (n,) those of the last pass, -1 where there was none
    inverse,  # in  1 / unit
    room,  # i/o (hard.room_for(k, d, itemsize),) to work in
):
    """Weight, sum of w (x - c), sum of w |x - c|^2 of every cluster; rows that changed cluster; weight seen."""
    n, d = X.shape
    k = centers.shape[0]
    s = prepare(X, centers, inverse, room)
    block = s.rows.shape[0]
    rounded, part = pad_centers(X, centers, room)
    part_seen = aligned(rounded.size, X).reshape(rounded.shape)
    weight, sum_dx, cost, seen = np.zeros(k), np.zeros((k, d)), np.zeros(k), np.zeros((k, d))
    since, moved = 0, 0
    for i0 in range(0, n, block):
        i1 = min(n, i0 + block)
        search(X, centers, s, inverse, i0, i1)
        moved += relabel(labels, i0, s.index, i1 - i0)
        add_rows(X, w, i0, i1, labels, rounded, inverse, weight, part, part_seen)
        since += i1 - i0
        if since >= FLUSH_ROWS or i1 == n:
            flush(part, 1.0 / inverse, sum_dx, cost)
            flush_seen(part_seen, seen)
            since = 0
    return weight, sum_dx, cost, moved, seen


@jit
def label(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    labels,  # out (n,)
    inverse,  # in  1 / unit
    room,  # i/o as above
):
    """The label of every row."""
    s = prepare(X, centers, inverse, room)
    block = s.rows.shape[0]
    for i0 in range(0, X.shape[0], block):
        i1 = min(X.shape[0], i0 + block)
        search(X, centers, s, inverse, i0, i1)
        relabel(labels, i0, s.index, i1 - i0)


@jit_inner
def prepare(X, centers, inverse, room):
    """All that a search needs: the centers packed into panels, and room for a block of rows."""
    k, d = centers.shape
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    block = max(1, min(8, BLOCK_BYTES // (tile_rows * height * X.itemsize))) * tile_rows
    origin = aligned(height, X)
    panels = cleared(room, 0, panel_size(k, d))
    start = np.zeros((k + PANEL - 1) // PANEL * PANEL, X.dtype)
    for j in range(k):
        pack(centers, j, origin, inverse, panels, j // PANEL * d * PANEL + j % PANEL)
    for j in range(k, start.shape[0]):
        start[j] = np.inf
    return Search(
        origin, panels, start, np.zeros(block, np.int64), aligned(block * height, X), aligned(block, X),
        aligned(block, X), aligned(block, X), np.empty(block, np.int32),
        np.zeros((1, d)), np.zeros((k, d)), np.empty(k),
    )  # fmt: skip


@jit_inner
def search(X, centers, s, inverse, i0, i1):
    """Labels of the rows from `i0` to `i1` in `s.index`."""
    d, count = X.shape[1], i1 - i0
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    filled = (count + tile_rows - 1) // tile_rows * tile_rows
    for p in range(filled):
        s.rows[p] = min(i0 + p, i1 - 1)
        s.best[p] = np.inf
        s.second[p] = np.inf
    for p in range(0, filled, tile_rows):
        load_tile(X, s.rows, s.origin, X.dtype.type(inverse), s.tile, s.norm, p, s.rows.shape[0], d)
    for first in range(0, centers.shape[0], PANEL):
        for p in range(0, filled, tile_rows):
            score_observed(s.tile, p * height, s.panels, first * d, s.start, first, s.best, s.second, s.index, p, d)
    settle(X, centers, s, inverse, i0, count)


@jit_inner
def settle(X, centers, s, inverse, i0, count):
    """Decides by the definition where two squares are too close to call.

    A square is off by at most (d + 4) u of itself, and so is that of the definition; unless it has lost digits to
    underflow, as those below `least` may have.
    """
    rounding = 4.04 * (X.shape[1] + 4) * 2.0 ** (-24 if X.itemsize == 4 else -53)
    least = 2.0 ** (-90 if X.itemsize == 4 else -900)
    if doubtful(s.best, s.second, X.dtype.type(rounding), X.dtype.type(least), count) == 0:
        return
    for p in range(count):
        if not (s.second[p] - s.best[p] > X.dtype.type(rounding) * s.best[p] + X.dtype.type(least)):
            without_holes(X, i0 + p, centers, s.row, s.others)
            s.index[p], _ = exact.two_nearest(s.row, 0, s.others, inverse, s.squares)


@jit_reassociating
def doubtful(best, second, rounding, least, count):
    """How many rows have two squares too close to call."""
    total = 0
    for p in range(count):
        total += not (second[p] - best[p] > rounding * best[p] + least)
    return total


@jit_inner
def without_holes(
    X,  # in  (n, d)
    i,  # in  the row
    centers,  # in  (k, d)
    row,  # out (1, d) the row with zeros in its holes
    others,  # out (k, d) the centers with zeros in the same columns
):
    for t in range(X.shape[1]):
        row[0, t] = 0.0 if np.isnan(X[i, t]) else X[i, t]
    for j in range(centers.shape[0]):
        for t in range(X.shape[1]):
            others[j, t] = 0.0 if np.isnan(X[i, t]) else centers[j, t]


@jit_inner
def add_rows(X, w, i0, i1, labels, rounded, inverse, weight, part, part_seen):
    d, height, wide = X.shape[1], rounded.shape[1], part.shape[1]
    stride = 0 if w.shape[0] == 1 else 1
    factor = X.dtype.type(inverse)
    for i in range(i0, i1):
        j, wi = labels[i], w[i * stride]
        weight[j] += wi
        add_observed(
            X, i * d, rounded, j * height, factor, X.dtype.type(wi), part, j * wide, part_seen, j * height, d
        )  # fmt: skip


@jit_inner
def flush_seen(part, seen):
    """Moves the partial sums to float64 and clears them."""
    for j in range(seen.shape[0]):
        for t in range(seen.shape[1]):
            seen[j, t] += part[j, t]
        for t in range(part.shape[1]):
            part[j, t] = 0


@jit
def take_own_squares(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    labels,  # in  (n,)
    inverse,  # in  1 / unit
    out,  # out (n,)
):
    """Squared distance of every row to the center of its cluster; holes are where the center is."""
    row = np.empty((1, X.shape[1]))
    for i in range(X.shape[0]):
        for t in range(X.shape[1]):
            row[0, t] = centers[labels[i], t] if np.isnan(X[i, t]) else X[i, t]
        out[i] = (exact.distance(row, 0, centers, labels[i], inverse) / inverse) ** 2


@jit
def all_distances(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    inverse,  # in  1 / unit
    out,  # out (n, k)
):
    """Distance of every row to every center over the columns observed."""
    row, others = np.empty((1, X.shape[1])), np.empty(centers.shape)
    for i in range(X.shape[0]):
        without_holes(X, i, centers, row, others)
        for j in range(centers.shape[0]):
            out[i, j] = exact.distance(row, 0, others, j, inverse) / inverse


@jit
def fill(
    X,  # in  (n, d)
    values,  # in  (d,)
    out,  # out (n, d)
):
    for i in range(X.shape[0]):
        for t in range(X.shape[1]):
            out[i, t] = values[t] if np.isnan(X[i, t]) else X[i, t]
