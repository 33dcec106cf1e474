"""Triton kernels for many small K-means problems at once: a program has some rows of one problem.

Problem b has the rows of table `tables[b]`, and the first `ks[b]` of its K centers are used. Sums are integers in the
unit of each table, as in `moved_sums`. So a problem has the same bits alone and beside others.
"""

from __future__ import annotations

import triton
import triton.language as tl

from coterie.kernels.cuda.digit_sums import add_rows, no_rows, store_sums
from coterie.kernels.cuda.prepare_rows import as_integer
from coterie.kernels.cuda.rescore import append

INFINITE = tl.constexpr(float("inf"))
LARGEST = tl.constexpr(2147483647)
DONE = tl.constexpr(0)
ACTIVE = tl.constexpr(1)
CONVERGED = tl.constexpr(2)
ALONE = tl.constexpr(3)  # an empty cluster, or costs that are lost in rounding: needs a fit of its own


@triton.jit
def prepare_tables(
    X,  # in   (tables, n, D) float32
    pivots,  # in   (tables, D) float64
    factors,  # in   (tables,) float64, of squares
    squares,  # out  (tables, n) int64, factor * |x - pivot|²
    n,
    D: tl.constexpr,
    BD: tl.constexpr,
    BN: tl.constexpr,
):
    t = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, BD)
    mask = (row < n)[:, None] & (d < D)[None, :]
    x = tl.load(X + (t * n + row)[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float64)
    x = tl.where(mask, x - tl.load(pivots + t * D + d, mask=d < D, other=0.0)[None, :], 0.0)
    tl.store(squares + t * n + row, as_integer(tl.sum(x * x, axis=1) * tl.load(factors + t)), mask=row < n)


@triton.jit
def _nearest(x, centers, k, D: tl.constexpr, BD: tl.constexpr, BN: tl.constexpr, UNROLL: tl.constexpr):
    """Label, and smallest and second smallest squared distance of rows (BN, BD), in float32 from differences."""
    d = tl.arange(0, BD)
    best = tl.full([BN], INFINITE, tl.float32)
    second = tl.full([BN], INFINITE, tl.float32)
    label = tl.zeros([BN], tl.int32)
    for j in tl.range(0, k, loop_unroll_factor=UNROLL):
        e = x - tl.load(centers + j * D + d, mask=d < D, other=0.0)[None, :]
        square = tl.sum(e * e, axis=1)
        second = tl.minimum(second, tl.maximum(best, square))
        label = tl.where(square < best, j, label)
        best = tl.minimum(best, square)
    return label, best, second


@triton.jit
def _problem(b, tables, ks):
    """Number of the table of a problem, and of its clusters."""
    return tl.load(tables + b).to(tl.int64), tl.load(ks + b)


@triton.jit
def assign(
    X,  # in   (tables, n, D) float32
    tables,  # in   (problems,)
    centers,  # in   (problems, K, D) float32
    ks,  # in   (problems,)
    states,  # in   (problems,)
    labels,  # i/o  (problems, n)
    moves,  # out  (problems, n) rows of each program whose label has changed, with their old labels
    n_moves,  # out  (problems, programs) their numbers
    unsure,  # out  numbers of rows of problems, b n + i, whose two nearest centers are too close for float32
    n_unsure,  # i/o  (1,)
    n,
    K,
    n_blocks,  # of a program
    D: tl.constexpr,
    BD: tl.constexpr,  # padded columns
    BN: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Assign rows to their nearest centers, and list those whose label has changed."""
    b = tl.program_id(1).to(tl.int64)
    if tl.load(states + b) == ACTIVE:
        t, k = _problem(b, tables, ks)
        d = tl.arange(0, BD)
        first = tl.program_id(0) * n_blocks * BN
        moves += b * n + first
        n_moved = 0
        for block in tl.range(n_blocks, num_stages=1):
            row = first + block * BN + tl.arange(0, BN)
            inside = row < n
            mask = inside[:, None] & (d < D)[None, :]
            x = tl.load(X + (t * n + row)[:, None] * D + d[None, :], mask=mask, other=0.0)
            old = tl.load(labels + b * n + row, mask=inside, other=0)
            label, best, second = _nearest(x, centers + b * K * D, k, D, BD, BN, UNROLL)
            rounding: tl.constexpr = (D + 8) * 2.0**-23
            is_sure = second * (1.0 - rounding) > best * (1.0 + rounding)
            flags = (inside & is_sure & (label != old)).to(tl.int32)
            total = tl.sum(flags, axis=0)
            if total > 0:
                tl.store(labels + b * n + row, label, mask=flags > 0)
                place = n_moved + tl.cumsum(flags, axis=0) - flags
                tl.store(moves + place, row * 512 + old + 1, mask=flags > 0)
                n_moved += total
            append(unsure, n_unsure, (b * n + row).to(tl.int32), inside & ~is_sure)
        tl.store(n_moves + b * tl.num_programs(0) + tl.program_id(0), n_moved)


@triton.jit
def add_moves(
    X,  # in   (tables, n, D) float32
    tables,  # in   (problems,)
    weights,  # in   (problems, n) float32 of whole numbers up to 16, if HAS_WEIGHTS
    squares,  # in   (tables, n) int64
    pivots,  # in   (tables, D) float64
    scales,  # in   (tables,) float64
    ks,  # in   (problems,)
    states,  # in   (problems,)
    labels,  # in   (problems, n)
    moves,  # in   (problems, n)
    n_moves,  # in   (problems, programs)
    sums,  # i/o  (problems, K, D) int64 of x - pivot
    square_sums,  # i/o  (problems, K) int64
    sizes,  # i/o  (problems, K) int32
    moved,  # i/o  (problems,)
    n,
    K,
    rows,  # of a program
    D: tl.constexpr,
    BD: tl.constexpr,
    BS: tl.constexpr,  # padded clusters
    BN: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
):
    """Add the rows that `assign` has listed to the sums of their clusters, and subtract them from the old ones."""
    b = tl.program_id(1).to(tl.int64)
    if tl.load(states + b) == ACTIVE:
        n_moved = tl.load(n_moves + b * tl.num_programs(0) + tl.program_id(0))
        if n_moved > 0:
            t, k = _problem(b, tables, ks)
            moves += b * n + tl.program_id(0) * rows
            d = tl.arange(0, BD)
            pivot = tl.load(pivots + t * D + d, mask=d < D, other=0.0)
            scale = tl.load(scales + t)
            j = tl.arange(0, BS)
            a0, a1, a2, a3, a4, side = no_rows(BS, BD)
            for start in tl.range(0, n_moved, BN, num_stages=1):
                index = start + tl.arange(0, BN)
                inside = index < n_moved
                entry = tl.load(moves + index, mask=inside, other=0)
                row = entry // 512
                new = tl.where(inside, tl.load(labels + b * n + row, mask=inside, other=0), -1)
                old = tl.where(inside, entry % 512 - 1, -1)
                share = (j[:, None] == new[None, :]).to(tl.float32) - (j[:, None] == old[None, :]).to(tl.float32)
                if HAS_WEIGHTS:
                    share *= tl.load(weights + b * n + row, mask=inside, other=0.0)[None, :]
                mask = inside[:, None] & (d < D)[None, :]
                x = tl.load(X + (t * n + row)[:, None] * D + d[None, :], mask=mask, other=0.0)
                q = as_integer(tl.where(mask, x.to(tl.float64) - pivot[None, :], 0.0) * scale)
                square = tl.load(squares + t * n + row, mask=inside, other=0)
                a0, a1, a2, a3, a4, side = add_rows(share.to(tl.float16), q, square, a0, a1, a2, a3, a4, side, BN)
            store_sums(
                a0, a1, a2, a3, a4, side, sums + b * K * D, square_sums + b * K, sizes + b * K, k, D, BS, BD
            )  # fmt: skip
            tl.atomic_add(moved + b, n_moved, sem="relaxed")


@triton.jit
def assign_unsure(
    X,  # in   arguments of `assign` and `add_moves`
    tables,
    weights,
    squares,
    pivots,
    scales,
    centers,
    ks,
    labels,  # i/o
    unsure,
    n_unsure,
    sums,  # i/o
    square_sums,  # i/o
    sizes,  # i/o
    moved,  # i/o
    n,
    K,
    D: tl.constexpr,
    BD: tl.constexpr,
    BS: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
):
    """Labels by definition, as in `rescore.break_ties`, for the rows that `assign` could not decide."""
    total = tl.load(n_unsure)
    j = tl.arange(0, BS)
    d = tl.arange(0, BD)
    for index in range(tl.program_id(0), total, tl.num_programs(0)):
        entry = tl.load(unsure + index)
        b = (entry // n).to(tl.int64)
        t, k = _problem(b, tables, ks)
        row = t * n + entry % n
        square = tl.zeros([BS], tl.float64)
        for column in range(D):
            c = tl.load(centers + (b * K + j) * D + column, mask=j < k, other=0.0).to(tl.float64)
            difference = tl.load(X + row * D + column).to(tl.float64) - c
            square += difference * difference
        square = tl.where(j < k, square, INFINITE)
        label = tl.min(tl.where(square == tl.min(square, axis=0), j, LARGEST), axis=0)
        old = tl.load(labels + entry)
        tl.store(labels + entry, label)
        if label != old:
            weight = tl.full([], 1, tl.int32)
            if HAS_WEIGHTS:
                weight = tl.load(weights + entry).to(tl.int32)
            pivot = tl.load(pivots + t * D + d, mask=d < D, other=0.0)
            x = tl.load(X + row * D + d, mask=d < D, other=0.0).to(tl.float64) - pivot
            q = as_integer(tl.where(d < D, x, 0.0) * tl.load(scales + t)) * weight
            square_integer = tl.load(squares + row) * weight
            tl.atomic_add(sums + (b * K + label) * D + d, q, mask=d < D, sem="relaxed")
            tl.atomic_add(square_sums + b * K + label, square_integer, sem="relaxed")
            tl.atomic_add(sizes + b * K + label, weight, sem="relaxed")
            tl.atomic_add(moved + b, 1, sem="relaxed")
            if old >= 0:
                tl.atomic_add(sums + (b * K + old) * D + d, -q, mask=d < D, sem="relaxed")
                tl.atomic_add(square_sums + b * K + old, -square_integer, sem="relaxed")
                tl.atomic_add(sizes + b * K + old, -weight, sem="relaxed")


@triton.jit
def update(
    sums,  # in   (problems, K, D) int64
    square_sums,  # in   (problems, K) int64
    sizes,  # in   (problems, K) int32
    moved,  # i/o  (problems,) becomes 0
    n_unsure,  # out  (1,) becomes 0
    steps,  # i/o  (problems,) squared movement of all centers before the pass
    states,  # i/o  (problems,)
    n_iter,  # out  (problems,)
    tables,  # in   (problems,)
    pivots,  # in   (tables, D) float64
    units,  # in   (tables,) float64, of sums
    square_units,  # in   (tables,) float64
    tolerances,  # in   (problems,) float64
    ks,  # in   (problems,)
    centers,  # i/o  (problems, K, D)
    costs,  # out  (problems, K)
    weight,  # out  (problems, K) the sizes
    iteration,
    max_iter,
    K,
    lost,
    D: tl.constexpr,
    BD: tl.constexpr,
    CAN_BE_EMPTY: tl.constexpr,
):
    """Costs of the clusters of one problem, and new centers unless it has converged. Formulas as in `moved_sums`."""
    b = tl.program_id(0).to(tl.int64)
    if b == 0:
        tl.store(n_unsure, 0)
    if tl.load(states + b) == ACTIVE:
        t, k = _problem(b, tables, ks)
        unit = tl.load(units + t)
        square_unit = tl.load(square_units + t)
        has_converged = (iteration > 0) & ((tl.load(moved + b) == 0) | (tl.load(steps + b) <= tl.load(tolerances + b)))
        is_last = has_converged | (iteration >= max_iter)
        step = tl.zeros([BD], tl.float64)
        all_squares = tl.full([], 0.0, tl.float64)
        all_costs = tl.full([], 0.0, tl.float64)
        n_empty = 0
        for j in range(k):
            place = b * K + j
            size = tl.load(sizes + place).to(tl.float64)
            square = tl.load(square_sums + place).to(tl.float64) * square_unit
            cost = square
            for start in tl.static_range(0, D, BD):
                d = start + tl.arange(0, BD)
                total = tl.load(sums + place * D + d, mask=d < D, other=0).to(tl.float64) * unit
                before = tl.load(centers + place * D + d, mask=d < D, other=0.0)
                center = before.to(tl.float64)
                center -= tl.load(pivots + t * D + d, mask=d < D, other=0.0)
                difference = total - size * center
                cost -= tl.sum(center * (total + difference), axis=0)
                after = (before.to(tl.float64) + difference / tl.where(size > 0, size, INFINITE)).to(before.dtype)
                change = tl.where(d < D, after.to(tl.float64) - before.to(tl.float64), 0.0)
                step += change * change
                if not is_last:
                    tl.store(centers + place * D + d, after, mask=d < D)
            tl.store(costs + place, cost)
            tl.store(weight + place, size)
            n_empty += (size == 0).to(tl.int32)
            all_squares += square
            all_costs += cost
        tl.store(steps + b, tl.sum(step, axis=0))
        tl.store(moved + b, 0)
        tl.store(n_iter + b, iteration)
        is_alone = ~(all_costs > lost * all_squares)
        if not CAN_BE_EMPTY:
            is_alone = is_alone | (n_empty > 0)
        state = tl.where(has_converged, CONVERGED, tl.where(is_last, DONE, ACTIVE))
        if not CAN_BE_EMPTY:
            state = tl.where(is_alone, ALONE, state)
        tl.store(states + b, state)


@triton.jit
def candidate_costs(
    X,  # in   (tables, n, D) float32
    tables,  # in   (problems,)
    weights,  # in   (problems, n) if HAS_WEIGHTS
    factors,  # in   (tables,) float64, of squares
    points,  # in   (problems, L, D) float32
    closest,  # i/o  (problems, n) float32 cost of each row at its nearest center
    potentials,  # i/o  (problems, L) int64 of all costs with each point added; not used if IS_CHOSEN
    mass,  # out  (problems, n) int64 weighted costs, if IS_CHOSEN
    n,
    L,
    D: tl.constexpr,
    BD: tl.constexpr,
    BN: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
    IS_CHOSEN: tl.constexpr,  # whether the only point becomes a center
):
    """A pass of k-means++ over the rows of each problem; sums of integers do not depend on their order."""
    b = tl.program_id(1).to(tl.int64)
    t = tl.load(tables + b).to(tl.int64)
    row = tl.program_id(0) * BN + tl.arange(0, BN)
    inside = row < n
    d = tl.arange(0, BD)
    x = tl.load(X + (t * n + row)[:, None] * D + d[None, :], mask=inside[:, None] & (d < D)[None, :], other=0.0)
    before = tl.load(closest + b * n + row, mask=inside, other=0.0)
    factor = tl.load(factors + t)
    weight = inside.to(tl.int64)
    if HAS_WEIGHTS:
        weight = tl.load(weights + b * n + row, mask=inside, other=0.0).to(tl.int64)
    for i in range(L):
        point = tl.load(points + (b * L + i) * D + d, mask=d < D, other=0.0)
        e = x - point[None, :]
        cost = tl.minimum(before, tl.sum(e * e, axis=1))
        integers = as_integer(tl.where(inside, cost, 0.0).to(tl.float64) * factor) * weight
        if IS_CHOSEN:
            tl.store(closest + b * n + row, cost, mask=inside)
            tl.store(mass + b * n + row, integers, mask=inside)
        else:
            tl.atomic_add(potentials + b * L + i, tl.sum(integers, axis=0), sem="relaxed")
