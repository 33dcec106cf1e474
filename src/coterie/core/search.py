"""One search for all models: independent starts until they agree, then moves away from the best solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from coterie.core.arguments import one_of

CHOICES = ("none", "auto", "thorough")
SYNONYMS = {"fast": "thorough", "global": "thorough"}  # names of earlier versions
HOPE = 10.0  # a run from a start ends if it is behind the best by more than this many times its last gain
ROUNDING = 1e-9  # relative difference of objectives that is attributed to rounding
MIN_SHARE = 0.25  # of the starts that have to end in the best optimum, so that more are made
SOLUTIONS = 4  # different solutions that are remembered


@dataclass(frozen=True)
class Effort:
    """Length of a search."""

    batch: int  # independent starts that run together
    starts: int  # maximum number of independent starts
    agree: int  # starts in the best optimum that end the search
    same: float  # relative difference of the objectives of one optimum
    moves: int  # neighbours that are tried in a round of moves
    patience: int  # rounds without a gain that end the moves
    jumps: int  # jumps without a gain that end the search
    runs: float  # maximum work, in multiples of the work of one start
    work: float  # multiply-adds that are allowed in any case
    pass_work: float  # multiply-adds of a pass; a larger table is searched by a random sample of its rows
    population: int = 0  # solutions that jumps recombine; 0: they lead away from the best one
    row_passes: int = 0  # maximum number of passes that move single rows after a gain
    seconds: float = np.inf  # maximum time


EFFORTS = {
    "auto": Effort(4, 16, 6, 1e-4, 6, 3, 20, 14.0, 3e7, 2e6),
    "thorough": Effort(8, 64, 64, 1e-6, 8, 10, 60, 500.0, 1e9, 2e7),
}


def kind_of(search: Any) -> str:
    """The kind of a search from the option `search`; `ParameterError` if it is none of `CHOICES`."""
    kind = SYNONYMS.get(search, search) if isinstance(search, str) else search
    return str(one_of("search", kind, CHOICES))


class Problem(Protocol):
    """What a model supplies. `params` are parameters of several runs."""

    work: float  # multiply-adds so far

    def starts(self, count: int) -> Any:
        """Parameters of independent starts."""

    def advance(self, params: Any, to_beat: float, hope: float) -> tuple[Any, np.ndarray, np.ndarray]:
        """Parameters after some steps, objectives, and their last two decreases (2, runs), the last 0 at convergence.

        A run may end if it is behind `to_beat` by more than `hope` times its last decrease.
        """

    def defects(self, params: Any) -> np.ndarray:
        """Why runs cannot be the result: 0 if they can, more for example for each degenerate component."""

    def moves(self, pool: Pool, effort: Effort, patience: int, failures: int) -> tuple[Pool, int]:
        """The best solution after rounds of moves, and the number of rounds since the last gain.

        They end after `patience` rounds without a gain; there were `failures` before.
        """

    def jump(self, pool: Pool) -> Any:
        """Parameters of one run far from the best solution; None if there is none."""

    def select(self, params: Any, runs: Any) -> Any: ...
    def join(self, params: list[Any]) -> Any: ...


class Pool(NamedTuple):
    """Solutions; in a search, different ones with the best first."""

    params: Any
    objective: np.ndarray  # (runs,)
    gains: np.ndarray  # (2, runs) last decreases of the objective
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
    return Search(problem, effort, watch).run(save, saved)


class Search:
    """A search: independent starts until several agree on the best optimum [1]_, otherwise moves and jumps from it.

    Whether it ends depends on counted work, not on time.

    .. [1] Boender & Rinnooy Kan (1987), Bayesian stopping rules for multistart global optimization methods, Math.
       Programming 37.
    """

    def __init__(self, problem: Problem, effort: Effort, watch: Watch) -> None:
        self.problem, self.effort, self.watch = problem, effort, watch
        self.allowed, self.stopped = np.inf, False
        self.best: Pool | None = None

    def run(self, save: Save | None, saved: State | None) -> Pool:
        if saved is None:
            pool, failures = self._from_starts(), 0
        else:
            pool, failures, self.allowed = saved
        while not self._agree(pool) and failures < self.effort.jumps and not self._is_over(pool):
            if save is not None:
                save(pool, failures, self.allowed)
            params = self.problem.jump(pool)
            if params is None:
                break
            other = self._improved(self._converged(params, None, 0), 1)
            before, pool = pool, self._add(pool, other)
            failures = 0 if self._is_better(pool, before, self.effort.same) else failures + 1
        return pool

    def _from_starts(self) -> Pool:
        """The solutions of independent starts, improved by moves if they do not agree."""
        effort, problem, n_starts = self.effort, self.problem, 0
        pool: Pool | None = None
        while pool is None or self._needs_starts(pool, n_starts):
            count = min(effort.batch, effort.starts - n_starts)
            pool = self._add(pool, self._converged(problem.starts(count), pool, 1))
            n_starts += count
            self.allowed = max(effort.runs * problem.work / n_starts, effort.work)
        return pool if self._agree(pool) else self._improved(pool, effort.patience)

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

    def _converged(self, params: Any, pool: Pool | None, hits: int) -> Pool:
        """The runs once each has converged or is unlikely to become the best."""
        problem, best = self.problem, np.inf if pool is None or pool.defects[0] else pool.objective[0]
        params, objective, gains = problem.advance(params, best, HOPE)
        while not self.stopped:
            best = min(best, objective[problem.defects(params) == 0].min(initial=np.inf))
            active = np.flatnonzero((gains[1] > 0) & (objective - HOPE * gains[1] < best))
            if len(active) == 0:
                break
            rest = np.setdiff1d(np.arange(len(objective)), active)
            moved, objective[active], gains[:, active] = problem.advance(problem.select(params, active), best, HOPE)
            params = problem.select(
                problem.join([moved, problem.select(params, rest)]), np.argsort(np.concatenate([active, rest]))
            )
        runs = Pool(params, objective, gains, problem.defects(params), np.full(len(objective), hits))
        return self._distinct(runs)

    def _add(self, pool: Pool | None, other: Pool) -> Pool:
        if pool is not None:
            rest = (np.append(a, b, axis=-1) for a, b in zip(pool[1:], other[1:], strict=True))
            other = self._distinct(Pool(self.problem.join([pool.params, other.params]), *rest))
        if self.best is None or self._is_better(other, self.best, 0.0):
            self.best = other
        self.stopped |= self.watch(self.best, min(1.0, self.problem.work / self.allowed))
        return other

    def _is_better(self, pool: Pool, before: Pool, by: float) -> bool:
        """Whether the best solution is better than before, by so much relative to its objective."""
        if pool.defects[0] != before.defects[0]:
            return bool(pool.defects[0] < before.defects[0])
        return bool(before.objective[0] - pool.objective[0] > by * abs(pool.objective[0]))

    def _is_same(self, objective: float, best: float) -> bool:
        return objective - best <= self.effort.same * abs(best)

    def _distinct(self, pool: Pool) -> Pool:
        """The best solutions that are different optima: those with almost the same objective are the same optimum."""
        distinct: list[int] = []
        hits = pool.hits.copy()
        for i in self._order(pool):
            same = next((j for j in distinct if self._is_same(pool.objective[i], pool.objective[j])), None)
            if same is not None:
                hits[same] += hits[i]
            elif len(distinct) < max(SOLUTIONS, self.effort.population):
                distinct.append(int(i))
        rest = (values[..., distinct] for values in (pool.objective, pool.gains, pool.defects, hits))
        return Pool(self.problem.select(pool.params, distinct), *rest)

    def _order(self, pool: Pool) -> np.ndarray:
        """Indices of runs, the best first; of those that are equal up to rounding, the first in the pool."""
        rank, best = np.zeros(len(pool.objective)), -1
        for i in np.lexsort([pool.objective, pool.defects]):
            is_new = best < 0 or pool.defects[i] != pool.defects[best]
            if is_new or pool.objective[i] - pool.objective[best] > ROUNDING * abs(pool.objective[best]):
                best = i
            rank[i] = pool.objective[best]
        return np.lexsort([rank, pool.defects])
