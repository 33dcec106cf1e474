"""Shared search for starts of Gaussian mixtures, for all covariance structures of one number of components."""

from __future__ import annotations

from collections.abc import Callable
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
    params: Components
    candidates: Candidates | None = None  # the converged runs

    @property
    def structure(self) -> str:
        return self.trials.model.structure.name

    def best_responsibilities(self) -> Array:
        """Responsibilities of the best run (1, n, k)."""
        return self.trials.responsibilities(select(self.params, [0]))[0]


class Starts:
    """Finds starts for ascending numbers of components, on one sample of the rows.

    All structures share the same initial responsibilities: clusters of a model-based tree, built once for all numbers;
    K-means; and random starts. The best run of each structure is then a start for all others. The best runs are
    continued, and their components are rearranged as in a search for one structure. The best run of each structure is
    again a start for all others. Finally, the result of a structure is a start for each more general structure that has
    a lower likelihood. So no general structure is worse than its special cases.
    """

    def __init__(self, model: GaussianEM, source: Source, rng: np.random.Generator, n_jobs: int | None):
        self.rng, self.n_jobs = rng, n_jobs
        self.chunk: Chunk = sample(model, source, rng)
        trials = GaussianTrials(model, self.chunk, rng)
        self.tree = trials.tree() if trials.can_afford_tree() else None

    def find(self, models: list[GaussianEM]) -> list[Components]:
        """Return a start for each of the models, which all have the same number of components."""
        rng, *generators = self.rng.spawn(1 + len(models))
        pool = self._pool(GaussianTrials(models[-1], self.chunk, rng))
        structures = self._in_threads(
            lambda *item: self._short_runs(pool, *item), list(zip(models, generators, strict=True))
        )
        if models[0].n_components > 1:
            structures = self._with_best_of_all(self._improve, structures)
            structures = self._raise_to_special_cases(self._with_best_of_all(self._finish, structures))
        return [runs.trials.result(runs.params, 0) for runs in structures]

    def _with_best_of_all(
        self, function: Callable[[StructureRuns, Array], StructureRuns], structures: list[StructureRuns]
    ) -> list[StructureRuns]:
        """Apply `function` to the runs of each structure, with the best run of every structure."""
        best = np.concatenate([runs.best_responsibilities() for runs in structures])
        return self._in_threads(lambda runs: function(runs, best), [(runs,) for runs in structures])

    def _in_threads(self, function: Callable[..., StructureRuns], calls: list[tuple[Any, ...]]) -> list[StructureRuns]:
        return list(machine.in_threads(function, calls, self.n_jobs))

    def _pool(self, trials: GaussianTrials) -> Array:
        """Responsibilities from which every structure starts (runs, n, k)."""
        if trials.k == 1:
            return np.ones((1, trials.n, 1))
        pool = [trials.starts("kmeans", 1), trials.random_starts(max(3, Search(trials).n_starts))]
        if self.tree is not None and len(self.tree[0]) >= trials.k:
            pool.append(trials.clusters_of_tree(*self.tree))
        return np.concatenate(pool)

    def _short_runs(self, pool: Array, model: GaussianEM, rng: np.random.Generator) -> StructureRuns:
        trials = GaussianTrials(model, self.chunk, rng)
        search = Search(trials)
        if model.n_components == 1:
            return StructureRuns(trials, search, trials.first(pool))
        return StructureRuns(trials, search, search.short_runs(pool, max(CONTINUED, search.n_continued(len(pool)))))

    def _improve(self, runs: StructureRuns, others: Array) -> StructureRuns:
        """Add runs from the results of other structures, continue the best and rearrange their components."""
        search = runs.search
        candidates = search.converge(concatenate([runs.params, search.short_runs(others, CONTINUED)]))
        candidates = search.improve(candidates)
        return runs._replace(params=candidates.params, candidates=candidates)

    def _finish(self, runs: StructureRuns, others: Array) -> StructureRuns:
        """Add runs from the results of other structures and return the most likely ones."""
        search = runs.search
        candidates = search.converge(search.short_runs(others, CONTINUED), runs.candidates)
        return runs._replace(params=search.finish(candidates).params)

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
        params, objective, _ = trials.advance(concatenate([select(current.params, [0]), trials.first(resp)]), 1)
        costs = trials.costs(params, objective)
        best = int(np.lexsort([costs, trials.degeneracy(params)])[0])
        if costs[0] - costs[best] < search.tol:
            return current
        candidates = search.converge(select(params, [0, best]))
        costs = trials.costs(candidates.params, candidates.objective)
        return current._replace(params=candidates.select(np.lexsort([costs, candidates.degeneracy])).params)


def is_special_case(special: str, general: str) -> bool:
    """Whether each covariance of the first structure also belongs to the second: compare letters, I < E < V."""
    order = "IEV"
    return special != general and all(order.index(a) <= order.index(b) for a, b in zip(special, general, strict=True))
