"""Inner loops of assignment in integers, as vector code.

Rows are in the lanes, as in `simd`. Each lane is a *word* of 32 bits that contains 4 columns of 8 bits or 2 columns of
16 bits, and one instruction (AVX-512 VNNI) multiplies and adds all of them. Products and sums of integers are exact.
"""

from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types

from coterie.kernels.cpu.simd import PANEL, VECTORS
from coterie.kernels.cpu.vectors import REGISTER, i1, i32, i64, vector_code

MAGIC = 1.5 * 2.0**23  # adding it rounds a float32 to an integer, which is then in the last bits
OFFSET = 128  # one factor of a product of 8 bits is unsigned, so this is added to the columns of rows
INSTRUCTIONS = {4: "vpdpbusd", 2: "vpdpwssd"}  # by columns of a word


@cache
def has_integer_products() -> bool:
    """Whether this CPU has the instructions; code for AVX-512 is compiled with them also where they are missing."""
    return REGISTER == 64 and bool(llvm.get_host_cpu_features().get("avx512vnni"))


def _multiply_add(v, columns, total, x, c):
    """``total + x.c`` for words of the given number of columns."""
    b, kind = v.b, total.type
    if REGISTER == 64:
        # Inline assembly, because these instructions are not part of the CPU level that kernels are compiled for.
        llvm.initialize_native_asmparser()
        signature = ir.FunctionType(kind, [kind] * 3)
        return b.asm(signature, f"{INSTRUCTIONS[columns]} $3, $2, $0", "=v,0,v,v", [total, x, c], False)
    bits = 32 // columns
    for u in range(columns):
        last = v.constant(32 - bits, kind)
        up = v.constant(32 - bits - bits * u, kind)
        shift_x = b.lshr if columns == 4 else b.ashr
        product = b.mul(shift_x(b.shl(x, up), last), b.ashr(b.shl(c, up), last))
        total = b.add(total, product)
    return total


def _scan(columns):
    """An intrinsic for the minimum over a panel of ``factor half + scale x.c`` for each row of a tile.

    tile (d_words, points), panels (d_words, PANEL) from `panel_at` on; start, half, scale (k,) of the centers, of which
    `first` is the first of the panel; out: least (points,) from `least_at` on; best and where (points,): minimum of all
    panels so far, and its panel.
    """

    @vector_code
    def scan(v, factor, tile, panels, panel_at, start, half, scale, first, least, least_at, best, where, d_words):
        b = v.b
        words = ir.VectorType(i32, v.lanes)
        tile0, panel0 = v.start(tile), v.start(panels, panel_at)
        start0, half0, scale0 = (v.start(array, first) for array in (start, half, scale))
        starts = [v.spread(b.load(v.at(start0, j))) for j in range(PANEL) for _ in range(VECTORS)]
        with v.repeat(i64(0), d_words, 1, starts) as word:
            x_w = v.at(tile0, b.mul(word.t, i64(VECTORS * v.lanes)))
            c_w = v.at(panel0, b.mul(word.t, i64(PANEL)))
            x = [v.load(v.at(x_w, r * v.lanes), words) for r in range(VECTORS)]
            for j in range(PANEL):
                c = v.spread(b.load(v.at(c_w, j)))
                word.new += [_multiply_add(v, columns, word.values[j * VECTORS + r], x[r], c) for r in range(VECTORS)]
        panel = v.spread(b.trunc(b.sdiv(first, i64(PANEL)), i32))
        factors = [v.load(v.at(v.start(factor), r * v.lanes)) for r in range(VECTORS)]
        minima = [None] * VECTORS
        for j in range(PANEL):
            of_half, of_scale = v.spread(b.load(v.at(half0, j))), v.spread(b.load(v.at(scale0, j)))
            for r in range(VECTORS):
                product = b.sitofp(word.new[j * VECTORS + r], v.type)
                score = v.fma(of_scale, product, b.fmul(of_half, factors[r]))
                minima[r] = score if minima[r] is None else v.lower(score, minima[r])
        for r in range(VECTORS):
            at_best, at_where = (v.at(v.start(array), r * v.lanes) for array in (best, where))
            lowest, panels_so_far = v.load(at_best), v.load(at_where, words)
            is_nearer = b.fcmp_ordered("<", minima[r], lowest)
            v.store(minima[r], v.at(v.start(least, least_at), r * v.lanes))
            v.store(b.select(is_nearer, minima[r], lowest), at_best)
            v.store(b.select(is_nearer, panel, panels_so_far), at_where)

    return scan


scan_int8, scan_int16 = _scan(columns=4), _scan(columns=2)


def _blocks(v, is_panel):
    """Type of the vectors of a row of a tile or of a panel, and how many there are."""
    return (ir.VectorType(v.element, PANEL), 1) if is_panel else (v.type, VECTORS)


def _largest(is_panel):
    """An intrinsic for the largest absolute value of each row of a tile (d, points) from `at` on; out: top (points,).

    With `is_panel` it is that of the centers of a panel (d, PANEL); out: top (PANEL,).
    """

    @vector_code
    def largest(v, values, at, top, d):
        b = v.b
        kind, count = _blocks(v, is_panel)
        values0, width = v.start(values, at), kind.count * count
        with v.repeat(i64(0), d, 1, [v.constant(0.0, kind)] * count) as column:
            row = v.at(values0, b.mul(column.t, i64(width)))
            for r, highest in enumerate(column.values):
                size = v.call("fabs", v.load(v.at(row, r * kind.count), kind))
                column.new.append(v.higher(size, highest))
        for r, highest in enumerate(column.new):
            v.store(highest, v.at(v.start(top), r * kind.count))

    return largest


largest_of_tile, largest_of_panel = _largest(is_panel=False), _largest(is_panel=True)


def _quantize(columns, is_panel=False):
    """An intrinsic that rounds ``x inverse`` of a tile (d, points) from `at` on to 8 bits, plus `OFFSET`.

    out: words (d / 4, points) from `words_at` on, residual (points,): squared norms of what rounding takes away.
    With 2 columns in a word it rounds to 16 bits, without `OFFSET`. With `is_panel` it does so for a panel (d, PANEL),
    without `OFFSET`; out: total (PANEL,): sum of the integers.
    """

    @vector_code
    def quantize(v, values, at, inverse, scale, words, words_at, residual, total, d):
        b = v.b
        kind, count = _blocks(v, is_panel)
        values0, words0, width = v.start(values, at), v.start(words, words_at), kind.count * count
        bits, integer = 32 // columns, ir.VectorType(i32, kind.count)
        mask, magic, zero = v.constant((1 << bits) - 1, integer), v.constant(MAGIC, kind), v.constant(0.0, kind)
        inverses = [v.load(v.at(v.start(inverse), r * kind.count), kind) for r in range(count)]
        minus = [b.fneg(v.load(v.at(v.start(scale), r * kind.count), kind)) for r in range(count)]
        with v.repeat(i64(0), d, columns, [zero] * (2 * count)) as block:
            for r in range(count):
                square, integers, word = block.values[2 * r], block.values[2 * r + 1], v.constant(0, integer)
                for u in range(columns):
                    row = b.add(block.t, i64(u))
                    is_inside = b.icmp_signed("<", row, d)  # a word can end after the last column: tiles have zeros
                    row = b.select(is_inside, row, i64(0)) if is_panel else row
                    x = v.load(v.at(values0, b.add(b.mul(row, i64(width)), i64(r * kind.count))), kind)
                    x = b.select(is_inside, x, zero) if is_panel else x
                    rounded = b.fadd(b.fmul(x, inverses[r]), magic)
                    q = b.fsub(rounded, magic)
                    rest = v.call("fma", minus[r], q, x)
                    square = v.call("fma", rest, rest, square)
                    integers = b.fadd(integers, q)
                    last = b.and_(b.bitcast(rounded, integer), mask)
                    word = b.or_(word, b.shl(last, v.constant(bits * u, integer)))
                if columns == 4 and not is_panel:
                    word = b.xor(word, v.constant(0x80808080 - (1 << 32), integer))  # adds OFFSET to each column
                at = b.add(b.mul(b.sdiv(block.t, i64(columns)), i64(width)), i64(r * kind.count))
                v.store(word, v.at(words0, at))
                block.new += [square, integers]
        for r in range(count):
            v.store(block.new[2 * r], v.at(v.start(residual), r * kind.count))
            if is_panel:
                v.store(block.new[2 * r + 1], v.at(v.start(total), r * kind.count))

    return quantize


quantize_tile_int8, quantize_tile_int16 = _quantize(columns=4), _quantize(columns=2)
quantize_panel_int8, quantize_panel_int16 = _quantize(columns=4, is_panel=True), _quantize(columns=2, is_panel=True)


@vector_code(returns=types.int64)
def select_rows(v, least, least_at, cut, rest):
    """Rows of a tile with ``least <= cut`` as bits of an integer; the minimum of the others is stored in `rest`.

    least (points,) from `least_at` on, cut (points,), rest (points,)
    """
    b = v.b
    selected = i64(0)
    for r in range(VECTORS):
        bound = v.load(v.at(v.start(least, least_at), r * v.lanes))
        at_rest = v.at(v.start(rest), r * v.lanes)
        is_above = b.fcmp_ordered(">", bound, v.load(v.at(v.start(cut), r * v.lanes)))
        v.store(b.select(is_above, v.lower(bound, v.load(at_rest)), v.load(at_rest)), at_rest)
        bits = b.bitcast(b.not_(is_above), ir.IntType(v.lanes))
        selected = b.or_(selected, b.shl(b.zext(bits, i64), i64(r * v.lanes)))
    return selected


@vector_code(returns=types.int64)
def count_bits(v, bits):
    """Number of bits that are set."""
    return v.b.ctpop(bits)


@vector_code
def score_row(v, X, x_at, shift, inverse, panels, panel_at, half, first, best, second, index, at, d):
    """Update the two best scores of one row with the centers of a panel, as `simd.score_panel` does for a tile.

    The row begins at `x_at` in X; shift (padded d,); panels (..., d, PANEL) of -c from `panel_at` on.
    """
    b = v.b
    x0, shift0, panel0 = v.start(X, x_at), v.start(shift), v.start(panels, panel_at)
    pair, single, factor = ir.VectorType(v.element, 2 * PANEL), ir.VectorType(v.element, PANEL), v.spread(inverse)
    whole, _ = v.whole_and_padded(d)
    with v.loop(i64(0), whole, v.lanes, [v.constant(0.0, pair)] * 4) as block:
        x = b.fmul(b.fsub(v.load(v.at(x0, block.t)), v.load(v.at(shift0, block.t))), factor)
        sums = list(block.values)
        for u in range(v.lanes // 2):  # two columns at a time
            both = v.shuffle(x, x, [2 * u] * PANEL + [2 * u + 1] * PANEL)
            c = v.load(v.at(panel0, b.mul(b.add(block.t, i64(2 * u)), i64(PANEL))), pair)
            sums[u % 4] = v.call("fmuladd", both, c, sums[u % 4])
        block.new = sums
    sums = block.values
    both = b.fadd(b.fadd(sums[0], sums[1]), b.fadd(sums[2], sums[3]))
    even, odd = v.shuffle(both, both, range(PANEL)), v.shuffle(both, both, range(PANEL, 2 * PANEL))
    with v.loop(whole, d, 1, [b.fadd(even, odd)]) as rest:
        x = b.fmul(b.fsub(b.load(v.at(x0, rest.t)), b.load(v.at(shift0, rest.t))), inverse)
        c = v.load(v.at(panel0, b.mul(rest.t, i64(PANEL))), single)
        rest.new = [v.call("fmuladd", v.spread(x, PANEL), c, rest.values[0])]
    scores = b.fadd(rest.values[0], v.load(v.start(half, first), single))
    smallest = _minimum(v, scores)
    is_first = b.fcmp_ordered("==", scores, v.spread(smallest, PANEL))
    lane = b.cttz(b.zext(b.bitcast(is_first, ir.IntType(PANEL)), i64), i1(0))
    numbers = ir.Constant(ir.VectorType(i64, PANEL), list(range(PANEL)))
    is_lane = b.icmp_signed("==", numbers, v.spread(lane, PANEL))
    following = _minimum(v, b.select(is_lane, v.constant(float("inf"), single), scores))
    at_best, at_second, at_index = (v.start(array, at) for array in (best, second, index))
    best, second = b.load(at_best), b.load(at_second)
    is_nearer = b.fcmp_ordered("<", smallest, best)
    b.store(b.select(is_nearer, b.trunc(b.add(first, lane), i32), b.load(at_index)), at_index)
    second = v.lower(v.lower(v.higher(smallest, best), second), following)
    b.store(second, at_second)
    b.store(v.lower(smallest, best), at_best)


def _minimum(v, vector):
    """Minimum of the lanes of a vector, which are not NaN."""
    while vector.type.count > 1:
        half = (vector.type.count + 1) // 2
        others = range(vector.type.count - half, vector.type.count)
        vector = v.lower(v.shuffle(vector, vector, range(half)), v.shuffle(vector, vector, others))
    return v.b.extract_element(vector, i32(0))
