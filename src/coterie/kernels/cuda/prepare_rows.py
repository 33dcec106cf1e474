"""Triton kernel that prepares rows for scans in half precision and for sums of integers."""

from __future__ import annotations

import triton
import triton.language as tl

from coterie.kernels.cuda.centers import ROUND_UP


@triton.jit
def as_integer(x):
    """The nearest integer of float64 numbers below 2^51: the digits that remain if 1.5 * 2^52 is added."""
    return (x + 6755399441055744.0).to(tl.int64, bitcast=True) - 0x4338000000000000


@triton.jit
def prepare_rows(
    X,  # in   (n, D)
    pivot,  # in   (D,) float64
    halves,  # out  (n, DS) float16 copies of scale * (x - pivot)
    norms,  # out  (n, 2) upper bounds of the norms of these rows and of their rounding
    squares,  # out  (n,) int64, factor * |scale * (x - pivot)|²
    n,
    scale,
    factor,
    D: tl.constexpr,
    DS: tl.constexpr,
    BD: tl.constexpr,
    BN: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN)
    inside = row < n
    square = tl.zeros([BN], tl.float64)
    error = tl.zeros([BN], tl.float64)
    for start in tl.static_range(0, DS, BD):
        d = start + tl.arange(0, BD)
        mask = inside[:, None] & (d < D)[None, :]
        x = tl.load(X + row[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float64)
        x = tl.where(mask, (x - tl.load(pivot + d, mask=d < D, other=0.0)[None, :]) * scale, 0.0)
        half = x.to(tl.float32).to(tl.float16)
        tl.store(halves + row[:, None] * DS + d[None, :], half, mask=inside[:, None] & (d < DS)[None, :])
        rounding = x - half.to(tl.float64)
        square += tl.sum(x * x, axis=1)
        error += tl.sum(rounding * rounding, axis=1)
    tl.store(norms + row * 2, tl.sqrt(square).to(tl.float32) * ROUND_UP, mask=inside)
    tl.store(norms + row * 2 + 1, tl.sqrt(error).to(tl.float32) * ROUND_UP, mask=inside)
    tl.store(squares + row, as_integer(square * factor), mask=inside)
