"""HDBSCAN of blobs against scikit-learn, hdbscan and fast_hdbscan; DBSCAN against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import memory
from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result

SIZE, EPS = 10, 0.5  # min_cluster_size of HDBSCAN, radius of DBSCAN
CASES: list[Case] = [
    {"label": f"{method} {n} x {d}, {dtype}", "method": method, "n": n, "d": d, "dtype": dtype}
    for method, n, d, dtype in [
        ("hdbscan", 200_000, 2, "float64"),
        ("hdbscan", 200_000, 8, "float64"),
        ("hdbscan", 50_000, 50, "float32"),
        ("hdbscan", 20_000, 384, "float32"),
        ("dbscan", 1_000_000, 3, "float64"),
    ]
]
QUICK_CASES: list[Case] = [
    {"label": f"quick {method}", "method": method, "n": 1000, "d": 2, "dtype": "float64"}
    for method in ("hdbscan", "dbscan")
]


def ours(X: np.ndarray, method: str) -> np.ndarray:
    import coterie

    return (coterie.HDBSCAN(SIZE) if method == "hdbscan" else coterie.DBSCAN(EPS)).fit(X).labels_


def sklearn(X: np.ndarray, method: str) -> np.ndarray:
    from sklearn.cluster import DBSCAN, HDBSCAN

    return (HDBSCAN(min_cluster_size=SIZE, copy=True) if method == "hdbscan" else DBSCAN(eps=EPS)).fit(X).labels_


def hdbscan(X: np.ndarray, method: str) -> np.ndarray:
    import hdbscan

    if method != "hdbscan":
        raise NotImplementedError("HDBSCAN only")
    return hdbscan.HDBSCAN(min_cluster_size=SIZE, min_samples=SIZE - 1).fit(X).labels_


def fast_hdbscan(X: np.ndarray, method: str) -> np.ndarray:
    import fast_hdbscan

    if method != "hdbscan":
        raise NotImplementedError("HDBSCAN only")
    return fast_hdbscan.HDBSCAN(min_cluster_size=SIZE, min_samples=SIZE - 1).fit(X).labels_


COMPETITORS = (
    Competitor("coterie", "coterie", ours),
    Competitor("scikit-learn", "sklearn", sklearn),
    Competitor("hdbscan", "hdbscan", hdbscan),
    Competitor("fast_hdbscan", "fast_hdbscan", fast_hdbscan),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """The check is the share of noise; the peak is what a first run takes beside the rows."""
    rng = np.random.default_rng(0)
    centers = rng.uniform(-10, 10, size=(20, case["d"]))
    X = (centers[rng.integers(20, size=case["n"])] + rng.normal(size=(case["n"], case["d"]))).astype(case["dtype"])
    competitor.fit(X[:3000], case["method"])
    peak = memory.peak_increase(lambda: competitor.fit(X, case["method"]))
    share = timed(lambda: competitor.fit(X, case["method"]), 1, lambda labels: float((labels < 0).mean()), loaded=True)
    return share | {"bytes": peak}


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    return contest("bench_density:measure", "HDBSCAN and DBSCAN", cases, COMPETITORS, options, rounds=2, check="noise")


if __name__ == "__main__":
    main("density", run)
