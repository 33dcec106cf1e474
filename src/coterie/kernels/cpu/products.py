"""Matrix products of CSR rows with dense matrices; for the definitions see `plain.products`.

Each stored value is multiplied by k contiguous numbers. So matrices are stored by column, padded to whole vectors:
(d, padded k). The k results of a row stay in registers.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir

from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.simd import aligned, padded
from coterie.kernels.cpu.vectors import REGISTER, Vectors, i64, vector_code

LANES = REGISTER // 8
MAX_VECTORS = 8  # maximum number of vectors of results in registers
ROWS = 32  # rows whose responsibilities are copied to aligned memory: a load across two cache lines waits for stores


def products(X: Any, table: np.ndarray) -> np.ndarray:
    (n, d), k = X.shape, len(table)
    columns, out = aligned(d * padded(k, 8), np.empty(0)), np.empty(n * k + LANES)  # space after the last vector
    columns.reshape(d, -1)[:, :k] = table.T
    multiply(_floats(X.data), X.indices, X.indptr, columns, k, out)
    return out[: n * k].reshape(n, k)


def weighted_sums(X: Any, resp: np.ndarray) -> np.ndarray:
    d, k = X.shape[1], resp.shape[1]
    buffer, sums = (aligned(rows * padded(k, 8), np.empty(0)) for rows in (ROWS, d))
    add_weighted_rows(_floats(X.data), X.indices, X.indptr, np.ascontiguousarray(resp), buffer, sums)
    return sums.reshape(d, -1)[:, :k].T


def _floats(data: np.ndarray) -> np.ndarray:
    """Stored values as float32 or float64."""
    return data if data.dtype in (np.float32, np.float64) else data.astype(np.float64)


@jit
def multiply(
    data,  # in  (stored,)
    indices,  # in  (stored,)
    indptr,  # in  (n + 1,)
    columns,  # in  (d * padded k,)
    k,  # in
    out,  # out (n * k + LANES,)
):
    """Inner products of the rows and the columns of the matrix."""
    stride = padded(k, 8)
    vectors = stride // LANES
    for i in range(indptr.shape[0] - 1):
        start, stop = np.int64(indptr[i]), np.int64(indptr[i + 1])
        for first in range(0, vectors, MAX_VECTORS):
            at, width = first * LANES, min(MAX_VECTORS, vectors - first)
            multiply_row(columns, data, indices, start, stop, stride, at, width, out, i * k + at)


@jit
def add_weighted_rows(
    data,  # in  (stored,)
    indices,  # in  (stored,)
    indptr,  # in  (n + 1,)
    resp,  # in  (n, k)
    buffer,  # i/o (ROWS * padded k,) zeros
    sums,  # i/o (d * padded k,)
):
    """Add r x to the sums."""
    n, k = resp.shape
    stride = padded(k, 8)
    vectors = stride // LANES
    for i0 in range(0, n, ROWS):
        count = min(ROWS, n - i0)
        for p in range(count):
            for j in range(k):
                buffer[p * stride + j] = resp[i0 + p, j]
        for p in range(count):
            start, stop = np.int64(indptr[i0 + p]), np.int64(indptr[i0 + p + 1])
            for first in range(0, vectors, MAX_VECTORS):
                at, width = first * LANES, min(MAX_VECTORS, vectors - first)
                add_weighted_row(sums, data, indices, start, stop, stride, at, width, buffer, p * stride + at)


@vector_code
def multiply_row(v, columns, data, indices, start, stop, stride, first, width, out, at):
    """Sums of x times the numbers of its column, `width` vectors from `first` on; written to out from `at` on."""
    columns0, out0 = v.start(columns, first), v.start(out, at)
    for count in _widths(v):
        with v.loop(start, stop, 1, [v.zero] * count, rolled=True) as value:
            x, column = _stored(v, value.t, columns0)
            value.new = [v.fma(x, v.load(v.at(column, r * v.lanes)), total) for r, total in enumerate(value.values)]
        for r, total in enumerate(value.values):
            v.store(total, v.at(out0, r * v.lanes))


@vector_code
def add_weighted_row(v, sums, data, indices, start, stop, stride, first, width, shares, at):
    """Add x times `width` vectors of responsibilities from `at` on to the sums of its column, from `first` on."""
    sums0, shares0 = v.start(sums, first), v.start(shares, at)
    for count in _widths(v):
        shares = [v.load(v.at(shares0, r * v.lanes)) for r in range(count)]
        with v.loop(start, stop, 1, []) as value:
            x, column = _stored(v, value.t, sums0)
            for r, share in enumerate(shares):
                address = v.at(column, r * v.lanes)
                v.store(v.fma(x, share, v.load(address)), address)


def _widths(v: Vectors) -> Iterator[int]:
    """Emit a switch with code for each possible number of vectors."""
    b = v.b
    done = b.append_basic_block("done")
    switch = b.switch(v["width"], done)
    for count in range(1, MAX_VECTORS + 1):
        block = b.append_basic_block(f"width{count}")
        switch.add_case(i64(count), block)
        b.position_at_end(block)
        yield count
        b.branch(done)
    b.position_at_end(done)


def _stored(v: Vectors, e: ir.Value, table: ir.Value) -> tuple[ir.Value, ir.Value]:
    """A stored value in all lanes, and the address of the numbers of its column."""
    b = v.b
    x, index = b.load(v.at(v.start(v["data"]), e)), b.load(v.at(v.start(v["indices"]), e))
    x = x if x.type == v.element else b.fpext(x, v.element)
    index = index if index.type == i64 else b.sext(index, i64)
    return v.spread(x), v.at(table, b.mul(index, v["stride"]))
