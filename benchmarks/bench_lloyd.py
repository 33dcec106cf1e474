"""One Lloyd iteration, the same data and start for all.

Warm: fits of different lengths are timed and the slope taken, so what a library does once a fit cancels. Cold: import
and first fit in a fresh process, two iterations; kernels have been compiled by an earlier process.

The last table has rows with heavy tails, for coterie alone: a few far centers must not slow down the other rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib import import_module
from statistics import linear_regression, median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks import data, peak
from benchmarks.competitors import (
    COTERIE_LLOYD,
    FAISS,
    FAISS_SKYLAKEX,
    INTELEX,
    OURS,
    SKLEARN,
    Competitor,
    Plan,
)
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

if TYPE_CHECKING:
    import numpy as np

COMPETITORS = (COTERIE_LLOYD, SKLEARN, INTELEX, FAISS, FAISS_SKYLAKEX)
SHAPES = {
    "float32": [
        (2_000_000, 2, 8),
        (1_000_000, 16, 64),
        (500_000, 32, 256),
        (200_000, 128, 256),
        (200_000, 128, 1024),
        (100_000, 784, 10),
        (50_000, 384, 1000),
    ],
    "float64": [(1_000_000, 16, 64), (500_000, 32, 256), (200_000, 128, 256)],
}
QUICK_SHAPES = {"float32": [(20_000, 16, 64)], "float64": [(20_000, 16, 64)]}
TAIL_SHAPES, QUICK_TAIL_SHAPES = [(1_000_000, 2, 8), (200_000, 16, 64), (100_000, 64, 256)], [(20_000, 16, 64)]
COLD_ITERATIONS = 2


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: (iterations, seconds) of fits of each length, repeated for ``budget`` seconds."""
    X, start = data.load(case["folder"], "X"), data.load(case["folder"], "start")
    lengths = case["lengths"]
    begin = perf_counter()
    import_module(competitor.package)
    competitor.fit(X, Plan(len(start), COLD_ITERATIONS, 0.0, start))
    cold = perf_counter() - begin
    pairs: list[tuple[int, float]] = []
    end = perf_counter() + case["budget"]
    while not pairs or perf_counter() < end:
        for length in lengths:
            begin = perf_counter()
            fitted = competitor.fit(X, Plan(len(start), length, 0.0, start))
            pairs.append((fitted.n_iter, perf_counter() - begin))
    if len({iterations for iterations, _ in pairs}) < len(lengths):
        raise RuntimeError(f"asked for {lengths} iterations, got {sorted({i for i, _ in pairs})}")
    inertia = data.inertia(X, fitted.centers) if case["turn"] == 0 else None
    return {"pairs": pairs, "inertia": inertia, "cold": cold}


def per_iteration(outcome: Outcome, statistic: Callable[[Sequence[float]], float] = min) -> float:
    """Seconds an iteration: the slope through the pooled times of each fit length."""
    seconds: dict[int, list[float]] = defaultdict(list)
    for report in outcome.reports:
        for iterations, elapsed in report["pairs"]:
            seconds[iterations].append(elapsed)
    lengths = sorted(seconds)
    return linear_regression(lengths, [statistic(seconds[i]) for i in lengths]).slope


def cold_seconds(outcome: Outcome) -> float:
    """Seconds of import and first fit: the best process, because the first one may have compiled."""
    return min(report["cold"] for report in outcome.reports)


def run_case(
    X: np.ndarray, start: np.ndarray, options: Options, competitors: Sequence[Competitor] = COMPETITORS
) -> Race:
    lengths, budget = ([1, 4], 0.0) if options.quick else ([1, 7], 0.0)
    with data.shared(X=X, start=start) as folder:
        case = {"folder": folder, "dtype": X.dtype.name, "lengths": lengths, "budget": budget}
        return race("bench_lloyd:measure", case, competitors, options.turns(5, quick=2), options=options)


def run_blobs(dtype: str, size: tuple[int, int, int], options: Options) -> Race:
    n, d, k = size
    X = data.blobs(n, d, k, data.OVERLAPPING, dtype=dtype)
    return run_case(X, data.random_rows(X, k), options)


def inertia_spread(outcomes: Race) -> str:
    """Largest relative difference between the results: large means the work was not the same."""
    found = [o.reports[0]["inertia"] for o in outcomes.values() if o.reports]
    return f"{max(found) / min(found) - 1:.0e}" if len(found) > 1 else NONE


def efficiency(size: tuple[int, int, int], dtype: str, seconds: float, quick: bool) -> list[str]:
    n, d, k = size
    best = peak.measure(quick)
    gflops = 2 * n * d * k / seconds / 1e9
    gbytes = n * d * (4 if dtype == "float32" else 8) / seconds / 1e9
    return [f"{gflops:.0f}", f"{gflops / best[dtype]:.0%}", f"{gbytes / best['read']:.0%}"]


def row(size: tuple[int, int, int], dtype: str, outcomes: Race, quick: bool) -> tuple[list[str], Ratio | None]:
    best = best_variant(outcomes, per_iteration)
    costs = {name: per_iteration(o) for name, o in best.items() if o.reports}
    medians = {name: per_iteration(o, median) for name, o in best.items() if o.reports}
    label = f"Lloyd iteration {shape(*size)} {dtype}"
    ratio = against_fastest(label, costs, is_disturbed(outcomes))
    middle = against_fastest(label, medians)
    shares = efficiency(size, dtype, costs[OURS], quick) if OURS in costs else [NONE] * 3
    shown = cells(
        names_of(COMPETITORS),
        best,
        lambda o: f"{1e3 * per_iteration(o):.2f} ({1e3 * per_iteration(o, median):.2f})",
    )
    return [
        shape(*size),
        *shown,
        f"{times(ratio)} ({times(middle)})",
        *shares,
        inertia_spread(outcomes),
    ], ratio


def cold_row(size: tuple[int, int, int], dtype: str, outcomes: Race) -> tuple[list[str], Ratio | None]:
    best = best_variant(outcomes, cold_seconds)
    costs = {name: cold_seconds(o) for name, o in best.items() if o.reports}
    ratio = against_fastest(f"import and first fit {shape(*size)} {dtype}", costs, is_disturbed(outcomes))
    shown = cells(names_of(COMPETITORS), best, lambda o: f"{1e3 * cold_seconds(o):.1f}")
    return [shape(*size), *shown, times(ratio)], ratio


def run_tails(options: Options) -> tuple[Table, dict[str, Any]]:
    """Iterations of coterie on rows with heavy tails, one table row a shape."""
    rows, races, numbers = [], [], {}
    for size in QUICK_TAIL_SHAPES if options.quick else TAIL_SHAPES:
        n, d, k = size
        seconds = {}
        for kind in data.TAILS:
            X = data.tails(kind, n, d)
            outcomes = run_case(X, data.random_rows(X, k), options, [COTERIE_LLOYD])
            races.append(outcomes)
            numbers[f"{kind} {shape(*size)}"] = raw(outcomes)
            outcome = outcomes.get(COTERIE_LLOYD.key)
            if outcome and outcome.reports:
                seconds[kind] = per_iteration(outcome)
        base = seconds.get("normal")
        shown = [f"{1e3 * s:.2f} ({s / base:.2f})" for s in seconds.values()] if base else [NONE] * len(data.TAILS)
        rows.append([shape(*size), *shown])
    title = "One Lloyd iteration of coterie on rows with heavy tails, float32: ms (relative to normal rows)"
    return Table(title, ["n, d, k", *data.TAILS], rows, timing_notes(races)), numbers


def run(options: Options) -> Result:
    tables, ratios, numbers = [], [], {}
    header = ["n, d, k", *names_of(COMPETITORS), "fastest peer / coterie"]
    header += ["GFLOP/s", "of FMA peak", "of read bandwidth", "inertia spread"]
    for dtype, sizes in (QUICK_SHAPES if options.quick else SHAPES).items():
        races = {size: run_blobs(dtype, size, options) for size in sizes}
        notes = timing_notes(list(races.values()))
        numbers |= {f"{dtype} {shape(*size)}": raw(outcomes) for size, outcomes in races.items()}
        warm = [row(size, dtype, outcomes, options.quick) for size, outcomes in races.items()]
        cold = [cold_row(size, dtype, outcomes) for size, outcomes in races.items()]
        ratios += [ratio for _, ratio in warm + cold if ratio]
        title = f"One Lloyd iteration, {dtype}: ms, best (median)"
        tables.append(Table(title, header, [line for line, _ in warm], notes))
        title = f"Import and first fit in a fresh process, {COLD_ITERATIONS} iterations, {dtype}: ms"
        tables.append(Table(title, header[:-4], [line for line, _ in cold], notes))
    tails, tail_numbers = run_tails(options)
    return Result([*tables, tails], ratios, numbers | tail_numbers)


if __name__ == "__main__":
    main("lloyd", run)
