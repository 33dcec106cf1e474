"""K-medoids by swaps: FasterPAM, and its form for silhouettes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.medoids.distance_table import Array, batches

SLICE = 64  # candidates a thread judges at a time
ROUNDING = 1e-12  # of the loss: what a swap must gain at least

Watch = Callable[[int, float], Any]


@dataclass(frozen=True)
class Found:
    """Medoids, their loss, and the way there."""

    medoids: Array  # (k,)
    loss: float
    history: tuple[float, ...]  # the loss at the start and after every round
    converged: bool
    stopped: bool = False  # by the caller


class Deviations:
    """Medoids, and what every object knows of the nearest. The loss: weighted distances to the nearest medoid."""

    depth = 2
    changes, removals = "swap_changes", "removal_losses"

    def __init__(self, table: Any, w: Array, medoids: Array):
        self.medoids, self.w = np.array(medoids), w
        self.distances = np.ascontiguousarray(table.rows(self.medoids).T)  # (m, k)
        n, m = table.shape
        self.ops = kernels.select("medoids", n, m, len(medoids))
        self.near = np.full((self.depth, table.shape[1]), np.inf, table.dtype)
        self.slot = np.full(self.near.shape, -1, np.int32)
        self.removal = np.empty(len(medoids))
        self._update(0)

    @property
    def loss(self) -> float:
        return float(self.w @ self.near[0].astype(np.float64))

    def improve(self, rows: Array, first: int, n_jobs: int | None) -> bool:
        """Whether one of the candidates, whose distances are `rows` and whose numbers start at `first`, was taken."""
        change, best = np.empty(len(rows)), np.empty(len(rows), np.int64)
        cuts = [(i, i + SLICE) for i in range(0, len(rows), SLICE)]
        for _ in machine.in_threads(lambda i, j: self._judge(rows[i:j], change[i:j], best[i:j]), cuts, n_jobs):
            pass
        own = self.medoids - first
        change[own[(own >= 0) & (own < len(rows))]] = 0
        enough, swapped = -ROUNDING * self.loss, False
        for c in np.flatnonzero(change < enough):
            if swapped:
                self._judge(rows[c : c + 1], change[c : c + 1], best[c : c + 1])
            if change[c] < enough:
                place = int(best[c])
                self.medoids[place], self.distances[:, place] = first + int(c), rows[c]
                self._update(place)
                swapped = True
        return swapped

    def without_least(self) -> Array:
        """The medoids but for the one whose removal costs least."""
        return np.delete(self.medoids, self.removal.argmin())

    def _judge(self, rows: Array, change: Array, best: Array) -> None:
        getattr(self.ops, self.changes)(rows, self.near, self.slot, self.w, self.removal, change, best)

    def _update(self, place: int) -> None:
        self.ops.swap(self.distances, place, self.near, self.slot)
        getattr(self.ops, self.removals)(self.near, self.slot, self.w, self.removal)


class Silhouettes(Deviations):
    """The same for the weighted sum of 1 less the silhouette of medoids: nearest by second nearest distance."""

    depth = 3
    changes, removals = "silhouette_changes", "silhouette_removals"

    @property
    def loss(self) -> float:
        nearest, second = self.near[:2].astype(np.float64)
        return float(self.w @ np.divide(nearest, second, out=np.zeros(len(nearest)), where=nearest > 0))


def descend(table: Any, state: Deviations, max_iter: int, n_jobs: int | None, watch: Watch) -> Found:
    """Swaps medoids for other candidates, the first that helps, until none does [1]_ [2]_.

    A batch of candidates is judged with the medoids there are; those that help are then taken in turn, judged anew
    after each swap. So the answer does not depend on how many threads judge. A round looks at every candidate once.

    .. [1] Schubert & Rousseeuw (2021), Fast and eager k-medoids clustering: O(k) runtime improvement of the PAM, CLARA,
       and CLARANS algorithms, Inf. Syst. 101.
    .. [2] Lenssen & Schubert (2024), Medoid silhouette clustering with automatic cluster number selection, Inf. Syst.
       120.
    """
    history, parts = [state.loss], batches(table.shape, table.dtype.itemsize)
    quiet = 0  # batches in a row that had nothing better
    stopped = False
    for _ in range(max_iter):
        for part in parts:
            quiet = 0 if state.improve(table.rows(part), part.start, n_jobs) else quiet + 1
            if quiet == len(parts):
                break
        history.append(state.loss)
        stopped = bool(watch(len(history) - 1, state.loss))
        if stopped or quiet == len(parts):
            break
    return Found(state.medoids, state.loss, tuple(history), quiet == len(parts), stopped)


def descend_to_two(table: Any, w: Array, medoids: Array, max_iter: int, n_jobs: int | None, watch: Watch) -> Found:
    """The best by silhouette of a descent from `medoids`, one with the medoid fewer that matters least, and so on [1]_.

    .. [1] Lenssen & Schubert (2024), Medoid silhouette clustering with automatic cluster number selection, Inf. Syst.
       120.
    """
    best: Found | None = None
    history: list[float] = []
    while True:
        state = Silhouettes(table, w, medoids)
        found = descend(table, state, max_iter, n_jobs, watch)
        history += found.history
        if best is None or found.loss < best.loss:
            best = found
        if len(medoids) == 2 or found.stopped:
            return replace(best, history=tuple(history), stopped=found.stopped)
        medoids = state.without_least()


def single(table: Any, w: Array, start: Array, n_jobs: int | None) -> Found:
    """One medoid needs no search: the candidate whose distances sum to least."""
    losses = total_distances(table, w, n_jobs)
    best = int(losses.argmin())
    return Found(np.array([best]), float(losses[best]), (float(losses[start[0]]), float(losses[best])), True)


def total_distances(table: Any, w: Array, n_jobs: int | None) -> Array:
    """The loss of each candidate as the only medoid."""
    parts = [(part,) for part in batches(table.shape, table.dtype.itemsize)]
    with machine.one_blas_thread:
        totals = list(machine.in_threads(lambda part: table.rows(part).astype(np.float64) @ w, parts, n_jobs))
    return np.concatenate(totals)
