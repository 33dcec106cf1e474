"""Clusters of equal size: a few iterations from the same start."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, quietly, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result, shape

CASES: list[Case] = [
    {"label": shape(n, d, k), "n": n, "d": d, "k": k}
    for n, d, k in [(2_000, 8, 10), (10_000, 16, 20), (10_000, 16, 100), (50_000, 16, 20)]
]
QUICK_CASES: list[Case] = [{"label": "quick", "n": 1_000, "d": 8, "k": 10}]
ITERATIONS = 5


def options_of(start: np.ndarray, n: int) -> dict[str, Any]:
    """What both libraries call the same."""
    k = len(start)
    sizes = {"size_min": n // k, "size_max": -(-n // k)}
    return {"n_clusters": k, **sizes, "init": start, "n_init": 1, "max_iter": ITERATIONS, "tol": 0.0, "random_state": 0}


def coterie(X: np.ndarray, start: np.ndarray) -> np.ndarray:
    from coterie import BalancedKMeans

    return quietly(BalancedKMeans(**options_of(start, len(X))), X).labels_


def constrained(X: np.ndarray, start: np.ndarray) -> np.ndarray:
    from k_means_constrained import KMeansConstrained

    return quietly(KMeansConstrained(n_jobs=1, **options_of(start, len(X))), X).labels_


COMPETITORS = (
    Competitor("coterie", "coterie", coterie),
    Competitor("k-means-constrained", "k_means_constrained", constrained),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    X = data.blobs(case["n"], case["d"], case["k"], data.OVERLAPPING, dtype="float64")
    start = data.spread_rows(X, case["k"])
    return timed(lambda: competitor.fit(X, start), 1, lambda labels: inertia(X, labels))


def inertia(X: np.ndarray, labels: np.ndarray) -> float:
    """Of the division, about its own means: one judge for all."""
    size = np.bincount(labels)
    if size.max() - size.min() > 1:
        raise RuntimeError(f"asked for equal sizes, got {size.min()} to {size.max()}")
    means = np.stack([X[labels == j].mean(axis=0) for j in range(len(size))])
    return float(((X - means[labels]) ** 2).sum())


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    title = f"Clusters of equal size, {ITERATIONS} iterations"
    return contest("bench_balanced:measure", title, cases, COMPETITORS, options, check="inertia")


if __name__ == "__main__":
    main("balanced", run)
