"""Search for the start of a mixture: many short EM runs, of which the best are continued and rearranged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.mixture.rearrange import cross, exchange, redivide, relocate, split_and_merge
from coterie.mixture.trials import Trials, concatenate, replace_runs, select

ROUND = 20  # steps between two comparisons of the runs
GAINS_BEHIND = 50  # a run stops if it is behind the best by more than this many times its last gain
STEPS_OF_START = 12  # steps of a search for each of the random starts of a round
MAX_ROUNDS = 20  # maximum number of rounds of random starts
MAX_POLISH = 500  # maximum number of further steps of the result
NOISE = 1e-3  # share of random numbers in the responsibilities from which the best runs are finished
# below one of these numbers, new starts also move single rows
FEW_ROWS_PER_COMPONENT, FEW_ROWS_PER_COLUMN = 20, 8  # the second one: of a component, for each column


def search(trials: Trials, kind: str) -> Any:
    """The best start, as the only run of a batch [1]_.

    The first runs start from K-means and, in a thorough search, from a model-based tree. Then there are rounds of
    random starts: after a few steps, the best of them continue. A thorough search also makes new starts from the best
    runs, as long as that helps. Rounds end when several independent starts have ended in the best optimum [2]_.
    Finally, a thorough search checks that the best few are local optima.

    Runs continue until they have converged or cannot become the best. Those with degenerate components come after all
    others. Work is bounded by the shape of the data.

    .. [1] Biernacki, Celeux & Govaert (2003), Choosing starting values for the EM algorithm for getting the highest
       likelihood in multivariate Gaussian mixture models, Comput. Stat. Data Anal. 41.
    .. [2] Boender & Rinnooy Kan (1987), Bayesian stopping rules for multistart global optimization methods, Math.
       Programming 37.
    """
    if trials.k == 1:
        return trials.first(trials.default_start())
    runs = Search(trials, kind)
    candidates = runs.finish(runs.explore(runs.continued(trials.first_starts(kind), count=1)))
    return runs.polished(candidates).params


class Candidates(NamedTuple):
    """The best runs that are different from each other, best first."""

    params: Any
    degeneracy: np.ndarray  # (runs,) 0 if no component is degenerate
    objective: np.ndarray  # (runs,)
    gains: np.ndarray  # (2, runs) decreases of the objectives in the last two steps
    n_starts: np.ndarray  # (runs,) number of independent starts that ended in this optimum

    def select(self, runs: Any) -> Candidates:
        rest = (values[..., runs] for values in self[1:])
        return Candidates(select(self.params, runs), *rest)

    def copy(self) -> Candidates:
        return self.select(np.arange(len(self.objective)))

    def append(self, other: Candidates) -> Candidates:
        rest = (np.append(a, b, axis=-1) for a, b in zip(self[1:], other[1:], strict=True))
        return Candidates(concatenate([self.params, other.params]), *rest)


class Search:
    """EM runs that are compared with each other, within a limit of work."""

    def __init__(self, trials: Trials, kind: str):
        self.trials, self.effort = trials, trials.auto if kind == "auto" else trials.thorough
        self.steps_left = int(np.clip(self.effort.work / trials.step_work, *self.effort.steps))
        self.n_starts = max(3, min(self.effort.batch, self.steps_left // STEPS_OF_START))
        self.reserve = self.steps_left // 10  # for `finish`
        self.steps_left -= self.reserve
        # proportional to the weights, so that their scale has no effect
        self.fit_tol = trials.model.tol * trials.w.sum()
        self.tol = self.fit_tol * (min(1 / 200, 1 / trials.n + 1 / 1000) if self.is_thorough else 0.1)
        self.resolution = max(self.tol, 1e-9 * trials.w.sum())  # of a comparison, above rounding

    @property
    def is_thorough(self) -> bool:
        """Whether new starts are made from the best runs, which then must have converged precisely."""
        return self.effort.patience > 0

    def continued(self, resp: np.ndarray, candidates: Candidates | None = None, *, count: int = 0) -> Candidates:
        """`converge` from these responsibilities (runs, n, k)."""
        return self.converge(self.trials.first(resp), candidates, count=count)

    def short_runs(self, resp: np.ndarray, count: int) -> Any:
        """The `count` best of short runs from these responsibilities (runs, n, k), best first."""
        params, objective, _ = self._advance(self.trials.first(resp), self.effort.short)
        return select(params, self._order(objective, self.trials.degeneracy(params))[:count])

    def with_random_starts(self, candidates: Candidates) -> Candidates:
        """The best runs after a round of random starts, and after new starts made from the best of them."""
        starts = self.trials.random_starts if self.is_thorough else self.trials.short_starts
        runs = self.short_runs(starts(self.n_starts), self.effort.continued)
        return self.improve(self.converge(runs, candidates, count=1))

    def explore(self, candidates: Candidates) -> Candidates:
        """The best runs after rounds of random starts, until several of all starts have ended in the best optimum.

        If only a few starts end in it, others may end in a better one. Some rounds without a gain end a search as well:
        on some tables no random start ends in the best optimum, which is found from other runs.
        """
        without_gain = 0
        for _ in range(MAX_ROUNDS):
            is_proper = candidates.degeneracy[0] == 0
            is_settled = candidates.n_starts[0] >= self.effort.agree or without_gain >= self.effort.rounds
            if (is_proper and is_settled) or self.steps_left <= 0:
                break
            before, candidates = candidates, self.with_random_starts(candidates)
            without_gain = 0 if self._is_better(candidates, before) else without_gain + 1
        return candidates

    def converge(self, params: Any, candidates: Candidates | None = None, *, count: int = 0) -> Candidates:
        """The best of the runs and of earlier candidates, once each has converged or cannot become the best.

        Candidates continue as well, unless they are stationary: a component may collapse slowly. Each of the runs
        counts as `count` independent starts.
        """
        runs = self._new(params, count)
        return self._distinct(self._converged(runs if candidates is None else runs.append(candidates)))

    def _new(self, params: Any, count: int = 0) -> Candidates:
        """Runs that have not begun."""
        size = len(params.weights)
        objective, gains = np.full(size, np.inf), np.full((2, size), np.inf)
        return Candidates(params, np.zeros(size, int), objective, gains, np.full(size, count))

    def _converged(self, runs: Candidates, precision: float = 1.0) -> Candidates:
        """The same runs once each has converged or cannot become the best; the tolerance is times `precision`."""
        params, degeneracy, objective, gains, n_starts = runs.copy()
        active, tol = np.flatnonzero(~self._is_stationary(gains)), precision * self.tol
        while len(active) > 0:
            steps = max(2, min(ROUND, self.steps_left // len(active)))
            moved, objective[active], gains[:, active] = self._advance(select(params, active), steps, tol)
            params, degeneracy[active] = replace_runs(params, active, moved), self.trials.degeneracy(moved)
            best = self._order(objective, degeneracy)[0]  # if it collapses later, runs that were behind it continue
            could_win = (objective - GAINS_BEHIND * gains[-1] < objective[best]) & (degeneracy <= degeneracy[best])
            active = np.flatnonzero(could_win & ~self._has_converged(gains, tol))
            if self.steps_left <= 0:
                break
        return Candidates(params, degeneracy, objective, gains, n_starts)

    def _has_converged(self, gains: np.ndarray, tol: float) -> np.ndarray:
        """Whether the last gain of each run is small, or its remaining gain by Aitken's estimate from the last two."""
        if not self.is_thorough:
            return np.asarray(gains[-1] < tol)
        before, last = np.maximum(gains, np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):  # a gain after none
            rate = np.minimum(last / before, 1 - 1e-6)
        return (last * np.maximum(1.0, rate / (1 - rate)) < tol) | self._is_stationary(gains)

    def _is_stationary(self, gains: np.ndarray) -> np.ndarray:
        """Whether the last step of each run gained next to nothing."""
        return gains[-1] < 1e-6 * self.tol

    def _distinct(self, runs: Candidates) -> Candidates:
        """The best runs that are different optima: those with almost the same objective are the same optimum."""
        best: list[int] = []
        n_starts = runs.n_starts.copy()
        for i in self._order(runs.objective, runs.degeneracy):
            same = [j for j in best if abs(runs.objective[i] - runs.objective[j]) <= 10 * self.tol]
            if same:
                n_starts[same[0]] += n_starts[i]
            elif len(best) < self.effort.candidates:
                best.append(int(i))
        return runs._replace(n_starts=n_starts).select(best)

    def _order(self, values: np.ndarray, degeneracy: np.ndarray) -> np.ndarray:
        """Indices of runs, best first. Values within the tolerance of a lower one equal it, and the first run precedes.

        Otherwise rounding, which differs between processors, would choose among runs that are equally good. Only
        differences count, since the unit of the rows is a constant in all values.
        """
        rank = np.zeros(len(values))
        best = None
        for i in np.lexsort([values, degeneracy]):
            if best is None or degeneracy[i] != degeneracy[best] or values[i] > values[best] + self.resolution:
                best = i
            rank[i] = values[best]
        return np.lexsort([rank, degeneracy])

    def improve(self, candidates: Candidates) -> Candidates:
        """The best runs after rounds of new starts made from them, until a few rounds have not helped."""
        without_gain = skip = 0
        while self.steps_left > 0 and without_gain < self.effort.patience:
            starts, n_splits = self._new_starts(candidates, skip)
            best = self._best_quarters(starts)
            before, candidates = candidates, self.converge(best, candidates)
            is_better = self._is_better(candidates, before)
            without_gain, skip = (0, 0) if is_better else (without_gain + 1, skip + n_splits)
        return candidates

    def _best_quarters(self, starts: list[np.ndarray]) -> Any:
        """Of each kind of starts, the best quarter after short runs: the kinds do not compete with each other."""
        params, objective, _ = self._advance(self.trials.first(np.concatenate(starts)), self.effort.short)
        order = self._order(objective, self.trials.degeneracy(params))
        kind = np.repeat(np.arange(len(starts)), [len(each) for each in starts])
        best = [order[kind[order] == i][: max(1, len(each) // 4)] for i, each in enumerate(starts)]
        return select(params, np.concatenate(best))

    def _new_starts(self, candidates: Candidates, skip: int) -> tuple[list[np.ndarray], int]:
        """Starts made from the candidates, by kind, and how many split a component; the first `skip` are left out."""
        trials, params = self.trials, candidates.params
        count = max(4, min(self.n_starts // 2, self.steps_left // (4 * self.effort.short)))
        splits = split_and_merge(trials, select(params, [0]), int(np.ceil(self.effort.splits * count)), skip)
        count_of_others = max(1, min(count // 3, (count - len(splits)) // 2))
        starts = [splits, relocate(trials, params, count_of_others), redivide(trials, params, count_of_others)]
        if len(candidates.objective) > 1:
            starts.append(cross(trials, params, count_of_others))
        is_proper = candidates.degeneracy == 0
        few_rows = trials.k * max(FEW_ROWS_PER_COMPONENT, FEW_ROWS_PER_COLUMN * trials.d)
        if trials.n < few_rows and is_proper[0]:
            starts.append(exchange(trials, select(params, is_proper), 2 * count_of_others))
        return starts, len(splits)

    def _is_better(self, candidates: Candidates, before: Candidates) -> bool:
        """Whether the best of the candidates is better than the best of those before."""
        rank = candidates.degeneracy[0], candidates.objective[0] + self.tol
        return bool(rank < (before.degeneracy[0], before.objective[0]))

    def finish(self, candidates: Candidates) -> Candidates:
        """The local optima next to the candidates, the most likely first; in a short search, the candidates.

        EM can converge to a saddle point, so every run also restarts from its responsibilities with a little noise. A
        candidate whose restart ends in a better optimum, or in a degenerate component, is left out, unless all runs
        would be degenerate then. Otherwise the fit after it could leave a saddle point, or a run that is almost
        degenerate, for a degenerate component. A restart that ends in a worse optimum has left a narrow one, which is
        kept.
        """
        if not self.is_thorough:
            return self.best_by_likelihood(candidates)
        self.steps_left, self.reserve = self.steps_left + self.reserve, 0
        resp, _ = self.trials.responsibilities(candidates.params)
        noise = self.trials.rng.random(resp.shape)
        resp += NOISE * (noise / noise.sum(axis=-1, keepdims=True) - resp)
        restarts = self._converged(self._new(self.trials.first(resp)), precision=1e-3)
        is_stable = (restarts.degeneracy == 0) & (restarts.objective > candidates.objective - self.tol)
        stable = restarts.append(candidates.select(is_stable))
        if stable.degeneracy.min() <= candidates.degeneracy[0]:
            return self.best_by_likelihood(stable)
        return self.best_by_likelihood(self._converged(restarts.append(candidates)))

    def polished(self, candidates: Candidates) -> Candidates:
        """The best run, continued until the estimated remaining gain is small: its last steps are cheap here."""
        best, steps = candidates.select([0]), min(MAX_POLISH, int(self.effort.polish / self.trials.step_work))
        if steps < 2:
            return best
        return best._replace(params=self.trials.advance(best.params, steps, self.fit_tol / 200, True)[0])

    def best_by_likelihood(self, runs: Candidates) -> Candidates:
        """The best runs that are different optima, the most likely first."""
        best = self._distinct(runs)
        return best.select(self._order(self.trials.costs(best.params, best.objective), best.degeneracy))

    def _advance(self, params: Any, steps: int, tol: float = -np.inf) -> tuple[Any, np.ndarray, np.ndarray]:
        params, objective, gains, n_steps = self.trials.advance(params, steps, tol, self.is_thorough)
        self.steps_left -= n_steps
        return params, objective, gains
