"""Triton kernel for one pass of k-means++."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

MAX_POINTS = 16
ROWS = 1024  # of one program


@triton.jit
def _split(x):
    """A float16 copy, and one of its rounding: together 22 bits."""
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def add_point(
    X,  # in   (n, D)
    weights,  # in   (n,) if HAS_WEIGHTS
    origin,  # in   (D,) point 0
    points,  # in   (16, DS) scale * (p - point 0)
    squares,  # in   (16,) |p - point 0|²
    closest,  # i/o  (n,)
    sums,  # out  (programs, 16)
    n,
    scale,
    factor,  # of squares in the unit of `closest`
    D: tl.constexpr,
    DS: tl.constexpr,
    BD: tl.constexpr,
    BN: tl.constexpr,
    ROWS: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
):
    """Update costs with point 0, by differences; sum them with each other point, by products of differences."""
    p = tl.arange(0, 16)
    square = tl.load(squares + p)
    total = tl.zeros([BN, 16], tl.float32)
    first = tl.program_id(0).to(tl.int64) * ROWS
    for start in range(0, ROWS, BN):
        row = first + start + tl.arange(0, BN)
        inside = row < n
        e2 = tl.zeros([BN], tl.float32)
        product = tl.zeros([BN, 16], tl.float32)
        for column in tl.static_range(0, DS, BD):
            d = column + tl.arange(0, BD)
            mask = inside[:, None] & (d < D)[None, :]
            x = tl.load(X + row[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float32)
            e = tl.where(mask, x - tl.load(origin + d, mask=d < D, other=0.0)[None, :], 0.0)
            e2 += tl.sum(e * e, axis=1)
            high, low = _split(e * scale)
            c_high, c_low = _split(tl.load(points + p[:, None] * DS + d[None, :]))
            product = tl.dot(high, tl.trans(c_high), product)
            product = tl.dot(high, tl.trans(c_low), product)
            product = tl.dot(low, tl.trans(c_high), product)
        cost = tl.minimum(tl.load(closest + row, mask=inside, other=0.0), e2 * factor)
        tl.store(closest + row, cost, mask=inside)
        other = tl.maximum(e2[:, None] + square[None, :] - (2.0 / (scale * scale)) * product, 0.0) * factor
        combined = tl.minimum(cost[:, None], other)
        if HAS_WEIGHTS:
            combined *= tl.load(weights + row, mask=inside, other=0.0).to(tl.float32)[:, None]
        total += tl.where(inside[:, None], combined, 0.0)
    tl.store(sums + tl.program_id(0) * 16 + p, tl.sum(total, axis=0))


@triton.jit
def find_rows(
    closest,  # in   (n,)
    weights,  # in   (n,) if HAS_WEIGHTS
    blocks,  # in   (m,)
    targets,  # in   (m,) float64, within the sum of each block
    rows,  # out  (m,)
    n,
    ROWS: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
):
    """The row of a block where the cumulative weighted cost exceeds the target; always one of positive cost."""
    first = tl.load(blocks + tl.program_id(0)) * ROWS
    index = tl.arange(0, ROWS)
    mass = tl.load(closest + first + index, mask=first + index < n, other=0.0).to(tl.float64)
    if HAS_WEIGHTS:
        mass *= tl.load(weights + first + index, mask=first + index < n, other=0.0).to(tl.float64)
    place = tl.sum((tl.cumsum(mass, axis=0) <= tl.load(targets + tl.program_id(0))).to(tl.int32), axis=0)
    last = tl.max(tl.where(mass > 0, index, 0), axis=0)
    tl.store(rows + tl.program_id(0), first + tl.minimum(place, last))


def draw(closest: torch.Tensor, w: torch.Tensor | None, sums: np.ndarray, u: np.ndarray) -> tuple[float, np.ndarray]:
    """The sum of w `closest`, and rows sampled with these probabilities; `sums` are those of blocks of `ROWS` rows."""
    cumulative = np.cumsum(sums)
    total = float(cumulative[-1])
    if not total > 0:
        return 0.0, np.full(len(u), -1)
    target = u * total
    last = np.searchsorted(cumulative, total)  # the last block of positive cost
    block = np.minimum(np.searchsorted(cumulative, target, side="right"), last)
    rest = target - np.where(block > 0, cumulative[block - 1], 0.0)
    on_device = torch.from_numpy(np.stack([block.astype(np.float64), rest])).to(closest.device)
    rows = torch.empty(len(u), dtype=torch.int64, device=closest.device)
    find_rows[(len(u),)](
        closest, closest if w is None else w, on_device[0].long(), on_device[1], rows, len(closest), ROWS,
        w is not None, num_warps=4,
    )  # fmt: skip
    return total, rows.cpu().numpy()


def potentials(
    X: torch.Tensor, w: torch.Tensor | None, unit: float, points: np.ndarray, closest: torch.Tensor, extent: float
) -> tuple[np.ndarray, np.ndarray]:
    """Update `closest` (n,) with points[0]; return its weighted sum, then that with each other point added (m,).

    Also return the weighted sums of blocks of `ROWS` rows of `closest`, from which the next rows are sampled. `extent`
    is a bound of the differences between rows and points. The host prepares the points, and copies them at once: a
    launch for each step would take longer than the kernel.
    """
    (n, d), m, device = X.shape, len(points), X.device
    width = max(16, triton.next_power_of_2(d)) if d <= 64 else triton.cdiv(d, 64) * 64
    block, rows, warps = (width, 128 if width <= 32 else 64, 4) if width <= 64 else (32, 32, 2)
    scale = 2.0 ** (8 - np.frexp(extent)[1]) if extent > 0 else 1.0
    difference = points.astype(np.float64) - points[0]
    table = np.zeros((MAX_POINTS + 2, width), np.float32)  # the scaled points, their squares, and point 0
    table[:m, :d], table[MAX_POINTS + 1, :d] = difference * scale, points[0]
    squares = np.zeros(MAX_POINTS, np.float32)
    squares[:m] = np.square(difference).sum(axis=1)
    table[MAX_POINTS, :MAX_POINTS] = squares
    on_device = torch.from_numpy(table).to(device)
    programs = triton.cdiv(n, ROWS)
    sums = torch.empty(programs, MAX_POINTS, device=device)
    add_point[(programs,)](
        X, X if w is None else w, on_device[MAX_POINTS + 1], on_device, on_device[MAX_POINTS], closest, sums, n, scale,
        1.0 / unit**2, d, width, block, rows, ROWS, w is not None, num_warps=warps,
    )  # fmt: skip
    both = torch.cat([sums[:, :m].sum(0, dtype=torch.float64), sums[:, 0].double()]).cpu().numpy()
    return both[:m], both[m:]
