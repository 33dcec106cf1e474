"""The gap statistic, and all K in one sweep, beside what others offer and what is usually written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, timed
from benchmarks.data import OVERLAPPING, SEPARATED, blobs
from benchmarks.harness import Options, main
from benchmarks.report import Result


def case(what: str, n: int, d: int, k: int, references: int, clusters: int, apart: float) -> Case:
    return {
        "label": f"{n} x {d}, K = 1..{k}, {what}", "n": n, "d": d, "k": k, "references": references,
        "clusters": clusters, "apart": apart, "dtype": "float64",
    }  # fmt: skip


GAPS = [
    case("100 references", 75, 2, 10, 100, 5, SEPARATED),
    case("50 references", 1_000, 5, 10, 50, 5, SEPARATED),
    case("50 references", 10_000, 10, 15, 50, 5, SEPARATED),
]
SWEEPS = [
    case("overlapping", 1_000, 2, 20, 0, 12, OVERLAPPING),
    case("overlapping", 10_000, 10, 20, 0, 12, OVERLAPPING),
    case("separated", 100_000, 16, 20, 0, 12, SEPARATED),
]
QUICK_GAPS = [case("3 references", 60, 2, 3, 3, 2, SEPARATED)]
QUICK_SWEEPS = [case("separated", 300, 2, 4, 0, 3, SEPARATED)]


def ours(X: np.ndarray, ks: range, references: int) -> float:
    from coterie import KMeans
    from coterie.selection import gap_statistic, sweep

    if references:
        return gap_statistic(X, ks, n_references=references, random_state=0).by_rule()["globalmax"]
    return float(np.log(sweep(KMeans(random_state=0), X, ks).objectives).mean())


def gap_stat(X: np.ndarray, ks: range, references: int) -> float:
    from gap_statistic import OptimalK

    return float(OptimalK(n_jobs=-1, random_state=0)(X, n_refs=references, cluster_array=np.array(ks)))


def sklearn(X: np.ndarray, ks: range, references: int) -> float:
    """A loop over K: one start for data and references, ten where there are no references."""
    from sklearn.cluster import KMeans

    rng, n_init = np.random.default_rng(0), 1 if references else 10
    tables = [X, *(rng.uniform(X.min(axis=0), X.max(axis=0), X.shape) for _ in range(references))]
    log_w = np.log([[KMeans(k, n_init=n_init, random_state=0).fit(table).inertia_ for k in ks] for table in tables])
    return float(ks[int((log_w[1:].mean(axis=0) - log_w[0]).argmax())] if references else log_w.mean())


COMPETITORS = (
    Competitor("coterie", "coterie", ours),
    Competitor("gap-stat", "gap_statistic", gap_stat),
    Competitor("scikit-learn", "sklearn", sklearn),
)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """The check is the K of the largest gap; without references the mean of the logarithms of all inertias."""
    X = blobs(case["n"], case["d"], case["clusters"], case["apart"], dtype=case["dtype"])
    return timed(lambda: competitor.fit(X, range(1, case["k"] + 1), case["references"]), 1, float)


def run(options: Options) -> Result:
    gaps, sweeps = (QUICK_GAPS, QUICK_SWEEPS) if options.quick else (GAPS, SWEEPS)
    first = contest("bench_gap:measure", "Gap statistic", gaps, COMPETITORS, options, check="K")
    sweepers = [competitor for competitor in COMPETITORS if competitor.name != "gap-stat"]
    second = contest("bench_gap:measure", "All K of K-means", sweeps, sweepers, options, check="mean log inertia")
    return Result([*first.tables, *second.tables], [*first.ratios, *second.ratios], first.raw | second.raw)


if __name__ == "__main__":
    main("gap", run)
