"""Indices of clusters beside scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result

INTERNAL = ("silhouette", "calinski_harabasz", "davies_bouldin")
CASES: list[Case] = [
    {"label": f"{index} {n // 1000}k x {d}, k = {k}, {dtype}", "index": index, "n": n, "d": d, "k": k, "dtype": dtype}
    for index, n, d, k, dtype in [
        ("silhouette", 20_000, 16, 10, "float32"),
        ("silhouette", 20_000, 16, 10, "float64"),
        ("silhouette", 50_000, 16, 10, "float32"),
        ("silhouette", 20_000, 128, 100, "float32"),
        ("calinski_harabasz", 1_000_000, 16, 10, "float32"),
        ("davies_bouldin", 1_000_000, 16, 10, "float32"),
        ("adjusted_rand", 1_000_000, 1, 100, "float64"),
        ("adjusted_mutual_info", 1_000_000, 1, 100, "float64"),
        ("adjusted_mutual_info", 10_000, 1, 1000, "float64"),
    ]
]
QUICK_CASES: list[Case] = [{"label": "quick", "index": "silhouette", "n": 500, "d": 4, "k": 3, "dtype": "float64"}]


def ours(index: str, *given: np.ndarray) -> float:
    from coterie import metrics

    return getattr(metrics, f"{index}_score")(*given)


def sklearn(index: str, *given: np.ndarray) -> float:
    from sklearn import metrics

    return float(getattr(metrics, f"{index}_score")(*given))


COMPETITORS = (Competitor("coterie", "coterie", ours), Competitor("scikit-learn", "sklearn", sklearn))


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """The check is the index."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, case["k"], case["n"])
    if case["index"] in INTERNAL:
        centers = 2 * rng.normal(size=(case["k"], case["d"]))
        given = (centers[labels] + rng.normal(size=(case["n"], case["d"]))).astype(case["dtype"]), labels
    else:
        given = labels, np.where(rng.random(case["n"]) < 0.7, labels, rng.integers(0, case["k"], case["n"]))
    return timed(lambda: competitor.fit(case["index"], *given), 1 if case["index"] == "silhouette" else 3, float)


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    return contest("bench_metrics:measure", "Metrics", cases, COMPETITORS, options, check="index")


if __name__ == "__main__":
    main("metrics", run)
