"""Centers for one number of clusters after another, each from what the last one found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from coterie import interrupts, kernels, machine, seeding
from coterie.core import loop
from coterie.core.errors import InputError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.kmeans.fuzzy import Fuzzy
from coterie.kmeans.swaps import Hopeless
from coterie.seeding.costs import Cost
from coterie.seeding.plusplus import Draws, sample_rows

Array = np.ndarray[Any, Any]
CANDIDATES = 16  # rows, drawn by what they cost, of which the best becomes a center
HOPE = 5.0  # times its last gain that a descent may lie behind the best before it is given up
GROWING = ("k-means++", "farthest", "forgy", "random")  # starts whose first k centers are a start for k


@dataclass(frozen=True)
class BestCenters:
    """The best there is for one number of clusters."""

    centers: Array  # (k, d)
    objective: float
    weight: Array  # (k,)
    memos: list[Any] | None = None  # of the last pass


@dataclass(frozen=True)
class Potential(Stats):
    """What all rows cost if one of several points is a center too."""

    cost: Any  # (points,)


@dataclass(frozen=True)
class Distinct(Stats):
    """The rows that count, each once."""

    rows: Any  # (m, d)

    def __add__(self, other: Distinct) -> Distinct:
        return Distinct(np.unique(np.concatenate([self.rows, other.rows]), axis=0))


class KMeansPath:
    """The best centers for each of `models`, known by their numbers of clusters; they only get better.

    Upwards [1]_: the centers found for K, and one more. Rows are drawn by what they cost, and the one with
    which all rows cost least is taken; as the others are still there, the objective cannot be worse than that of K.
    Starts of their own, the first K of one long sequence, are tried beside it, and given up once what they gain shows
    that they will not catch up. Downwards: the two centers whose union costs least become one. Upwards again where
    that helped, so that no K ends worse than one before it.

    .. [1] Vardakas & Likas (2022), Global k-means++: an effective relaxation of the global k-means clustering
       algorithm.
    """

    def __init__(
        self, models: Mapping[int, Any], source: Source, engine: Engine, rng: np.random.Generator, max_iter: int
    ):
        self.models, self.source, self.engine, self.rng, self.max_iter = models, source, engine, rng, max_iter
        self.ks, self.rungs = sorted(models), dict[int, BestCenters]()
        top = models[self.ks[-1]]
        self.cost: Cost = top.cost
        self.frozen = getattr(top, "frozen", None)
        self.held = 0 if self.frozen is None else len(self.frozen)

    def climb(self, starts: int, done: Callable[[int], bool]) -> None:
        """All rungs, with so many starts of their own each; ends where `done(k)`, which is told of each, says so."""
        with machine.one_blas_thread, interrupts.outermost():
            sequences = self._sequences(starts)
            for below, k in zip([None, *self.ks], self.ks, strict=False):
                if below is not None:
                    self._try(k, self._up(below, k))
                    self.rungs[below] = replace(self.rungs[below], memos=None)
                for sequence in sequences:
                    self._try(k, None if sequence is None else self._off_rows(k, sequence[:k], self.held))
                if not self.rungs[k].weight.all() and (distinct := self._distinct()) < k - self.held:
                    raise too_few_distinct_rows(distinct)
                if done(k):
                    break

    def refine(self) -> None:
        """Downwards, and upwards again where that helped."""
        with machine.one_blas_thread, interrupts.outermost():
            reached = sorted(self.rungs)
            better = {k for k, above in reversed(list(pairwise(reached))) if self._try(k, self._down(above, k))}
            for below, k in pairwise(reached):
                if below in better and self._try(k, self._up(below, k)):
                    better.add(k)

    def _sequences(self, starts: int) -> list[Array | None]:
        """Centers of which the first k are a start, for every k; None where each k has to find its own."""
        top = self.models[self.ks[-1]]
        if not isinstance(top.start, str) or top.start not in GROWING:
            return [None] * starts
        free, held = self.ks[-1] - self.held, None if self.frozen is None else self.frozen.astype(self.source.dtype)
        found = [
            seeding.start(top.start, self.source, self.engine, rng, free, top.unit, held, self.cost)
            for rng in self.rng.spawn(starts)
        ]
        return [centers if held is None else np.concatenate([held, centers]) for centers in found]

    def _try(self, k: int, start: Array | None) -> bool:
        """Whether a descent from `start`, or from a start of the model's own, is better than what there is."""
        best, model = self.rungs.get(k), self.models[k]
        if start is not None:
            model = replace(model, start=start[self.held :])
        watch = Hopeless(np.inf if best is None else best.objective, HOPE, after=1)
        found = loop.fit(model, self.source, self.engine, rng=self.rng, max_iter=self.max_iter, callback=watch)
        if best is not None and found.objective >= best.objective:
            return False
        self.rungs[k] = BestCenters(found.params, found.objective, found.stats.weight, found.memos)
        return True

    def with_more(self, centers: Array, k: int, memos: list[Any] | None = None) -> Array:
        """These centers, and others up to `k`; `memos` are of the last pass with the centers given."""
        kept = len(centers)
        while len(centers) < k:
            centers, memos = np.concatenate([centers, self._another(centers, memos)]), None
        return self._off_rows(k, centers, kept)

    def _up(self, below: int, k: int) -> Array:
        return self.with_more(self.rungs[below].centers, k, self.rungs[below].memos)

    def _down(self, above: int, k: int) -> Array:
        return merged(self.rungs[above].centers, self.rungs[above].weight, k, self.held)

    def _another(self, centers: Array, memos: list[Any] | None) -> Array:
        """The row (1, d), of some drawn by what they cost, with which all rows cost least."""
        model, seed = self.models[self.ks[-1]], int(self.rng.integers(2**63))
        step = partial(_draw, model, centers, model.unit, seed)
        drawn, closest = self.engine.scan(step, self.source, memos)
        candidates = drawn.rows[np.isfinite(drawn.arrival)]
        if len(candidates) == 0:
            raise too_few_distinct_rows(self._distinct())
        points = np.concatenate([centers[:1], candidates])
        found, _ = self.engine.scan(partial(_score, self.cost, points, model.unit), self.source, closest)
        best = int(np.argmin(found.cost[1:]))
        return candidates[best : best + 1]

    def _distinct(self) -> int:
        """How many different rows there are."""
        return len(self.engine.sum(partial(_distinct, self.cost), self.source).rows)

    def _off_rows(self, k: int, centers: Array, kept: int) -> Array:
        """A fuzzy center on a row would be held there: all but the first `kept` move to the means of their rows."""
        model = self.models[k]
        if not isinstance(model, Fuzzy):
            return centers
        return model.off_rows(centers, np.arange(kept, len(centers)), self.source, self.engine)


def merged(centers: Array, weight: Array, k: int, held: int = 0) -> Array:
    """Centers of which, again and again, the two whose union costs least are one (k, d); the first `held` stay."""
    free, w = centers[held:].astype(np.float64), weight[held:].astype(np.float64)
    while held + len(free) > k and len(free) > 1:
        both = w[:, None] + w
        cost = cdist(free, free, "sqeuclidean") * (w[:, None] * w / np.where(both > 0, both, 1.0))
        np.fill_diagonal(cost, np.inf)
        i, j = np.unravel_index(int(cost.argmin()), cost.shape)
        between = free[i] + w[j] / (w[i] + w[j]) * (free[j] - free[i]) if w[i] + w[j] > 0 else free[i]
        if between.any():  # opposite directions have none between them
            free[i] = between
        w[i] += w[j]
        free, w = np.delete(free, j, axis=0), np.delete(w, j)
    return np.concatenate([centers[:held], free.astype(centers.dtype)])


def too_few_distinct_rows(distinct: int) -> InputError:
    return InputError(
        f"X has {distinct} distinct rows (of weight above 0), which make no more clusters than that: "
        f"ks must not go beyond {distinct}"
    )


def _distinct(cost: Cost, chunk: Chunk) -> Distinct:
    counting = np.arange(chunk.X.shape[0]) if chunk.w is None else np.flatnonzero(chunk.w)
    return Distinct(np.unique(cost.take(chunk.X, counting), axis=0))


def _draw(
    model: Any, centers: Array, unit: float, seed: int, chunk: Chunk, memo: Any = None
) -> tuple[Draws, np.ndarray[Any, Any]]:
    """Rows drawn by what they cost, and these costs."""
    closest = np.full(chunk.X.shape[0], np.inf)
    owner = None if memo is None else model.assign(centers, chunk, memo)
    model.cost.add(chunk.X, unit, centers, closest, owner)
    closest = closest.astype(chunk.X.dtype)
    ops = kernels.for_centers(chunk.X, len(centers))
    return sample_rows(ops, chunk, closest, seed, CANDIDATES, model.cost, np.zeros(1)), closest


def _score(cost: Cost, points: Array, unit: float, chunk: Chunk, closest: Array) -> tuple[Potential, Array]:
    return Potential(cost.spread(chunk.X, chunk.w, unit, points, closest, again=True)), closest
