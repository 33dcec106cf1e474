"""Triton kernel that prepares centers for a scan in half precision."""

from __future__ import annotations

import triton
import triton.language as tl

ROUND_UP = tl.constexpr(1.000001)  # so that norms in float32 are upper bounds
LARGEST_HALF = tl.constexpr(32768.0)
FARTHEST = tl.constexpr(1.0e15)  # squares of longer centers are out of the range of float32
LARGEST_NORM = tl.constexpr(5.0e37)  # less than that of unused centers


@triton.jit
def prepare_centers(
    centers,  # in   (k, D)
    pivot,  # in   (D,) float64
    halves,  # out  (k, DS) float16 copies of scale * (c - pivot)
    half_norms,  # out  (k,) |c|²/2
    bounds,  # i/o  (4,) as int32: longest center, largest rounding, -, whether a center is out of range
    scale,
    D: tl.constexpr,
    DS: tl.constexpr,
    BD: tl.constexpr,
):
    """One program for each center. A maximum of positive floats as integers does not depend on the order."""
    j = tl.program_id(0).to(tl.int64)
    square = 0.0
    error = 0.0
    largest = 0.0
    for start in tl.static_range(0, DS, BD):
        d = start + tl.arange(0, BD)
        c = tl.load(centers + j * D + d, mask=d < D, other=0.0).to(tl.float64)
        c = tl.where(d < D, (c - tl.load(pivot + d, mask=d < D, other=0.0)) * scale, 0.0)
        half = tl.minimum(tl.maximum(c, -LARGEST_HALF), LARGEST_HALF).to(tl.float32).to(tl.float16)
        tl.store(halves + j * DS + d, half, mask=d < DS)
        rounding = c - half.to(tl.float64)
        square += tl.sum(c * c, axis=0)
        error += tl.sum(rounding * rounding, axis=0)
        largest = tl.maximum(largest, tl.max(tl.abs(c), axis=0))
    tl.store(half_norms + j, tl.minimum(0.5 * square, LARGEST_NORM).to(tl.float32))
    longest = (tl.sqrt(square).to(tl.float32) * ROUND_UP).to(tl.int32, bitcast=True)
    worst = (tl.sqrt(error).to(tl.float32) * ROUND_UP).to(tl.int32, bitcast=True)
    tl.atomic_max(bounds, longest, sem="relaxed")
    tl.atomic_max(bounds + 1, worst, sem="relaxed")
    tl.atomic_max(bounds + 3, (largest >= FARTHEST).to(tl.int32), sem="relaxed")
