"""Triton kernels that score rows against all centers in half precision, and certify the labels that are exact.

The score of a row x and a center c is |c|²/2 - x·c, from float16 copies of shifted and scaled rows and centers. The
number of the tile of a center replaces the lowest bits of its score, so that one minimum finds both.

The best three scores come from two partitions of the scores: minima by column over all tiles, and minima by group,
which is a tile and one of eight classes of columns. Two centers differ in their column or in their tile. So the second
best center has the second smallest minimum of one of the partitions. Of all other centers, only two can be missing
among the minima: the one in the column of the best and the tile of the second best, and the one in the tile of the best
and the column of the second best.

A label is certain if the second best score exceeds the best one by more than the slack, twice the bound of the rounding
of a score. Otherwise it gets the sign bit. `seconds` (n,) is then the second best center, with the sign bit if other
centers than these four can be nearest, and `limits` (n,) the largest score that the nearest center can have.
"""

from __future__ import annotations

import triton
import triton.language as tl

FAR = tl.constexpr(3.0e38)
UNSURE = tl.constexpr(-2147483648)
LARGEST = tl.constexpr(2147483647)


@triton.jit
def three_smallest(a1, a2, a3, b1, b2, b3):
    first = tl.minimum(a1, b1)
    second = tl.minimum(tl.maximum(a1, b1), tl.minimum(a2, b2))
    third = tl.minimum(tl.minimum(a3, b3), tl.minimum(tl.maximum(a1, b2), tl.maximum(a2, b1)))
    return first, second, third


@triton.jit
def _two_smallest(a1, a2, b1, b2):
    return tl.minimum(a1, b1), tl.minimum(tl.maximum(a1, b1), tl.minimum(a2, b2))


@triton.jit
def _slack(norm, error, bounds):
    """Twice the bound of the rounding of a score of these rows: |x - half x| |c| + |x| |c - half c| + arithmetic."""
    longest = tl.load(bounds)
    worst = tl.load(bounds + 1)
    relative = tl.load(bounds + 2)
    return 2.0 * (error * longest + norm * worst + relative * (norm * longest + 0.5 * longest * longest))


@triton.jit
def as_bits(score):
    return score.to(tl.int32, bitcast=True)


@triton.jit
def as_float(bits):
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def store_candidates(
    best, second_column, third_column, best_column, other_column, second_group, third_group, row_norms, bounds, labels,
    seconds, limits, row, inside, BK: tl.constexpr, BITS: tl.constexpr, COMPARED: tl.constexpr,
):  # fmt: skip
    """Labels from the best three minima by column, the columns of the best two, and the next two minima by group.

    `COMPARED` are the bits that minima by column and by group have in common.
    """
    mask: tl.constexpr = (1 << BITS) - 1
    in_same_column = as_float(as_bits(second_group) & COMPARED) < as_float(as_bits(second_column) & COMPARED)
    other_score = tl.where(in_same_column, second_group, second_column)
    other_column = tl.where(in_same_column, best_column, other_column)
    tile = as_bits(best) & mask
    other_tile = as_bits(other_score) & mask
    in_same_group = (tile == other_tile) & (best_column % 8 == other_column % 8)
    third_score = tl.minimum(
        tl.where(in_same_column, second_column, third_column), tl.where(in_same_group, second_group, third_group)
    )
    label = tile * BK + best_column
    other = other_tile * BK + other_column
    norm = tl.load(row_norms + row * 2, mask=inside, other=0.0)
    error = tl.load(row_norms + row * 2 + 1, mask=inside, other=0.0)
    limit = best + _slack(norm, error, bounds)
    is_unsure = ~(other_score > limit)
    tl.store(labels + row, tl.where(is_unsure, label | UNSURE, label), mask=inside)
    tl.store(seconds + row, tl.where(third_score > limit, other, other | UNSURE), mask=inside & is_unsure)
    tl.store(limits + row, limit, mask=inside & is_unsure)


@triton.jit
def _store_from_partitions(
    by_column, first, second, third, row_norms, bounds, labels, seconds, limits, row, inside, BK: tl.constexpr,
    BITS: tl.constexpr,
):  # fmt: skip
    """Combine minima by column (n, BK) and the three smallest minima by group, for each class of columns (n, 8)."""
    column = tl.arange(0, BK)
    far = tl.full(by_column.shape, FAR, tl.float32)
    best, second_column, third_column = tl.reduce((by_column, far, far), 1, three_smallest)
    _, second_group, third_group = tl.reduce((first, second, third), 1, three_smallest)
    best_column = tl.min(tl.where(by_column == best[:, None], column[None, :], BK), axis=1)
    is_other = (by_column == second_column[:, None]) & (column[None, :] != best_column[:, None])
    other_column = tl.min(tl.where(is_other, column[None, :], BK - 1), axis=1)
    store_candidates(
        best, second_column, third_column, best_column, other_column, second_group, third_group, row_norms, bounds,
        labels, seconds, limits, row, inside, BK, BITS, -1,
    )  # fmt: skip


@triton.jit
def _add_tile(product, half_norm, tile, by_column, first, second, third, BN: tl.constexpr, BK: tl.constexpr,
              BITS: tl.constexpr):  # fmt: skip
    """Update the minima with the scores of one tile of centers."""
    score = as_float((as_bits(half_norm[None, :] - product) & -(1 << BITS)) | tile)
    by_column = tl.minimum(by_column, score)
    lowest = tl.min(tl.reshape(score, [BN, BK // 8, 8]), axis=1)
    third = tl.minimum(third, tl.maximum(second, lowest))
    second = tl.minimum(second, tl.maximum(first, lowest))
    first = tl.minimum(first, lowest)
    return by_column, first, second, third


@triton.jit
def scan_few(
    rows,  # in   (n, DS) float16
    centers,  # in   (BK, DS) float16, of which unused ones have huge half norms
    half_norms,  # in   (BK,)
    row_norms,  # in   (n, 2) norm of each row, and of its rounding
    bounds,  # in   (4,) longest center, largest rounding of a center, relative rounding of scores
    labels,  # out  (n,)
    limits,  # out  (n,)
    n,
    n_blocks,
    DS: tl.constexpr,
    BK: tl.constexpr,
    BN: tl.constexpr,
    STAGES: tl.constexpr,
):
    """All centers are one tile, which is loaded once. The number of a center replaces the lowest bits of its score.

    Half the squared norm of the row makes scores positive except for rounding, so that they sort like integers, whose
    minima are faster. Scoring all centers again is cheap, so the second best center is not stored.
    """
    d = tl.arange(0, DS)
    k = tl.arange(0, BK)
    c = -tl.trans(tl.load(centers + k[:, None] * DS + d[None, :]))
    half_norm = tl.load(half_norms + k)
    for block in tl.range(tl.program_id(0), n_blocks, tl.num_programs(0), num_stages=STAGES):
        row = block.to(tl.int64) * BN + tl.arange(0, BN)
        inside = row < n
        x = tl.load(rows + row[:, None] * DS + d[None, :], mask=inside[:, None], other=0.0)
        norm = tl.load(row_norms + row * 2, mask=inside, other=0.0)
        error = tl.load(row_norms + row * 2 + 1, mask=inside, other=0.0)
        half = 0.5 * norm * norm
        score = tl.dot(x, c, half_norm[None, :] + half[:, None])
        folded = tl.reshape((as_bits(score) & -BK) | k[None, :], [BN, 2, BK // 16, 8])
        best, second = tl.reduce((tl.min(folded, axis=1), tl.max(folded, axis=1)), 1, _two_smallest)
        best, second = tl.reduce((best, second), 1, _two_smallest)
        limit = as_float(best) + _slack(norm, error, bounds) + 2.0 * tl.load(bounds + 2) * half
        is_unsure = ~(as_float(second) > limit)
        label = best & (BK - 1)
        tl.store(labels + row, tl.where(is_unsure, label | UNSURE, label), mask=inside)
        tl.store(limits + row, limit - half + tl.load(bounds + 2) * norm * norm, mask=inside & is_unsure)


@triton.jit
def scan_tiles(
    rows,  # in   descriptor of (n, DS) float16
    centers,  # in   descriptor of (k, DS) float16
    half_norms,  # in   (k,)
    row_norms,  # in   (n, 2)
    bounds,  # in   (4,)
    labels,  # out  (n,)
    seconds,  # out  (n,)
    limits,  # out  (n,)
    n,
    n_tiles,  # of centers
    BN: tl.constexpr,
    BK: tl.constexpr,
    BITS: tl.constexpr,  # of the number of a tile
    STAGES: tl.constexpr,
):
    """One block of rows for each program, with all tiles of centers."""
    start = tl.program_id(0) * BN
    row = start + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x = rows.load([start, 0])
    by_column = tl.full([BN, BK], FAR, tl.float32)
    first = tl.full([BN, 8], FAR, tl.float32)
    second = tl.full([BN, 8], FAR, tl.float32)
    third = tl.full([BN, 8], FAR, tl.float32)
    for tile in tl.range(0, n_tiles, num_stages=STAGES):
        c = centers.load([tile * BK, 0])
        half_norm = tl.load(half_norms + tile * BK + k)
        by_column, first, second, third = _add_tile(
            tl.dot(x, tl.trans(c)), half_norm, tile, by_column, first, second, third, BN, BK, BITS
        )
    _store_from_partitions(
        by_column, first, second, third, row_norms, bounds, labels, seconds, limits, row, row < n, BK, BITS
    )


@triton.jit
def scan_wide(
    rows,  # in   descriptor of (n, DS) float16
    centers,  # in   descriptor of (k, DS) float16
    half_norms,  # in   (k,)
    row_norms,  # in   (n, 2)
    bounds,  # in   (4,)
    labels,  # out  (n,)
    seconds,  # out  (n,)
    limits,  # out  (n,)
    n,
    n_tiles,  # of centers
    DS: tl.constexpr,
    BD: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    BITS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Rows too long for shared memory: products are summed over blocks of columns, as in a matrix product."""
    blocks: tl.constexpr = DS // BD
    start = tl.program_id(0) * BN
    row = start + tl.arange(0, BN)
    k = tl.arange(0, BK)
    by_column = tl.full([BN, BK], FAR, tl.float32)
    first = tl.full([BN, 8], FAR, tl.float32)
    second = tl.full([BN, 8], FAR, tl.float32)
    third = tl.full([BN, 8], FAR, tl.float32)
    product = tl.zeros([BN, BK], tl.float32)
    for step in tl.range(0, n_tiles * blocks, num_stages=STAGES):
        tile = step // blocks
        block = step % blocks
        x = rows.load([start, block * BD])
        c = centers.load([tile * BK, block * BD])
        product = tl.dot(x, tl.trans(c), product)
        if block == blocks - 1:
            half_norm = tl.load(half_norms + tile * BK + k)
            by_column, first, second, third = _add_tile(
                product, half_norm, tile, by_column, first, second, third, BN, BK, BITS
            )
            product = tl.zeros([BN, BK], tl.float32)
    _store_from_partitions(
        by_column, first, second, third, row_norms, bounds, labels, seconds, limits, row, row < n, BK, BITS
    )
