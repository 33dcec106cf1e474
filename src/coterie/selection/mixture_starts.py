"""Shared search for starts of Gaussian mixtures, for all covariance structures of one number of components."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import machine
from coterie.core.arrays import Array
from coterie.core.nested_arrays import join, select
from coterie.core.protocols import Chunk, Source
from coterie.core.search import Pool
from coterie.mixture.gaussian_em import Components, GaussianEM
from coterie.mixture.gaussian_trials import GaussianTrials
from coterie.mixture.search import MixtureSearch
from coterie.mixture.starts import sample
from coterie.mixture.trials import Trials

CONTINUED = 8  # short runs from the results of other structures that are continued


class StructureRuns(NamedTuple):
    """EM runs of one structure, best first."""

    search: MixtureSearch
    pool: Pool

    @property
    def trials(self) -> Trials:
        return self.search.problem.trials

    @property
    def structure(self) -> str:
        return str(self.trials.model.structure.name)

    def best_responsibilities(self) -> Array:
        """Responsibilities of the best run (1, n, k)."""
        return self.trials.responsibilities(select(self.pool.params, [0]))[0]

    def with_starts(self, resp: Array) -> StructureRuns:
        """Add runs from these responsibilities (m, n, k)."""
        runs = self.search.problem.short_runs(resp, CONTINUED)
        return self._replace(pool=self.search.with_runs(self.pool, runs, 0))


class Starts:
    """Finds starts for ascending numbers of components, on one sample of the rows.

    Each structure has a search of its own, with the clusters of one model-based tree, built once for all numbers, among
    its starts. The best run of each structure is then a start for all others; on many rows, also before the search
    improves its runs. Finally, the result of a structure is a start for each more general structure that has a lower
    likelihood. So no general structure is worse than its special cases.
    """

    def __init__(self, model: GaussianEM, source: Source, rng: np.random.Generator, n_jobs: int | None):
        self.rng, self.n_jobs = rng, n_jobs
        self.chunk: Chunk = sample(model, source, rng)
        trials = GaussianTrials(model, self.chunk, rng)
        self.tree = trials.tree() if trials.can_afford_tree() else None

    def find(self, models: list[GaussianEM], search: str) -> list[Components]:
        """Return a start for each of the models, which all have the same number of components."""
        trials = [
            GaussianTrials(model, self.chunk, rng)
            for model, rng in zip(models, self.rng.spawn(len(models)), strict=True)
        ]
        if models[0].n_components == 1:
            return [each.result(each.first(each.default_start()), 0) for each in trials]
        structures = self._in_threads(partial(self._begin, search), trials)
        structures = self._with_best_of_all(self._improve, structures)
        structures = self._with_best_of_all(self._finish, structures)
        structures = self._raise_to_special_cases(structures)
        return [runs.trials.result(runs.search.polished(runs.pool), 0) for runs in structures]

    def _in_threads(self, function: Callable[[Any], StructureRuns], items: list[Any]) -> list[StructureRuns]:
        return list(machine.in_threads(function, [(item,) for item in items], self.n_jobs))

    def _with_best_of_all(
        self, function: Callable[[StructureRuns, Array], StructureRuns], structures: list[StructureRuns]
    ) -> list[StructureRuns]:
        """Apply `function` to the runs of each structure, with the best run of every structure."""
        best = np.concatenate([runs.best_responsibilities() for runs in structures])
        return self._in_threads(lambda runs: function(runs, best), structures)

    def _begin(self, kind: str, trials: GaussianTrials) -> StructureRuns:
        starts = [trials.starts("kmeans", 1)]
        if self.tree is not None and len(self.tree[0]) >= trials.k:
            starts.append(trials.clusters_of_tree(*self.tree))
        search = MixtureSearch(trials, kind)
        pool = search.with_runs(None, trials.first(np.concatenate(starts)), 1)
        if not search.problem.is_thorough:
            pool = search.with_runs(pool, search.problem.starts(search.effort.batch), 1)
        return StructureRuns(search, pool)

    def _improve(self, runs: StructureRuns, others: Array) -> StructureRuns:
        """Search for better runs; a thorough one without those of others, which may end in another optimum."""
        if not runs.search.problem.is_thorough:
            runs = runs.with_starts(others)
        return runs._replace(pool=runs.search.explored(runs.pool))

    def _finish(self, runs: StructureRuns, others: Array) -> StructureRuns:
        """Add runs from the results of other structures and return the most likely ones."""
        runs = runs.with_starts(others)
        return runs._replace(pool=runs.search.finished(runs.pool))

    def _raise_to_special_cases(self, structures: list[StructureRuns]) -> list[StructureRuns]:
        """Restart structures that are less likely than one of their special cases from that case."""
        structures = list(structures)
        for i, current in sorted(enumerate(structures), key=lambda item: item[1].structure):
            special_cases = [other for other in structures if is_special_case(other.structure, current.structure)]
            if special_cases:
                resp = np.concatenate([other.best_responsibilities() for other in special_cases])
                structures[i] = self._improve_from(current, resp)
        return structures

    def _improve_from(self, current: StructureRuns, resp: Array) -> StructureRuns:
        """Restart from the responsibilities of a special case: one step of EM is about as likely as it, or more."""
        trials, search = current.trials, current.search
        params, objective, *_ = trials.advance(join([select(current.pool.params, [0]), trials.first(resp)]), 1)
        costs = trials.costs(params, objective)
        best = int(np.lexsort([costs, trials.degeneracy(params)])[0])
        if costs[0] - costs[best] < search.problem.tol:
            return current
        runs = search.converged(select(params, [0, best]), None, 0)
        return current._replace(pool=search.by_likelihood(runs))


def is_special_case(special: str, general: str) -> bool:
    """Whether each covariance of the first structure also belongs to the second: compare letters, I < E < V."""
    order = "IEV"
    return special != general and all(order.index(a) <= order.index(b) for a, b in zip(special, general, strict=True))
