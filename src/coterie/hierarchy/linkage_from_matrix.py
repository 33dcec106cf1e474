"""Agglomerative clustering with a full matrix of distances."""

from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.data.scale_check import unsafe_exponent
from coterie.distances import Distance, pairwise
from coterie.distances.euclidean import Euclidean, SquaredEuclidean
from coterie.distances.pairwise import strips
from coterie.distances.precomputed import check_values
from coterie.hierarchy.linkage_from_rows import rescale_heights, scale_to_unit
from coterie.hierarchy.linkage_input import empty_matrix
from coterie.hierarchy.linkage_methods import Method, ReportMerges
from coterie.kernels.plain.linkage import AVERAGE, CENTROID, COMPLETE, WARD, Merges

# Up to this number of columns, distances are computed when they are needed: in less memory, and not slower.
FEW_COLUMNS = 24


def merge_rows(
    X: Any, rows: Any, method: Method, distance: Distance, weight: Array, n_jobs: int | None, progress: ReportMerges
) -> Merges:
    """Compute the distances of the rows of `X`, and merge; `rows` are these rows prepared for the distance."""
    D = empty_matrix(len(rows), rows.dtype)
    if isinstance(distance, Euclidean) and distance.root:
        unit_rows, exponent = scale_to_unit(rows)
        if method.kind in (COMPLETE, AVERAGE) and rows.shape[1] <= FEW_COLUMNS:
            kernel = kernels.select("linkage", *rows.shape)
            merges: Merges = kernel.nearest_neighbour_chain_of_rows(
                unit_rows, D, weight, method.kind, method.equal, progress
            )
            return merges._replace(height=rescale_heights(merges.height, exponent))
        fill(D, unit_rows, SquaredEuclidean() if method.squared else Euclidean(), n_jobs)
    else:
        pairwise(X, metric=distance, out=D, n_jobs=n_jobs)
        check_values(D, "distances")
        exponent = _scale_distances(D, method)
    d = rows.shape[1] if isinstance(rows, np.ndarray) else len(rows)
    return _merge(D, method, weight, exponent, d, progress)


def fill(D: Array, rows: Array, distance: Distance, n_jobs: int | None) -> None:
    """Compute both triangles of `D`: for Euclidean distances this is faster than copying one to the other."""

    def strip(start: int, stop: int) -> None:
        distance.between(rows[start:stop], rows, D[start:stop])

    machine.run_in_threads(strip, strips(*D.shape), n_jobs)


def merge_distances(D: Array, method: Method, weight: Array, progress: ReportMerges) -> Merges:
    """Merge by precomputed distances, which are overwritten."""
    exponent = _scale_distances(D, method)
    if method.squared:
        np.multiply(D, D, out=D)
    return _merge(D, method, weight, exponent, 1, progress)


def _merge(D: Array, method: Method, weight: Array, exponent: int, d: int, progress: ReportMerges) -> Merges:
    """Merge by `D`, distances of rows with `d` columns divided by 2^exponent; squared if the method needs it."""
    kernel = kernels.select("linkage", len(D), d)
    if method.is_single:
        merges: Merges = kernel.prim(D)
        progress(len(D) - 1)
    elif method.kind == CENTROID:
        merges = kernel.generic_linkage(D, weight, method.equal, progress)
    else:
        if method.kind == WARD and (weight != 1).any():
            _weight_squares(D, weight)
        merges = kernel.nearest_neighbour_chain(D, weight, method.kind, method.equal, progress)
    height = np.sqrt(merges.height) if method.squared else merges.height
    return merges._replace(height=rescale_heights(height, exponent))


def _scale_distances(D: Array, method: Method) -> int:
    """Divide distances by a power of 2 if a method adds them and sums could overflow; return the exponent."""
    if method.kind in (None, COMPLETE):
        return 0
    largest = float(D.max(initial=0.0))
    exponent = int(np.frexp(largest)[1]) if method.squared else unsafe_exponent(largest, D.dtype)
    if exponent:
        np.ldexp(D, -exponent, out=D)
    return exponent


def _weight_squares(D: Array, weight: Array) -> None:
    """Replace squared distances of rows by Ward's distances of clusters that have these weights."""
    for start, stop in strips(*D.shape):
        w = weight[start:stop, None]
        D[start:stop] *= (2 * w * (weight / (w + weight))).astype(D.dtype)
