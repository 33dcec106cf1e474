"""Products of CSR rows with tables of dense ones; `plain.products` says what they are.

A stored value meets k numbers that lie side by side, so tables lie column by column, each in whole vectors: (d, padded
k). What a row has of its k numbers stays in registers while its values go by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.simd import aligned, padded
from coterie.kernels.cpu.vectors import REGISTER, Vectors, i64

LANES = REGISTER // 8
WIDEST = 8  # vectors of a row's numbers that are in registers together
ROWS = 32  # whose shares are aligned together: a load across two cache lines waits for all stores before it


def products(X: Any, table: np.ndarray) -> np.ndarray:
    (n, d), k = X.shape, len(table)
    columns, out = aligned(d * padded(k, 8), np.empty(0)), np.empty(n * k + LANES)  # a whole vector goes past the end
    columns.reshape(d, -1)[:, :k] = table.T
    add_up(_floats(X.data), X.indices, X.indptr, columns, k, out)
    return out[: n * k].reshape(n, k)


def weighted(X: Any, resp: np.ndarray) -> np.ndarray:
    d, k = X.shape[1], resp.shape[1]
    room, sums = (aligned(rows * padded(k, 8), np.empty(0)) for rows in (ROWS, d))
    spread(_floats(X.data), X.indices, X.indptr, np.ascontiguousarray(resp), room, sums)
    return sums.reshape(d, -1)[:, :k].T


def _floats(data: np.ndarray) -> np.ndarray:
    return data if data.dtype in (np.float32, np.float64) else data.astype(np.float64)


@jit
def add_up(
    data,  # in  (stored,)
    indices,  # in  (stored,)
    indptr,  # in  (n + 1,)
    columns,  # in  (d * padded k,)
    k,  # in
    out,  # out (n * k + LANES,)
):
    """x . t"""
    stride = padded(k, 8)
    vectors = stride // LANES
    for i in range(indptr.shape[0] - 1):
        start, stop = np.int64(indptr[i]), np.int64(indptr[i + 1])
        for first in range(0, vectors, WIDEST):
            at, width = first * LANES, min(WIDEST, vectors - first)
            add_up_row(columns, data, indices, start, stop, stride, at, width, out, i * k + at)


@jit
def spread(
    data,  # in  (stored,)
    indices,  # in  (stored,)
    indptr,  # in  (n + 1,)
    resp,  # in  (n, k)
    room,  # i/o (ROWS * padded k,) zeros
    sums,  # i/o (d * padded k,)
):
    """Adds r x."""
    n, k = resp.shape
    stride = padded(k, 8)
    vectors = stride // LANES
    for i0 in range(0, n, ROWS):
        count = min(ROWS, n - i0)
        for p in range(count):
            for j in range(k):
                room[p * stride + j] = resp[i0 + p, j]
        for p in range(count):
            start, stop = np.int64(indptr[i0 + p]), np.int64(indptr[i0 + p + 1])
            for first in range(0, vectors, WIDEST):
                at, width = first * LANES, min(WIDEST, vectors - first)
                spread_row(sums, data, indices, start, stop, stride, at, width, room, p * stride + at)


@intrinsic
def add_up_row(typingctx, columns, data, indices, start, stop, stride, first, width, out, at):
    """`width` vectors of the sum of x times its column's numbers, from the `first` on; out from `at` on."""
    sig = types.void(columns, data, indices, start, stop, stride, first, width, out, at)

    def codegen(context, b, sig, args):
        v = Vectors("columns data indices start stop stride first width out at", context, b, sig, args)
        columns0, out0 = v.start("columns", v["first"]), v.start("out", v["at"])
        for count in _widths(v):
            with v.loop(v["start"], v["stop"], 1, [v.zero] * count, rolled=True) as value:
                x, column = _stored(v, value.t, columns0)
                value.new = [v.fma(x, v.load(v.at(column, r * v.lanes)), total) for r, total in enumerate(value.values)]
            for r, total in enumerate(value.values):
                v.store(total, v.at(out0, r * v.lanes))
        return context.get_dummy_value()

    return sig, codegen


@intrinsic
def spread_row(typingctx, sums, data, indices, start, stop, stride, first, width, shares, at):
    """Adds x times `width` vectors of shares from `at` on to its column's sums, from the `first` on."""
    sig = types.void(sums, data, indices, start, stop, stride, first, width, shares, at)

    def codegen(context, b, sig, args):
        v = Vectors("sums data indices start stop stride first width shares at", context, b, sig, args)
        sums0, shares0 = v.start("sums", v["first"]), v.start("shares", v["at"])
        for count in _widths(v):
            shares = [v.load(v.at(shares0, r * v.lanes)) for r in range(count)]
            with v.loop(v["start"], v["stop"], 1, []) as value:
                x, column = _stored(v, value.t, sums0)
                for r, share in enumerate(shares):
                    place = v.at(column, r * v.lanes)
                    v.store(v.fma(x, share, v.load(place)), place)
        return context.get_dummy_value()

    return sig, codegen


def _widths(v: Vectors) -> Iterator[int]:
    """Code for every width that a row may have, of which the right one runs."""
    b = v.b
    done = b.append_basic_block("done")
    switch = b.switch(v["width"], done)
    for count in range(1, WIDEST + 1):
        block = b.append_basic_block(f"width{count}")
        switch.add_case(i64(count), block)
        b.position_at_end(block)
        yield count
        b.branch(done)
    b.position_at_end(done)


def _stored(v: Vectors, e: ir.Value, table: ir.Value) -> tuple[ir.Value, ir.Value]:
    """A stored value in every lane, and where the numbers of its column begin."""
    b = v.b
    x, index = b.load(v.at(v.start("data"), e)), b.load(v.at(v.start("indices"), e))
    x = x if x.type == v.element else b.fpext(x, v.element)
    index = index if index.type == i64 else b.sext(index, i64)
    return v.spread(x), v.at(table, b.mul(index, v["stride"]))
