"""Distances of candidates to objects, row by row: kept where they fit, made anew where they do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import machine
from coterie.distances.distance import Distance
from coterie.distances.pairwise import strips

Array = np.ndarray[Any, Any]
BATCH = 256  # candidates that are judged with the same medoids
BATCH_BYTES = 1 << 26


@dataclass(frozen=True)
class Kept:
    """A matrix: rows are candidates, columns objects."""

    D: Array  # (n, m)
    own: Array  # (m,) which candidate each object is

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self.D.shape
        return n, m

    @property
    def dtype(self) -> Any:
        return self.D.dtype

    def rows(self, which: slice | Array) -> Array:
        return self.D[which]


@dataclass(frozen=True)
class Made:
    """Distances that are computed whenever they are asked for."""

    distance: Distance
    A: Any  # prepared candidates
    B: Any  # prepared objects
    own: Array

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.A), len(self.B)

    @property
    def dtype(self) -> Any:
        return np.dtype(np.result_type(self.A.dtype, self.B.dtype))

    def rows(self, which: slice | Array) -> Array:
        candidates = self.A[which]
        made = np.empty((len(candidates), len(self.B)), self.dtype)
        self.distance.between(candidates, self.B, made)
        return made

    @property
    def nbytes(self) -> int:
        n, m = self.shape
        return n * m * np.dtype(self.dtype).itemsize

    def kept(self, n_jobs: int | None) -> Kept:
        D = np.empty(self.shape, self.dtype)
        with machine.one_blas_thread:
            for _ in machine.in_threads(lambda start, stop: self._put(D, start, stop), strips(*self.shape), n_jobs):
                pass
        return Kept(D, self.own)

    def _put(self, D: Array, start: int, stop: int) -> None:
        self.distance.between(self.A[start:stop], self.B, D[start:stop])


def batches(shape: tuple[int, int], itemsize: int) -> list[slice]:
    """The candidates in batches, by shape alone."""
    n, m = shape
    size = max(1, min(BATCH, BATCH_BYTES // max(1, m * itemsize)))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def sampled(table: Made, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> tuple[Made, Array]:
    """The same candidates for a sample of the objects, each with the weight of all those nearest to it [1]_.

    .. [1] de Mathelin et al. (2025), OneBatchPAM: a fast and frugal k-medoids algorithm, AAAI.
    """
    n = len(w)
    size = min(n, max(4 * k, int(100 * np.log(k * n))))
    drawn = np.sort(rng.choice(n, size, replace=False, p=w / w.sum()))
    fewer = Made(table.distance, table.A, table.A[drawn], drawn)
    parts = [(part,) for part in batches(fewer.shape, fewer.dtype.itemsize)]
    with machine.one_blas_thread:
        nearest = np.concatenate(list(machine.in_threads(lambda part: fewer.rows(part).argmin(axis=1), parts, n_jobs)))
    return fewer, np.bincount(nearest, w, minlength=size)
