"""Agglomerative clustering of rows without a matrix of their distances."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.arrays import Array
from coterie.distances import Distance
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import strips
from coterie.hierarchy.linkage_methods import Method, ReportMerges
from coterie.kernels import SMALL
from coterie.kernels.plain import linkage
from coterie.kernels.plain.linkage import WARD, Merges

FEW_ROWS = 2500  # minimum number of rows for which a k-d tree is faster: times 2 to the number of columns
WIDE = 64  # with more columns, a matrix that fits into memory is faster than computing distances repeatedly
LARGE = 1 << 31  # bytes of a matrix that memory="auto" avoids where the method allows it
SAFE_EXPONENT = 16  # squares of numbers between 2^-16 and 2^16 are far from underflow and overflow in every type


def is_supported(method: Method, distance: Distance) -> bool:
    """Whether the method needs only Euclidean distances between the prepared rows or centers of clusters."""
    return isinstance(distance, Euclidean) and (method.is_single or method.squared)


def is_preferred(rows: Array, memory: str) -> bool:
    """Whether to avoid the matrix where `is_supported`; depends on `memory` and the shape of the rows only."""
    n, d = rows.shape
    if memory == "auto":
        return n * n * d > SMALL and not (d > WIDE and matrix_is_small(rows))
    return memory == "linear"


def matrix_is_small(rows: Any) -> bool:
    """Whether a matrix of distances takes little memory."""
    return len(rows) ** 2 * rows.dtype.itemsize <= LARGE


def merge_rows(
    rows: Array, method: Method, distance: Any, weight: Array, n_jobs: int | None, progress: ReportMerges
) -> Merges:
    """Merge along a minimum spanning tree, or by the centers of clusters."""
    if method.is_single:
        return _merge_along_spanning_tree(rows, distance, n_jobs, progress)
    from coterie.kernels.cpu import centroid_linkage, ward

    X, exponent = center_rows(rows)
    if method.kind == WARD:
        unit = 4.0 ** np.round(np.log2(weight.mean()) / 2)
        merges = (ward.ward_in_kd_tree if _use_kd_tree(X) else ward.ward)(X, weight / unit, progress)
        return merges._replace(height=rescale_heights(np.sqrt(merges.height) * np.sqrt(unit), exponent))
    merges = centroid_linkage.centroid_linkage(X, np.ones(len(X)) if method.equal else weight, method.equal, progress)
    return merges._replace(height=rescale_heights(np.sqrt(merges.height), exponent))


def rescale_heights(height: Array, exponent: int) -> Array:
    """Multiply heights by 2^exponent; `linkage` rejects those that overflow."""
    with np.errstate(over="ignore"):
        return np.ldexp(height, exponent)


def prim_by_rows(rows: Any, distance: Distance, progress: ReportMerges) -> Merges:
    """Prim's minimum spanning tree for any distance, with one row of distances in memory at a time."""
    distances = np.empty((1, len(rows)), rows.dtype)

    def distances_of(row: int) -> Array:
        distance.between(rows[row : row + 1], rows, distances)
        return distances[0]

    with machine.one_blas_thread:
        return linkage.prim_by_rows(len(rows), distances_of, progress)


def scale_to_unit(rows: Array) -> tuple[Array, int]:
    """Divide rows by a power of 2 if their squares could overflow or underflow; return them and the exponent."""
    exponent = int(np.frexp(np.abs(rows).max(initial=0))[1])
    return (rows, 0) if abs(exponent) <= SAFE_EXPONENT else (np.ldexp(rows, -exponent), exponent)


def center_rows(rows: Array) -> tuple[Array, int]:
    """Subtract the mean, and scale to unit: otherwise centers far from the origin would lose digits."""
    scaled, first = scale_to_unit(rows)
    centered, second = scale_to_unit(scaled - scaled.mean(axis=0, dtype=np.float64))
    return centered.astype(rows.dtype), first + second


def _merge_along_spanning_tree(rows: Array, distance: Any, n_jobs: int | None, progress: ReportMerges) -> Merges:
    from coterie.kernels.cpu import spanning_tree

    X, exponent = scale_to_unit(rows)
    if _use_kd_tree(X):
        left, right = spanning_tree.boruvka(X, partial(machine.in_threads, n_jobs=n_jobs), progress)
    else:
        left, right = spanning_tree.prim(X, progress)
    squares = _edge_squares(X, left, right) * distance.factor
    height = np.sqrt(squares) if distance.root else squares
    replace(distance, exponent_=exponent).put_to_scale(height)
    return Merges(left, right, height)


def _use_kd_tree(X: Array) -> bool:
    n, d = X.shape
    return n >= FEW_ROWS << min(d, 32)


def _edge_squares(X: Array, left: Array, right: Array) -> Array:
    """Squared distances (m,) between the rows `left` and `right`, in float64."""
    squares = np.empty(len(left))
    for start, stop in strips(len(left), X.shape[1]):
        difference = X[left[start:stop]].astype(np.float64) - X[right[start:stop]]
        squares[start:stop] = (difference**2).sum(axis=1)
    return squares
