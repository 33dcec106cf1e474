"""Simplified silhouettes, from the distances to one point of each cluster: its mean, or its medoid."""

from functools import partial
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.core.protocols import Chunk
from coterie.distances.pairwise import strips
from coterie.errors import ParameterError
from coterie.metrics.labelled_rows import LabelledRows, check_finite, weight_of_others
from coterie.metrics.moments import Moments, as_counted_source, check_several_weighted, cluster_moments
from coterie.metrics.silhouette_exact import check_not_all_single, silhouette_values


def sums_about_means(X: Any, labels: Any, metric: Any, sample_weight: Any, n_jobs: int | None) -> tuple[Array, Array]:
    """The sum of the silhouettes of each cluster (k,), and its weight (k,), on any engine."""
    if not isinstance(metric, str) or metric not in ("euclidean", "sqeuclidean"):
        raise ParameterError(
            "metric must be 'euclidean' or 'sqeuclidean' with approximation='simplified', which computes means; "
            f"got {metric!r}. method='medoid' supports any metric"
        )
    source, engine, encoded, _ = as_counted_source(X, labels, sample_weight, n_jobs)
    moments = cluster_moments(source, engine, encoded)
    weight = np.zeros(encoded.k)
    weight[moments.clusters] = moments.weight
    check_several_weighted(weight)
    sums, rest_weight = engine.sum(partial(_simplified, moments, weight, metric == "sqeuclidean"), source)
    check_not_all_single(bool(rest_weight.any()))
    return sums, weight


def _simplified(moments: Moments, weight: Array, squared: bool, chunk: Chunk) -> Array:
    """For each cluster, the sum of silhouettes, and the weight of rows that are not alone in it (2, k)."""
    if kernels.is_on_device(chunk.X):
        to_means = moments.means.distances(chunk.X)
        to_means = to_means**2 if squared else to_means
        return kernels.for_labels(chunk.X).simplified_silhouettes(to_means, moments.clusters, chunk.w, chunk.y, weight)
    w = chunk.weights
    rest = weight_of_others(chunk.y, w, weight)
    distances = np.zeros((len(chunk.y), len(weight)))
    distances[:, moments.clusters] = moments.means.distances(chunk.X)
    values = _from_distances(distances**2 if squared else distances, chunk.y, rest, weight)
    return np.stack([np.bincount(chunk.y, part * w, len(weight)) for part in (values, rest > 0)])


def silhouettes_about_medoids(labelled: LabelledRows, n_jobs: int | None) -> Array:
    """Silhouettes of all rows (n,) from their distances to the medoids."""
    members = (np.flatnonzero(labelled.codes == c) for c in range(labelled.k))
    medoids = np.array([_medoid(labelled, rows, n_jobs) for rows in members])

    def step(start: int, stop: int) -> Array:
        distances = labelled.distances(medoids, slice(start, stop))
        codes, rest = labelled.codes[start:stop], labelled.rest_weight[start:stop]
        return _from_distances(distances.T, codes, rest, labelled.cluster_weight)

    bounds = strips(len(labelled), labelled.k, labelled.distance.work)
    return np.concatenate(machine.run_in_threads(step, bounds, n_jobs))


def _medoid(labelled: LabelledRows, members: Array, n_jobs: int | None) -> int:
    """The member with positive weight and the smallest weighted sum of distances to all members; the first of ties."""
    w = labelled.weights[members]

    def step(start: int, stop: int) -> Array:
        return labelled.distances(members[start:stop], members).astype(np.float64) @ w

    bounds = strips(len(members), len(members), labelled.distance.work)
    sums = np.concatenate(machine.run_in_threads(step, bounds, n_jobs))
    check_finite(sums)
    return int(members[np.where((w > 0) | ~w.any(), sums, np.inf).argmin()])


def _from_distances(distances: Array, codes: Array, rest: Array, weight: Array) -> Array:
    """Silhouettes of rows from their distances to the points of all clusters (rows, k)."""
    check_finite(distances)
    same = (np.arange(len(codes)), codes)
    others = np.where(weight > 0, distances, np.inf).astype(np.float64)
    others[same] = np.inf
    return silhouette_values(distances[same].astype(np.float64), others.min(axis=1), rest)
