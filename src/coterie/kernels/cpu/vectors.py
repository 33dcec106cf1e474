"""Vector code as wide as this CPU's registers, written as LLVM vector types.

LLVM lowers the same types to AVX-512, AVX2 or NEON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import cgutils


def _register_bytes() -> int:
    asked = numba.config.CPU_FEATURES
    features = asked.split(",") if asked else [f"+{f}" for f, on in llvm.get_host_cpu_features().items() if on]
    if "+avx512f" in features:
        return 64
    return 32 if "+avx2" in features else 16


REGISTER = _register_bytes()

i1, i32, i64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)


class Vectors:
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
        b, wide = self.b, i64(self.lanes)
        return b.mul(b.sdiv(d, wide), wide), b.mul(b.sdiv(b.add(d, i64(self.lanes - 1)), wide), wide)

    def at(self, pointer: ir.Value, index: ir.Value | int) -> ir.Value:
        return self.b.gep(pointer, [i64(index) if isinstance(index, int) else index])

    def load(self, pointer: ir.Value, kind: ir.Type | None = None) -> ir.Value:
        kind = kind or self.type
        vector = self.b.load(self.b.bitcast(pointer, kind.as_pointer()))
        vector.align = self.bits // 8 if kind.element == self.element else 4
        return vector

    def store(self, vector: ir.Value, pointer: ir.Value) -> None:
        align = 4 if vector.type.element == i32 else self.bits // 8
        self.b.store(vector, self.b.bitcast(pointer, vector.type.as_pointer()), align=align)

    def load_first(self, pointer: ir.Value, count: ir.Value, width: int) -> ir.Value:
        """`width` elements, zero from the `count`-th on; memory past it is not touched."""
        kind, mask = ir.VectorType(self.element, width), ir.VectorType(i1, width)
        lane = ir.Constant(ir.VectorType(i32, width), list(range(width)))
        inside = self.b.icmp_signed("<", lane, self.spread(self.b.trunc(count, i32), width))
        signature = ir.FunctionType(kind, [kind.as_pointer(), i32, mask, kind])
        name = f"llvm.masked.load.v{width}f{self.bits}.p0"
        function = cgutils.get_or_insert_function(self.b.module, signature, name)
        nothing = ir.Constant(kind, [0.0] * width)
        address = self.b.bitcast(pointer, kind.as_pointer())
        return self.b.call(function, [address, i32(self.bits // 8), inside, nothing])

    def prefetch(self, pointer: ir.Value) -> None:
        """Asks for a line that will be read soon; an address past the end is harmless."""
        address = self.b.bitcast(pointer, ir.IntType(8).as_pointer())
        signature = ir.FunctionType(ir.VoidType(), [address.type, i32, i32, i32])
        function = cgutils.get_or_insert_function(self.b.module, signature, "llvm.prefetch.p0")
        self.b.call(function, [address, i32(0), i32(2), i32(1)])  # read, keep in the second-level cache, data

    def spread(self, scalar: ir.Value, width: int | None = None) -> ir.Value:
        """`scalar` in every lane."""
        width = width or self.lanes
        kind = ir.VectorType(scalar.type, width)
        single = self.b.insert_element(ir.Constant(kind, ir.Undefined), scalar, i32(0))
        return self.shuffle(single, single, [0] * width)

    def shuffle(self, x: ir.Value, y: ir.Value, lanes: Sequence[int]) -> ir.Value:
        return self.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(i32, len(lanes)), list(lanes)))

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
    def loop(
        self, start: ir.Value, stop: ir.Value, step: int, carried: list[ir.Value], rolled: bool = False
    ) -> Iterator[Turns]:
        """``for t in range(start, stop, step)`` with values carried from turn to turn (zero turns allowed)."""
        b = self.b
        entry, around, after = b.block, b.append_basic_block("around"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", start, stop), around, after)
        b.position_at_end(around)
        with self.repeat(start, stop, step, carried, rolled) as turns:
            yield turns
        last = b.block
        b.branch(after)
        b.position_at_end(after)
        turns.values = [b.phi(value.type) for value in carried]
        for phi, untouched, result in zip(turns.values, carried, turns.new, strict=True):
            phi.add_incoming(untouched, entry)
            phi.add_incoming(result, last)

    @contextmanager
    def repeat(
        self, start: ir.Value, stop: ir.Value, step: int, carried: list[ir.Value], rolled: bool = False
    ) -> Iterator[Turns]:
        """The same for one turn or more; afterwards, too, `new` holds the last turn's values.

        LLVM leaves it as it is if it is to stay `rolled`: few turns would be spent on what eight at a time leave over.
        """
        b = self.b
        entry, body, done = b.block, b.append_basic_block("body"), b.append_basic_block("done")
        b.branch(body)
        b.position_at_end(body)
        turns = Turns(b.phi(i64), [b.phi(value.type) for value in carried])
        turns.t.add_incoming(start, entry)
        for phi, first in zip(turns.values, carried, strict=True):
            phi.add_incoming(first, entry)
        yield turns
        following = b.add(turns.t, i64(step))
        turns.t.add_incoming(following, b.block)
        for phi, value in zip(turns.values, turns.new, strict=True):
            phi.add_incoming(value, b.block)
        back = b.cbranch(b.icmp_signed("<", following, stop), body, done)
        if rolled:
            back.set_metadata("llvm.loop", self._not_unrolled())
        b.position_at_end(done)

    def _not_unrolled(self) -> ir.MDValue:
        """What LLVM wants to be told of a loop: a node that names itself, so that no two loops share it."""
        module = self.b.module
        told = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
        loop = ir.MDValue(module, [told], name=str(len(module.metadata)))
        loop.operands = [loop, told]
        return loop


class Turns:
    """The turns of a loop: their counter, what each begins with, and what it hands on."""

    def __init__(self, t: ir.Value, values: list[ir.Value]):
        self.t, self.values = t, values
        self.new: list[ir.Value] = []
