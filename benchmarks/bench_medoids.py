"""K-medoids of a matrix of distances, from the same medoids."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result

CASES: list[Case] = [
    {"label": f"n = {n}, k = {k}, {dtype}", "n": n, "k": k, "dtype": dtype}
    for n, k, dtype in [
        (2_000, 10, "float64"),
        (10_000, 20, "float32"),
        (10_000, 20, "float64"),
        (10_000, 100, "float32"),
    ]
]
QUICK_CASES: list[Case] = [{"label": "quick", "n": 300, "k": 5, "dtype": "float64"}]


def ours(D: np.ndarray, start: np.ndarray) -> float:
    from coterie import KMedoids

    return KMedoids(len(start), metric="precomputed", init=start).fit(D).inertia_


def fasterpam(threads: int):
    def fit(D: np.ndarray, start: np.ndarray) -> float:
        import kmedoids

        return float(kmedoids.fasterpam(D, start, n_cpu=threads).loss)

    return fit


COMPETITORS = (
    Competitor("coterie", "coterie", ours),
    Competitor("kmedoids", "kmedoids", fasterpam(1)),
    Competitor("kmedoids:all threads", "kmedoids", fasterpam(-1)),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """The check is the loss: local optima differ by a little."""
    from scipy.spatial.distance import cdist

    rng = np.random.default_rng(0)
    X = rng.normal(size=(case["n"], 10))
    D = cdist(X, X).astype(case["dtype"])
    D = np.ascontiguousarray((D + D.T) / 2)
    start = rng.choice(case["n"], case["k"], replace=False)
    return timed(lambda: competitor.fit(D, start), 3, float)


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    return contest("bench_medoids:measure", "K-medoids", cases, COMPETITORS, options, check="loss")


if __name__ == "__main__":
    main("medoids", run)
