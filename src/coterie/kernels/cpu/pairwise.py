"""Distances of all rows of one table to all rows of another, a block at a time.

Rows of B sit in the lanes, in tiles; rows of A come in panels (see `simd`). Differences are taken as they are, never
by products of rows, which cancel; where additions have units of their own this costs no more time than products.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from coterie.kernels.cpu.jit import compiling, jit, jit_reassociating
from coterie.kernels.cpu.simd import PANEL, VECTORS, against_panel, points
from coterie.kernels.cpu.vectors import Vectors

CannotCompile = numba.core.errors.NumbaError
PANELS = 8  # of A that a tile of B meets while it is in the cache


def _distances(kinds, step, last=None):
    """Code that folds the differences of a panel and a tile by `step(v, difference, total)`, ended by `last(v, total)`.

    The distances, times `factor`, of row j of the panel to the tile are stored from ``at + j * stride`` on.
    """

    def codegen(context, b, sig, args):
        v = Vectors("tile tile_at panels panel_at factor out at stride d", context, b, sig, args)
        totals = against_panel(v, [v.zero] * PANEL, lambda x, c, total: step(v, b.fsub(x, c), total))
        factor, start = v.spread(v["factor"]), v.start("out", v["at"])
        for j in range(PANEL):
            for r in range(VECTORS):
                total = b.fmul(totals[j][r], factor)
                v.store(last(v, total) if last else total, v.at(start, r * v.lanes))
            start = v.at(start, v["stride"])
        return context.get_dummy_value()

    return types.void(*kinds), codegen


def _call(name):
    """The vector form of an LLVM function of one number."""

    def call(v, x):
        signature = ir.FunctionType(v.type, [v.type])
        function = cgutils.get_or_insert_function(v.b.module, signature, f"llvm.{name}.v{v.lanes}f{v.bits}")
        return v.b.call(function, [x])

    return call


_magnitude, _root = _call("fabs"), _call("sqrt")


def _add_square(v, x, total):
    return v.fma(x, x, total)


def _add_magnitude(v, x, total):
    return v.b.fadd(_magnitude(v, x), total)


def _keep_largest(v, x, total):
    return v.higher(_magnitude(v, x), total)


@intrinsic
def square_panel(typingctx, tile, tile_at, panels, panel_at, factor, out, at, stride, d):
    """Squared distances."""
    return _distances((tile, tile_at, panels, panel_at, factor, out, at, stride, d), _add_square)


@intrinsic
def root_panel(typingctx, tile, tile_at, panels, panel_at, factor, out, at, stride, d):
    """Roots of squared distances times `factor`."""
    return _distances((tile, tile_at, panels, panel_at, factor, out, at, stride, d), _add_square, _root)


@intrinsic
def absolute_panel(typingctx, tile, tile_at, panels, panel_at, factor, out, at, stride, d):
    """Sums of absolute differences."""
    return _distances((tile, tile_at, panels, panel_at, factor, out, at, stride, d), _add_magnitude)


@intrinsic
def largest_panel(typingctx, tile, tile_at, panels, panel_at, factor, out, at, stride, d):
    """Largest absolute differences."""
    return _distances((tile, tile_at, panels, panel_at, factor, out, at, stride, d), _keep_largest)


@jit
def _packed(A, width):
    """Rows in groups of `width`, each group (d, width); the last one filled up with zeros."""
    n, d = A.shape
    packed = np.zeros((n + width - 1) // width * width * d, A.dtype)
    for i in range(n):
        group = i // width * width * d + i % width
        for t in range(d):
            packed[group + t * width] = A[i, t]
    return packed


@jit
def differences(A, B, kind, factor, out):
    """Distances by `kind`: 0 squares, 1 their roots, 2 sums and 3 largest of absolute values; times `factor`."""
    m, wide = len(B), points(A.itemsize)
    panels, tiles = _packed(A, PANEL), _packed(B, wide)
    edge = np.empty((PANEL, wide), A.dtype)
    for a in range(0, len(A), PANELS * PANEL):
        for b in range(0, m, wide):
            for i in range(a, min(a + PANELS * PANEL, len(A)), PANEL):
                if b + wide <= m and i + PANEL <= len(A):
                    _panel(tiles, b, panels, i, kind, factor, out, i * m + b, m, A.shape[1])
                else:
                    _panel(tiles, b, panels, i, kind, factor, edge, 0, wide, A.shape[1])
                    for p in range(min(PANEL, len(A) - i)):
                        for j in range(min(wide, m - b)):
                            out[i + p, b + j] = edge[p, j]


@jit
def _panel(tiles, b, panels, i, kind, factor, out, at, stride, d):
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
    """Differences are divided by the largest first: no power overflows."""
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
    for i in range(len(A)):
        for j in range(len(B)):
            total = 0.0
            for t in range(A.shape[1]):
                total += w[t] if A[i, t] != B[j, t] else 0.0
            out[i, j] = total


@jit
def gower(A, B, w, numbers, out):
    """The first `numbers` columns are numbers in units of their range, the others codes; NaN is not there.

    NaN where two rows have no column in common.
    """
    for i in range(len(A)):
        for j in range(len(B)):
            total, weight = 0.0, 0.0
            for t in range(A.shape[1]):
                x, y = A[i, t], B[j, t]
                if x == x and y == y:
                    weight += w[t]
                    total += w[t] * (abs(x - y) if t < numbers else 0.0 if x == y else 1.0)
            out[i, j] = total / weight if weight > 0 else np.nan


@jit
def canberra(A, B, w, out):
    """Columns in which both values are 0 count as 0."""
    for i in range(len(A)):
        for j in range(len(B)):
            total = 0.0
            for t in range(A.shape[1]):
                x, y = 0.5 * A[i, t], 0.5 * B[j, t]  # halves: no sum overflows
                size = abs(x) + abs(y)
                if size > 0:
                    total += w[t] * (abs(x - y) / size)
            out[i, j] = total


@jit
def braycurtis(A, B, out):
    """Two rows of zeros have distance 0; infinite where the sums of values are all 0."""
    largest = 0.0
    for i in range(len(A)):
        for t in range(A.shape[1]):
            largest = max(largest, abs(A[i, t]))
    for j in range(len(B)):
        for t in range(B.shape[1]):
            largest = max(largest, abs(B[j, t]))
    scale = largest * A.shape[1] if largest > 0 else 1.0
    for i in range(len(A)):
        for j in range(len(B)):
            apart, size = 0.0, 0.0
            for t in range(A.shape[1]):
                x, y = A[i, t] / scale, B[j, t] / scale
                apart += abs(x - y)
                size += abs(x + y)
            out[i, j] = 0.0 if apart == 0 else apart / size if size > 0 else np.inf


@jit
def haversine(A, B, out):
    """Latitudes and longitudes in radians."""
    for i in range(len(A)):
        for j in range(len(B)):
            lat = np.sin(0.5 * (float(A[i, 0]) - B[j, 0]))
            lon = np.sin(0.5 * (float(A[i, 1]) - B[j, 1]))
            square = lat * lat + np.cos(float(A[i, 0])) * np.cos(float(B[j, 0])) * lon * lon
            out[i, j] = 2 * np.arcsin(np.sqrt(min(square, 1.0)))


@jit
def nan_euclidean(A, B, out):
    """NaN where two rows have no column in common."""
    for i in range(len(A)):
        for j in range(len(B)):
            total, n_present = 0.0, 0
            for t in range(A.shape[1]):
                apart = float(A[i, t]) - B[j, t]
                if apart == apart:
                    total += apart * apart
                    n_present += 1
            out[i, j] = np.sqrt(total * (A.shape[1] / n_present)) if n_present > 0 else np.nan


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., None]:
    """A block of distances by a function of two rows, compiled into one loop with it."""
    pair = function if isinstance(function, numba.core.dispatcher.Dispatcher) else _pair(function)

    @compiling(cache=False)  # the cache does not know of changes in the user's own code
    def block(A, B, out, arguments):
        for i in range(len(A)):
            for j in range(len(B)):
                out[i, j] = pair(A[i], B[j], *arguments)

    return block


def _pair(function):
    return compiling(cache=False, fastmath={"reassoc", "contract", "nsz"})(function)
