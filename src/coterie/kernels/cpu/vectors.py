"""Vector code with the width of the registers of the CPU level, as LLVM vector types.

LLVM lowers the same types to AVX-512, AVX2 or NEON.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from coterie.kernels.cpu.level import level

REGISTER = level().register  # size of a vector register in bytes

i1, i32, i64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)


def vector_code(emit: Callable[..., ir.Value | None] | None = None, *, returns: Any = types.void) -> Any:
    """Decorator of ``emit(v, *arguments)``: an intrinsic with these arguments, whose code it emits by `v`.

    Arguments are numbers, or `Argument`s if they are arrays or tuples. ``v[name]`` is the same, for code that
    intrinsics share. `emit` returns the result, if it is not void.
    """
    if emit is None:
        return partial(vector_code, returns=returns)
    names = list(inspect.signature(emit).parameters)[1:]

    @intrinsic
    @wraps(emit)
    def typed(typingctx, *kinds):
        def codegen(context, builder, sig, values):
            v = Vectors(names, context, builder, sig, values)
            result = emit(v, *v.arguments.values())
            return context.get_dummy_value() if result is None else result

        return returns(*kinds), codegen

    return typed


class Argument(NamedTuple):
    """An array or a tuple that an intrinsic is called with."""

    kind: Any
    value: ir.Value


class Vectors:
    """Emits vector code for the (element) type of the first argument into one builder."""

    def __init__(self, names: list[str], context: Any, builder: ir.IRBuilder, sig: Any, values: Sequence[ir.Value]):
        self.context, self.b = context, builder
        self.arguments = {
            name: Argument(kind, value) if isinstance(kind, types.Array | types.BaseTuple) else value
            for name, kind, value in zip(names, sig.args, values, strict=True)
        }
        self.bits = getattr(sig.args[0], "dtype", sig.args[0]).bitwidth
        self.lanes = 8 * REGISTER // self.bits
        self.narrow = min(4, self.lanes)  # remaining columns, fewer than a vector, are loaded in groups of this size
        self.element = ir.FloatType() if self.bits == 32 else ir.DoubleType()
        self.type = ir.VectorType(self.element, self.lanes)
        self.zero = self.constant(0.0)

    def __getitem__(self, name: str) -> ir.Value | Argument:
        return self.arguments[name]

    def constant(self, value: float, kind: ir.Type | None = None) -> ir.Constant:
        """`value` in all lanes."""
        kind = kind or self.type
        number = int if isinstance(kind.element, ir.IntType) else float
        return ir.Constant(kind, [number(value)] * kind.count)

    def start(self, array: Argument, offset: ir.Value | int = 0) -> ir.Value:
        """Address of element `offset` of a C-contiguous array argument."""
        return self.at(self.context.make_array(array.kind)(self.context, self.b, array.value).data, offset)

    def whole_and_padded(self, d: ir.Value) -> tuple[ir.Value, ir.Value]:
        """`d` rounded down and up to whole vectors."""
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
        """The first `count` of `width` elements, then zeros; memory after them is not read."""
        kind, mask = ir.VectorType(self.element, width), ir.VectorType(i1, width)
        lane = ir.Constant(ir.VectorType(i32, width), list(range(width)))
        is_inside = self.b.icmp_signed("<", lane, self.spread(self.b.trunc(count, i32), width))
        signature = ir.FunctionType(kind, [kind.as_pointer(), i32, mask, kind])
        name = f"llvm.masked.load.v{width}f{self.bits}.p0"
        function = cgutils.get_or_insert_function(self.b.module, signature, name)
        address = self.b.bitcast(pointer, kind.as_pointer())
        return self.b.call(function, [address, i32(self.bits // 8), is_inside, self.constant(0.0, kind)])

    def prefetch(self, pointer: ir.Value) -> None:
        """Prefetch a cache line; the address can be past the end of an array."""
        address = self.b.bitcast(pointer, ir.IntType(8).as_pointer())
        signature = ir.FunctionType(ir.VoidType(), [address.type, i32, i32, i32])
        function = cgutils.get_or_insert_function(self.b.module, signature, "llvm.prefetch.p0")
        self.b.call(function, [address, i32(0), i32(2), i32(1)])  # read, keep in the second-level cache, data

    def spread(self, scalar: ir.Value, width: int | None = None) -> ir.Value:
        """`scalar` in all lanes."""
        width = width or self.lanes
        kind = ir.VectorType(scalar.type, width)
        single = self.b.insert_element(ir.Constant(kind, ir.Undefined), scalar, i32(0))
        return self.shuffle(single, single, [0] * width)

    def shuffle(self, x: ir.Value, y: ir.Value, lanes: Sequence[int]) -> ir.Value:
        return self.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(i32, len(lanes)), list(lanes)))

    def call(self, name: str, *args: ir.Value) -> ir.Value:
        """Call an LLVM intrinsic of vectors, such as sqrt."""
        kind = args[0].type
        signature, name = ir.FunctionType(kind, [kind] * len(args)), f"llvm.{name}.v{kind.count}f{self.bits}"
        return self.b.call(cgutils.get_or_insert_function(self.b.module, signature, name), args)

    def fma(self, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
        """x * y + z, fused if the CPU supports it."""
        return self.call("fmuladd", x, y, z)

    def add_square(self, x: ir.Value, total: ir.Value) -> ir.Value:
        """total + x^2."""
        return self.fma(x, x, total)

    def lower(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.select(self.b.fcmp_ordered("<", x, y), x, y)

    def higher(self, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.b.select(self.b.fcmp_ordered(">", x, y), x, y)

    def columns(self, rows: list[ir.Value]) -> list[ir.Value]:
        """Transpose `lanes` rows with equally many columns: one vector for each column."""
        while rows[0].type.count < self.lanes:  # rows shorter than a vector are concatenated first
            both = range(2 * rows[0].type.count)
            rows = [self.shuffle(x, y, both) for x, y in zip(rows[::2], rows[1::2], strict=True)]
        return self._unzip(rows)

    def deinterleave(self, vectors: list[ir.Value]) -> list[ir.Value]:
        """Columns of `lanes` rows that are stored one after the other in as many vectors as there are columns."""
        d = len(vectors)
        if d & (d - 1) == 0:
            return self._unzip(vectors)
        columns = []
        for t in range(d):
            places = [divmod(lane * d + t, self.lanes) for lane in range(self.lanes)]  # vector and lane of each row
            column = vectors[0]
            for i in range(1, d):
                lanes = [
                    self.lanes + place if vector == i else (place if i == 1 else lane)
                    for lane, (vector, place) in enumerate(places)
                ]
                column = self.shuffle(column, vectors[i], lanes)
            columns.append(column)
        return columns

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
    ) -> "Iterator[Iterations]":
        """``for t in range(start, stop, step)`` with values carried from one iteration to the next."""
        b = self.b
        entry, around, after = b.block, b.append_basic_block("around"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", start, stop), around, after)
        b.position_at_end(around)
        with self.repeat(start, stop, step, carried, rolled) as iterations:
            yield iterations
        last = b.block
        b.branch(after)
        b.position_at_end(after)
        iterations.values = [b.phi(value.type) for value in carried]
        for phi, initial, result in zip(iterations.values, carried, iterations.new, strict=True):
            phi.add_incoming(initial, entry)
            phi.add_incoming(result, last)

    @contextmanager
    def repeat(
        self, start: ir.Value, stop: ir.Value, step: int, carried: list[ir.Value], rolled: bool = False
    ) -> "Iterator[Iterations]":
        """The same for at least one iteration; `new` are the values of the last one, also after the loop.

        With `rolled`, LLVM does not unroll the loop: short loops would spend most iterations in the remainder.
        """
        b = self.b
        entry, body, done = b.block, b.append_basic_block("body"), b.append_basic_block("done")
        b.branch(body)
        b.position_at_end(body)
        iterations = Iterations(b.phi(i64), [b.phi(value.type) for value in carried])
        iterations.t.add_incoming(start, entry)
        for phi, first in zip(iterations.values, carried, strict=True):
            phi.add_incoming(first, entry)
        yield iterations
        following = b.add(iterations.t, i64(step))
        iterations.t.add_incoming(following, b.block)
        for phi, value in zip(iterations.values, iterations.new, strict=True):
            phi.add_incoming(value, b.block)
        back = b.cbranch(b.icmp_signed("<", following, stop), body, done)
        if rolled:
            back.set_metadata("llvm.loop", self._not_unrolled())
        b.position_at_end(done)

    def _not_unrolled(self) -> ir.MDValue:
        """Metadata of a loop: a node that refers to itself, so that each loop has its own."""
        module = self.b.module
        option = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])
        loop = ir.MDValue(module, [option], name=str(len(module.metadata)))
        loop.operands = [loop, option]
        return loop


class Iterations:
    """Iterations of a loop: the counter, the values at the beginning of an iteration, and those for the next one."""

    def __init__(self, t: ir.Value, values: list[ir.Value]):
        self.t, self.values = t, values
        self.new: list[ir.Value] = []
