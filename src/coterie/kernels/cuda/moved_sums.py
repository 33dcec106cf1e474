"""Triton kernels for the sums of clusters, in 64-bit integers.

Rows relative to a pivot are multiplied by a power of two and rounded to integers. Sums of integers are exact, so they
do not depend on the order of atomic additions, and rows that change cluster can be subtracted and added without drift.
"""

from __future__ import annotations

import triton
import triton.language as tl

from coterie.kernels.cuda.prepare_rows import as_integer
from coterie.kernels.cuda.rescore import append


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
def list_moved(
    labels,  # in   (n,)
    previous,  # in   (n,)
    rows,  # out  (n,) rows whose label has changed, in any order
    count,  # i/o  (1,)
    n,
    BN: tl.constexpr,
):
    row = tl.program_id(0) * BN + tl.arange(0, BN)
    new = tl.load(labels + row, mask=row < n, other=0)
    old = tl.load(previous + row, mask=row < n, other=0)
    append(rows, count, row, (new != old) & (row < n))


@triton.jit
def add_moved(
    X,  # in   (n, D)
    pivot,  # in   (D,) float64
    rows,  # in   from `list_moved`
    count,  # in   (1,)
    labels,  # in   (n,)
    previous,  # i/o  (n,) becomes equal to `labels`
    row_squares,  # in   (n,) int64
    sums,  # i/o  (COPIES, k, D) int64
    squares,  # i/o  (COPIES, k) int64
    sizes,  # i/o  (COPIES, k) int32
    scale,
    k,
    D: tl.constexpr,
    BD: tl.constexpr,
    BN: tl.constexpr,
    COPIES: tl.constexpr,
):
    """For few clusters: each row is added to one of several copies of the sums, so that additions do not collide."""
    total = tl.load(count)
    d = tl.arange(0, BD)
    center = tl.load(pivot + d, mask=d < D, other=0.0)
    first = tl.program_id(0) % COPIES * k
    for start in range(tl.program_id(0) * BN, total, tl.num_programs(0) * BN):
        index = start + tl.arange(0, BN)
        inside = index < total
        row = tl.load(rows + index, mask=inside, other=0).to(tl.int64)
        new = first + tl.load(labels + row, mask=inside, other=0)
        old_label = tl.load(previous + row, mask=inside, other=-1)
        has_left = inside & (old_label >= 0)
        old = first + old_label
        mask = inside[:, None] & (d < D)[None, :]
        x = tl.load(X + row[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float64) - center[None, :]
        x = tl.where(mask, x, 0.0)
        value = as_integer(x * scale)
        square = tl.load(row_squares + row, mask=inside, other=0)
        tl.atomic_add(sums + new[:, None] * D + d[None, :], value, mask=mask, sem="relaxed")
        tl.atomic_add(squares + new, square, mask=inside, sem="relaxed")
        tl.atomic_add(sizes + new, 1, mask=inside, sem="relaxed")
        tl.atomic_add(sums + old[:, None] * D + d[None, :], -value, mask=mask & has_left[:, None], sem="relaxed")
        tl.atomic_add(squares + old, -square, mask=has_left, sem="relaxed")
        tl.atomic_add(sizes + old, -1, mask=has_left, sem="relaxed")
        tl.store(previous + row, new - first, mask=inside)


@triton.jit
def cluster_statistics(
    sums,  # in   (k, D) int64
    squares,  # in   (k,) int64
    sizes,  # in   (k,) int32
    pivot,  # in   (D,) float64
    centers,  # in   (k, D)
    sum_dx,  # out  (k, D) of x - c
    host,  # out  (2 k,) sizes, then sums of |x - c|²
    unit,
    square_unit,
    k,
    D: tl.constexpr,
    BD: tl.constexpr,
):
    """Sums about the pivot, converted to sums about the centers; one program for each cluster."""
    j = tl.program_id(0).to(tl.int64)
    size = tl.load(sizes + j).to(tl.float64)
    cost = tl.load(squares + j).to(tl.float64) * square_unit
    for start in tl.static_range(0, D, BD):
        d = start + tl.arange(0, BD)
        total = tl.load(sums + j * D + d, mask=d < D, other=0).to(tl.float64) * unit
        center = tl.load(centers + j * D + d, mask=d < D, other=0.0).to(tl.float64)
        center -= tl.load(pivot + d, mask=d < D, other=0.0)
        difference = total - size * center
        tl.store(sum_dx + j * D + d, difference, mask=d < D)
        cost -= tl.sum(center * (total + difference), axis=0)
    tl.store(host + j, size)
    tl.store(host + k + j, cost)


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
