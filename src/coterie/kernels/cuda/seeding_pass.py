"""Triton kernel for one pass of k-means++."""

from __future__ import annotations

from typing import NamedTuple

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
    table,  # in   (18, DS) scale * (p - point 0), then their squares |p - point 0|², and point 0
    closest,  # i/o  (n,)
    sums,  # out  (programs, 16)
    is_done,  # in   (1,) nothing is computed if it is not 0
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
    if tl.load(is_done) == 0:
        p = tl.arange(0, 16)
        square = tl.load(table + 16 * DS + p)
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
                e = tl.where(mask, x - tl.load(table + 17 * DS + d)[None, :], 0.0)
                e2 += tl.sum(e * e, axis=1)
                high, low = _split(e * scale)
                c_high, c_low = _split(tl.load(table + p[:, None] * DS + d[None, :]))
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


class Layout(NamedTuple):
    """Sizes of the tiles of `add_point`, by the number of columns."""

    width: int  # of the table of points
    columns: int  # of a tile
    rows: int
    warps: int
    stages: int

    @classmethod
    def of(cls, d: int) -> Layout:
        width = max(16, triton.next_power_of_2(d))
        if width <= 32:
            return cls(width, width, 64, 2, 3)
        if width == 64:
            return cls(64, 64, 128, 4, 2)
        return cls(triton.cdiv(d, 64) * 64, 32, 64, 4, 1)


def launch(
    X: torch.Tensor, w: torch.Tensor | None, table: torch.Tensor, closest: torch.Tensor, sums: torch.Tensor,
    is_done: torch.Tensor, scale: float, factor: float,
) -> None:  # fmt: skip
    """`add_point` for all rows."""
    (n, d), layout = X.shape, Layout.of(X.shape[1])
    add_point[(len(sums),)](
        X, X if w is None else w, table, closest, sums, is_done, n, scale, factor, d, layout.width, layout.columns,
        layout.rows, ROWS, w is not None, num_warps=layout.warps, num_stages=layout.stages,
    )  # fmt: skip


def scale_of(extent: float) -> float:
    """The power of two that brings differences up to `extent` into the range of float16."""
    return float(2.0 ** (8 - np.frexp(extent)[1])) if extent > 0 else 1.0


def table_of(points: np.ndarray, scale: float) -> np.ndarray:
    """The table of points that `add_point` reads."""
    m, d = points.shape
    difference = points.astype(np.float64) - points[0]
    table = np.zeros((MAX_POINTS + 2, Layout.of(d).width), np.float32)
    table[:m, :d], table[MAX_POINTS, :m] = difference * scale, np.square(difference).sum(axis=1)
    table[MAX_POINTS + 1, :d] = points[0]
    return table


def potentials(
    X: torch.Tensor, w: torch.Tensor | None, unit: float, points: np.ndarray, closest: torch.Tensor, extent: float
) -> np.ndarray:
    """Update `closest` (n,) with points[0]; return its weighted sum, then that with each other point added (m,).

    `extent` is a bound of the differences between rows and points. The host prepares the points, and copies them at
    once: a launch for each step would take longer than the kernel.
    """
    scale = scale_of(extent)
    table = torch.from_numpy(table_of(points, scale)).to(X.device)
    sums = torch.empty(triton.cdiv(len(X), ROWS), MAX_POINTS, device=X.device)
    is_done = torch.zeros(1, dtype=torch.int32, device=X.device)
    launch(X, w, table, closest, sums, is_done, scale, 1.0 / unit**2)
    return sums[:, : len(points)].sum(0, dtype=torch.float64).cpu().numpy()
