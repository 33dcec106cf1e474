"""K-medians by absolute differences: a few iterations from the same start."""

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
    for n, d, k in [(20_000, 8, 10), (100_000, 8, 10), (20_000, 32, 20)]
]
QUICK_CASES: list[Case] = [{"label": "quick", "n": 1_000, "d": 4, "k": 5}]
ITERATIONS = 10


def coterie(X: np.ndarray, start: np.ndarray) -> np.ndarray:
    from coterie import KMedians

    return quietly(KMedians(len(start), init=start, max_iter=ITERATIONS, tol=0.0), X).cluster_centers_


def pyclustering(X: np.ndarray, start: np.ndarray) -> np.ndarray:
    from pyclustering.cluster.kmedians import kmedians
    from pyclustering.utils.metric import distance_metric, type_metric

    metric = distance_metric(type_metric.MANHATTAN)
    model = kmedians(X.tolist(), start.tolist(), tolerance=0.0, itermax=ITERATIONS, metric=metric)
    return np.array(model.process().get_medians())


COMPETITORS = (
    Competitor("coterie", "coterie", coterie),
    Competitor("pyclustering", "pyclustering", pyclustering),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    X = data.blobs(case["n"], case["d"], case["k"], data.OVERLAPPING, dtype="float64")
    start = data.random_rows(X, case["k"])
    return timed(lambda: competitor.fit(X, start), 2, lambda centers: cost(X, centers))


def cost(X: np.ndarray, centers: np.ndarray) -> float:
    return float(np.min([np.abs(X - center).sum(axis=1) for center in centers], axis=0).sum())


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    title = f"K-medians, {ITERATIONS} iterations"
    return contest("bench_medians:measure", title, cases, COMPETITORS, options, check="objective")


if __name__ == "__main__":
    main("medians", run)
