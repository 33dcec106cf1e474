"""One pass of k-means++: the last center applied, candidates scored, the next ones drawn."""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.simd import PANEL, aligned, improve_panel, load_tile, padded, points

AHEAD = 8  # tiles that are asked for before they are needed
FLUSH_TILES = 256  # sums in the data's precision move on to float64 this often
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
    near, heavy = aligned(tile_rows, X), aligned(tile_rows, X)
    rows = np.empty(tile_rows, np.int64)
    n_panels = (m + PANEL - 1) // PANEL
    sums = aligned(n_panels * PANEL * tile_rows, X)
    potential = np.zeros(m)
    for i0 in range(0, n, tile_rows):
        count = min(tile_rows, n - i0)
        fill(closest, w, i0, count, rows, near, heavy)
        load_tile(X, rows, no_shift, factor, tile, norm, 0, AHEAD * tile_rows, d)
        for q in range(n_panels):
            at = q * PANEL * tile_rows
            improve_panel(tile, 0, panels, q * PANEL * d, q == 0, near, heavy, sums, at, d)
        for p in range(count):
            closest[i0 + p] = near[p]
        if i0 // tile_rows % FLUSH_TILES == FLUSH_TILES - 1 or i0 + tile_rows >= n:
            for j in range(m):
                potential[j] += drain(sums, j * tile_rows, tile_rows)
    return potential


@jit
def fill(closest, w, i0, count, rows, near, heavy):
    """Rows, distances and weights of a tile; places left over repeat the last row and weigh nothing."""
    one = w.shape[0] == 1
    for p in range(count):
        rows[p] = i0 + p
        near[p] = closest[i0 + p]
    for p in range(count):
        heavy[p] = w[0] if one else w[i0 + p]
    for p in range(count, rows.shape[0]):
        rows[p] = i0 + count - 1
        heavy[p] = 0


@jit
def drain(sums, at, size):
    """The sum of some lanes, which are cleared."""
    total = 0.0
    for p in range(at, at + size):
        total += np.float64(sums[p])
        sums[p] = 0
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
        total += mass_of(closest, w, b * BLOCK, min(n, (b + 1) * BLOCK))
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


@jit_reassociating
def mass_of(closest, w, start, stop):
    total = 0.0
    if w.shape[0] == 1:
        for i in range(start, stop):
            total += np.float64(closest[i])
        return total * w[0]
    for i in range(start, stop):
        total += w[i] * np.float64(closest[i])
    return total
