"""Inner loops of K-means as vector code.

Rows are in the lanes: a *tile* is `points(itemsize)` rows, shifted and transposed to (d, points), so that scores,
minima and labels need no sums across lanes. A *panel* is `PANEL` centers, (d, PANEL).
"""

from functools import partial
from itertools import accumulate

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import register_jitable

from coterie.kernels.cpu.vectors import REGISTER, Vectors, i1, i32, i64, vector_code

# Accumulators fill the register file: 32 registers hold 3 x 8 of them (AVX-512, NEON), 16 hold 2 x 5 (AVX2).
VECTORS, PANEL = (2, 5) if REGISTER == 32 else (3, 8)
LABELS = 2 if REGISTER == 32 else 4  # clusters whose sums are in registers at the same time
FEW_COLUMNS = 8  # up to this number of columns, rows are loaded as one piece


@register_jitable
def points(itemsize):
    """Number of rows of a tile."""
    return VECTORS * REGISTER // itemsize


@register_jitable
def padded(d, itemsize):
    """`d` rounded up to whole vectors."""
    lanes = REGISTER // itemsize
    return (d + lanes - 1) // lanes * lanes


@register_jitable
def aligned(size, like):
    """Zeros of the dtype of `like`, aligned to the size of a register."""
    memory = np.zeros(size + REGISTER // like.itemsize, like.dtype)
    offset = (-memory.ctypes.data % REGISTER) // like.itemsize
    return memory[offset : offset + size]


@register_jitable
def fill_weights(w, i0, count, tile_weight):
    """Weights of `count` rows from `i0` on, in tiles; the rows after them are padding, and have weight 0."""
    stride = 0 if w.shape[0] == 1 else 1
    for p in range(count):
        tile_weight[p] = w[(i0 + p) * stride]
    for p in range(count, tile_weight.shape[0]):
        tile_weight[p] = 0


def arena(sizes, like):
    """Arrays of these sizes in one buffer, each aligned: the buffer, the start of each array, and the arrays."""
    *starts, total = accumulate((padded(size, like.itemsize) for size in sizes.values()), initial=0)
    buffer, start = aligned(total, like), dict(zip(sizes, starts, strict=True))
    return buffer, start, {name: buffer[start[name] : start[name] + size] for name, size in sizes.items()}


@vector_code
def load_tile(v, X, rows, shift, inverse, tile, norm, at, ahead, d):
    """Load the rows ``rows[at:at + points]`` as a tile: ``(x - shift) * inverse``, transposed.

    X (n, d), of which rows `ahead` are prefetched; shift (padded d,); out: tile (padded d, points) from
    ``at * padded d`` on, norm (...,) squared norms from `at` on.
    """
    b = v.b
    whole, height = v.whole_and_padded(d)
    x0, rows0, shift0, norm0 = v.start(X), v.start(rows, at), v.start(shift), v.start(norm, at)
    tile0 = v.start(tile, b.mul(at, height))
    factor = v.spread(inverse)
    next_block = b.mul(ahead, d)

    def place(t, columns, squares, first):
        for u, column in enumerate(columns):
            row = b.add(t, i64(u))
            shifted = b.fmul(b.fsub(column, v.spread(b.load(v.at(shift0, row)))), factor)
            v.store(shifted, v.at(v.at(tile0, b.mul(row, i64(VECTORS * v.lanes))), first))
            squares = v.fma(shifted, shifted, squares)
        return [squares]

    with v.repeat(i64(0), i64(VECTORS * v.lanes), v.lanes, []) as group:
        first = group.t
        x = [v.at(x0, b.mul(b.load(v.at(rows0, b.add(first, i64(i)))), d)) for i in range(v.lanes)]
        with v.loop(i64(0), whole, v.lanes, [v.zero]) as block:
            columns = v.columns([v.load(v.at(row, block.t)) for row in x])
            block.new = place(block.t, columns, *block.values, first)
            for row in x:
                v.prefetch(v.at(row, b.add(block.t, next_block)))
        with v.loop(whole, d, v.narrow, block.values) as rest:
            left = b.sub(d, rest.t)
            columns = v.columns([v.load_first(v.at(row, rest.t), left, v.narrow) for row in x])
            rest.new = place(rest.t, columns, *rest.values, first)
        v.store(rest.values[0], v.at(norm0, first))


@vector_code
def load_few_columns(v, X, row, shift, inverse, tile, norm, at, d):
    """The same for consecutive rows from `row` on with at most `FEW_COLUMNS` columns, which are read as one piece."""
    b = v.b
    _, height = v.whole_and_padded(d)
    x0, shift0, norm0 = v.start(X, b.mul(row, d)), v.start(shift), v.start(norm, at)
    tile0, factor = v.start(tile, b.mul(at, height)), v.spread(inverse)
    end = b.append_basic_block("end")
    choice = b.switch(d, end)
    for n_columns in range(1, FEW_COLUMNS + 1):
        case = b.append_basic_block("columns")
        choice.add_case(i64(n_columns), case)
        b.position_at_end(case)
        shifts = [v.spread(b.load(v.at(shift0, t))) for t in range(n_columns)]
        with v.repeat(i64(0), i64(VECTORS * v.lanes), v.lanes, [], rolled=True) as group:
            x = v.at(x0, b.mul(group.t, i64(n_columns)))
            squares = v.zero
            for t, column in enumerate(v.deinterleave([v.load(v.at(x, i * v.lanes)) for i in range(n_columns)])):
                shifted = b.fmul(b.fsub(column, shifts[t]), factor)
                v.store(shifted, v.at(v.at(tile0, t * VECTORS * v.lanes), group.t))
                squares = v.fma(shifted, shifted, squares)
            v.store(squares, v.at(norm0, group.t))
        b.branch(end)
    b.position_at_end(end)


def reduce_panel(v, start, step):
    """Accumulators for all pairs of center and vector of rows, updated by `step` in each column."""
    b = v.b
    tile0, panel0 = v.start(v["tile"], v["tile_at"]), v.start(v["panels"], v["panel_at"])
    width = len(start)
    flat = [value for value in start for _ in range(VECTORS)]
    with v.repeat(i64(0), v["d"], 1, flat) as column:
        x_t = v.at(tile0, b.mul(column.t, i64(VECTORS * v.lanes)))
        c_t = v.at(panel0, b.mul(column.t, i64(PANEL)))
        x = [v.load(v.at(x_t, r * v.lanes)) for r in range(VECTORS)]
        for j in range(width):
            c = v.spread(b.load(v.at(c_t, j)))
            column.new += [step(x[r], c, column.values[j * VECTORS + r]) for r in range(VECTORS)]
    return [column.new[j * VECTORS : (j + 1) * VECTORS] for j in range(width)]


def _two_best(step, width=PANEL):
    """An intrinsic that computes scores of a tile and a panel by `step`, and updates the two best scores of each row.

    Only the first `width` centers of the panel are compared. `start` (k,) contains the initial values of the scores,
    `first` is the index of the first center of the panel; best, second, index begin at `at`.
    """

    @vector_code
    def two_best(v, tile, tile_at, panels, panel_at, start, first, best, second, index, at, d):
        b = v.b
        start0 = v.start(start, first)
        starts = [v.spread(b.load(v.at(start0, j))) for j in range(width)]
        scores = reduce_panel(v, starts, partial(step, v))
        numbers = [v.spread(b.add(b.trunc(first, i32), i32(j))) for j in range(width)]
        state = [v.start(array, at) for array in (best, second, index)]
        for r in range(VECTORS):
            at_best, at_second, at_index = (v.at(pointer, r * v.lanes) for pointer in state)
            lowest, following = v.load(at_best), v.load(at_second)
            nearest = v.load(at_index, ir.VectorType(i32, v.lanes))
            for score, number in zip((scores[j][r] for j in range(width)), numbers, strict=True):
                is_nearer = b.fcmp_ordered("<", score, lowest)
                following = v.lower(v.higher(score, lowest), following)
                nearest = b.select(is_nearer, number, nearest)
                lowest = b.select(is_nearer, score, lowest)
            v.store(lowest, at_best)
            v.store(following, at_second)
            v.store(nearest, at_index)

    return two_best


def _zero_if_nan(v, x, value):
    """`value` where `x` is a number, 0 where it is NaN."""
    return v.b.select(v.b.fcmp_ordered("ord", x, x), value, v.zero)


def _square(v, x, c, total):
    return v.add_square(v.b.fadd(x, c), total)


def _square_nan(v, x, c, total):
    return v.add_square(_zero_if_nan(v, x, v.b.fadd(x, c)), total)


# A score is |c|^2 / 2 - x.c: half the squared distance, without |x|^2 / 2. Panels contain -c, `start` has |c|^2 / 2.
score_panel = _two_best(Vectors.fma)
_score_half, _score_quarter = _two_best(Vectors.fma, PANEL // 2), _two_best(Vectors.fma, PANEL // 4)
# The same by differences, which do not cancel: a score is start + |x - c|^2, over the columns where x is not NaN.
square_panel, square_panel_nan = _two_best(_square), _two_best(_square_nan)


@register_jitable
def in_whole_panels(k):
    """Number of centers for which `score_panel` is used; `score_rest` is faster for the others, if there are any."""
    return (k + PANEL - 1 - PANEL // 2) // PANEL * PANEL


@register_jitable
def score_rest(tile, tile_at, panels, panel_at, half, first, k, best, second, index, at, d):
    """`score_panel` for the last centers of `k`, from `first` on, which are at most half a panel."""
    if k - first > PANEL // 4:
        _score_half(tile, tile_at, panels, panel_at, half, first, best, second, index, at, d)
    else:
        _score_quarter(tile, tile_at, panels, panel_at, half, first, best, second, index, at, d)


@vector_code
def reset_best(v, best, second, at):
    """Set the two best scores of a tile to infinity."""
    for array in (best, second):
        for r in range(VECTORS):
            v.store(v.constant(np.inf), v.at(v.start(array, at), r * v.lanes))


@vector_code(returns=types.int64)
def mark_uncertain(v, best, second, norm, at, norm_factor, score_factor, tiny):
    """Bits of the rows of a tile whose two best scores may differ by no more than rounding.

    That is, by no more than ``norm_factor |x|^2 + score_factor (best + |x|^2) + tiny``.
    """
    b = v.b
    best0, second0, norm0 = (v.start(array, at) for array in (best, second, norm))
    norm_factor, score_factor, tiny = (v.spread(number) for number in (norm_factor, score_factor, tiny))
    bits = i64(0)
    for r in range(VECTORS):
        best, second, norm = (v.load(v.at(start, r * v.lanes)) for start in (best0, second0, norm0))
        limit = v.fma(score_factor, b.fadd(best, norm), v.fma(norm_factor, norm, tiny))
        is_uncertain = b.fcmp_unordered("<=", b.fsub(second, best), limit)
        of_vector = b.zext(b.bitcast(is_uncertain, ir.IntType(v.lanes)), i64)
        bits = b.or_(bits, b.shl(of_vector, i64(r * v.lanes)))
    return bits


@vector_code(returns=types.int64)
def lowest_bit(v, bits):
    """Index of the lowest bit that is set; `bits` are not 0."""
    return v.b.cttz(bits, i1(1))


@vector_code
def add_potentials(v, tile, tile_at, panels, panel_at, is_center, near, tile_weight, sums, sums_at, d):
    """Add ``tile_weight * min(near, |x - c|^2)`` of the rows of a tile to the lanes of each center of a panel.

    near, tile_weight (points,); sums (..., PANEL, points) from `sums_at` on. If `is_center`, `near` is first updated
    with the first point of the panel. Differences are computed directly, so distances do not cancel.
    """
    b = v.b
    squares = reduce_panel(v, [v.zero] * PANEL, lambda x, c, total: v.add_square(b.fsub(x, c), total))
    near0, weight0, sums0 = v.start(near), v.start(tile_weight), v.start(sums, sums_at)
    for r in range(VECTORS):
        near = v.load(v.at(near0, r * v.lanes))
        near = b.select(is_center, v.lower(squares[0][r], near), near)
        v.store(near, v.at(near0, r * v.lanes))
        tile_weight = v.load(v.at(weight0, r * v.lanes))
        for j in range(PANEL):
            at = v.at(sums0, (j * VECTORS + r) * v.lanes)
            v.store(v.fma(tile_weight, v.lower(squares[j][r], near), v.load(at)), at)


@vector_code
def add_row(v, X, x_at, centers, c_at, inverse, w, sums, s_at, d):
    """Add one row to the sums of its cluster: w q and w q^2, with ``q = (x - c) * inverse``.

    centers (..., padded d) from `c_at` on; sums (..., padded d + lanes) from `s_at` on, the last vector is the cost.
    """
    _add_row(v, v.spread(w), lambda t, x, q: q)


@vector_code
def add_row_nan(v, X, x_at, centers, c_at, inverse, w, sums, s_at, observed, observed_at, d):
    """The same for a row with missing values: q is 0 where x is NaN; otherwise observed (..., padded d) += w."""
    b = v.b
    weight, observed0 = v.spread(w), v.start(observed, observed_at)

    def mask_and_count(t, x, q):
        at = v.at(observed0, t)
        v.store(b.fadd(v.load(at), _zero_if_nan(v, x, weight)), at)
        return _zero_if_nan(v, x, q)

    _add_row(v, weight, mask_and_count)


def _add_row(v, weight, mask):
    """Add the row of X from `x_at` on to its sums; ``mask(t, x, q)`` are the differences `q` without missing values."""
    b, d = v.b, v["d"]
    x0, c0, s0 = v.start(v["X"], v["x_at"]), v.start(v["centers"], v["c_at"]), v.start(v["sums"], v["s_at"])
    whole, height = v.whole_and_padded(d)
    cost_at, factor = v.at(s0, height), v.spread(v["inverse"])

    def add(t, x, cost):
        q = mask(t, x, b.fmul(b.fsub(x, v.load(v.at(c0, t))), factor))
        wq = b.fmul(q, weight)
        v.store(b.fadd(v.load(v.at(s0, t)), wq), v.at(s0, t))
        return [v.fma(wq, q, cost)]

    with v.loop(i64(0), whole, v.lanes, [v.load(cost_at)]) as block:
        block.new = add(block.t, v.load(v.at(x0, block.t)), *block.values)
    with v.loop(whole, d, v.lanes, block.values) as rest:
        rest.new = add(rest.t, v.load_first(v.at(x0, rest.t), b.sub(d, rest.t), v.lanes), *rest.values)
    v.store(rest.values[0], cost_at)


@vector_code
def add_few_sums(v, tile, index, n_padded, d_padded, columns, first, centers, counts, sums):
    """Add rows to the sums of `LABELS` clusters: numbers of rows, q and q^2 with ``q = x - c``, lane by lane.

    tile: (n_padded / points, d_padded, points), of which the first `columns`, an even number, are used; index
    (n_padded,); centers (padded k, columns); counts (padded k,); sums (padded k, columns + 1, lanes), of which the last
    is that of squares. The clusters are those from `first` on.
    """
    b = v.b
    index0 = v.start(index)
    width = b.mul(b.add(columns, i64(1)), i64(v.lanes))
    centers0, sums0 = v.start(centers, b.mul(first, columns)), v.start(sums, b.mul(first, width))
    labels = [v.spread(b.trunc(b.add(first, i64(j)), i32)) for j in range(LABELS)]
    sum_at = [v.at(sums0, b.mul(width, i64(j))) for j in range(LABELS)]
    square_at = [v.at(at, b.mul(columns, i64(v.lanes))) for at in sum_at]
    squares = [v.load(at) for at in square_at]
    with v.loop(i64(0), columns, 2, squares, rolled=True) as pair:
        column_at = b.mul(pair.t, i64(VECTORS * v.lanes))
        tile0 = v.start(tile, column_at)
        c = [
            [v.spread(b.load(v.at(v.at(centers0, b.add(b.mul(columns, i64(j)), pair.t)), t))) for t in range(2)]
            for j in range(LABELS)
        ]
        linear_at = [[v.at(at, b.mul(b.add(pair.t, i64(t)), i64(v.lanes))) for t in range(2)] for at in sum_at]
        start = [value for j in range(LABELS) for value in (pair.values[j], *map(v.load, linear_at[j]), i64(0))]
        with v.repeat(i64(0), n_padded, VECTORS * v.lanes, start, rolled=True) as block:
            values = block.values
            for r in range(VECTORS):
                x_at = v.at(v.at(tile0, b.mul(block.t, d_padded)), r * v.lanes)
                x = [v.load(v.at(x_at, t * VECTORS * v.lanes)) for t in range(2)]
                label = v.load(v.at(v.at(index0, block.t), r * v.lanes), ir.VectorType(i32, v.lanes))
                values = _add_to_labels(v, x, label, labels, c, values)
            block.new = values
        for j in range(LABELS):
            for t in range(2):
                v.store(block.new[4 * j + 1 + t], linear_at[j][t])
        pair.new = block.new[::4]
        counts0 = v.start(counts, first)
        with b.if_then(b.icmp_signed("==", pair.t, i64(0))):
            for j in range(LABELS):
                at = v.at(counts0, j)
                b.store(b.add(b.load(at), block.new[4 * j + 3]), at)
    for square, at in zip(pair.values, square_at, strict=True):
        v.store(square, at)


def _add_to_labels(v, x, label, labels, c, values):
    """Sums of squares, two columns and the count of each label, after adding one vector of rows."""
    b, new = v.b, []
    for j in range(LABELS):
        square, *linear, count = values[4 * j : 4 * j + 4]
        is_member = b.icmp_signed("==", label, labels[j])
        for t in range(2):
            q = b.fsub(x[t], c[j][t])
            linear[t] = b.select(is_member, b.fadd(linear[t], q), linear[t])
            square = b.select(is_member, v.fma(q, q, square), square)
        bits = b.zext(b.bitcast(is_member, ir.IntType(v.lanes)), i64)
        new += [square, *linear, b.add(count, b.ctpop(bits))]
    return new
