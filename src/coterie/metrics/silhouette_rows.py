"""Silhouettes of rows: three ways to the sums of their distances to every cluster, and what these make."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.errors import InputError
from coterie.data.memory import MemorySource
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import strips
from coterie.engines.local import Threads
from coterie.metrics.labels import Array, Labels
from coterie.metrics.moments import cluster_moments
from coterie.metrics.objects import Objects, refuse_overflow

MOST_SUMS = 1 << 25  # sums of distances, a row for each cluster, that are kept for all rows at once
MOST_FILLING = 2.0  # how many times as many rows there may be once clusters are filled up to whole groups


def check_clusters(weight: Array) -> None:
    """Silhouettes need two clusters that count."""
    if np.count_nonzero(weight) < 2:
        raise InputError("only one cluster has rows whose sample_weight is not 0: silhouettes need at least two")


def check_together(some: bool) -> None:
    """And one of them with more than one row."""
    if not some:
        raise InputError("labels make every row a cluster of its own: silhouettes need a cluster of two rows or more")


def silhouettes(objects: Objects, n_jobs: int | None) -> Array:
    """Silhouettes of all rows (n,), in float64."""
    kind = objects.distance
    if isinstance(kind, Euclidean) and type(kind).between is Euclidean.between:
        if not kind.root:
            return _by_means(objects, n_jobs)
        ops = kernels.select("silhouette", *objects.rows.shape)
        places = ops.places(objects.counts, objects.rows.itemsize)
        if places <= MOST_FILLING * len(objects) and places * objects.k <= MOST_SUMS:
            return _fused(ops, objects, places, n_jobs)
    return silhouettes_of(objects, np.arange(len(objects)), n_jobs)


def silhouettes_of(objects: Objects, rows: Array, n_jobs: int | None) -> Array:
    """Silhouettes of some rows among all, strip by strip, whatever the distance."""
    starts, heavy = objects.starts, None if objects.w is None else objects.w[objects.order].astype(objects.dtype)

    def fold(rows: Array, apart: Array) -> Array:
        if heavy is not None:
            apart *= heavy
        return _from_sums(np.add.reduceat(apart, starts, axis=1, dtype=np.float64), objects, rows)

    return np.concatenate(list(objects.strips(rows, n_jobs, fold)))


def _fused(ops: Any, objects: Objects, places: int, n_jobs: int | None) -> Array:
    """Straight-line distances go into their sums as they are made, each pair of rows once."""
    given = ops.layout(objects.rows, objects.weights, objects.codes, objects.counts)
    sums = np.zeros((objects.k, places))
    for found in machine.in_threads(partial(ops.sums, given), ops.blocks(given), n_jobs):
        for clusters, rows, values in found:
            sums[clusters, rows] += values

    def step(start: int, stop: int) -> Array:
        return _from_sums(sums[:, given.where[start:stop]].T, objects, np.arange(start, stop))

    return np.concatenate(list(machine.in_threads(step, strips(len(objects), objects.k), n_jobs)))


def _by_means(objects: Objects, n_jobs: int | None) -> Array:
    """Squares to all rows of a cluster add up to those to its mean, and the scatter about it: n k of them, not n²."""
    distance: Any = objects.distance  # squares, times its factor
    source = MemorySource(objects.rows, objects.w, y=objects.codes)
    found = cluster_moments(source, Threads(n_jobs), Labels(objects.codes, np.arange(objects.k)))
    scatter = np.zeros(objects.k)
    scatter[found.clusters] = found.sum_square

    def step(start: int, stop: int) -> Array:
        squares = np.zeros((stop - start, objects.k))
        squares[:, found.clusters] = found.means.distances(objects.rows[start:stop]) ** 2
        sums = distance.factor * (objects.weight * squares + scatter)
        return _from_sums(sums, objects, np.arange(start, stop))

    return np.concatenate(list(machine.in_threads(step, strips(len(objects), sum(found.means.pivot.shape)), n_jobs)))


def _from_sums(sums: Array, objects: Objects, rows: Array) -> Array:
    """Silhouettes of `rows` from the sums of their distances to all clusters (rows, k), in any unit."""
    refuse_overflow(sums)
    weight, codes, rest = objects.weight, objects.codes[rows], objects.others[rows]
    own, counted = (np.arange(len(rows)), codes), weight > 0
    a = sums[own] / np.where(rest > 0, rest, 1.0)
    means = np.where(counted, sums / np.where(counted, weight, 1.0), np.inf)
    means[own] = np.inf
    return widths(a, means.min(axis=1), rest)


def widths(a: Array, b: Array, rest: Array) -> Array:
    """``(b - a) / max(a, b)``; 0 for rows alone in their cluster, which has no `rest`, and where both are 0."""
    largest = np.maximum(a, b)
    none = (rest <= 0) | (largest == 0)
    return np.where(none, 0.0, (b - a) / np.where(none, 1.0, largest))
