"""D² sampling of k-means++: update distances with the last center, evaluate candidates, draw the next ones."""

import numpy as np

from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.simd import PANEL, add_potentials, aligned, load_tile, padded, points

AHEAD = 8  # number of tiles between prefetching and use
FLUSH_TILES = 256  # number of tiles after which sums in the precision of the data are added to float64
BLOCK = 128  # rows whose masses are added before one of them is sampled


def tiles_size(n: int, d: int, itemsize: int) -> int:
    """Size of the tiles of all rows."""
    tile_rows = points(itemsize)
    return -(-n // tile_rows) * tile_rows * padded(d, itemsize)


@jit
def potentials(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,)
    inverse,  # in  1 / unit
    points_,  # in  (1 + m, d) the last center, then m candidates
    closest,  # i/o (n,) squared distance to the nearest center, in units
    tiles,  # i/o (tiles_size(n, d, itemsize),) rows in tiles, in units; or (0,)
    has_tiles,  # in  whether `tiles` are filled
):
    """Potentials (1 + m,): sums of w `closest` with the last center, and with each candidate in addition."""
    n, d = X.shape
    height, tile_rows = padded(d, X.itemsize), points(X.itemsize)
    m = points_.shape[0]
    factor = X.dtype.type(inverse)
    panels, no_shift = pack(X, points_, factor), aligned(height, X)
    one_tile, norm = aligned(tile_rows * height, X), aligned(tile_rows, X)
    last, tile_weight = aligned(tile_rows, X), aligned(tile_rows, X)
    rows = np.empty(tile_rows, np.int64)
    n_panels = (m + PANEL - 1) // PANEL
    sums = aligned(n_panels * PANEL * tile_rows, X)
    potential = np.zeros(m)
    for p in range(tile_rows):
        tile_weight[p] = w[0]
    for i0 in range(0, n, tile_rows):
        count = min(tile_rows, n - i0)
        tile = one_tile if tiles.shape[0] == 0 else tiles[i0 * height : (i0 + tile_rows) * height]
        if not has_tiles:
            for p in range(tile_rows):
                rows[p] = min(i0 + p, n - 1)
            load_tile(X, rows, no_shift, factor, tile, norm, 0, AHEAD * tile_rows, d)
        if w.shape[0] > 1 or count < tile_rows:
            fill_weights(w, i0, count, tile_weight)
        near = closest[i0 : i0 + tile_rows] if count == tile_rows else last
        if count < tile_rows:
            for p in range(count):
                last[p] = closest[i0 + p]
        for q in range(n_panels):
            at = q * PANEL * tile_rows
            add_potentials(tile, 0, panels, q * PANEL * d, q == 0, near, tile_weight, sums, at, d)
        if count < tile_rows:
            for p in range(count):
                closest[i0 + p] = last[p]
        if i0 // tile_rows % FLUSH_TILES == FLUSH_TILES - 1 or i0 + tile_rows >= n:
            for j in range(m):
                potential[j] += take_sum(sums, j * tile_rows, tile_rows)
    return potential


@jit
def fill_weights(w, i0, count, tile_weight):
    """Weights of a tile; rows that are copies of the last one have weight 0."""
    stride = 0 if w.shape[0] == 1 else 1
    for p in range(count):
        tile_weight[p] = w[(i0 + p) * stride]
    for p in range(count, tile_weight.shape[0]):
        tile_weight[p] = 0


@jit
def take_sum(sums, at, size):
    """Return the sum of ``sums[at:at + size]``, and set them to 0."""
    total = 0.0
    for p in range(at, at + size):
        total += np.float64(sums[p])
        sums[p] = 0
    return total


@jit
def pack(X, points_, factor):
    """Panels of the points, in units (see `simd`)."""
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
    rows,  # out (m,) sampled in proportion to w closest
):
    """Draw rows; return the sum of w `closest`."""
    n = closest.shape[0]
    stride = 0 if w.shape[0] == 1 else 1
    blocks = (n + BLOCK - 1) // BLOCK
    cumulative = np.empty(blocks)
    total = 0.0
    for b in range(blocks):
        total += mass_of(closest, w, b * BLOCK, min(n, (b + 1) * BLOCK))
        cumulative[b] = total
    for q in range(u.shape[0]):
        target = u[q] * total
        b = first_above(cumulative, target)
        reached = cumulative[b - 1] if b > 0 else 0.0
        rows[q] = -1
        for i in range(b * BLOCK, min(n, (b + 1) * BLOCK)):
            mass = w[i * stride] * closest[i]
            reached += mass
            if mass > 0.0:
                rows[q] = i
                if reached > target:
                    break
    return total


@jit
def first_above(cumulative, target):
    """Index of the first of the ascending values that is above `target`; of the last one if none is."""
    low, high = 0, len(cumulative) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@jit_reassociating
def mass_of(closest, w, start, stop):
    """Sum of w `closest` over the rows `start` to `stop`."""
    total = 0.0
    if w.shape[0] == 1:
        for i in range(start, stop):
            total += np.float64(closest[i])
        return total * w[0]
    for i in range(start, stop):
        total += w[i] * np.float64(closest[i])
    return total
