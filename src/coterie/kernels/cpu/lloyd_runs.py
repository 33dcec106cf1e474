"""Many runs of K-means in one call, for tables that fit into the cache of a core: k-means++, then Lloyd's algorithm."""

from typing import NamedTuple

import numpy as np

from coterie.kernels.cpu.center_runs import as_table, copy_centers, descend, new_state, plusplus
from coterie.kernels.cpu.jit import jit


class Runs(NamedTuple):
    """Results of many runs."""

    centers: np.ndarray  # (runs, k, d)
    labels: np.ndarray  # (runs, n) int32
    objectives: np.ndarray  # (runs,) within-cluster sums of squares


def numbers_per_run(k: int, n_candidates: int) -> int:
    """Uniform numbers from which k-means++ draws k centers."""
    return 1 + (k - 1) * n_candidates


def lloyd_runs(
    X: np.ndarray, w: np.ndarray | None, k: int, u: np.ndarray, max_iter: int, tol: float,
    centers: np.ndarray | None = None,
) -> Runs:  # fmt: skip
    """Run K-means once for each row of `u`, in float64.

    `u` (runs, numbers_per_run(k, c)) are uniform in [0, 1): greedy k-means++ has c candidates for each center. With
    initial `centers` (runs, k, d), `u` is not used. A run ends if no label changes, if the squared movement of all
    centers is at most `tol`, or after `max_iter` iterations; its centers are the means of its labels. It depends on its
    own numbers only, so that runs can be computed in several calls.
    """
    n, d = X.shape
    runs = len(u) if centers is None else len(centers)
    initial = np.zeros((0, k, d)) if centers is None else np.ascontiguousarray(centers, np.float64)
    out = Runs(np.empty((runs, k, d)), np.empty((runs, n), np.int32), np.empty(runs))
    numbers = np.ascontiguousarray(u, np.float64)
    run_all(as_table(X, w), numbers, initial, max_iter, float(tol), new_state(n, d, k), *out)
    return out


@jit
def run_all(
    table,  # in   Table
    u,  # in   (runs, 1 + (k - 1) c) uniform in [0, 1)
    initial,  # in   (runs, k, d), or (0, k, d) for k-means++
    max_iter,
    tol,  # squared movement of all centers that ends a run
    state,  # i/o  State
    centers,  # out  (runs, k, d)
    labels,  # out  (runs, n)
    objectives,  # out  (runs,)
):
    """Runs from k-means++, or from initial centers."""
    runs, k = centers.shape[:2]
    for r in range(runs):
        if len(initial):
            copy_centers(initial[r], k, state.centers)
        else:
            plusplus(table, u[r], state)
        objectives[r] = lloyd(table, k, tol, max_iter, np.inf, np.inf, state)
        copy_centers(state.centers, k, centers[r])
        for i in range(len(table.w)):
            labels[r, i] = state.labels[i]


@jit
def lloyd(table, k, tol, max_iter, to_beat, patience, state):
    """Lloyd's algorithm from the centers of `state`, see `descend`; return the objective at the final means."""
    objective = descend(table, k, max_iter, tol, -1.0, to_beat, patience, False, state)[0]
    for j in range(k):  # the objective about the means is less than that about the centers by this amount
        if state.weight[j] > 0:
            for t in range(table.X.shape[1]):
                mean = state.sums[j, t] / state.weight[j]
                objective -= state.weight[j] * (mean - state.centers[j, t]) ** 2
                state.centers[j, t] = mean
    return max(objective, 0.0)
