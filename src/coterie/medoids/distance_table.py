"""Distances of candidates to objects, row by row: stored if they fit in memory, otherwise recomputed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.arrays import Array
from coterie.distances.distance import Distance
from coterie.distances.pairwise import fill

BATCH = 256  # candidates that are evaluated with the same medoids
BATCH_BYTES = 1 << 26
NEGLIGIBLE = 1e-15  # share of the total weight


@dataclass(frozen=True)
class StoredDistances:
    """Distance matrix: rows are candidates, columns are objects."""

    D: Array  # (n, m)
    object_indices: Array  # (m,) index of each object among the candidates; -1 if it is not a candidate

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.D.shape
        return n, m

    @property
    def dtype(self) -> Any:
        return self.D.dtype

    def rows(self, indices: slice | Array) -> Array:
        return self.D[indices]


@dataclass(frozen=True)
class ComputedDistances:
    """Distances that are computed on demand."""

    distance: Distance
    A: Any  # prepared candidates
    B: Any  # prepared objects
    object_indices: Array

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.A), len(self.B)

    @property
    def dtype(self) -> Any:
        return np.dtype(np.result_type(self.A.dtype, self.B.dtype))

    def rows(self, indices: slice | Array) -> Array:
        return self.distance.table(self.A[indices], self.B)

    @property
    def nbytes(self) -> int:
        n, m = self.shape
        return n * m * np.dtype(self.dtype).itemsize

    def compute_all(self, n_jobs: int | None) -> StoredDistances:
        """Compute and store all distances."""
        D = np.empty(self.shape, self.dtype)
        with machine.one_blas_thread:
            fill(self.distance, self.A, self.B, D, n_jobs)
        return StoredDistances(D, self.object_indices)


def batches(shape: tuple[int, int], itemsize: int) -> list[slice]:
    """Slices of the candidates, which depend on the shape only."""
    n, m = shape
    size = max(1, min(BATCH, BATCH_BYTES // max(1, m * itemsize)))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def sample_objects(
    table: ComputedDistances, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None
) -> tuple[ComputedDistances, Array]:
    """Same candidates with a random sample of the objects, each with the weight of all objects nearest to it [1]_.

    .. [1] de Mathelin et al. (2025), OneBatchPAM: a fast and frugal k-medoids algorithm, AAAI.
    """
    n = len(w)
    size = min(n, max(4 * k, int(100 * np.log(k * n))))
    sample = np.sort(rng.choice(n, size, replace=False, p=w / w.sum()))
    reduced = ComputedDistances(table.distance, table.A, table.A[sample], sample)
    parts = [(part,) for part in batches(reduced.shape, reduced.dtype.itemsize)]
    with machine.one_blas_thread:
        nearest = machine.run_in_threads(lambda part: reduced.rows(part).argmin(axis=1), parts, n_jobs)
    return reduced, np.bincount(np.concatenate(nearest), w, minlength=size)


def weighted_sample(table: Any, w: Array, size: int, rng: np.random.Generator) -> tuple[StoredDistances, Array, Array]:
    """Distances between `size` random objects, the weight of all objects nearest to each, and their indices."""
    m = len(w)
    mass = np.maximum(w, NEGLIGIBLE * w.sum())  # so that no probability is rounded to 0
    sample = np.sort(rng.choice(m, size, replace=False, p=mass / mass.sum()))
    candidates = table.object_indices[sample]
    D = np.empty((size, size), table.dtype)
    nearest, owner = np.full(m, np.inf), np.zeros(m, np.int64)
    for part in batches((size, m), table.dtype.itemsize):
        rows = table.rows(candidates[part])
        D[part] = rows[:, sample]
        index = rows.argmin(axis=0)
        distances = rows[index, np.arange(m)]
        is_nearer = distances < nearest
        nearest[is_nearer], owner[is_nearer] = distances[is_nearer], part.start + index[is_nearer]
    return StoredDistances(D, np.arange(size)), np.bincount(owner, w, minlength=size), candidates
