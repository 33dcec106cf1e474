"""A whole fit to convergence, and the memory it takes.

From equal given starts all follow the same path, so the times compare the same work. From each library's own
k-means++ the paths differ: read time and inertia together. scikit-learn runs as Lloyd and as Elkan and the
faster counts. faiss has no comparable tolerance and is measured in ``bench_lloyd`` and for memory only.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from time import perf_counter
from typing import Any

from benchmarks import data, memory
from benchmarks.competitors import (
    COTERIE,
    FAISS,
    INTELEX,
    OURS,
    SKLEARN,
    SKLEARN_ELKAN,
    Competitor,
    Fitted,
    Plan,
)
from benchmarks.harness import (
    Options,
    Outcome,
    Race,
    against_fastest,
    best_variant,
    cells,
    failures,
    is_disturbed,
    main,
    names_of,
    race,
    raw,
    timing_notes,
)
from benchmarks.report import NONE, Ratio, Result, Table, shape, times

COMPETITORS = (COTERIE, SKLEARN, SKLEARN_ELKAN, INTELEX)
MEMORY_COMPETITORS = (*COMPETITORS, FAISS)
SHAPES = [(200_000, 16, 64), (100_000, 32, 256), (500_000, 8, 20), (50_000, 128, 100)]
QUICK_SHAPES = [(5_000, 16, 20)]
MEMORY_SHAPE, QUICK_MEMORY_SHAPE = (1_000_000, 16, 64), (50_000, 16, 64)
DATA = {"overlapping": data.OVERLAPPING, "separated": data.SEPARATED}
STARTS = {"given": "equal given starts", "own": "each library's own k-means++"}
TOL, MAX_ITER = 1e-4, 300


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: every kind of start and seed once, after one fit that nobody times."""
    X = data.load(case["folder"], "X")
    plans = {(kind, seed): plan(case, kind, seed) for kind in STARTS for seed in case["seeds"]}
    competitor.fit(X, next(iter(plans.values())))
    return {"fits": [timed(competitor, X, p) | {"start": kind, "seed": s} for (kind, s), p in plans.items()]}


def plan(case: dict[str, Any], kind: str, seed: int) -> Plan:
    start = data.load(case["folder"], f"start{seed}") if kind == "given" else None
    return Plan(case["k"], MAX_ITER, TOL, start, seed)


def timed(competitor: Competitor, X: Any, plan: Plan) -> dict[str, Any]:
    begin = perf_counter()
    fitted: Fitted = competitor.fit(X, plan)
    seconds = perf_counter() - begin
    return {"seconds": seconds, "iterations": fitted.n_iter, "inertia": data.inertia(X, fitted.centers)}


def measure_memory(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: bytes above X at the highest point of a fit; libraries are loaded and compiled before."""
    X = data.load(case["folder"], "X")
    competitor.fit(X[:10_000], Plan(case["k"], 2, 0.0))
    return {"bytes": memory.peak_increase(lambda: competitor.fit(X, Plan(case["k"], 10, 0.0)))}


def fits(outcome: Outcome, start: str) -> list[dict[str, Any]]:
    return [fit for report in outcome.reports for fit in report["fits"] if fit["start"] == start]


def seconds(outcome: Outcome, start: str) -> float:
    """Best over rounds for each seed, mean over seeds."""
    best: dict[int, float] = {}
    for fit in fits(outcome, start):
        best[fit["seed"]] = min(fit["seconds"], best.get(fit["seed"], float("inf")))
    return fmean(best.values())


def mean_of(outcome: Outcome, start: str, what: str) -> float:
    return fmean(fit[what] for fit in fits(outcome, start))


def run_case(size: tuple[int, int, int], separation: float, options: Options) -> Race:
    n, d, k = size
    X = data.blobs(n, d, k, separation)
    seeds = range(1 if options.quick else 2)
    starts = {f"start{seed}": data.spread_rows(X, k, seed) for seed in seeds}
    with data.shared(X=X, **starts) as folder:
        case = {"folder": folder, "k": k, "seeds": list(seeds)}
        return race("bench_fit:measure", case, COMPETITORS, options.turns(2), options=options)


def row(kind: str, label: str, start: str, outcomes: Race) -> tuple[list[str], Ratio | None]:
    best = best_variant(outcomes, lambda o: seconds(o, start))
    costs = {name: seconds(o, start) for name, o in best.items() if o.reports}
    ratio = against_fastest(f"fit {label} {kind}, {STARTS[start]}", costs, is_disturbed(outcomes))
    quality = NONE
    if ratio:
        quality = f"{mean_of(best[OURS], start, 'inertia') / mean_of(best[ratio.peer], start, 'inertia'):.4f}"
    shown = cells(
        names_of(COMPETITORS),
        best,
        lambda o: f"{seconds(o, start):.3f} ({mean_of(o, start, 'iterations'):.0f})",
    )
    return [kind, label, *shown, times(ratio), quality], ratio


def fit_tables(
    races: dict[tuple[str, tuple[int, int, int]], Race],
) -> tuple[list[Table], list[Ratio]]:
    header = ["data", "n, d, k", *names_of(COMPETITORS), "fastest peer / coterie", "inertia / that peer's"]
    tables, ratios = [], []
    for start, words in STARTS.items():
        made = [row(kind, shape(*size), start, outcomes) for (kind, size), outcomes in races.items()]
        ratios += [ratio for _, ratio in made if ratio]
        title = f"Fit to convergence, float32, {words}: seconds (iterations)"
        tables.append(Table(title, header, [line for line, _ in made], timing_notes(list(races.values()))))
    return tables, ratios


def run_memory(options: Options) -> tuple[Race, Table, Ratio | None]:
    n, d, k = size = QUICK_MEMORY_SHAPE if options.quick else MEMORY_SHAPE
    X = data.blobs(n, d, k, data.OVERLAPPING)
    with data.shared(X=X) as folder:
        case = {"folder": folder, "k": k}
        outcomes = race("bench_fit:measure_memory", case, MEMORY_COMPETITORS, options.turns(3), options=options)
    best = best_variant(outcomes, megabytes)
    ratio = against_fastest(
        f"peak memory of a fit {shape(*size)}", {n: megabytes(o) for n, o in best.items() if o.reports}
    )
    line = [shape(*size), f"{X.nbytes / 1e6:.0f}"]
    line += cells(names_of(MEMORY_COMPETITORS), best, lambda o: f"{megabytes(o):.1f}")
    header = ["n, d, k", "X", *names_of(MEMORY_COMPETITORS), "leanest peer / coterie"]
    title = "Peak memory above X during a fit, float32: MB"
    return outcomes, Table(title, header, [[*line, times(ratio)]], failures([outcomes])), ratio


def megabytes(outcome: Outcome) -> float:
    # Counters lag by a few pages; a floor of 0.1 MB keeps ratios finite.
    return max(min(report["bytes"] for report in outcome.reports) / 1e6, 0.1)


def run(options: Options) -> Result:
    sizes: Sequence[tuple[int, int, int]] = QUICK_SHAPES if options.quick else SHAPES
    races = {(kind, size): run_case(size, DATA[kind], options) for kind in DATA for size in sizes}
    tables, ratios = fit_tables(races)
    memory_race, memory_table, memory_ratio = run_memory(options)
    numbers = {f"{kind} {shape(*size)}": raw(outcomes) for (kind, size), outcomes in races.items()}
    ratios += [memory_ratio] if memory_ratio else []
    return Result([*tables, memory_table], ratios, numbers | {"memory": raw(memory_race)})


if __name__ == "__main__":
    main("fit", run)
