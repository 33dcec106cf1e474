"""Distances of all rows to all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result

CASES: list[Case] = [
    {"label": f"{metric} {n // 1000}k x {d} {dtype}", "n": n, "d": d, "metric": metric, "dtype": dtype}
    for metric, n, d, dtype in [
        ("euclidean", 8_000, 10, "float64"),
        ("euclidean", 8_000, 10, "float32"),
        ("euclidean", 8_000, 128, "float64"),
        ("euclidean", 8_000, 128, "float32"),
        ("manhattan", 8_000, 10, "float64"),
        ("manhattan", 8_000, 32, "float64"),
        ("chebyshev", 8_000, 10, "float64"),
        ("cosine", 8_000, 32, "float64"),
        ("own", 8_000, 10, "float64"),
        ("own", 8_000, 32, "float64"),
    ]
]
QUICK_CASES: list[Case] = [{"label": "quick", "n": 500, "d": 4, "metric": "euclidean", "dtype": "float64"}]


def manhattan_by_hand(x, y):
    """A user's own function, to be compared with the built-in one."""
    total = 0.0
    for i in range(len(x)):
        total += abs(x[i] - y[i])
    return total


def ours(X: np.ndarray, metric: str) -> np.ndarray:
    from coterie.distances import pairwise

    return pairwise(X, metric=manhattan_by_hand if metric == "own" else metric)


def cdist(X: np.ndarray, metric: str) -> np.ndarray:
    from scipy.spatial.distance import cdist

    return cdist(X, X, {"manhattan": "cityblock", "own": "cityblock"}.get(metric, metric))


def sklearn(X: np.ndarray, metric: str) -> np.ndarray:
    from sklearn.metrics import pairwise_distances

    return pairwise_distances(X, metric={"own": "manhattan"}.get(metric, metric), n_jobs=-1)


COMPETITORS = (
    Competitor("coterie", "coterie", ours),
    Competitor("scipy cdist", "scipy", cdist),
    Competitor("scikit-learn", "sklearn", sklearn),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    X = np.random.default_rng(0).normal(size=(case["n"], case["d"])).astype(case["dtype"])
    return timed(lambda: competitor.fit(X, case["metric"]), 3, lambda D: float(np.asarray(D[1]).sum(dtype=np.float64)))


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    return contest("bench_distances:measure", "Distances", cases, COMPETITORS, options)


if __name__ == "__main__":
    main("distances", run)
