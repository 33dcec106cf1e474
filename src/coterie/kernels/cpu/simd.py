"""Vectors as wide as this CPU's registers, written as LLVM vector types, and the four steps built on them.

LLVM lowers the same types to AVX-512, AVX2 or NEON. Rows sit in the lanes: a *tile* is `points(itemsize)`
rows, moved to the origin and transposed to (d, points), so that scores, minima and labels need no sum across
lanes. A *panel* is `PANEL` centers, (d, PANEL).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable


def _register_bytes() -> int:
    asked = numba.config.CPU_FEATURES
    features = asked.split(",") if asked else [f"+{f}" for f, on in llvm.get_host_cpu_features().items() if on]
    if "+avx512f" in features:
        return 64
    return 32 if "+avx2" in features else 16


REGISTER = _register_bytes()
# Accumulators fill the register file: 32 registers hold 3 x 8 of them (AVX-512, NEON), 16 hold 2 x 5 (AVX2).
VECTORS, PANEL = (2, 5) if REGISTER == 32 else (3, 8)

_i1, _i32, _i64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)


@register_jitable
def points(itemsize):
    """Rows in a tile."""
    return VECTORS * REGISTER // itemsize


@register_jitable
def padded(d, itemsize):
    """Columns of an array whose rows are read as whole vectors."""
    lanes = REGISTER // itemsize
    return (d + lanes - 1) // lanes * lanes


@register_jitable
def aligned(size, like):
    """Zeros of the type of `like`, starting where a register's load starts."""
    room = np.zeros(size + REGISTER // like.itemsize, like.dtype)
    skip = (-room.ctypes.data % REGISTER) // like.itemsize
    return room[skip : skip + size]


class _Vectors:
    """Emits vector code for the element type of the first argument into one builder."""

    def __init__(self, names: str, context: Any, builder: ir.IRBuilder, sig: Any, args: Sequence[ir.Value]):
        self.context, self.b = context, builder
        self.args = dict(zip(names.split(), zip(sig.args, args, strict=True), strict=True))
        self.bits = sig.args[0].dtype.bitwidth
        self.lanes = 8 * REGISTER // self.bits
        self.narrow = min(4, self.lanes)  # columns left over by whole vectors are loaded this many at a time
        self.element = ir.FloatType() if self.bits == 32 else ir.DoubleType()
        self.type = ir.VectorType(self.element, self.lanes)
        self.zero = ir.Constant(self.type, [0.0] * self.lanes)

    def __getitem__(self, name: str) -> ir.Value:
        return self.args[name][1]

    def start(self, name: str, offset: ir.Value | int = 0) -> ir.Value:
        """Address of element `offset` of a C-contiguous array argument."""
        kind, array = self.args[name]
        return self.at(self.context.make_array(kind)(self.context, self.b, array).data, offset)

    def whole_and_padded(self, d: ir.Value) -> tuple[ir.Value, ir.Value]:
        """`d` rounded down, and up, to whole vectors."""
        b, wide = self.b, _i64(self.lanes)
        return b.mul(b.sdiv(d, wide), wide), b.mul(b.sdiv(b.add(d, _i64(self.lanes - 1)), wide), wide)

    def at(self, pointer: ir.Value, index: ir.Value | int) -> ir.Value:
        return self.b.gep(pointer, [_i64(index) if isinstance(index, int) else index])

    def load(self, pointer: ir.Value, kind: ir.Type | None = None) -> ir.Value:
        kind = kind or self.type
        vector = self.b.load(self.b.bitcast(pointer, kind.as_pointer()))
        vector.align = self.bits // 8 if kind.element == self.element else 4
        return vector

    def store(self, vector: ir.Value, pointer: ir.Value) -> None:
        align = 4 if vector.type.element == _i32 else self.bits // 8
        self.b.store(vector, self.b.bitcast(pointer, vector.type.as_pointer()), align=align)

    def load_first(self, pointer: ir.Value, count: ir.Value, width: int) -> ir.Value:
        """`width` elements, zero from the `count`-th on; memory past it is not touched."""
        kind, mask = ir.VectorType(self.element, width), ir.VectorType(_i1, width)
        lane = ir.Constant(ir.VectorType(_i32, width), list(range(width)))
        inside = self.b.icmp_signed("<", lane, self.spread(self.b.trunc(count, _i32), width))
        signature = ir.FunctionType(kind, [kind.as_pointer(), _i32, mask, kind])
        name = f"llvm.masked.load.v{width}f{self.bits}.p0"
        function = cgutils.get_or_insert_function(self.b.module, signature, name)
        nothing = ir.Constant(kind, [0.0] * width)
        address = self.b.bitcast(pointer, kind.as_pointer())
        return self.b.call(function, [address, _i32(self.bits // 8), inside, nothing])

    def prefetch(self, pointer: ir.Value) -> None:
        """Asks for a line that will be read soon; an address past the end is harmless."""
        address = self.b.bitcast(pointer, ir.IntType(8).as_pointer())
        signature = ir.FunctionType(ir.VoidType(), [address.type, _i32, _i32, _i32])
        function = cgutils.get_or_insert_function(self.b.module, signature, "llvm.prefetch.p0")
        self.b.call(function, [address, _i32(0), _i32(2), _i32(1)])  # read, keep in the second-level cache, data

    def spread(self, scalar: ir.Value, width: int | None = None) -> ir.Value:
        """`scalar` in every lane."""
        width = width or self.lanes
        kind = ir.VectorType(scalar.type, width)
        single = self.b.insert_element(ir.Constant(kind, ir.Undefined), scalar, _i32(0))
        return self.shuffle(single, single, [0] * width)

    def shuffle(self, x: ir.Value, y: ir.Value, lanes: Sequence[int]) -> ir.Value:
        return self.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(_i32, len(lanes)), list(lanes)))

    def fma(self, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
        signature = ir.FunctionType(self.type, [self.type] * 3)
        name = f"llvm.fmuladd.v{self.lanes}f{self.bits}"  # fused where the CPU can
        return self.b.call(cgutils.get_or_insert_function(self.b.module, signature, name), [x, y, z])

    def lower(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.select(self.b.fcmp_ordered("<", x, y), x, y)

    def higher(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.select(self.b.fcmp_ordered(">", x, y), x, y)

    def columns(self, rows: list[ir.Value]) -> list[ir.Value]:
        """`lanes` rows of equally many columns, transposed: one vector a column."""
        while rows[0].type.count < self.lanes:  # rows narrower than a vector are put side by side first
            both = range(2 * rows[0].type.count)
            rows = [self.shuffle(x, y, both) for x, y in zip(rows[::2], rows[1::2], strict=True)]
        return self._unzip(rows)

    def _unzip(self, vectors: list[ir.Value]) -> list[ir.Value]:
        if len(vectors) == 1:
            return vectors
        pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
        even, odd = (
            self._unzip([self.shuffle(x, y, range(first, 2 * self.lanes, 2)) for x, y in pairs]) for first in (0, 1)
        )
        return [column for both in zip(even, odd, strict=True) for column in both]

    @contextmanager
    def loop(self, start: ir.Value, stop: ir.Value, step: int, carried: list[ir.Value]) -> Iterator[_Loop]:
        """``for t in range(start, stop, step)`` with values carried from turn to turn (zero turns allowed)."""
        b = self.b
        entry, around, after = b.block, b.append_basic_block("around"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", start, stop), around, after)
        b.position_at_end(around)
        with self.repeat(start, stop, step, carried) as turns:
            yield turns
        last = b.block
        b.branch(after)
        b.position_at_end(after)
        turns.values = [b.phi(value.type) for value in carried]
        for phi, untouched, result in zip(turns.values, carried, turns.new, strict=True):
            phi.add_incoming(untouched, entry)
            phi.add_incoming(result, last)

    @contextmanager
    def repeat(self, start: ir.Value, stop: ir.Value, step: int, carried: list[ir.Value]) -> Iterator[_Loop]:
        """The same for one turn or more; afterwards, too, `new` holds the last turn's values."""
        b = self.b
        entry, body, done = b.block, b.append_basic_block("body"), b.append_basic_block("done")
        b.branch(body)
        b.position_at_end(body)
        turns = _Loop(b.phi(_i64), [b.phi(value.type) for value in carried])
        turns.t.add_incoming(start, entry)
        for phi, first in zip(turns.values, carried, strict=True):
            phi.add_incoming(first, entry)
        yield turns
        following = b.add(turns.t, _i64(step))
        turns.t.add_incoming(following, b.block)
        for phi, value in zip(turns.values, turns.new, strict=True):
            phi.add_incoming(value, b.block)
        b.cbranch(b.icmp_signed("<", following, stop), body, done)
        b.position_at_end(done)


class _Loop:
    def __init__(self, t: ir.Value, values: list[ir.Value]):
        self.t, self.values = t, values
        self.new: list[ir.Value] = []


@intrinsic
def load_tile(typingctx, X, rows, shift, inverse, tile, norm, at, ahead, d):
    """Rows ``rows[at:at + points]`` as a tile: ``(x - shift) * inverse``, transposed.

    X (n, d), of which the rows `ahead` are asked for early; shift (padded d,); out: tile (padded d, points) from
    ``at * padded d`` on, norm (...,) squared lengths from `at` on.
    """
    sig = types.void(X, rows, shift, inverse, tile, norm, at, ahead, d)

    def codegen(context, b, sig, args):
        v = _Vectors("X rows shift inverse tile norm at ahead d", context, b, sig, args)
        d, at = v["d"], v["at"]
        whole, height = v.whole_and_padded(d)
        x0, rows0, shift0, norm0 = v.start("X"), v.start("rows", at), v.start("shift"), v.start("norm", at)
        tile0 = v.start("tile", b.mul(at, height))
        factor = v.spread(v["inverse"])
        next_block = b.mul(v["ahead"], d)

        def place(t, columns, squares, first):
            for u, column in enumerate(columns):
                row = b.add(t, _i64(u))
                moved = b.fmul(b.fsub(column, v.spread(b.load(v.at(shift0, row)))), factor)
                v.store(moved, v.at(v.at(tile0, b.mul(row, _i64(VECTORS * v.lanes))), first))
                squares = v.fma(moved, moved, squares)
            return [squares]

        with v.repeat(_i64(0), _i64(VECTORS * v.lanes), v.lanes, []) as group:
            first = group.t
            x = [v.at(x0, b.mul(b.load(v.at(rows0, b.add(first, _i64(i)))), d)) for i in range(v.lanes)]
            with v.loop(_i64(0), whole, v.lanes, [v.zero]) as block:
                columns = v.columns([v.load(v.at(row, block.t)) for row in x])
                block.new = place(block.t, columns, *block.values, first)
                for row in x:
                    v.prefetch(v.at(row, b.add(block.t, next_block)))
            with v.loop(whole, d, v.narrow, block.values) as rest:
                left = b.sub(d, rest.t)
                columns = v.columns([v.load_first(v.at(row, rest.t), left, v.narrow) for row in x])
                rest.new = place(rest.t, columns, *rest.values, first)
            v.store(rest.values[0], v.at(norm0, first))
        return context.get_dummy_value()

    return sig, codegen


def _against_panel(v, start, step):
    """One accumulator for each (center, vector of rows), taken through all columns by `step`."""
    b = v.b
    tile0, panel0 = v.start("tile", v["tile_at"]), v.start("panels", v["panel_at"])
    flat = [value for value in start for _ in range(VECTORS)]
    with v.repeat(_i64(0), v["d"], 1, flat) as column:
        x_t = v.at(tile0, b.mul(column.t, _i64(VECTORS * v.lanes)))
        c_t = v.at(panel0, b.mul(column.t, _i64(PANEL)))
        x = [v.load(v.at(x_t, r * v.lanes)) for r in range(VECTORS)]
        for j in range(PANEL):
            c = v.spread(b.load(v.at(c_t, j)))
            column.new += [step(x[r], c, column.values[j * VECTORS + r]) for r in range(VECTORS)]
    return [column.new[j * VECTORS : (j + 1) * VECTORS] for j in range(PANEL)]


@intrinsic
def score_panel(typingctx, tile, tile_at, panels, panel_at, half, first, best, second, index, at, d):
    """Scores of a tile against a panel, folded into the two best of each row.

    A score is ``|c|^2 / 2 - x.c``: half the squared distance, less what all centers share. panels hold -c, half
    (k,) holds |c|^2 / 2, `first` is the number of the panel's first center; best, second, index from `at` on.
    """
    sig = types.void(tile, tile_at, panels, panel_at, half, first, best, second, index, at, d)

    def codegen(context, b, sig, args):
        names = "tile tile_at panels panel_at half first best second index at d"
        v = _Vectors(names, context, b, sig, args)
        half0 = v.start("half", v["first"])
        scores = _against_panel(v, [v.spread(b.load(v.at(half0, j))) for j in range(PANEL)], v.fma)
        numbers = [v.spread(b.add(b.trunc(v["first"], _i32), _i32(j))) for j in range(PANEL)]
        state = [v.start(name, v["at"]) for name in ("best", "second", "index")]
        for r in range(VECTORS):
            at_best, at_second, at_index = (v.at(pointer, r * v.lanes) for pointer in state)
            low, runner_up = v.load(at_best), v.load(at_second)
            which = v.load(at_index, ir.VectorType(_i32, v.lanes))
            for score, number in zip((scores[j][r] for j in range(PANEL)), numbers, strict=True):
                nearer = b.fcmp_ordered("<", score, low)
                runner_up = v.lower(v.higher(score, low), runner_up)
                which = b.select(nearer, number, which)
                low = b.select(nearer, score, low)
            v.store(low, at_best)
            v.store(runner_up, at_second)
            v.store(which, at_index)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def improve_panel(typingctx, tile, tile_at, panels, panel_at, chosen, near, heavy, sums, sums_at, d):
    """Adds ``heavy * min(near, |x - c|^2)`` of a tile's rows to the lanes of every center of a panel.

    near, heavy (points,); sums (..., PANEL, points) from `sums_at` on. If `chosen`, the panel's first center is one
    for good: `near` is brought up to date with it first. Distances are direct, so they do not cancel.
    """
    sig = types.void(tile, tile_at, panels, panel_at, chosen, near, heavy, sums, sums_at, d)

    def codegen(context, b, sig, args):
        names = "tile tile_at panels panel_at chosen near heavy sums sums_at d"
        v = _Vectors(names, context, b, sig, args)

        def square(x, c, total):
            difference = b.fsub(x, c)
            return v.fma(difference, difference, total)

        squares = _against_panel(v, [v.zero] * PANEL, square)
        near0, heavy0, sums0 = v.start("near"), v.start("heavy"), v.start("sums", v["sums_at"])
        for r in range(VECTORS):
            near = v.load(v.at(near0, r * v.lanes))
            near = b.select(v["chosen"], v.lower(squares[0][r], near), near)
            v.store(near, v.at(near0, r * v.lanes))
            heavy = v.load(v.at(heavy0, r * v.lanes))
            for j in range(PANEL):
                at = v.at(sums0, (j * VECTORS + r) * v.lanes)
                v.store(v.fma(heavy, v.lower(squares[j][r], near), v.load(at)), at)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def add_row(typingctx, X, x_at, centers, c_at, inverse, w, sums, s_at, d):
    """Adds one row to the sums of its cluster: ``q = (x - c) * inverse``, sums += w q, then w q^2 behind them.

    centers (..., padded d) from `c_at` on; sums (..., padded d + lanes) from `s_at` on, the last vector the cost.
    """
    sig = types.void(X, x_at, centers, c_at, inverse, w, sums, s_at, d)

    def codegen(context, b, sig, args):
        v = _Vectors("X x_at centers c_at inverse w sums s_at d", context, b, sig, args)
        d = v["d"]
        x0, c0, s0 = v.start("X", v["x_at"]), v.start("centers", v["c_at"]), v.start("sums", v["s_at"])
        whole, height = v.whole_and_padded(d)
        cost_at = v.at(s0, height)
        factor, weight = v.spread(v["inverse"]), v.spread(v["w"])

        def add(t, x, cost):
            q = b.fmul(b.fsub(x, v.load(v.at(c0, t))), factor)
            wq = b.fmul(q, weight)
            v.store(b.fadd(v.load(v.at(s0, t)), wq), v.at(s0, t))
            return [v.fma(wq, q, cost)]

        with v.loop(_i64(0), whole, v.lanes, [v.load(cost_at)]) as block:
            block.new = add(block.t, v.load(v.at(x0, block.t)), *block.values)
        with v.loop(whole, d, v.lanes, block.values) as rest:
            rest.new = add(rest.t, v.load_first(v.at(x0, rest.t), b.sub(d, rest.t), v.lanes), *rest.values)
        v.store(rest.values[0], cost_at)
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def add_lanes(typingctx, tile, tile_at, w, index, label, c, out, filled, d_padded):
    """Sums over the rows of `filled` / points tiles that bear `label`, lane by lane: w, w q, w q^2 for ``q = x - c``.

    tile: one column of the first tile at `tile_at`, that of the next tile ``points * d_padded`` further on; w, index
    (filled,); out (3 * lanes,).
    """
    sig = types.void(tile, tile_at, w, index, label, c, out, filled, d_padded)

    def codegen(context, b, sig, args):
        v = _Vectors("tile tile_at w index label c out filled d_padded", context, b, sig, args)
        tile0, w0, index0, out0 = v.start("tile", v["tile_at"]), v.start("w"), v.start("index"), v.start("out")
        label, c = v.spread(b.trunc(v["label"], _i32)), v.spread(v["c"])
        with v.repeat(_i64(0), v["filled"], VECTORS * v.lanes, [v.zero] * 3) as block:
            weight, linear, square = block.values
            for r in range(VECTORS):
                row = b.add(block.t, _i64(r * v.lanes))
                x = v.load(v.at(v.at(tile0, b.mul(block.t, v["d_padded"])), r * v.lanes))
                mine = b.icmp_signed("==", v.load(v.at(index0, row), ir.VectorType(_i32, v.lanes)), label)
                w = b.select(mine, v.load(v.at(w0, row)), v.zero)
                q = b.fsub(x, c)
                wq = b.fmul(w, q)
                weight, linear, square = b.fadd(weight, w), b.fadd(linear, wq), v.fma(wq, q, square)
            block.new = [weight, linear, square]
        for i, total in enumerate(block.new):
            v.store(total, v.at(out0, i * v.lanes))
        return context.get_dummy_value()

    return sig, codegen
