"""Which cluster a new row is nearest to, as a linkage measures clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.scale import Scale, ScaleError
from coterie.core.stored import stored
from coterie.distances.distance import Distance
from coterie.distances.pairwise import strips
from coterie.hierarchy.methods import METHODS
from coterie.hierarchy.tree import Array, Tree, along_path

SQUARED = 500  # distances from 2^-500 to 2^500 have squares in range


def _is_consistent(objects: dict[str, Any], lengths: dict[str, int]) -> bool:
    """Whether clusters follow each other, none of them empty, and there are rows for the distance."""
    start, rows = objects["start"], objects["A"]
    in_order = len(start) > 0 and start[0] == 0 and (np.diff(start) > 0).all()
    if objects["distance"] is None:
        return bool(in_order and rows is None)
    are_rows = not isinstance(rows, np.ndarray) or (rows.ndim == 2 and rows.dtype.kind in "fb")
    return bool(in_order and are_rows and rows is not None and len(rows) == len(objects["order"]))


@stored("hierarchy.Objects", check=_is_consistent, distance="none | <distance.*>", order="index<N N", start="index<N K")
@dataclass(frozen=True)
class Fitted:
    """The objects of a fit, in the order of their clusters."""

    distance: Distance | None
    A: Any  # their rows in that order; None for given distances
    order: Array  # (n,) their numbers
    start: Array  # (k,) where each cluster begins

    def distances(self, new: Any) -> Array:
        """Of new objects to all of them (m, n); given distances are put in order."""
        if self.distance is None:
            return new[:, self.order]
        made = np.empty((len(new), len(self.order)), np.result_type(new.dtype, self.A.dtype))
        self.distance.between(new, self.A, made)
        return made


def fitted(distance: Distance | None, A: Any, labels: Array) -> Fitted:
    order = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[order], np.arange(labels.max() + 1))
    return Fitted(distance, None if distance is None else A[order], order, start)


def shares(tree: Tree, labels: Array, weight: Array, halving: bool) -> Array:
    """What every leaf counts in the middle of its cluster (n,): by weight, or half as much with every merge above."""
    if halving:
        below = (tree.parent != np.arange(len(tree.parent))).astype(np.int64)
        depth = along_path(tree.parent, below)[: len(labels)]
        highest = np.full(labels.max() + 1, depth.max())
        np.minimum.at(highest, labels, depth)
        weight = 0.5 ** (depth - highest[labels])
    return weight / np.bincount(labels, weight)[labels]


@stored("hierarchy.Members", objects="<hierarchy.Objects>", share="real N", mass="real K", inner="none | real K")
@dataclass(frozen=True)
class Members:
    """Clusters by all members: single, complete, average, weighted; and centers of which only distances are known.

    The square of the distance to a center is the mean of those to the members, less half the mean among them.
    """

    method: str
    objects: Fitted
    share: Array  # (n,) in the order of the objects
    mass: Array  # (k,)
    inner: Array | None = None  # (k,) half the mean of squares among members, for centers

    @property
    def columns(self) -> int:
        return len(self.share)

    def costs(self, new: Any) -> Array:
        """How far new objects are from all clusters (m, k)."""
        D, start = self.objects.distances(new), self.objects.start
        if self.method == "single":
            return np.minimum.reduceat(D, start, axis=1)
        if self.method == "complete":
            return np.maximum.reduceat(D, start, axis=1)
        if self.inner is None:
            return np.add.reduceat(D * self.share, start, axis=1)
        squares = np.add.reduceat(D.astype(np.float64) ** 2 * self.share, start, axis=1) - self.inner
        return growth(squares, self.mass, self.method)


@stored("hierarchy.Centers", distance="<distance.*>", centers="real K D", mass="real K", method="text")
@dataclass(frozen=True)
class Centers:
    """Clusters by the centers of their rows: ward, centroid, median."""

    method: str
    distance: Distance
    centers: Array  # (k, d)
    mass: Array  # (k,)

    @property
    def columns(self) -> int:
        return len(self.centers)

    def costs(self, new: Any) -> Array:
        made = np.empty((len(new), self.columns), np.result_type(new.dtype, self.centers.dtype))
        self.distance.between(new, self.centers, made)
        return growth(made.astype(np.float64) ** 2, self.mass, self.method)


def growth(squares: Array, mass: Array, method: str) -> Array:
    """From squared distances to centers: for Ward twice what a row adds to the sum of squares of a cluster it joins."""
    return squares * (2 * mass / (mass + 1)) if method == "ward" else squares


def remember(
    method: str, tree: Tree, labels: Array, weight: Array, distance: Distance | None, A: Any
) -> Members | Centers:
    """What is needed to place new rows: centers where there are some, else all rows; of given distances none."""
    distance = distance and distance.up_to_scale()  # the nearest cluster is the same in any unit
    objects, mass = fitted(distance, A, labels), np.bincount(labels, weight)
    share = shares(tree, labels, weight, METHODS[method].equal)[objects.order]
    if not METHODS[method].squared:
        return Members(method, objects, share, mass)
    if distance is None:
        exponent = int(np.frexp(A.max())[1])
        if abs(exponent) > SQUARED:
            raise ScaleError(Scale(exponent, 0))
        return Members(method, objects, share, mass, _inner(objects, share, A))
    centers = np.add.reduceat(objects.A * share[:, None], objects.start, axis=0)
    return Centers(method, distance, np.ascontiguousarray(centers, dtype=A.dtype), mass)


def _inner(objects: Fitted, share: Array, D: Array) -> Array:
    ends = [*objects.start[1:].tolist(), len(D)]
    half = np.empty(len(ends))
    for j, (start, end) in enumerate(zip(objects.start.tolist(), ends, strict=True)):
        rows, part = objects.order[start:end], share[start:end]
        half[j] = part @ D[np.ix_(rows, rows)].astype(np.float64) ** 2 @ part / 2
    return half


def nearest(clusters: Members | Centers, new: Any, n_jobs: int | None) -> Array:
    """The nearest cluster of every new object (m,), the first of several."""

    def strip(start: int, stop: int) -> Array:
        return clusters.costs(new[start:stop]).argmin(axis=1).astype(np.int32)

    with machine.one_blas_thread:
        return np.concatenate(list(machine.in_threads(strip, strips(len(new), clusters.columns), n_jobs)))
