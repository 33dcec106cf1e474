"""Inner loops of mixtures and fuzzy c-means as vector code: squares, posteriors, and weighted products.

A *block* is some tiles (see `simd`) with the distance `stride`; the columns of a tile are padded to whole strips of
`STRIP`. Values of rows and components are in (k, block) arrays. All arrays are parts of one array, `buffer`, and
arguments are their start indices. Sums over the rows of a block are added to a float64 array `sums`, from `at` on.
"""

import numpy as np
from llvmlite import ir

from coterie.kernels.cpu.simd import VECTORS
from coterie.kernels.cpu.vectors import REGISTER, i64, vector_code

STRIP = 4  # columns, or components, that are processed together
# Columns that a strip is multiplied with: 16 registers hold 4 x 2 accumulators.
PRODUCT_COLUMNS = 2 if REGISTER == 32 else 4
TRIANGLE = [(i, j) for i in range(STRIP) for j in range(i, STRIP)]


@vector_code
def triangle_squares(v, buffer, tile, factor, squares, columns):
    """``|U'x - b|^2`` of the rows of a tile.

    `factor` contains, for each strip of columns, STRIP values of -b, then the strip of U down to the diagonal.
    """
    with v.repeat(i64(0), columns, STRIP, [v.zero] * VECTORS) as strip:
        y = _triangle(v, strip.t)
        strip.new = strip.values
        for outputs in y:
            strip.new = [v.fma(x, x, total) for x, total in zip(outputs, strip.new, strict=True)]
    _store_rows(v, strip.new, v.start(buffer, squares))


@vector_code
def whiten(v, buffer, tile, factor, out, columns):
    """``U'x - b`` of the rows of a tile, written as a tile to `out`; factor as in `triangle_squares`."""
    b = v.b
    with v.repeat(i64(0), columns, STRIP, []) as strip:
        for i, outputs in enumerate(_triangle(v, strip.t)):
            row = b.mul(b.add(strip.t, i64(i)), i64(VECTORS * v.lanes))
            _store_rows(v, outputs, v.at(v.start(buffer, out), row))


def _triangle(v, first):
    """A strip of ``U'x - b`` from column `first` on: VECTORS vectors of rows for each of its columns."""
    b = v.b
    tile0 = v.start(v["buffer"], v["tile"])
    before = b.add(first, b.sdiv(b.mul(first, b.add(first, i64(STRIP))), i64(2)))  # size of the earlier strips
    bias = v.at(v.start(v["buffer"], v["factor"]), before)
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


@vector_code
def center_squares(v, buffer, tile, panel, squares, block, columns):
    """``|x - c|^2`` of the rows of a tile and STRIP centers; panel (columns, STRIP)."""
    b = v.b

    def square(x, panel_t, j, total):
        return v.add_square(b.fsub(x, v.spread(b.load(v.at(panel_t, j)))), total)

    _panel_squares(v, STRIP, square)


@vector_code
def scaled_squares(v, buffer, tile, panel, squares, block, columns):
    """Sums of ``(p x - b)^2`` over the columns, likewise; panel (columns, 2, STRIP): p, then -b."""
    b = v.b

    def square(x, panel_t, j, total):
        p, bias = (v.spread(b.load(v.at(panel_t, i))) for i in (j, STRIP + j))
        return v.add_square(v.fma(x, p, bias), total)

    _panel_squares(v, 2 * STRIP, square)


def _panel_squares(v, width, step):
    """Totals of all pairs of component and vector of rows, updated by `step` in each column."""
    b = v.b
    tile0, panel0 = v.start(v["buffer"], v["tile"]), v.start(v["buffer"], v["panel"])
    with v.repeat(i64(0), v["columns"], 1, [v.zero] * (STRIP * VECTORS)) as column:
        x = _load_rows(v, v.at(tile0, b.mul(column.t, i64(VECTORS * v.lanes))))
        panel_t = v.at(panel0, b.mul(column.t, i64(width)))
        column.new = [
            step(x[r], panel_t, j, column.values[j * VECTORS + r]) for j in range(STRIP) for r in range(VECTORS)
        ]
    squares0 = v.start(v["buffer"], v["squares"])
    for j in range(STRIP):
        row = v.at(squares0, b.mul(v["block"], i64(j)))
        _store_rows(v, column.new[j * VECTORS : (j + 1) * VECTORS], row)


@vector_code
def posterior(v, buffer, layout, at):
    """Posteriors of the rows of a tile, times w, from log p(x, z) = ``offset + scale * squares``.

    `layout` is that of `buffer`; the rows of the tile begin at `at`. log p(x) is ``log_max + log(total)``.
    """
    b = v.b
    field, rows_of = layout_access(v)
    k, block = field("k"), field("block")
    squares0, resp0 = rows_of("squares"), rows_of("resp")
    scale0, offset0 = v.start(buffer, field("scale")), v.start(buffer, field("offset"))

    def joints(j):
        scale, offset = v.spread(b.load(v.at(scale0, j))), v.spread(b.load(v.at(offset0, j)))
        return [v.fma(x, scale, offset) for x in _load_rows(v, v.at(squares0, b.mul(j, block)))]

    lowest = v.constant(-np.inf)
    with v.repeat(i64(0), k, 1, [lowest] * VECTORS) as first:
        first.new = [v.higher(x, log_max) for x, log_max in zip(joints(first.t), first.values, strict=True)]
    log_max = first.new
    with v.repeat(i64(0), k, 1, [v.zero] * VECTORS) as second:
        shares = [_exp(v, b.fsub(x, maximum)) for x, maximum in zip(joints(second.t), log_max, strict=True)]
        _store_rows(v, shares, v.at(resp0, b.mul(second.t, block)))
        second.new = [b.fadd(x, total) for x, total in zip(shares, second.values, strict=True)]
    total = second.new
    weights = _load_rows(v, rows_of("w"))
    factors = [b.fdiv(w, x) for w, x in zip(weights, total, strict=True)]
    with v.repeat(i64(0), k, 1, []) as third:
        row = v.at(resp0, b.mul(third.t, block))
        _store_rows(v, [b.fmul(x, y) for x, y in zip(_load_rows(v, row), factors, strict=True)], row)
    _store_rows(v, log_max, rows_of("log_max"))
    _store_rows(v, total, rows_of("total"))


def _exp(v, x):
    """exp(x) for x <= 0; 0 if it is negligible, so that rows can be skipped. NaN stays NaN."""
    b = v.b
    low, degree, mantissa = (-80.0, 10, 52) if v.bits == 64 else (-55.0, 6, 23)
    # log(2) in two parts; the first is short enough for its product with an integer to be exact
    log2 = (0.6931471803691238, 1.9082149292705877e-10) if v.bits == 64 else (0.693115234375, 3.194618494530942e-05)
    half = 0.5 * np.log(2.0)
    series = np.polynomial.Chebyshev.interpolate(np.exp, degree, [-half, half]).convert(kind=np.polynomial.Polynomial)

    is_tiny = b.fcmp_ordered("<", x, v.constant(low))
    x = v.higher(v.constant(low), x)
    # Adding a large number leaves the nearest integer in the last bits.
    large = v.constant(1.5 * 2.0**mantissa)
    shifted = v.fma(x, v.constant(1.0 / np.log(2.0)), large)
    whole = b.fsub(shifted, large)
    remainder = v.fma(whole, v.constant(-log2[1]), v.fma(whole, v.constant(-log2[0]), x))
    value = v.constant(series.coef[-1])
    for c in series.coef[-2::-1]:
        value = v.fma(value, remainder, v.constant(c))
    bits = ir.VectorType(ir.IntType(v.bits), v.lanes)
    power = b.shl(b.bitcast(shifted, bits), v.constant(mantissa, bits))
    value = b.bitcast(b.add(b.bitcast(value, bits), power), v.type)
    return b.select(is_tiny, v.zero, value)


@vector_code
def weighted_strip(v, buffer, column, stride, w, center, z, block, sums, at, tiles):
    """Write ``z = w (x - c)`` for a strip of columns; add z (STRIP,), and z_i x_j within the strip for i <= j.

    column: start of the strip in the first tile; w (block,); center (STRIP,); out: z (STRIP, block).
    """
    b = v.b
    w0, c0, z0 = (v.start(buffer, part) for part in (w, center, z))
    c = [v.spread(b.load(v.at(c0, i))) for i in range(STRIP)]

    def step(row, x, totals):
        w = v.load(v.at(w0, row))
        weighted = [b.fmul(w, b.fsub(x[i], c[i])) for i in range(STRIP)]
        for i in range(STRIP):
            v.store(weighted[i], v.at(z0, b.add(b.mul(block, i64(i)), row)))
        return [b.fadd(total, y) for total, y in zip(totals, weighted, strict=False)] + [
            v.fma(weighted[i], x[j], total) for (i, j), total in zip(TRIANGLE, totals[STRIP:], strict=True)
        ]

    _add_sums(v, sum_over_tiles(v, STRIP, STRIP + len(TRIANGLE), step), v.start(sums, at))


@vector_code
def add_products(v, buffer, column, stride, z, block, sums, at, tiles):
    """Add z_i x_j (STRIP, PRODUCT_COLUMNS); column: start of these columns in the first tile; z (STRIP, block)."""
    b = v.b
    z0 = v.start(buffer, z)

    def step(row, x, totals):
        z = [v.load(v.at(z0, b.add(b.mul(block, i64(i)), row))) for i in range(STRIP)]
        return [v.fma(z[i // PRODUCT_COLUMNS], x[i % PRODUCT_COLUMNS], total) for i, total in enumerate(totals)]

    totals = sum_over_tiles(v, PRODUCT_COLUMNS, STRIP * PRODUCT_COLUMNS, step)
    _add_sums(v, totals, v.start(sums, at))


@vector_code
def add_squares(v, buffer, column, stride, w, center, sums, at, tiles):
    """Add w (x - c), then w (x - c)^2, (2, STRIP); arguments as in `weighted_strip`."""
    b = v.b
    w0, c0 = v.start(buffer, w), v.start(buffer, center)
    c = [v.spread(b.load(v.at(c0, i))) for i in range(STRIP)]

    def step(row, x, totals):
        linear, square = totals[:STRIP], totals[STRIP:]
        w = v.load(v.at(w0, row))
        for i in range(STRIP):
            q = b.fsub(x[i], c[i])
            wq = b.fmul(w, q)
            linear[i], square[i] = b.fadd(linear[i], wq), v.fma(wq, q, square[i])
        return linear + square

    _add_sums(v, sum_over_tiles(v, STRIP, 2 * STRIP, step), v.start(sums, at))


def layout_access(v):
    """Functions of a name: the field of the argument `layout`, and the address of that array from `at` on."""
    layout = v["layout"]

    def field(name):
        return v.b.extract_value(layout.value, layout.kind.fields.index(name))

    return field, lambda name: v.start(v["buffer"], v.b.add(field(name), v["at"]))


def _load_rows(v, pointer):
    return [v.load(v.at(pointer, r * v.lanes)) for r in range(VECTORS)]


def _store_rows(v, vectors, pointer):
    for r, vector in enumerate(vectors):
        v.store(vector, v.at(pointer, r * v.lanes))


def sum_over_tiles(v, columns, count, step):
    """`count` totals over the rows of all tiles, which ``step(row, x, totals)`` updates for each vector of rows.

    `row` is its index in the block, and `x` has one vector for each of `columns` columns from `column` on.
    """
    b, x0 = v.b, v.start(v["buffer"], v["column"])
    with v.repeat(i64(0), v["tiles"], 1, [v.zero] * count) as part:
        part.new = part.values
        for r in range(VECTORS):
            row = b.add(b.mul(part.t, i64(VECTORS * v.lanes)), i64(r * v.lanes))
            tile = v.at(x0, b.mul(part.t, v["stride"]))
            part.new = step(row, [v.load(v.at(tile, (i * VECTORS + r) * v.lanes)) for i in range(columns)], part.new)
    return part.new


def _add_sums(v, vectors, pointer):
    """Add the sum of the lanes of each vector to consecutive float64 numbers."""
    b = v.b
    for first in range(0, len(vectors), v.lanes):
        group = vectors[first : first + v.lanes]
        count = len(group)
        group += [v.zero] * (v.lanes - count)
        while len(group) > 1:  # neighbouring lanes are added, so that sums are in the order of the vectors
            group = [
                b.fadd(*(v.shuffle(x, y, range(odd, 2 * v.lanes, 2)) for odd in (0, 1)))
                for x, y in zip(group[::2], group[1::2], strict=True)
            ]
        wide = ir.VectorType(ir.DoubleType(), count)
        sums = v.shuffle(group[0], group[0], range(count)) if count < v.lanes else group[0]
        at = v.at(pointer, first)
        v.store(b.fadd(v.load(at, wide), sums if v.bits == 64 else b.fpext(sums, wide)), at)
