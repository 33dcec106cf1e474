"""Search for the start of a mixture: many short EM runs, of which the best are continued and rearranged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coterie.mixture.rearrange import cross, exchange, redivide, relocate, split_and_merge
from coterie.mixture.trials import Trials, concatenate, replace_runs, select

SHORT = 10  # steps of a short run
ROUND = 10  # steps between two comparisons of the runs
GAINS_BEHIND = 50  # a run stops if it is behind the best by more than this many times its last gain
STEPS = 10_000  # steps of all runs
FEWEST_STARTS = 3  # random starts of a search, one by each method
SEARCHES = ("none", "auto", "thorough")
STARTS_THAT_AGREE = 2  # number of starts in the best optimum after which a short search ends
STARTS_AT_BEST = 8  # number of random starts in the best optimum after which a search on few rows ends
ROUNDS_WITHOUT_GAIN = 2  # rounds of further random starts without a gain after which it also ends
ROUNDS_IF_DEGENERATE = 4  # maximum number of rounds of further random starts if all runs have degenerate components
PROPER_RUNS = 3  # minimum number of short runs without degenerate components, for few rows
BATCHES = 10  # maximum number of batches of short runs until there are as many
NOISE = 1e-3  # share of random numbers in the responsibilities from which the best runs are finished
FEW_ROWS = 2e9  # multiply-adds of `STEPS` below which a table has few rows
WORK_FOR_FEW_ROWS = 3e9  # maximum number of multiply-adds of a search on them
# below one of these numbers, new starts also move single rows
FEW_ROWS_PER_COMPONENT, FEW_ROWS_PER_COLUMN = 20, 8  # the second one: of a component, for each column
CALL = 1e5  # multiply-adds that one step of a batch costs at least, however few its runs


def search(trials: Trials, kind: str) -> Any:
    """The best start, as the only run of a batch [1]_.

    'auto' continues a few random starts and one that is not random, and makes more of them if no two of them agree on
    the best optimum. 'thorough' continues many (all for few rows), and several that are not random. New starts are made
    from the best few as long as that helps. For few rows, there are then more random starts until several end in the
    best optimum. Random starts are from k-means++, random rows and random responsibilities; they continue until they
    have converged or cannot become the best.

    In both, the best few are checked to be local optima, and the best of them is the result. Runs with degenerate
    components come after all others. Work is bounded by the shape of the data; if it allows for only a few runs, the
    result is a single default start.

    .. [1] Biernacki, Celeux & Govaert (2003), Choosing starting values for the EM algorithm for getting the highest
       likelihood in multivariate Gaussian mixture models, Comput. Stat. Data Anal. 41.
    """
    runs = Search(trials, kind)
    if trials.k == 1 or runs.n_starts < FEWEST_STARTS:
        return trials.first(trials.default_start())
    if kind == "auto":
        candidates = runs.agreeing_starts()
    else:
        candidates = runs.explore(runs.improve(runs.first_candidates(trials.further_starts())))
    return select(runs.finish(candidates).params, [0])


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
        step = trials.step_work
        steps_for_few_rows = self.effort.steps_for_few_rows
        self.has_few_rows = steps_for_few_rows > 0 and STEPS * step < FEW_ROWS
        limits = (steps_for_few_rows, WORK_FOR_FEW_ROWS) if self.has_few_rows else (STEPS, self.effort.work)
        self.steps_left = int(min(limits[0], limits[1] / step))
        self.n_starts = min(self.effort.runs, self.steps_left // ((15 if self.has_few_rows else 4) * SHORT))
        self.minimum_runs = max(1, int(CALL / step))
        self.reserve = self.steps_left // 10  # for `finish`
        self.steps_left -= self.reserve
        # proportional to the weights, so that their scale has no effect, and not above the tolerance of a fit
        self.tol = trials.model.tol * trials.w.sum() * min(1 / 200, 1 / trials.n + 1 / 1000)
        self.resolution = max(self.tol, 1e-9 * trials.w.sum())  # of a comparison, above rounding

    def first_candidates(self, further: list[np.ndarray]) -> Candidates:
        """The best runs from random starts and from `further` responsibilities (1, n, k)."""
        random = self.random_runs(max(FEWEST_STARTS, self.n_starts))
        return self.converge(concatenate([random, *(self.trials.first(resp) for resp in further)]), count=1)

    def agreeing_starts(self) -> Candidates:
        """The best runs from a few starts; from more if the best optimum was found from one start only."""
        candidates = self.first_candidates([self.trials.default_start()])
        if candidates.n_starts[0] < STARTS_THAT_AGREE and self.steps_left > 0:
            candidates = self.converge(self.random_runs(self.n_starts), candidates, count=1)
        return self._with_proper_runs(candidates)

    def n_continued(self, runs: int) -> int:
        """Number of independent short runs that are continued: all for few rows, else a quarter."""
        return runs if self.has_few_rows else max(1, runs // 4)

    def short_runs(self, resp: np.ndarray, count: int) -> Any:
        """The `count` best of short runs from these responsibilities (runs, n, k), best first."""
        params, objective, _ = self._advance(self.trials.first(resp), SHORT)
        return select(params, self._order(objective, self.trials.degeneracy(params))[:count])

    def random_runs(self, starts: int) -> Any:
        """Short runs from so many random starts: all of them for few rows, else the best.

        With few rows for each component, most runs collapse within a few steps. So there are more batches of them, of
        which only runs without degenerate components are used, until there are several.
        """
        runs, degeneracy = self._batch(starts)
        for _ in range(BATCHES - 1 if self.has_few_rows else 0):
            if (degeneracy == 0).sum() >= PROPER_RUNS or self.steps_left <= 0:
                break
            batch, degeneracy_of_batch = self._batch(starts)
            runs = concatenate([runs, select(batch, degeneracy_of_batch == 0)])
            degeneracy = np.append(degeneracy, degeneracy_of_batch)
        return runs

    def _batch(self, starts: int) -> tuple[Any, np.ndarray]:
        """Short runs from random starts, and their degeneracy."""
        runs = self.short_runs(self.trials.random_starts(starts), self.n_continued(starts))
        return runs, self.trials.degeneracy(runs)

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
        active = np.flatnonzero(~self._is_stationary(gains))
        while len(active) > 0:
            moved, objective[active], gains[:, active] = self._advance(select(params, active), ROUND)
            params, degeneracy[active] = replace_runs(params, active, moved), self.trials.degeneracy(moved)
            best = self._order(objective, degeneracy)[0]  # if it collapses later, runs that were behind it continue
            could_win = (objective - GAINS_BEHIND * gains[-1] < objective[best]) & (degeneracy <= degeneracy[best])
            active = np.flatnonzero(could_win & ~self._has_converged(gains, precision * self.tol))
            if self.steps_left <= 0:
                break
        return Candidates(params, degeneracy, objective, gains, n_starts)

    def _has_converged(self, gains: np.ndarray, tol: float) -> np.ndarray:
        """Whether the remaining gain of each run, by Aitken's estimate from its last two gains, is small."""
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

    def explore(self, candidates: Candidates) -> Candidates:
        """For few rows, the best runs after more random starts, until several of them end in the best optimum [1]_.

        If only a few starts end in it, others may end in a better one. Two rounds without a gain end the search as
        well: on some tables no random start ends in the best optimum, which is found from other runs. So each round has
        more starts from the best runs than random ones.

        .. [1] Boender & Rinnooy Kan (1987), Bayesian stopping rules for multistart global optimization methods, Math.
           Programming 37.
        """
        if self.has_few_rows:
            candidates = self._with_proper_runs(candidates)
        without_gain = 0 if self.has_few_rows and candidates.degeneracy[0] == 0 else ROUNDS_WITHOUT_GAIN
        starts = max(FEWEST_STARTS, self.n_starts // 2)
        while candidates.n_starts[0] < STARTS_AT_BEST and without_gain < ROUNDS_WITHOUT_GAIN and self.steps_left > 0:
            before, candidates = candidates, self.converge(self.random_runs(starts), candidates, count=1)
            candidates = self.improve(candidates, patience=self.effort.patience)
            without_gain = 0 if self._is_better(candidates, before) else without_gain + 1
        return candidates

    def _with_proper_runs(self, candidates: Candidates) -> Candidates:
        """The best runs after more random starts, as long as all of them have degenerate components.

        One start in hundreds may have none, and better ones are then found from it.
        """
        for _ in range(ROUNDS_IF_DEGENERATE):
            if candidates.degeneracy[0] == 0 or self.steps_left <= 0:
                break
            runs = self.converge(self.random_runs(max(FEWEST_STARTS, self.n_starts)), count=1)
            runs = self.improve(runs) if runs.degeneracy[0] == 0 else runs
            candidates = self._distinct(runs.append(candidates))
        return candidates

    def improve(self, candidates: Candidates, patience: int | None = None) -> Candidates:
        """The best runs after rounds of new starts made from them, until `patience` rounds have not helped."""
        without_gain = skip = 0
        if patience is None:
            patience = self.effort.patience * (2 if self.has_few_rows else 1)
        while self.steps_left > 0 and without_gain < patience:
            starts, n_splits = self._new_starts(candidates, skip)
            best = self._best_quarters(starts)
            before, candidates = candidates, self.converge(best, candidates)
            is_better = self._is_better(candidates, before)
            without_gain, skip = (0, 0) if is_better else (without_gain + 1, skip + n_splits)
        return candidates

    def _best_quarters(self, starts: list[np.ndarray]) -> Any:
        """Of each kind of starts, the best quarter after short runs: the kinds do not compete with each other."""
        params, objective, _ = self._advance(self.trials.first(np.concatenate(starts)), SHORT)
        order = self._order(objective, self.trials.degeneracy(params))
        kind = np.repeat(np.arange(len(starts)), [len(each) for each in starts])
        best = [order[kind[order] == i][: max(1, len(each) // 4)] for i, each in enumerate(starts)]
        return select(params, np.concatenate(best))

    def _new_starts(self, candidates: Candidates, skip: int) -> tuple[list[np.ndarray], int]:
        """Starts made from the candidates, by kind, and how many split a component; the first `skip` are left out."""
        trials, params = self.trials, candidates.params
        count = max(4, min(self.n_starts // 2, self.steps_left // (4 * SHORT)))
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
        """The local optima next to the candidates, best first.

        EM can converge to a saddle point, so every run also restarts from its responsibilities with a little noise. For
        few rows, a candidate whose restart ends in a better optimum, or in a degenerate component, is left out, unless
        all runs would be degenerate then. Otherwise the fit after it could leave a saddle point, or a run that is
        almost degenerate, for a degenerate component. A restart that ends in a worse optimum has left a narrow one,
        which is kept.
        """
        self.steps_left, self.reserve = self.steps_left + self.reserve, 0
        resp, _ = self.trials.responsibilities(candidates.params)
        noise = self.trials.rng.random(resp.shape)
        resp += NOISE * (noise / noise.sum(axis=-1, keepdims=True) - resp)
        restarts = self._new(self.trials.first(resp))
        if self.has_few_rows:
            restarts = self._converged(restarts, precision=1e-3)
            is_stable = (restarts.degeneracy == 0) & (restarts.objective > candidates.objective - self.tol)
            stable = restarts.append(candidates.select(is_stable))
            if stable.degeneracy.min() <= candidates.degeneracy[0]:
                return self._by_likelihood(stable)
        return self._by_likelihood(self._converged(restarts.append(candidates)))

    def _by_likelihood(self, runs: Candidates) -> Candidates:
        """The best runs that are different optima, the most likely first."""
        best = self._distinct(runs)
        return best.select(self._order(self.trials.costs(best.params, best.objective), best.degeneracy))

    def _advance(self, params: Any, steps: int) -> tuple[Any, np.ndarray, np.ndarray]:
        self.steps_left -= steps * max(self.minimum_runs, len(params.weights))
        return self.trials.advance(params, steps)
