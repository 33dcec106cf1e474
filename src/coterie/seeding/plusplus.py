"""k-means++: each new center is a row, drawn in proportion to what it costs at those there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coterie import kernels
from coterie.core.protocols import Chunk, Engine, Source
from coterie.core.stats import Stats
from coterie.seeding.costs import SQUARES, WORK, Cost


@dataclass(frozen=True)
class Draws(Stats):
    """The potential with each candidate added, and rows drawn for the next round.

    Each chunk draws rows of its own. Which chunk's row stands for all is decided by a race: the first arrival of
    chunks whose arrivals come at the rate of their potential is a draw in proportion to it, and the earlier of two
    arrivals is again such a draw. So draws add up like sums do, on any engine.
    """

    potential: Any  # (1 + candidates,)
    arrival: Any  # (m,)
    rows: Any  # (m, d)
    cost: Any  # (m,) of each row at the centers there are

    def __add__(self, other: Draws) -> Draws:
        sooner = self.arrival <= other.arrival
        return Draws(
            self.potential + other.potential,
            np.where(sooner, self.arrival, other.arrival),
            np.where(sooner[:, None], self.rows, other.rows),
            np.where(sooner, self.cost, other.cost),
        )


def plusplus(
    source: Source,
    engine: Engine,
    rng: np.random.Generator,
    k: int,
    unit: float,
    n_candidates: int | None = None,
    chosen: Any = None,
    cost: Cost = SQUARES,
) -> np.ndarray[Any, Any]:
    r"""Centers by greedy k-means++ [1]_: the best of several candidates in each round.

    One pass a center. While a pass scores the candidates of this round it also draws rows for the next, in proportion
    to the costs before this round's winner is known; each is then kept with probability (cost with the winner)
    / (cost without), which makes it a draw from the right distribution. If too few are left, a pass draws anew.
    Centers `chosen` before (f, d) count as centers there are, and are not returned. Rows are drawn, and candidates
    compared, by `cost`: the cost that the model minimises.

    .. [1] Arthur & Vassilvitskii (2007), k-means++: the advantages of careful seeding, SODA.
    """
    wanted = n_candidates or 2 + int(np.log(k))
    search = _Search(source, engine, rng, unit, drawn=2 * wanted + 6, begun=chosen is not None, cost=cost)
    centers = [search.draw_row()] if chosen is None else list(chosen.astype(source.dtype, copy=False))
    given = 0 if chosen is None else len(centers)
    k += given
    for center in centers[:-1]:
        search.draw_from(center)
    candidates = search.draw_from(centers[-1])[:wanted]
    while len(centers) < k and len(candidates):
        found = search.score(centers[-1], candidates)
        if found.potential[0] == 0:
            break
        centers.append(candidates[int(np.argmin(found.potential[1:]))])
        if len(centers) < k:
            candidates = search.still_right(found, centers[-1])[:wanted]
            if len(candidates) < wanted:
                candidates = search.draw_from(centers[-1])[:wanted]
    centers += [centers[0]] * (k - len(centers))  # fewer distinct rows than centers: the rest coincide
    return np.stack(centers[given:])


class _Search:
    """The passes of one seeding; the cost of every row at the centers there are stays with its part."""

    def __init__(
        self,
        source: Source,
        engine: Engine,
        rng: np.random.Generator,
        unit: float,
        drawn: int,
        begun: bool = False,
        cost: Cost = SQUARES,
    ):
        self.source, self.engine, self.rng, self.unit, self.drawn = source, engine, rng, unit, drawn
        self.cost, self.applied = cost, np.empty((0, source.shape[1]))
        self.memos = source.room(np.inf if begun else 1, source.dtype)

    def draw_row(self) -> np.ndarray[Any, Any]:
        """One row, in proportion to the weights."""
        return self._pass(None, 1).rows[0]

    def draw_from(self, center: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Rows drawn by their cost once `center` is one of the centers; none if every row is a center."""
        found = self._pass(center[None], self.drawn)
        return found.rows[np.isfinite(found.arrival)]

    def score(self, center: np.ndarray[Any, Any], candidates: np.ndarray[Any, Any]) -> Draws:
        return self._pass(np.concatenate([center[None], candidates]), self.drawn)

    def still_right(self, found: Draws, center: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Those of the rows drawn before `center` was chosen that pass for rows drawn after it."""
        costs = self.cost.table(found.rows, center[None])[:, 0] / self.unit**self.cost.degree
        kept = self.rng.random(self.drawn) * found.cost < self.cost.beside(found.cost, costs)
        return found.rows[kept & np.isfinite(found.arrival)]

    def _pass(self, points: np.ndarray[Any, Any] | None, drawn: int) -> Draws:
        again = points is not None and np.array_equal(points[:1], self.applied, equal_nan=True)
        step = partial(_step, points, again, self.unit, int(self.rng.integers(2**63)), drawn, self.cost)
        stats, self.memos = self.engine.scan(step, self.source, self.memos)
        if points is not None:
            self.applied = points[:1]
        return stats


def _step(
    points: np.ndarray[Any, Any] | None,
    again: bool,
    unit: float,
    seed: int,
    drawn: int,
    cost: Cost,
    chunk: Chunk,
    closest: Any,
) -> tuple[Draws, np.ndarray[Any, Any]]:
    ops = kernels.for_centers(chunk.X, WORK)
    if closest is None:
        closest = np.full(chunk.X.shape[0], 1 if points is None else np.inf, chunk.X.dtype)
    # without a center every row is as far as any other
    potential = np.zeros(1) if points is None else cost.spread(chunk.X, chunk.w, unit, points, closest, again)
    u = uniform(seed, chunk.part, 2 * drawn)
    total, rows = ops.draw(closest, chunk.w, u[:drawn])
    draws = Draws(potential, *drawn_rows(chunk.X, closest, total, rows, u[drawn:], cost.take))
    if points is None:
        closest.fill(np.inf)
    return draws, closest


def drawn_rows(
    X: Any,  # (n, d)
    closest: np.ndarray[Any, Any],  # (n,)
    total: float,  # the potential of the chunk
    rows: np.ndarray[Any, Any],  # (m,) drawn in proportion to it, if it is above 0
    u: np.ndarray[Any, Any],  # (m,) uniform numbers
    take: Callable[..., Any],
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Arrivals (m,), rows (m, d) and their squares (m,); a chunk without potential, or without rows, never arrives."""
    if not total > 0:
        return np.full(len(u), np.inf), np.zeros((len(u), X.shape[1]), X.dtype), np.zeros(len(u))
    return -np.log(u) / total, take(X, rows), closest[rows].astype(np.float64)


def uniform(seed: int, part: int, size: int) -> np.ndarray[Any, Any]:
    """Numbers in (0, 1) made of seed and part by SplitMix64 [1]_: a generator would take longer to make than to use.

    .. [1] Steele, Lea & Flood (2014), Fast splittable pseudorandom number generators, OOPSLA.
    """
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.arange(1, size + 1, dtype=np.uint64) + np.uint64(part << 32)) * _GAMMA
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(12)) * 2.0**-52 + 2.0**-53


_GAMMA = np.uint64(0x9E3779B97F4A7C15)
