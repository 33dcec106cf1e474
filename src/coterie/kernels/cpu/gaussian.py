"""Soft assignment to Gaussian components, and the sums that move them; `plain.gaussian` says what they are.

Rows go through in blocks: squares of all components, posterior, sums. Sums are taken in the data's precision within a
block and in float64 between blocks. Second moments are of ``w r (x - c) x'``: half about the center saves a subtraction
at every product and loses little. Where a component has a share in few rows of a block, these are put together first.
"""

from __future__ import annotations

import numpy as np

from coterie.kernels.cpu.components import FORMS
from coterie.kernels.cpu.jit import jit, jit_reassociating
from coterie.kernels.cpu.simd import load_tile
from coterie.kernels.cpu.soft import (
    STRIP,
    TRIANGLE,
    WIDE,
    add_products,
    add_squares,
    center_squares,
    posterior,
    scaled_squares,
    triangle_squares,
    weigh_strip,
    whiten,
)

FULL, TIED, DIAG, SPHERICAL = (FORMS[form] for form in ("full", "tied", "diag", "spherical"))
SOFT, HARD, STOCHASTIC = 0, 1, 2
E_STEPS = {"soft": SOFT, "hard": HARD, "stochastic": STOCHASTIC}

PICK_FROM = 16  # columns from which it pays to take second moments of only the rows that count
LOGS = 32  # rows whose likelihoods share a logarithm
WITHIN = STRIP + len(TRIANGLE)  # sums of a strip with itself


@jit
def em(
    X,  # in  (n, d)
    w,  # in  (n,), or (1,) for one weight for all
    inverse,  # in  1 / unit
    origin,  # in  (padded d,)
    e_step,  # in  number of the E-step
    known,  # in  (n,) components, -1 where unknown, or (0,)
    u,  # in  (n,) uniform numbers, or (0,)
    s,  # in  Layout
    room,  # i/o numbers of a Room
    rows,  # i/o (block,)
    picked,  # i/o (block,)
    norm,  # i/o (rows of a tile,)
    weight,  # out (k,)
    sums,  # out by form
):
    """Log-likelihood and bound."""
    n = X.shape[0]
    for i in range(sums.shape[0]):
        sums[i] = 0.0
    for j in range(s.k):
        weight[j] = 0.0
    likelihood, bound = 0.0, 0.0
    choosing = e_step != SOFT or known.shape[0] > 0
    for i0 in range(0, n, s.block):
        count = min(s.block, n - i0)
        tiles = load_block(X, inverse, origin, i0, count, s, room, rows, norm)
        put_weights(w, i0, count, s, room)
        take_squares(room, s, tiles)
        for t in range(tiles):
            posterior(room, s, t * s.rows)
        if choosing:
            bound += choose(w, i0, count, e_step, known, u, s, room)
        likelihood += log_likelihood(w, i0, count, s, room)
        for j in range(s.k):
            weight[j] += added(room[s.resp + j * s.block : s.resp + j * s.block + tiles * s.rows])
        if s.form == FULL:
            for j in range(s.k):
                tile, some, resp = s.tile, tiles, s.resp + j * s.block
                if s.columns >= PICK_FROM:
                    found = pick(i0, count, s, room, resp, picked)
                    if found <= min(tiles // 2, s.few_tiles):
                        tile, some, resp = s.few, found, s.few_w
                        load_tiles(X, inverse, origin, picked, some, 0, s, tile, room, norm)
                if some > 0:
                    add_moments(room, s, tile, some, resp, s.center + j * s.columns, sums, j * s.moments)
        else:
            add_block(room, s, tiles, sums)
    return likelihood, bound if e_step != SOFT else likelihood


@jit
def log_joint(
    X,  # in  (n, d)
    inverse,  # in  1 / unit
    origin,  # in  (padded d,)
    s,  # in  Layout
    room,  # i/o numbers of a Room
    rows,  # i/o (block,)
    norm,  # i/o (rows of a tile,)
    out,  # out (n, k)
):
    """log p(x, z) of every row and component; whether all are finite where the component has any weight."""
    n, lost = X.shape[0], 0
    for i0 in range(0, n, s.block):
        count = min(s.block, n - i0)
        tiles = load_block(X, inverse, origin, i0, count, s, room, rows, norm)
        take_squares(room, s, tiles)
        for j in range(s.k):
            offset, scale, first = room[s.offset + j], room[s.scale + j], s.squares + j * s.block
            squares, column = room[first : first + count], out[i0 : i0 + count, j]
            for p in range(count):
                column[p] = offset + scale * squares[p]
                lost += np.isfinite(offset) and not np.isfinite(column[p])
    return lost == 0


@jit
def load_block(X, inverse, origin, i0, count, s, room, rows, norm):
    """Rows `i0` on as tiles, the last one filled up with the last row; how many tiles."""
    tiles = (count + s.rows - 1) // s.rows
    for p in range(tiles * s.rows):
        rows[p] = i0 + min(p, count - 1)
    load_tiles(X, inverse, origin, rows, tiles, s.block, s, s.tile, room, norm)
    return tiles


@jit
def load_tiles(X, inverse, origin, rows, tiles, ahead, s, first, room, norm):
    for t in range(tiles):
        tile = room[first + t * s.stride :]
        load_tile(X, rows[t * s.rows :], origin, X.dtype.type(inverse), tile, norm, 0, ahead, X.shape[1])


@jit
def pick(i0, count, s, room, resp, picked):
    """The rows that a component has any share in, and their shares in `few_w`; how many tiles they make."""
    m = 0
    for p in range(count):
        share = room[resp + p]
        picked[m] = i0 + p
        room[s.few_w + m] = share
        m += share > 0
    some = (m + s.rows - 1) // s.rows
    for p in range(m, some * s.rows):
        picked[p] = i0
        room[s.few_w + p] = 0
    return some


@jit
def put_weights(w, i0, count, s, room):
    """Weights of the rows; those that fill up a tile have none."""
    one = w.shape[0] == 1
    for p in range(count):
        room[s.w + p] = w[0 if one else i0 + p]
    for p in range(count, s.block):
        room[s.w + p] = 0


@jit
def take_squares(room, s, tiles):
    if s.form == FULL:
        for j in range(s.k):
            factor, out = s.factor + j * s.triangle, s.squares + j * s.block
            for t in range(tiles):
                triangle_squares(room, s.tile + t * s.stride, factor, out + t * s.rows, s.columns)
        return
    for t in range(tiles):
        tile = s.tile + t * s.stride
        if s.form == TIED:
            whiten(room, tile, s.factor, s.white, s.columns)
        for j in range(0, s.k, STRIP):
            panel, out = s.factor + j * s.columns, s.squares + j * s.block + t * s.rows
            if s.form == TIED:
                center_squares(room, s.white, panel + s.triangle, out, s.block, s.columns)
            elif s.form == DIAG:
                scaled_squares(room, tile, panel + j * s.columns, out, s.block, s.columns)
            else:
                center_squares(room, tile, panel, out, s.block, s.columns)


@jit
def joint(room, s, j, p):
    return room[s.offset + j] + room[s.scale + j] * room[s.squares + j * s.block + p]


@jit
def choose(w, i0, count, e_step, known, u, s, room):
    """All the weight of a row to one component: the known, the likeliest or the drawn one; the bound that gives."""
    bound = 0.0
    for p in range(count):
        if room[s.w + p] == 0:
            continue
        label = known[i0 + p] if known.shape[0] > 0 else -1
        told = label >= 0
        if not told:
            if e_step == SOFT:
                continue
            label = likeliest(room, s, p) if e_step == HARD else drawn(room, s, p, u[i0 + p])
        chosen = joint(room, s, label, p)
        for j in range(s.k):
            room[s.resp + j * s.block + p] = 0
        room[s.resp + label * s.block + p] = room[s.w + p]
        bound += w[0 if w.shape[0] == 1 else i0 + p] * chosen
        if told:
            room[s.most + p] = chosen
            room[s.total + p] = 1
    return bound


@jit
def likeliest(room, s, p):
    label, best = 0, joint(room, s, 0, p)
    for j in range(1, s.k):
        other = joint(room, s, j, p)
        if other > best:
            label, best = j, other
    return label


@jit
def drawn(room, s, p, u):
    """The component at which the posterior's running sum passes `u`."""
    label, until = 0, 0.0
    for j in range(s.k):
        share = np.float64(room[s.resp + j * s.block + p])
        until += share
        if share > 0.0:
            label = j
        if until > u * np.float64(room[s.w + p]):
            break
    return label


@jit
def log_likelihood(w, i0, count, s, room):
    total = 0.0
    if w.shape[0] == 1:
        for first in range(0, count, LOGS):
            total += np.log(product(room[s.total + first : s.total + min(count, first + LOGS)]))
        return w[0] * (total + added(room[s.most : s.most + count]))
    for p in range(count):
        if w[i0 + p] != 0.0:
            total += w[i0 + p] * (np.float64(room[s.most + p]) + np.log(np.float64(room[s.total + p])))
    return total


@jit_reassociating
def product(values):
    total = 1.0
    for i in range(values.shape[0]):
        total *= np.float64(values[i])
    return total


@jit_reassociating
def added(values):
    total = 0.0
    for i in range(values.shape[0]):
        total += np.float64(values[i])
    return total


@jit_reassociating
def dot(x, y):
    total = x.dtype.type(0)
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@jit
def add_block(room, s, tiles, sums):
    """Adds a block to the sums of every component, if covariances are not full."""
    if s.form == DIAG:
        for e in range(0, s.columns, STRIP):  # a strip stays in the first-level cache
            for j in range(s.k):
                at = j * s.columns + e
                resp, center = s.resp + j * s.block, s.center + at
                add_squares(room, s.tile + e * s.rows, s.stride, resp, center, sums, 2 * at, tiles)
    else:
        at = 0
        for j in range(0, s.k, STRIP):
            for e in range(0, s.columns, WIDE):
                add_products(room, s.tile + e * s.rows, s.stride, s.resp + j * s.block, s.block, sums, at, tiles)
                at += STRIP * WIDE
    if s.form == TIED:
        add_moments(room, s, s.tile, tiles, s.w, s.center + s.k * s.columns, sums, sums.shape[0] - s.moments)
    elif s.form == SPHERICAL:
        for j in range(s.k):
            resp, squares = s.resp + j * s.block, s.squares + j * s.block
            rows = tiles * s.rows
            sums[sums.shape[0] - s.k + j] += dot(room[resp : resp + rows], room[squares : squares + rows])


@jit
def add_moments(room, s, tile, tiles, w, center, sums, at):
    """Adds w (x - c) and, on and above the diagonal, w (x - c) x'."""
    for e in range(0, s.columns, STRIP):
        weigh_strip(room, tile + e * s.rows, s.stride, w, center + e, s.z, s.block, sums, at, tiles)
        at += WITHIN
        for i in range(e + STRIP, s.columns, WIDE):
            add_products(room, tile + i * s.rows, s.stride, s.z, s.block, sums, at, tiles)
            at += STRIP * WIDE
