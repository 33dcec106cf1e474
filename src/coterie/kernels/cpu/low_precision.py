"""Nearest centers by integer scores with a proven error bound, for many centers and columns.

Rows and centers are rounded to 8 bits, each in its own unit, and scored in integers. The bound of the rounding gives a
lower bound of every score; only its minimum over each panel of centers is stored. The best panel of a row is scored in
float32, and so is each other panel whose lower bound is not above that score. So the two best scores of a row are those
that `hard_assignment` would compute, or lower, and it decides about labels as usual. Tiles in which too many panels are
left are scored with 16 bits, and by `hard_assignment` if that does not help. The proof is in docs/theory/certified.md.
"""

import os
from collections import namedtuple

import numpy as np

from coterie.kernels.cpu.exact_distance import square, square_in_order
from coterie.kernels.cpu.integer_simd import (
    OFFSET,
    count_bits,
    has_integer_products,
    largest_of_panel,
    largest_of_tile,
    quantize_panel_int8,
    quantize_panel_int16,
    quantize_tile_int8,
    quantize_tile_int16,
    scan_int8,
    scan_int16,
    score_row,
    select_rows,
)
from coterie.kernels.cpu.jit import jit
from coterie.kernels.cpu.score_rounding import tolerance
from coterie.kernels.cpu.simd import PANEL, load_tile, lowest_bit, padded, points

MIN_COLUMNS, MAX_COLUMNS = 32, 1 << 15  # sums of products of 8 bits do not overflow up to this number of columns
MIN_CENTERS, MIN_ROWS = 256, 1024
MAX_SELECTED = 0.12  # share of panels that may be scored again; above, the next precision is faster
WIDE = 64  # number of columns below which this share is smaller, because rows and panels have fixed costs
FIRST_WAIT, MAX_WAIT = 16, 64  # tiles after a failure before the lower precision is tried again
LENGTH_16 = 46000.0  # maximum length of a row or center in units of its 16-bit integers: products fit in 31 bits
LARGEST_8, LARGEST_16 = 127.0, 32700.0
SMALLEST = 2.0**-60  # smaller values are rounded to 0
LARGEST_NORM = np.float32(2.0**80)  # rows with a larger squared norm are decided in float64
ROUNDING = 2.0**-24
TINY = 2.0**-60  # values below this may underflow
STRETCH = 1.0 + 2.0**-8  # bound of the rounding of the norm of a center
INT8, INT16, FLOAT = 0, 1, 2  # levels

Centers = namedtuple(
    "Centers",
    (
        "words",  # (panels * words * PANEL,)
        "start",  # (panels * PANEL,) minus OFFSET times the sum of the integers
        "scale",  # (panels * PANEL,) unit of the integers of a center
        "residual",  # (1,) largest |c - rounded c| / |c|; negative before the centers are rounded
    ),
)

LowPrecision = namedtuple(
    "LowPrecision",
    (
        "int8",  # Centers
        "int16",  # Centers
        "half",  # (panels * PANEL,) half of the squared norms; large where there is no center
        "typical",  # (1,) typical length of a center
        "tile",  # (padded d * points,) rows of a tile
        "words",  # (words * points,) the same, rounded
        "least",  # (panels * points,) minimum of the scores of a panel
        "selected",  # (panels,) rows for which a panel is scored again, as bits
        "candidates",  # (panels * PANEL,) centers of such panels
        "where",  # (points,) panel of the minimum
        "rows",  # (8, points) scale, its inverse, largest value, residual, factor, slack, minimum or cut, next minimum
        "state",  # (3,) level, tiles before a lower one is tried again, the next such number
    ),
)


def is_enabled() -> bool:
    """Whether integer scores may be used: the CPU has the instructions, and `COTERIE_LOW_PRECISION` is not 0."""
    return has_integer_products() and os.environ.get("COTERIE_LOW_PRECISION", "1") != "0"


def describe() -> str:
    """Whether integer scores are used on this machine."""
    if not has_integer_products():
        return "no integer products"
    return f"integer products {'on' if is_enabled() else 'off'}"


def is_useful(n: int, d: int, k: int, dtype: np.dtype) -> bool:
    """Whether integer scores are faster for n rows with d columns and k centers."""
    is_large = n >= MIN_ROWS and MIN_COLUMNS <= d <= MAX_COLUMNS and k >= MIN_CENTERS
    return bool(is_large and dtype == np.float32 and is_enabled())


def workspace(k: int, d: int) -> LowPrecision:
    """Arrays for k centers with d columns."""
    panels, tile_rows, single = -(-k // PANEL), points(4), np.float32
    width = padded(d, 4)

    def centers(columns: int) -> Centers:
        size = panels * PANEL
        words = np.zeros(size * -(-d // columns), np.int32)
        return Centers(words, np.zeros(size, np.int32), np.zeros(size, single), np.full(1, -1.0))

    return LowPrecision(
        centers(4), centers(2), np.zeros(panels * PANEL, single), np.zeros(1), np.zeros(width * tile_rows, single),
        np.zeros(width // 2 * tile_rows, np.int32), np.zeros(panels * tile_rows, single), np.zeros(panels, np.int64),
        np.zeros(panels * PANEL, np.int32), np.zeros(tile_rows, np.int32), np.zeros((8, tile_rows), single),
        np.zeros(3, np.int64),
    )  # fmt: skip


@jit
def begin(
    low,  # out LowPrecision
    half,  # in  (panels * PANEL,) half of the squared norms
    k,  # in  number of centers
):
    """Prepare for new centers; they are rounded when they are first needed."""
    total = 0.0
    for j in range(half.shape[0]):
        low.half[j] = half[j] if j < k else np.float32(2.0**60)
    for j in range(k):
        total += np.log2(max(np.float64(half[j]), 2.0**-80))
    low.typical[0] = np.sqrt(2.0) * 2.0 ** (0.5 * total / k)  # few centers far away do not change it
    low.int8.residual[0] = -1.0
    low.int16.residual[0] = -1.0
    low.state[0] = INT8
    low.state[1] = 0
    low.state[2] = FIRST_WAIT


@jit
def largest_integers(d, level):
    """Inverse of the largest integer, and of the largest length of a row or center in integers."""
    return (1.0 / LARGEST_8, 0.0) if level == INT8 else (1.0 / LARGEST_16, 1.0 / (LENGTH_16 - np.sqrt(d)))


@jit
def choose_scale(top, length, limits):
    """Unit of the integers of a row or center with this largest value and at most this length; and its inverse."""
    is_in_range = top > SMALLEST and length < np.inf
    unit = max(top * limits[0], length * limits[1])
    return np.float32(unit if is_in_range else 1.0), np.float32(1.0 / unit if is_in_range else 0.0)


@jit
def round_centers(low, panels, k, d, level):
    """Round the centers to integers."""
    centers = low.int8 if level == INT8 else low.int16
    d_words = (d + 3) // 4 if level == INT8 else (d + 1) // 2
    top, inverse, scale = np.empty(PANEL, np.float32), np.empty(PANEL, np.float32), np.empty(PANEL, np.float32)
    residual, total = np.empty(PANEL, np.float32), np.empty(PANEL, np.float32)
    largest, limits = 0.0, largest_integers(d, level)
    for first in range(0, low.half.shape[0], PANEL):
        largest_of_panel(panels, first * d, top, d)
        for j in range(PANEL):
            length = np.sqrt(2.0 * np.float64(low.half[first + j])) * STRETCH if first + j < k else 0.0
            scale[j], inverse[j] = choose_scale(np.float64(top[j]), length, limits)
        if level == INT8:
            quantize_panel_int8(panels, first * d, inverse, scale, centers.words, first * d_words, residual, total, d)
        else:
            quantize_panel_int16(panels, first * d, inverse, scale, centers.words, first * d_words, residual, total, d)
        for j in range(PANEL):
            centers.scale[first + j] = scale[j]
            centers.start[first + j] = np.int32(-OFFSET * total[j]) if level == INT8 else 0
            if top[j] > SMALLEST:
                length = np.sqrt(2.0 * np.float64(low.half[first + j]))
                largest = max(largest, np.sqrt(np.float64(residual[j])) / length)
    centers.residual[0] = largest * (1.0 + (d + 4) * ROUNDING)


@jit
def is_due(
    state,  # i/o (3,) of LowPrecision
):
    """Whether `label_tile` is to be tried for the next tile: not for some tiles after it has failed."""
    if state[0] > INT8 and state[1] > 0:
        state[1] -= 1
    elif state[0] > INT8:
        state[0] -= 1
    return state[0] < FLOAT


@jit
def label_tile(
    X,  # in  (n, d)
    centers,  # in  (k, d)
    s,  # i/o Search of `hard_assignment`
    low,  # i/o LowPrecision
    p,  # in  index of the first row of the tile in `s`
):
    """Two best scores of the rows of a tile; return False if the precision of the data is faster."""
    state = low.state
    load_tile(X, s.rows[p:], s.shift, np.float32(s.inverse), low.tile, s.norm[p:], 0, s.block, X.shape[1])
    while state[0] < FLOAT:
        scan_tile(s, low, p, centers.shape[0], X.shape[1], state[0])
        if score_selected(X, centers, s, low, p, MAX_SELECTED * min(1.0, X.shape[1] / WIDE)):
            if state[0] == INT8:
                state[2] = FIRST_WAIT
            return True
        state[0] += 1
        state[1] = state[2]
        state[2] = min(2 * state[2], MAX_WAIT)
    return False


@jit
def scan_tile(s, low, p, k, d, level):
    """Minima of the scores of each panel in integers, and their error bounds."""
    tile_rows = points(4)
    rounded = low.int8 if level == INT8 else low.int16
    if rounded.residual[0] < 0.0:
        round_centers(low, s.panels, k, d, level)
    scale, inverse, top, residual = low.rows[0], low.rows[1], low.rows[2], low.rows[3]
    factor, slack, best = low.rows[4], low.rows[5], low.rows[6]
    largest_of_tile(low.tile, 0, top, d)
    limits = largest_integers(d, level)
    for i in range(tile_rows):
        scale[i], inverse[i] = choose_scale(np.float64(top[i]), row_length(s.norm[p + i], d), limits)
    if level == INT8:
        quantize_tile_int8(low.tile, 0, inverse, scale, low.words, 0, residual, top, d)
    else:
        quantize_tile_int16(low.tile, 0, inverse, scale, low.words, 0, residual, top, d)
    for i in range(tile_rows):
        factor[i], slack[i] = error_bound(s.norm[p + i], residual[i], scale[i], rounded.residual[0], low.typical[0], d)
        best[i] = np.inf
        low.where[i] = 0
    d_words = (d + 3) // 4 if level == INT8 else (d + 1) // 2
    for j in range(low.selected.shape[0]):
        first, at = j * PANEL, j * tile_rows
        if level == INT8:
            scan_int8(
                factor, low.words, rounded.words, first * d_words, rounded.start, low.half, rounded.scale, first,
                low.least, at, best, low.where, d_words,
            )  # fmt: skip
        else:
            scan_int16(
                factor, low.words, rounded.words, first * d_words, rounded.start, low.half, rounded.scale, first,
                low.least, at, best, low.where, d_words,
            )  # fmt: skip


@jit
def row_length(norm, d):
    """Upper bound of the length of a row of a tile, from its squared norm in float32."""
    return np.sqrt(np.float64(norm)) * (1.0 + (d + 4) * ROUNDING) + np.sqrt(d) * TINY


@jit
def error_bound(norm, residual, scale, centers_residual, typical, d):
    """Factor of |c|^2 / 2 and slack, in the unit of the row: ``factor |c|^2 / 2 - x.c - slack`` is a lower bound.

    The error is at most ``error |c|``, which is at most ``error (typical + |c|^2 / typical) / 2`` for any `typical`.
    """
    if not norm < LARGEST_NORM:
        return np.float32(1.0), np.float32(0.0)
    length = row_length(norm, d)
    lost = np.sqrt(np.float64(residual)) * (1.0 + (d + 4) * ROUNDING) + np.sqrt(d) * TINY
    error = lost + (length + lost) * (centers_residual + 8.0 * ROUNDING * (1.0 + centers_residual))
    error *= STRETCH
    typical = max(typical, 2.0 * error)
    slack = 0.5 * error * typical + (length + lost + error) * np.sqrt(d) * 4.0 * TINY + 2.0**-100
    return np.float32((1.0 - 8.0 * ROUNDING - error / typical) / scale), np.float32(slack / scale * (1.0 + 2.0**-20))


@jit
def score_selected(X, centers, s, low, p, limit):
    """Score in float32 the best panel of each row, and the panels that can contain a better center.

    Returns False if these are more than the share `limit` of all panels.
    """
    tile_rows, n_panels = points(4), low.selected.shape[0]
    scale, slack, cut, rest = low.rows[0], low.rows[5], low.rows[6], low.rows[7]
    low.selected[:] = 0
    for i in range(tile_rows):
        s.best[p + i] = np.inf
        s.second[p + i] = np.inf
        rest[i] = np.inf
        if s.norm[p + i] < LARGEST_NORM:
            low.selected[low.where[i]] |= 1 << i
            low.least[low.where[i] * tile_rows + i] = np.inf
    score_panels(X, s, low, p)
    for i in range(tile_rows):
        highest = np.float64(s.best[p + i]) + np.float64(tolerance(s, p + i))
        highest = highest / np.float64(scale[i]) + np.float64(slack[i])
        cut[i] = np.float32(highest + 2.0**-20 * abs(highest)) if s.norm[p + i] < LARGEST_NORM else -np.inf
    total = 0
    for j in range(n_panels):
        low.selected[j] = select_rows(low.least, j * tile_rows, cut, rest)
        total += count_bits(low.selected[j])
    if total > limit * n_panels * tile_rows:
        return False
    score_panels(X, s, low, p)
    for i in range(tile_rows):
        bound = (np.float64(rest[i]) - np.float64(slack[i])) * np.float64(scale[i])
        rest[i] = bound - 2.0**-20 * abs(bound)
        s.second[p + i] = min(s.second[p + i], rest[i])
    for i in range(tile_rows):
        if s.best[p + i] < np.inf and not s.second[p + i] - s.best[p + i] > tolerance(s, p + i):
            decide(X, centers, s, low, p, i, rest[i])
    return True


@jit
def score_panels(X, s, low, p):
    """Update the two best scores of rows with their selected panels, panel by panel, so that it stays in the cache."""
    d, inverse = X.shape[1], X.dtype.type(s.inverse)
    for j in range(low.selected.shape[0]):
        bits, first = low.selected[j], j * PANEL
        while bits != 0:
            i = p + lowest_bit(bits)
            bits &= bits - 1
            score_row(
                X, s.rows[i] * d, s.shift, inverse, s.panels, first * d, s.half, first, s.best, s.second, s.index, i, d
            )  # fmt: skip


@jit
def decide(X, centers, s, low, p, i, rest):
    """Label of a row in float64, as `exact_distance.two_nearest` defines it, among the panels that were scored.

    All other centers are known to be farther than the nearest of these.
    """
    k, d = centers.shape
    row, count = s.rows[p + i], 0
    minimum = np.inf
    for j in range(low.selected.shape[0]):
        if low.selected[j] >> i & 1 or j == low.where[i]:
            for c in range(j * PANEL, min(k, j * PANEL + PANEL)):
                low.candidates[count] = c
                s.squares[count] = square(X, row, centers, c, s.inverse)
                minimum = min(minimum, s.squares[count])
                count += 1
    limit = minimum * (1.0 + 4.0 * (d + 2) * 2.0**-53)
    nearest, second = np.inf, np.inf
    for q in range(count):
        if s.squares[q] <= limit:
            s.squares[q] = square_in_order(X, row, centers, low.candidates[q], s.inverse)
        if s.squares[q] < nearest and s.squares[q] <= limit:
            s.index[p + i], nearest, second = low.candidates[q], s.squares[q], min(second, nearest)
        else:
            second = min(second, s.squares[q])
    s.best[p + i] = -np.inf
    s.second[p + i] = min(rest, 0.5 * (second * (1.0 - 2.0**-20) - np.float64(s.norm[p + i])))
