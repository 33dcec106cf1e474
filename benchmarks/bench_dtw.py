"""Series: all distances by dynamic time warping, their average, and their clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, quietly, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result

CASES: list[Case] = [
    {
        "label": f"{work} {n} x {length}, {where}, {dtype}",
        "work": work,
        "n": n,
        "length": length,
        "radius": radius,
        "dtype": dtype,
    }
    for work, n, length, radius, where, dtype in [
        ("pairwise", 400, 200, 20, "Sakoe-Chiba 20", "float64"),
        ("pairwise", 400, 200, 20, "Sakoe-Chiba 20", "float32"),
        ("pairwise", 200, 200, None, "everywhere", "float64"),
        ("average", 100, 200, None, "everywhere", "float64"),
        ("clusters", 200, 60, None, "everywhere", "float64"),
    ]
]
QUICK_CASES: list[Case] = [
    {"label": "quick", "work": "pairwise", "n": 60, "length": 50, "radius": 5, "dtype": "float64"}
]
STEPS = 5  # of averaging
ITERATIONS = 5
CLUSTERS = 8


def coterie(X: np.ndarray, case: dict[str, Any]) -> np.ndarray:
    from coterie import TimeSeriesKMeans
    from coterie.distances import dba, pairwise

    window = case["radius"]
    if case["work"] == "pairwise":
        return pairwise(X, metric="dtw", window=window)
    if case["work"] == "average":
        return dba(X, window=window, init=X[0], max_iter=STEPS, tol=0.0)[None]
    options = {"window": window, "init": X[:CLUSTERS], "max_iter": ITERATIONS, "max_iter_barycenter": STEPS, "tol": 0.0}
    return quietly(TimeSeriesKMeans(CLUSTERS, **options), X).cluster_centers_


def dtaidistance(X: np.ndarray, case: dict[str, Any]) -> np.ndarray:
    from dtaidistance.dtw import distance_matrix_fast

    if case["work"] != "pairwise":
        raise NotImplementedError("is asked for distances alone")
    radius = case["radius"]
    return distance_matrix_fast(X.astype(np.float64), window=None if radius is None else radius + 1)


def aeon(X: np.ndarray, case: dict[str, Any]) -> np.ndarray:
    from aeon.distances import dtw_pairwise_distance

    if case["work"] != "pairwise":
        raise NotImplementedError("is asked for distances alone")
    share = None if case["radius"] is None else case["radius"] / X.shape[1]
    return np.sqrt(dtw_pairwise_distance(X, window=share))


def tslearn(X: np.ndarray, case: dict[str, Any]) -> np.ndarray:
    from tslearn.barycenters import dtw_barycenter_averaging
    from tslearn.clustering import TimeSeriesKMeans
    from tslearn.metrics import cdist_dtw

    window = case["radius"]
    how = {} if window is None else {"global_constraint": "sakoe_chiba", "sakoe_chiba_radius": window}
    if case["work"] == "pairwise":
        return cdist_dtw(X, n_jobs=-1, **how)
    if case["work"] == "average":
        center = dtw_barycenter_averaging(X, init_barycenter=X[0][:, None], max_iter=STEPS, tol=0.0, metric_params=how)
        return center[None, :, 0]
    options = {"max_iter": ITERATIONS, "max_iter_barycenter": STEPS, "tol": 0.0, "n_jobs": -1, "metric_params": how}
    model = TimeSeriesKMeans(CLUSTERS, metric="dtw", init=X[:CLUSTERS, :, None], **options)
    return quietly(model, X).cluster_centers_[:, :, 0]


def check(X: np.ndarray, case: dict[str, Any], answer: np.ndarray) -> float:
    """The sum of distances; of centers, the objective by coterie's distances, which tests compare with others."""
    from coterie.distances import pairwise

    if case["work"] == "pairwise":
        return float(answer.sum(dtype=np.float64))
    own = pairwise(X, np.ascontiguousarray(answer), metric="dtw", window=case["radius"]).min(axis=1)
    return float((own**2).sum())


COMPETITORS = (
    Competitor("coterie", "coterie", coterie),
    Competitor("dtaidistance", "dtaidistance", dtaidistance),
    Competitor("aeon", "aeon", aeon),
    Competitor("tslearn", "tslearn", tslearn),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    X = np.random.default_rng(0).normal(size=(case["n"], case["length"])).cumsum(axis=1).astype(case["dtype"])
    return timed(lambda: competitor.fit(X, case), 3, lambda answer: check(X, case, answer))


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    return contest("bench_dtw:measure", "Series", cases, COMPETITORS, options)


if __name__ == "__main__":
    main("series", run)
