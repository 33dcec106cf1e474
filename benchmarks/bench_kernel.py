"""Kernel K-means: whole fits from the same random partition; and Nyström's features where n² is too much."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.competitors import KERNEL, NYSTROM, Competitor, KernelPlan
from benchmarks.harness import (
    Options,
    Outcome,
    Race,
    against_fastest,
    best_variant,
    cells,
    is_disturbed,
    main,
    names_of,
    race,
    raw,
    timing_notes,
)
from benchmarks.report import NONE, Ratio, Result, Table, shape, times

Case = tuple[str, tuple[int, int, int]]  # type; n, d, k

CASES: list[Case] = [
    ("float64", (2_000, 10, 10)),
    ("float64", (5_000, 10, 10)),
    ("float32", (5_000, 10, 10)),
    ("float64", (5_000, 100, 20)),
]
QUICK_CASES: list[Case] = [("float64", (1_000, 10, 5))]
LARGE: list[Case] = [("float64", (50_000, 10, 10)), ("float32", (200_000, 20, 20))]
LARGE_QUICK: list[Case] = [("float64", (5_000, 10, 5))]
LANDMARKS = 300
SEED = 0


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: seconds of the fits, and on the first turn what the partition costs."""
    X = data.load(case["folder"], "X")
    gamma = 1 / float(X.var(axis=0, dtype=np.float64).sum())
    plan = KernelPlan(case["k"], gamma, SEED, LANDMARKS)
    competitor.fit(X[:500], plan)  # loads and compiles what there is to load and compile
    seconds = []
    for _ in range(case["repeats"]):
        begin = perf_counter()
        labels = competitor.fit(X, plan)
        seconds.append(perf_counter() - begin)
    return {"seconds": seconds, "objective": objective(X, labels, gamma) if case["turn"] == 0 else None}


def objective(X: np.ndarray, labels: np.ndarray, gamma: float, most: int = 4_000) -> float:
    """Mean squared distance in feature space of rows to the mean of their cluster; of many rows, on a sample."""
    rows = np.random.default_rng(SEED).permutation(len(X))[:most]
    X, labels = X[rows].astype(np.float64), labels[rows]
    squares = (X**2).sum(axis=1)
    K = np.exp(-gamma * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))
    within = sum(K[np.ix_(labels == j, labels == j)].sum() / np.sum(labels == j) for j in np.unique(labels))
    return float(1 - within / len(X))


def best_seconds(outcome: Outcome) -> float:
    return min(s for report in outcome.reports for s in report["seconds"])


def median_seconds(outcome: Outcome) -> float:
    return median(s for report in outcome.reports for s in report["seconds"])


def run_case(case: Case, competitors: tuple[Competitor, ...], options: Options) -> Race:
    dtype, (n, d, k) = case
    with data.shared(X=data.blobs(n, d, k, data.OVERLAPPING, dtype=dtype)) as folder:
        asked = {"folder": folder, "dtype": dtype, "k": k, "repeats": 2}
        return race("bench_kernel:measure", asked, competitors, options.turns(3, quick=1), options=options)


def row(case: Case, competitors: tuple[Competitor, ...], outcomes: Race) -> tuple[list[str], Ratio | None]:
    dtype, size = case
    best = best_variant(outcomes, best_seconds)
    label = f"{shape(*size)}, {dtype}"
    costs = {name: best_seconds(o) for name, o in best.items() if o.reports}
    ratio = against_fastest(f"kernel K-means {label}", costs, is_disturbed(outcomes))
    shown = cells(names_of(list(competitors)), best, lambda o: f"{best_seconds(o):.3f} ({median_seconds(o):.3f})")
    found = cells(names_of(list(competitors)), best, lambda o: f"{o.reports[0]['objective']:.4f}")
    return [label, *shown, times(ratio) if ratio else NONE, *found], ratio


def table(title: str, cases: list[Case], competitors: tuple[Competitor, ...], options: Options) -> Result:
    races = {case: run_case(case, competitors, options) for case in cases}
    made = [row(case, competitors, outcomes) for case, outcomes in races.items()]
    names = names_of(list(competitors))
    found = Table(
        title,
        ["n, d, k", *names, "fastest peer / coterie", *(f"J of {name}" for name in names)],
        [line for line, _ in made],
        timing_notes(list(races.values())),
    )
    numbers = {line[0]: raw(outcomes) for (line, _), outcomes in zip(made, races.values(), strict=True)}
    return Result([found], [ratio for _, ratio in made if ratio], numbers)


def run(options: Options) -> Result:
    exact = table(
        "Kernel K-means (rbf), fit from one random partition until it settles: seconds, best (median)",
        QUICK_CASES if options.quick else CASES,
        KERNEL,
        options,
    )
    features = table(
        f"Nyström, {LANDMARKS} landmarks, then K-means: seconds, best (median)",
        LARGE_QUICK if options.quick else LARGE,
        NYSTROM,
        options,
    )
    return Result([*exact.tables, *features.tables], exact.ratios + features.ratios, exact.raw | features.raw)


if __name__ == "__main__":
    main("kernel", run)
