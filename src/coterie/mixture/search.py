"""Search for the start of a mixture: many short EM runs, of which the best are continued and rearranged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.mixture.rearrange import cross, relocate, split_and_merge
from coterie.mixture.trials import Trials, concatenate, replace_runs, select

SHORT = 10  # steps of a short run
ROUND = 10  # steps between two comparisons of the runs
HOPE = 50  # a run stops if it is behind the best by more than this many times its last gain
STEPS = 10_000  # steps of all runs
NOISE = 1e-3  # share of random numbers in the responsibilities from which the best runs are finished
FEW_ROWS = 2e9  # multiply-adds of `STEPS` below which a table has few rows
CALL = 1e5  # multiply-adds that one step of a batch costs at least, however few its runs


def search(trials: Trials) -> Any:
    """The best start, as the only run of a batch [1]_.

    Short runs start from k-means++, random rows and random responsibilities. The best of them (all for few rows), and
    starts that are not random, continue until they have converged or cannot become the best. New starts are made from
    the best few as long as that helps. These are then checked to be local optima, and the best of them is the result.
    Runs with degenerate components come after all others. Work is bounded by the shape of the data; if it allows for
    only a few runs, the result is a single default start.

    .. [1] Biernacki, Celeux & Govaert (2003), Choosing starting values for the EM algorithm for getting the highest
       likelihood in multivariate Gaussian mixture models, Comput. Stat. Data Anal. 41.
    """
    runs = Search(trials)
    if trials.k == 1 or runs.n_starts < 3:
        return trials.first(trials.default_start())
    best = runs.short_runs(trials.random_starts(runs.n_starts), runs.n_continued(runs.n_starts))
    best = concatenate([best, *(trials.first(resp) for resp in trials.further_starts())])
    return select(runs.finish(runs.improve(runs.converge(best))).params, [0])


class Candidates(NamedTuple):
    """The best runs that are different from each other, best first."""

    params: Any
    degeneracy: np.ndarray  # (runs,) 0 if no component is degenerate
    objective: np.ndarray  # (runs,)
    gains: np.ndarray  # (2, runs) decreases of the objectives in the last two steps

    def select(self, runs: Any) -> Candidates:
        return Candidates(select(self.params, runs), self.degeneracy[runs], self.objective[runs], self.gains[:, runs])


class Search:
    """EM runs that are compared with each other, within a limit of work."""

    def __init__(self, trials: Trials):
        self.trials, self.effort = trials, trials.effort
        step = trials.step_work
        steps_for_few_rows = self.effort.steps_for_few_rows
        self.has_few_rows = steps_for_few_rows > 0 and STEPS * step < FEW_ROWS
        limits = (steps_for_few_rows, FEW_ROWS) if self.has_few_rows else (STEPS, self.effort.work)
        self.steps_left = int(min(limits[0], limits[1] / step))
        self.n_starts = min(self.effort.runs, self.steps_left // ((10 if self.has_few_rows else 4) * SHORT))
        self.minimum_runs = max(1, int(CALL / step))
        self.reserve = self.steps_left // 10  # for `finish`
        self.steps_left -= self.reserve
        # proportional to the weights, so that their scale has no effect, and not above the tolerance of a fit
        self.tol = trials.model.tol * trials.w.sum() * min(1 / 200, 1 / trials.n + 1 / 1000)

    def n_continued(self, runs: int) -> int:
        """Number of independent short runs that are continued: all for few rows, else a quarter."""
        return runs if self.has_few_rows else max(1, runs // 4)

    def short_runs(self, resp: np.ndarray, count: int) -> Any:
        """The `count` best of short runs from these responsibilities (runs, n, k), best first."""
        params, objective, _ = self._advance(self.trials.first(resp), SHORT)
        return select(params, np.lexsort([objective, self.trials.degeneracy(params)])[:count])

    def converge(self, params: Any, candidates: Candidates | None = None) -> Candidates:
        """The best of the runs and of earlier candidates, once each has converged or cannot become the best.

        Candidates continue as well, unless they are stationary: a component may collapse slowly.
        """
        runs = len(params.weights)
        objective, gains, degeneracy = np.full(runs, np.inf), np.full((2, runs), np.inf), np.zeros(runs, int)
        if candidates is not None:
            params = concatenate([params, candidates.params])
            objective = np.append(objective, candidates.objective)
            gains = np.append(gains, candidates.gains, axis=1)
            degeneracy = np.append(degeneracy, candidates.degeneracy)
        active = np.flatnonzero(~self._is_stationary(gains))
        while True:
            moved, objective[active], gains[:, active] = self._advance(select(params, active), ROUND)
            params, degeneracy[active] = replace_runs(params, active, moved), self.trials.degeneracy(moved)
            order = np.lexsort([objective, degeneracy])
            best = order[0]  # if it collapses later, runs that were behind it continue
            could_win = (objective - HOPE * gains[-1] < objective[best]) & (degeneracy <= degeneracy[best])
            active = np.flatnonzero(could_win & ~self._has_converged(gains))
            if len(active) == 0 or self.steps_left <= 0:
                return Candidates(params, degeneracy, objective, gains).select(self._distinct(objective, order))

    def _has_converged(self, gains: np.ndarray) -> np.ndarray:
        """Whether the remaining gain of each run, by Aitken's estimate from its last two gains, is small."""
        before, last = np.maximum(gains, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):  # a gain after none
            rate = np.minimum(last / before, 1 - 1e-6)
        return (last * np.maximum(1.0, rate / (1 - rate)) < self.tol) | self._is_stationary(gains)

    def _is_stationary(self, gains: np.ndarray) -> np.ndarray:
        """Whether the last step of each run gained next to nothing."""
        return gains[-1] < 1e-6 * self.tol

    def _distinct(self, objective: np.ndarray, order: np.ndarray) -> list[int]:
        """The best runs that are different optima: those with almost the same objective are the same optimum."""
        runs: list[int] = []
        for i in order:
            if len(runs) < self.effort.candidates and all(abs(objective[i] - objective[runs]) > 10 * self.tol):
                runs.append(int(i))
        return runs

    def improve(self, candidates: Candidates) -> Candidates:
        """The best runs after rounds of new starts made from them, until these no longer help."""
        idle = skip = 0
        patience = self.effort.patience * (2 if self.has_few_rows else 1)
        while self.steps_left > 0 and idle < patience:
            count = max(4, min(self.n_starts // 2, self.steps_left // (4 * SHORT)))
            best = select(candidates.params, [0])
            splits = split_and_merge(self.trials, best, int(np.ceil(self.effort.splits * count)), skip)
            count_of_others = max(1, min(count // 3, (count - len(splits)) // 2))
            moves = [splits, relocate(self.trials, candidates.params, count_of_others)]
            if len(candidates.objective) > 1:
                moves.append(cross(self.trials, candidates.params, count_of_others))
            starts = np.concatenate(moves)
            best_before = candidates.degeneracy[0], candidates.objective[0]
            candidates = self.converge(self.short_runs(starts, max(1, len(starts) // 4)), candidates)
            helped = (candidates.degeneracy[0], candidates.objective[0] + self.tol) < best_before
            idle, skip = (0, 0) if helped else (idle + 1, skip + len(splits))
        return candidates

    def finish(self, candidates: Candidates) -> Candidates:
        """The local optima next to the candidates, best first.

        EM can converge to a saddle point, so every run also restarts from its responsibilities with a little noise.
        """
        self.steps_left, self.reserve = self.steps_left + self.reserve, 0
        resp, _ = self.trials.responsibilities(candidates.params)
        noise = self.trials.rng.random(resp.shape)
        resp += NOISE * (noise / noise.sum(axis=-1, keepdims=True) - resp)
        candidates = self.converge(self.trials.first(resp), candidates)
        costs = self.trials.costs(candidates.params, candidates.objective)
        return candidates.select(np.lexsort([costs, candidates.degeneracy]))

    def _advance(self, params: Any, steps: int) -> tuple[Any, np.ndarray, np.ndarray]:
        self.steps_left -= steps * max(self.minimum_runs, len(params.weights))
        return self.trials.advance(params, steps)
