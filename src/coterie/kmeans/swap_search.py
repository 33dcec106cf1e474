"""A search past local optima for any model of centers: swap a center for a row, and descend from there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coterie import interrupts, machine
from coterie.base import in_memory
from coterie.core import loop
from coterie.core.errors import FitInterruptedWarning
from coterie.core.progress import Callback, Progress
from coterie.core.protocols import Chunk, Engine, Source
from coterie.seeding.costs import Cost

CANDIDATES = 24  # rows of a round that may become centers
TRIES = 5  # swaps of a round that are followed by a descent
CHAINS, LONGEST = 3, 3  # chains of several swaps, likewise, and the most swaps of one
JUMPS = 5  # centers that jump together, at most
FAR = 3.0  # average costs of a cluster that a swap may add before the descent
HOPE = 2.0  # times its last gain that a descent may lie behind the best before it is given up
GAIN = 1e-9  # of the objective: smaller gains are rounding


class Effort(NamedTuple):
    """How long a search may take."""

    values: int  # rows x columns x centers; beyond, a sample of the rows is searched
    starts: int  # descents before the swaps, where n_init="auto"
    quiet: int  # rounds without a gain that end the swaps
    rounds: int  # at most
    jumps: int  # random jumps after that, at most: of a table that is nearly too large there is one


EFFORTS = {
    "auto": Effort(1 << 18, 3, 3, 60, 6),
    "sample": Effort(1 << 16, 2, 2, 15, 2),  # of a table that is too large for "auto"
    "fast": Effort(1 << 24, 5, 10, 300, 40),
}
SAMPLE = 100  # rows a cluster that a sample has at least


class Solution(NamedTuple):
    """Centers and what they cost."""

    centers: np.ndarray  # (k, d)
    objective: float
    start: np.ndarray  # (k, d) where the descent to them began


def searched(
    kind: str,
    model: Any,
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    n_init: int,
    max_iter: int,
    watch: Callback,
) -> tuple[Any, Callback]:
    """The model with the best start that a search finds, and the callback for the descent from there.

    From the best of `n_init` descents on, a round draws some rows by their cost and computes what all rows cost with
    each of them in the place of each center [1]_. The cheapest swaps, and some chains of two or three, are followed by
    a descent of the model [2]_. The first that ends lower is taken. After some rounds without a gain, several random
    swaps at once lead away from the best solution, and rounds continue from there [3]_.

    A table that is too large is searched by a random sample of its rows. The start is then the better one of the
    centers of the sample and of seeds among all rows.

    .. [1] Schubert & Rousseeuw (2021), Fast and eager k-medoids clustering, Inf. Syst. 101.
    .. [2] Fränti (2018), Efficiency of random swap clustering, Journal of Big Data 5.
    .. [3] Lourenço, Martin & Stützle (2003), Iterated local search, Handbook of Metaheuristics.
    """
    chance, seeding = rng.spawn(2)
    effort = EFFORTS[kind]
    rows, is_sample = _rows(source, largest(effort, source, model.n_clusters), chance)
    if is_sample and rows.X.shape[0] < SAMPLE * model.n_clusters:  # nearly all rows have no weight
        return model, watch
    search = Search(model, rows, source.shape[0] / rows.X.shape[0], chance, max_iter, watch)
    with machine.one_blas_thread:
        best = search.run(n_init, effort)
        if is_sample:
            start = _better_start(model, source, engine, seeding, best.centers)
        else:  # the whole descent is told once more, unless it is to end at once
            start = best.centers if search.stopped else best.start

    def watch_the_end(progress: Progress) -> bool:
        return search.stopped or bool(watch(replace(progress, run=n_init + 1)))

    return replace(model, start=start), watch_the_end


def largest(effort: Effort, source: Source, k: int) -> int:
    """The number of rows that are searched at most."""
    return max(int(effort.values / (values_per_row(getattr(source, "X", source)) * k)), SAMPLE * k)


def values_per_row(X: Any) -> float:
    """The number of columns; of sparse rows, the mean number of values that are stored."""
    n, d = X.shape
    return float(max(X.nnz / n if hasattr(X, "indptr") else d, 1))


def _rows(source: Source, most: int, rng: np.random.Generator) -> tuple[Chunk, bool]:
    """The rows of weight above 0, or of a random sample, and whether it is a sample."""
    n = source.shape[0]
    is_sample = n > most
    chunk = source.pick(np.sort(rng.choice(n, most, replace=False, shuffle=False)) if is_sample else slice(None))
    if chunk.w is not None and not chunk.w.all():
        counted = np.flatnonzero(chunk.w)
        chunk = chunk._replace(X=chunk.X[counted], w=chunk.w[counted])
    return chunk, is_sample


def _better_start(
    model: Any, source: Source, engine: Engine, rng: np.random.Generator, centers: np.ndarray
) -> np.ndarray:
    """The centers of a sample, or seeds among all rows where these cost less: a sample can miss a small cluster."""
    seeds = model.init(source, engine, rng)
    sums = [engine.scan(partial(model.e_step, each), source, None)[0] for each in (centers, seeds)]
    at_centers, at_seeds = (model.objective(each, stats) for each, stats in zip((centers, seeds), sums, strict=True))
    return centers if at_centers <= at_seeds else seeds


class Search:
    """One solution that gets better by swaps, among rows in memory."""

    def __init__(
        self,
        model: Any,
        rows: Chunk,
        scale: float,  # from the objective of these rows to that of all
        rng: np.random.Generator,
        max_iter: int,
        watch: Callback,
    ):
        self.model, self.rows, self.scale, self.rng, self.max_iter = model, rows, scale, rng, max_iter
        self.source, self.engine = in_memory(rows)
        self.watch, self.stopped = watch, False
        self.steps, self.most = 0, 0  # rounds of swaps so far, and at most
        self.best: Solution | None = None
        self.neighborhood: Neighborhood | None = None  # of the solution that was improved last
        self.cost: Cost = model.cost
        # Optional parts of a model: a faster one for descents that are only tried, and centers that must not be rows.
        self.rough, self.off_rows = getattr(model, "rough", model), getattr(model, "off_rows", None)

    def run(self, n_init: int, effort: Effort) -> Solution:
        """The best of `n_init` descents, then swaps and jumps; Ctrl-C keeps the best."""
        with interrupts.deferred(), interrupts.outermost() as keeps:
            try:
                self._start(n_init)
                self._swap(n_init, effort)
            except KeyboardInterrupt:
                if not keeps or self.best is None:
                    raise
                warnings.warn("interrupted: the best result so far is kept", FitInterruptedWarning, stacklevel=4)
                self.stopped = True
        assert self.best is not None
        return self.best

    def _start(self, n_init: int) -> None:
        for run, child in enumerate(self.rng.spawn(n_init)):
            start = self.model.init(self.source, self.engine, child)
            result = self._descend(self.model, start, partial(self._tell, run))
            if self.best is None or result.objective < self.best.objective:
                self.best = Solution(result.params, result.objective, start)
            self.stopped |= result.stopped
            if self.stopped:
                break

    def _swap(self, run: int, effort: Effort) -> None:
        """Swaps, then random jumps away from the best solution, each followed by swaps."""
        assert self.best is not None
        if self.model.n_clusters == 1:
            return
        self.most = effort.rounds
        self._improve(self.best, effort.quiet, run)
        size = self.rows.X.shape[0] * values_per_row(self.rows.X) * self.model.n_clusters
        for _ in range(min(effort.jumps, 1 + int(effort.values / (4 * size)))):
            jump = None if self._is_over else self._jumped(self.best)
            if jump is None:
                break
            self._improve(jump, 1, run)

    def _improve(self, solution: Solution, quiet: int, run: int) -> None:
        """Swap until so many rounds in a row find nothing better; keep the solution if it is the best one so far."""
        assert self.best is not None
        in_vain = 0
        while in_vain < quiet and not self._is_over:
            interrupts.check()
            better = self._round(solution)
            in_vain, solution = (0, better) if better is not None else (in_vain + 1, solution)
            if solution.objective < (1.0 - GAIN) * self.best.objective:
                self.best = solution
            progress = Progress(
                "iteration", self.steps, run=run, params=self.best.centers, objective=self.best.objective
            )
            self.stopped |= self._tell(run, progress)
            self.steps += 1

    @property
    def _is_over(self) -> bool:
        assert self.best is not None
        return self.stopped or self.steps >= self.most or self.best.objective <= 0

    def _jumped(self, solution: Solution) -> Solution | None:
        """The end of a descent after several random swaps at once; None where every row is on a center."""
        k, neighborhood = self.model.n_clusters, self._neighborhood(solution)
        drawn = neighborhood.draw(1 + int(self.rng.integers(max(1, min(JUMPS, k // 2)))), self.rng)
        if len(drawn) == 0:
            return None
        removed = neighborhood.removed(len(drawn), self.rng)
        centers = self._swapped(solution.centers, removed, self.cost.take(self.rows.X, drawn))
        result = self._descend(self.rough, centers, lambda progress: None)
        return Solution(result.params, result.objective, result.params)

    def _round(self, solution: Solution) -> Solution | None:
        """The first of some swaps whose descent ends lower; None if there is none."""
        for centers in self.swaps(solution):
            watch = Hopeless(solution.objective)
            result = self._descend(self.rough, centers, watch)
            self.stopped |= result.stopped and not watch.given_up
            if result.objective < (1.0 - GAIN) * solution.objective:
                return Solution(result.params, result.objective, result.params)
            if self.stopped:
                break
        return None

    def swaps(self, solution: Solution) -> Iterator[np.ndarray]:
        """Centers after the cheapest swaps that have not been tried yet, and after some chains of swaps."""
        for removed, rows in self._neighborhood(solution).chains(self.rng):
            yield self._swapped(solution.centers, removed, rows)

    def _neighborhood(self, solution: Solution) -> Neighborhood:
        if self.neighborhood is None or self.neighborhood.centers is not solution.centers:
            self.neighborhood = Neighborhood(self.cost, self.rows, solution.centers)
        return self.neighborhood

    def _swapped(self, centers: np.ndarray, removed: list[int], rows: np.ndarray) -> np.ndarray:
        centers = centers.copy()
        centers[removed] = rows
        return centers if self.off_rows is None else self.off_rows(centers, np.array(removed), self.source, self.engine)

    def _descend(self, model: Any, centers: np.ndarray, watch: Callback) -> loop.Fit:
        model = replace(model, start=centers)
        return loop.fit(model, self.source, self.engine, rng=self.rng, max_iter=self.max_iter, callback=watch)

    def _tell(self, run: int, progress: Progress) -> bool:
        return bool(self.watch(replace(progress, run=run, objective=self.scale * progress.objective)))


class Neighborhood:
    """Swaps of the centers of one solution for rows. None is proposed twice."""

    def __init__(self, cost: Cost, rows: Chunk, centers: np.ndarray):
        self.cost, self.X, self.centers = cost, rows.X, centers
        self.w = np.ones(rows.X.shape[0]) if rows.w is None else rows.w.astype(np.float64)
        self.at_centers = cost.table(rows.X, centers).astype(np.float64)
        self.without = left_out(cost, self.at_centers)
        self.costs = cost.beside(self.without[0], self.at_centers[:, 0])  # (n,) at all centers together
        self.total = float(self.w @ self.costs)
        self.tried: set[frozenset[tuple[int, int]]] = set()

    def chains(self, rng: np.random.Generator) -> Iterator[tuple[list[int], np.ndarray]]:
        """Numbers of centers, and the rows that replace them: single swaps, the cheapest first, then several at once.

        The candidates are drawn by their cost. A chain begins with any swap, and goes on with the one that is cheapest
        after those before it [1]_: so swaps are chosen that help together, though each alone does not.

        .. [1] Lin & Kernighan (1973), An effective heuristic algorithm for the traveling-salesman problem, Oper. Res.
           21.
        """
        drawn = self.draw(CANDIDATES, rng)
        if len(drawn) == 0:
            return
        rows = self.cost.take(self.X, drawn)
        at_rows, owner = self.cost.table(self.X, rows).astype(np.float64), self.at_centers[drawn].argmin(axis=1)
        moves = different(self._totals(self.without, at_rows), owner, self._limit(1))
        new = [move for move in moves if self._is_new([move], owner)]
        for move in new[:TRIES]:
            self._note([move], owner)
            yield [move[0]], rows[[move[1]]]
        for _ in range(CHAINS if len(moves) > 1 else 0):
            chain = self._chain(moves[rng.integers(len(moves))], 2 + int(rng.integers(LONGEST - 1)), at_rows, owner)
            if len(chain) > 1:
                self._note(chain, owner)
                yield [removed for removed, _ in chain], rows[[row for _, row in chain]]

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Up to `count` different rows, in proportion to their cost; none where all of them are on centers."""
        mass = self.w * self.costs
        able = int(np.count_nonzero(mass))
        if able == 0:
            return np.zeros(0, np.int64)
        return np.sort(rng.choice(len(mass), min(count, able), replace=False, p=mass / mass.sum()))

    def removed(self, count: int, rng: np.random.Generator) -> list[int]:
        """So many different centers, drawn at random: rather those without which the rows cost little more."""
        k = len(self.centers)
        share = self.total / (self.total + k * (self.without @ self.w - self.total))
        chosen: list[int] = rng.choice(k, count, replace=False, p=share / share.sum()).tolist()
        return chosen

    def _chain(
        self, first: tuple[int, int], length: int, at_rows: np.ndarray, owner: np.ndarray
    ) -> list[tuple[int, int]]:
        chain, costs = [first], self.at_centers.copy()
        while len(chain) < min(length, len(self.centers), at_rows.shape[1]):
            removed, row = chain[-1]
            costs[:, removed] = at_rows[:, row]
            totals = self._totals(left_out(self.cost, costs), at_rows)
            totals[[j for j, _ in chain]] = np.inf
            totals[:, [i for _, i in chain]] = np.inf
            moves = different(totals, owner, self._limit(length))
            following = next((move for move in moves if self._is_new([*chain, move], owner)), None)
            if following is None:
                break
            chain.append(following)
        return chain

    def _totals(self, without: np.ndarray, at_rows: np.ndarray) -> np.ndarray:
        """What all rows cost with each candidate in the place of each center (k, candidates)."""
        return np.stack([self.w @ self.cost.beside(others[:, None], at_rows) for others in without])

    def _limit(self, length: int) -> float:
        return (1.0 + FAR * length / len(self.centers)) * self.total

    def _is_new(self, chain: list[tuple[int, int]], owner: np.ndarray) -> bool:
        return _clusters(chain, owner) not in self.tried

    def _note(self, chain: list[tuple[int, int]], owner: np.ndarray) -> None:
        self.tried.add(_clusters(chain, owner))


def _clusters(chain: list[tuple[int, int]], owner: np.ndarray) -> frozenset[tuple[int, int]]:
    """The centers that are removed, and the clusters of the rows that replace them: other rows of these lead as far."""
    return frozenset((removed, int(owner[row])) for removed, row in chain)


def different(totals: np.ndarray, owner: np.ndarray, most: float) -> list[tuple[int, int]]:
    """Swaps (center, candidate) that cost no more than `most`, the cheapest first: one for a center and a cluster."""
    moves: dict[tuple[int, int], tuple[int, int]] = {}
    for place in np.argsort(totals, axis=None, kind="stable"):
        removed, row = divmod(int(place), totals.shape[1])
        if totals[removed, row] > most:
            break
        moves.setdefault((removed, int(owner[row])), (removed, row))
    return list(moves.values())


class Hopeless:
    """A callback that ends a descent which gains too little to reach the objective that there is."""

    def __init__(self, objective: float, hope: float = HOPE, after: int = 0):
        self.objective, self.hope, self.after = objective, hope, after  # `after` that iteration
        self.before, self.given_up = np.inf, False

    def __call__(self, progress: Progress) -> bool:
        gain, self.before = self.before - progress.objective, progress.objective
        self.given_up = progress.iteration > self.after and progress.objective - self.hope * gain > self.objective
        return self.given_up


def left_out(cost: Cost, costs: np.ndarray) -> np.ndarray:
    """What rows cost (k, n) without each of the centers, at all of which they cost `costs` (n, k)."""
    n, k = costs.shape
    before, after = np.full((k, n), np.inf), np.full((k, n), np.inf)
    for j in range(1, k):
        before[j] = cost.beside(before[j - 1], costs[:, j - 1])
        after[k - 1 - j] = cost.beside(after[k - j], costs[:, k - j])
    return cost.beside(before, after)
