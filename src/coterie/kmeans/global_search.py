"""Search for a better optimum of K-means: move centers and single rows, then run Lloyd's algorithm again."""

import copy
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from coterie import interrupts, kernels, seeding
from coterie.base import Summary, in_memory
from coterie.core import loop
from coterie.core.checkpoint import Checkpointer, Store
from coterie.core.clock import Clock
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Chunk, Engine, Source
from coterie.kmeans.lloyd import Lloyd
from coterie.kmeans.search_state import Budget, SearchState, WorkLimit, check_state_matches, work_limit

MAX_VALUES = 1 << 25  # rows x columns; a larger table is searched by a random sample of its rows
SAMPLE = 8  # minimum number of sampled rows per cluster
STEP = 1e5  # cost of preparing a jump, in multiply-adds
CALL_WORK = 5e8  # multiply-adds of one kernel call, so that Ctrl-C works during long searches
HOPE = 10.0  # a trial is abandoned if it is behind by more than this multiple of its last gain
TRIES = 5  # unsuccessful swaps that end a descent
PASSES = 1000  # maximum number of final passes over single rows; a few are usually enough
MIN_POPULATION, MAX_POPULATION = 6, 12  # solutions to recombine


def thorough_start(
    budget: Budget,
    model: Lloyd,
    source: Source,
    engine: Engine,
    summary: Summary,
    rng: np.random.Generator,
    n_init: int,
    max_iter: int,
    callback: Callback,
    store: Store | None = None,
) -> tuple[Lloyd, Callback]:
    """Model that starts from the result of a search, and the callback of its final iterations.

    The search starts from the best of `n_init` runs. It splits the cluster that gains most by a split, removes the
    center that is missed least [1]_, and runs Lloyd's algorithm from there. It keeps better solutions. Then it moves
    single rows that fit better into another cluster [2]_. If nothing helps, it does the same to the children of a small
    population, whose centers come from either parent [3]_. It searches all rows, or a random sample if the rows have
    more than `MAX_VALUES` values.

    .. [1] Kaukoranta, Fränti & Nevalainen (1998), Iterative split-and-merge algorithm for vector quantization codebook
       generation, Optical Engineering 37.
    .. [2] Telgarsky & Vattani (2010), Hartigan's method: k-means clustering without Voronoi, AISTATS.
    .. [3] Gribel & Vidal (2019), HG-means: a scalable hybrid genetic algorithm for minimum sum-of-squares clustering,
       Pattern Recognition 88.
    """
    checkpointer = None if store is None else Checkpointer(store, "starts")
    first = loop.fit(
        model, source, engine, rng=rng, n_init=n_init, max_iter=max_iter, callback=callback, checkpointer=checkpointer
    )
    centers, stopped = first.params, first.stopped
    if model.n_clusters > 1 and not stopped:
        rng = rng.spawn(1)[0]
        rows = _rows(source, model.n_clusters, summary, rng)
        run = seeding_passes(model.n_clusters) + first.passes
        n, d = rows.X.shape
        limit = work_limit(budget, run, n, d, model.n_clusters)
        search = KMeansSearch(rows, model.n_clusters, rng, limit, callback, n_init, store)
        search.run(centers, None if store is None else store.read("search", model))
        stopped = search.stopped
        candidate = search.centers.astype(source.dtype)
        # The objective of a sample, or rounding to the dtype of the data, can be misleading: compare on all rows.
        centers = candidate if loop.objective_at(model, candidate, source, engine) <= first.objective else centers

    def final_callback(progress: Progress) -> bool:
        return stopped or bool(callback(replace(progress, run=n_init + 1)))

    return replace(model, start=centers), final_callback


class Rows(NamedTuple):
    """Rows that are searched, centered and in units of their scale, so that nothing overflows or cancels."""

    X: np.ndarray  # (n, d) float64
    w: np.ndarray  # (n,) above 0
    origin: np.ndarray  # (d,)
    unit: float
    share: float  # weight of these rows divided by the weight of all rows


def _rows(source: Source, k: int, summary: Summary, rng: np.random.Generator) -> Rows:
    n, d = source.shape
    count = max(MAX_VALUES // d, SAMPLE * k)
    chosen = slice(None) if n <= count else np.sort(rng.choice(n, count, replace=False, shuffle=False))
    chunk = source.pick(chosen)
    X = kernels.for_centers(chunk.X, k).take(chunk.X, slice(None)).astype(np.float64)
    w = np.ones(len(X)) if chunk.w is None else chunk.w.astype(np.float64)
    if not w.all():
        X, w = X[w > 0], w[w > 0]
    X -= summary.mean
    X /= summary.unit
    return Rows(X, w, summary.mean, summary.unit, float(w.sum()) / summary.weight)


@dataclass(eq=False)
class KMeansSearch:
    """Current solution, best solution so far, and remaining budget of a search."""

    rows: Rows
    k: int
    rng: np.random.Generator
    limit: WorkLimit
    callback: Callback
    run_index: int
    store: Store | None = None

    def __post_init__(self) -> None:
        from coterie.kernels.cpu import incremental_lloyd
        from coterie.kernels.cpu import local_search as ops

        self.ops, self.copy_solution = ops, incremental_lloyd.copy
        self.X, self.w = self.rows.X, self.rows.w
        n, d = self.X.shape
        self.current, self.trial = (_solution(incremental_lloyd, n, d, self.k) for _ in range(2))
        self.moves = _moves(incremental_lloyd, d, self.k)
        self.iterations_per_call = int(max(1, min(ops.MAX_ITER, CALL_WORK / (self.X.size * self.k))))
        self.best, self.best_objective = np.empty(0), np.inf
        eps = float(np.finfo(np.float64).eps)
        # Bound of the relative rounding error of a sum of n products, each of a square of d columns.
        self.rounding = (n + d + 3) * eps
        # Objective if every row equals its center except for rounding: no search can improve on it.
        self.zero_objective = float(self.w.sum()) * (8 * eps) ** 2 * float((self.X**2).sum(axis=1).max())
        self.steps, self.stopped = 0, False
        self.clock = Clock()
        self.population: list[tuple[float, np.ndarray]] = []
        self.state: partial[SearchState] | None = None  # builds the last complete state

    def run(self, centers: np.ndarray, saved: SearchState | None = None) -> None:
        """Run the search from these centers, or resume it from `saved`. Ctrl-C stops it and keeps the best result."""
        self.best = (centers - self.rows.origin) / self.rows.unit
        with interrupts.deferred(), interrupts.outermost() as is_outermost:
            try:
                self._search(saved)
            except BaseException as error:
                self._store_state(at_once=True)
                interrupts.keep_result(error, is_outermost, has_result=True)
                self.stopped = True
            if self.stopped and self.store is not None:
                self._store_state(at_once=True)
                self.store.stop_writing()

    def _search(self, saved: SearchState | None) -> None:
        if saved is None:
            self.start(self.best)
            self.descend()
            self.add_to_population()
        else:
            self._resume(saved)
        _evolve(self)
        if not self.stopped:
            self.finish()

    @property
    def centers(self) -> np.ndarray:
        """Best centers so far, in the units of the data."""
        return self.best * self.rows.unit + self.rows.origin

    @property
    def is_over(self) -> bool:
        return self.stopped or self.best_objective <= self.zero_objective or self.limit.is_reached

    @property
    def objective(self) -> float:
        return float(self.current.state[0])

    def start(self, centers: np.ndarray) -> None:
        """Run Lloyd's algorithm from these centers."""
        self.current.centers[:] = centers
        is_unfinished = self.ops.start(
            self.X, self.w, self.current, self.moves, self.iterations_per_call, self.limit.spent
        )
        self._run_lloyd(is_unfinished)
        self._record()

    def descend(self) -> None:
        """Improve by swaps, and by single rows if no swap helps, until nothing helps."""
        while not self.is_over:
            u = self.rng.random(self.k)
            helped = self.ops.improve_by_swap(
                self.X,
                self.w,
                self.current,
                self.trial,
                self.moves,
                u,
                TRIES,
                HOPE,
                self.ops.MAX_ITER,
                self.limit.spent,
            )
            if not helped and (self.is_over or not self._polish()):
                break
            self._record()

    def kick(self, jumps: int) -> None:
        """Random swaps: split clusters that gain by it, remove centers that are missed little."""
        self.limit.spent += STEP
        gain, loss = np.maximum(self.moves.gain, 1e-300), self.moves.loss
        draws = self.rng.standard_exponential((2, self.k))
        split = np.argsort(draws[0] / gain)[:jumps]
        draws[1, split] = np.inf
        removed = np.argsort(draws[1] * np.maximum(loss, 1e-12 * self.objective))[:jumps]
        is_unfinished = self.ops.swap_several(
            self.X, self.w, self.current, self.moves, split, removed, self.iterations_per_call, self.limit.spent
        )
        self._run_lloyd(is_unfinished)

    def mutate(self) -> None:
        """Make one random swap of a solution that was not improved yet."""
        self.ops.evaluate_moves(self.X, self.w, self.current, self.moves, self.rng.random(self.k), self.limit.spent)
        self.kick(1)

    def add_to_population(self) -> None:
        """Add the current solution to the population, unless it has one with the same objective."""
        if not any(abs(self.objective - objective) <= 1e-9 * objective for objective, _ in self.population):
            self.population.append((self.objective, self.current.centers.copy()))

    def save_state(self) -> None:
        """Save a complete state, between two jumps or two children."""
        if self.store is None:
            return
        left = self.limit.deadline - time.perf_counter()
        numbers = self.best, self.best_objective, self.steps, float(self.limit.spent[0]), self.limit.allowed, left
        self.state = partial(self._make_state, numbers, self.rng.bit_generator.state, tuple(self.population))
        self._store_state()

    def _make_state(self, numbers: Any, rng_state: Any, population: Any) -> SearchState:
        rng = copy.deepcopy(self.rng)
        rng.bit_generator.state = rng_state
        arguments: list[Any] = [*numbers, rng, population]
        return SearchState(*arguments)

    def _store_state(self, at_once: bool = False) -> None:
        if self.store is not None and self.state is not None:
            self.store.write("search", self.state, at_once)

    def _resume(self, saved: SearchState) -> None:
        check_state_matches(saved, self.best)
        self.best, self.best_objective = saved.best, saved.best_objective
        self.steps, self.population = saved.steps, list(saved.population)
        self.limit.spent[0], self.limit.allowed = saved.spent, saved.allowed
        self.limit.deadline, self.rng = time.perf_counter() + saved.seconds, saved.rng
        self.clock = Clock(before=self.limit.share)

    def finish(self) -> None:
        """Improve the best solution until no single row fits better into another cluster."""
        self.start(self.best)
        for _ in range(PASSES):
            if not self._polish():
                break
            self._record()

    def _polish(self) -> bool:
        """Move single rows, then run Lloyd's algorithm; whether the objective decreased by more than rounding."""
        before = self.objective
        changes = self.ops.move_rows(self.X, self.w, self.current, self.moves, self.limit.spent)
        self._run_lloyd(changes > 0)
        return changes > 0 and before - self.objective > 2 * self.rounding * before

    def _run_lloyd(self, is_unfinished: bool) -> None:
        """Run Lloyd's algorithm until it converges, or for `MAX_ITER` iterations, in calls short enough for Ctrl-C."""
        for _ in range(-(-self.ops.MAX_ITER // self.iterations_per_call)):
            if not is_unfinished:
                break
            is_unfinished = self.ops.continue_lloyd(
                self.X, self.w, self.current, self.moves, self.iterations_per_call, self.limit.spent
            )

    def _record(self) -> None:
        if self.objective < self.best_objective:
            if self.objective < self.best_objective * (1 - 1e-9):
                self.limit.improved()
            self.best, self.best_objective = self.current.centers.copy(), self.objective
        objective = self.best_objective * self.rows.unit**2 / self.rows.share
        left = self.clock.left(self.limit.share)
        self.stopped |= bool(
            self.callback(Progress("iteration", self.steps, None, left, self.run_index, self.centers, objective))
        )
        self.steps += 1


def _evolve(search: KMeansSearch) -> None:
    """Improve children whose centers come from two parents."""
    search.save_state()
    while not search.is_over:
        if len(search.population) < MIN_POPULATION:
            source, engine = in_memory(Chunk(search.X, search.w, 0))
            search.limit.spent += search.X.size * search.k * seeding_passes(search.k)
            search.start(seeding.plusplus(source, engine, search.rng, search.k, 1.0))
        else:
            search.start(_child(search, _parent(search.rng, search.population), _parent(search.rng, search.population)))
            search.mutate()
        search.descend()
        search.add_to_population()
        if len(search.population) > MAX_POPULATION:
            search.population.sort(key=lambda member: member[0])
            del search.population[MIN_POPULATION:]
        search.save_state()


def seeding_passes(k: int) -> float:
    """Work of k-means++, in passes of all rows against all centers."""
    return 3.0 + np.log(k)


def _parent(rng: np.random.Generator, population: list[tuple[float, np.ndarray]]) -> np.ndarray:
    """The better of two random members."""
    i, j = rng.integers(len(population), size=2)
    return min(population[i], population[j], key=lambda member: member[0])[1]


def _child(search: KMeansSearch, mother: np.ndarray, father: np.ndarray) -> np.ndarray:
    """Match the centers of both parents and take one of each pair."""
    squares = ((mother[:, None] - father[None]) ** 2).sum(axis=2)
    matched_mother, matched_father = linear_sum_assignment(squares)
    search.limit.spent += STEP + search.k**2 * (search.X.shape[1] + search.k)
    return np.where(search.rng.random(search.k)[:, None] < 0.5, mother[matched_mother], father[matched_father])


def _solution(kernels: Any, n: int, d: int, k: int) -> Any:
    return kernels.Solution(
        centers=np.zeros((k, d)),
        columns=np.zeros((d, k)),
        sums=np.zeros((k, d)),
        weight=np.zeros(k),
        count=np.zeros(k, np.int64),
        labels=np.zeros(n, np.int64),
        square=np.zeros(n),
        second=np.zeros(n, np.int64),
        second_square=np.zeros(n),
        lower_bound=np.zeros(n),
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
        has_moved=np.zeros(k, np.bool_),
        relocated=np.zeros(k, np.bool_),
        indices=np.zeros(k, np.int64),
        squares=np.zeros(k),
        before=np.zeros((k, d)),
        cost=np.zeros((2, k)),
        half_sums=np.zeros((2, k, d + 1)),
    )
