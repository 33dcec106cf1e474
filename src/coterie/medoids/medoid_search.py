"""Search for a better optimum of K-medoids: replace some medoids at random, and continue with swaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie.core.arrays import Array
from coterie.medoids.fasterpam import ROUNDING, SwapResult

STARTS, JUMPS = 3, 40  # maximum number of initialisations and of jumps of a short search
LONG_JUMPS = 160  # jumps of a long search, and of a short one for a small table
SMALL = 1 << 14  # distances of a small table
WORK = 1 << 28  # approximate number of distances that a short search uses
ROUNDS = 3  # typical number of passes over all candidates in one descent
MAX_REPLACED = 3  # maximum number of medoids that are replaced together
NEW_START = 4  # every so many jumps, there is a new start instead


class Effort(NamedTuple):
    """Number of descents of a search."""

    starts: int  # initialisations, for n_init="auto"
    jumps: int  # random jumps, each followed by a descent


NO_SEARCH = Effort(1, 0)


def effort_of(search: str, shape: tuple[int, int]) -> Effort:
    """Effort of a search for a table of this shape. 'auto' does not search a large table."""
    if search == "fast":
        return Effort(STARTS, LONG_JUMPS)
    if search == "none":
        return NO_SEARCH
    n, m = shape
    jumps = LONG_JUMPS if n * m <= SMALL else JUMPS
    descents = min(WORK // (ROUNDS * n * m), STARTS + jumps)
    return Effort(max(1, min(STARTS, descents)), max(0, descents - STARTS))


def jump_and_descend(
    best: SwapResult, table: Any, w: Array, jumps: int, rng: np.random.Generator, start: Callable[[], Array],
    descend: Callable[[Array], SwapResult],
) -> SwapResult:  # fmt: skip
    """Best result of `jumps` descents, each from a random jump away from the best so far [1]_, or from a new `start`.

    On some tables more starts than jumps end in the best optimum.

    .. [1] Lourenço, Martin & Stützle (2003), Iterated local search, Handbook of Metaheuristics.
    """
    for i in range(1, jumps + 1):
        medoids = random_jump(best.medoids, table, w, rng)
        if best.stopped or medoids is None:
            break
        result = descend(medoids if i % NEW_START else start())
        if result.loss < (1.0 - ROUNDING) * best.loss:
            best = result
        elif result.stopped:
            best = replace(best, stopped=True)
    return best


def random_jump(medoids: Array, table: Any, w: Array, rng: np.random.Generator) -> Array | None:
    """Replace some medoids by objects sampled by their distance; None if every object is on a medoid."""
    mass = w * table.rows(medoids).min(axis=0).astype(np.float64)
    mass[np.isin(table.object_indices, medoids)] = 0.0
    positive = int(np.count_nonzero(mass))
    if positive == 0:
        return None
    count = min(1 + int(rng.integers(MAX_REPLACED)), positive, len(medoids))
    objects = rng.choice(len(mass), count, replace=False, p=mass / mass.sum())
    new_medoids = np.array(medoids)
    new_medoids[rng.choice(len(new_medoids), count, replace=False)] = table.object_indices[objects]
    return new_medoids
