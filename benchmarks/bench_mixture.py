"""Gaussian mixtures: one EM iteration, the time to the same likelihood, and the memory of a fit.

Data and start are the same for all. An iteration is the slope between fits of different lengths, so what a library
does once a fit cancels; slow libraries get short fits. To the same likelihood all go on until they settle, and
the clock is read when each first comes within ``NEAR`` a row of the best that any has found.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import data, memory
from benchmarks.bench_lloyd import per_iteration
from benchmarks.competitors import (
    ALL,
    COTERIE_ACCELERATED,
    COTERIE_MIXTURE,
    OURS,
    POMEGRANATE,
    SKLEARN_MIXTURE,
    Competitor,
    FittedMixture,
    MixturePlan,
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

Size = tuple[int, int, int]

COMPETITORS = (COTERIE_MIXTURE, SKLEARN_MIXTURE, POMEGRANATE)
CLIMBERS = (COTERIE_MIXTURE, COTERIE_ACCELERATED, SKLEARN_MIXTURE)
CASES: list[tuple[str, Size]] = [
    ("full", (500_000, 8, 16)),
    ("full", (200_000, 32, 16)),
    ("full", (50_000, 128, 10)),
    ("tied", (200_000, 32, 16)),
    ("diag", (500_000, 16, 16)),
    ("spherical", (500_000, 16, 16)),
]
QUICK_CASES: list[tuple[str, Size]] = [("full", (20_000, 8, 8)), ("diag", (20_000, 8, 8))]
WIDE, NARROW = DTYPES = ("float64", "float32")
SAME = 3  # iterations after which likelihoods are compared: a length of every library
LENGTHS, SLOW_LENGTHS = [SAME, 15], [1, SAME]
CLIMB, QUICK_CLIMB = (100_000, 8, 8), (5_000, 4, 3)
SLOW = 3.5  # separation: EM takes hundreds of iterations
NEAR = 1e-5
# scikit-learn's is the last gain a row, coterie's what is left to gain of all rows: either ends well within NEAR
CLIMB_TOL = {OURS: 1e-4, "scikit-learn": 1e-8}
CLIMB_MAX_ITER = 3000
MEMORY, QUICK_MEMORY = (1_000_000, 16, 16), (50_000, 16, 8)
STARTS = {"given": "given start", "own": "own start"}


# one iteration


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: (iterations, seconds) of a fit of each length, and in the first turn what one of them has found."""
    X = data.load(case["folder"], "X")
    lengths = LENGTHS if competitor.name == OURS else SLOW_LENGTHS
    competitor.fit(X, plan(case, lengths[0]))
    pairs: list[tuple[int, float]] = []
    likelihood = None
    for length in lengths:
        begin = perf_counter()
        fitted: FittedMixture = competitor.fit(X, plan(case, length))
        pairs.append((fitted.n_iter, perf_counter() - begin))
        if length == SAME and case["turn"] == 0:
            likelihood = data.mean_log_likelihood(X, case["form"], fitted.weights, fitted.means, fitted.covariances)
    if [iterations for iterations, _ in pairs] != lengths:
        raise RuntimeError(f"asked for {lengths} iterations, got {[i for i, _ in pairs]}")
    return {"pairs": pairs, "likelihood": likelihood}


def plan(case: dict[str, Any], max_iter: int, tol: float = 0.0, **more: Any) -> MixturePlan:
    start = tuple(data.load(case["folder"], part) for part in ("weights", "means", "precisions"))
    return MixturePlan(case["k"], case["form"], max_iter, tol, start, **more)


def run_case(form: str, size: Size, dtype: str, options: Options) -> Race:
    n, d, k = size
    X = data.blobs(n, d, k, data.OVERLAPPING, dtype=dtype)
    weights, means, precisions = data.mixture_start(X, k, form)
    with data.shared(X=X, weights=weights, means=means, precisions=precisions) as folder:
        case = {"folder": folder, "k": k, "form": form, "dtype": dtype}
        return race("bench_mixture:measure", case, COMPETITORS, options.turns(4), options=options)


def likelihood_spread(outcomes: Race) -> str:
    """Largest difference between the results, a row: large means the work was not the same."""
    found = [o.reports[0]["likelihood"] for o in outcomes.values() if o.reports]
    return f"{max(found) - min(found):.0e}" if len(found) > 1 else NONE


def row(form: str, size: Size, dtype: str, outcomes: Race) -> tuple[list[str], Ratio | None]:
    best = best_variant(outcomes, per_iteration)
    label = f"EM iteration {form} {shape(*size)} {dtype}"
    costs = {name: per_iteration(o) for name, o in best.items() if o.reports}
    medians = {name: per_iteration(o, median) for name, o in best.items() if o.reports}
    ratio = against_fastest(label, costs, is_disturbed(outcomes))
    middle = against_fastest(label, medians)
    shown = cells(
        names_of(COMPETITORS),
        best,
        lambda o: f"{1e3 * per_iteration(o):.2f} ({1e3 * per_iteration(o, median):.2f})",
    )
    return [form, shape(*size), *shown, f"{times(ratio)} ({times(middle)})", likelihood_spread(outcomes)], ratio


def iteration_tables(races: dict[tuple[str, str, Size], Race]) -> tuple[list[Table], list[Ratio]]:
    header = ["covariances", "n, d, k", *names_of(COMPETITORS), "fastest peer / coterie", "likelihood spread"]
    tables, ratios = [], []
    for dtype in DTYPES:
        made = [row(form, size, dtype, outcomes) for (t, form, size), outcomes in races.items() if t == dtype]
        ratios += [ratio for _, ratio in made if ratio]
        notes = timing_notes([outcomes for (t, _, _), outcomes in races.items() if t == dtype])
        title = f"One EM iteration, {dtype}: ms, best (median)"
        tables.append(Table(title, header, [line for line, _ in made], notes))
    return [*tables, precision_table(races)], ratios


def precision_table(races: dict[tuple[str, str, Size], Race]) -> Table:
    """What float32 gains."""
    cases = [(form, size) for dtype, form, size in races if dtype == NARROW]
    lines = []
    for form, size in cases:
        ours = [best_variant(races[t, form, size], per_iteration).get(OURS, Outcome()) for t in DTYPES]
        seconds = [per_iteration(o) if o.reports else float("nan") for o in ours]
        shown = [f"{1e3 * s:.2f}" for s in seconds]
        lines.append([form, shape(*size), *shown, f"{seconds[0] / seconds[1]:.2f}"])
    header = ["covariances", "n, d, k", *DTYPES, f"{WIDE} / {NARROW}"]
    return Table("One EM iteration of coterie by type: ms", header, lines)


# the same likelihood


def climb(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: (seconds, iterations, mean log-likelihood) after every E-step of a fit."""
    X = data.load(case["folder"], "X")
    competitor.fit(X, plan(case, 4))
    trace: list[tuple[float, int, float]] = []
    begin = perf_counter()

    def watch(passes: int, likelihood: float) -> None:
        trace.append((perf_counter() - begin, passes - 1, likelihood))

    competitor.fit(X, plan(case, CLIMB_MAX_ITER, CLIMB_TOL[competitor.name], watch=watch))
    return {"trace": trace}


def arrival(outcome: Outcome, target: float) -> tuple[float, int] | None:
    """Seconds (least over rounds) and iterations until the likelihood was there."""
    first = [next(((s, i) for s, i, height in r["trace"] if height >= target), None) for r in outcome.reports]
    return min((found for found in first if found), default=None)


def run_climb(options: Options) -> tuple[Race, Table, list[Ratio]]:
    n, d, k = size = QUICK_CLIMB if options.quick else CLIMB
    X = data.blobs(n, d, k, SLOW, dtype="float64")
    weights, means, precisions = data.mixture_start(X, k, "full")
    with data.shared(X=X, weights=weights, means=means, precisions=precisions) as folder:
        case = {"folder": folder, "k": k, "form": "full", "dtype": "float64"}
        outcomes = race("bench_mixture:climb", case, CLIMBERS, options.turns(1), options=options)
    heights = [height for o in outcomes.values() for report in o.reports for _, _, height in report["trace"]]
    target = max(heights, default=0.0) - NEAR
    found = {key: arrival(o, target) for key, o in outcomes.items()}
    peer = found.get(SKLEARN_MIXTURE.key)
    lines, ratios = [], []
    for key, outcome in outcomes.items():
        name = f"{ALL[key].name}, accelerate=True" if key == COTERIE_ACCELERATED.key else ALL[key].name
        reached, ratio = found[key], None
        if reached and peer and ALL[key].name == OURS:
            label = f"time to the same likelihood {shape(*size)}: {name}"
            ratio = Ratio(label, reached[0], SKLEARN_MIXTURE.name, peer[0], is_disturbed(outcomes))
            ratios.append(ratio)
        last = f"{outcome.reports[0]['trace'][-1][2]:.6f}" if outcome.reports else NONE
        shown = [f"{reached[0]:.3f}", str(reached[1])] if reached else ["not reached"] * 2
        lines.append([name, *shown, last, times(ratio)])
    title = f"Time to the same likelihood, full {shape(*size)}, float64: within {NEAR:.0e} a row of the best"
    header = ["library", "seconds", "passes over the rows", "log-likelihood a row in the end", "scikit-learn / it"]
    return outcomes, Table(title, header, lines, timing_notes([outcomes])), ratios


# memory


def measure_memory(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: bytes above X at the highest point of a fit; libraries are loaded and compiled before."""
    X = data.load(case["folder"], "X")
    job = plan(case, 2) if case["start"] == "given" else MixturePlan(case["k"], case["form"], 2, 0.0)
    competitor.fit(X[:20_000], job)
    return {"bytes": memory.peak_increase(lambda: competitor.fit(X, job))}


def run_memory(options: Options) -> tuple[dict[str, Race], Table, list[Ratio]]:
    n, d, k = size = QUICK_MEMORY if options.quick else MEMORY
    X = data.blobs(n, d, k, data.OVERLAPPING, dtype="float64")
    weights, means, precisions = data.mixture_start(X, k, "full")
    names, races, lines, ratios = names_of(COMPETITORS), {}, [], []
    with data.shared(X=X, weights=weights, means=means, precisions=precisions) as folder:
        for start, words in STARTS.items():
            if options.quick and start == "given":
                continue
            case = {"folder": folder, "k": k, "form": "full", "dtype": "float64", "start": start}
            outcomes = race("bench_mixture:measure_memory", case, COMPETITORS, options.turns(2), options=options)
            races[start] = outcomes
            best = best_variant(outcomes, megabytes)
            costs = {name: megabytes(o) for name, o in best.items() if o.reports}
            ratio = against_fastest(f"peak memory of a mixture {shape(*size)}, {words}", costs)
            ratios += [ratio] if ratio else []
            share = f"{costs[OURS] * 1e6 / X.nbytes:.1%}" if OURS in costs else NONE
            shown = cells(names, best, lambda o: f"{megabytes(o):.1f}")
            lines.append([shape(*size), words, f"{X.nbytes / 1e6:.0f}", *shown, share, times(ratio)])
    header = ["n, d, k", "start", "X", *names, "coterie / X", "leanest peer / coterie"]
    title = "Peak memory above X during a fit, full, float64: MB"
    return races, Table(title, header, lines, failures(list(races.values()))), ratios


def megabytes(outcome: Outcome) -> float:
    # Counters lag by a few pages; a floor of 0.1 MB keeps ratios finite.
    return max(min(report["bytes"] for report in outcome.reports) / 1e6, 0.1)


def run(options: Options) -> Result:
    cases = [(WIDE, *case) for case in QUICK_CASES] + [(NARROW, *QUICK_CASES[0])]
    if not options.quick:
        cases = [(dtype, *case) for dtype in DTYPES for case in CASES]
    races = {(dtype, form, size): run_case(form, size, dtype, options) for dtype, form, size in cases}
    tables, ratios = iteration_tables(races)
    climbed, climb_table, climb_ratios = run_climb(options)
    memory_races, memory_table, memory_ratios = run_memory(options)
    numbers = {f"{dtype} {form} {shape(*size)}": raw(outcomes) for (dtype, form, size), outcomes in races.items()}
    numbers |= {"climb": raw(climbed)} | {f"memory, {start}": raw(o) for start, o in memory_races.items()}
    return Result([*tables, climb_table, memory_table], [*ratios, *climb_ratios, *memory_ratios], numbers)


if __name__ == "__main__":
    main("mixture", run)
