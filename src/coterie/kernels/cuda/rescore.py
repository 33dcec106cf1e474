"""Triton kernels for rows whose label a half-precision scan could not certify."""

from __future__ import annotations

import triton
import triton.language as tl

from coterie.kernels.cuda.scan import LARGEST

ROUNDING = tl.constexpr(2.0**-51)  # four times that of one float64 operation


@triton.jit
def list_unsure(
    labels,  # in   (n,)
    seconds,  # in   (n,) if HAS_SECONDS
    previous,  # in   (n,) labels of the last pass, if HAS_PREVIOUS
    pairs,  # out  rows with at most four candidates, in any order
    unsure,  # out  rows with more
    changed,  # out  rows whose label may differ from the previous one
    counts,  # i/o  (4,) numbers of pairs, unsure rows, ties and changed rows
    n,
    BN: tl.constexpr,
    HAS_SECONDS: tl.constexpr,
    HAS_PREVIOUS: tl.constexpr,
):
    """Rows whose label has the sign bit, and rows whose label has changed."""
    row = tl.program_id(0) * BN + tl.arange(0, BN)
    label = tl.load(labels + row, mask=row < n, other=0)
    is_unsure = (label < 0) & (row < n)
    if HAS_SECONDS:
        is_many = is_unsure & (tl.load(seconds + row, mask=is_unsure, other=0) < 0)
        append(pairs, counts, row, is_unsure & ~is_many)
        append(unsure, counts + 1, row, is_many)
    else:
        append(unsure, counts + 1, row, is_unsure)
    if HAS_PREVIOUS:
        append(changed, counts + 3, row, (row < n) & (label != tl.load(previous + row, mask=row < n, other=0)))


@triton.jit
def append(rows, count, row, selected):
    """Append the selected rows to a list, in any order."""
    flags = selected.to(tl.int32)
    total = tl.sum(flags, axis=0)
    if total > 0:
        position = tl.atomic_add(count, total, sem="relaxed") + tl.cumsum(flags, axis=0) - flags
        tl.store(rows + position, row, mask=selected)


@triton.jit
def _scores(rows, centers, half_norms, row, tile, DS: tl.constexpr, BD: tl.constexpr, BR: tl.constexpr,
            BK: tl.constexpr):  # fmt: skip
    """The scores of the scan (BR, BK), for any rows."""
    k = tile * BK + tl.arange(0, BK)
    d = tl.arange(0, BD)
    product = tl.zeros([BR, BK], tl.float32)
    if DS <= 128:
        for start in tl.static_range(0, DS, BD):
            x = tl.load(rows + row[:, None] * DS + start + d[None, :])
            product = tl.dot(x, tl.trans(tl.load(centers + k[:, None] * DS + start + d[None, :])), product)
    else:
        for start in tl.range(0, DS, BD, num_stages=3):
            x = tl.load(rows + row[:, None] * DS + start + d[None, :])
            product = tl.dot(x, tl.trans(tl.load(centers + k[:, None] * DS + start + d[None, :])), product)
    return tl.load(half_norms + k)[None, :] - product


@triton.jit
def _measure(X, centers, row, center, has_center, best, second, label, D: tl.constexpr, BD: tl.constexpr,
             BR: tl.constexpr):  # fmt: skip
    """Compare one center for every row by its float64 distance; the first of equal ones stays."""
    d = tl.arange(0, BD)
    square = tl.zeros([BR], tl.float64)
    for start in tl.static_range(0, D, BD):
        mask = has_center[:, None] & (start + d < D)[None, :]
        x = tl.load(X + row[:, None] * D + start + d[None, :], mask=mask, other=0.0).to(tl.float64)
        c = tl.load(centers + center[:, None] * D + start + d[None, :], mask=mask, other=0.0).to(tl.float64)
        square += tl.sum((x - c) * (x - c), axis=1)
    square = tl.where(has_center, square, float("inf"))
    is_better = square < best
    second = tl.where(is_better, best, tl.minimum(second, square))
    return tl.where(is_better, square, best), second, tl.where(is_better, center, label)


@triton.jit
def rescore(
    X,  # in   (n, D) the rows themselves
    rows,  # in   (n, DS) float16
    exact_centers,  # in   (k, D)
    centers,  # in   (k, DS) float16
    half_norms,  # in   (k,)
    limits,  # in   (n,)
    unsure,  # in   rows to process
    count,  # in   (1,) number of these rows
    labels,  # out  (n,)
    ties,  # out  rows whose two best float64 distances are too close
    tie_count,  # i/o  (1,)
    n_tiles,
    D: tl.constexpr,
    DS: tl.constexpr,
    BD: tl.constexpr,
    BR: tl.constexpr,
    BK: tl.constexpr,
):
    """The scores of a row are computed again, and all centers within its limit are compared in float64.

    Up to four such centers are kept in registers. If a row of a block has more, the block is processed tile by tile.
    """
    total = tl.load(count)
    k = tl.arange(0, BK)
    for start in range(tl.program_id(0) * BR, total, tl.num_programs(0) * BR):
        index = start + tl.arange(0, BR)
        inside = index < total
        row = tl.load(unsure + index, mask=inside, other=0).to(tl.int64)
        limit = tl.load(limits + row, mask=inside, other=-3.0e38)
        n_near = tl.zeros([BR], tl.int32)
        c0 = tl.zeros([BR], tl.int32)
        c1 = tl.zeros([BR], tl.int32)
        c2 = tl.zeros([BR], tl.int32)
        c3 = tl.zeros([BR], tl.int32)
        for tile in tl.range(0, n_tiles, num_stages=3 if DS <= 128 else 1):
            near = _scores(rows, centers, half_norms, row, tile, DS, BD, BR, BK) <= limit[:, None]
            here = tl.sum(near.to(tl.int32), axis=1)
            low = tile * BK + tl.min(tl.where(near, k[None, :], 1 << 20), axis=1)
            high = tile * BK + tl.max(tl.where(near, k[None, :], -1), axis=1)
            c3 = tl.where(((n_near == 3) & (here == 1)) | ((n_near == 2) & (here == 2)), high, c3)
            c2 = tl.where((n_near == 2) & (here > 0), low, tl.where((n_near == 1) & (here == 2), high, c2))
            c1 = tl.where((n_near == 1) & (here > 0), low, tl.where((n_near == 0) & (here == 2), high, c1))
            c0 = tl.where((n_near == 0) & (here > 0), low, c0)
            n_near += tl.where(here <= 2, here, 100)
        best = tl.full([BR], float("inf"), tl.float64)
        second = tl.full([BR], float("inf"), tl.float64)
        label = tl.zeros([BR], tl.int32)
        most = tl.max(tl.where(inside, n_near, 0), axis=0)
        if most <= 4:
            has_center = inside & (n_near > 0)
            best, second, label = _measure(X, exact_centers, row, c0, has_center, best, second, label, D, BD, BR)
            has_center = inside & (n_near > 1)
            best, second, label = _measure(X, exact_centers, row, c1, has_center, best, second, label, D, BD, BR)
            if most > 2:
                has_center = inside & (n_near > 2)
                best, second, label = _measure(X, exact_centers, row, c2, has_center, best, second, label, D, BD, BR)
                has_center = inside & (n_near > 3)
                best, second, label = _measure(X, exact_centers, row, c3, has_center, best, second, label, D, BD, BR)
        else:
            for tile in tl.range(0, n_tiles, num_stages=1):
                near = _scores(rows, centers, half_norms, row, tile, DS, BD, BR, BK) <= limit[:, None]
                center = tl.min(tl.where(near, k[None, :], LARGEST), axis=1)
                while tl.min(center, axis=0) < LARGEST:
                    has_center = center < LARGEST
                    best, second, label = _measure(
                        X, exact_centers, row, tile * BK + center, has_center, best, second, label, D, BD, BR
                    )
                    near = near & (k[None, :] > center[:, None])
                    center = tl.min(tl.where(near, k[None, :], LARGEST), axis=1)
        tl.store(labels + row, label, mask=inside)
        append(ties, tie_count, row.to(tl.int32), inside & (second <= best * (1.0 + (D + 4) * ROUNDING)))


@triton.jit
def settle(
    X,  # in   (n, D)
    centers,  # in   (k, D)
    pairs,  # in   rows to process
    count,  # in   (1,) number of these rows
    labels,  # i/o  (n,)
    seconds,  # in   (n,)
    ties,  # out  rows whose two best float64 distances are too close
    tie_count,  # i/o  (1,)
    k,
    D: tl.constexpr,
    BD: tl.constexpr,
    BR: tl.constexpr,
    TILE: tl.constexpr,  # of the scan
):
    """The nearest of the best two centers and of those that share the tile of one and the column of the other."""
    total = tl.load(count)
    for start in range(tl.program_id(0) * BR, total, tl.num_programs(0) * BR):
        index = start + tl.arange(0, BR)
        inside = index < total
        row = tl.load(pairs + index, mask=inside, other=0).to(tl.int64)
        a = tl.load(labels + row, mask=inside, other=0) & LARGEST
        b = tl.load(seconds + row, mask=inside, other=0) & LARGEST
        best = tl.full([BR], float("inf"), tl.float64)
        second = tl.full([BR], float("inf"), tl.float64)
        label = tl.zeros([BR], tl.int32)
        low = tl.minimum(a, b)
        high = tl.maximum(a, b)
        best, second, label = _measure(X, centers, row, low, inside & (low < k), best, second, label, D, BD, BR)
        has_two = inside & (low != high) & (high < k)
        best, second, label = _measure(X, centers, row, high, has_two, best, second, label, D, BD, BR)
        is_hidden = inside & (a // TILE != b // TILE) & (a % TILE != b % TILE) & (a % 8 == b % 8)
        if tl.max(is_hidden.to(tl.int32), axis=0) > 0:
            c = a // TILE * TILE + b % TILE
            best, second, label = _measure(X, centers, row, c, is_hidden & (c < k), best, second, label, D, BD, BR)
            c = b // TILE * TILE + a % TILE
            best, second, label = _measure(X, centers, row, c, is_hidden & (c < k), best, second, label, D, BD, BR)
        tl.store(labels + row, label, mask=inside)
        append(ties, tie_count, row.to(tl.int32), inside & (second <= best * (1.0 + (D + 4) * ROUNDING)))


@triton.jit
def break_ties(
    X,  # in   (n, D)
    columns,  # in   (D, k) the centers, column by column
    ties,  # in   rows to process
    count,  # in   (1,) number of these rows
    labels,  # out  (n,)
    k,
    D: tl.constexpr,
    BK: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Labels by definition: float64 squares are added in the order of the columns. Launched without fused additions."""
    total = tl.load(count)
    offset = tl.arange(0, BK)
    for index in range(tl.program_id(0), total, tl.num_programs(0)):
        row = tl.load(ties + index).to(tl.int64)
        best = tl.full([], float("inf"), tl.float64)
        label = tl.full([], 0, tl.int32)
        for start in range(0, k, BK):
            center = start + offset
            square = tl.zeros([BK], tl.float64)
            for first in range(0, D, UNROLL):
                for i in tl.static_range(UNROLL):  # unrolled, so that many loads are in flight
                    d = first + i
                    mask = (center < k) & (d < D)
                    c = tl.load(columns + d * k + center, mask=mask, other=0.0).to(tl.float64)
                    difference = tl.load(X + row * D + d, mask=d < D, other=0.0).to(tl.float64) - c
                    square += difference * difference
            square = tl.where(center < k, square, float("inf"))
            lowest = tl.min(square, axis=0)
            nearest = tl.min(tl.where(square == lowest, center, LARGEST), axis=0)
            label = tl.where(lowest < best, nearest, label)
            best = tl.minimum(best, lowest)
        tl.store(labels + row, label)
