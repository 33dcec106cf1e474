"""Search for a better optimum of K-medoids: replace some medoids at random, and continue with swaps."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.core.rounding import first_lowest, is_lower
from coterie.core.rounding import nearest as nearest_index
from coterie.medoids.distance_table import StoredDistances, batches, weighted_sample
from coterie.medoids.fasterpam import SwapResult, total_distances

STARTS, JUMPS = 3, 40  # maximum number of initialisations and of jumps of a short search
LONG_JUMPS = 160  # jumps of a long search, and of a short one for a small table
SMALL = 1 << 14  # distances of a small table
WORK = 1 << 28  # approximate number of distances that a short search uses
ROUNDS = 3  # typical number of passes over all candidates in one descent
MAX_REPLACED = 3  # maximum number of medoids that are replaced together
NEW_START = 4  # every so many jumps, there is a new start instead
SAMPLE, PER_MEDOID = 700, 10  # minimum number of objects in the sample of a large table, in total and for each medoid
SAMPLE_DISTANCES = 3 << 19  # distances of a sample to all objects, if it is larger than that
FINALISTS = 4  # solutions of the sample that are compared with all objects
CLOSE = 1.04  # maximum loss of a finalist on the sample, relative to the best
WIDE, CANDIDATES = 4.0, 200  # finalists: nearest objects of a medoid, in objects of the sample; number of candidates
NARROW, NEAR_DISTANCES = 2.0, 1 << 23  # the same for the best of them; maximum number of distances


class Effort(NamedTuple):
    """Number of descents of a search."""

    starts: int  # initialisations, for n_init="auto"
    jumps: int  # random jumps, each followed by a descent
    sample: int = 0  # objects that are searched for the only initialisation; 0 if all are searched
    sample_jumps: int = 0


NO_SEARCH = Effort(1, 0)


def effort_of(search: str, shape: tuple[int, int], k: int) -> Effort:
    """Effort of a search for k medoids in a table of this shape. 'auto' searches a sample of a large table."""
    if search == "fast":
        return Effort(STARTS, LONG_JUMPS)
    if search == "none":
        return NO_SEARCH
    n, m = shape
    jumps, descent = LONG_JUMPS if n * m <= SMALL else JUMPS, ROUNDS * n * m
    sample = max(SAMPLE, SAMPLE_DISTANCES // m, PER_MEDOID * k)
    if (STARTS + jumps) * descent <= WORK or sample >= m:
        descents = min(WORK // descent, STARTS + jumps)
        return Effort(max(1, min(STARTS, descents)), max(0, descents - STARTS))
    descents = min(WORK // (ROUNDS * sample**2), STARTS + JUMPS)
    rest = 3 * WORK // 4 - descents * ROUNDS * sample**2  # the last quarter is for the comparison with all objects
    return Effort(1, max(0, rest // descent - 1), sample, max(0, descents - STARTS))


def search_sample(
    table: Any, w: Array, k: int, effort: Effort, rng: np.random.Generator, n_jobs: int | None,
    descend: Callable[[Any, Array, Array], SwapResult],
) -> Array:  # fmt: skip
    """Initial medoids of a large table, from a search of a sample in which objects stand for those nearest to them.

    The sample cannot tell which of several good solutions is the best. So the best few are improved by candidates near
    their medoids, with the loss of all objects, and compared.
    """
    reduced, weights, candidates = weighted_sample(table, w, effort.sample, rng)
    results: list[SwapResult] = []

    def descend_in_sample(medoids: Array) -> SwapResult:
        results.append(descend(reduced, weights, medoids))
        return results[-1]

    start = partial(lab, reduced, weights, k, rng, n_jobs)
    best = first_lowest((descend_in_sample(start()) for _ in range(STARTS)), attrgetter("loss"))
    jump_and_descend(best, reduced, weights, effort.sample_jumps, rng, start, descend_in_sample)
    near = partial(descend_nearby, table, w, per_object=table.shape[1] / effort.sample, rng=rng, descend=descend)
    finalists = [near(candidates[result.medoids], WIDE, CANDIDATES) for result in _distinct(results)]
    medoids, _ = first_lowest(finalists, itemgetter(1))
    return near(medoids, NARROW, NEAR_DISTANCES // table.shape[1])[0]


def _distinct(results: list[SwapResult]) -> list[SwapResult]:
    """The best few results with different losses."""
    best: list[SwapResult] = []
    for result in sorted(results, key=lambda result: result.loss):
        if not best or (is_lower(best[-1].loss, result.loss) and result.loss <= CLOSE * best[0].loss):
            best.append(result)
    return best[:FINALISTS]


def descend_nearby(
    table: Any, w: Array, medoids: Array, reach: float, count: int, per_object: float, rng: np.random.Generator,
    descend: Callable[[Any, Array, Array], SwapResult],
) -> tuple[Array, float]:  # fmt: skip
    """Medoids and loss after a descent with about `count` candidates among the nearest objects of each medoid.

    These are `reach` times `per_object` objects; a random sample of them if they are too many.
    """
    k, m = len(medoids), table.shape[1]
    nearest = min(m, max(1, int(reach * per_object)))
    objects = np.argpartition(table.rows(medoids), nearest - 1, axis=1)[:, :nearest]
    if nearest * k > count:
        objects = rng.permuted(objects, axis=1)[:, : max(1, count // k)]
    candidates = np.union1d(table.object_indices[objects], medoids)
    near = StoredDistances(table.rows(candidates), np.full(m, -1))
    result = descend(near, w, np.searchsorted(candidates, medoids))
    return candidates[result.medoids], result.loss


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
        if is_lower(result.loss, best.loss):
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


# Initialisation of K-medoids.


def build(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """BUILD [1]_: the best single medoid, then repeatedly the candidate that lowers the loss most.

    It is deterministic and takes O(n m k).

    .. [1] Kaufman & Rousseeuw (1987), Clustering by means of medoids.
    """
    chosen = [_smallest(total_distances(table, w, n_jobs))]
    nearest = table.rows(np.array(chosen))[0].copy()
    parts = [(part,) for part in batches(table.shape, table.dtype.itemsize)]
    for _ in range(1, k):
        with machine.one_blas_thread:
            pieces = list(
                machine.in_threads(lambda part, current=nearest: _gains(table, part, current, w), parts, n_jobs)
            )
        _choose_best(table, chosen, np.concatenate(pieces), np.arange(table.shape[0]), nearest)
    return np.array(chosen)


def lab(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """BUILD with a random sample of 10 + sqrt(n) candidates for each medoid (LAB [1]_). O(m k sqrt(n)).

    .. [1] Schubert & Rousseeuw (2021), Fast and eager k-medoids clustering, Inf. Syst. 101.
    """
    n, m = table.shape
    size = min(n, 10 + int(np.ceil(np.sqrt(n))))
    chosen: list[int] = []
    nearest = np.full(m, np.inf)
    for _ in range(k):
        remaining = np.setdiff1d(np.arange(n), chosen)
        sample = np.sort(rng.choice(remaining, min(size, len(remaining)), replace=False))
        if chosen:
            _choose_best(table, chosen, _gains(table, sample, nearest, w), sample, nearest)
        else:
            losses = table.rows(sample).astype(np.float64) @ w
            chosen.append(int(sample[_smallest(losses)]))
            nearest = table.rows(np.array(chosen))[0].copy()
    return np.array(chosen)


def plusplus(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """Draw each new medoid in proportion to its distance from the chosen ones (k-medoids++ [1]_). O(m k).

    It uses distances, not their squares, because the loss is a sum of distances.

    .. [1] Arthur & Vassilvitskii (2007), k-means++: the advantages of careful seeding, SODA.
    """
    chosen = [_draw_one(w, rng, [])]
    nearest = table.rows(table.object_indices[chosen])[0].astype(np.float64)
    while len(chosen) < k:
        chosen.append(_draw_one(w * nearest, rng, chosen))
        nearest = np.minimum(nearest, table.rows(table.object_indices[chosen[-1:]])[0])
    return table.object_indices[chosen]


def random(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """Different candidates with equal probability."""
    return rng.choice(table.shape[0], k, replace=False)


METHODS = {"build": build, "lab": lab, "k-medoids++": plusplus, "random": random}


def _gains(table: Any, candidates: Any, nearest: Array, w: Array) -> Array:
    rows = table.rows(candidates)
    gain = np.empty(len(rows))
    kernels.select("medoids", len(rows), rows.shape[1], 1).gains(rows, nearest, w, gain)
    return gain


def _choose_best(table: Any, chosen: list[int], gain: Array, candidates: Array, nearest: Array) -> None:
    """Add the candidate with the largest gain to `chosen`, and update `nearest`."""
    gain[np.isin(candidates, chosen)] = -1
    chosen.append(int(candidates[_smallest(-gain)]))
    np.minimum(nearest, table.rows(np.array(chosen[-1:]))[0], out=nearest)


def _smallest(losses: Array) -> int:
    """Index of the smallest loss, the first of those that are equal up to rounding."""
    return int(nearest_index(losses[None])[0])


def _draw_one(share: Array, rng: np.random.Generator, chosen: list[int]) -> int:
    """Draw one index in proportion to `share`; one that is not chosen yet if all shares are zero."""
    share = share.astype(np.float64)
    share[chosen] = 0
    if share.sum() == 0:
        share = np.ones(len(share))
        share[chosen] = 0
    return int(rng.choice(len(share), p=share / share.sum()))
