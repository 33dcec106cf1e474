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
    weight,  # out  (chunks, k) of r
    sum_dx,  # out  (chunks, k, DP) of r (x - m), in the scale of the rows
    sum_dxx,  # out  (chunks, k, DP, DP) of r (x - m)(x - m)'
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
    place = chunk * k + j
    tl.store(weight + place, tl.sum(total, axis=0))
    tl.store(sum_dx + place * DP + d, first)
    tl.store(sum_dxx + place * DP * DP + d[:, None] * DP + d[None, :], second + mixed + tl.trans(mixed))


class FullComponents:
    """Components on the device, in the scale of the rows: their largest difference from the origin is about 2^7."""

    def __init__(self, means: np.ndarray, factor: np.ndarray, offset: np.ndarray, origin: np.ndarray, extent: float,
                 device: torch.device):  # fmt: skip
        k, self.d = means.shape
        self.width = max(16, triton.next_power_of_2(self.d))
        self.scale = 2.0 ** (7 - math.frexp(extent)[1]) if extent > 0 else 1.0
        self.center = origin.astype(np.float32).astype(np.float64)
        moved = ((means - self.center) * self.scale).astype(np.float32)
        self.means = moved.astype(np.float64) / self.scale + self.center  # as the device has them
        units = np.ldexp(1.0, 8 - np.frexp(np.abs(factor).max(axis=(1, 2)))[1])  # factors are then up to about 2^8
        halves = 0.5 / (units * self.scale) ** 2
        arrays = [factor * units[:, None, None], self.center[None], moved, offset, halves, means - self.means]
        flat = torch.from_numpy(np.concatenate([each.ravel() for each in arrays])).to(device)  # one copy is faster
        scaled, center, moved, offset, halves, self.shift = (
            part.view(each.shape) for part, each in zip(flat.split([each.size for each in arrays]), arrays, strict=True)
        )
        padded = torch.zeros(k, self.width, self.width, dtype=torch.float64, device=device)
        padded[:, : self.d, : self.d] = scaled
        high = padded.half()
        rows = torch.zeros(k + 1, self.width, device=device)
        rows[:, : self.d] = torch.cat([center, moved])
        self.on_device = [rows[0], rows[1:], high, (padded - high.double()).half(), offset.float(), halves.float()]

    def sums(self, X: torch.Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Sums of r (k,), of r (x - m) (k, d) and of r (x - m)(x - m)' (k, d, d) about the means; log-likelihood."""
        (k, d), size = self.means.shape, max(1024, SCORES // len(self.means))
        parts = [self._part(X[start : start + size]) for start in range(0, len(X), size)]
        weight, sum_dx, sum_dxx, logs = (sum(each) for each in zip(*parts, strict=True))
        sum_dx, sum_dxx = sum_dx[:, :d] / self.scale, sum_dxx[:, :d, :d] / self.scale**2
        shift = self.shift  # the rounding of the means to float32
        moved = sum_dx - 0.5 * weight[:, None] * shift
        cross = moved[:, :, None] * shift[:, None, :]
        sum_dx, sum_dxx = sum_dx - weight[:, None] * shift, sum_dxx - cross - cross.transpose(1, 2)
        host = torch.cat([weight.ravel(), sum_dx.ravel(), sum_dxx.ravel(), logs.view(1)]).cpu().numpy()
        weight, sum_dx, sum_dxx, logs = np.split(host, np.cumsum([k, k * d, k * d * d]))
        return weight, sum_dx.reshape(k, d), sum_dxx.reshape(k, d, d), float(logs[0])

    def _part(self, X: torch.Tensor) -> list[torch.Tensor]:
        origin, means, high, low, offsets, halves = self.on_device
        n, k, width = len(X), len(means), self.width
        scores = torch.empty(k, n, device=X.device)
        block, warps = SCORE_BLOCKS[width]
        score[(triton.cdiv(n, block),)](
            X, origin, means, high, low, offsets, halves, scores, n, k, self.scale, self.d, width, block,
            num_warps=warps, num_stages=2 if width == 16 else 3,
        )  # fmt: skip
        padded = max(16, triton.next_power_of_2(k))
        columns = max(16, 8192 // padded)
        logs = torch.empty(triton.cdiv(n, columns), dtype=torch.float64, device=X.device)
        normalise[(len(logs),)](scores, logs, n, k, padded, columns, num_warps=4)
        chunks = max(1, min(triton.cdiv(n, 1024), triton.cdiv(1 << 14 if width <= 32 else 1 << 12, k)))
        rows = triton.cdiv(triton.cdiv(n, chunks), 64) * 64
        weight, sum_dx, sum_dxx = (
            torch.empty(chunks, k, *shape, device=X.device) for shape in ((), (width,), (width, width))
        )
        block, warps = BLOCKS[width]
        add[(k, chunks)](
            X, origin, means, scores, weight, sum_dx, sum_dxx, n, k, rows, self.scale, self.d, width, block,
            num_warps=warps,
        )  # fmt: skip
        return [each.sum(0, dtype=torch.float64) for each in (weight, sum_dx, sum_dxx)] + [logs.sum()]
