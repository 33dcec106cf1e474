"""Merges of rows without a matrix of their distances."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from coterie import machine
from coterie.distances import Distance
from coterie.distances.euclidean import Euclidean
from coterie.hierarchy.methods import Method, Tell
from coterie.kernels import SMALL
from coterie.kernels.plain.linkage import WARD, Merges

Array = np.ndarray[Any, Any]

FEW_ROWS = 2500  # for one column, twice as many for each column more: from here on a tree of boxes pays
WIDE = 64  # columns, from which on a matrix that fits is faster than distances computed again and again
LARGE = 1 << 31  # bytes of a matrix that is not made unless it has to be
BLOCK = 1 << 20  # numbers of the edges that are measured at a time
PLAIN = 16  # numbers between 2^-16 and 2^16 have squares that are far from the ends of any type


def can(how: Method, distance: Distance) -> bool:
    """Whether straight lines between the prepared rows say it all."""
    return isinstance(distance, Euclidean) and (how.single or how.squared)


def should(rows: Array, memory: str) -> bool:
    """Whether to do without a matrix, where one can: by the shape of the rows alone."""
    n, d = rows.shape
    if memory == "auto":
        return n * n * d > SMALL and not (d > WIDE and fits(rows))
    return memory == "linear"


def fits(rows: Any) -> bool:
    """Whether a matrix of distances is nothing to think about."""
    return len(rows) ** 2 * rows.dtype.itemsize <= LARGE


def merges(rows: Array, how: Method, distance: Any, weight: Array, n_jobs: int | None, tell: Tell) -> Merges:
    """Along a minimum spanning tree, or by centers of clusters."""
    if how.single:
        return _spanning(rows, distance, n_jobs, tell)
    from coterie.kernels.cpu import centers, ward

    X, exponent = centred(rows)
    if how.kind == WARD:
        unit = 4.0 ** np.round(np.log2(weight.mean()) / 2)
        found = (ward.ward_in_boxes if _boxes_pay(X) else ward.ward)(X, weight / unit, tell)
        return found._replace(height=in_units(np.sqrt(found.height) * np.sqrt(unit), exponent))
    found = centers.centers(X, np.ones(len(X)) if how.equal else weight, how.equal, tell)
    return found._replace(height=in_units(np.sqrt(found.height), exponent))


def in_units(height: Array, exponent: int) -> Array:
    """Heights times 2^exponent; `linkage` rejects those that are infinite then."""
    with np.errstate(over="ignore"):
        found: Array = np.ldexp(height, exponent)
    return found


def row_by_row(rows: Any, distance: Distance, tell: Tell) -> Merges:
    """Prim's spanning tree by any distance, one row of distances at a time."""
    n, new = len(rows), 0
    near, link, outside = np.full(n, np.inf), np.zeros(n, np.int64), np.ones(n, bool)
    apart, ends = np.empty((1, n), rows.dtype), np.empty((2, n - 1), np.int64)
    found = Merges(ends[0], ends[1], np.empty(n - 1))
    with machine.one_blas_thread:
        for step in range(n - 1):
            outside[new], near[new] = False, np.inf
            distance.between(rows[new : new + 1], rows, apart)
            nearer = outside & (apart[0] < near)
            near[nearer], link[nearer] = apart[0][nearer], new
            new = int(near.argmin())
            found.left[step], found.right[step], found.height[step] = link[new], new, near[new]
            if step % 256 == 0:
                tell(step)
    tell(n - 1)
    return found


def to_unit(rows: Array) -> tuple[Array, int]:
    """Rows divided by a power of 2, and which, where their squares might leave the numbers there are."""
    exponent = int(np.frexp(np.abs(rows).max(initial=0))[1])
    return (rows, 0) if abs(exponent) <= PLAIN else (np.ldexp(rows, -exponent), exponent)


def centred(rows: Array) -> tuple[Array, int]:
    """The same about their mean: centers of clusters are as precise as the rows, wherever these lie."""
    near, first = to_unit(rows)
    moved, second = to_unit(near - near.mean(axis=0, dtype=np.float64))
    return moved.astype(rows.dtype), first + second


def _spanning(rows: Array, distance: Any, n_jobs: int | None, tell: Tell) -> Merges:
    from coterie.kernels.cpu import spanning

    X, exponent = to_unit(rows)
    if _boxes_pay(X):
        left, right = spanning.boruvka(X, partial(machine.in_threads, n_jobs=n_jobs), tell)
    else:
        left, right = spanning.prim(X, tell)
    squares = _squares(X, left, right) * distance.factor
    height = np.sqrt(squares) if distance.root else squares
    replace(distance, exponent_=exponent).put_to_scale(height)
    return Merges(left, right, height)


def _boxes_pay(X: Array) -> bool:
    n, d = X.shape
    return n >= FEW_ROWS << min(d, 32)


def _squares(X: Array, left: Array, right: Array) -> Array:
    """Squared distances of rows and others, in float64."""
    found, step = np.empty(len(left)), max(1, BLOCK // X.shape[1])
    for start in range(0, len(left), step):
        part = slice(start, start + step)
        found[part] = ((X[left[part]].astype(np.float64) - X[right[part]]) ** 2).sum(axis=1)
    return found
