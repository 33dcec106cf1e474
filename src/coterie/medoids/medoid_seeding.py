"""Where K-medoids starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.medoids.distance_table import Array, batches
from coterie.medoids.fasterpam import total_distances


def build(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """The best single medoid, then whichever candidate helps most, one after the other [1]_. O(n m k); no chance.

    .. [1] Kaufman & Rousseeuw (1987), Clustering by means of medoids.
    """
    chosen = [int(total_distances(table, w, n_jobs).argmin())]
    nearest = table.rows(np.array(chosen))[0].copy()
    parts = [(part,) for part in batches(table.shape, table.dtype.itemsize)]
    for _ in range(1, k):
        with machine.one_blas_thread:
            pieces = list(machine.in_threads(lambda part, now=nearest: _gains(table, part, now, w), parts, n_jobs))
        _add(table, chosen, np.concatenate(pieces), np.arange(table.shape[0]), nearest)
    return np.array(chosen)


def lab(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """BUILD with a sample of the candidates, 10 + the root of their number, for each medoid [1]_. O(m k root n).

    .. [1] Schubert & Rousseeuw (2021), Fast and eager k-medoids clustering, Inf. Syst. 101.
    """
    n, m = table.shape
    size = min(n, 10 + int(np.ceil(np.sqrt(n))))
    chosen: list[int] = []
    nearest = np.full(m, np.inf)
    for _ in range(k):
        free = np.setdiff1d(np.arange(n), chosen)
        sample = np.sort(rng.choice(free, min(size, len(free)), replace=False))
        if chosen:
            _add(table, chosen, _gains(table, sample, nearest, w), sample, nearest)
        else:
            losses = table.rows(sample).astype(np.float64) @ w
            chosen.append(int(sample[losses.argmin()]))
            nearest = table.rows(np.array(chosen))[0].copy()
    return np.array(chosen)


def plusplus(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """Each new medoid is an object drawn in proportion to its distance from those there are [1]_. O(m k).

    Distances, not their squares, for they are what the loss sums.

    .. [1] Arthur & Vassilvitskii (2007), k-means++: the advantages of careful seeding, SODA.
    """
    drawn = [_draw(w, rng, [])]
    nearest = table.rows(table.own[drawn])[0].astype(np.float64)
    while len(drawn) < k:
        drawn.append(_draw(w * nearest, rng, drawn))
        nearest = np.minimum(nearest, table.rows(table.own[drawn[-1:]])[0])
    return table.own[drawn]


def random(table: Any, w: Array, k: int, rng: np.random.Generator, n_jobs: int | None) -> Array:
    """Different candidates, each as likely as any other."""
    return rng.choice(table.shape[0], k, replace=False)


METHODS = {"build": build, "lab": lab, "k-medoids++": plusplus, "random": random}


def _gains(table: Any, which: Any, nearest: Array, w: Array) -> Array:
    rows = table.rows(which)
    gain = np.empty(len(rows))
    kernels.select("medoids", len(rows), rows.shape[1], 1).gains(rows, nearest, w, gain)
    return gain


def _add(table: Any, chosen: list[int], gain: Array, candidates: Array, nearest: Array) -> None:
    """The candidate that gains most, of those not chosen yet, joins them."""
    gain[np.isin(candidates, chosen)] = -1
    chosen.append(int(candidates[gain.argmax()]))
    np.minimum(nearest, table.rows(np.array(chosen[-1:]))[0], out=nearest)


def _draw(share: Array, rng: np.random.Generator, chosen: list[int]) -> int:
    """One in proportion to `share`; one not yet chosen where all shares are nil."""
    share = share.astype(np.float64)
    share[chosen] = 0
    if share.sum() == 0:
        share = np.ones(len(share))
        share[chosen] = 0
    return int(rng.choice(len(share), p=share / share.sum()))
