"""K-means centers for ascending numbers of clusters, each started from the previous result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist

from coterie import interrupts, kernels, machine, seeding
from coterie.core import loop
from coterie.core.arrays import Array
from coterie.core.formatting import count
from coterie.core.progress import Progress
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.rounding import is_lower
from coterie.core.stats import Stats
from coterie.errors import InputError
from coterie.kmeans.fits_together import SharedFit, can_fit_together, fit_together
from coterie.kmeans.fuzzy_c_means import Fuzzy
from coterie.kmeans.lloyd import Lloyd
from coterie.seeding.costs import Cost
from coterie.seeding.scalable import Arrivals, arrivals

CANDIDATES = 16  # rows sampled with probability proportional to their cost; the best becomes a center
HOPE = 5.0  # a fit stops when it is behind the best by more than HOPE times its last gain
NESTED_INITS = ("farthest", "forgy", "random")  # their first k centers are an initialisation for k
PLUSPLUS = ("auto", "k-means++")  # the same, if they run on all rows


@dataclass(frozen=True)
class BestCenters:
    """Best centers so far for one number of clusters."""

    centers: Array  # (k, d)
    objective: float
    weight: Array  # (k,)
    memos: list[Any] | None = None  # memos of the last pass over the data


@dataclass(frozen=True)
class Potential(Stats):
    """Total cost of all rows if a point becomes an additional center, for several points."""

    cost: Any  # (points,)


@dataclass(frozen=True)
class Distinct(Stats):
    """Distinct rows of positive weight."""

    rows: Any  # (m, d)

    def __add__(self, other: Self) -> Self:
        return type(self)(np.unique(np.concatenate([self.rows, other.rows]), axis=0))


class AbandonHopeless:
    """Callback that stops a descent which improves too slowly to reach `objective`."""

    def __init__(self, objective: float, patience: float, after: int = 0):
        self.objective, self.patience, self.after = objective, patience, after  # checked after iteration `after`
        self.previous = np.inf

    def __call__(self, progress: Progress) -> bool:
        gain, self.previous = self.previous - progress.objective, progress.objective
        return progress.iteration > self.after and progress.objective - self.patience * gain > self.objective


class KMeansPath:
    """Best centers for each of `models`, which are keyed by their number of clusters.

    Ascending pass [1]_: the centers for K and one additional row are a start for K + 1. Some rows are sampled with
    probability proportional to their cost, and the one that reduces the total cost most is added. The objective cannot
    be worse than that of K, because all other centers are still there. The first K centers of one long sequence are a
    second start. It is stopped early if it cannot catch up. Descending pass: the two centers whose union costs least
    are merged. A second ascending pass follows where this helped, so that no K ends worse than a smaller one.

    .. [1] Vardakas & Likas (2022), Global k-means++: an effective relaxation of the global k-means clustering
       algorithm.
    """

    def __init__(
        self, models: Mapping[int, Any], source: Source, engine: Engine, rng: np.random.Generator, max_iter: int
    ):
        self.models, self.source, self.engine, self.rng, self.max_iter = models, source, engine, rng, max_iter
        self.ks, self.best = sorted(models), dict[int, BestCenters]()
        largest = models[self.ks[-1]]
        self.cost: Cost = largest.cost
        self.frozen = getattr(largest, "frozen", None)
        self.n_frozen = 0 if self.frozen is None else len(self.frozen)

    def fit_all(self, starts: int, done: Callable[[int], bool]) -> None:
        """Fit all K, each with `starts` independent starts; stop if `done(k)`, called after each, returns True."""
        with machine.one_blas_thread, interrupts.outermost():
            sequences = self._initial_sequences(starts)
            shared_fits = self._shared_fits(sequences)
            for smaller, k in zip([None, *self.ks], self.ks, strict=False):
                if smaller is not None:
                    self._try_start(k, self._start_from_smaller(smaller, k))
                    self.best[smaller] = replace(self.best[smaller], memos=None)
                for i, sequence in enumerate(sequences):
                    if (k, i) in shared_fits:
                        self._use_if_better(k, shared_fits[k, i])
                        continue
                    self._try_start(
                        k, None if sequence is None else self._move_off_rows(k, sequence[:k], self.n_frozen)
                    )
                if not self.best[k].weight.all() and (distinct := self._count_distinct_rows()) < k - self.n_frozen:
                    raise too_few_distinct_rows(distinct)
                if done(k):
                    break

    def refine(self) -> None:
        """Descending pass, and an ascending pass where that helped."""
        with machine.one_blas_thread, interrupts.outermost():
            fitted_ks = sorted(self.best)
            improved = set()
            for k, above in reversed(list(pairwise(fitted_ks))):
                larger = self.best[above]
                if self._try_start(k, merge_centers(larger.centers, larger.weight, k, self.n_frozen)):
                    improved.add(k)
            for smaller, k in pairwise(fitted_ks):
                if smaller in improved and self._try_start(k, self._start_from_smaller(smaller, k)):
                    improved.add(k)

    def _initial_sequences(self, starts: int) -> list[Array | None]:
        """Centers whose first k are a start for every k; None if each k needs its own initialisation."""
        largest = self.models[self.ks[-1]]
        if not isinstance(largest.start, str):
            return [None] * starts
        n_free = self.ks[-1] - self.n_frozen
        is_plusplus = largest.start in PLUSPLUS and seeding.runs_on_all_rows(self.source, n_free)
        if not is_plusplus and largest.start not in NESTED_INITS:
            return [None] * starts
        frozen = None if self.frozen is None else self.frozen.astype(self.source.dtype)
        sequences = [
            seeding.start(largest.start, self.source, self.engine, rng, n_free, largest.unit, frozen, self.cost)
            for rng in self.rng.spawn(starts)
        ]
        return [centers if frozen is None else np.concatenate([frozen, centers]) for centers in sequences]

    def _shared_fits(self, sequences: list[Array | None]) -> dict[tuple[int, int], SharedFit]:
        """Fits from the first k centers of each sequence, by k and sequence, if they can run at once on a GPU."""
        is_plain = all(type(model) is Lloyd and model.frozen is None for model in self.models.values())
        if not is_plain or any(each is None for each in sequences) or not can_fit_together(self.source, self.ks[-1]):
            return {}
        keys = [(k, i) for k in self.ks for i in range(len(sequences))]
        starts: list[Any] = [sequences[i][:k] for k, i in keys]  # type: ignore[index]
        fits = fit_together(self.source, starts, [self.models[k].tol for k, _ in keys], self.max_iter)
        return {key: fit for key, fit in zip(keys, fits, strict=True) if fit is not None}

    def _use_if_better(self, k: int, fit: SharedFit) -> None:
        """Use a fit if it is better than the best so far, and not one that `_try_start` would have abandoned."""
        best = self.best.get(k)
        watch = AbandonHopeless(np.inf if best is None else best.objective, HOPE, after=1)
        steps = (Progress("iteration", i, None, None, objective=value) for i, value in enumerate(fit.history))
        if not any(watch(step) for step in steps) and (best is None or is_lower(fit.history[-1], best.objective)):
            self.best[k] = BestCenters(fit.centers, fit.history[-1], fit.weight)

    def _try_start(self, k: int, start: Array | None) -> bool:
        """Fit from `start` (None: the initialisation of the model); return whether the best result improved."""
        best, model = self.best.get(k), self.models[k]
        if start is not None:
            model = replace(model, start=start[self.n_frozen :])
        watch = AbandonHopeless(np.inf if best is None else best.objective, HOPE, after=1)
        result = loop.fit(model, self.source, self.engine, rng=self.rng, max_iter=self.max_iter, callback=watch)
        if best is not None and not is_lower(result.objective, best.objective):
            return False
        self.best[k] = BestCenters(result.params, result.objective, result.stats.weight, result.memos)
        return True

    def add_centers(self, centers: Array, k: int, memos: list[Any] | None = None) -> Array:
        """Add centers up to `k`; `memos` are those of the last pass with `centers`."""
        n_fixed = len(centers)
        while len(centers) < k:
            centers, memos = np.concatenate([centers, self._best_candidate(centers, memos)]), None
        return self._move_off_rows(k, centers, n_fixed)

    def _start_from_smaller(self, smaller: int, k: int) -> Array:
        return self.add_centers(self.best[smaller].centers, k, self.best[smaller].memos)

    def _best_candidate(self, centers: Array, memos: list[Any] | None) -> Array:
        """The row (1, d) that reduces the cost most, of some sampled with probability proportional to their cost."""
        model, seed = self.models[self.ks[-1]], int(self.rng.integers(2**63))
        step = partial(_draw, model, centers, model.unit, seed)
        sampled, closest = self.engine.scan(step, self.source, memos)
        candidates = sampled.rows
        if len(candidates) == 0:
            raise too_few_distinct_rows(self._count_distinct_rows())
        points = np.concatenate([centers[:1], candidates])
        result, _ = self.engine.scan(partial(_score, self.cost, points, model.unit), self.source, closest)
        best = int(np.argmin(result.cost[1:]))
        return candidates[best : best + 1]

    def _count_distinct_rows(self) -> int:
        """Number of distinct rows."""
        return len(self.engine.sum(partial(_distinct, self.cost), self.source).rows)

    def _move_off_rows(self, k: int, centers: Array, n_fixed: int) -> Array:
        """Move fuzzy centers, except the first `n_fixed`, to the means of their rows: on a row they would stay."""
        model = self.models[k]
        if not isinstance(model, Fuzzy):
            return centers
        return model.off_rows(centers, np.arange(n_fixed, len(centers)), self.source, self.engine)


def merge_centers(centers: Array, weight: Array, k: int, n_frozen: int = 0) -> Array:
    """Merge the two centers whose union costs least, until k are left (k, d); the first `n_frozen` are not merged."""
    free, w = centers[n_frozen:].astype(np.float64), weight[n_frozen:].astype(np.float64)
    while n_frozen + len(free) > k and len(free) > 1:
        pair_weight = w[:, None] + w
        cost = cdist(free, free, "sqeuclidean") * (w[:, None] * w / np.where(pair_weight > 0, pair_weight, 1.0))
        np.fill_diagonal(cost, np.inf)
        i, j = np.unravel_index(int(cost.argmin()), cost.shape)
        mean = free[i] + w[j] / (w[i] + w[j]) * (free[j] - free[i]) if w[i] + w[j] > 0 else free[i]
        if mean.any():  # the mean of opposite directions is zero
            free[i] = mean
        w[i] += w[j]
        free, w = np.delete(free, j, axis=0), np.delete(w, j)
    return np.concatenate([centers[:n_frozen], free.astype(centers.dtype)])


def too_few_distinct_rows(distinct: int) -> InputError:
    return InputError(
        f"X has {count(distinct, 'distinct row')} of positive weight, fewer than the largest number of clusters: "
        f"use ks <= {distinct}"
    )


def _distinct(cost: Cost, chunk: Chunk) -> Distinct:
    rows = np.arange(chunk.X.shape[0]) if chunk.w is None else np.flatnonzero(chunk.w)
    return Distinct(np.unique(cost.take(chunk.X, rows), axis=0))


def _draw(
    model: Any, centers: Array, unit: float, seed: int, chunk: Chunk, memo: Any = None
) -> tuple[Arrivals, np.ndarray[Any, Any]]:
    """Sample rows with probability proportional to their cost; return them and the costs."""
    closest = kernels.row_values(chunk.X, np.inf, np.float64)
    owner = None if memo is None else model.assign(centers, chunk, memo)
    model.cost.add(chunk.X, unit, centers, closest, owner)
    closest = closest.astype(chunk.X.dtype)
    return arrivals(closest, seed, CANDIDATES, model.cost, chunk), closest


def _score(cost: Cost, points: Array, unit: float, chunk: Chunk, closest: Array) -> tuple[Potential, Array]:
    return Potential(cost.spread(chunk.X, chunk.w, unit, points, closest, again=True)), closest
