"""K-medoids by swaps: FasterPAM, and its variant for the medoid silhouette."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie import kernels, machine
from coterie.core.arrays import Array
from coterie.core.rounding import OF_SUMS, is_lower
from coterie.medoids.distance_table import batches

SLICE = 1 << 17  # distances that a thread evaluates at a time; fewer take less time than starting it
CERTAIN = 1e-9  # relative to the sums that it is the difference of: larger gains are not due to rounding

SwapCallback = Callable[[int, float], Any]


@dataclass(frozen=True)
class SwapResult:
    """Medoids, their loss and its history."""

    medoids: Array  # (k,)
    loss: float
    history: tuple[float, ...]  # loss, initially and after every round
    converged: bool
    stopped: bool = False  # by the callback


class Deviations:
    """Medoids, and the nearest medoids of every object. The loss is the weighted sum of the nearest distances."""

    depth = 2
    changes, removals = "swap_changes", "removal_losses"

    def __init__(self, table: Any, w: Array, medoids: Array):
        self.medoids, self.w = np.array(medoids), w
        self.distances = np.ascontiguousarray(table.rows(self.medoids).T)  # (m, k)
        n, m = table.shape
        self.ops = kernels.select("medoids", n, m, len(medoids))
        self.near = np.full((self.depth, table.shape[1]), np.inf, table.dtype)
        self.slots = np.full(self.near.shape, -1, np.int32)
        self.removal = np.empty(len(medoids))
        self._update(0)

    @property
    def loss(self) -> float:
        return float(self.w @ self.near[0].astype(np.float64))

    def improve(self, rows: Array, first: int, n_jobs: int | None) -> bool:
        """Swap in candidates from `first` on, with distances `rows`, that lower the loss; return whether one did."""
        change, best = np.empty(len(rows)), np.empty(len(rows), np.int64)
        size = max(1, SLICE // rows.shape[1])
        cuts = [(i, i + size) for i in range(0, len(rows), size)]
        machine.run_in_threads(lambda i, j: self._evaluate(rows[i:j], change[i:j], best[i:j]), cuts, n_jobs)
        positions = self.medoids - first
        change[positions[(positions >= 0) & (positions < len(rows))]] = 0
        loss, swapped = self.loss, False
        threshold = -OF_SUMS * loss
        for c in np.flatnonzero(change < threshold):
            if swapped:
                self._evaluate(rows[c : c + 1], change[c : c + 1], best[c : c + 1])
            if change[c] < threshold:
                slot, medoid = int(best[c]), first + int(c)
                if change[c] < -CERTAIN * (loss + abs(self.removal[slot])):
                    self._swap(slot, medoid, rows[c])
                    swapped = True
                else:
                    swapped |= self._swap_if_lower(slot, medoid, rows[c])
        return swapped

    def _swap_if_lower(self, slot: int, medoid: int, distances: Array) -> bool:
        """Swap a medoid, and swap back if the loss is not lower, because the gain was only rounding."""
        loss = self.loss
        previous, previous_distances = int(self.medoids[slot]), self.distances[:, slot].copy()
        self._swap(slot, medoid, distances)
        if is_lower(self.loss, loss):
            return True
        self._swap(slot, previous, previous_distances)
        return False

    def _swap(self, slot: int, medoid: int, distances: Array) -> None:
        self.medoids[slot], self.distances[:, slot] = medoid, distances
        self._update(slot)

    def _evaluate(self, rows: Array, change: Array, best: Array) -> None:
        getattr(self.ops, self.changes)(rows, self.near, self.slots, self.w, self.removal, change, best)

    def _update(self, slot: int) -> None:
        self.ops.swap(self.distances, slot, self.near, self.slots)
        getattr(self.ops, self.removals)(self.near, self.slots, self.w, self.removal)


class Silhouettes(Deviations):
    """The loss is the weighted sum of 1 - silhouette: the nearest divided by the second nearest distance."""

    depth = 3
    changes, removals = "silhouette_changes", "silhouette_removals"

    @property
    def loss(self) -> float:
        nearest, second = self.near[:2].astype(np.float64)
        return float(self.w @ np.divide(nearest, second, out=np.zeros(len(nearest)), where=nearest > 0))


def descend(table: Any, state: Deviations, max_iter: int, n_jobs: int | None, callback: SwapCallback) -> SwapResult:
    """Swap medoids for candidates that lower the loss, until none does [1]_ [2]_.

    A batch of candidates is evaluated with the current medoids. Those that help are then taken in turn, and evaluated
    again after each swap. The result therefore does not depend on the number of threads. A round evaluates every
    candidate once.

    .. [1] Schubert & Rousseeuw (2021), Fast and eager k-medoids clustering: O(k) runtime improvement of the PAM, CLARA,
       and CLARANS algorithms, Inf. Syst. 101.
    .. [2] Lenssen & Schubert (2024), Medoid silhouette clustering with automatic cluster number selection, Inf. Syst.
       120.
    """
    history, parts = [state.loss], batches(table.shape, table.dtype.itemsize)
    unchanged = 0  # consecutive batches without a swap
    stopped = False
    for _ in range(max_iter):
        for part in parts:
            unchanged = 0 if state.improve(table.rows(part), part.start, n_jobs) else unchanged + 1
            if unchanged == len(parts):
                break
        history.append(state.loss)
        stopped = bool(callback(len(history) - 1, state.loss))
        if stopped or unchanged == len(parts):
            break
    return SwapResult(state.medoids, state.loss, tuple(history), unchanged == len(parts), stopped)


def descend_to_two(
    table: Any, w: Array, medoids: Array, max_iter: int, n_jobs: int | None, callback: SwapCallback
) -> SwapResult:
    """Best result by silhouette of descents with decreasing numbers of medoids, from `medoids` down to two [1]_.

    After each descent the medoid whose removal costs least is removed.

    .. [1] Lenssen & Schubert (2024), Medoid silhouette clustering with automatic cluster number selection, Inf. Syst.
       120.
    """
    best: SwapResult | None = None
    history: list[float] = []
    while True:
        state = Silhouettes(table, w, medoids)
        result = descend(table, state, max_iter, n_jobs, callback)
        history += result.history
        if best is None or is_lower(result.loss, best.loss):
            best = result
        if len(medoids) == 2 or result.stopped:
            return replace(best, history=tuple(history), stopped=result.stopped)
        medoids = np.delete(state.medoids, state.removal.argmin())


def single(table: Any, w: Array, start: Array, n_jobs: int | None) -> SwapResult:
    """Best single medoid: the candidate with the smallest sum of distances."""
    losses = total_distances(table, w, n_jobs)
    best = int(losses.argmin())
    return SwapResult(np.array([best]), float(losses[best]), (float(losses[start[0]]), float(losses[best])), True)


def total_distances(table: Any, w: Array, n_jobs: int | None) -> Array:
    """Loss of each candidate as the only medoid."""
    parts = [(part,) for part in batches(table.shape, table.dtype.itemsize)]
    with machine.one_blas_thread:
        totals = machine.run_in_threads(lambda part: table.rows(part).astype(np.float64) @ w, parts, n_jobs)
    return np.concatenate(totals)
