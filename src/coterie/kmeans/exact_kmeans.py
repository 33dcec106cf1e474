"""K-means to the global optimum: dynamic programming for one column, branch and bound for a few rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels
from coterie.base import in_memory
from coterie.core import loop
from coterie.core.arrays import as_dense
from coterie.core.in_memory import check_in_memory
from coterie.core.protocols import Chunk, Engine, Source
from coterie.errors import ParameterError
from coterie.kmeans.lloyd import Lloyd

LIMIT = 4e9  # steps, each for one row, cluster and column: about a minute
HOPELESS = 100.0  # a problem is rejected early if its rough estimate exceeds this multiple of the limit
UNSURE = 0.01  # fraction of the limit that is spent before the estimate is used
EASIEST = 1.3  # measured steps for well separated clusters, as a multiple of m * m * k * d
TRIAL = 200  # rows of a random sample that is solved first, so that hard problems are rejected at once
MANY = 1000  # number of rows above which the sample is solved first
RUNS = 20  # runs of K-means for the initial upper bound
MAPPED = 1 << 30  # maximum number of bytes of a memory-mapped column that is read at once


@dataclass(frozen=True)
class Exact(Lloyd):
    r"""Minimises :math:`\sum_i w_i \min_k \|x_i - c_k\|^2` over all partitions: the initial centers are the optimum.

    In one column, clusters are intervals of the sorted values, and dynamic programming finds the best ones [1]_ [2]_
    [3]_. In several columns, branch and bound adds rows to clusters one by one, as long as the remaining rows could
    still lead to a better partition [4]_. It first solves the problem for the last few rows, whose optimum is a lower
    bound of the cost of the rest [5]_. The single iteration of `loop.fit` that follows has nothing to improve.

    .. [1] Wu (1991), Optimal quantization by matrix searching, Journal of Algorithms 12.
    .. [2] Wang & Song (2011), Ckmeans.1d.dp: optimal k-means clustering in one dimension, The R Journal 3.
    .. [3] Grønlund et al. (2017), Fast exact k-means, k-medians and Bregman divergence clustering in 1D.
    .. [4] Koontz, Narendra & Fukunaga (1975), A branch and bound clustering algorithm, IEEE Trans. Computers 24.
    .. [5] Brusco (2006), A repetitive branch-and-bound procedure for minimum within-cluster sums of squares
       partitioning, Psychometrika 71.
    """

    def init(self, source: Source, engine: Engine, rng: np.random.Generator) -> np.ndarray:
        rows, weight = distinct(source.pick(slice(None)))
        k = min(self.n_clusters, len(rows))
        centers = means(rows, weight, self._labels(rows, weight, k, rng))
        # Copies of the last center stay empty, because the first of equally near centers is chosen.
        copies = np.repeat(centers[-1:], self.n_clusters - len(centers), axis=0)
        return np.concatenate([centers, copies]).astype(source.dtype)

    def has_converged(self, *step: Any) -> bool:
        return True

    def _labels(self, rows: np.ndarray, weight: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
        m, d = rows.shape
        if k == m:
            return np.arange(m)
        if d == 1:
            starts = kernels.select("kmeans_1d", m, k).interval_starts(rows[:, 0], weight, k)
            return np.repeat(np.arange(k), np.diff(starts, append=m))
        if k == 1:
            return np.zeros(m, np.int64)
        check_limit(m, k, EASIEST * m * m * k * d)
        scaled, weight = (rows - np.average(rows, axis=0, weights=weight)) / self.unit, weight / weight.max()
        if m > MANY:
            sample = np.sort(rng.choice(m, TRIAL, replace=False))
            start = self._best_of_runs(rows[sample], weight[sample], k, rng)
            branch_and_bound(scaled[sample], weight[sample], k, start, n_rows=m)
        return branch_and_bound(scaled, weight, k, self._best_of_runs(rows, weight, k, rng))

    def _best_of_runs(self, rows: np.ndarray, weight: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
        """Labels of the best of several runs of K-means."""
        model, chunk = Lloyd(k, unit=self.unit), Chunk(rows, weight, 0)
        return model.assign(loop.fit(model, *in_memory(chunk), rng=rng, n_init=RUNS).params, chunk)


def exact_if_possible(algorithm: str, model: Lloyd, source: Source) -> Lloyd:
    """Exact model if `algorithm` requires it, or if it is fast: one dense column in memory, and no initial centers."""
    is_supported = type(model) is Lloyd and model.frozen is None
    if algorithm == "exact" and not is_supported:
        raise ParameterError(
            "algorithm='exact' does not support frozen_centers or missing values: use algorithm='auto' instead"
        )
    if algorithm == "exact":
        check_in_memory(source, "algorithm='exact'")
    is_fast = source.shape[1] == 1 and isinstance(model.start, str) and _fits_in_memory(getattr(source, "X", None))
    if is_supported and (algorithm == "exact" or (algorithm == "auto" and is_fast)):
        return Exact(model.n_clusters, model.start, model.unit, bounds=model.bounds)
    return model


def _fits_in_memory(X: Any) -> bool:
    """Whether rows are dense and in memory, or in a memory-mapped file of at most `MAPPED` bytes."""
    if not isinstance(X, np.ndarray):
        return False
    base: Any = X
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return not isinstance(base, np.memmap) or X.nbytes <= MAPPED


def distinct(chunk: Chunk) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of positive weight in sorted order (m, d), and their weights (m,)."""
    X = np.asarray(as_dense(chunk.X))
    if chunk.w is None:
        rows, weight = np.unique(X, axis=0 if X.shape[1] > 1 else None, return_counts=True)
    else:
        X, w = X[chunk.w > 0], chunk.w[chunk.w > 0]
        rows, inverse = np.unique(X, axis=0 if X.shape[1] > 1 else None, return_inverse=True)
        weight = np.bincount(inverse.ravel(), w)
    return rows.reshape(-1, X.shape[1]).astype(np.float64), weight.astype(np.float64)


def means(rows: np.ndarray, weight: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean of every cluster that has rows, relative to one of its rows: the mean of one row is exactly that row."""
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    total = np.bincount(labels, weight)
    differences = rows - rows[first[labels]]
    return rows[first] + np.stack([np.bincount(labels, weight * x) / total for x in differences.T], axis=1)


def branch_and_bound(X: np.ndarray, w: np.ndarray, k: int, labels: np.ndarray, n_rows: int | None = None) -> np.ndarray:
    """Labels of the best partition (m,), given the labels of a good one.

    With `n_rows`, X is a random sample of a table with `n_rows` rows, and only the time for that table is estimated.
    The labels are then not optimal if the estimate needs more than twice `UNSURE` of the limit.
    """
    from coterie.kernels.cpu.branch_and_bound import best_partition

    (m, d), order = X.shape, interleaved(X, w, k, labels)
    X, w, initial = X[order].copy(), w[order].copy(), labels[order].astype(np.int64)
    best = np.arange(m)[::-1] % k  # each of the last k rows is a cluster
    tail, trials = np.zeros(m + 1), np.zeros(m + 1)
    total, limit = (m, LIMIT) if n_rows is None else (n_rows, 2 * UNSURE * LIMIT)
    for first in range(m - k - 1, -1, -1):
        spent = trials.sum() * k * d
        check_limit(total, k, expected(trials[first + 1 : m - k][::-1], total - k) * k * d, spent)
        if spent >= limit:
            break
        cost, best = cheapest(X[first:], w[first:], k, best[first:], initial[first:])
        best = np.concatenate([initial[:first], best])
        remaining = int((limit - spent) / (k * d))
        tail[first], trials[first] = best_partition(X, w, k, first, tail, cost, best, remaining)
    check_limit(total, k, trials.sum() * k * d)
    result = np.empty(m, np.int64)
    result[order] = best
    return result


def interleaved(X: np.ndarray, w: np.ndarray, k: int, labels: np.ndarray) -> np.ndarray:
    """Order of the rows in which any few consecutive rows represent all.

    Clusters alternate, and the running mean of each stays near its center. The best partition of the remaining rows is
    then a sharp lower bound of their cost.
    """
    share = np.empty(len(X))
    for j in range(k):
        rows = np.flatnonzero(labels == j)
        remaining = list(rows)
        differences = w[:, None] * (X - np.average(X[rows], axis=0, weights=w[rows])) if len(rows) else X
        total = np.zeros(X.shape[1])
        for rank in range(len(rows)):  # the farthest row, then the row that best cancels the sum so far
            if rank % 2 == 0:
                position = int((differences[remaining] ** 2).sum(axis=1).argmax())
            else:
                position = int(((differences[remaining] + total) ** 2).sum(axis=1).argmin())
            row = remaining.pop(position)
            total += differences[row]
            share[row] = (rank + 0.5) / len(rows)
    return np.argsort(share, kind="stable")


def cheapest(X: np.ndarray, w: np.ndarray, k: int, rest: np.ndarray, initial: np.ndarray) -> tuple[float, np.ndarray]:
    """The best of the `initial` partition and those that add the first row to the best partition of the rest."""
    choices = [initial, *(np.concatenate([[j], rest[1:]]) for j in range(k))]
    costs = [_cost(X, w, k, labels) for labels in choices]
    best = int(np.argmin(costs))
    return costs[best], choices[best]


def _cost(X: np.ndarray, w: np.ndarray, k: int, labels: np.ndarray) -> float:
    total = np.maximum(np.bincount(labels, w, k), np.finfo(np.float64).tiny)
    center = np.stack([np.bincount(labels, w * x, k) / total for x in X.T], axis=1)
    return float(w @ ((X - center[labels]) ** 2).sum(axis=1))


def expected(trials: np.ndarray, m: int) -> float:
    """Estimated number of trials for all m sizes, from the first few: they continue to grow at the recent rate."""
    window = 6
    recent, earlier = trials[-window:].max(initial=1.0), trials[-2 * window : -window].max(initial=1.0)
    growth = min(max(recent / earlier, 1.0) ** (1.0 / window), 4.0)
    remaining = np.minimum(np.arange(1.0, m - len(trials) + 1.0), 400.0)  # avoids overflow
    return float(trials.sum() + recent * (growth**remaining).sum())


def check_limit(m: int, k: int, steps: float, spent: float = np.inf) -> None:
    """Raise an error if `steps` exceeds the limit; an estimate counts only after enough work was `spent`."""
    allowed = LIMIT * (HOPELESS if spent < LIMIT else 1.0)
    if spent > UNSURE * LIMIT and steps > allowed:
        raise ParameterError(
            f"algorithm='exact' would take about {steps:.0e} steps for n={m} distinct rows and k={k} clusters, but the "
            f"limit is {LIMIT:.0e} (about a minute): use search='thorough', which usually finds the same clusters, or "
            "fewer clusters"
        )
