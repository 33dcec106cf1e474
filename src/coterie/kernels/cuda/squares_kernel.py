"""Triton kernel for squared distances."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def square_differences(
    X,  # in   (n, d)
    points,  # in   (k, d) float64
    factors,  # in   (k, d) float64 if HAS_FACTORS
    out,  # out  (n, k) float64
    n,
    k,
    d,
    BN: tl.constexpr,
    BK: tl.constexpr,
    HAS_FACTORS: tl.constexpr,
):
    """One block of rows and points for each program; the columns are added in their order."""
    row = tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN)
    j = tl.program_id(1) * BK + tl.arange(0, BK)
    total = tl.zeros([BN, BK], tl.float64)
    for column in range(d):
        x = tl.load(X + row * d + column, mask=row < n, other=0.0).to(tl.float64)
        difference = x[:, None] - tl.load(points + j * d + column, mask=j < k, other=0.0)[None, :]
        if HAS_FACTORS:
            difference *= tl.load(factors + j * d + column, mask=j < k, other=0.0)[None, :]
        total += difference * difference
    tl.store(out + row[:, None] * k + j[None, :], total, mask=(row < n)[:, None] & (j < k)[None, :])


def launch(x: torch.Tensor, points: torch.Tensor, factor: torch.Tensor | None) -> torch.Tensor:
    """Squared lengths (n, k) of (x - p) f."""
    (n, d), k = x.shape, len(points)
    out = torch.empty(n, k, dtype=torch.float64, device=x.device)
    points = points.double().contiguous()
    factors = points if factor is None else factor.double().expand(k, d).contiguous()
    if n and k:
        block = min(64, max(8, triton.next_power_of_2(k)))
        with torch.cuda.device(x.device):
            square_differences[(triton.cdiv(n, 64), triton.cdiv(k, block))](
                x.contiguous(), points, factors, out, n, k, d, 64, block, factor is not None, num_warps=4
            )
    return out
