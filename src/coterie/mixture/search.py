"""Search for the start of a mixture: many short EM runs, of which the best are continued and rearranged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coterie.core.nested_arrays import join, select
from coterie.core.search import Pool, Problem, Search
from coterie.mixture.rearrange import cross, exchange, redivide, relocate, split_and_merge
from coterie.mixture.trials import Trials

ROUND = 20  # steps between two comparisons of the runs
STEPS_OF_START = 12  # steps of a search for each of the random starts of a batch
MAX_POLISH = 500  # maximum number of further steps of the result
NOISE = 1e-3  # share of random numbers in the responsibilities from which the best runs are finished
PRECISION = 1e-3  # tolerance of finished runs, relative to that of others
# below one of these numbers, new starts also move single rows
FEW_ROWS_PER_COMPONENT, FEW_ROWS_PER_COLUMN = 20, 8  # the second one: of a component, for each column


def search(trials: Trials, kind: str) -> Any:
    """The best start, as the only run of a batch [1]_.

    The first runs start from K-means and, in a thorough search, from a model-based tree. Unless they agree, there are
    batches of random starts: after a few steps, the best of them continue. Between them, a thorough search makes new
    starts from the best runs, as long as that helps. Finally, it checks that the best few are local optima.

    .. [1] Biernacki, Celeux & Govaert (2003), Choosing starting values for the EM algorithm for getting the highest
       likelihood in multivariate Gaussian mixture models, Comput. Stat. Data Anal. 41.
    """
    runs = MixtureSearch(trials, kind)
    return runs.polished(runs.finished(runs.explored(runs.started())))


class MixtureProblem(Problem):
    """EM runs on a sample of the rows; work is counted in steps of one run, and bounded by the shape of the sample."""

    def __init__(self, trials: Trials, kind: str):
        effort = trials.auto if kind == "auto" else trials.thorough
        steps = int(np.clip(effort.work / trials.step_work, *effort.steps))
        self.trials, self.kind, self.weight = trials, kind, float(trials.w.sum())
        self.is_thorough = kind != "auto"
        self.steps, self.limit = steps, steps - steps // 10 if self.is_thorough else steps  # the rest is for the finish
        # New starts are made from runs that have converged precisely.
        self.tol = trials.model.tol * (min(1 / 200, 1 / trials.n + 1 / 1000) if self.is_thorough else 0.1) * self.weight
        self.precision = 1.0
        batch = max(3, min(effort.batch, self.limit // STEPS_OF_START))
        same = 10 * self.tol / self.weight
        self.effort = replace(effort, batch=batch, starts=batch, same=same, work=self.limit)
        self.origin, self.n_tried = np.inf, 0  # objective of the run from which new starts were made, and moves of it

    def scale(self, objective: float) -> float:
        """The total weight: the unit of the rows is a constant in all objectives."""
        return self.weight

    def starts(self, count: int) -> Any:
        if self.work == 0:
            return self.trials.first(self.trials.first_starts(self.kind))
        random = self.trials.random_starts if self.is_thorough else self.trials.short_starts
        return self.short_runs(random(count), self.effort.continued)

    def short_runs(self, resp: np.ndarray, count: int) -> Any:
        """The `count` best of short runs from these responsibilities (runs, n, k), best first."""
        params, objective = self._advanced(self.trials.first(resp), self.effort.short, -np.inf)[:2]
        return select(params, self.order(objective, self.defects(params))[:count])

    def advance(self, params: Any, to_beat: float, hope: float) -> tuple[Any, np.ndarray, np.ndarray]:
        tol = self.precision * self.tol
        steps = max(2, min(ROUND, int(self.limit - self.work) // len(params.weights)))
        params, objective, gains = self._advanced(params, steps, tol)
        gains[1, self._has_converged(gains, tol) | (self.work >= self.limit)] = 0.0
        return params, objective, gains

    def _advanced(self, params: Any, steps: int, tol: float) -> tuple[Any, np.ndarray, np.ndarray]:
        params, objective, gains, n_steps = self.trials.advance(params, steps, tol, self.is_thorough)
        self.work += n_steps
        return params, objective, gains

    def _has_converged(self, gains: np.ndarray, tol: float) -> np.ndarray:
        """Whether the last gain of each run is small, or its remaining gain by Aitken's estimate from the last two."""
        if not self.is_thorough:
            return np.asarray(gains[-1] < tol)
        before, last = np.maximum(gains, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):  # a gain after none
            rate = np.minimum(last / before, 1 - 1e-6)
        return (last * np.maximum(1.0, rate / (1 - rate)) < tol) | (last < 1e-6 * self.tol)

    def defects(self, params: Any) -> np.ndarray:
        return self.trials.degeneracy(params)

    def jump(self, pool: Pool) -> Any:
        """Of each kind of new starts, the best quarter after short runs: the kinds do not compete with each other."""
        return join([self.short_runs(starts, max(1, len(starts) // 4)) for starts in self._new_starts(pool)])

    def _new_starts(self, pool: Pool) -> list[np.ndarray]:
        """Starts made from the best runs, by kind; splits of a component that were tried before are left out."""
        trials, effort = self.trials, self.effort
        if pool.objective[0] != self.origin:
            self.origin, self.n_tried = pool.objective[0], 0
        count = max(4, min(effort.batch // 2, int(self.limit - self.work) // (4 * effort.short)))
        splits = split_and_merge(trials, select(pool.params, [0]), int(np.ceil(effort.splits * count)), self.n_tried)
        self.n_tried += len(splits)
        count_of_others = max(1, min(count // 3, (count - len(splits)) // 2))
        starts = [
            splits,
            relocate(trials, pool.params, count_of_others),
            redivide(trials, pool.params, count_of_others),
        ]
        if len(pool.objective) > 1:
            starts.append(cross(trials, pool.params, count_of_others))
        is_proper = pool.defects == 0
        few_rows = trials.k * max(FEW_ROWS_PER_COMPONENT, FEW_ROWS_PER_COLUMN * trials.d)
        if trials.n < few_rows and is_proper[0]:
            starts.append(exchange(trials, select(pool.params, is_proper), 2 * count_of_others))
        return [each for each in starts if len(each)]


class MixtureSearch(Search):
    """EM runs that are compared with each other, and the finish of the best ones."""

    problem: MixtureProblem

    def __init__(self, trials: Trials, kind: str):
        problem = MixtureProblem(trials, kind)
        super().__init__(problem, problem.effort)

    def finished(self, pool: Pool) -> Pool:
        """The local optima next to the best runs, the most likely first; in a short search, the best runs.

        EM can converge to a saddle point, so every run also restarts from its responsibilities with a little noise. A
        run whose restart ends in a better optimum, or in a degenerate component, is left out, unless all runs would be
        degenerate then. Otherwise the fit after it could leave a saddle point, or a run that is almost degenerate, for
        a degenerate component. A restart that ends in a worse optimum has left a narrow one, which is kept.
        """
        problem, trials = self.problem, self.problem.trials
        if not problem.is_thorough:
            return self.by_likelihood(pool)
        problem.limit, problem.precision = problem.steps, PRECISION
        resp, _ = trials.responsibilities(pool.params)
        noise = trials.rng.random(resp.shape)
        resp += NOISE * (noise / noise.sum(axis=-1, keepdims=True) - resp)
        restarts = self.converged(trials.first(resp), None, 0)
        is_stable = (restarts.defects == 0) & (restarts.objective > pool.objective - problem.tol)
        stable = join([restarts, select(pool, is_stable)])
        if stable.defects.min() > pool.defects[0]:
            stable = self.converged(join([restarts, pool]).params, None, 0)
        return self.by_likelihood(stable)

    def by_likelihood(self, runs: Pool) -> Pool:
        """The best runs that are different optima, the most likely first."""
        best = self.distinct(runs)
        costs = self.problem.trials.costs(best.params, best.objective)
        return select(best, self.problem.order(costs, best.defects))

    def polished(self, pool: Pool) -> Any:
        """The best run, continued until the estimated remaining gain is small: its last steps are cheap here."""
        trials, best = self.problem.trials, select(pool.params, [0])
        steps, tol = min(MAX_POLISH, int(self.problem.effort.polish / trials.step_work)), trials.model.tol / 200
        return best if steps < 2 else trials.advance(best, steps, tol * self.problem.weight, True)[0]
