"""Initialisation of K-medoids."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.core.rounding import nearest as nearest_index
from coterie.medoids.distance_table import batches
from coterie.medoids.fasterpam import total_distances


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
