"""Search for initial medoids: many descents in compiled code, from independent starts and from jumps."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import interrupts, machine
from coterie.core.arrays import Array
from coterie.core.rounding import is_lower
from coterie.core.rounding import nearest as nearest_index
from coterie.medoids.distance_table import batches
from coterie.medoids.fasterpam import SLICE, medoid_kernels

MAX_REPLACED = 3  # maximum number of medoids that are replaced together
PER_MEDOID, SHARE = 10, 16  # minimum number of candidates for each medoid; one of so many rows is a candidate
OBJECTS = 1 << 14  # maximum number of objects by which candidates are compared
AT_ONCE, MAX_BATCH = 1 << 16, 16  # distances for which more descents are run between two comparisons, and their number
CLOSE = 1.05  # maximum loss of a solution that is continued, relative to the best
NEGLIGIBLE = 1e-15  # share of the total weight


class Effort(NamedTuple):
    """Length of a search."""

    batch: int  # minimum number of descents between two comparisons
    runs: int  # maximum number of descents
    agree: int  # independent starts in the best optimum that end the search
    same: float  # relative difference of the losses of one optimum
    least: float  # distances that are evaluated before that
    passes: float  # passes over all distances that end the search, if these are at least four times as many distances
    candidates: int  # minimum number of rows that can be medoids in the search
    finalists: int  # maximum number of solutions that are continued with all rows, if not all are candidates


EFFORTS = {
    "auto": Effort(4, 32, 6, 1e-3, 1 << 18, 24, 200, 2),
    "thorough": Effort(8, 200, 40, 1e-9, 1 << 24, 1000, 1000, 4),
}


class Sample(NamedTuple):
    """Candidates and objects of a search: all of them, or random samples."""

    D: Array  # (c, m) distances
    w: Array  # (m,) weights of the objects
    objects: Array  # (c,) index of each candidate among the objects
    candidates: Array  # (c,) their indices in the table


class Search:
    """Many descents for k medoids, and the best of them.

    Medoids of a start are drawn in proportion to their distance to the previous ones, and swapped until no swap helps.
    The search ends when enough starts agree on the best optimum [1]_. From the second batch on, every second descent
    is a jump instead: some medoids of the best solution are replaced by new draws [2]_.

    In a large table only a random sample of the rows can become medoids, until the best solutions are continued with
    all rows.

    .. [1] Boender & Rinnooy Kan (1987), Bayesian stopping rules for multistart global optimization methods, Math.
       Programming 37.
    .. [2] Lourenço, Martin & Stützle (2003), Iterated local search, Handbook of Metaheuristics.
    """

    def __init__(
        self, table: Any, w: Array, k: int, silhouette: bool, effort: Effort, max_iter: int, rng: np.random.Generator
    ):
        self.sample = sample_of(table, w, max(effort.candidates, len(w) // SHARE, PER_MEDOID * k), rng)
        self.is_whole = len(self.sample.candidates) == table.shape[0]
        self.k, self.silhouette, self.effort, self.max_iter, self.rng = k, silhouette, effort, max_iter, rng
        self.best: list[tuple[float, Array]] = []  # loss and medoids of different solutions, the best first
        self.starts: list[float] = []  # losses of independent starts
        self.work, self.runs = 0.0, 0

    def run(self, n_jobs: int | None, watch: Callable[[int, float], Any]) -> None:
        """Descend until `watch` returns a true value, given the number of descents and the best loss, or to the end."""
        while not self.is_over:
            medoids, count = self._initial_medoids()
            self._add(medoids, *self._descend(medoids, n_jobs), is_start=count == 0)
            interrupts.check()
            if watch(self.runs, self.best[0][0]):
                break

    @property
    def is_over(self) -> bool:
        effort = self.effort
        passes = effort.passes if self.is_whole else 2 * effort.passes
        allowed = max(passes * self.sample.D.size, 4 * effort.least)
        best = self.best[0][0] if self.best else np.inf
        hits = sum(loss <= (1 + effort.same) * best for loss in self.starts)
        agree = hits >= effort.agree and self.work >= effort.least
        return self.runs >= effort.runs or self.work >= allowed or agree or best == 0.0

    def finalists(self) -> list[Array]:
        """Medoids of the best solutions as indices in the table; of one if all rows were candidates.

        They are ordered by their sums of distances, so that clusters have the same numbers after any start.
        """
        D, w, _, candidates = self.sample
        limit = self.best[0][0] * (1.0 if self.is_whole else CLOSE)
        best = [medoids for loss, medoids in self.best if loss <= limit]
        return [candidates[medoids[(D[medoids].astype(np.float64) @ w).argsort(kind="stable")]] for medoids in best]

    def _initial_medoids(self) -> tuple[Array, Array]:
        """Medoids of the next batch, and how many of each are those of the best solution."""
        rng, k = self.rng, self.k
        size = max(self.effort.batch, min(AT_ONCE // self.sample.D.size, MAX_BATCH))
        medoids, count = np.empty((size, k), np.int64), np.zeros(size, np.int64)
        for r in range(1, size, 2) if self.best else ():
            medoids[r] = rng.permutation(self.best[0][1])
            count[r] = k - rng.integers(1, min(MAX_REPLACED, k - 1) + 1)
        sample = self.sample
        medoid_kernels().draw(sample.D, sample.objects, sample.w, medoids, count, rng.random(medoids.shape))
        return medoids, count

    def _descend(self, medoids: Array, n_jobs: int | None) -> tuple[Array, Array]:
        """Swap the medoids until no swap helps; return the losses and the numbers of passes."""
        sample, loss, passes = self.sample, np.empty(len(medoids)), np.empty(len(medoids))
        descents = medoid_kernels().descents

        def descend(a: int, b: int) -> None:
            descents(sample.D, sample.w, self.silhouette, medoids[a:b], self.max_iter, loss[a:b], passes[a:b])

        size = 1 if sample.D.size > SLICE else len(medoids)
        machine.run_in_threads(descend, [(r, r + size) for r in range(0, len(medoids), size)], n_jobs)
        return loss, passes

    def _add(self, medoids: Array, loss: Array, passes: Array, is_start: Array) -> None:
        for r in range(len(medoids)):
            at = sum(not is_lower(loss[r], other) for other, _ in self.best)
            if at == 0 or is_lower(self.best[at - 1][0], loss[r]):
                self.best.insert(at, (float(loss[r]), medoids[r].copy()))
                del self.best[self.effort.finalists :]
        self.starts += loss[is_start].tolist()
        self.runs, self.work = self.runs + len(medoids), self.work + float(passes.sum()) * self.sample.D.size


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
