"""K-medoids by swaps: FasterPAM, and its variant for the medoid silhouette."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from coterie import machine
from coterie.core.arrays import Array
from coterie.core.rounding import is_lower
from coterie.medoids.distance_table import batches

SLICE = 1 << 17  # distances that a thread evaluates at a time; fewer take less time than starting it

SwapCallback = Callable[[int, float], Any]


@dataclass(frozen=True)
class SwapResult:
    """Medoids, their loss and its history."""

    medoids: Array  # (k,)
    loss: float
    history: tuple[float, ...]  # loss, initially and after every round
    converged: bool
    stopped: bool = False  # by the callback


def medoid_kernels() -> ModuleType:
    """The compiled kernels, which are not loaded with this module."""
    from coterie.kernels.cpu import medoids

    return medoids


class State:
    """Medoids, and the three nearest medoids of every object.

    The loss is the weighted sum of the nearest distances, or of 1 - silhouette: of their ratios to the second nearest.
    """

    def __init__(self, table: Any, w: Array, medoids: Array, silhouette: bool = False):
        m = table.shape[1]
        self.medoids, self.w, self.silhouette = np.array(medoids), w, silhouette
        self.distances = np.ascontiguousarray(table.rows(self.medoids))  # (k, m)
        self.ops = medoid_kernels()
        self.near, self.slots = np.empty((3, m), table.dtype), np.empty((3, m), np.int32)
        self.removal = np.empty(len(medoids))
        self.ops.place(self.distances, -1, self.near, self.slots)
        self.ops.removals(self.near, self.slots, w, silhouette, self.removal)

    @property
    def loss(self) -> float:
        return float(self.ops.loss_of(self.near, self.w, self.silhouette))

    def improve(self, rows: Array, first: int, n_jobs: int | None) -> bool:
        """Swap in candidates from `first` on, with distances `rows`, that lower the loss; return whether one did."""
        change, best = np.empty(len(rows)), np.empty(len(rows), np.int64)
        size = max(1, SLICE // rows.shape[1])
        cuts = [(i, i + size) for i in range(0, len(rows), size)]
        machine.run_in_threads(lambda i, j: self.evaluate(rows[i:j], change[i:j], best[i:j]), cuts, n_jobs)
        return bool(
            self.ops.improve(
                rows, first, self.w, self.silhouette, self.medoids, self.distances, self.near, self.slots,
                self.removal, change, best,
            )
        )  # fmt: skip

    def evaluate(self, rows: Array, change: Array, best: Array) -> None:
        """Write the best swap of each candidate, see `kernels.cpu.medoids.changes`."""
        self.ops.changes(rows, self.near, self.slots, self.w, self.removal, self.silhouette, change, best)


def descend(table: Any, state: State, max_iter: int, n_jobs: int | None, callback: SwapCallback) -> SwapResult:
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
        state = State(table, w, medoids, silhouette=True)
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
