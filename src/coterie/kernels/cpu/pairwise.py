"""Distances between all rows of `A` (n, d) and `B` (m, d), written to `out` (n, m).

Rows of B are in the lanes, in tiles; rows of A are in panels (see `simd`). Differences are computed directly, because
products of rows would cancel.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

from coterie.kernels.cpu.jit import compiling, jit, jit_reassociating
from coterie.kernels.cpu.simd import PANEL, VECTORS, points, reduce_panel
from coterie.kernels.cpu.vectors import Vectors, vector_code

CannotCompile = numba.core.errors.NumbaError
PANELS = 8  # panels of A that are compared with a tile of B while it is in the cache


def _add_absolute(v, x, total):
    return v.b.fadd(v.call("fabs", x), total)


def _maximum(v, x, total):
    return v.higher(v.call("fabs", x), total)


def _distances(step, last=None):
    """An intrinsic that reduces differences of a panel and a tile by `step(v, difference, total)`, then by `last`.

    Totals are multiplied by `factor` before `last`. Those of row j of the panel are stored from ``at + j * stride`` on.
    """

    @vector_code
    def distances(v, tile, tile_at, panels, panel_at, factor, out, at, stride, d):
        b = v.b
        totals = reduce_panel(v, [v.zero] * PANEL, lambda x, c, total: step(v, b.fsub(x, c), total))
        factors, row = v.spread(factor), v.start(out, at)
        for j in range(PANEL):
            for r in range(VECTORS):
                total = b.fmul(totals[j][r], factors)
                v.store(v.call(last, total) if last else total, v.at(row, r * v.lanes))
            row = v.at(row, stride)

    return distances


square_panel, root_panel = _distances(Vectors.add_square), _distances(Vectors.add_square, "sqrt")
absolute_panel, largest_panel = _distances(_add_absolute), _distances(_maximum)


@jit
def _packed(A, width):
    """Rows in groups of `width`, each one (d, width); the last group is padded with zeros."""
    n, d = A.shape
    groups = np.zeros((n + width - 1) // width * width * d, A.dtype)
    for i in range(n):
        first = i // width * width * d + i % width
        for t in range(d):
            groups[first + t * width] = A[i, t]
    return groups


@jit
def differences(A, B, kind, factor, out):
    """Distance number `kind` of `plain.pairwise.METRICS`, times `factor`."""
    m, tile_rows = len(B), points(A.itemsize)
    panels, tiles = _packed(A, PANEL), _packed(B, tile_rows)
    edge = np.empty((PANEL, tile_rows), A.dtype)
    for a in range(0, len(A), PANELS * PANEL):
        for b in range(0, m, tile_rows):
            for i in range(a, min(a + PANELS * PANEL, len(A)), PANEL):
                if b + tile_rows <= m and i + PANEL <= len(A):
                    _panel(tiles, b, panels, i, kind, factor, out, i * m + b, m, A.shape[1])
                else:
                    _panel(tiles, b, panels, i, kind, factor, edge, 0, tile_rows, A.shape[1])
                    for p in range(min(PANEL, len(A) - i)):
                        for j in range(min(tile_rows, m - b)):
                            out[i + p, b + j] = edge[p, j]


@jit
def _panel(tiles, b, panels, i, kind, factor, out, at, stride, d):
    """Distances of one panel and one tile."""
    factor = out.dtype.type(factor)
    if kind == 0:
        square_panel(tiles, b * d, panels, i * d, factor, out, at, stride, d)
    elif kind == 1:
        root_panel(tiles, b * d, panels, i * d, factor, out, at, stride, d)
    elif kind == 2:
        absolute_panel(tiles, b * d, panels, i * d, factor, out, at, stride, d)
    else:
        largest_panel(tiles, b * d, panels, i * d, factor, out, at, stride, d)


@jit_reassociating
def minkowski(A, B, p, out):
    """Differences are divided by the largest one first, so that powers do not overflow."""
    for i in range(len(A)):
        for j in range(len(B)):
            largest = 0.0
            for t in range(A.shape[1]):
                largest = max(largest, float(abs(A[i, t] - B[j, t])))
            total = 0.0
            if 0 < largest < np.inf:
                for t in range(A.shape[1]):
                    total += (abs(A[i, t] - B[j, t]) / largest) ** p
            out[i, j] = largest * total ** (1 / p) if largest < np.inf else largest


@jit_reassociating
def mismatches(A, B, w, out):
    """Weighted number of columns in which two rows differ."""
    for i in range(len(A)):
        for j in range(len(B)):
            total = 0.0
            for t in range(A.shape[1]):
                total += w[t] if A[i, t] != B[j, t] else 0.0
            out[i, j] = total


@jit
def gower(A, B, w, n_numeric, out):
    """The first `n_numeric` columns are numbers divided by their range, the others are codes; NaN is ignored.

    The distance is NaN if no column is observed in both rows.
    """
    for i in range(len(A)):
        for j in range(len(B)):
            total, weight = 0.0, 0.0
            for t in range(A.shape[1]):
                x, y = A[i, t], B[j, t]
                if x == x and y == y:
                    weight += w[t]
                    total += w[t] * (abs(x - y) if t < n_numeric else 0.0 if x == y else 1.0)
            out[i, j] = total / weight if weight > 0 else np.nan


@jit
def nan_euclidean(A, B, out):
    """NaN if no column is observed in both rows."""
    for i in range(len(A)):
        for j in range(len(B)):
            total, n_present = 0.0, 0
            for t in range(A.shape[1]):
                difference = float(A[i, t]) - B[j, t]
                if difference == difference:
                    total += difference * difference
                    n_present += 1
            out[i, j] = np.sqrt(total * (A.shape[1] / n_present)) if n_present > 0 else np.nan


@cache
def compile_function(function: Callable[..., Any]) -> Callable[..., None]:
    """Compile a function of two rows into a kernel for all pairs of rows."""
    is_compiled = isinstance(function, numba.core.dispatcher.Dispatcher)
    pair = function if is_compiled else compiling(cache=False, fastmath={"reassoc", "contract", "nsz"})(function)

    @compiling(cache=False)  # the cache does not detect changes in the code of users
    def block(A, B, out, arguments):
        for i in range(len(A)):
            for j in range(len(B)):
                out[i, j] = pair(A[i], B[j], *arguments)

    return block
