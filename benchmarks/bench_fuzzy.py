"""Fuzzy c-means: twenty iterations from the same start."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.competitors import FUZZY, Competitor, FuzzyPlan
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

Case = tuple[str, tuple[int, int, int], float]  # type; n, d, k; m

CASES: list[Case] = [
    ("float64", (100_000, 8, 10), 2.0),
    ("float32", (100_000, 8, 10), 2.0),
    ("float64", (100_000, 8, 10), 1.5),
    ("float64", (20_000, 32, 40), 1.2),
]
QUICK_CASES: list[Case] = [("float64", (5_000, 8, 10), 2.0)]
ITERATIONS = 20


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: seconds of the fits; what is made of the start for a library's sake is not timed."""
    X, start = data.load(case["folder"], "X"), data.load(case["folder"], "start")
    plan = FuzzyPlan(start, memberships(X, start, case["m"]), case["m"], ITERATIONS)
    competitor.fit(X, plan)
    seconds = []
    for _ in range(case["repeats"]):
        begin = perf_counter()
        fitted = competitor.fit(X, plan)
        seconds.append(perf_counter() - begin)
    if fitted.n_iter != ITERATIONS:
        raise RuntimeError(f"asked for {ITERATIONS} iterations, got {fitted.n_iter}")
    return {"seconds": seconds, "objective": objective(X, fitted.centers, case["m"]) if case["turn"] == 0 else None}


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


def best_seconds(outcome: Outcome) -> float:
    return min(s for report in outcome.reports for s in report["seconds"])


def median_seconds(outcome: Outcome) -> float:
    return median(s for report in outcome.reports for s in report["seconds"])


def run_case(case: Case, options: Options) -> Race:
    dtype, (n, d, k), m = case
    X = data.blobs(n, d, k, data.OVERLAPPING, dtype=dtype)
    start = data.random_rows(X, k) + X.dtype.type(0.01)  # off the rows: libraries differ on a row at distance zero
    with data.shared(X=X, start=start) as folder:
        asked = {"folder": folder, "dtype": dtype, "m": m, "repeats": 3}
        return race("bench_fuzzy:measure", asked, FUZZY, options.turns(5, quick=1), options=options)


def row(case: Case, outcomes: Race) -> tuple[list[str], Ratio | None]:
    dtype, size, m = case
    best = best_variant(outcomes, best_seconds)
    label = f"{shape(*size)}, m = {m:g}, {dtype}"
    costs = {name: best_seconds(o) for name, o in best.items() if o.reports}
    medians = {name: median_seconds(o) for name, o in best.items() if o.reports}
    ratio = against_fastest(f"fuzzy c-means {label}", costs, is_disturbed(outcomes))
    middle = against_fastest(label, medians)
    shown = cells(names_of(FUZZY), best, lambda o: f"{1e3 * best_seconds(o):.1f} ({1e3 * median_seconds(o):.1f})")
    return [label, *shown, f"{times(ratio)} ({times(middle)})", spread(outcomes)], ratio


def spread(outcomes: Race) -> str:
    """Largest relative difference between the objectives: large means the work was not the same."""
    found = [o.reports[0]["objective"] for o in outcomes.values() if o.reports]
    return f"{max(found) / min(found) - 1:.0e}" if len(found) > 1 else NONE


def run(options: Options) -> Result:
    races = {case: run_case(case, options) for case in (QUICK_CASES if options.quick else CASES)}
    made = [row(case, outcomes) for case, outcomes in races.items()]
    table = Table(
        f"Fuzzy c-means, {ITERATIONS} iterations: ms, best (median)",
        ["n, d, k", *names_of(FUZZY), "fastest peer / coterie", "objective spread"],
        [line for line, _ in made],
        timing_notes(list(races.values())),
    )
    numbers = {line[0]: raw(outcomes) for (line, _), outcomes in zip(made, races.values(), strict=True)}
    return Result([table], [ratio for _, ratio in made if ratio], numbers)


if __name__ == "__main__":
    main("fuzzy", run)
