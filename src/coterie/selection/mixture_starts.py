"""Shared search for starts of Gaussian mixtures, for all covariance structures of one number of components."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import machine
from coterie.core.arrays import Array
from coterie.core.protocols import Chunk, Source
from coterie.mixture.gaussian_em import Components, GaussianEM
from coterie.mixture.gaussian_trials import GaussianTrials
from coterie.mixture.search import Candidates, Search
from coterie.mixture.starts import sample
from coterie.mixture.trials import concatenate, select

CONTINUED = 8  # short runs from the results of other structures that are continued


class StructureRuns(NamedTuple):
    """EM runs of one structure, best first."""

    trials: GaussianTrials
    search: Search
    candidates: Candidates

    @property
    def structure(self) -> str:
        return self.trials.model.structure.name

    def best_responsibilities(self) -> Array:
        """Responsibilities of the best run (1, n, k)."""
        return self.trials.responsibilities(select(self.candidates.params, [0]))[0]

    def with_starts(self, resp: Array) -> StructureRuns:
        """Add runs from these responsibilities (m, n, k)."""
        runs = self.search.short_runs(resp, CONTINUED)
        return self._replace(candidates=self.search.converge(runs, self.candidates))


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
        return [runs.trials.result(runs.search.polished(runs.candidates).params, 0) for runs in structures]

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
        search = Search(trials, kind)
        candidates = search.with_random_starts(search.continued(np.concatenate(starts), count=1))
        return StructureRuns(trials, search, candidates)

    def _improve(self, runs: StructureRuns, others: Array) -> StructureRuns:
        """Search for better runs; a thorough one without those of others, which may end in another optimum."""
        if not runs.search.is_thorough:
            runs = runs.with_starts(others)
        return runs._replace(candidates=runs.search.explore(runs.candidates))

    def _finish(self, runs: StructureRuns, others: Array) -> StructureRuns:
        """Add runs from the results of other structures and return the most likely ones."""
        runs = runs.with_starts(others)
        return runs._replace(candidates=runs.search.finish(runs.candidates))

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
        params, objective, *_ = trials.advance(
            concatenate([select(current.candidates.params, [0]), trials.first(resp)]), 1
        )
        costs = trials.costs(params, objective)
        best = int(np.lexsort([costs, trials.degeneracy(params)])[0])
        if costs[0] - costs[best] < search.tol:
            return current
        candidates = search.converge(select(params, [0, best]))
        costs = trials.costs(candidates.params, candidates.objective)
        return current._replace(candidates=candidates.select(np.lexsort([costs, candidates.degeneracy])))


def is_special_case(special: str, general: str) -> bool:
    """Whether each covariance of the first structure also belongs to the second: compare letters, I < E < V."""
    order = "IEV"
    return special != general and all(order.index(a) <= order.index(b) for a, b in zip(special, general, strict=True))
