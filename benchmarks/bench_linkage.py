"""Trees of merges from rows: fastcluster without a matrix where it can, SciPy with one."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import memory
from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result

CASES: list[Case] = [
    {"label": f"{method} {n} x {d}, {dtype}", "method": method, "n": n, "d": d, "dtype": dtype}
    for method, n, d, dtypes in [
        ("single", 20_000, 10, ("float64", "float32")),
        ("ward", 20_000, 10, ("float64", "float32")),
        ("complete", 20_000, 10, ("float64", "float32")),
        ("average", 20_000, 10, ("float64", "float32")),
        ("centroid", 5_000, 10, ("float64",)),
        ("average", 5_000, 10, ("float64",)),
        ("single", 50_000, 3, ("float64",)),
        ("ward", 50_000, 3, ("float64",)),
    ]
    for dtype in dtypes
]
QUICK_CASES: list[Case] = [
    {"label": f"quick {method}", "method": method, "n": 500, "d": 3, "dtype": "float64"}
    for method in ("single", "average")
]
LEAN = ("single", "ward", "centroid", "median")


def ours(X: np.ndarray, method: str) -> np.ndarray:
    from coterie.hierarchy import linkage

    return linkage(X, method)


def fastcluster(X: np.ndarray, method: str) -> np.ndarray:
    import fastcluster

    return fastcluster.linkage_vector(X, method) if method in LEAN else fastcluster.linkage(X, method)


def scipy(X: np.ndarray, method: str) -> np.ndarray:
    from scipy.cluster.hierarchy import linkage

    if len(X) > 5_000:
        raise MemoryError("SciPy keeps all distances, and is the slowest: seen on the smaller cases")
    return linkage(X, method)


COMPETITORS = (
    Competitor("coterie", "coterie", ours),
    Competitor("fastcluster", "fastcluster", fastcluster),
    Competitor("scipy", "scipy", scipy),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """The check is the sum of heights; the peak is what a first run takes beside the rows."""
    X = np.random.default_rng(0).normal(size=(case["n"], case["d"])).astype(case["dtype"])
    competitor.fit(X[:600], case["method"])
    peak = memory.peak_increase(lambda: competitor.fit(X, case["method"]))
    found = timed(lambda: competitor.fit(X, case["method"]), 1, lambda Z: float(Z[:, 2].sum()), loaded=True)
    return found | {"bytes": peak}


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    return contest("bench_linkage:measure", "Linkage", cases, COMPETITORS, options, rounds=2, check="heights")


if __name__ == "__main__":
    main("linkage", run)
