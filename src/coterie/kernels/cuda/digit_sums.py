"""Exact sums of 64-bit integers by cluster, on tensor cores.

Integers between -2^49 and 2^49 plus 2^49 are split into five digits of ten bits. Digits are exact in float16, and sums
of up to 2^14 of them in float32. So a matrix product of weights by cluster and digits adds integers exactly, and its
order does not matter.
"""

from __future__ import annotations

import triton
import triton.language as tl

MAX_ROWS = tl.constexpr(1 << 13)  # that can be added, counted with their weights


@triton.jit
def _as_half(part):
    """Integers from 0 to 1023 as float16: 0x6400 has the bits of 1024, in units of 1. Conversions take longer."""
    return (part.to(tl.int16) | 0x6400).to(tl.float16, bitcast=True) - 1024.0


@triton.jit
def digit(q, i: tl.constexpr):
    """Digit i of integers that are not negative, as float16."""
    return _as_half((q >> (10 * i)).to(tl.int32) & 1023)


@triton.jit
def side_columns(square, BN: tl.constexpr):
    """Digits of an integer of each row, then a 1 (BN, 16)."""
    column = tl.arange(0, 16)[None, :]
    part = (square[:, None] >> tl.where(column < 5, column * 10, 0).to(tl.int64)).to(tl.int32) & 1023
    return _as_half(tl.where(column < 5, part, tl.where(column == 5, 1, 0)))


@triton.jit
def no_rows(BK: tl.constexpr, BD: tl.constexpr):
    """The sums of no rows: five of digits (BK, BD), and those of the columns beside them (BK, 16)."""
    zero = tl.zeros([BK, BD], tl.float32)
    return zero, zero, zero, zero, zero, tl.zeros([BK, 16], tl.float32)


@triton.jit
def add_rows(share, q, square, a0, a1, a2, a3, a4, side, BN: tl.constexpr):
    """Add rows of integers q (BN, BD), and one of each that is not negative, to sums with weights (BK, BN)."""
    q += 1 << 49
    a0 = tl.dot(share, digit(q, 0), a0)
    a1 = tl.dot(share, digit(q, 1), a1)
    a2 = tl.dot(share, digit(q, 2), a2)
    a3 = tl.dot(share, digit(q, 3), a3)
    a4 = tl.dot(share, digit(q, 4), a4)
    side = tl.dot(share, side_columns(square, BN), side)
    return a0, a1, a2, a3, a4, side


@triton.jit
def store_sums(a0, a1, a2, a3, a4, side, sums, squares, sizes, k, D, BK: tl.constexpr, BD: tl.constexpr):
    """Add the sums of clusters to those in memory: (k, D) of q, (k,) of the other integers, and (k,) of weights."""
    j = tl.arange(0, BK)
    d = tl.arange(0, BD)
    total = a0.to(tl.int64) + (a1.to(tl.int64) << 10) + (a2.to(tl.int64) << 20)
    total += (a3.to(tl.int64) << 30) + (a4.to(tl.int64) << 40)
    column = tl.arange(0, 16)[None, :]
    size = tl.sum(tl.where(column == 5, side, 0.0), axis=1).to(tl.int32)
    total -= size.to(tl.int64)[:, None] << 49
    mask = (j < k)[:, None] & (d < D)[None, :] & (total != 0)
    tl.atomic_add(sums + j[:, None] * D + d[None, :], total, mask=mask, sem="relaxed")
    wide = side.to(tl.int64)
    square = tl.sum(tl.where(column < 5, wide << tl.where(column < 5, column * 10, 0).to(tl.int64), 0), axis=1)
    tl.atomic_add(squares + j, square, mask=(j < k) & (square != 0), sem="relaxed")
    tl.atomic_add(sizes + j, size, mask=(j < k) & (size != 0), sem="relaxed")
