"""One pass of k-means++: the last center applied, candidates scored, the next ones drawn."""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.simd import PANEL, aligned, distance_panel, load_tile, padded, points

BLOCK = 128  # rows whose weights are summed together when one of them is to be drawn


@jit
def spread(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,)
    inverse,  # in  1 / unit
    points_,  # in  (1 + m, d) the center chosen last, then m candidates
    closest,  # i/o (n,) squared distance to the nearest center, in units
):
    """Potentials: sum of w closest, with the chosen center, then with each candidate beside it."""
    n, d = X.shape
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    m = points_.shape[0]
    factor = X.dtype.type(inverse)
    panels, no_shift = pack(X, points_, factor), aligned(height, X)
    tile, norm = aligned(tile_rows * height, X), aligned(tile_rows, X)
    squares, near = aligned(PANEL * tile_rows, X), aligned(tile_rows, X)
    heavy = aligned(tile_rows, X)
    rows = np.empty(tile_rows, np.int64)
    potential = np.zeros(m)
    stride = 0 if w.shape[0] == 1 else 1
    for i0 in range(0, n, tile_rows):
        count = min(tile_rows, n - i0)
        for p in range(tile_rows):
            rows[p] = i0 + min(p, count - 1)
            near[p] = closest[rows[p]]
            heavy[p] = w[rows[p] * stride] if p < count else 0.0
        load_tile(X, rows, no_shift, factor, tile, norm, 0, 8 * tile_rows, d)
        for first in range(0, m, PANEL):
            distance_panel(tile, 0, panels, first * d, squares, d)
            if first == 0:
                for p in range(tile_rows):
                    near[p] = min(near[p], squares[p])
                for p in range(count):
                    closest[i0 + p] = near[p]
            for j in range(first, min(m, first + PANEL)):
                potential[j] += improved(near, heavy, squares, (j - first) * tile_rows)
    return potential


@jit_reassociating
def improved(near, heavy, squares, at):
    """What the potential of one tile would be with one more center."""
    total = near.dtype.type(0)
    for p in range(near.shape[0]):
        total += heavy[p] * min(near[p], squares[at + p])
    return total


@jit
def pack(X, points_, factor):
    """Panels of the points, in units."""
    m, d = points_.shape
    panels = aligned((m + PANEL - 1) // PANEL * d * PANEL, X)
    for j in range(m):
        for t in range(d):
            panels[(j // PANEL * d + t) * PANEL + j % PANEL] = points_[j, t] * factor
    return panels


@jit
def draw(
    closest,  # in  (n,)
    w,  # in  (n,), or (1,)
    u,  # in  (m,) uniform in [0, 1)
    rows,  # out (m,) drawn in proportion to w closest
):
    """Sum of w closest."""
    n = closest.shape[0]
    stride = 0 if w.shape[0] == 1 else 1
    blocks = (n + BLOCK - 1) // BLOCK
    until = np.empty(blocks)
    total = 0.0
    for b in range(blocks):
        for i in range(b * BLOCK, min(n, (b + 1) * BLOCK)):
            total += w[i * stride] * closest[i]
        until[b] = total
    for q in range(u.shape[0]):
        target = u[q] * total
        b = min(np.searchsorted(until, target, "right"), blocks - 1)
        reached = until[b - 1] if b > 0 else 0.0
        rows[q] = -1
        for i in range(b * BLOCK, min(n, (b + 1) * BLOCK)):
            mass = w[i * stride] * closest[i]
            reached += mass
            if mass > 0.0:
                rows[q] = i
                if reached > target:
                    break
    return total
