"""K-means to its global optimum: one column by dynamic programming, a few rows by branch and bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie import kernels
from coterie.base import in_memory
from coterie.core import loop
from coterie.core.errors import ParameterError
from coterie.core.protocols import Chunk, Engine, Source
from coterie.kmeans.lloyd import Lloyd

LIMIT = 4e9  # steps, each of one row, cluster and column: about a minute
HOPELESS = 100.0  # times as many, as the sizes solved so far let expect (roughly), are not begun
UNSURE = 0.01  # of the limit: what may be spent before that is judged
EASIEST = 1.3  # steps, as a share of m * m * k * d, that even well separated clusters take (measured)
TRIAL = 200  # rows of a random sample that is solved first, so that hard problems are rejected at once
MANY = 1000  # rows beyond which that is done
RUNS = 20  # of K-means, whose best is to be beaten
MAPPED = 1 << 30  # bytes of a memory-mapped column that is read as a whole


@dataclass(frozen=True)
class Exact(Lloyd):
    r"""Minimises :math:`\sum_i w_i \min_k \|x_i - c_k\|^2` over all partitions: the start is the optimum.

    In one column clusters are runs of the sorted values, so the best are found one after the other [1]_ [2]_ [3]_. In
    several columns rows join clusters one by one while the rest could still make it pay [4]_; for every last few rows
    first, which then bound what the rest costs [5]_. The one iteration that follows has nothing left to improve.

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
        spare = np.repeat(centers[-1:], self.n_clusters - len(centers), axis=0)  # the first is as near: they stay empty
        return np.concatenate([centers, spare]).astype(source.dtype)

    def settled(self, *step: Any) -> bool:
        return True

    def _labels(self, rows: np.ndarray, weight: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
        m, d = rows.shape
        if k == m:
            return np.arange(m)
        if d == 1:
            starts = kernels.select("one_column", m, k).cuts(rows[:, 0], weight, k)
            return np.repeat(np.arange(k), np.diff(starts, append=m))
        if k == 1:
            return np.zeros(m, np.int64)
        refuse_beyond_limit(m, k, EASIEST * m * m * k * d)
        scaled, weight = (rows - np.average(rows, axis=0, weights=weight)) / self.unit, weight / weight.max()
        if m > MANY:
            sample = np.sort(rng.choice(m, TRIAL, replace=False))
            start = self._best_of_runs(rows[sample], weight[sample], k, rng)
            branch_and_bound(scaled[sample], weight[sample], k, start, n_rows=m)
        return branch_and_bound(scaled, weight, k, self._best_of_runs(rows, weight, k, rng))

    def _best_of_runs(self, rows: np.ndarray, weight: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
        """The labels of the best of some runs of K-means."""
        model, chunk = Lloyd(k, unit=self.unit), Chunk(rows, weight, 0)
        return model.assign(loop.fit(model, *in_memory(chunk), rng=rng, n_init=RUNS).params, chunk)


def exact_if_possible(algorithm: str, model: Lloyd, source: Source) -> Lloyd:
    """The exact model if asked for, or cheap: one dense column that fits in memory, and no centers to start from."""
    plain = type(model) is Lloyd and model.frozen is None
    if algorithm == "exact" and not plain:
        raise ParameterError("algorithm='exact' knows no frozen centers and no missing values; got one of them")
    easy = source.shape[1] == 1 and isinstance(model.start, str) and _fits_in_memory(getattr(source, "X", None))
    if plain and (algorithm == "exact" or (algorithm == "auto" and easy)):
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
    """The different rows that count, in order (m, d), and the weight of each (m,)."""
    X = chunk.X.toarray() if hasattr(chunk.X, "toarray") else np.asarray(chunk.X)
    if chunk.w is None:
        rows, weight = np.unique(X, axis=0 if X.shape[1] > 1 else None, return_counts=True)
    else:
        X, w = X[chunk.w > 0], chunk.w[chunk.w > 0]
        rows, which = np.unique(X, axis=0 if X.shape[1] > 1 else None, return_inverse=True)
        weight = np.bincount(which.ravel(), w)
    return rows.reshape(-1, X.shape[1]).astype(np.float64), weight.astype(np.float64)


def means(rows: np.ndarray, weight: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of every cluster that has rows, about one of them: the mean of one row is that row."""
    _, first, labels = np.unique(labels, return_index=True, return_inverse=True)
    total = np.bincount(labels, weight)
    moved = rows - rows[first[labels]]
    return rows[first] + np.stack([np.bincount(labels, weight * x) / total for x in moved.T], axis=1)


def branch_and_bound(X: np.ndarray, w: np.ndarray, k: int, labels: np.ndarray, n_rows: int | None = None) -> np.ndarray:
    """The labels of the best partition (m,), given those of a good one.

    With `n_rows`, X is a random sample of so many rows: only the time that these would take is estimated. The labels
    are then not optimal if the estimate needs more than twice `UNSURE` of the limit.
    """
    from coterie.kernels.cpu.branch import best_partition

    (m, d), order = X.shape, interleaved(X, w, k, labels)
    X, w, given = X[order].copy(), w[order].copy(), labels[order].astype(np.int64)
    best = np.arange(m)[::-1] % k  # up to k rows are a cluster each
    tail, trials = np.zeros(m + 1), np.zeros(m + 1)
    total, limit = (m, LIMIT) if n_rows is None else (n_rows, 2 * UNSURE * LIMIT)
    for first in range(m - k - 1, -1, -1):
        spent = trials.sum() * k * d
        refuse_beyond_limit(total, k, expected(trials[first + 1 : m - k][::-1], total - k) * k * d, spent)
        if spent >= limit:
            break
        cost, best = cheapest(X[first:], w[first:], k, best[first:], given[first:])
        best = np.concatenate([given[:first], best])
        left = int((limit - spent) / (k * d))
        tail[first], trials[first] = best_partition(X, w, k, first, tail, cost, best, left)
    refuse_beyond_limit(total, k, trials.sum() * k * d)
    result = np.empty(m, np.int64)
    result[order] = best
    return result


def interleaved(X: np.ndarray, w: np.ndarray, k: int, labels: np.ndarray) -> np.ndarray:
    """An order of the rows in which every few are like all: clusters in turn, each with its mean kept in the middle.

    The best partition of the rest then bounds what the rest will cost as sharply as it can.
    """
    share = np.empty(len(X))
    for j in range(k):
        rows = np.flatnonzero(labels == j)
        left = list(rows)
        moved = w[:, None] * (X - np.average(X[rows], axis=0, weights=w[rows])) if len(rows) else X
        total = np.zeros(X.shape[1])
        for rank in range(len(rows)):  # the farthest, then the one that makes up for it
            if rank % 2 == 0:
                at = int((moved[left] ** 2).sum(axis=1).argmax())
            else:
                at = int(((moved[left] + total) ** 2).sum(axis=1).argmin())
            row = left.pop(at)
            total += moved[row]
            share[row] = (rank + 0.5) / len(rows)
    return np.argsort(share, kind="stable")


def cheapest(X: np.ndarray, w: np.ndarray, k: int, rest: np.ndarray, given: np.ndarray) -> tuple[float, np.ndarray]:
    """The best of a given partition and those that add the first row to the best partition of the rest."""
    choices = [given, *(np.concatenate([[j], rest[1:]]) for j in range(k))]
    costs = [_cost(X, w, k, labels) for labels in choices]
    at = int(np.argmin(costs))
    return costs[at], choices[at]


def _cost(X: np.ndarray, w: np.ndarray, k: int, labels: np.ndarray) -> float:
    total = np.maximum(np.bincount(labels, w, k), np.finfo(np.float64).tiny)
    center = np.stack([np.bincount(labels, w * x, k) / total for x in X.T], axis=1)
    return float(w @ ((X - center[labels]) ** 2).sum(axis=1))


def expected(trials: np.ndarray, m: int) -> float:
    """Trials for all m sizes, from those of the first few: they go on growing as they have grown of late."""
    few = 6
    recent, earlier = trials[-few:].max(initial=1.0), trials[-2 * few : -few].max(initial=1.0)
    growth = min(max(recent / earlier, 1.0) ** (1.0 / few), 4.0)
    left = np.minimum(np.arange(1.0, m - len(trials) + 1.0), 400.0)  # no estimate overflows
    return float(trials.sum() + recent * (growth**left).sum())


def refuse_beyond_limit(m: int, k: int, steps: float, spent: float = np.inf) -> None:
    """Where `steps` are beyond reach; an estimate counts once enough was `spent` to go by."""
    allowed = LIMIT * (HOPELESS if spent < LIMIT else 1.0)
    if spent > UNSURE * LIMIT and steps > allowed:
        raise ParameterError(
            f"algorithm='exact' would take about {steps:.0e} steps for n={m} different rows and k={k} clusters, and "
            f"{LIMIT:.0e} are a minute: search='global' finds the same clusters as a rule, or ask for fewer"
        )
