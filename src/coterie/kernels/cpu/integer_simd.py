"""Inner loops of assignment in integers, as vector code.

Rows are in the lanes, as in `simd`. Each lane is a *word* of 32 bits that contains 4 columns of 8 bits or 2 columns of
16 bits, and one instruction (AVX-512 VNNI) multiplies and adds all of them. Products and sums of integers are exact.
"""

from __future__ import annotations

from functools import cache, partial

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from coterie.kernels.cpu.simd import PANEL, VECTORS
from coterie.kernels.cpu.vectors import REGISTER, Vectors, i1, i32, i64

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
        last = ir.Constant(kind, [32 - bits] * kind.count)
        up = ir.Constant(kind, [32 - bits - bits * u] * kind.count)
        shift_x = b.lshr if columns == 4 else b.ashr
        product = b.mul(shift_x(b.shl(x, up), last), b.ashr(b.shl(c, up), last))
        total = b.add(total, product)
    return total


def _scan(columns, context, b, sig, args):
    names = "factor tile panels panel_at start half scale first least least_at best where d_words"
    v = Vectors(names, context, b, sig, args)
    words = ir.VectorType(i32, v.lanes)
    tile0, panel0 = v.start("tile"), v.start("panels", v["panel_at"])
    start0, half0, scale0 = (v.start(name, v["first"]) for name in ("start", "half", "scale"))
    starts = [v.spread(b.load(v.at(start0, j))) for j in range(PANEL) for _ in range(VECTORS)]
    with v.repeat(i64(0), v["d_words"], 1, starts) as word:
        x_w = v.at(tile0, b.mul(word.t, i64(VECTORS * v.lanes)))
        c_w = v.at(panel0, b.mul(word.t, i64(PANEL)))
        x = [v.load(v.at(x_w, r * v.lanes), words) for r in range(VECTORS)]
        for j in range(PANEL):
            c = v.spread(b.load(v.at(c_w, j)))
            word.new += [_multiply_add(v, columns, word.values[j * VECTORS + r], x[r], c) for r in range(VECTORS)]
    panel = v.spread(b.trunc(b.sdiv(v["first"], i64(PANEL)), i32))
    factors = [v.load(v.at(v.start("factor"), r * v.lanes)) for r in range(VECTORS)]
    minima = [None] * VECTORS
    for j in range(PANEL):
        half, scale = v.spread(b.load(v.at(half0, j))), v.spread(b.load(v.at(scale0, j)))
        for r in range(VECTORS):
            product = b.sitofp(word.new[j * VECTORS + r], v.type)
            score = v.fma(scale, product, b.fmul(half, factors[r]))
            minima[r] = score if minima[r] is None else v.lower(score, minima[r])
    for r in range(VECTORS):
        at = [v.at(v.start(name), r * v.lanes) for name in ("best", "where")]
        best, where = v.load(at[0]), v.load(at[1], words)
        is_nearer = b.fcmp_ordered("<", minima[r], best)
        v.store(minima[r], v.at(v.start("least", v["least_at"]), r * v.lanes))
        v.store(b.select(is_nearer, minima[r], best), at[0])
        v.store(b.select(is_nearer, panel, where), at[1])
    return context.get_dummy_value()


@intrinsic
def scan_int8(
    typingctx, factor, tile, panels, panel_at, start, half, scale, first, least, least_at, best, where, d_words
):
    """Minimum over a panel of ``factor half + scale x.c`` for each row of a tile, with columns of 8 bits.

    tile (d_words, points), panels (d_words, PANEL) from `panel_at` on; start, half, scale (k,) of the centers, of which
    `first` is the first of the panel; out: least (points,) from `least_at` on; best and where (points,): minimum of all
    panels so far, and its panel.
    """
    names = (factor, tile, panels, panel_at, start, half, scale, first, least, least_at, best, where, d_words)
    return types.void(*names), partial(_scan, 4)


@intrinsic
def scan_int16(
    typingctx, factor, tile, panels, panel_at, start, half, scale, first, least, least_at, best, where, d_words
):
    """The same with columns of 16 bits."""
    names = (factor, tile, panels, panel_at, start, half, scale, first, least, least_at, best, where, d_words)
    return types.void(*names), partial(_scan, 2)


class _Lanes:
    """Operations on vectors with a given number of lanes, which need not be a register."""

    def __init__(self, v, count):
        self.v, self.b, self.count = v, v.b, count
        self.type, self.words = ir.VectorType(v.element, count), ir.VectorType(i32, count)

    def constant(self, value):
        if isinstance(value, int):
            return ir.Constant(self.words, [value] * self.count)
        return ir.Constant(self.type, [value] * self.count)

    def load(self, pointer):
        return self.v.load(pointer, self.type)

    def call(self, name, *args):
        signature = ir.FunctionType(self.type, [self.type] * len(args))
        function = cgutils.get_or_insert_function(self.b.module, signature, f"llvm.{name}.v{self.count}f32")
        return self.b.call(function, args)


def _blocks(v, is_panel):
    """Vectors of a row of a tile or of a panel: their lanes, and how many there are."""
    return (_Lanes(v, PANEL), 1) if is_panel else (_Lanes(v, v.lanes), VECTORS)


def _largest(is_panel, context, b, sig, args):
    v = Vectors("values at top d", context, b, sig, args)
    lanes, count = _blocks(v, is_panel)
    values0, width = v.start("values", v["at"]), lanes.count * count
    with v.repeat(i64(0), v["d"], 1, [lanes.constant(0.0)] * count) as column:
        at = v.at(values0, b.mul(column.t, i64(width)))
        for r, top in enumerate(column.values):
            size = lanes.call("fabs", lanes.load(v.at(at, r * lanes.count)))
            column.new.append(v.higher(size, top))
    for r, top in enumerate(column.new):
        v.store(top, v.at(v.start("top"), r * lanes.count))
    return context.get_dummy_value()


@intrinsic
def largest_of_tile(typingctx, values, at, top, d):
    """Largest absolute value of each row of a tile (d, points) from `at` on; out: top (points,)."""
    return types.void(values, at, top, d), partial(_largest, False)


@intrinsic
def largest_of_panel(typingctx, values, at, top, d):
    """The same for the centers of a panel (d, PANEL); out: top (PANEL,)."""
    return types.void(values, at, top, d), partial(_largest, True)


def _quantize(columns, is_panel, context, b, sig, args):
    v = Vectors("values at inverse scale words words_at residual total d", context, b, sig, args)
    lanes, count = _blocks(v, is_panel)
    values0, words0, width = v.start("values", v["at"]), v.start("words", v["words_at"]), lanes.count * count
    bits = 32 // columns
    mask, magic, zero = lanes.constant((1 << bits) - 1), lanes.constant(MAGIC), lanes.constant(0.0)
    inverse = [lanes.load(v.at(v.start("inverse"), r * lanes.count)) for r in range(count)]
    minus = [b.fneg(lanes.load(v.at(v.start("scale"), r * lanes.count))) for r in range(count)]
    with v.repeat(i64(0), v["d"], columns, [zero] * (2 * count)) as block:
        for r in range(count):
            residual, total, word = block.values[2 * r], block.values[2 * r + 1], lanes.constant(0)
            for u in range(columns):
                row = b.add(block.t, i64(u))
                is_inside = b.icmp_signed(
                    "<", row, v["d"]
                )  # a word can end after the last column: tiles have zeros there
                row = b.select(is_inside, row, i64(0)) if is_panel else row
                x = lanes.load(v.at(values0, b.add(b.mul(row, i64(width)), i64(r * lanes.count))))
                x = b.select(is_inside, x, zero) if is_panel else x
                rounded = b.fadd(b.fmul(x, inverse[r]), magic)
                q = b.fsub(rounded, magic)
                rest = lanes.call("fma", minus[r], q, x)
                residual = lanes.call("fma", rest, rest, residual)
                total = b.fadd(total, q)
                last = b.and_(b.bitcast(rounded, lanes.words), mask)
                word = b.or_(word, b.shl(last, lanes.constant(bits * u)))
            if columns == 4 and not is_panel:
                word = b.xor(word, lanes.constant(0x80808080 - (1 << 32)))  # adds OFFSET to each column
            at = b.add(b.mul(b.sdiv(block.t, i64(columns)), i64(width)), i64(r * lanes.count))
            v.store(word, v.at(words0, at))
            block.new += [residual, total]
    for r in range(count):
        v.store(block.new[2 * r], v.at(v.start("residual"), r * lanes.count))
        if is_panel:
            v.store(block.new[2 * r + 1], v.at(v.start("total"), r * lanes.count))
    return context.get_dummy_value()


@intrinsic
def quantize_tile_int8(typingctx, values, at, inverse, scale, words, words_at, residual, total, d):
    """Round ``x inverse`` of a tile (d, points) from `at` on to 8 bits, plus `OFFSET`.

    out: words (d / 4, points) from `words_at` on, residual (points,): squared norms of what rounding takes away.
    """
    sig = types.void(values, at, inverse, scale, words, words_at, residual, total, d)
    return sig, partial(_quantize, 4, False)


@intrinsic
def quantize_tile_int16(typingctx, values, at, inverse, scale, words, words_at, residual, total, d):
    """The same with 16 bits, without `OFFSET`."""
    sig = types.void(values, at, inverse, scale, words, words_at, residual, total, d)
    return sig, partial(_quantize, 2, False)


@intrinsic
def quantize_panel_int8(typingctx, values, at, inverse, scale, words, words_at, residual, total, d):
    """The same for a panel (d, PANEL) with 8 bits, without `OFFSET`; out: total (PANEL,): sum of the integers."""
    sig = types.void(values, at, inverse, scale, words, words_at, residual, total, d)
    return sig, partial(_quantize, 4, True)


@intrinsic
def quantize_panel_int16(typingctx, values, at, inverse, scale, words, words_at, residual, total, d):
    """The same for a panel with 16 bits."""
    sig = types.void(values, at, inverse, scale, words, words_at, residual, total, d)
    return sig, partial(_quantize, 2, True)


@intrinsic
def select_rows(typingctx, least, least_at, cut, rest):
    """Rows of a tile with ``least <= cut`` as bits of an integer; the minimum of the others is stored in `rest`.

    least (points,) from `least_at` on, cut (points,), rest (points,)
    """
    sig = types.int64(least, least_at, cut, rest)

    def codegen(context, b, sig, args):
        v = Vectors("least least_at cut rest", context, b, sig, args)
        selected = i64(0)
        for r in range(VECTORS):
            bound = v.load(v.at(v.start("least", v["least_at"]), r * v.lanes))
            at_rest = v.at(v.start("rest"), r * v.lanes)
            is_above = b.fcmp_ordered(">", bound, v.load(v.at(v.start("cut"), r * v.lanes)))
            v.store(b.select(is_above, v.lower(bound, v.load(at_rest)), v.load(at_rest)), at_rest)
            bits = b.bitcast(b.not_(is_above), ir.IntType(v.lanes))
            selected = b.or_(selected, b.shl(b.zext(bits, i64), i64(r * v.lanes)))
        return selected

    return sig, codegen


@intrinsic
def count_bits(typingctx, bits):
    """Number of bits that are set."""

    def codegen(context, b, sig, args):
        return b.ctpop(args[0])

    return types.int64(types.int64), codegen


@intrinsic
def score_row(typingctx, X, x_at, shift, inverse, panels, panel_at, half, first, best, second, index, at, d):
    """Update the two best scores of one row with the centers of a panel, as `simd.score_panel` does for a tile.

    The row begins at `x_at` in X; shift (padded d,); panels (..., d, PANEL) of -c from `panel_at` on.
    """
    sig = types.void(X, x_at, shift, inverse, panels, panel_at, half, first, best, second, index, at, d)

    def codegen(context, b, sig, args):
        names = "X x_at shift inverse panels panel_at half first best second index at d"
        v = Vectors(names, context, b, sig, args)
        x0, shift0, panel0 = v.start("X", v["x_at"]), v.start("shift"), v.start("panels", v["panel_at"])
        pair, lanes, factor = _Lanes(v, 2 * PANEL), _Lanes(v, PANEL), v.spread(v["inverse"])
        whole, _ = v.whole_and_padded(v["d"])
        with v.loop(i64(0), whole, v.lanes, [pair.constant(0.0)] * 4) as block:
            x = b.fmul(b.fsub(v.load(v.at(x0, block.t)), v.load(v.at(shift0, block.t))), factor)
            sums = list(block.values)
            for u in range(v.lanes // 2):  # two columns at a time
                both = v.shuffle(x, x, [2 * u] * PANEL + [2 * u + 1] * PANEL)
                c = pair.load(v.at(panel0, b.mul(b.add(block.t, i64(2 * u)), i64(PANEL))))
                sums[u % 4] = pair.call("fmuladd", both, c, sums[u % 4])
            block.new = sums
        sums = block.values
        both = b.fadd(b.fadd(sums[0], sums[1]), b.fadd(sums[2], sums[3]))
        even, odd = v.shuffle(both, both, range(PANEL)), v.shuffle(both, both, range(PANEL, 2 * PANEL))
        with v.loop(whole, v["d"], 1, [b.fadd(even, odd)]) as rest:
            x = b.fmul(b.fsub(b.load(v.at(x0, rest.t)), b.load(v.at(shift0, rest.t))), v["inverse"])
            c = lanes.load(v.at(panel0, b.mul(rest.t, i64(PANEL))))
            rest.new = [lanes.call("fmuladd", v.spread(x, PANEL), c, rest.values[0])]
        scores = b.fadd(rest.values[0], lanes.load(v.start("half", v["first"])))
        smallest = _minimum(v, scores)
        is_first = b.fcmp_ordered("==", scores, v.spread(smallest, PANEL))
        lane = b.cttz(b.zext(b.bitcast(is_first, ir.IntType(PANEL)), i64), i1(0))
        numbers = ir.Constant(ir.VectorType(i64, PANEL), list(range(PANEL)))
        is_lane = b.icmp_signed("==", numbers, v.spread(lane, PANEL))
        following = _minimum(v, b.select(is_lane, lanes.constant(float("inf")), scores))
        at_best, at_second, at_index = (v.start(name, v["at"]) for name in ("best", "second", "index"))
        best, second = b.load(at_best), b.load(at_second)
        is_nearer = b.fcmp_ordered("<", smallest, best)
        b.store(b.select(is_nearer, b.trunc(b.add(v["first"], lane), i32), b.load(at_index)), at_index)
        second = v.lower(v.lower(v.higher(smallest, best), second), following)
        b.store(second, at_second)
        b.store(v.lower(smallest, best), at_best)
        return context.get_dummy_value()

    return sig, codegen


def _minimum(v, vector):
    """Minimum of the lanes of a vector, which are not NaN."""
    while vector.type.count > 1:
        half = (vector.type.count + 1) // 2
        others = range(vector.type.count - half, vector.type.count)
        vector = v.lower(v.shuffle(vector, vector, range(half)), v.shuffle(vector, vector, others))
    return v.b.extract_element(vector, i32(0))
