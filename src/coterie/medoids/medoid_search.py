"""Search for initial medoids: many descents in compiled code, from independent starts and from jumps."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import machine
from coterie.core.arrays import Array
from coterie.core.rounding import nearest as nearest_index
from coterie.core.search import Effort, Pool, Problem
from coterie.medoids.distance_table import batches
from coterie.medoids.fasterpam import SLICE, medoid_kernels

MAX_REPLACED = 3  # maximum number of medoids that are replaced together
PER_MEDOID, SHARE = 10, 16  # minimum number of candidates for each medoid; one of so many rows is a candidate
OBJECTS = 1 << 14  # maximum number of objects by which candidates are compared
AT_ONCE, MAX_BATCH = 1 << 16, 16  # distances for which more descents are run between two comparisons, and their number
OF_SAMPLE = 2.0  # factor of the work on a sample, which is a part of that on all rows
CLOSE = 1.05  # maximum loss of a solution that is continued, relative to the best
NEGLIGIBLE = 1e-15  # share of the total weight


EFFORTS = {
    "auto": Effort(batch=4, starts=32, agree=6, same=1e-3, jumps=12, runs=9.0, work=1 << 20, solutions=2),
    "thorough": Effort(batch=8, starts=80, agree=80, same=1e-9, jumps=18, runs=400.0, work=1 << 24),
}
CANDIDATES = {"auto": 200, "thorough": 1000}  # minimum number of rows that can be medoids in the search


class Sample(NamedTuple):
    """Candidates and objects of a search: all of them, or random samples."""

    D: Array  # (c, m) distances
    w: Array  # (m,) weights of the objects
    objects: Array  # (c,) index of each candidate among the objects
    candidates: Array  # (c,) their indices in the table


class MedoidProblem(Problem):
    """Sets of k medoids of a sample (runs, k), as indices of its candidates; work is counted in distances.

    Medoids of a start are drawn in proportion to their distance to the previous ones, and swapped until no swap helps.
    A jump replaces some medoids of the best solution by new draws.

    In a large table only a random sample of the rows can become medoids, until the best solutions are continued with
    all rows.
    """

    def __init__(
        self, table: Any, w: Array, k: int, silhouette: bool, kind: str, max_iter: int, rng: np.random.Generator,
        n_jobs: int | None,
    ):  # fmt: skip
        self.sample = sample_of(table, w, max(CANDIDATES[kind], len(w) // SHARE, PER_MEDOID * k), rng)
        self.is_whole = len(self.sample.candidates) == table.shape[0]
        self.k, self.silhouette, self.max_iter, self.rng, self.n_jobs = k, silhouette, max_iter, rng, n_jobs
        effort = EFFORTS[kind]
        batch = max(effort.batch, min(AT_ONCE // self.sample.D.size, MAX_BATCH))
        self.effort = replace(effort, batch=batch, runs=effort.runs * (1.0 if self.is_whole else OF_SAMPLE))

    def starts(self, count: int) -> Array:
        return self._drawn(np.empty((count, self.k), np.int64), np.zeros(count, np.int64))

    def jump(self, pool: Pool) -> Array:
        rng, best = self.rng, pool.params[0]
        medoids = rng.permuted(np.tile(best, (self.effort.batch, 1)), axis=1)
        return self._drawn(medoids, self.k - rng.integers(1, min(MAX_REPLACED, self.k - 1) + 1, len(medoids)))

    def _drawn(self, medoids: Array, count: Array) -> Array:
        """The medoids, where those after the first `count` of each set are drawn."""
        D, w, objects, _ = self.sample
        medoid_kernels().draw(D, objects, w, medoids, count, self.rng.random(medoids.shape))
        return medoids

    def advance(self, params: Array, to_beat: float, hope: float) -> tuple[Array, Array, Array]:
        sample, medoids, loss, passes = self.sample, params.copy(), np.empty(len(params)), np.empty(len(params))
        descents = medoid_kernels().descents

        def descend(a: int, b: int) -> None:
            descents(sample.D, sample.w, self.silhouette, medoids[a:b], self.max_iter, loss[a:b], passes[a:b])

        size = 1 if sample.D.size > SLICE else len(medoids)
        machine.run_in_threads(descend, [(r, r + size) for r in range(0, len(medoids), size)], self.n_jobs)
        self.work += float(passes.sum()) * sample.D.size
        return medoids, loss, np.zeros((2, len(medoids)))

    def finalists(self, pool: Pool) -> list[Array]:
        """Medoids of the best solutions as indices in the table; of one if all rows were candidates.

        They are ordered by their sums of distances, so that clusters have the same numbers after any start.
        """
        D, w, _, candidates = self.sample
        best = pool.params[pool.objective <= pool.objective[0] * (1.0 if self.is_whole else CLOSE)]
        return [candidates[medoids[(D[medoids].astype(np.float64) @ w).argsort(kind="stable")]] for medoids in best]


def sample_of(table: Any, w: Array, size: int, rng: np.random.Generator) -> Sample:
    """About `size` candidates of a table, or all, and the objects by which they are compared."""
    n, m = table.shape
    if 2 * size >= n == m and m <= OBJECTS:
        return Sample(table.rows(slice(None)), w, table.object_indices, np.arange(n))
    objects, weights = np.arange(m), w
    if m > OBJECTS:
        objects = _draw_rows(w, OBJECTS, rng)
        weights = _represented(w[objects], float(w.sum()))
    chosen = np.arange(len(objects)) if 2 * size >= len(objects) else _draw_rows(w[objects], size, rng)
    candidates = table.object_indices[objects[chosen]]
    D = table.rows(candidates)
    return Sample(D if m <= OBJECTS else np.ascontiguousarray(D[:, objects]), weights, chosen, candidates)


def _represented(w: Array, total: float) -> Array:
    """Weights of rows that were drawn in proportion to them and stand for all: equal, but not of the heaviest rows."""
    is_light = w < total / len(w)
    return np.where(is_light, (total - w[~is_light].sum()) / max(1, np.count_nonzero(is_light)), w)


def _draw_rows(w: Array, size: int, rng: np.random.Generator) -> Array:
    """Indices of `size` different rows, drawn in proportion to their weight."""
    mass = np.maximum(w, NEGLIGIBLE * w.sum())  # so that no probability is rounded to 0
    return np.sort(rng.choice(len(w), size, replace=False, p=mass / mass.sum()))


# Initialisation of K-medoids.


def build(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """BUILD [1]_: the best single medoid, then repeatedly the candidate that lowers the loss most.

    It is deterministic and takes O(n m k).

    .. [1] Kaufman & Rousseeuw (1987), Clustering by means of medoids.
    """
    return _greedy(table, w, k, lambda: np.arange(table.shape[0]), n_jobs)


def lab(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """BUILD with a random sample of 10 + sqrt(n) candidates for each medoid (LAB [1]_). O(m k sqrt(n)).

    .. [1] Schubert & Rousseeuw (2021), Fast and eager k-medoids clustering, Inf. Syst. 101.
    """
    n = table.shape[0]
    size = min(n, k + 10 + int(np.ceil(np.sqrt(n))))  # some may be medoids already
    return _greedy(table, w, k, lambda: np.sort(rng.choice(n, size, replace=False, shuffle=False)), n_jobs)


def _greedy(table: Any, w: Array, k: int, draw: Callable[[], Array], n_jobs: int | None) -> Array:
    """Repeatedly add the candidate that lowers the loss most, the first one of those that are equal up to rounding."""
    chosen, nearest = np.empty(0, np.int64), np.empty(0)
    for _ in range(k):
        candidates = draw()
        parts = [(part,) for part in batches((len(candidates), table.shape[1]), table.dtype.itemsize)]
        with machine.one_blas_thread:
            losses = machine.run_in_threads(partial(_losses, table, w, candidates, nearest), parts, n_jobs)
        loss = np.where(np.isin(candidates, chosen), np.inf, np.concatenate(losses))
        best = candidates[nearest_index(loss[None])]
        chosen = np.append(chosen, best)
        nearest = np.minimum(table.rows(best)[0], nearest if len(nearest) else np.inf)
    return chosen


def _losses(table: Any, w: Array, candidates: Array, nearest: Array, part: slice) -> Array:
    """Loss of each candidate as the only medoid, or minus the decrease if `nearest` are the distances to others."""
    rows = table.rows(part if len(candidates) == table.shape[0] else candidates[part])
    if len(nearest) == 0:
        return rows.astype(np.float64) @ w
    gain = np.empty(len(rows))
    medoid_kernels().gains(rows, nearest, w, gain)
    return -gain


def plusplus(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """Draw each new medoid in proportion to its distance from the chosen ones (k-medoids++ [1]_). O(m k).

    It uses distances, not their squares, because the loss is a sum of distances.

    .. [1] Arthur & Vassilvitskii (2007), k-means++: the advantages of careful seeding, SODA.
    """
    chosen = [_draw_one(w, rng, [])]
    nearest = table.rows(table.object_indices[chosen])[0].astype(np.float64)
    while len(chosen) < k:
        chosen.append(_draw_one(w * nearest, rng, chosen))
        nearest = np.minimum(nearest, table.rows(table.object_indices[chosen[-1:]])[0])
    return table.object_indices[chosen]


def random(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """Different candidates with equal probability."""
    return rng.choice(table.shape[0], k, replace=False)


METHODS = {"build": build, "lab": lab, "k-medoids++": plusplus, "random": random}


def _draw_one(share: Array, rng: np.random.Generator, chosen: list[int]) -> int:
    """Draw one index in proportion to `share`; one that is not chosen yet if all shares are zero."""
    share = share.astype(np.float64)
    share[chosen] = 0
    if share.sum() == 0:
        share = np.ones(len(share))
        share[chosen] = 0
    return int(rng.choice(len(share), p=share / share.sum()))
