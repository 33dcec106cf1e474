"""D² sampling: rounds of greedy k-means++ on one part of the rows, and the arrivals of k-means||."""

import numpy as np

from coterie.kernels.cpu.exact_distance import square
from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.simd import PANEL, add_potentials, aligned, fill_weights, load_tile, padded, points

AHEAD = 8  # number of tiles between prefetching and use
FLUSH_TILES = 256  # number of tiles after which sums in the precision of the data are added to float64
BLOCK = 128  # rows whose masses are added before one of them is sampled
CENTERS, CANDIDATES, IS_DONE, HAS_TILES = range(4)  # places in the state of `rounds`


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
def rounds(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,)
    inverse,  # in  1 / unit
    u,  # in  (rounds, 2, draws) uniform numbers: for sampling, and for acceptance
    points_,  # i/o (1 + size, d) the last center, then candidates
    candidates,  # i/o (size,) rows of the candidates
    closest,  # i/o (n,) squared distance to the nearest center, in units
    tiles,  # i/o as in `potentials`
    centers,  # out (k,) rows of the centers
    state,  # i/o (4,) numbers of centers and candidates, whether no more can be chosen or are needed, HAS_TILES
):
    """Greedy k-means++: choose the best candidate, and sample the next ones as in `seeding.plusplus.greedy`.

    If too few samples are accepted, the next round has no candidates: it samples again, with the new center.
    """
    size, draws = candidates.shape[0], u.shape[2]
    rows = np.empty(draws, np.int64)
    for r in range(u.shape[0]):
        if state[IS_DONE]:
            return
        m = state[CANDIDATES]
        potential = potentials(X, w, inverse, points_[: 1 + m], closest, tiles, state[HAS_TILES] > 0)
        state[HAS_TILES] = tiles.shape[0] > 0
        state[IS_DONE] = not draw(closest, w, u[r, 0], rows) > 0.0
        if state[IS_DONE]:
            return
        if m > 0:
            best = candidates[np.argmin(potential[1:])]
            centers[state[CENTERS]] = best
            points_[0] = X[best]
            state[CENTERS] += 1
            state[IS_DONE] = state[CENTERS] == centers.shape[0]
        accepted = 0
        for q in range(draws):
            i = rows[q]
            before = np.float64(closest[i])
            after = min(before, square(X, i, points_, 0, inverse)) if m > 0 else before
            if accepted < size and u[r, 1, q] * before < after:
                candidates[accepted] = i
                points_[1 + accepted] = X[i]
                accepted += 1
        state[CANDIDATES] = accepted if accepted == size or m == 0 else 0


@jit
def arrivals(
    closest,  # in  (n,)
    w,  # in  (n,), or (1,)
    seed,  # in  uint64
    first,  # in  uint64, number of the first row
    expected,  # in  number of rows
    rows,  # out (n,)
    time,  # out (n,)
):
    """Sum of w `closest`, and number of `rows` that arrive before `expected` / sum; see `plain.arrivals`."""
    n = closest.shape[0]
    stride = 0 if w.shape[0] == 1 else 1
    potential = mass_of(closest, w, 0, n)
    if not potential > 0.0:
        return potential, 0
    end, count = expected / potential, 0
    for i in range(n):
        mass = w[i * stride] * closest[i]
        z = seed + (first + np.uint64(i + 1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        u = np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(12)) * 2.0**-52 + 2.0**-53
        if mass > 0.0 and 1.0 - u < mass * end:  # -log(u) >= 1 - u
            rows[count], time[count] = i, -np.log(u) / mass
            count += time[count] < end
    return potential, count


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
        b = min(np.searchsorted(cumulative, target, side="right"), blocks - 1)
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
