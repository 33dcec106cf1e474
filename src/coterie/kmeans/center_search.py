"""Search for the initial centers of a model of centers: many runs in compiled calls, and swaps of centers for rows."""

from __future__ import annotations

import copy
import re
import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from coterie import interrupts, kernels, machine
from coterie.base import Summary, in_memory
from coterie.core import loop
from coterie.core.arguments import is_number
from coterie.core.checkpoint import SearchState, Store
from coterie.core.clock import Clock
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.search import Effort, Pool, Problem, search
from coterie.errors import ParameterError

SAMPLE = 100  # minimum number of sampled rows per cluster
SHARE = 8  # a sample has one row for so many that could be searched without one
MIN_SAMPLE = 8  # the same if rows have very many columns, in a thorough search of K-means
MAX_VALUES = 1 << 25  # rows x columns; a larger table is searched by a random sample of its rows
CANDIDATES = 16  # rows of a round of swaps that may become centers
JUMPS = 5  # maximum number of centers that jump together
ROUNDS = 64  # maximum number of rounds of swaps of a call
CALL_WORK = 2e8  # multiply-adds of a call, so that Ctrl-C works during long searches, except moves of a thorough one
MOVES_WORK = 5e6  # the same for rounds of moves, so that the work of a search is kept to
CALL = 2e5  # work of a call in addition to its passes
PAIR = 4.0  # work of a pair of row and center in addition to its columns
# Work of a row and column in a pass, in addition to that for each center.
UPDATE = {"means": 1.0, "directions": 1.0, "medians": 32.0, "geometric medians": 6.0, "fuzzy means": 1.0}
PRECISION = 1e-5  # decrease of the objective, relative to it, that ends a run
ROW_PASSES = 1000  # maximum number of passes that move single rows; a few are usually enough
EPS = float(np.finfo(np.float64).eps)
RUNS_PER_START = 4.0  # of a budget of few runs
EFFORTS = {
    "auto": Effort(
        batch=4, starts=16, agree=6, same=1e-4, moves=6, patience=3, jumps=20, runs=14.0, work=3e7, pass_work=2e6
    ),
    "thorough": Effort(
        batch=8, starts=64, agree=64, same=1e-6, moves=8, patience=10, jumps=60, runs=500.0, work=1e9, pass_work=2e7
    ),
}


class Start(NamedTuple):
    """The fit that follows a search."""

    model: Any
    n_init: int
    max_iter: int
    callback: Callback
    path: tuple[Progress, ...] = ()  # iterations from which it continues


def applies(model: Any, source: Source) -> bool:
    """Whether the default search applies: rows not on a GPU, enough of which can be searched in a short time."""
    return (
        bool(model.center_kind)
        and kernels.COMPILED == "cpu"
        and getattr(model, "frozen", None) is None
        and source.engine != "cuda"
        and n_searched(EFFORTS["auto"], source.shape, model.n_clusters) > 0
    )


def n_searched(effort: Effort, shape: tuple[int, ...], k: int) -> int:
    """Number of rows that are searched: all of them, a sample, or 0 if the smallest sample is too large."""
    n, d = shape
    limit = int(min(effort.pass_work / (k * (d + PAIR)), MAX_VALUES / d))
    count = n if n <= limit else max(limit // SHARE, SAMPLE * k)
    if count <= limit:
        return count
    return 0 if effort.pass_work < np.inf else min(n, max(limit, MIN_SAMPLE * k))


def thorough_means(budget: Any, k: int) -> Effort:
    """Effort of a thorough search of K-means; its `search_budget` is None, a number of runs, or seconds as text."""
    effort = replace(EFFORTS["thorough"], pass_work=np.inf, solutions=10, row_passes=ROW_PASSES)
    if budget is None:
        return replace(effort, jumps=20 * k, work=1.6e10)
    runs, seconds = as_budget(budget)
    batch = int(np.clip(runs / RUNS_PER_START, 1, effort.batch)) if seconds == np.inf else 1
    return replace(effort, batch=batch, jumps=np.iinfo(np.int64).max, runs=runs, work=0.0, seconds=seconds)


def as_budget(budget: Any) -> tuple[float, float]:
    """Runs and seconds of a `search_budget` that is not None; `ParameterError` if it is invalid."""
    if isinstance(budget, str):
        seconds = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*s\s*", budget)
        if seconds and float(seconds[1]) > 0:
            return np.inf, float(seconds[1])
    elif is_number(budget) and 0 < budget < np.inf:
        return float(budget), np.inf
    raise ParameterError(
        "search_budget must be None, a number above 0 (multiples of one k-means++ and Lloyd run) or seconds as text "
        f"such as '2.5s'; got {budget!r}"
    )


def search_start(
    effort: Effort, model: Any, source: Source, engine: Engine, summary: Summary, rng: np.random.Generator,
    n_init: int | None, max_iter: int, callback: Callback, store: Store | None,
) -> Start | None:  # fmt: skip
    """Search for the best centers; `n_init` is the number of starts if it is set. None if nothing can be searched.

    Starts are the initial centers of the model, by default of greedy k-means++. A round of moves draws candidate rows
    in proportion to their cost, computes the objective with each of them in place of each center [1]_, and follows the
    cheapest swaps by descents [2]_. Several random swaps at once lead away from the best solution, and rounds continue
    from there [3]_. A thorough search of K-means also moves single rows that fit better into another cluster [4]_, and
    jumps to children of two solutions, whose centers come from either of them [5]_.

    If the table is too large, a random sample of its rows is searched. The initial centers are then the better of the
    centers of the sample and of seeds among all rows.

    .. [1] Schubert & Rousseeuw (2021), Fast and eager k-medoids clustering, Inf. Syst. 101.
    .. [2] Fränti (2018), Efficiency of random swap clustering, Journal of Big Data 5.
    .. [3] Lourenço, Martin & Stützle (2003), Iterated local search, Handbook of Metaheuristics.
    .. [4] Telgarsky & Vattani (2010), Hartigan's method: k-means clustering without Voronoi, AISTATS.
    .. [5] Gribel & Vidal (2019), HG-means: a scalable hybrid genetic algorithm for minimum sum-of-squares clustering,
       Pattern Recognition 88.
    """
    effort = _effort(effort, model.start, n_init)
    search_rng, seeding_rng = rng.spawn(2)
    count, k = n_searched(effort, source.shape, model.n_clusters), model.n_clusters
    rows = _rows(source, count, SAMPLE * k if effort.pass_work < np.inf else k, search_rng)
    if rows is None or k == 1 or not model.center_kind:
        return None
    with machine.one_blas_thread:
        problem = CenterProblem(model, rows, summary, search_rng, max_iter, effort)
        pool, stopped = _search(problem, effort, callback, source, summary.weight, store)
        centers = problem.centers(pool.params[0, 0])
        if count < source.shape[0]:
            path: tuple[Progress, ...] = ()
            start = _better_start(model, source, engine, seeding_rng, centers)
        elif stopped or effort.row_passes:
            start, path = centers, ()
        else:
            start, path = problem.path(pool.params[0, 1], source)

    def final_callback(progress: Progress) -> bool:
        return stopped or bool(callback(replace(progress, run=1)))

    return Start(replace(model, start=start.astype(source.dtype)), 1, max_iter - len(path), final_callback, path)


def _effort(effort: Effort, start: Any, n_init: int | None) -> Effort:
    """The effort for these initialisations."""
    if not (isinstance(start, str) or callable(start)) or start == "farthest":  # all starts are the same
        return replace(effort, batch=1, starts=1, agree=2)
    return effort if n_init is None else replace(effort, starts=n_init, agree=n_init + 1)


def _rows(source: Source, count: int, minimum: int, rng: np.random.Generator) -> Chunk | None:
    """Dense rows of positive weight, of all rows or of a random sample; None if a sample has less than `minimum`."""
    n = source.shape[0]
    if count == 0:
        return None
    chunk = source.pick(np.sort(rng.choice(n, count, replace=False, shuffle=False)) if count < n else slice(None))
    if chunk.w is not None and not chunk.w.all():
        positive = np.flatnonzero(chunk.w)
        chunk = chunk._replace(X=chunk.X[positive], w=chunk.w[positive])
        if count < n and len(positive) < minimum:
            return None
    return chunk._replace(X=kernels.for_centers(chunk.X, 1).take(chunk.X, slice(None)))


def _better_start(
    model: Any, source: Source, engine: Engine, rng: np.random.Generator, centers: np.ndarray
) -> np.ndarray:
    """The cheaper of the centers of a sample and of seeds among all rows, because a sample can miss a small cluster."""
    centers, seeds = centers.astype(source.dtype), model.init(source, engine, rng)
    at_centers, at_seeds = (loop.objective_at(model, candidate, source, engine) for candidate in (centers, seeds))
    return centers if at_centers <= at_seeds else seeds


def _search(
    problem: CenterProblem, effort: Effort, callback: Callback, source: Source, weight: float, store: Store | None
) -> tuple[Pool, bool]:
    """Run the search, and tell whether the callback or Ctrl-C has stopped it; Ctrl-C keeps the best solution.

    `weight` is that of all rows, to which objectives in callbacks belong.
    """
    last: list[Pool] = []
    steps, stopped, scale = 0, False, weight / float(problem.table.w.sum())
    state: SearchState | None = None if store is None else store.read("search", problem.model)
    saved = None if state is None else problem.resumed(state)
    begin = time.perf_counter() - (0.0 if state is None else state.seconds)
    clock = Clock(before=0.0 if state is None else min(1.0, state.work / state.allowed))

    def watch(pool: Pool, share: float) -> bool:
        nonlocal steps, stopped
        last[:] = [pool]
        interrupts.check()
        centers = problem.centers(pool.params[0, 0]).astype(source.dtype)
        objective = scale * problem.objective(pool.objective[0])
        share = min(1.0, max(share, (time.perf_counter() - begin) / effort.seconds))
        stopped |= bool(callback(Progress("iteration", steps, None, clock.left(share), 0, centers, objective)))
        steps += 1
        return stopped or (share == 1.0 and effort.seconds < np.inf)

    def save(pool: Pool, failures: int, allowed: float) -> None:
        nonlocal state
        if store is not None:
            seconds, rng = time.perf_counter() - begin, copy.deepcopy(problem.rng)
            state = SearchState(*pool, failures, allowed, problem.work, seconds, rng)
            store.write("search", lambda: state)

    def keep_state() -> None:
        if store is not None:
            if state is not None:
                store.write("search", lambda: state, at_once=True)
            store.stop_writing()

    with interrupts.deferred(), interrupts.outermost() as is_outermost:
        try:
            pool = search(problem, effort, watch, save, saved)
            if not stopped:
                pool.params[0, 0] = problem.polished(pool.params[0, 0], pool.objective[0])
                interrupts.check()
        except BaseException as error:
            keep_state()
            interrupts.keep_result(error, is_outermost, has_result=bool(last))
            return last[0], True
        if stopped:
            keep_state()
        return pool, stopped


class CenterProblem(Problem):
    """Centers of rows in memory; `params` are the current and the initial centers of each run (runs, 2, k, d)."""

    def __init__(
        self, model: Any, rows: Chunk, summary: Summary, rng: np.random.Generator, max_iter: int, effort: Effort
    ) -> None:
        from coterie.kernels.cpu import center_runs

        self.ops, self.model, self.rows, self.rng, self.k = center_runs, model, rows, rng, model.n_clusters
        kind, (n, d) = model.center_kind, rows.X.shape
        # Rows are centered and in units of their scale, so that nothing overflows or cancels; directions have a scale.
        self.origin = np.zeros(d) if kind == "directions" else summary.mean
        self.unit = 1.0 if kind == "directions" else summary.unit
        self.X = (rows.X.astype(np.float64) - self.origin) / self.unit
        self.table = center_runs.as_table(self.X, rows.w, kind, getattr(model, "m", 2.0))
        self.state, self.base = (center_runs.new_state(n, d, self.k) for _ in range(2))
        self.max_iter = max_iter - 1  # one iteration follows the search
        self.row_passes = effort.row_passes
        # The objective if every row equals its center except for rounding: no search can improve on it.
        largest = float((self.X**2).sum(axis=1).max()) if self.row_passes else 0.0
        self.zero = float(self.table.w.sum()) * (8 * EPS) ** 2 * largest
        # Single rows are moved between clusters that have converged.
        self.tol = 0.0 if self.row_passes else float(model.tol / self.unit**2)
        self.precision = 0.0 if self.row_passes else PRECISION
        self.n_candidates = 2 + int(np.log(self.k))
        soft = 2.0 if kind == "fuzzy means" else 1.0  # as many passes, to add the rows
        self.pass_work = n * self.k * (d + PAIR)
        self.step_work = soft * self.pass_work + n * d * UPDATE[kind]
        self.steps = int(np.clip(CALL_WORK / self.step_work, 1, self.max_iter)) if self.max_iter else 0
        self.work = 0.0

    def centers(self, centers: np.ndarray) -> np.ndarray:
        """Centers in the units of the data."""
        return centers * self.unit + self.origin

    def objective(self, value: float) -> float:
        """An objective in the units of the data."""
        factor = 0.5 if self.model.center_kind == "directions" else 1.0
        return float(factor * value * self.unit**self.model.cost.degree)

    def path(self, start: np.ndarray, source: Source) -> tuple[np.ndarray, tuple[Progress, ...]]:
        """The centers at the end of a run, and its iterations."""
        state = self.ops.new_state(len(self.X), len(self.origin), self.k, self.max_iter + 1)
        params, objective, gains = start[None, None].repeat(2, 1).copy(), np.empty(1), np.empty((2, 1))
        count = self.ops.center_runs(
            self.table, self.max_iter, self.tol, self.precision, np.inf, np.inf, state, params, objective, gains
        )
        centers = self.centers(state.path[:count]).astype(source.dtype)
        steps = (
            Progress("iteration", i, params=centers[i], objective=self.objective(state.values[i]))
            for i in range(count - 1)
        )
        return centers[-1], tuple(steps)

    def starts(self, count: int) -> np.ndarray:
        self.work += CALL + count * self.pass_work * (self.n_candidates + 1)
        if isinstance(self.model.start, str) and self.model.start in ("auto", "k-means++"):
            params = np.empty((count, 2, self.k, len(self.origin)))
            u = self.rng.random((count, 1 + (self.k - 1) * self.n_candidates))
            self.ops.seeds(self.table, u, self.state, params)
            return params
        source, engine = in_memory(self.rows)
        starts = [self.model.init(source, engine, child) for child in self.rng.spawn(count)]
        return ((np.stack([starts, starts], axis=1) - self.origin) / self.unit).astype(np.float64)

    def advance(self, params: np.ndarray, to_beat: float, hope: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        params, objectives, gains = params.copy(), np.empty(len(params)), np.empty((2, len(params)))
        passes = self.ops.center_runs(
            self.table, self.steps, self.tol, self.precision, to_beat, hope, self.state, params, objectives, gains
        )
        self.work += CALL + passes * self.step_work
        if self.steps == self.max_iter:
            gains[1] = 0.0
        objectives[objectives <= self.zero] = 0.0
        return params, objectives, gains

    def moves(self, pool: Pool, effort: Effort, patience: int, failures: int) -> tuple[Pool, int]:
        params = pool.params[:1].copy()
        round_work = effort.moves * 4 * self.step_work  # a few iterations for each swap
        u = self.rng.random((int(np.clip(MOVES_WORK / round_work, 1, ROUNDS)), CANDIDATES))
        row_passes = min(effort.row_passes, 1 + self.steps)
        objective, passes, quiet, has_gained = self.ops.swap_rounds(
            self.table, u, effort.moves, patience - failures, row_passes, self.max_iter if row_passes else self.steps,
            self.tol, self.precision, effort.same, self.base, self.state, params[0], pool.objective[0],
        )  # fmt: skip
        self.work += CALL + passes * self.step_work
        objective = 0.0 if objective <= self.zero else objective
        moved = Pool(params, np.array([objective]), self.defects(params), np.zeros(1, np.int64))
        return moved, quiet if has_gained else failures + quiet

    def jump(self, pool: Pool) -> np.ndarray | None:
        """Several random swaps at once, or one in a child of two solutions.

        Centers that are missed little are more likely to be removed.
        """
        u = self.rng.random(CANDIDATES)
        count = 1 + int(self.rng.integers(max(1, min(JUMPS, self.k // 2))))
        centers = pool.params[0, 0].copy()
        if self.row_passes:  # two parents, each the better one of two random solutions
            mother, father = self.rng.integers(len(pool.objective), size=(2, 2)).min(axis=0)
            if mother != father:
                count, centers = 1, _child(self.rng, pool.params[mother, 0], pool.params[father, 0])
        rows, owners = np.empty(CANDIDATES, np.int64), np.zeros(CANDIDATES, np.int64)
        totals = np.empty((self.k, CANDIDATES + 1))
        self.ops.two_nearest(self.table, centers, self.state)
        objective = self.ops.swap_costs(self.table, u, self.state, rows, totals, owners)
        self.work += CALL + 2 * self.pass_work
        if rows[0] < 0:  # every row equals a center
            return None
        loss = np.maximum(totals[:, -1] - objective, 1e-12 * objective)
        removed = np.argsort(self.rng.standard_exponential(self.k) * loss)[:count]
        centers[removed] = self.X[rows[:count]]
        self.state.centers[:] = centers
        self.ops.move_off_rows(self.table, self.k, self.state)
        return np.stack([self.state.centers, self.state.centers])[None]

    def polished(self, centers: np.ndarray, objective: float) -> np.ndarray:
        """The centers after moves of single rows, until none decreases the objective by more than rounding."""
        centers, (n, d) = centers.copy(), self.X.shape
        if self.row_passes and objective > 0:
            rounding = 2 * (n + d + 3) * EPS  # bound of the relative error of a difference of objectives
            self.ops.polish(
                self.table, self.row_passes, self.max_iter, 0.0, 0.0, rounding, self.base, centers, objective
            )
        return centers

    def resumed(self, state: SearchState) -> tuple[Pool, int, float]:
        """Continue from this state; return the arguments of the search."""
        self.work, self.rng = state.work, copy.deepcopy(state.rng)
        pool = Pool(state.params, state.objective, state.defects, state.hits)
        return pool, state.failures, state.allowed


def _child(rng: np.random.Generator, mother: np.ndarray, father: np.ndarray) -> np.ndarray:
    """Match the centers of both parents, and take one of each pair."""
    squares = ((mother[:, None] - father) ** 2).sum(axis=2)
    matched_mother, matched_father = linear_sum_assignment(squares)
    return np.where(rng.random(len(mother))[:, None] < 0.5, mother[matched_mother], father[matched_father])
