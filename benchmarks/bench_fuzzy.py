"""Fuzzy c-means: twenty iterations from the same start."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, quietly, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result, shape

CASES: list[Case] = [
    {"label": f"{shape(n, d, k)}, m = {m:g}, {dtype}", "n": n, "d": d, "k": k, "m": m, "dtype": dtype}
    for n, d, k, m, dtype in [
        (100_000, 8, 10, 2.0, "float64"),
        (100_000, 8, 10, 2.0, "float32"),
        (100_000, 8, 10, 1.5, "float64"),
        (20_000, 32, 40, 1.2, "float64"),
    ]
]
QUICK_CASES: list[Case] = [{"label": "quick", "n": 5_000, "d": 8, "k": 10, "m": 2.0, "dtype": "float64"}]
ITERATIONS = 20


def coterie(X: np.ndarray, start: np.ndarray, u: np.ndarray, m: float) -> np.ndarray:
    from coterie import FuzzyCMeans

    model = FuzzyCMeans(len(start), fuzzifier=m, init=start, max_iter=ITERATIONS, tol=0.0)
    return quietly(model, X).cluster_centers_


def scikit_fuzzy(X: np.ndarray, start: np.ndarray, u: np.ndarray, m: float) -> np.ndarray:
    from skfuzzy import cmeans

    return cmeans(X.T, len(start), m, error=0.0, maxiter=ITERATIONS, init=u.T)[0]


COMPETITORS = (
    Competitor("coterie", "coterie", lambda X, plan: coterie(X, *plan)),
    Competitor("scikit-fuzzy", "skfuzzy", lambda X, plan: scikit_fuzzy(X, *plan)),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """What is made of the start for a library's sake is not timed."""
    m, k = case["m"], case["k"]
    X = data.blobs(case["n"], case["d"], k, data.OVERLAPPING, dtype=case["dtype"])
    start = data.random_rows(X, k) + X.dtype.type(0.01)  # off the rows: libraries differ on a row at distance zero
    plan = start, memberships(X, start, m), m
    return timed(lambda: competitor.fit(X, plan), 3, lambda centers: objective(X, centers, m))


def memberships(X: np.ndarray, centers: np.ndarray, m: float) -> np.ndarray:
    """(n, k)"""
    u = _squares(X, centers) ** (-1 / (m - 1))
    return u / u.sum(axis=1, keepdims=True)


def objective(X: np.ndarray, centers: np.ndarray, m: float) -> float:
    return float((memberships(X, centers, m) ** m * _squares(X, centers)).sum())


def _squares(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    X = X.astype(np.float64)
    squares = np.stack([((X - center) ** 2).sum(axis=1) for center in centers.astype(np.float64)], axis=1)
    return np.maximum(squares, np.finfo(np.float64).tiny)


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    title = f"Fuzzy c-means, {ITERATIONS} iterations"
    return contest("bench_fuzzy:measure", title, cases, COMPETITORS, options, rounds=5, check="objective")


if __name__ == "__main__":
    main("fuzzy", run)
