"""One search for all models: independent starts until they agree, then moves away from the best solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from coterie.core.arguments import one_of
from coterie.core.nested_arrays import join, select

CHOICES = ("none", "auto", "thorough")
SYNONYMS = {"fast": "thorough", "global": "thorough"}  # names of earlier versions
ROUNDING = 1e-9  # relative difference of objectives that is attributed to rounding
MIN_SHARE = 0.25  # of the starts that have to end in the best optimum, so that more are made


@dataclass(frozen=True)
class Effort:
    """Length of a search. Differences of objectives are relative to the `scale` of the problem."""

    batch: int  # independent starts that run together
    starts: int  # maximum number of independent starts before moves and jumps
    agree: int  # starts in the best optimum that end the search
    same: float  # difference of the objectives of one optimum
    moves: int = 0  # neighbours that are tried in a round of moves
    patience: int = 0  # rounds without a gain that end the moves
    jumps: int = 0  # jumps without a gain that end the search
    runs: float = 0.0  # maximum work, in multiples of the work of one start
    work: float = 0.0  # multiply-adds that are allowed in any case
    pass_work: float = np.inf  # multiply-adds of a pass; a larger table is searched by a random sample of its rows
    restart: int = 0  # the last of so many jumps without a gain is a batch of starts instead; 0 for jumps only
    solutions: int = 4  # different solutions that are remembered
    hope: float = 10.0  # a run ends if it is behind the best by more than this many times its last gain
    row_passes: int = 0  # maximum number of passes that move single rows after a gain
    seconds: float = np.inf  # maximum time


def kind_of(search: Any) -> str:
    """The kind of a search from the option `search`; `ParameterError` if it is none of `CHOICES`."""
    kind = SYNONYMS.get(search, search) if isinstance(search, str) else search
    return str(one_of("search", kind, CHOICES))


class Problem(Protocol):
    """What a model supplies. `params` are parameters of several runs: arrays, or tuples of arrays, by run."""

    work: float = 0.0  # multiply-adds so far

    def starts(self, count: int) -> Any:
        """Parameters of about `count` independent starts."""

    def advance(self, params: Any, to_beat: float, hope: float) -> tuple[Any, np.ndarray, np.ndarray]:
        """Parameters after some steps, objectives, and their last two decreases (2, runs), the last 0 at convergence.

        A run may end if it is behind `to_beat` by more than `hope` times its last decrease.
        """

    def defects(self, params: Any) -> np.ndarray:
        """Why runs cannot be the result: 0 if they can, more for example for each degenerate component."""
        return np.zeros(len(params), np.int64)

    def scale(self, objective: float) -> float:
        """The size of objectives, by which their differences are divided."""
        return abs(objective)

    def moves(self, pool: Pool, effort: Effort, patience: int, failures: int) -> tuple[Pool, int]:
        """The best solution after rounds of moves, and the number of rounds since the last gain.

        They end after `patience` rounds without a gain; there were `failures` before.
        """
        return pool, patience

    def jump(self, pool: Pool) -> Any:
        """Parameters of runs far from the best solutions; None if there are none."""

    def order(self, objective: np.ndarray, defects: np.ndarray) -> np.ndarray:
        """Indices of runs, the best first; of those that are equal up to rounding, the first one precedes."""
        rank, best = np.zeros(len(objective)), -1
        for i in np.lexsort([objective, defects]):
            is_new = best < 0 or defects[i] != defects[best]
            if is_new or objective[i] - objective[best] > ROUNDING * self.scale(objective[best]):
                best = i
            rank[i] = objective[best]
        return np.lexsort([rank, defects])


class Pool(NamedTuple):
    """Solutions; in a search, different ones with the best first."""

    params: Any
    objective: np.ndarray  # (runs,)
    defects: np.ndarray  # (runs,) 0 if a run can be the result
    hits: np.ndarray  # (runs,) independent starts that ended in this optimum


Watch = Callable[[Pool, float], bool]
State = tuple[Pool, int, float]  # solutions, jumps since the last gain, allowed work
Save = Callable[[Pool, int, float], None]


def search(
    problem: Problem, effort: Effort, watch: Watch, save: Save | None = None, saved: State | None = None
) -> Pool:
    """The best solutions; `watch` is called with the best so far and the share of the work, and can end the search.

    Before each jump `save` gets a state, from which the search can resume as `saved`.
    """
    runs = Search(problem, effort, watch, save)
    if saved is None:
        return runs.explored(runs.started())
    pool, failures, runs.allowed = saved
    return runs.explored(pool, failures)


class Search:
    """A search: independent starts until several agree on the best optimum [1]_, otherwise moves and jumps [2]_.

    Whether it ends depends on counted work, and on time only if the effort limits it.

    .. [1] Boender & Rinnooy Kan (1987), Bayesian stopping rules for multistart global optimization methods, Math.
       Programming 37.
    .. [2] Lourenço, Martin & Stützle (2003), Iterated local search, Handbook of Metaheuristics.
    """

    def __init__(
        self, problem: Problem, effort: Effort, watch: Watch = lambda pool, share: False, save: Save | None = None
    ) -> None:
        self.problem, self.effort, self.watch, self.save = problem, effort, watch, save
        self.allowed, self.stopped = np.inf if effort.runs else effort.work, False
        self.best: Pool | None = None

    def started(self) -> Pool:
        """The solutions of independent starts, after moves of the best one if they do not agree."""
        effort, problem, n_starts = self.effort, self.problem, 0
        pool: Pool | None = None
        while pool is None or self._needs_starts(pool, n_starts):
            count = min(effort.batch, effort.starts - n_starts)
            pool = self.with_runs(pool, problem.starts(count), 1)
            n_starts += count
            self.allowed = max(effort.runs * problem.work / n_starts, effort.work)
        return pool if self._agree(pool) else self._improved(pool, effort.patience)

    def explored(self, pool: Pool, failures: int | None = None) -> Pool:
        """The solutions after jumps and, between them, further starts, until starts agree or nothing helps.

        `failures` is the number of jumps without a gain before.
        """
        effort, problem = self.effort, self.problem
        failures = max(effort.restart - 1, 0) if failures is None else failures
        while not self._is_over(pool) and (failures < effort.jumps or pool.defects[0]):
            before, is_due = pool, (failures + 1) % (effort.restart or 1) == 0
            if is_due and self._agree(pool):
                break
            if self.save is not None:
                self.save(pool, failures, self.allowed)
            if is_due and effort.restart:
                pool = self.with_runs(pool, problem.starts(effort.batch), 1)
            else:
                params = problem.jump(pool)
                if params is None:
                    break
                runs = self.distinct(self.converged(params, None if effort.patience else pool, 0))
                pool = self._add(pool, self._improved(runs, min(1, effort.patience)))
            failures = 0 if self._is_better(pool, before, effort.same) else failures + 1
        return pool

    def with_runs(self, pool: Pool | None, params: Any, hits: int) -> Pool:
        """The best solutions after runs from these parameters; each of them counts as `hits` independent starts."""
        return self._add(pool, self.distinct(self.converged(params, pool, hits)))

    def _needs_starts(self, pool: Pool, n_starts: int) -> bool:
        """Whether further starts may agree on the best optimum; if few did so far, moves find better ones sooner."""
        disagree = n_starts >= 2 * self.effort.batch and pool.hits[0] < MIN_SHARE * n_starts
        return not (n_starts >= self.effort.starts or disagree or self._agree(pool) or self._is_over(pool))

    def _agree(self, pool: Pool) -> bool:
        return bool(pool.hits[0] >= self.effort.agree and pool.defects[0] == 0)

    def _is_over(self, pool: Pool) -> bool:
        return self.stopped or self.problem.work >= self.allowed or bool(pool.objective[0] == 0)

    def _improved(self, pool: Pool, patience: int) -> Pool:
        """The solutions after moves of the best one, until `patience` rounds gain nothing."""
        failures = 0
        while failures < patience and not self._is_over(pool):
            moved, failures = self.problem.moves(pool, self.effort, patience, failures)
            pool = self._add(pool, moved)
        return pool

    def converged(self, params: Any, pool: Pool | None, hits: int) -> Pool:
        """The runs once each has converged or is unlikely to become the best."""
        problem, hope = self.problem, self.effort.hope
        leader = (np.inf, np.inf) if pool is None else (pool.defects[0], pool.objective[0])
        params, objective, gains = problem.advance(params, np.inf if leader[0] else leader[1], hope)
        defects, count = problem.defects(params), len(objective)
        while not self.stopped:
            first = np.lexsort([objective, defects])[0]
            least, to_beat = min(leader, (defects[first], objective[first]))
            active = np.flatnonzero((gains[1] > 0) & (objective - hope * gains[1] < to_beat) & (defects <= least))
            if len(active) == 0:
                break
            moved, objective[active], gains[:, active] = problem.advance(select(params, active), to_beat, hope)
            index = np.arange(count)
            index[active] = count + np.arange(len(active))
            params, defects[active] = select(join([params, moved]), index), problem.defects(moved)
        return Pool(params, objective, defects, np.full(count, hits))

    def _add(self, pool: Pool | None, other: Pool) -> Pool:
        if pool is not None:
            other = self.distinct(join([pool, other]))
        if self.best is None or self._is_better(other, self.best, 0.0):
            self.best = other
        self.stopped |= self.watch(self.best, min(1.0, self.problem.work / self.allowed))
        return other

    def _is_better(self, pool: Pool, before: Pool, by: float) -> bool:
        """Whether the best solution is better than before, by so much relative to its scale."""
        if pool.defects[0] != before.defects[0]:
            return bool(pool.defects[0] < before.defects[0])
        return bool(before.objective[0] - pool.objective[0] > by * self.problem.scale(pool.objective[0]))

    def distinct(self, pool: Pool) -> Pool:
        """The best solutions that are different optima: those with almost the same objective are the same optimum."""
        distinct: list[int] = []
        hits = pool.hits.copy()
        for i in self.problem.order(pool.objective, pool.defects):
            same = next((j for j in distinct if self._is_same(pool.objective[i], pool.objective[j])), None)
            if same is not None:
                hits[same] += hits[i]
            elif len(distinct) < self.effort.solutions:
                distinct.append(int(i))
        best: Pool = select(pool._replace(hits=hits), distinct)
        return best

    def _is_same(self, objective: float, best: float) -> bool:
        return abs(objective - best) <= self.effort.same * self.problem.scale(best)
