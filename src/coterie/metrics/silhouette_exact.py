"""Silhouettes from the sums of distances of each row to each cluster, which are computed in one of three ways."""

from functools import partial
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.data.memory import MemorySource
from coterie.distances.euclidean import Euclidean
from coterie.distances.pairwise import strips
from coterie.engines.local import Threads
from coterie.errors import InputError
from coterie.metrics.labelled_rows import LabelledRows, check_finite
from coterie.metrics.labels import Labels
from coterie.metrics.moments import cluster_moments

MAX_SUMS = 1 << 25  # maximum number of sums, one for each row and cluster, that are stored at once
MAX_PADDING = 2.0  # maximum ratio of rows after clusters are padded to whole groups, to rows before


def check_not_all_single(has_others: bool) -> None:
    """Raise an error if every cluster is a single row."""
    if not has_others:
        raise InputError("labels make each row a separate cluster: silhouettes need a cluster of at least two rows")


def silhouettes(labelled: LabelledRows, n_jobs: int | None) -> Array:
    """Silhouettes of all rows (n,), in float64."""
    distance = labelled.distance
    if isinstance(distance, Euclidean):
        if not distance.root:
            return _from_means(labelled, n_jobs)
        ops = kernels.select("silhouette", *labelled.rows.shape)
        padded = ops.padded_size(labelled.counts, labelled.rows.itemsize)
        if padded <= MAX_PADDING * len(labelled) and padded * labelled.k <= MAX_SUMS:
            return _from_fused_sums(ops, labelled, padded, n_jobs)
    return silhouettes_of(labelled, np.arange(len(labelled)), n_jobs)


def silhouettes_of(labelled: LabelledRows, rows: Array, n_jobs: int | None) -> Array:
    """Silhouettes of some of the rows, for any distance, in strips."""
    starts, w = labelled.starts, None if labelled.w is None else labelled.w[labelled.order].astype(labelled.dtype)

    def reduce(rows: Array, distances: Array) -> Array:
        if w is not None:
            distances *= w
        return _from_sums(np.add.reduceat(distances, starts, axis=1, dtype=np.float64), labelled, rows)

    return np.concatenate(list(labelled.strips(rows, n_jobs, reduce)))


def _from_fused_sums(ops: Any, labelled: LabelledRows, padded: int, n_jobs: int | None) -> Array:
    """Silhouettes for Euclidean distances: each pair of rows is computed once, and added to the sums at once."""
    layout = ops.layout(labelled.rows, labelled.weights, labelled.codes, labelled.counts)
    sums = np.zeros((labelled.k, padded))
    for block in machine.in_threads(partial(ops.sums, layout), ops.blocks(layout), n_jobs):
        for clusters, rows, values in block:
            sums[clusters, rows] += values

    def step(start: int, stop: int) -> Array:
        return _from_sums(sums[:, layout.position[start:stop]].T, labelled, np.arange(start, stop))

    return np.concatenate(machine.run_in_threads(step, strips(len(labelled), labelled.k), n_jobs))


def _from_means(labelled: LabelledRows, n_jobs: int | None) -> Array:
    """Silhouettes for squared distances, from n k of them instead of n².

    The sum of squared distances to the rows of a cluster is the weight of the cluster times the squared distance to its
    mean, plus the scatter about the mean.
    """
    distance: Any = labelled.distance  # squared Euclidean distances, times a factor
    source = MemorySource(labelled.rows, labelled.w, y=labelled.codes)
    moments = cluster_moments(source, Threads(n_jobs), Labels(labelled.codes, np.arange(labelled.k)))
    scatter = np.zeros(labelled.k)
    scatter[moments.clusters] = moments.sum_square

    def step(start: int, stop: int) -> Array:
        squares = np.zeros((stop - start, labelled.k))
        squares[:, moments.clusters] = moments.means.distances(labelled.rows[start:stop]) ** 2
        sums = distance.factor * (labelled.cluster_weight * squares + scatter)
        return _from_sums(sums, labelled, np.arange(start, stop))

    bounds = strips(len(labelled), sum(moments.means.pivot.shape))
    return np.concatenate(machine.run_in_threads(step, bounds, n_jobs))


def _from_sums(sums: Array, labelled: LabelledRows, rows: Array) -> Array:
    """Silhouettes of `rows` from the sums of their distances to all clusters (rows, k), in any unit."""
    check_finite(sums)
    weight, codes, rest = labelled.cluster_weight, labelled.codes[rows], labelled.rest_weight[rows]
    same, has_weight = (np.arange(len(rows)), codes), weight > 0
    a = sums[same] / np.where(rest > 0, rest, 1.0)
    means = np.where(has_weight, sums / np.where(has_weight, weight, 1.0), np.inf)
    means[same] = np.inf
    return silhouette_values(a, means.min(axis=1), rest)


def silhouette_values(a: Array, b: Array, rest: Array) -> Array:
    """``(b - a) / max(a, b)``; 0 for single rows, whose `rest` weight is 0, and where both are 0."""
    largest = np.maximum(a, b)
    is_zero = (rest <= 0) | (largest == 0)
    return np.where(is_zero, 0.0, (b - a) / np.where(is_zero, 1.0, largest))
