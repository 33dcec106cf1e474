"""Search for a better optimum with any model of centers: swap a center for a row, and iterate from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import interrupts, kernels, machine
from coterie.base import in_memory
from coterie.core import loop
from coterie.core.arrays import is_sparse
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.rounding import is_lower
from coterie.seeding.costs import Cost

CANDIDATES = 24  # rows per round that may become centers
TRIES = 5  # single swaps per round that are followed by a descent
CHAINS, LONGEST = 3, 3  # chains of swaps per round that are followed by a descent; maximum length of a chain
JUMPS = 5  # maximum number of centers that jump together
FAR = 3.0  # maximum cost that a swap may add before the descent, in average costs of a cluster
HOPE = 1.0  # a descent is abandoned if it is behind the best by more than this multiple of its last gain
GAIN = 1e-9  # relative to the objective: smaller gains are rounding
SAME = 1e-6  # relative to the objective: a jump that ends so near to the best one has led back to it
PASSES = 4  # for which kernels are selected; a search has more, but may end before compiled kernels are loaded


class Effort(NamedTuple):
    """Length of a search."""

    values: int  # rows x columns x centers; a larger table is searched by a random sample of its rows
    starts: int  # initialisations before the swaps, for n_init="auto"
    quiet: int  # rounds without a gain that end the swaps
    rounds: int  # maximum number of rounds
    jumps: int  # maximum number of random jumps in a row without a gain, which end the search
    jump_values: int  # the same product; after the first jump, tables of this size have one more
    extra_jumps: int = 3  # maximum number of such jumps minus that of centers: few centers have few optima


EFFORTS = {
    "auto": Effort(1 << 18, 2, 1, 100, 20, 3 << 18),
    "short": Effort(1 << 20, 1, 2, 40, 2, 3 << 18),  # for a table that is too large for "auto"
    "sample": Effort(1 << 16, 2, 2, 15, 2, 1 << 16),  # for a table that is too large for "short"
    "fast": Effort(1 << 24, 5, 10, 300, 40, 1 << 24, 40),
}
SAMPLE = 100  # minimum number of sampled rows per cluster
SWAP_ROWS, SWAP_SAMPLE = 600, 50  # minimum number of rows by which swaps are compared, in total and per cluster


class Solution(NamedTuple):
    """Centers and their objective."""

    centers: np.ndarray  # (k, d)
    objective: float
    start: np.ndarray  # (k, d) initial centers of the descent


def search_start(
    kind: str,
    model: Any,
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    n_init: int,
    max_iter: int,
    callback: Callback,
) -> tuple[Any, Callback]:
    """Model that starts from the best solution of a search, and the callback of its final iterations.

    The search starts from the best of `n_init` descents. A round draws candidate rows in proportion to their cost, and
    computes the objective with each of them in place of each center [1]_. The cheapest swaps, and some chains of two or
    three swaps, are followed by a descent of the model [2]_. The first descent that ends lower is accepted. After some
    rounds without a gain, several random swaps at once lead away from the best solution, and rounds continue from there
    [3]_.

    If the table is too large, a random sample of its rows is searched. The initial centers are then the better of the
    centers of the sample and of seeds among all rows.

    .. [1] Schubert & Rousseeuw (2021), Fast and eager k-medoids clustering, Inf. Syst. 101.
    .. [2] Fränti (2018), Efficiency of random swap clustering, Journal of Big Data 5.
    .. [3] Lourenço, Martin & Stützle (2003), Iterated local search, Handbook of Metaheuristics.
    """
    search_rng, seeding_rng = rng.spawn(2)
    effort = EFFORTS[kind]
    rows, is_sample = _rows(source, max_rows(effort, source, model.n_clusters), search_rng)
    if is_sample and rows.X.shape[0] < SAMPLE * model.n_clusters:  # nearly all rows have no weight
        return model, callback
    search = Search(model, rows, source.shape[0] / rows.X.shape[0], search_rng, max_iter, callback)
    with machine.one_blas_thread, kernels.selected_for(PASSES, rows.X, model.n_clusters):
        best = search.run(n_init, effort)
    with machine.one_blas_thread:
        if is_sample:
            start = _better_start(model, source, engine, seeding_rng, best.centers)
        else:  # repeat the whole descent for the callback and the history, unless the fit was stopped
            start = best.centers if search.stopped else best.start

    def final_callback(progress: Progress) -> bool:
        return search.stopped or bool(callback(replace(progress, run=n_init + 1)))

    return replace(model, start=start), final_callback


def max_rows(effort: Effort, source: Source, k: int) -> int:
    """Maximum number of rows that are searched."""
    return max(int(effort.values / (values_per_row(getattr(source, "X", source)) * k)), SAMPLE * k)


def values_per_row(X: Any) -> float:
    """Number of columns; for sparse rows, the mean number of stored values."""
    n, d = X.shape
    return float(max(X.nnz / n if is_sparse(X) else d, 1))


def _rows(source: Source, limit: int, rng: np.random.Generator) -> tuple[Chunk, bool]:
    """Rows of positive weight, of all rows or of a random sample, and whether it is a sample."""
    n = source.shape[0]
    is_sample = n > limit
    chunk = source.pick(np.sort(rng.choice(n, limit, replace=False, shuffle=False)) if is_sample else slice(None))
    if chunk.w is not None and not chunk.w.all():
        positive = np.flatnonzero(chunk.w)
        chunk = chunk._replace(X=chunk.X[positive], w=chunk.w[positive])
    return chunk, is_sample


def _better_start(
    model: Any, source: Source, engine: Engine, rng: np.random.Generator, centers: np.ndarray
) -> np.ndarray:
    """The cheaper of the centers of a sample and of seeds among all rows, because a sample can miss a small cluster."""
    seeds = model.init(source, engine, rng)
    at_centers, at_seeds = (loop.objective_at(model, candidate, source, engine) for candidate in (centers, seeds))
    return centers if at_centers <= at_seeds else seeds


@dataclass(eq=False)
class Search:
    """Solution that is improved by swaps, for rows in memory."""

    model: Any
    rows: Chunk
    scale: float  # estimated objective of all rows divided by that of these rows
    rng: np.random.Generator
    max_iter: int
    callback: Callback

    def __post_init__(self) -> None:
        self.source, self.engine = in_memory(self.rows)
        self.steps, self.max_steps, self.stopped = 0, 0, False  # rounds of swaps
        self.best: Solution | None = None
        self.neighborhood: Neighborhood | None = None  # of the current solution
        self.cost: Cost = self.model.cost
        # Optional parts of a model: a faster variant for trial descents, and a step that moves centers off the rows.
        self.rough, self.off_rows = getattr(self.model, "rough", self.model), getattr(self.model, "off_rows", None)

    def run(self, n_init: int, effort: Effort) -> Solution:
        """Run `n_init` descents, then swaps and jumps from the best of them. Ctrl-C keeps the best."""
        with interrupts.deferred(), interrupts.outermost() as is_outermost:
            try:
                self._start(n_init)
                self._swap(n_init, effort)
            except KeyboardInterrupt as error:
                interrupts.keep_result(error, is_outermost, has_result=self.best is not None)
                self.stopped = True
        assert self.best is not None
        return self.best

    def _start(self, n_init: int) -> None:
        for run, child in enumerate(self.rng.spawn(n_init)):
            start = self.model.init(self.source, self.engine, child)
            result = self._descend(self.model, start, partial(self._notify, run))
            if self.best is None or is_lower(result.objective, self.best.objective):
                self.best = Solution(result.params, result.objective, start)
            self.stopped |= result.stopped
            if self.stopped:
                break

    def _swap(self, run: int, effort: Effort) -> None:
        """Swaps, then random jumps away from the best solution, each followed by swaps."""
        assert self.best is not None
        if self.model.n_clusters == 1:
            return
        self.max_steps = effort.rounds
        self._improve(self.best, effort.quiet, run)
        size = self.rows.X.shape[0] * values_per_row(self.rows.X) * self.model.n_clusters
        limit = min(effort.jumps, self.model.n_clusters + effort.extra_jumps, 1 + int(effort.jump_values / size))
        failures = 0
        while failures < limit:
            before = self.best
            jump = None if self._is_over else self._jump_from(before)
            if jump is None:
                break
            is_back = before.objective <= jump.objective <= (1.0 + SAME) * before.objective
            self._improve(before if is_back else jump, 1, run)  # no swap of the best is tried again
            failures = failures + 1 if self.best is before else 0

    def _improve(self, solution: Solution, quiet: int, run: int) -> None:
        """Swap until `quiet` rounds in a row find nothing better; keep the solution if it is the best so far."""
        assert self.best is not None
        failures = 0
        while failures < quiet and not self._is_over:
            interrupts.check()
            improved = self._round(solution)
            failures, solution = (0, improved) if improved is not None else (failures + 1, solution)
            if solution.objective < (1.0 - GAIN) * self.best.objective:
                self.best = solution
            progress = Progress(
                "iteration", self.steps, run=run, params=self.best.centers, objective=self.best.objective
            )
            self.stopped |= self._notify(run, progress)
            self.steps += 1

    @property
    def _is_over(self) -> bool:
        assert self.best is not None
        return self.stopped or self.steps >= self.max_steps or self.best.objective <= 0

    def _jump_from(self, solution: Solution) -> Solution | None:
        """Result of a descent after several random swaps at once; None if every row equals a center."""
        k, neighborhood = self.model.n_clusters, self._neighborhood(solution)
        candidates = neighborhood.draw(1 + int(self.rng.integers(max(1, min(JUMPS, k // 2)))), self.rng)
        if len(candidates) == 0:
            return None
        removed = neighborhood.removed(len(candidates), self.rng)
        centers = self._swapped(solution.centers, removed, self.cost.take(neighborhood.X, candidates))
        return self._try(centers)

    def _round(self, solution: Solution) -> Solution | None:
        """The first swap whose descent ends lower, or None."""
        for centers in self.swaps(solution):
            result = self._try(centers, solution.objective)
            if result.objective < (1.0 - GAIN) * solution.objective:
                return result
        return None

    def _try(self, centers: np.ndarray, to_beat: float = np.inf) -> Solution:
        """Result of a descent from these centers. It is abandoned if it improves too slowly to reach `to_beat`."""
        descent = loop.Descent(replace(self.rough, start=centers), self.source, self.engine, run=0, accelerate=False)
        is_hopeless = AbandonHopeless(to_beat)
        for fit in descent.iterations(self.rng, self.max_iter):
            interrupts.check()
            if is_hopeless(Progress("iteration", len(fit.history) - 1, objective=fit.objective)):
                break
        return Solution(fit.params, fit.objective, fit.params)

    def swaps(self, solution: Solution) -> Iterator[np.ndarray]:
        """Centers after the cheapest swaps that were not tried yet, then after some chains of swaps."""
        for removed, rows in self._neighborhood(solution).chains(self.rng):
            yield self._swapped(solution.centers, removed, rows)

    def _neighborhood(self, solution: Solution) -> Neighborhood:
        if self.neighborhood is None or self.neighborhood.centers is not solution.centers:
            self.neighborhood = Neighborhood(self.cost, self._swap_rows(), solution.centers)
        return self.neighborhood

    def _swap_rows(self) -> Chunk:
        """The rows by which swaps are compared, and which become centers: a new random sample if they are many."""
        limit = max(SWAP_ROWS, SWAP_SAMPLE * self.model.n_clusters)
        return self.rows if self.rows.X.shape[0] <= limit else _rows(self.source, limit, self.rng)[0]

    def _swapped(self, centers: np.ndarray, removed: list[int], rows: np.ndarray) -> np.ndarray:
        centers = centers.copy()
        centers[removed] = rows
        return centers if self.off_rows is None else self.off_rows(centers, np.array(removed), self.source, self.engine)

    def _descend(self, model: Any, centers: np.ndarray, callback: Callback) -> loop.Fit:
        model = replace(model, start=centers)
        return loop.fit(model, self.source, self.engine, rng=self.rng, max_iter=self.max_iter, callback=callback)

    def _notify(self, run: int, progress: Progress) -> bool:
        return bool(self.callback(replace(progress, run=run, objective=self.scale * progress.objective)))


class Neighborhood:
    """Swaps of the centers of one solution for rows. No swap is proposed twice."""

    def __init__(self, cost: Cost, rows: Chunk, centers: np.ndarray):
        self.cost, self.X, self.centers = cost, rows.X, centers
        self.w = np.ones(rows.X.shape[0]) if rows.w is None else rows.w.astype(np.float64)
        self.at_centers = cost.table(rows.X, centers).astype(np.float64)
        self.without = costs_without(cost, self.at_centers)
        self.costs = cost.beside(self.without[0], self.at_centers[:, 0])  # (n,) with all centers
        self.total = float(self.w @ self.costs)
        self.tried: set[frozenset[tuple[int, int]]] = set()

    def chains(self, rng: np.random.Generator) -> Iterator[tuple[list[int], np.ndarray]]:
        """Indices of centers and the rows that replace them: single swaps, the cheapest first, then several at once.

        The candidates are sampled in proportion to their cost. A chain starts with any swap and continues with the swap
        that is cheapest after the previous ones [1]_. It finds swaps that help together although each alone does not.

        .. [1] Lin & Kernighan (1973), An effective heuristic algorithm for the traveling-salesman problem, Oper. Res.
           21.
        """
        candidates = self.draw(CANDIDATES, rng)
        if len(candidates) == 0:
            return
        rows = self.cost.take(self.X, candidates)
        at_rows, owner = self.cost.table(self.X, rows).astype(np.float64), self.at_centers[candidates].argmin(axis=1)
        moves = distinct_swaps(self._totals(self.without, at_rows), owner, self._limit(1))
        untried = [move for move in moves if _clusters([move], owner) not in self.tried]
        for move in untried[:TRIES]:
            self.tried.add(_clusters([move], owner))
            yield [move[0]], rows[[move[1]]]
        for _ in range(CHAINS if len(moves) > 1 else 0):
            chain = self._chain(moves[rng.integers(len(moves))], 2 + int(rng.integers(LONGEST - 1)), at_rows, owner)
            if len(chain) > 1:
                self.tried.add(_clusters(chain, owner))
                yield [removed for removed, _ in chain], rows[[row for _, row in chain]]

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw up to `count` different rows in proportion to their cost; none if every row equals a center."""
        mass = self.w * self.costs
        positive = int(np.count_nonzero(mass))
        if positive == 0:
            return np.zeros(0, np.int64)
        return np.sort(rng.choice(len(mass), min(count, positive), replace=False, p=mass / mass.sum()))

    def removed(self, count: int, rng: np.random.Generator) -> list[int]:
        """Draw `count` different centers; those whose removal adds little cost are more likely."""
        k = len(self.centers)
        share = self.total / (self.total + k * (self.without @ self.w - self.total))
        return rng.choice(k, count, replace=False, p=share / share.sum()).tolist()

    def _chain(
        self, first: tuple[int, int], length: int, at_rows: np.ndarray, owner: np.ndarray
    ) -> list[tuple[int, int]]:
        chain, costs = [first], self.at_centers.copy()
        while len(chain) < min(length, len(self.centers), at_rows.shape[1]):
            removed, row = chain[-1]
            costs[:, removed] = at_rows[:, row]
            totals = self._totals(costs_without(self.cost, costs), at_rows)
            totals[[j for j, _ in chain]] = np.inf
            totals[:, [i for _, i in chain]] = np.inf
            moves = distinct_swaps(totals, owner, self._limit(length))
            untried = next((move for move in moves if _clusters([*chain, move], owner) not in self.tried), None)
            if untried is None:
                break
            chain.append(untried)
        return chain

    def _totals(self, without: np.ndarray, at_rows: np.ndarray) -> np.ndarray:
        """Total cost with each candidate in place of each center (k, candidates)."""
        if not self.cost.is_nearest:
            return np.stack([self.w @ self.cost.beside(others[:, None], at_rows) for others in without])
        nearest, second, owner = without.min(axis=0), without.max(axis=0), without.argmax(axis=0)
        with_all = np.minimum(nearest[:, None], at_rows)  # costs with the candidate and all centers
        added = np.minimum(second[:, None], at_rows) - with_all  # without the nearest center
        own_weight = np.where(np.arange(len(without))[:, None] == owner, self.w, 0.0)
        return self.w @ with_all + own_weight @ added

    def _limit(self, length: int) -> float:
        return (1.0 + FAR * length / len(self.centers)) * self.total


def _clusters(chain: list[tuple[int, int]], owner: np.ndarray) -> frozenset[tuple[int, int]]:
    """Removed centers, and the clusters of their new rows: other rows of these clusters give similar results."""
    return frozenset((removed, int(owner[row])) for removed, row in chain)


def distinct_swaps(totals: np.ndarray, owner: np.ndarray, limit: float) -> list[tuple[int, int]]:
    """Swaps (center, candidate) with a cost of at most `limit`, the cheapest first; one per center and cluster."""
    order = np.argsort(totals, axis=None, kind="stable")
    removed, row = np.divmod(order[totals.ravel()[order] <= limit], totals.shape[1])
    _, first = np.unique(removed * (owner.max() + 1) + owner[row], return_index=True)
    first.sort()
    return list(zip(removed[first].tolist(), row[first].tolist(), strict=True))


class AbandonHopeless:
    """Callback that stops a descent which improves too slowly to reach `objective`."""

    def __init__(self, objective: float, patience: float = HOPE, after: int = 0):
        self.objective, self.patience, self.after = objective, patience, after  # checked after iteration `after`
        self.previous = np.inf

    def __call__(self, progress: Progress) -> bool:
        gain, self.previous = self.previous - progress.objective, progress.objective
        return progress.iteration > self.after and progress.objective - self.patience * gain > self.objective


def costs_without(cost: Cost, costs: np.ndarray) -> np.ndarray:
    """Costs of the rows (k, n) without each of the centers, from their costs at every single center (n, k)."""
    n, k = costs.shape
    before, after = np.full((k, n), np.inf), np.full((k, n), np.inf)
    for j in range(1, k):
        before[j] = cost.beside(before[j - 1], costs[:, j - 1])
        after[k - 1 - j] = cost.beside(after[k - j], costs[:, k - j])
    return cost.beside(before, after)
