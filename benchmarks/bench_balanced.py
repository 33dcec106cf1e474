"""Clusters of equal size: a few iterations from the same start."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.competitors import BALANCED, BalancedPlan, Competitor
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

Case = tuple[int, int, int]  # n, d, k

CASES: list[Case] = [(2_000, 8, 10), (10_000, 16, 20), (10_000, 16, 100), (50_000, 16, 20)]
QUICK_CASES: list[Case] = [(1_000, 8, 10)]
ITERATIONS = 5


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: seconds an iteration, after a first one that loads what is to be loaded."""
    X, start = data.load(case["folder"], "X"), data.load(case["folder"], "start")
    competitor.fit(X, plan(X, start, 1))
    seconds = []
    for _ in range(case["repeats"]):
        begin = perf_counter()
        fitted = competitor.fit(X, plan(X, start, ITERATIONS))
        seconds.append((perf_counter() - begin) / fitted.n_iter)
    size = np.bincount(fitted.labels, minlength=len(start))
    if size.max() - size.min() > 1:
        raise RuntimeError(f"asked for equal sizes, got {size.min()} to {size.max()}")
    return {"seconds": seconds, "inertia": inertia(X, fitted.labels), "iterations": fitted.n_iter}


def plan(X: np.ndarray, start: np.ndarray, max_iter: int) -> BalancedPlan:
    n, k = len(X), len(start)
    return BalancedPlan(start, n // k, -(-n // k), max_iter)


def inertia(X: np.ndarray, labels: np.ndarray) -> float:
    """Of the division, about its own means: one judge for all."""
    X = X.astype(np.float64)
    means = np.stack([X[labels == j].mean(axis=0) for j in range(labels.max() + 1)])
    return float(((X - means[labels]) ** 2).sum())


def best_seconds(outcome: Outcome) -> float:
    return min(s for report in outcome.reports for s in report["seconds"])


def median_seconds(outcome: Outcome) -> float:
    return median(s for report in outcome.reports for s in report["seconds"])


def run_case(case: Case, options: Options) -> Race:
    n, d, k = case
    X = data.blobs(n, d, k, data.OVERLAPPING, dtype="float64")
    with data.shared(X=X, start=data.spread_rows(X, k)) as folder:
        asked = {"folder": folder, "dtype": "float64", "repeats": 1}
        return race("bench_balanced:measure", asked, BALANCED, options.turns(3, quick=1), options=options)


def row(case: Case, outcomes: Race) -> tuple[list[str], Ratio | None]:
    best = best_variant(outcomes, best_seconds)
    label = shape(*case)
    costs = {name: best_seconds(o) for name, o in best.items() if o.reports}
    ratio = against_fastest(f"clusters of equal size {label}", costs, is_disturbed(outcomes))
    shown = cells(names_of(BALANCED), best, lambda o: f"{1e3 * best_seconds(o):.1f} ({1e3 * median_seconds(o):.1f})")
    return [label, *shown, times(ratio), beside(outcomes)], ratio


def beside(outcomes: Race) -> str:
    """Our inertia in parts of the peer's, after the same number of iterations."""
    ours, theirs = (outcomes[c.key].reports if c.key in outcomes else [] for c in BALANCED)
    if not ours or not theirs or ours[0]["iterations"] != theirs[0]["iterations"]:
        return NONE
    return f"{ours[0]['inertia'] / theirs[0]['inertia']:.6f}"


def run(options: Options) -> Result:
    races = {case: run_case(case, options) for case in (QUICK_CASES if options.quick else CASES)}
    made = [row(case, outcomes) for case, outcomes in races.items()]
    table = Table(
        f"Clusters of equal size, {ITERATIONS} iterations: ms an iteration, best (median)",
        ["n, d, k", *names_of(BALANCED), "peer / coterie", "inertia / peer's"],
        [line for line, _ in made],
        timing_notes(list(races.values())),
    )
    numbers = {line[0]: raw(outcomes) for (line, _), outcomes in zip(made, races.values(), strict=True)}
    return Result([table], [ratio for _, ratio in made if ratio], numbers)


if __name__ == "__main__":
    main("balanced", run)
