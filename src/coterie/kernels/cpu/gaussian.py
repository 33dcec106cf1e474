"""E-step of Gaussian mixtures, compiled; for the definitions see `plain.gaussian`.

Rows are processed in blocks: Mahalanobis distances of all components, posteriors, sums. Sums are in the precision of
the data within a block, and in float64 between blocks. Second moments are of ``w r (x - c) x'``: centering only one
factor saves a subtraction in each product and loses little accuracy. If few rows of a block have a positive posterior
of a component, these rows are copied together first.
"""

import numpy as np

from coterie.kernels.cpu.gaussian_layout import FORMS
from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.simd import fill_weights, load_tile
from coterie.kernels.cpu.soft_simd import (
    PRODUCT_COLUMNS,
    STRIP,
    TRIANGLE,
    add_products,
    add_squares,
    center_squares,
    posterior,
    scaled_squares,
    triangle_squares,
    weighted_strip,
    whiten,
)
from coterie.kernels.cpu.sums import sum_of

FULL, TIED, DIAG, SPHERICAL = (FORMS[form] for form in ("full", "tied", "diag", "spherical"))
SOFT, HARD, STOCHASTIC = 0, 1, 2
E_STEPS = {"soft": SOFT, "hard": HARD, "stochastic": STOCHASTIC}

MIN_COLUMNS_TO_SELECT = 16  # columns from which selecting rows with positive posteriors is faster
LOGS = 32  # rows whose likelihoods are multiplied before the logarithm
WITHIN = STRIP + len(TRIANGLE)  # number of sums of a strip with itself


@jit
def em(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,) if all weights are equal
    inverse,  # in  1 / unit
    e_step,  # in  number of the E-step
    known,  # in  (n,) known components, -1 if unknown; or (0,)
    u,  # in  (n,) uniform numbers, or (0,)
    s,  # in  Layout
    b,  # i/o Arrays
):
    """Write the sums of one pass to `b.weight` and `b.sums`; return log-likelihood and bound."""
    n, buffer = X.shape[0], b.buffer
    b.sums[:] = 0.0
    b.weight[:] = 0.0
    likelihood, bound = 0.0, 0.0
    is_hard = e_step != SOFT or known.shape[0] > 0
    for i0 in range(0, n, s.block):
        count = min(s.block, n - i0)
        tiles = load_block(X, inverse, i0, count, s, b)
        fill_weights(w, i0, count, buffer[s.w : s.w + s.block])
        squared_distances(buffer, s, tiles)
        for t in range(tiles):
            posterior(buffer, s, t * s.rows)
        if is_hard:
            bound += choose(w, i0, count, e_step, known, u, s, buffer)
        likelihood += log_likelihood(w, i0, count, s, buffer)
        add_sums(X, inverse, i0, count, tiles, s, b)
    return likelihood, bound if e_step != SOFT else likelihood


@jit
def add_sums(X, inverse, i0, count, tiles, s, b):
    """Add a block with known posteriors to the sums of all components."""
    buffer = b.buffer
    for j in range(s.k):
        b.weight[j] += sum_of(buffer[s.resp + j * s.block : s.resp + j * s.block + tiles * s.rows])
    if s.form == FULL:
        for j in range(s.k):
            tile, n_selected, resp = s.tile, tiles, s.resp + j * s.block
            if s.columns >= MIN_COLUMNS_TO_SELECT:
                n_tiles = select_rows(i0, count, s, buffer, resp, b.selected)
                if n_tiles <= min(tiles // 2, s.few_tiles):
                    tile, n_selected, resp = s.few, n_tiles, s.few_w
                    load_tiles(X, inverse, b.selected, n_selected, 0, s, tile, b)
            if n_selected > 0:
                add_moments(buffer, s, tile, n_selected, resp, s.center + j * s.columns, b.sums, j * s.moments)
    else:
        add_block(buffer, s, tiles, b.sums)


@jit
def log_joint(
    X,  # in  (n, d)
    inverse,  # in  1 / unit
    s,  # in  Layout
    b,  # i/o Arrays
    out,  # out (n, k)
):
    """log p(x, z) of each row and component; return whether all are finite, except for components of weight 0."""
    n, buffer, n_invalid = X.shape[0], b.buffer, 0
    for i0 in range(0, n, s.block):
        count = min(s.block, n - i0)
        tiles = load_block(X, inverse, i0, count, s, b)
        squared_distances(buffer, s, tiles)
        for j in range(s.k):
            offset, scale, first = buffer[s.offset + j], buffer[s.scale + j], s.squares + j * s.block
            squares, column = buffer[first : first + count], out[i0 : i0 + count, j]
            for p in range(count):
                column[p] = offset + scale * squares[p]
                n_invalid += np.isfinite(offset) and not np.isfinite(column[p])
    return n_invalid == 0


@jit
def load_block(X, inverse, i0, count, s, b):
    """Load `count` rows from `i0` on as tiles, padded with the last row; return the number of tiles."""
    tiles = (count + s.rows - 1) // s.rows
    for p in range(tiles * s.rows):
        b.rows[p] = i0 + min(p, count - 1)
    load_tiles(X, inverse, b.rows, tiles, s.block, s, s.tile, b)
    return tiles


@jit
def load_tiles(X, inverse, rows, tiles, ahead, s, first, b):
    """Load the given rows as tiles from `first` on."""
    for t in range(tiles):
        tile = b.buffer[first + t * s.stride :]
        load_tile(X, rows[t * s.rows :], b.origin, X.dtype.type(inverse), tile, b.norm, 0, ahead, X.shape[1])


@jit
def select_rows(i0, count, s, buffer, resp, selected):
    """Select rows with a positive responsibility `resp`, and copy these to `few_w`; return the number of tiles."""
    m = 0
    for p in range(count):
        share = buffer[resp + p]
        selected[m] = i0 + p
        buffer[s.few_w + m] = share
        m += share > 0
    n_tiles = (m + s.rows - 1) // s.rows
    for p in range(m, n_tiles * s.rows):
        selected[p] = i0
        buffer[s.few_w + p] = 0
    return n_tiles


@jit
def squared_distances(buffer, s, tiles):
    """Squared Mahalanobis distances of a block to all components."""
    if s.form == FULL:
        for j in range(s.k):
            factor, out = s.factor + j * s.triangle, s.squares + j * s.block
            for t in range(tiles):
                triangle_squares(buffer, s.tile + t * s.stride, factor, out + t * s.rows, s.columns)
        return
    for t in range(tiles):
        tile = s.tile + t * s.stride
        if s.form == TIED:
            whiten(buffer, tile, s.factor, s.white, s.columns)
        for j in range(0, s.k, STRIP):
            panel, out = s.factor + j * s.columns, s.squares + j * s.block + t * s.rows
            if s.form == TIED:
                center_squares(buffer, s.white, panel + s.triangle, out, s.block, s.columns)
            elif s.form == DIAG:
                scaled_squares(buffer, tile, panel + j * s.columns, out, s.block, s.columns)
            else:
                center_squares(buffer, tile, panel, out, s.block, s.columns)


@jit
def joint(buffer, s, j, p):
    """log p(x, z) of row `p` of the block and component `j`."""
    return buffer[s.offset + j] + buffer[s.scale + j] * buffer[s.squares + j * s.block + p]


@jit
def choose(w, i0, count, e_step, known, u, s, buffer):
    """Assign rows to one component: the known, the most likely or a random one; return their part of the bound."""
    bound = 0.0
    for p in range(count):
        if buffer[s.w + p] == 0:
            continue
        label = known[i0 + p] if known.shape[0] > 0 else -1
        is_known = label >= 0
        if not is_known:
            if e_step == SOFT:
                continue
            label = most_likely(buffer, s, p) if e_step == HARD else draw_component(buffer, s, p, u[i0 + p])
        log_joint_of_label = joint(buffer, s, label, p)
        for j in range(s.k):
            buffer[s.resp + j * s.block + p] = 0
        buffer[s.resp + label * s.block + p] = buffer[s.w + p]
        bound += w[0 if w.shape[0] == 1 else i0 + p] * log_joint_of_label
        if is_known:
            buffer[s.log_max + p] = log_joint_of_label
            buffer[s.total + p] = 1
    return bound


@jit
def most_likely(buffer, s, p):
    label, best = 0, joint(buffer, s, 0, p)
    for j in range(1, s.k):
        other = joint(buffer, s, j, p)
        if other > best:
            label, best = j, other
    return label


@jit
def draw_component(buffer, s, p, u):
    """The component at which the cumulative posterior exceeds `u`."""
    label, cumulative = 0, 0.0
    for j in range(s.k):
        share = np.float64(buffer[s.resp + j * s.block + p])
        cumulative += share
        if share > 0.0:
            label = j
        if cumulative > u * np.float64(buffer[s.w + p]):
            break
    return label


@jit
def log_likelihood(w, i0, count, s, buffer):
    total = 0.0
    if w.shape[0] == 1:
        for first in range(0, count, LOGS):
            total += np.log(product(buffer[s.total + first : s.total + min(count, first + LOGS)]))
        return w[0] * (total + sum_of(buffer[s.log_max : s.log_max + count]))
    for p in range(count):
        if w[i0 + p] != 0.0:
            total += w[i0 + p] * (np.float64(buffer[s.log_max + p]) + np.log(np.float64(buffer[s.total + p])))
    return total


@jit_reassociating
def product(values):
    total = 1.0
    for i in range(values.shape[0]):
        total *= np.float64(values[i])
    return total


@jit_reassociating
def dot(x, y):
    total = x.dtype.type(0)
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@jit
def add_block(buffer, s, tiles, sums):
    """Add a block to the sums of all components, for covariances that are not full."""
    if s.form == DIAG:
        for e in range(0, s.columns, STRIP):  # a strip of columns stays in the first-level cache
            for j in range(s.k):
                at = j * s.columns + e
                resp, center = s.resp + j * s.block, s.center + at
                add_squares(buffer, s.tile + e * s.rows, s.stride, resp, center, sums, 2 * at, tiles)
    else:
        at = 0
        for j in range(0, s.k, STRIP):
            for e in range(0, s.columns, PRODUCT_COLUMNS):
                add_products(buffer, s.tile + e * s.rows, s.stride, s.resp + j * s.block, s.block, sums, at, tiles)
                at += STRIP * PRODUCT_COLUMNS
    if s.form == TIED:
        add_moments(buffer, s, s.tile, tiles, s.w, s.center + s.k * s.columns, sums, sums.shape[0] - s.moments)
    elif s.form == SPHERICAL:
        for j in range(s.k):
            resp, squares = s.resp + j * s.block, s.squares + j * s.block
            rows = tiles * s.rows
            sums[sums.shape[0] - s.k + j] += dot(buffer[resp : resp + rows], buffer[squares : squares + rows])


@jit
def add_moments(buffer, s, tile, tiles, w, center, sums, at):
    """Add w (x - c) and, on and above the diagonal, w (x - c) x'."""
    for e in range(0, s.columns, STRIP):
        weighted_strip(buffer, tile + e * s.rows, s.stride, w, center + e, s.z, s.block, sums, at, tiles)
        at += WITHIN
        for i in range(e + STRIP, s.columns, PRODUCT_COLUMNS):
            add_products(buffer, tile + i * s.rows, s.stride, s.z, s.block, sums, at, tiles)
            at += STRIP * PRODUCT_COLUMNS
