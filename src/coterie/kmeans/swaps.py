"""A search past local optima for any model of centers: swap a center for a row, and descend from there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import interrupts, machine
from coterie.base import in_memory
from coterie.core import loop
from coterie.core.errors import FitInterruptedWarning
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Chunk, Engine, Source
from coterie.seeding.costs import Cost

CANDIDATES = 24  # rows of a round that may become centers
TRIES = 5  # swaps of a round that are followed by a descent
PAIRS = 3  # pairs of swaps, likewise
FAR = 3.0  # average costs of a cluster that a swap may add before the descent
HOPE = 2.0  # times its last gain that a descent may lie behind the best before it is given up
GAIN = 1e-9  # of the objective: smaller gains are rounding


class Effort(NamedTuple):
    """How long a search may take."""

    values: int  # rows x columns x centers; beyond, a sample of the rows is searched
    starts: int  # descents before the swaps, where n_init="auto"
    quiet: int  # rounds without a gain that end the search
    rounds: int  # at most


EFFORTS = {
    "auto": Effort(1 << 18, 3, 5, 40),
    "sample": Effort(1 << 16, 2, 3, 15),  # of a table that is too large for "auto"
    "fast": Effort(1 << 24, 5, 15, 300),
}
SAMPLE = 100  # rows a cluster that a sample has at least


class Solution(NamedTuple):
    """Centers and what they cost."""

    centers: np.ndarray  # (k, d)
    objective: float
    start: np.ndarray  # (k, d) where the descent to them began


def searched(
    kind: str,
    model: Any,
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    n_init: int,
    max_iter: int,
    watch: Callback,
) -> tuple[Any, Callback]:
    """The model with the best start that a search finds, and the callback for the descent from there.

    From the best of `n_init` descents on, a round draws some rows by their cost and finds what all rows cost with each
    of them in the place of each center [1]_. The cheapest swaps are followed by a descent of the model [2]_. The first
    that ends lower is taken; a search ends after some rounds in vain.

    A table that is too large is searched by a random sample of its rows. The start is then the better one of the
    centers of the sample and of seeds among all rows.

    .. [1] Schubert & Rousseeuw (2021), Fast and eager k-medoids clustering, Inf. Syst. 101.
    .. [2] Fränti (2018), Efficiency of random swap clustering, Journal of Big Data 5.
    """
    chance, seeding = rng.spawn(2)
    effort = EFFORTS[kind]
    rows, is_sample = _rows(source, largest(effort, source, model.n_clusters), chance)
    if is_sample and rows.X.shape[0] < SAMPLE * model.n_clusters:  # nearly all rows have no weight
        return model, watch
    search = Search(model, rows, source.shape[0] / rows.X.shape[0], chance, max_iter, watch)
    with machine.one_blas_thread:
        best = search.run(n_init, effort)
        if is_sample:
            start = _better_start(model, source, engine, seeding, best.centers)
        else:  # the whole descent is told once more, unless it is to end at once
            start = best.centers if search.stopped else best.start

    def watch_the_end(progress: Progress) -> bool:
        return search.stopped or bool(watch(replace(progress, run=n_init + 1)))

    return replace(model, start=start), watch_the_end


def largest(effort: Effort, source: Source, k: int) -> int:
    """The number of rows that are searched at most."""
    n, d = source.shape
    X = getattr(source, "X", None)
    values = X.nnz / n if hasattr(X, "indptr") else d  # of a row
    return max(int(effort.values / (max(values, 1) * k)), SAMPLE * k)


def _rows(source: Source, most: int, rng: np.random.Generator) -> tuple[Chunk, bool]:
    """The rows of weight above 0, or of a random sample, and whether it is a sample."""
    n = source.shape[0]
    is_sample = n > most
    chunk = source.pick(np.sort(rng.choice(n, most, replace=False, shuffle=False)) if is_sample else slice(None))
    if chunk.w is not None and not chunk.w.all():
        counted = np.flatnonzero(chunk.w)
        chunk = chunk._replace(X=chunk.X[counted], w=chunk.w[counted])
    return chunk, is_sample


def _better_start(
    model: Any, source: Source, engine: Engine, rng: np.random.Generator, centers: np.ndarray
) -> np.ndarray:
    """The centers of a sample, or seeds among all rows where these cost less: a sample can miss a small cluster."""
    seeds = model.init(source, engine, rng)
    sums = [engine.scan(partial(model.e_step, each), source, None)[0] for each in (centers, seeds)]
    at_centers, at_seeds = (model.objective(each, stats) for each, stats in zip((centers, seeds), sums, strict=True))
    return centers if at_centers <= at_seeds else seeds


class Search:
    """One solution that gets better by swaps, among rows in memory."""

    def __init__(
        self,
        model: Any,
        rows: Chunk,
        scale: float,  # from the objective of these rows to that of all
        rng: np.random.Generator,
        max_iter: int,
        watch: Callback,
    ):
        self.model, self.rows, self.scale, self.rng, self.max_iter = model, rows, scale, rng, max_iter
        self.source, self.engine = in_memory(rows)
        self.watch, self.stopped = watch, False
        self.best: Solution | None = None
        self.cost: Cost = model.cost
        # Optional parts of a model: a faster one for descents that are only tried, and centers that must not be rows.
        self.rough, self.off_rows = getattr(model, "rough", model), getattr(model, "off_rows", None)

    def run(self, n_init: int, effort: Effort) -> Solution:
        """The best of `n_init` descents, then swaps until some rounds find nothing better; Ctrl-C keeps the best."""
        with interrupts.deferred(), interrupts.outermost() as keeps:
            try:
                self._start(n_init)
                self._swap(n_init, effort)
            except KeyboardInterrupt:
                if not keeps or self.best is None:
                    raise
                warnings.warn("interrupted: the best result so far is kept", FitInterruptedWarning, stacklevel=4)
                self.stopped = True
        assert self.best is not None
        return self.best

    def _start(self, n_init: int) -> None:
        for run, child in enumerate(self.rng.spawn(n_init)):
            start = self.model.init(self.source, self.engine, child)
            found = self._descend(self.model, start, partial(self._tell, run))
            if self.best is None or found.objective < self.best.objective:
                self.best = Solution(found.params, found.objective, start)
            self.stopped |= found.stopped
            if self.stopped:
                break

    def _swap(self, run: int, effort: Effort) -> None:
        quiet, most = 0, effort.quiet * getattr(self.model, "patience", 1)
        for step in range(effort.rounds if self.model.n_clusters > 1 else 0):
            assert self.best is not None
            interrupts.check()
            if self.stopped or quiet == most or self.best.objective <= 0:
                break
            better = self._round(self.best)
            quiet, self.best = (0, better) if better is not None else (quiet + 1, self.best)
            progress = Progress("iteration", step, run=run, params=self.best.centers, objective=self.best.objective)
            self.stopped |= self._tell(run, progress)

    def _round(self, best: Solution) -> Solution | None:
        """The first of the cheapest swaps whose descent ends lower; None if there is none."""
        for centers in self.swaps(best):
            watch = Hopeless(best.objective)
            found = self._descend(self.rough, centers, watch)
            self.stopped |= found.stopped and not watch.given_up
            if found.objective < (1.0 - GAIN) * best.objective:
                return Solution(found.params, found.objective, found.params)
            if self.stopped:
                break
        return None

    def swaps(self, best: Solution) -> Iterator[np.ndarray]:
        """Centers after the swaps with which all rows cost least, then after pairs of these."""
        X, cost, centers = self.rows.X, self.cost, best.centers
        w = np.ones(X.shape[0]) if self.rows.w is None else self.rows.w.astype(np.float64)
        at_centers = cost.table(X, centers).astype(np.float64)
        without = left_out(cost, at_centers)
        drawn = self._draw(w * cost.beside(without[0], at_centers[:, 0]))
        if len(drawn) == 0:
            return
        candidates = cost.take(X, drawn)
        at_candidates = cost.table(X, candidates).astype(np.float64)
        totals = np.stack([w @ cost.beside(others[:, None], at_candidates) for others in without])  # (k, candidates)
        most = (1.0 + FAR / len(centers)) * float(w @ cost.beside(without[0], at_centers[:, 0]))
        moves = different(totals, at_centers[drawn].argmin(axis=1), most)
        for gone, new in moves[:TRIES]:
            yield self._swapped(centers, [gone], candidates[[new]])
        for _ in range(PAIRS if len(moves) > 1 else 0):
            (gone, new), (other, beside) = (moves[i] for i in self.rng.choice(len(moves), 2, replace=False))
            if gone != other and new != beside:
                yield self._swapped(centers, [gone, other], candidates[[new, beside]])

    def _swapped(self, centers: np.ndarray, gone: list[int], rows: np.ndarray) -> np.ndarray:
        moved = centers.copy()
        moved[gone] = rows
        return moved if self.off_rows is None else self.off_rows(moved, np.array(gone), self.source, self.engine)

    def _draw(self, mass: np.ndarray) -> np.ndarray:
        """Different rows, in proportion to `mass`; none where there is no mass."""
        able = int(np.count_nonzero(mass))
        if able == 0:
            return np.zeros(0, np.int64)
        return np.sort(self.rng.choice(len(mass), min(CANDIDATES, able), replace=False, p=mass / mass.sum()))

    def _descend(self, model: Any, centers: np.ndarray, watch: Callback) -> loop.Fit:
        model = replace(model, start=centers)
        return loop.fit(model, self.source, self.engine, rng=self.rng, max_iter=self.max_iter, callback=watch)

    def _tell(self, run: int, progress: Progress) -> bool:
        return bool(self.watch(replace(progress, run=run, objective=self.scale * progress.objective)))


def different(totals: np.ndarray, owner: np.ndarray, most: float) -> list[tuple[int, int]]:
    """Swaps (center, candidate) that cost no more than `most`, the cheapest first: one for a center and a cluster."""
    moves: dict[tuple[int, int], tuple[int, int]] = {}
    for place in np.argsort(totals, axis=None, kind="stable"):
        gone, new = divmod(int(place), totals.shape[1])
        if totals[gone, new] > most:
            break
        moves.setdefault((gone, int(owner[new])), (gone, new))
    return list(moves.values())


class Hopeless:
    """A callback that ends a descent which gains too little to reach the objective that there is."""

    def __init__(self, objective: float, hope: float = HOPE, after: int = 0):
        self.objective, self.hope, self.after = objective, hope, after  # `after` that iteration
        self.before, self.given_up = np.inf, False

    def __call__(self, progress: Progress) -> bool:
        gain, self.before = self.before - progress.objective, progress.objective
        self.given_up = progress.iteration > self.after and progress.objective - self.hope * gain > self.objective
        return self.given_up


def left_out(cost: Cost, costs: np.ndarray) -> np.ndarray:
    """What rows cost (k, n) without each of the centers, at all of which they cost `costs` (n, k)."""
    n, k = costs.shape
    before, after = np.full((k, n), np.inf), np.full((k, n), np.inf)
    for j in range(1, k):
        before[j] = cost.beside(before[j - 1], costs[:, j - 1])
        after[k - 1 - j] = cost.beside(after[k - j], costs[:, k - j])
    return cost.beside(before, after)
