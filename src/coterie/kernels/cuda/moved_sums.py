"""Triton kernels for the sums of clusters, in 64-bit integers.

Rows relative to a pivot are multiplied by a power of two and rounded to integers. Sums of integers are exact, so they
do not depend on the order of atomic additions, and rows that change cluster can be subtracted and added without drift.
"""

from __future__ import annotations

import triton
import triton.language as tl

from coterie.kernels.cuda.digit_sums import MAX_ROWS, add_rows, no_rows, store_sums
from coterie.kernels.cuda.prepare_rows import as_integer


@triton.jit
def count_moved(
    labels,  # in   (n,)
    previous,  # in   (n,) labels of the last pass, or -1
    arrived,  # i/o  (k,) rows that are new in a cluster
    left,  # i/o  (k,) rows that left a cluster
    n,
    BN: tl.constexpr,
):
    row = tl.program_id(0) * BN + tl.arange(0, BN)
    new = tl.load(labels + row, mask=row < n, other=0)
    old = tl.load(previous + row, mask=row < n, other=0)
    has_moved = (new != old) & (row < n)
    tl.atomic_add(arrived + new, 1, mask=has_moved, sem="relaxed")
    tl.atomic_add(left + old, 1, mask=has_moved & (old >= 0), sem="relaxed")


@triton.jit
def plan_moved(
    moves,  # in   (2, k) numbers of rows that arrived, and that left
    sizes,  # i/o  (k,)
    entries,  # out  (k,) of each cluster in the list of moved rows
    ends,  # out  (k,) of each cluster in this list
    position,  # out  (k,) its start
    moved,  # out  (1,) number of labels that have changed
    k,
    BK: tl.constexpr,
):
    """One program."""
    last = tl.full([], 0, tl.int32)
    total = tl.full([], 0, tl.int32)
    for start in range(0, k, BK):
        j = start + tl.arange(0, BK)
        arrived = tl.load(moves + j, mask=j < k, other=0)
        left = tl.load(moves + k + j, mask=j < k, other=0)
        count = arrived + left
        end = last + tl.cumsum(count, axis=0)
        tl.store(sizes + j, tl.load(sizes + j, mask=j < k, other=0) + arrived - left, mask=j < k)
        tl.store(entries + j, count, mask=j < k)
        tl.store(ends + j, end, mask=j < k)
        tl.store(position + j, end - count, mask=j < k)
        last += tl.sum(count, axis=0)
        total += tl.sum(arrived, axis=0)
    tl.store(moved, total)


@triton.jit
def sort_moved(
    labels,  # in   (n,)
    previous,  # i/o  (n,) becomes equal to `labels`
    position,  # i/o  (k,) next free position of each cluster
    rows,  # out  (2 n,) rows by cluster: i for a row that arrived, -1 - i for one that left
    n,
    BN: tl.constexpr,
):
    """Counting sort; the order within a cluster is arbitrary."""
    row = tl.program_id(0) * BN + tl.arange(0, BN)
    new = tl.load(labels + row, mask=row < n, other=0)
    old = tl.load(previous + row, mask=row < n, other=0)
    has_moved = (new != old) & (row < n)
    has_left = has_moved & (old >= 0)
    place = tl.atomic_add(position + new, 1, mask=has_moved, sem="relaxed")
    tl.store(rows + place, row, mask=has_moved)
    place = tl.atomic_add(position + old, 1, mask=has_left, sem="relaxed")
    tl.store(rows + place, -1 - row, mask=has_left)
    tl.store(previous + row, new, mask=has_moved)


@triton.jit
def sum_moved(
    X,  # in   (n, D)
    pivot,  # in   (D,) float64
    rows,  # in   from `sort_moved`
    ends,  # in   (k,) end of each cluster in `rows`
    entries,  # in   (k,) number of its entries
    row_squares,  # in   (n,) int64 of |x - pivot|²
    sums,  # i/o  (k, D) int64 of x - pivot
    squares,  # i/o  (k,) int64 of |x - pivot|²
    scale,
    D: tl.constexpr,
    BD: tl.constexpr,
    BN: tl.constexpr,
    SHARES: tl.constexpr,
):
    """A program adds a share of the entries of one cluster in registers; one atomic addition per column follows."""
    cluster = tl.program_id(0)
    d = tl.program_id(2) * BD + tl.arange(0, BD)
    end = tl.load(ends + cluster)
    start = end - tl.load(entries + cluster) + tl.program_id(1) * BN
    if start < end:
        center = tl.load(pivot + d, mask=d < D, other=0.0)
        sum_x = tl.zeros([BN, BD], tl.int64)
        sum_squares = tl.zeros([BN], tl.int64)
        for first in range(start, end, BN * SHARES):
            index = first + tl.arange(0, BN)
            inside = index < end
            entry = tl.load(rows + index, mask=inside, other=0)
            has_left = entry < 0
            row = tl.where(has_left, -1 - entry, entry).to(tl.int64)
            mask = inside[:, None] & (d < D)[None, :]
            x = tl.load(X + row[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float64) - center[None, :]
            x = tl.where(mask, x, 0.0)
            sign = tl.where(has_left, -1.0, 1.0).to(tl.float64)[:, None]
            sum_x += as_integer(sign * x * scale)
            square = tl.load(row_squares + row, mask=inside, other=0)
            sum_squares += tl.where(has_left, -square, square)
        tl.atomic_add(sums + cluster.to(tl.int64) * D + d, tl.sum(sum_x, axis=0), mask=d < D, sem="relaxed")
        if tl.program_id(2) == 0:
            tl.atomic_add(squares + cluster, tl.sum(sum_squares, axis=0), sem="relaxed")


@triton.jit
def add_moved(
    X,  # in   (n, D)
    pivot,  # in   (D,) float64
    rows,  # in   rows whose label may have changed
    count,  # in   (1,) their number
    labels,  # in   (n,)
    previous,  # i/o  (n,) becomes equal to `labels`
    row_squares,  # in   (n,) int64
    sums,  # i/o  (COPIES, k, D) int64
    squares,  # i/o  (COPIES, k) int64
    sizes,  # i/o  (COPIES, k) int32
    moved,  # i/o  (1,) number of labels that have changed
    scale,
    k,
    D: tl.constexpr,
    BD: tl.constexpr,
    BK: tl.constexpr,
    BN: tl.constexpr,
    COPIES: tl.constexpr,
):
    """For few clusters: a program adds many rows in registers, then to one of several copies of the sums."""
    total = tl.load(count)
    step = tl.num_programs(0) * BN
    turn = step * (MAX_ROWS // BN)
    d = tl.arange(0, BD)
    j = tl.arange(0, BK)
    center = tl.load(pivot + d, mask=d < D, other=0.0)
    copy = tl.program_id(0) % COPIES
    n_moved = tl.zeros([BN], tl.int32)
    for first in range(tl.program_id(0) * BN, total, turn):
        a0, a1, a2, a3, a4, side = no_rows(BK, BD)
        for start in range(first, tl.minimum(first + turn, total), step):
            index = start + tl.arange(0, BN)
            row = tl.load(rows + index, mask=index < total, other=0).to(tl.int64)
            new = tl.load(labels + row, mask=index < total, other=0)
            old = tl.load(previous + row, mask=index < total, other=0)
            has_moved = (index < total) & (new != old)
            new = tl.where(has_moved, new, -1)
            old = tl.where(has_moved, old, -1)
            mask = has_moved[:, None] & (d < D)[None, :]
            x = tl.load(X + row[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float64) - center[None, :]
            q = as_integer(tl.where(mask, x, 0.0) * scale)
            square = tl.load(row_squares + row, mask=has_moved, other=0)
            arrived = (j[:, None] == new[None, :]).to(tl.float32)
            share = (arrived - (j[:, None] == old[None, :]).to(tl.float32)).to(tl.float16)
            a0, a1, a2, a3, a4, side = add_rows(share, q, square, a0, a1, a2, a3, a4, side, BN)
            tl.store(previous + row, new, mask=has_moved)
            n_moved += has_moved.to(tl.int32)
        store_sums(
            a0, a1, a2, a3, a4, side, sums + copy * k * D, squares + copy * k, sizes + copy * k, k, D, BK, BD
        )  # fmt: skip
    tl.atomic_add(moved, tl.sum(n_moved, axis=0), sem="relaxed")


@triton.jit
def cluster_statistics(
    sums,  # in   (COPIES, k, D) int64
    squares,  # in   (COPIES, k) int64
    sizes,  # in   (COPIES, k) int32
    pivot,  # in   (D,) float64
    centers,  # in   (k, D)
    changed,  # in   (1,) number of labels that have changed
    out_of_range,  # in   (1,) whether centers are out of range
    sum_dx,  # out  (k, D) of x - c
    host,  # out  (3 k + 2,) sizes, sums of |x - c|², and of |x - pivot|²; then the two numbers
    unit,
    square_unit,
    k,
    D: tl.constexpr,
    BD: tl.constexpr,
    COPIES: tl.constexpr,
):
    """Sums about the pivot, converted to sums about the centers; one program for each cluster."""
    j = tl.program_id(0).to(tl.int64)
    copy = tl.arange(0, COPIES)
    size = tl.sum(tl.load(sizes + copy * k + j), axis=0).to(tl.float64)
    square = tl.sum(tl.load(squares + copy * k + j), axis=0).to(tl.float64) * square_unit
    cost = square
    for start in tl.static_range(0, D, BD):
        d = start + tl.arange(0, BD)
        total = tl.zeros([BD], tl.int64)
        for i in tl.static_range(COPIES):
            total += tl.load(sums + (i * k + j) * D + d, mask=d < D, other=0)
        scaled = total.to(tl.float64) * unit
        center = tl.load(centers + j * D + d, mask=d < D, other=0.0).to(tl.float64)
        center -= tl.load(pivot + d, mask=d < D, other=0.0)
        difference = scaled - size * center
        tl.store(sum_dx + j * D + d, difference, mask=d < D)
        cost -= tl.sum(center * (scaled + difference), axis=0)
    tl.store(host + j, size)
    tl.store(host + k + j, cost)
    tl.store(host + 2 * k + j, square)
    if j == 0:
        tl.store(host + 3 * k, tl.load(changed).to(tl.float64))
        tl.store(host + 3 * k + 1, tl.load(out_of_range).to(tl.float64))


@triton.jit
def move(
    centers,  # in   (k, D)
    sum_dx,  # in   (k, D) float64
    weight,  # in   (k,) float64; infinite for centers that do not move
    moved,  # out  (k, D)
    steps,  # out  (k,) squared movement of each center
    D: tl.constexpr,
    BD: tl.constexpr,
):
    """Add the mean differences of their rows to the centers; one program for each."""
    j = tl.program_id(0).to(tl.int64)
    size = tl.load(weight + j)
    step = tl.zeros([BD], tl.float64)
    for start in tl.static_range(0, D, BD):
        d = start + tl.arange(0, BD)
        before = tl.load(centers + j * D + d, mask=d < D, other=0.0)
        difference = tl.load(sum_dx + j * D + d, mask=d < D, other=0.0) / size
        after = (before.to(tl.float64) + difference).to(before.dtype)
        tl.store(moved + j * D + d, after, mask=d < D)
        change = after.to(tl.float64) - before.to(tl.float64)
        step += change * change
    tl.store(steps + j, tl.sum(step, axis=0))
