"""Vector steps of soft assignment: squares, posteriors, and products weighted by them.

A *block* is some tiles (see `simd`), `stride` numbers apart; a tile's columns are padded to whole strips of `STRIP`.
What components have of rows lies in (k, block) arrays. All of it lies in one array, `room`, and is named by where it
begins. Sums over a block's rows are added to a float64 array `sums`, from `at` on.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from coterie.kernels.cpu.simd import VECTORS
from coterie.kernels.cpu.vectors import REGISTER, Vectors, i64

STRIP = 4  # columns, or components, taken together
WIDE = 2 if REGISTER == 32 else 4  # columns a strip is multiplied with: 16 registers hold 4 x 2 accumulators
TRIANGLE = [(i, j) for i in range(STRIP) for j in range(i, STRIP)]


@intrinsic
def triangle_squares(typingctx, room, tile, factor, squares, columns):
    """``|U'x - b|^2`` of a tile's rows.

    factor holds for every strip of columns STRIP of -b, then the strip of U down to the diagonal.
    """
    sig = types.void(room, tile, factor, squares, columns)

    def codegen(context, b, sig, args):
        v = Vectors("room tile factor squares columns", context, b, sig, args)
        with v.repeat(i64(0), v["columns"], STRIP, [v.zero] * VECTORS) as strip:
            y = _triangle(v, strip.t)
            strip.new = strip.values
            for outputs in y:
                strip.new = [v.fma(x, x, total) for x, total in zip(outputs, strip.new, strict=True)]
        _store_rows(v, strip.new, v.start("room", v["squares"]))
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def whiten(typingctx, room, tile, factor, out, columns):
    """``U'x - b`` of a tile's rows, as a tile `out`; factor as in `triangle_squares`."""
    sig = types.void(room, tile, factor, out, columns)

    def codegen(context, b, sig, args):
        v = Vectors("room tile factor out columns", context, b, sig, args)
        with v.repeat(i64(0), v["columns"], STRIP, []) as strip:
            for i, outputs in enumerate(_triangle(v, strip.t)):
                row = b.mul(b.add(strip.t, i64(i)), i64(VECTORS * v.lanes))
                _store_rows(v, outputs, v.at(v.start("room", v["out"]), row))
        return context.get_dummy_value()

    return sig, codegen


def _triangle(v, first):
    """A strip of ``U'x - b`` from column `first` on: for each of its columns, VECTORS vectors of rows."""
    b = v.b
    tile0 = v.start("room", v["tile"])
    before = b.add(first, b.sdiv(b.mul(first, b.add(first, i64(STRIP))), i64(2)))  # what earlier strips take
    bias = v.at(v.start("room", v["factor"]), before)
    panel0 = v.at(bias, STRIP)

    def multiply(column, totals, outputs):
        x = _load_rows(v, v.at(tile0, b.mul(column, i64(VECTORS * v.lanes))))
        u_t = v.at(panel0, b.mul(column, i64(STRIP)))
        new = list(totals)
        for i in outputs:
            u = v.spread(b.load(v.at(u_t, i)))
            for r in range(VECTORS):
                new[i * VECTORS + r] = v.fma(x[r], u, totals[i * VECTORS + r])
        return new

    start = [value for i in range(STRIP) for value in [v.spread(b.load(v.at(bias, i)))] * VECTORS]
    with v.loop(i64(0), first, 1, start) as column:
        column.new = multiply(column.t, column.values, range(STRIP))
    totals = column.values
    for i in range(STRIP):
        totals = multiply(b.add(first, i64(i)), totals, range(i, STRIP))
    return [totals[i * VECTORS : (i + 1) * VECTORS] for i in range(STRIP)]


@intrinsic
def center_squares(typingctx, room, tile, panel, squares, block, columns):
    """``|x - c|^2`` of a tile's rows and STRIP centers; panel (columns, STRIP)."""
    sig = types.void(room, tile, panel, squares, block, columns)

    def codegen(context, b, sig, args):
        v = Vectors("room tile panel squares block columns", context, b, sig, args)

        def square(x, panel_t, j, total):
            difference = b.fsub(x, v.spread(b.load(v.at(panel_t, j))))
            return v.fma(difference, difference, total)

        _panel_squares(v, STRIP, square)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def scaled_squares(typingctx, room, tile, panel, squares, block, columns):
    """Sums of ``(p x - b)^2`` over the columns, as above; panel (columns, 2, STRIP): p, then -b."""
    sig = types.void(room, tile, panel, squares, block, columns)

    def codegen(context, b, sig, args):
        v = Vectors("room tile panel squares block columns", context, b, sig, args)

        def square(x, panel_t, j, total):
            p, bias = (v.spread(b.load(v.at(panel_t, i))) for i in (j, STRIP + j))
            y = v.fma(x, p, bias)
            return v.fma(y, y, total)

        _panel_squares(v, 2 * STRIP, square)
        return context.get_dummy_value()

    return sig, codegen


def _panel_squares(v, width, step):
    """One total for each (component of a panel, vector of rows), taken through all columns by `step`."""
    b = v.b
    tile0, panel0 = v.start("room", v["tile"]), v.start("room", v["panel"])
    with v.repeat(i64(0), v["columns"], 1, [v.zero] * (STRIP * VECTORS)) as column:
        x = _load_rows(v, v.at(tile0, b.mul(column.t, i64(VECTORS * v.lanes))))
        panel_t = v.at(panel0, b.mul(column.t, i64(width)))
        column.new = [
            step(x[r], panel_t, j, column.values[j * VECTORS + r]) for j in range(STRIP) for r in range(VECTORS)
        ]
    squares0 = v.start("room", v["squares"])
    for j in range(STRIP):
        row = v.at(squares0, b.mul(v["block"], i64(j)))
        _store_rows(v, column.new[j * VECTORS : (j + 1) * VECTORS], row)


@intrinsic
def posterior(typingctx, room, layout, at):
    """Posterior of a tile's rows, times w, from log joints ``offset + scale * squares``.

    layout: of `room`, the tile's rows from `at` on; a row's log-likelihood is ``most + log(total)``.
    """
    sig = types.void(room, layout, at)

    def codegen(context, b, sig, args):
        v = Vectors("room layout at", context, b, sig, args)
        fields = sig.args[1].fields

        def of_layout(name):
            return b.extract_value(v["layout"], fields.index(name))

        def of_rows(name):
            return v.start("room", b.add(of_layout(name), v["at"]))

        k, block = of_layout("k"), of_layout("block")
        squares0, resp0 = of_rows("squares"), of_rows("resp")
        scale0, offset0 = v.start("room", of_layout("scale")), v.start("room", of_layout("offset"))

        def joints(j):
            scale, offset = v.spread(b.load(v.at(scale0, j))), v.spread(b.load(v.at(offset0, j)))
            return [v.fma(x, scale, offset) for x in _load_rows(v, v.at(squares0, b.mul(j, block)))]

        lowest = ir.Constant(v.type, [-np.inf] * v.lanes)
        with v.repeat(i64(0), k, 1, [lowest] * VECTORS) as first:
            first.new = [v.higher(x, most) for x, most in zip(joints(first.t), first.values, strict=True)]
        most = first.new
        with v.repeat(i64(0), k, 1, [v.zero] * VECTORS) as second:
            shares = [_exp(v, b.fsub(x, top)) for x, top in zip(joints(second.t), most, strict=True)]
            _store_rows(v, shares, v.at(resp0, b.mul(second.t, block)))
            second.new = [b.fadd(x, total) for x, total in zip(shares, second.values, strict=True)]
        total = second.new
        weights = _load_rows(v, of_rows("w"))
        factors = [b.fdiv(w, x) for w, x in zip(weights, total, strict=True)]
        with v.repeat(i64(0), k, 1, []) as third:
            row = v.at(resp0, b.mul(third.t, block))
            _store_rows(v, [b.fmul(x, y) for x, y in zip(_load_rows(v, row), factors, strict=True)], row)
        _store_rows(v, most, of_rows("most"))
        _store_rows(v, total, of_rows("total"))
        return context.get_dummy_value()

    return sig, codegen


def _exp(v, x):
    """exp(x) for x <= 0; 0 where it is too small to matter: rows of no share are passed over. NaN stays."""
    b = v.b
    low, degree, mantissa = (-80.0, 10, 52) if v.bits == 64 else (-55.0, 6, 23)
    # log(2) in two parts, the first short enough for its product with a whole number to be exact
    log2 = (0.6931471803691238, 1.9082149292705877e-10) if v.bits == 64 else (0.693115234375, 3.194618494530942e-05)
    half = 0.5 * np.log(2.0)
    series = np.polynomial.Chebyshev.interpolate(np.exp, degree, [-half, half]).convert(kind=np.polynomial.Polynomial)

    def constant(value):
        return ir.Constant(v.type, [float(value)] * v.lanes)

    tiny = b.fcmp_ordered("<", x, constant(low))
    x = v.higher(constant(low), x)
    # Adding so large a number leaves the nearest whole one in the last bits.
    large = constant(1.5 * 2.0**mantissa)
    shifted = v.fma(x, constant(1.0 / np.log(2.0)), large)
    whole = b.fsub(shifted, large)
    rest = v.fma(whole, constant(-log2[1]), v.fma(whole, constant(-log2[0]), x))
    value = constant(series.coef[-1])
    for c in series.coef[-2::-1]:
        value = v.fma(value, rest, constant(c))
    bits = ir.VectorType(ir.IntType(v.bits), v.lanes)
    power = b.shl(b.bitcast(shifted, bits), ir.Constant(bits, [mantissa] * v.lanes))
    value = b.bitcast(b.add(b.bitcast(value, bits), power), v.type)
    return b.select(tiny, v.zero, value)


@intrinsic
def weigh_strip(typingctx, room, column, stride, w, center, z, block, sums, at, tiles):
    """``z = w (x - c)`` for a strip of columns; adds z (STRIP,), and z_i x_j within the strip for i <= j.

    column: the strip's first, of the first tile; w (block,); center (STRIP,); out: z (STRIP, block).
    """
    sig = types.void(room, column, stride, w, center, z, block, sums, at, tiles)

    def codegen(context, b, sig, args):
        v = Vectors("room column stride w center z block sums at tiles", context, b, sig, args)
        x0, w0, c0, z0 = (v.start("room", v[name]) for name in ("column", "w", "center", "z"))
        c = [v.spread(b.load(v.at(c0, i))) for i in range(STRIP)]
        with v.repeat(i64(0), v["tiles"], 1, [v.zero] * (STRIP + len(TRIANGLE))) as part:
            totals = part.values
            for r in range(VECTORS):
                row = b.add(b.mul(part.t, i64(VECTORS * v.lanes)), i64(r * v.lanes))
                x = _strip(v, v.at(x0, b.mul(part.t, v["stride"])), r, STRIP)
                w = v.load(v.at(w0, row))
                weighed = [b.fmul(w, b.fsub(x[i], c[i])) for i in range(STRIP)]
                for i in range(STRIP):
                    v.store(weighed[i], v.at(z0, b.add(b.mul(v["block"], i64(i)), row)))
                totals = [b.fadd(total, y) for total, y in zip(totals, weighed, strict=False)] + [
                    v.fma(weighed[i], x[j], total) for (i, j), total in zip(TRIANGLE, totals[STRIP:], strict=True)
                ]
            part.new = totals
        _add_sums(v, part.new, v.start("sums", v["at"]))
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def add_products(typingctx, room, column, stride, z, block, sums, at, tiles):
    """Adds z_i x_j (STRIP, WIDE); column: the first of WIDE, of the first tile; z (STRIP, block)."""
    sig = types.void(room, column, stride, z, block, sums, at, tiles)

    def codegen(context, b, sig, args):
        v = Vectors("room column stride z block sums at tiles", context, b, sig, args)
        x0, z0 = v.start("room", v["column"]), v.start("room", v["z"])
        with v.repeat(i64(0), v["tiles"], 1, [v.zero] * (STRIP * WIDE)) as part:
            totals = part.values
            for r in range(VECTORS):
                row = b.add(b.mul(part.t, i64(VECTORS * v.lanes)), i64(r * v.lanes))
                x = _strip(v, v.at(x0, b.mul(part.t, v["stride"])), r, WIDE)
                z = [v.load(v.at(z0, b.add(b.mul(v["block"], i64(i)), row))) for i in range(STRIP)]
                totals = [v.fma(z[i // WIDE], x[i % WIDE], total) for i, total in enumerate(totals)]
            part.new = totals
        _add_sums(v, part.new, v.start("sums", v["at"]))
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def add_squares(typingctx, room, column, stride, w, center, sums, at, tiles):
    """Adds w (x - c), then w (x - c)^2, (2, STRIP); arguments as in `weigh_strip`."""
    sig = types.void(room, column, stride, w, center, sums, at, tiles)

    def codegen(context, b, sig, args):
        v = Vectors("room column stride w center sums at tiles", context, b, sig, args)
        x0, w0, c0 = (v.start("room", v[name]) for name in ("column", "w", "center"))
        c = [v.spread(b.load(v.at(c0, i))) for i in range(STRIP)]
        with v.repeat(i64(0), v["tiles"], 1, [v.zero] * (2 * STRIP)) as part:
            linear, square = part.values[:STRIP], part.values[STRIP:]
            for r in range(VECTORS):
                row = b.add(b.mul(part.t, i64(VECTORS * v.lanes)), i64(r * v.lanes))
                x = _strip(v, v.at(x0, b.mul(part.t, v["stride"])), r, STRIP)
                w = v.load(v.at(w0, row))
                for i in range(STRIP):
                    q = b.fsub(x[i], c[i])
                    wq = b.fmul(w, q)
                    linear[i], square[i] = b.fadd(linear[i], wq), v.fma(wq, q, square[i])
            part.new = linear + square
        _add_sums(v, part.new, v.start("sums", v["at"]))
        return context.get_dummy_value()

    return sig, codegen


def _load_rows(v, pointer):
    return [v.load(v.at(pointer, r * v.lanes)) for r in range(VECTORS)]


def _store_rows(v, vectors, pointer):
    for r, vector in enumerate(vectors):
        v.store(vector, v.at(pointer, r * v.lanes))


def _strip(v, pointer, r, columns):
    """The r-th vector of rows of each of the first `columns` columns of a tile."""
    return [v.load(v.at(pointer, (i * VECTORS + r) * v.lanes)) for i in range(columns)]


def _add_sums(v, vectors, pointer):
    """Adds the sum of the lanes of each vector to successive float64 numbers."""
    b = v.b
    for first in range(0, len(vectors), v.lanes):
        group = vectors[first : first + v.lanes]
        count = len(group)
        group += [v.zero] * (v.lanes - count)
        while len(group) > 1:  # neighbouring lanes are added, so that sums end up in the order of the vectors
            group = [
                b.fadd(*(v.shuffle(x, y, range(odd, 2 * v.lanes, 2)) for odd in (0, 1)))
                for x, y in zip(group[::2], group[1::2], strict=True)
            ]
        wide = ir.VectorType(ir.DoubleType(), count)
        found = v.shuffle(group[0], group[0], range(count)) if count < v.lanes else group[0]
        at = v.at(pointer, first)
        v.store(b.fadd(v.load(at, wide), found if v.bits == 64 else b.fpext(found, wide)), at)
