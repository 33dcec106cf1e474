"""A pass of EM for full covariances on an NVIDIA GPU, with Triton: rows in float32, products on tensor cores.

Differences from the mean of a component are split into two float16 numbers, of 22 bits together, and so are the factors
of the precisions. So products are as exact as float32. Because rows are relative to the mean of each component,
no digits cancel in the covariances of components that are far from each other.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import triton
import triton.language as tl

MAX_COLUMNS = 128
MAX_COMPONENTS = 1024
BLOCKS = {16: (64, 1), 32: (32, 1), 64: (128, 4), 128: (64, 8)}  # by width: rows of a block of `add`, and warps
SCORE_BLOCKS = {16: (256, 2), 32: (128, 4), 64: (128, 4), 128: (64, 8)}  # the same of `score`
SCORES = 1 << 28  # number of scores in memory at once


@triton.jit
def _split(x):
    """A float16 copy, and one of its rounding."""
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def _differences(X, origin, means, row, inside, j, scale, D: tl.constexpr, DP: tl.constexpr):
    """Rows minus the mean of component j, times the scale (n, DP)."""
    d = tl.arange(0, DP)
    mask = inside[:, None] & (d < D)[None, :]
    x = tl.load(X + row[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float32)
    shifted = tl.where(mask, (x - tl.load(origin + d)[None, :]) * scale, 0.0)
    return tl.where(inside[:, None], shifted - tl.load(means + j * DP + d)[None, :], 0.0)


@triton.jit
def score(
    X,  # in   (n, D)
    origin,  # in   (DP,)
    means,  # in   (k, DP) scale * (mean - origin)
    high,  # in   (k, DP, DP) float16 factors of the precisions, in the unit of each component
    low,  # in   (k, DP, DP) the rounding of `high`
    offsets,  # in   (k,)
    halves,  # in   (k,) half of the squared unit of each component
    scores,  # out  (k, n) log p(x, z)
    n,
    k,
    scale,
    D: tl.constexpr,
    DP: tl.constexpr,
    BN: tl.constexpr,
):
    """One block of rows for each program, and all components."""
    row = tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN)
    inside = row < n
    d = tl.arange(0, DP)
    square = d[:, None] * DP + d[None, :]
    mask = inside[:, None] & (d < D)[None, :]
    x = tl.load(X + row[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float32)
    x = tl.where(mask, (x - tl.load(origin + d)[None, :]) * scale, 0.0)
    for j in range(k):
        e_high, e_low = _split(x - tl.load(means + j * DP + d)[None, :])
        u_high = tl.load(high + j * DP * DP + square)
        y = tl.dot(e_high, u_high)
        y = tl.dot(e_high, tl.load(low + j * DP * DP + square), y)
        y = tl.dot(e_low, u_high, y)
        result = tl.load(offsets + j) - tl.sum(y * y, axis=1) * tl.load(halves + j)
        tl.store(scores + j.to(tl.int64) * n + row, result, mask=inside)


@triton.jit
def normalise(
    scores,  # i/o  (k, n) log p(x, z); becomes the posteriors
    logs,  # out  (programs,) sums of log p(x)
    n,
    k,
    KP: tl.constexpr,
    BN: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN)
    j = tl.arange(0, KP)
    place = scores + j[:, None].to(tl.int64) * n + row[None, :]
    mask = (j < k)[:, None] & (row < n)[None, :]
    joint = tl.load(place, mask=mask, other=float("-inf"))
    maximum = tl.where(row < n, tl.max(joint, axis=0), 0.0)
    share = tl.exp(joint - maximum[None, :])
    total = tl.sum(share, axis=0)
    tl.store(place, share / total[None, :], mask=mask)
    log_density = maximum.to(tl.float64) + tl.log(total).to(tl.float64)
    tl.store(logs + tl.program_id(0), tl.sum(tl.where(row < n, log_density, 0.0), axis=0))


@triton.jit
def add(
    X,  # in   (n, D)
    origin,  # in   (DP,)
    means,  # in   (k, DP)
    posteriors,  # in   (k, n)
    sums,  # out  (chunks, k + k DP + k DP DP) of r, of r (x - m), and of r (x - m)(x - m)', in the scale of the rows
    n,
    k,
    rows,  # of a chunk
    scale,
    D: tl.constexpr,
    DP: tl.constexpr,
    BN: tl.constexpr,
):
    """Sums of one component over one chunk of rows for each program.

    Differences are multiplied by the square roots of posteriors, so that one split serves both factors of a product: of
    the three terms, two are transposes of each other. Programs of a chunk run together, so that its rows stay in the
    cache. Products of a block start at zero, because tensor cores truncate what they add to.
    """
    j = tl.program_id(0)
    chunk = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, DP)
    first = tl.zeros([DP], tl.float32)
    second = tl.zeros([DP, DP], tl.float32)
    mixed = tl.zeros([DP, DP], tl.float32)
    total = tl.zeros([BN], tl.float32)
    for start in range(chunk * rows, tl.minimum(chunk * rows + rows, n), BN):
        row = start + tl.arange(0, BN)
        inside = row < tl.minimum(chunk * rows + rows, n)
        share = tl.load(posteriors + j.to(tl.int64) * n + row, mask=inside, other=0.0)
        root = tl.sqrt(share)
        e = _differences(X, origin, means, row, inside, j, scale, D, DP) * root[:, None]
        high, low = _split(e)
        columns = tl.trans(high)
        second += tl.dot(columns, high)
        mixed += tl.dot(columns, low)
        first += tl.sum(e * root[:, None], axis=0)
        total += share
    sums += chunk * (k + k * DP + k * DP * DP)
    tl.store(sums + j, tl.sum(total, axis=0))
    tl.store(sums + k + j * DP + d, first)
    square = j * DP * DP + d[:, None] * DP + d[None, :]
    tl.store(sums + k + k * DP + square, second + mixed + tl.trans(mixed))


@triton.jit
def add_chunks(
    sums,  # in   (chunks, size)
    totals,  # i/o  (size,) float64
    chunks,
    size,
    BC: tl.constexpr,
    BS: tl.constexpr,
):
    """Add the sums of all chunks, in a fixed order."""
    place = tl.program_id(0) * BS + tl.arange(0, BS)
    total = tl.load(totals + place, mask=place < size, other=0.0)
    for start in range(0, chunks, BC):
        chunk = start + tl.arange(0, BC)
        mask = (chunk < chunks)[:, None] & (place < size)[None, :]
        part = tl.load(sums + chunk[:, None].to(tl.int64) * size + place[None, :], mask=mask, other=0.0)
        total += tl.sum(part.to(tl.float64), axis=0)
    tl.store(totals + place, total, mask=place < size)


@triton.jit
def prepare(
    factors,  # in   (k, D, D) float64
    exact_means,  # in   (k, D) float64
    exact_offsets,  # in   (k,) float64
    center,  # in   (D,) float64, of float32 numbers
    origin,  # out  (DP,)
    means,  # out  (k, DP) scale * (mean - origin)
    shift,  # out  (k, D) float64 what the rounding of the means leaves
    high,  # out  (k, DP, DP)
    low,  # out  (k, DP, DP)
    offsets,  # out  (k,)
    halves,  # out  (k,)
    scale,
    D: tl.constexpr,
    DP: tl.constexpr,
):
    """Components as `score` and `add` need them. In the unit of a component, its factor is at most about 2^8."""
    j = tl.program_id(0)
    d = tl.arange(0, DP)
    mask = (d < D)[:, None] & (d < D)[None, :]
    factor = tl.load(factors + j * D * D + d[:, None] * D + d[None, :], mask=mask, other=0.0)
    largest = tl.max(tl.max(tl.abs(factor), axis=1), axis=0)
    exponent = (largest.to(tl.int64, bitcast=True) >> 52) - 1022  # as that of frexp
    unit = ((1031 - exponent) << 52).to(tl.float64, bitcast=True)  # 2^(8 - exponent)
    factor *= unit
    rounded = factor.to(tl.float32).to(tl.float16)
    square = j * DP * DP + d[:, None] * DP + d[None, :]
    tl.store(high + square, rounded)
    tl.store(low + square, (factor - rounded.to(tl.float64)).to(tl.float32).to(tl.float16))
    middle = tl.load(center + d, mask=d < D, other=0.0)
    mean = tl.load(exact_means + j * D + d, mask=d < D, other=0.0)
    moved = ((mean - middle) * scale).to(tl.float32)
    tl.store(means + j * DP + d, moved)
    tl.store(shift + j * D + d, mean - (moved.to(tl.float64) / scale + middle), mask=d < D)
    tl.store(origin + d, middle.to(tl.float32))
    tl.store(offsets + j, tl.load(exact_offsets + j).to(tl.float32))
    tl.store(halves + j, (0.5 / ((unit * scale) * (unit * scale))).to(tl.float32))


class FullComponents:
    """Components on the device, in the scale of the rows: their largest difference from the origin is about 2^7."""

    def __init__(self, means: np.ndarray, factor: np.ndarray, offset: np.ndarray, origin: np.ndarray, extent: float,
                 device: torch.device):  # fmt: skip
        self.k, self.d = k, d = means.shape
        self.width = width = max(16, triton.next_power_of_2(d))
        self.scale = 2.0 ** (7 - math.frexp(extent)[1]) if extent > 0 else 1.0
        center = origin.astype(np.float32).astype(np.float64)
        arrays = [each.ravel() for each in (factor, means, offset, center)]
        pinned = torch.empty(sum(map(len, arrays)), dtype=torch.float64, pin_memory=True)
        np.concatenate(arrays, out=pinned.numpy())
        exact = pinned.to(device, non_blocking=True).split([len(each) for each in arrays])  # one copy is faster
        self.shift = torch.empty(k, d, dtype=torch.float64, device=device)
        vectors = torch.empty(1 + k, width, device=device)
        scalars = torch.empty(2, k, device=device)
        self.factors = torch.empty(2, k, width, width, dtype=torch.float16, device=device)
        self.origin, self.means, self.offsets, self.halves = vectors[0], vectors[1:], *scalars
        prepare[(k,)](
            *exact, self.origin, self.means, self.shift, *self.factors, self.offsets, self.halves, self.scale, d, width,
            num_warps=8 if width == 128 else 4,
        )  # fmt: skip

    def sums(self, X: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Sums of r (k,), of r (x - m) (k, d) and of r (x - m)(x - m)' (k, d, d) about the means; log-likelihood."""
        k, d, width, size = self.k, self.d, self.width, max(1024, SCORES // self.k)
        totals = torch.zeros(k + k * width + k * width**2, dtype=torch.float64, device=X.device)
        logs = sum(self._part(X[start : start + size], totals) for start in range(0, len(X), size))
        weight, sum_dx, sum_dxx = totals.split([k, k * width, k * width**2])
        sum_dx = sum_dx.view(k, width)[:, :d] / self.scale
        sum_dxx = sum_dxx.view(k, width, width)[:, :d, :d] / self.scale**2
        shift = self.shift  # the rounding of the means to float32
        moved = sum_dx - 0.5 * weight[:, None] * shift
        cross = moved[:, :, None] * shift[:, None, :]
        sum_dx, sum_dxx = sum_dx - weight[:, None] * shift, sum_dxx - cross - cross.transpose(1, 2)
        results = torch.cat([weight, sum_dx.ravel(), sum_dxx.ravel(), logs.view(1)])
        host = torch.empty(results.shape, dtype=torch.float64, pin_memory=True).copy_(results, non_blocking=True)
        torch.cuda.current_stream(X.device).synchronize()
        weight, sum_dx, sum_dxx, logs = np.split(host.numpy().copy(), np.cumsum([k, k * d, k * d * d]))
        return weight, sum_dx.reshape(k, d), sum_dxx.reshape(k, d, d), float(logs[0])

    def _part(self, X: torch.Tensor, totals: torch.Tensor) -> torch.Tensor:
        """Add the sums of some rows to `totals`; return their log-likelihood."""
        n, k, width = len(X), self.k, self.width
        scores = torch.empty(k, n, device=X.device)
        block, warps = SCORE_BLOCKS[width]
        score[(triton.cdiv(n, block),)](
            X, self.origin, self.means, *self.factors, self.offsets, self.halves, scores, n, k, self.scale, self.d,
            width, block, num_warps=warps, num_stages=2 if width == 16 else 3,
        )  # fmt: skip
        padded = max(16, triton.next_power_of_2(k))
        columns = max(16, 8192 // padded)
        logs = torch.empty(triton.cdiv(n, columns), dtype=torch.float64, device=X.device)
        normalise[(len(logs),)](scores, logs, n, k, padded, columns, num_warps=4)
        chunks = max(1, min(triton.cdiv(n, 1024), triton.cdiv(1 << 14 if width <= 32 else 1 << 12, k)))
        rows = triton.cdiv(triton.cdiv(n, chunks), 64) * 64
        sums = torch.empty(chunks, len(totals), device=X.device)
        block, warps = BLOCKS[width]
        add[(k, chunks)](
            X, self.origin, self.means, scores, sums, n, k, rows, self.scale, self.d, width, block, num_warps=warps
        )
        add_chunks[(triton.cdiv(len(totals), 64),)](sums, totals, chunks, len(totals), 32, 64, num_warps=4)
        return logs.sum()
