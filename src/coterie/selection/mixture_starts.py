"""Where the mixtures of one number of components, and all covariance structures, start: they share what they find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from coterie import machine
from coterie.core.protocols import Chunk, Source
from coterie.mixture.agglomerate import agglomerate, cut
from coterie.mixture.gaussian import Components, GaussianEM
from coterie.mixture.search import Contest, Elite
from coterie.mixture.starts import TREE, Rows, sample
from coterie.mixture.trials import chosen, together

Array = np.ndarray[Any, Any]

SHARE = 2  # random starts: this part of those of a search for one structure alone
WINNERS = 8  # short runs that go on; more where random starts are more
PATIENCE = 2  # rounds of new starts without a gain; twice as many where rows are few


class Trials(NamedTuple):
    """The runs of one structure, the best first."""

    rows: Rows
    contest: Contest
    runs: Components
    elite: Elite | None = None  # these runs, once they have converged

    def posteriors(self, runs: Any) -> Array:
        """Of every row under these runs (runs, n, k)."""
        return self.rows.trials.posterior(chosen(self.runs, runs))

    def start(self) -> Components:
        return self.rows.trials.in_place(self.runs, 0)


class Starts:
    """Finds starts for one number of components after another, on one sample of the rows.

    The same posteriors serve all structures: clusters of a model-based tree, made once for all numbers; K-means; and
    random starts. The best run of each structure is then a start for all others. The best of all go on, and are
    rearranged as in a search for one structure; the best run of each structure is a start for all others once more.
    Last, what a structure found is a start for those it is a special case of, wherever they are less likely: so no
    freer structure is left behind.
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
        """A start for each of the models, all of one number of components."""
        rng, *generators = self.rng.spawn(1 + len(models))
        pool = self._pool(Rows(models[-1], self.chunk, rng))
        found = self._each(lambda *item: self._short(pool, *item), list(zip(models, generators, strict=True)))
        if models[0].n_components > 1:
            found = self._shared(self._improved, found)
            found = self._none_behind(self._shared(self._finished, found))
        return [trials.start() for trials in found]

    def _shared(self, function: Callable[[Trials, Array], Trials], found: list[Trials]) -> list[Trials]:
        """The trials of each structure after `function` with the best run of every structure."""
        best = np.concatenate([trials.posteriors([0]) for trials in found])
        return self._each(lambda trials: function(trials, best), [(trials,) for trials in found])

    def _each(self, function: Callable[..., Trials], calls: list[tuple[Any, ...]]) -> list[Trials]:
        return list(machine.in_threads(function, calls, self.n_jobs))

    def _pool(self, rows: Rows) -> Array:
        """Posteriors that are starts for every structure (runs, n, k)."""
        n, k = len(rows.Z), rows.model.n_components
        if k == 1:
            return np.ones((1, n, 1))
        pool = [rows.posteriors("kmeans", 1), rows.random_starts(max(3, Contest(rows.trials).runs // SHARE))]
        if self.merges is not None and len(self.leaves) >= k:
            labels = cut(self.merges, k)
            resp = (labels[:, None] == np.arange(k)).astype(np.float64)[None]
            if len(self.leaves) < n:
                resp = rows.trials.posterior(rows.trials.only(self.leaves).first(resp))
            pool.append(resp)
        return np.concatenate(pool)

    def _short(self, pool: Array, model: GaussianEM, rng: np.random.Generator) -> Trials:
        rows = Rows(model, self.chunk, rng)
        contest = Contest(rows.trials)
        if model.n_components == 1:
            return Trials(rows, contest, rows.trials.first(pool))
        return Trials(rows, contest, contest.heats(pool, max(WINNERS, contest.winners(len(pool)))))

    def _improved(self, trials: Trials, others: Array) -> Trials:
        """The best runs, also from what other structures found, after these were rearranged."""
        contest = trials.contest
        elite = contest.settled(together([trials.runs, contest.heats(others, WINNERS)]))
        patience = 2 * PATIENCE if contest.light else PATIENCE
        elite = contest.improved(elite, trials.rows.rng, patience)
        return trials._replace(runs=elite.runs, elite=elite)

    def _finished(self, trials: Trials, others: Array) -> Trials:
        """The likeliest of the runs, and of runs from what other structures found."""
        contest = trials.contest
        elite = contest.settled(contest.heats(others, WINNERS), trials.elite)
        return trials._replace(runs=contest.finished(elite, trials.rows.rng).runs)

    def _none_behind(self, found: list[Trials]) -> list[Trials]:
        """Structures less likely than a special case of theirs start again from that."""
        found = list(found)
        for i, mine in sorted(enumerate(found), key=lambda item: _letters(item[1])):
            special = [
                other for other in found if other is not mine and is_special_case(_letters(other), _letters(mine))
            ]
            if special:
                resp = np.concatenate([other.posteriors([0]) for other in special])
                found[i] = self._not_behind(mine, resp)
        return found

    def _not_behind(self, mine: Trials, resp: Array) -> Trials:
        """One step of EM from the posterior of a special case is about as likely as that, or likelier."""
        trials, contest = mine.rows.trials, mine.contest
        runs = together([chosen(mine.runs, [0]), trials.first(resp)])
        runs, _, _ = trials.advance(runs, 1)
        costs = contest.costs(runs)
        best = int(contest.ranked(runs, costs)[0])
        if costs[0] - costs[best] < contest.enough:
            return mine
        elite = contest.settled(chosen(runs, [0, best]))
        order = contest.ranked(elite.runs, contest.costs(elite.runs))
        return mine._replace(runs=chosen(elite.runs, order))


def _letters(trials: Trials) -> str:
    return trials.rows.model.structure.name


def is_special_case(special: str, general: str) -> bool:
    """Whether every covariance of the first structure is one of the second: letter by letter, I to E to V."""
    order = "IEV"
    return special != general and all(order.index(a) <= order.index(b) for a, b in zip(special, general, strict=True))
