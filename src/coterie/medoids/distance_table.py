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

    @property
    def fits(self) -> bool:
        """Whether all distances fit in memory."""
        return self.nbytes <= machine.SMALL_OBJECT or self.nbytes <= machine.free_memory() // 2

    def stored(self, n_jobs: int | None) -> StoredDistances | ComputedDistances:
        """Compute and store all distances if they fit in memory."""
        if not self.fits:
            return self
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
) -> tuple[StoredDistances | ComputedDistances, Array]:
    """Same candidates with a random sample of the objects, each with the weight of all objects nearest to it [1]_.

    .. [1] de Mathelin et al. (2025), OneBatchPAM: a fast and frugal k-medoids algorithm, AAAI.
    """
    n = len(w)
    size = min(n, max(4 * k, int(100 * np.log(k * n))))
    sample = np.sort(rng.choice(n, size, replace=False, p=w / w.sum()))
    reduced = ComputedDistances(table.distance, table.A, table.A[sample], sample).stored(n_jobs)
    parts = [(part,) for part in batches(reduced.shape, reduced.dtype.itemsize)]
    with machine.one_blas_thread:
        nearest = machine.run_in_threads(lambda part: reduced.rows(part).argmin(axis=1), parts, n_jobs)
    return reduced, np.bincount(np.concatenate(nearest), w, minlength=size)
