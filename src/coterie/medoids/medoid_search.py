"""A search past the local optima of swaps: some medoids are replaced at random, and swaps go on from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from coterie.medoids.distance_table import Array
from coterie.medoids.fasterpam import ROUNDING, Found

STARTS, JUMPS = 3, 40  # of a short search at most: descents from a start, and from a jump
LONG_JUMPS = 100  # of a long search
WORK = 1 << 28  # distances that a short search looks at, about
ROUNDS = 3  # through all candidates that a descent takes, about
MOST = 3  # medoids that are replaced together, at most


class Effort(NamedTuple):
    """How many descents a search takes."""

    starts: int  # descents from a start, where n_init="auto"
    jumps: int  # descents from a jump


NO_SEARCH = Effort(1, 0)


def effort_of(search: str, shape: tuple[int, int]) -> Effort:
    """The effort of a search of a table of that shape: of a large one, 'auto' is none."""
    if search == "fast":
        return Effort(STARTS, LONG_JUMPS)
    if search == "none":
        return NO_SEARCH
    n, m = shape
    descents = min(WORK // (ROUNDS * n * m), STARTS + JUMPS)
    return Effort(max(1, min(STARTS, descents)), max(0, descents - STARTS))


def improved(
    best: Found, table: Any, w: Array, jumps: int, rng: np.random.Generator, descend: Callable[[Array], Found]
) -> Found:
    """The best of so many descents, each from a random jump away from the best so far [1]_.

    .. [1] Lourenço, Martin & Stützle (2003), Iterated local search, Handbook of Metaheuristics.
    """
    for _ in range(jumps):
        medoids = jumped(best.medoids, table, w, rng)
        if best.stopped or medoids is None:
            break
        found = descend(medoids)
        if found.loss < (1.0 - ROUNDING) * best.loss:
            best = found
        elif found.stopped:
            best = replace(best, stopped=True)
    return best


def jumped(medoids: Array, table: Any, w: Array, rng: np.random.Generator) -> Array | None:
    """Up to `MOST` medoids replaced by objects drawn by their distance; None where every object is on a medoid."""
    mass = w * table.rows(medoids).min(axis=0).astype(np.float64)
    mass[np.isin(table.own, medoids)] = 0.0
    able = int(np.count_nonzero(mass))
    if able == 0:
        return None
    count = min(1 + int(rng.integers(MOST)), able, len(medoids))
    drawn = rng.choice(len(mass), count, replace=False, p=mass / mass.sum())
    made = np.array(medoids)
    made[rng.choice(len(made), count, replace=False)] = table.own[drawn]
    return made
