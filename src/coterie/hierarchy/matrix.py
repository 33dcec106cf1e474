"""Merges by a matrix of distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.data.scale import unsafe_exponent
from coterie.distances import Distance, pairwise
from coterie.distances.euclidean import Euclidean, SquaredEuclidean
from coterie.distances.pairwise import strips
from coterie.distances.precomputed import check_values
from coterie.hierarchy import given
from coterie.hierarchy.methods import Method, Tell
from coterie.hierarchy.points import in_units, to_unit
from coterie.kernels.plain.linkage import CENTER, WARD, Merges

Array = np.ndarray[Any, Any]


def of_rows(
    X: Any, rows: Any, how: Method, distance: Distance, weight: Array, n_jobs: int | None, tell: Tell
) -> Merges:
    """By the distances of the rows of `X`, which are `rows` as the distance takes them."""
    D = given.matrix_room(len(rows), rows.dtype)
    if isinstance(distance, Euclidean) and distance.root:
        unit_rows, exponent = to_unit(rows)
        fill(D, unit_rows, SquaredEuclidean() if how.squared else Euclidean(), n_jobs)
    else:
        pairwise(X, metric=distance, out=D, n_jobs=n_jobs)
        check_values(D, "distances")
        exponent = _to_unit(D, how.squared)
    return _merges(D, how, weight, exponent, rows.shape[1] if isinstance(rows, np.ndarray) else len(rows), tell)


def fill(D: Array, rows: Array, distance: Distance, n_jobs: int | None) -> None:
    """All of D: distances that cost less than to copy them from one half to the other."""

    def strip(start: int, stop: int) -> None:
        distance.between(rows[start:stop], rows, D[start:stop])

    for _ in machine.in_threads(strip, strips(*D.shape), n_jobs):
        pass


def of_distances(D: Array, how: Method, weight: Array, tell: Tell) -> Merges:
    """By given ones, which are overwritten."""
    exponent = _to_unit(D, how.squared)
    if how.squared:
        np.multiply(D, D, out=D)
    return _merges(D, how, weight, exponent, 1, tell)


def _merges(D: Array, how: Method, weight: Array, exponent: int, d: int, tell: Tell) -> Merges:
    """D (n, n), squares if the method wants them, in units of 2^exponent before; d columns made them."""
    kernel = kernels.select("linkage", len(D), d)
    if how.single:
        found: Merges = kernel.prim(D)
        tell(len(D) - 1)
    elif how.kind == CENTER:
        found = kernel.closest(D, weight, how.equal, tell)
    else:
        if how.kind == WARD and (weight != 1).any():
            _weigh(D, weight)
        found = kernel.chain(D, weight, how.kind, how.equal, tell)
    height = np.sqrt(found.height) if how.squared else found.height
    return found._replace(height=in_units(height, exponent))


def _to_unit(D: Array, squared: bool) -> int:
    """Distances divided by a power of 2, and which, where sums of them might leave the range of numbers."""
    largest = float(D.max(initial=0.0))
    exponent = int(np.frexp(largest)[1]) if squared else unsafe_exponent(largest, D.dtype)
    if exponent:
        np.ldexp(D, -exponent, out=D)
    return exponent


def _weigh(D: Array, weight: Array) -> None:
    """Squared distances of rows become Ward's of clusters of these weights."""
    for start in range(0, len(D), given.height(D)):
        strip = D[start : start + given.height(D)]
        own = weight[start : start + len(strip), None]
        strip *= (2 * own * (weight / (own + weight))).astype(D.dtype)
