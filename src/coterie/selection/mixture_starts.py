"""Shared search for starts of Gaussian mixtures, for all covariance structures of one number of components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from coterie import machine
from coterie.core.protocols import Chunk, Source
from coterie.mixture.agglomerate import agglomerate, cut
from coterie.mixture.gaussian_em import Components, GaussianEM
from coterie.mixture.search import Contest, Elite
from coterie.mixture.starts import TREE, Rows, sample
from coterie.mixture.trials import chosen, together

Array = np.ndarray[Any, Any]

WINNERS = 8  # short runs from the results of other structures that are continued


class Trials(NamedTuple):
    """EM runs of one structure, best first."""

    rows: Rows
    contest: Contest
    runs: Components
    elite: Elite | None = None  # the converged runs

    def posteriors(self, runs: Any) -> Array:
        """Posteriors of every row under these runs (runs, n, k)."""
        return self.rows.trials.posterior(chosen(self.runs, runs))

    def start(self) -> Components:
        return self.rows.trials.in_place(self.runs, 0)


class Starts:
    """Finds starts for ascending numbers of components, on one sample of the rows.

    All structures share the same initial posteriors: clusters of a model-based tree, built once for all numbers;
    K-means; and random starts. The best run of each structure is then a start for all others. The best runs are
    continued, and their components are rearranged as in a search for one structure. The best run of each structure is
    again a start for all others. Finally, the result of a structure is a start for each more general structure that has
    a lower likelihood. So no general structure is worse than its special cases.
    """

    def __init__(self, model: GaussianEM, source: Source, rng: np.random.Generator, n_jobs: int | None):
        self.rng, self.n_jobs = rng, n_jobs
        self.chunk: Chunk = sample(model, source, rng)
        rows = Rows(model, self.chunk, rng)
        self.merges = None
        if rows.can_afford_tree():
            n = len(rows.Z)
            self.leaves = np.arange(n) if n <= TREE else np.sort(rng.choice(n, TREE, replace=False))
            self.merges = agglomerate(rows.Z[self.leaves], rows.w[self.leaves])

    def find(self, models: list[GaussianEM]) -> list[Components]:
        """Return a start for each of the models, which all have the same number of components."""
        rng, *generators = self.rng.spawn(1 + len(models))
        pool = self._pool(Rows(models[-1], self.chunk, rng))
        all_trials = self._in_threads(
            lambda *item: self._short_runs(pool, *item), list(zip(models, generators, strict=True))
        )
        if models[0].n_components > 1:
            all_trials = self._with_best_of_all(self._improved, all_trials)
            all_trials = self._raise_to_special_cases(self._with_best_of_all(self._finished, all_trials))
        return [trials.start() for trials in all_trials]

    def _with_best_of_all(self, function: Callable[[Trials, Array], Trials], all_trials: list[Trials]) -> list[Trials]:
        """Apply `function` to the trials of each structure, with the best run of every structure."""
        best = np.concatenate([trials.posteriors([0]) for trials in all_trials])
        return self._in_threads(lambda trials: function(trials, best), [(trials,) for trials in all_trials])

    def _in_threads(self, function: Callable[..., Trials], calls: list[tuple[Any, ...]]) -> list[Trials]:
        return list(machine.in_threads(function, calls, self.n_jobs))

    def _pool(self, rows: Rows) -> Array:
        """Posteriors to start every structure from (runs, n, k)."""
        n, k = len(rows.Z), rows.model.n_components
        if k == 1:
            return np.ones((1, n, 1))
        pool = [rows.posteriors("kmeans", 1), rows.random_starts(max(3, Contest(rows.trials).runs))]
        if self.merges is not None and len(self.leaves) >= k:
            labels = cut(self.merges, k)
            resp = (labels[:, None] == np.arange(k)).astype(np.float64)[None]
            if len(self.leaves) < n:
                resp = rows.trials.posterior(rows.trials.only(self.leaves).first(resp))
            pool.append(resp)
        return np.concatenate(pool)

    def _short_runs(self, pool: Array, model: GaussianEM, rng: np.random.Generator) -> Trials:
        rows = Rows(model, self.chunk, rng)
        contest = Contest(rows.trials)
        if model.n_components == 1:
            return Trials(rows, contest, rows.trials.first(pool))
        return Trials(rows, contest, contest.heats(pool, max(WINNERS, contest.winners(len(pool)))))

    def _improved(self, trials: Trials, others: Array) -> Trials:
        """Add runs from the results of other structures, continue the best and rearrange their components."""
        contest = trials.contest
        elite = contest.settled(together([trials.runs, contest.heats(others, WINNERS)]))
        elite = contest.improved(elite, trials.rows.rng)
        return trials._replace(runs=elite.runs, elite=elite)

    def _finished(self, trials: Trials, others: Array) -> Trials:
        """Add runs from the results of other structures and return the most likely ones."""
        contest = trials.contest
        elite = contest.settled(contest.heats(others, WINNERS), trials.elite)
        return trials._replace(runs=contest.finished(elite, trials.rows.rng).runs)

    def _raise_to_special_cases(self, all_trials: list[Trials]) -> list[Trials]:
        """Restart structures that are less likely than one of their special cases from that case."""
        all_trials = list(all_trials)
        for i, current in sorted(enumerate(all_trials), key=lambda item: _structure_name(item[1])):
            special_cases = [
                other
                for other in all_trials
                if other is not current and is_special_case(_structure_name(other), _structure_name(current))
            ]
            if special_cases:
                resp = np.concatenate([other.posteriors([0]) for other in special_cases])
                all_trials[i] = self._improve_from(current, resp)
        return all_trials

    def _improve_from(self, current: Trials, resp: Array) -> Trials:
        """Restart from the posterior of a special case: one step of EM is about as likely as that case, or more."""
        trials, contest = current.rows.trials, current.contest
        runs = together([chosen(current.runs, [0]), trials.first(resp)])
        runs, _, _ = trials.advance(runs, 1)
        costs = contest.costs(runs)
        best = int(contest.ranked(runs, costs)[0])
        if costs[0] - costs[best] < contest.enough:
            return current
        elite = contest.settled(chosen(runs, [0, best]))
        order = contest.ranked(elite.runs, contest.costs(elite.runs))
        return current._replace(runs=chosen(elite.runs, order))


def _structure_name(trials: Trials) -> str:
    return trials.rows.model.structure.name


def is_special_case(special: str, general: str) -> bool:
    """Whether each covariance of the first structure also belongs to the second: compare letters, I < E < V."""
    order = "IEV"
    return special != general and all(order.index(a) <= order.index(b) for a, b in zip(special, general, strict=True))
