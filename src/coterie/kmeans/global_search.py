"""A search past the local optima of K-means: centers jump, rows change cluster, and Lloyd goes on from there."""

from __future__ import annotations

import copy
import time
import warnings
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from coterie import interrupts, kernels, seeding
from coterie.base import Summary, in_memory
from coterie.core import loop
from coterie.core.checkpoint import Keeper, Store
from coterie.core.clock import Clock
from coterie.core.errors import FitInterruptedWarning
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Chunk, Engine, Source
from coterie.kmeans.lloyd import Lloyd
from coterie.kmeans.search_budget import Budget, Purse, purse_for
from coterie.kmeans.search_state import Searched, check_alike

MOST_VALUES = 1 << 25  # of rows that are searched; beyond, of a sample of them
SAMPLE = 8  # rows a cluster that a sample has at least
STEP = 1e5  # multiply-adds that arranging a jump takes the time of
BREATH = 5e8  # multiply-adds of one call, for Ctrl-C to be heard
HOPE = 10.0  # times its last gain that a trial may lie behind
TRIES = 5  # swaps in vain that end a descent
PASSES = 1000  # over single rows at the end, at most; a few are enough
JUMPS = 5  # centers that jump at most, to leave an optimum
PARENTS, CROWD = 6, 12  # solutions kept at least and at most, to be crossed


def searched(
    kind: str,
    budget: Budget,
    model: Lloyd,
    source: Source,
    engine: Engine,
    summary: Summary,
    rng: np.random.Generator,
    n_init: int,
    max_iter: int,
    watch: Callback,
    store: Store | None = None,
) -> tuple[Lloyd, Callback]:
    """The model, to be started where a search from the best of `n_init` runs has ended, and the callback from there on.

    'fast': split the cluster that gains most by it and remove the center that is missed least [1]_, Lloyd from there,
    keep what is better; then single rows that are better off in another cluster [2]_; where nothing helps any more, a
    few random jumps, and again. 'global' does that to the children of a small population, whose centers come from
    either parent [3]_. All rows are searched, or a sample of those that would be more than `MOST_VALUES` numbers.

    .. [1] Kaukoranta, Fränti & Nevalainen (1998), Iterative split-and-merge algorithm for vector quantization codebook
       generation, Optical Engineering 37.
    .. [2] Telgarsky & Vattani (2010), Hartigan's method: k-means clustering without Voronoi, AISTATS.
    .. [3] Gribel & Vidal (2019), HG-means: a scalable hybrid genetic algorithm for minimum sum-of-squares clustering,
       Pattern Recognition 88.
    """
    keeper = None if store is None else Keeper(store, "starts")
    first = loop.fit(model, source, engine, rng=rng, n_init=n_init, max_iter=max_iter, callback=watch, keeper=keeper)
    centers, stopped = first.params, first.stopped
    if model.n_clusters > 1 and not stopped:
        rng = rng.spawn(1)[0]
        rows = _rows(source, model.n_clusters, summary, rng)
        run = seeding_passes(model.n_clusters) + first.passes
        purse = purse_for(budget, run, *rows.X.shape, model.n_clusters)
        climb = Climb(kind, rows, model.n_clusters, rng, purse, watch, n_init, store)
        climb.go(centers, None if store is None else store.read("search", model))
        stopped = climb.stopped
        better = climb.centers.astype(source.dtype)
        stats, _ = engine.scan(partial(model.e_step, better), source, None)
        # a sample, or rounding to the data's type, can mislead
        centers = better if model.objective(better, stats) <= first.objective else centers

    def watch_the_end(progress: Progress) -> bool:
        return stopped or bool(watch(replace(progress, run=n_init + 1)))

    return replace(model, start=centers), watch_the_end


def _untimed(watch: Callback, progress: Progress) -> bool | None:
    """The runs are the lesser part: how long the search will take is not known yet."""
    return watch(replace(progress, left=None))


class Rows(NamedTuple):
    """What is searched: about their mean and in a unit of their size, so that nothing overflows or cancels."""

    X: np.ndarray  # (n, d) float64
    w: np.ndarray  # (n,) above 0
    origin: np.ndarray  # (d,)
    unit: float
    share: float  # of the weight of all rows that these have


def _rows(source: Source, k: int, summary: Summary, rng: np.random.Generator) -> Rows:
    n, d = source.shape
    count = max(MOST_VALUES // d, SAMPLE * k)
    chosen = slice(None) if n <= count else np.sort(rng.choice(n, count, replace=False, shuffle=False))
    chunk = source.pick(chosen)
    X = kernels.for_centers(chunk.X, k).take(chunk.X, slice(None)).astype(np.float64)
    w = np.ones(len(X)) if chunk.w is None else chunk.w.astype(np.float64)
    if not w.all():
        X, w = X[w > 0], w[w > 0]
    X -= summary.mean
    X /= summary.unit
    return Rows(X, w, summary.mean, summary.unit, float(w.sum()) / summary.weight)


class Climb:
    """One solution that moves about, the best one so far, and what there is left to spend."""

    def __init__(
        self,
        kind: str,
        rows: Rows,
        k: int,
        rng: np.random.Generator,
        purse: Purse,
        watch: Callback,
        run: int,
        store: Store | None = None,
    ):
        from coterie.kernels.cpu import search as ops
        from coterie.kernels.cpu import solution

        self.ops, self.X, self.w, self.rows = ops, rows.X, rows.w, rows
        self.kind, self.k, self.rng, self.purse, self.watch, self.run = kind, k, rng, purse, watch, run
        self.here, self.home, self.trial = (_solution(solution, *rows.X.shape, k) for _ in range(3))
        self.moves, self.home_moves = (_moves(solution, rows.X.shape[1], k) for _ in range(2))
        self.breath = int(max(1, min(ops.LONGEST, BREATH / (rows.X.size * k))))
        self.best, self.least = np.empty(0), np.inf
        eps = float(np.finfo(np.float64).eps)
        # A sum of n products, each of a square of d columns, is wrong by no more than this share of itself.
        self.rounding = (sum(rows.X.shape) + 3) * eps
        # Rows on their centers, but for the rounding of these, cost this much: no search can make it less.
        self.nothing = float(rows.w.sum()) * (8 * eps) ** 2 * float((rows.X**2).sum(axis=1).max())
        self.steps, self.stopped = 0, False
        self.clock = Clock()
        self.store, self.crowd = store, list[tuple[float, np.ndarray]]()
        self.state: partial[Searched] | None = None  # makes the last that is complete

    def go(self, centers: np.ndarray, last: Searched | None = None) -> None:
        """The whole search, from these centers or from where another was; Ctrl-C ends it with what it has reached."""
        self.best = (centers - self.rows.origin) / self.rows.unit
        with interrupts.deferred(), interrupts.outermost() as keeps:
            try:
                self._run(last)
            except BaseException as error:
                self._store_state(at_once=True)
                if not (keeps and isinstance(error, KeyboardInterrupt)):
                    raise
                warnings.warn("interrupted: the best result so far is kept", FitInterruptedWarning, stacklevel=4)
                self.stopped = True
            if self.stopped and self.store is not None:
                self._store_state(at_once=True)
                self.store.leave()

    def _run(self, last: Searched | None) -> None:
        if last is None:
            self.begin(self.best)
            self.descend()
            self.keep()
            self.join()
        else:
            self._go_on(last)
        (_wander if self.kind == "fast" else _breed)(self)
        if not self.stopped:
            self.finish()

    @property
    def centers(self) -> np.ndarray:
        """The best there have been, in the units of the data."""
        return self.best * self.rows.unit + self.rows.origin

    @property
    def over(self) -> bool:
        return self.stopped or self.least <= self.nothing or self.purse.empty

    @property
    def value(self) -> float:
        return float(self.here.state[0])

    def begin(self, centers: np.ndarray) -> None:
        """Lloyd from these centers."""
        self.here.centers[:] = centers
        more = self.ops.start(self.X, self.w, self.here, self.moves, self.breath, self.purse.spent)
        self._settle(more)
        self._note()

    def descend(self) -> None:
        """Swaps, and single rows where no swap helps, until nothing does."""
        while not self.over:
            u = self.rng.random(self.k)
            helped = self.ops.improve(
                self.X, self.w, self.here, self.trial, self.moves, u, TRIES, HOPE, self.ops.LONGEST, self.purse.spent
            )
            if not helped and (self.over or not self._polish()):
                break
            self._note()

    def kick(self, jumps: int) -> None:
        """Random swaps: clusters that gain by a split, centers that are little missed."""
        self.purse.spent += STEP
        gain, loss = np.maximum(self.moves.gain, 1e-300), self.moves.loss
        luck = self.rng.standard_exponential((2, self.k))
        into = np.argsort(luck[0] / gain)[:jumps]
        luck[1, into] = np.inf
        gone = np.argsort(luck[1] * np.maximum(loss, 1e-12 * self.value))[:jumps]
        self._settle(self.ops.kick(self.X, self.w, self.here, self.moves, into, gone, self.breath, self.purse.spent))

    def mutate(self) -> None:
        """One random swap of a solution that has only just begun."""
        self.ops.survey(self.X, self.w, self.here, self.moves, self.rng.random(self.k), self.purse.spent)
        self.kick(1)

    def keep(self) -> None:
        """Here is home."""
        self.state = None
        self.ops.copy(self.here, self.home)
        _copy(self.moves, self.home_moves)

    def go_home(self) -> None:
        self.ops.copy(self.home, self.here)
        _copy(self.home_moves, self.moves)

    def join(self) -> None:
        """One more of the population, unless there is one like it."""
        if not any(abs(self.value - value) <= 1e-9 * value for value, _ in self.crowd):
            self.crowd.append((self.value, self.here.centers.copy()))

    def rest(self) -> None:
        """Between two jumps, or two children: the state is complete."""
        if self.store is None:
            return
        left = self.purse.deadline - time.perf_counter()
        numbers = self.best, self.least, self.steps, float(self.purse.spent[0]), self.purse.allowed, left
        self.state = partial(self._made, numbers, self.rng.bit_generator.state, tuple(self.crowd))
        self._store_state()

    def _made(self, numbers: Any, bits: Any, crowd: Any) -> Searched:
        chance = copy.deepcopy(self.rng)
        chance.bit_generator.state = bits
        return Searched(*numbers, chance, tuple(self.home), tuple(self.home_moves), crowd)

    def _store_state(self, at_once: bool = False) -> None:
        if self.store is not None and self.state is not None:
            self.store.write("search", self.state, at_once)

    def _go_on(self, last: Searched) -> None:
        check_alike(last, self.best, self.home, self.home_moves)
        self.best, self.least, self.steps, self.crowd = last.best, last.least, last.steps, list(last.crowd)
        self.purse.spent[0], self.purse.allowed = last.spent, last.allowed
        self.purse.deadline, self.rng = time.perf_counter() + last.seconds, last.chance
        self.clock = Clock(before=self.purse.share)
        for room, values in zip((*self.home, *self.home_moves), (*last.home, *last.moves), strict=True):
            room[...] = values
        self.go_home()

    def finish(self) -> None:
        """The best solution, until no single row is better off elsewhere."""
        self.begin(self.best)
        for _ in range(PASSES):
            if not self._polish():
                break
            self._note()

    def _polish(self) -> bool:
        """One pass over single rows, and Lloyd after it; whether the objective fell by more than rounding explains.

        Where it did not, rows that are equally well off in two clusters could change between them for ever.
        """
        before = self.value
        changes = self.ops.polish(self.X, self.w, self.here, self.moves, self.purse.spent)
        self._settle(changes > 0)
        return changes > 0 and before - self.value > 2 * self.rounding * before

    def _settle(self, more: bool) -> None:
        """Lloyd to its end, or for `LONGEST` iterations, in calls short enough to be interrupted between two."""
        for _ in range(-(-self.ops.LONGEST // self.breath)):
            if not more:
                break
            more = self.ops.go_on(self.X, self.w, self.here, self.moves, self.breath, self.purse.spent)

    def _note(self) -> None:
        if self.value < self.least:
            if self.value < self.least * (1 - 1e-9):
                self.purse.improved()
            self.best, self.least = self.here.centers.copy(), self.value
        objective = self.least * self.rows.unit**2 / self.rows.share
        left = self.clock.left(self.purse.share)
        self.stopped |= bool(
            self.watch(Progress("iteration", self.steps, None, left, self.run, self.centers, objective))
        )
        self.steps += 1


def _wander(climb: Climb) -> None:
    """From optimum to optimum by random jumps, back from where it is worse."""
    most = max(1, min(JUMPS, climb.k // 2))
    climb.rest()
    while not climb.over:
        climb.kick(1 + int(climb.rng.integers(most)))
        climb.descend()
        if climb.value < climb.home.state[0]:
            climb.keep()
        else:
            climb.go_home()
        climb.rest()


def _breed(climb: Climb) -> None:
    """Optima of children whose centers come from either of two parents."""
    climb.rest()
    while not climb.over:
        if len(climb.crowd) < PARENTS:
            climb.begin(_seeds(climb))
        else:
            climb.begin(_child(climb, _parent(climb.rng, climb.crowd), _parent(climb.rng, climb.crowd)))
            climb.mutate()
        climb.descend()
        climb.join()
        if len(climb.crowd) > CROWD:
            climb.crowd.sort(key=lambda one: one[0])
            del climb.crowd[PARENTS:]
        climb.rest()


def _seeds(climb: Climb) -> np.ndarray:
    source, engine = in_memory(Chunk(climb.X, climb.w, 0))
    climb.purse.spent += climb.X.size * climb.k * seeding_passes(climb.k)
    return seeding.plusplus(source, engine, climb.rng, climb.k, 1.0)


def seeding_passes(k: int) -> float:
    """The work of k-means++, in passes of all rows against all centers."""
    return 3.0 + np.log(k)


def _parent(rng: np.random.Generator, crowd: list[tuple[float, np.ndarray]]) -> np.ndarray:
    """The better of two."""
    i, j = rng.integers(len(crowd), size=2)
    return min(crowd[i], crowd[j], key=lambda one: one[0])[1]


def _child(climb: Climb, mother: np.ndarray, father: np.ndarray) -> np.ndarray:
    """Of every two centers that match, one."""
    squares = ((mother[:, None] - father[None]) ** 2).sum(axis=2)
    ours, theirs = linear_sum_assignment(squares)
    climb.purse.spent += STEP + climb.k**2 * (climb.X.shape[1] + climb.k)
    return np.where(climb.rng.random(climb.k)[:, None] < 0.5, mother[ours], father[theirs])


def _solution(kernels: Any, n: int, d: int, k: int) -> Any:
    return kernels.Solution(
        centers=np.zeros((k, d)),
        columns=np.zeros((d, k)),
        sums=np.zeros((k, d)),
        weight=np.zeros(k),
        count=np.zeros(k, np.int64),
        labels=np.zeros(n, np.int64),
        near=np.zeros(n),
        other=np.zeros(n, np.int64),
        far=np.zeros(n),
        low=np.zeros(n),
        state=np.zeros(2),
    )


def _moves(kernels: Any, d: int, k: int) -> Any:
    return kernels.Moves(
        gain=np.zeros(k),
        loss=np.zeros(k),
        left=np.zeros((k, d)),
        right=np.zeros((k, d)),
        stale=np.zeros(k, np.bool_),
        tried=np.zeros((k, k), np.bool_),
        moved=np.zeros(k, np.bool_),
        touched=np.zeros(k, np.bool_),
        jumped=np.zeros(k, np.bool_),
        listed=np.zeros(k, np.int64),
        squares=np.zeros(k),
        before=np.zeros((k, d)),
        cost=np.zeros((2, k)),
        half=np.zeros((2, k, d + 1)),
    )


def _copy(moves: Any, to: Any) -> None:
    for values, room in zip(moves, to, strict=True):
        room[...] = values
