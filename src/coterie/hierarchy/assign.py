"""Assign new rows to the nearest cluster of a fitted tree, by the distance of its linkage."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import machine
from coterie.core import rounding
from coterie.core.arrays import Array
from coterie.core.stored import stored
from coterie.distances.distance import Distance
from coterie.distances.pairwise import strips
from coterie.errors import ScaleError
from coterie.hierarchy.linkage_methods import METHODS
from coterie.hierarchy.tree import Tree, path_sums

SAFE_EXPONENT = 500  # distances from 2^-500 to 2^500 have squares in range


def _is_consistent(objects: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether clusters follow each other, none of them empty, and there are rows for the distance."""
    start, rows = objects["start"], objects["A"]
    is_ordered = len(start) > 0 and start[0] == 0 and (np.diff(start) > 0).all()
    if objects["distance"] is None:
        return bool(is_ordered and rows is None)
    are_rows = not isinstance(rows, np.ndarray) or (rows.ndim == 2 and rows.dtype.kind in "fb")
    return bool(is_ordered and are_rows and rows is not None and len(rows) == len(objects["order"]))


@stored("hierarchy.Objects", check=_is_consistent, distance="none | <distance.*>", order="index<N N", start="index<N K")
@dataclass(frozen=True)
class FittedObjects:
    """The objects of a fit, sorted by cluster."""

    distance: Distance | None
    A: Any  # the sorted rows; None for precomputed distances
    order: Array  # (n,) indices of the objects
    start: Array  # (k,) position of the first object of each cluster

    def distances(self, new: Any) -> Array:
        """Distances of new objects to all objects of the fit (m, n); the columns of precomputed ones are sorted."""
        if self.distance is None:
            return new[:, self.order]
        return self.distance.table(new, self.A)


def fitted_objects(distance: Distance | None, A: Any, labels: Array) -> FittedObjects:
    order = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    return FittedObjects(distance, None if distance is None else A[order], order, start)


def leaf_shares(tree: Tree, labels: Array, weight: Array, halving: bool) -> Array:
    """The share of each leaf in the mean of its cluster (n,): by weight, or halved with each merge above the leaf."""
    if halving:
        has_parent = (tree.parent != np.arange(len(tree.parent))).astype(np.int64)
        depth = path_sums(tree.parent, has_parent)[: len(labels)]
        min_depth = np.full(labels.max() + 1, depth.max())
        np.minimum.at(min_depth, labels, depth)
        weight = 0.5 ** (depth - min_depth[labels])
    return weight / np.bincount(labels, weight)[labels]


@stored("hierarchy.Members", objects="<hierarchy.Objects>", share="real N", mass="real K", inner="none | real K")
@dataclass(frozen=True)
class Members:
    """Clusters defined by all their members: single, complete, average, weighted; and centers of precomputed distances.

    The squared distance to a center is the mean of those to the members, minus half their mean among the members.
    """

    method: str
    objects: FittedObjects
    share: Array  # (n,) in the order of the objects
    mass: Array  # (k,) weight of each cluster
    inner: Array | None = None  # (k,) half the mean squared distance among members; for centers

    @property
    def columns(self) -> int:
        return len(self.share)

    def distances(self, new: Any) -> Array:
        """Distances of new objects to all members (m, n)."""
        return self.objects.distances(new)

    def costs(self, D: Array) -> Array:
        """Distances to all clusters (m, k), from those to the members."""
        start = self.objects.start
        if self.method == "single":
            return np.minimum.reduceat(D, start, axis=1)
        if self.method == "complete":
            return np.maximum.reduceat(D, start, axis=1)
        if self.inner is None:
            return np.add.reduceat(D * self.share, start, axis=1)
        squares = np.add.reduceat(D.astype(np.float64) ** 2 * self.share, start, axis=1) - self.inner
        return cost_increase(squares, self.mass, self.method)


@stored("hierarchy.Centers", distance="<distance.*>", centers="real K D", mass="real K", method="text")
@dataclass(frozen=True)
class Centers:
    """Clusters defined by the centers of their rows: ward, centroid, median."""

    method: str
    distance: Distance
    centers: Array  # (k, d)
    mass: Array  # (k,) weight of each cluster

    @property
    def columns(self) -> int:
        return len(self.centers)

    def distances(self, new: Any) -> Array:
        """Distances of new rows to all centers (m, k)."""
        return self.distance.table(new, self.centers)

    def costs(self, D: Array) -> Array:
        """Squared distances to all clusters (m, k), as the method measures them, from distances to the centers."""
        return cost_increase(D.astype(np.float64) ** 2, self.mass, self.method)


def cost_increase(squares: Array, mass: Array, method: str) -> Array:
    """For Ward, twice the increase of the sum of squares if a row joins a cluster; else the squared distances."""
    return squares * (2 * mass / (mass + 1)) if method == "ward" else squares


def clusters_of_tree(
    method: str, tree: Tree, labels: Array, weight: Array, distance: Distance | None, A: Any
) -> Members | Centers:
    """What is needed to assign new rows: centers if the method has them, else all rows; no precomputed distances."""
    distance = distance and distance.up_to_scale()  # the nearest cluster is the same in any unit
    objects, mass = fitted_objects(distance, A, labels), np.bincount(labels, weight)
    share = leaf_shares(tree, labels, weight, METHODS[method].equal)[objects.order]
    if not METHODS[method].squared:
        return Members(method, objects, share, mass)
    if distance is None:
        exponent = int(np.frexp(A.max())[1])
        if abs(exponent) > SAFE_EXPONENT:
            raise ScaleError(rows=exponent)
        return Members(method, objects, share, mass, _inner_squares(objects, share, A))
    centers = np.add.reduceat(objects.A * share[:, None], objects.start, axis=0)
    return Centers(method, distance, np.ascontiguousarray(centers, dtype=A.dtype), mass)


def _inner_squares(objects: FittedObjects, share: Array, D: Array) -> Array:
    """Half the weighted mean of the squared distances among the members of each cluster (k,)."""
    stops = [*objects.start[1:].tolist(), len(D)]
    half = np.empty(len(stops))
    for j, (start, stop) in enumerate(zip(objects.start.tolist(), stops, strict=True)):
        rows, part = objects.order[start:stop], share[start:stop]
        half[j] = part @ D[np.ix_(rows, rows)].astype(np.float64) ** 2 @ part / 2
    return half


def nearest(clusters: Members | Centers, new: Any, n_jobs: int | None) -> Array:
    """The nearest cluster of each new object (m,); the first of equal ones."""

    def strip(start: int, stop: int) -> Array:
        D = clusters.distances(new[start:stop])
        return rounding.nearest(clusters.costs(D), D.dtype)

    with machine.one_blas_thread:
        return np.concatenate(machine.run_in_threads(strip, strips(len(new), clusters.columns), n_jobs))
