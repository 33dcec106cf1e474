"""Silhouettes by one point for each cluster: its mean, or its medoid."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.errors import ParameterError
from coterie.core.protocols import Chunk
from coterie.core.scale import ScaleError
from coterie.distances.pairwise import strips
from coterie.metrics.labels import Array, check_several
from coterie.metrics.moments import Moments, cluster_moments, opened
from coterie.metrics.objects import Objects, refuse_overflow, weight_of_others
from coterie.metrics.silhouette_rows import check_clusters, check_together, widths


def about_means(X: Any, labels: Any, metric: Any, sample_weight: Any, n_jobs: int | None) -> tuple[Array, Array]:
    """Sums of the silhouettes of each cluster (k,), and its weight (k,), on any engine."""
    if not isinstance(metric, str) or metric not in ("euclidean", "sqeuclidean"):
        raise ParameterError(
            "metric must be 'euclidean' or 'sqeuclidean' with method='simplified', which needs means; "
            f"method='medoid' takes any; got {metric!r}"
        )
    source, engine, found, scale = opened(X, labels, sample_weight, n_jobs)
    if scale.weights:  # they are numbers of rows
        raise ScaleError(scale)
    check_several(found)
    moments = cluster_moments(source, engine, found)
    weight = np.zeros(found.k)
    weight[moments.clusters] = moments.weight
    check_clusters(weight)
    sums, together = engine.sum(partial(_simplified, moments, weight, metric == "sqeuclidean"), source)
    check_together(bool(together.any()))
    return sums, weight


def _simplified(moments: Moments, weight: Array, squared: bool, chunk: Chunk) -> Array:
    """Sums of silhouettes, and of the weights of rows that are not alone, of each cluster (2, k)."""
    w = np.ones(len(chunk.y)) if chunk.w is None else chunk.w
    rest = weight_of_others(chunk.y, w, weight)
    apart = np.zeros((len(chunk.y), len(weight)))
    apart[:, moments.clusters] = moments.means.distances(chunk.X)
    values = _from_distances(apart**2 if squared else apart, chunk.y, rest, weight)
    return np.stack([np.bincount(chunk.y, part * w, len(weight)) for part in (values, rest > 0)])


def about_medoids(objects: Objects, n_jobs: int | None) -> Array:
    """Silhouettes of all rows (n,) by their distances from medoids."""
    medoids = np.array([_medoid(objects, np.flatnonzero(objects.codes == c), n_jobs) for c in range(objects.k)])

    def step(start: int, stop: int) -> Array:
        apart = np.empty((objects.k, stop - start), objects.dtype)
        objects.distance.between(objects.rows[medoids], objects.rows[start:stop], apart)
        return _from_distances(apart.T, objects.codes[start:stop], objects.others[start:stop], objects.weight)

    cuts = strips(len(objects), objects.k, objects.distance.work)
    return np.concatenate(list(machine.in_threads(step, cuts, n_jobs)))


def _medoid(objects: Objects, members: Array, n_jobs: int | None) -> int:
    """The first of the members that count whose distances to all of them, weighted, sum to least."""
    w, against = objects.weights[members], objects.rows[members]

    def step(start: int, stop: int) -> Array:
        apart = np.empty((stop - start, len(members)), objects.dtype)
        objects.distance.between(against[start:stop], against, apart)
        return apart.astype(np.float64) @ w

    cuts = strips(len(members), len(members), objects.distance.work)
    sums = np.concatenate(list(machine.in_threads(step, cuts, n_jobs)))
    refuse_overflow(sums)
    return int(members[np.where((w > 0) | ~w.any(), sums, np.inf).argmin()])


def _from_distances(apart: Array, codes: Array, rest: Array, weight: Array) -> Array:
    """Silhouettes of rows from their distances to the points of all clusters (rows, k)."""
    refuse_overflow(apart)
    own = (np.arange(len(codes)), codes)
    others = np.where(weight > 0, apart, np.inf).astype(np.float64)
    others[own] = np.inf
    return widths(apart[own].astype(np.float64), others.min(axis=1), rest)
