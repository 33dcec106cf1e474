"""Greedy k-means++: time, and how good the seeds are over several random states."""

from __future__ import annotations

from statistics import fmean, median, stdev
from time import perf_counter
from typing import Any

from benchmarks import data
from benchmarks.competitors import COTERIE, SKLEARN, Competitor
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
from benchmarks.report import Ratio, Result, Table, shape, times

COMPETITORS = (COTERIE, SKLEARN)
SHAPES = [(500_000, 16, 64), (200_000, 32, 256)]
QUICK_SHAPES = [(10_000, 16, 64)]
SEEDS, QUICK_SEEDS = 10, 4


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: this turn's share of the seeds, after one call that nobody times."""
    if competitor.plusplus is None:
        raise TypeError(f"{competitor.key} has no k-means++ of its own")
    X = data.load(case["folder"], "X")
    competitor.plusplus(X, case["k"], case["n_seeds"])
    draws = []
    for seed in range(case["turn"], case["n_seeds"], case["rounds"]):
        begin = perf_counter()
        centers = competitor.plusplus(X, case["k"], seed)
        seconds = perf_counter() - begin
        draws.append({"seed": seed, "seconds": seconds, "potential": data.inertia(X, centers)})
    return {"draws": draws}


def values(outcome: Outcome, what: str) -> list[float]:
    return [draw[what] for report in outcome.reports for draw in report["draws"]]


def best_seconds(outcome: Outcome) -> float:
    return min(values(outcome, "seconds"))


def run_case(size: tuple[int, int, int], options: Options) -> Race:
    n, d, k = size
    rounds, n_seeds = options.turns(5, quick=2), QUICK_SEEDS if options.quick else SEEDS
    with data.shared(X=data.blobs(n, d, k, data.OVERLAPPING)) as folder:
        case = {"folder": folder, "k": k, "n_seeds": n_seeds, "rounds": rounds}
        return race("bench_seeding:measure", case, COMPETITORS, rounds, options=options)


def rows(size: tuple[int, int, int], outcomes: Race) -> tuple[list[str], list[str], Ratio | None]:
    best = best_variant(outcomes, best_seconds)
    label = shape(*size)
    costs = {name: best_seconds(o) for name, o in best.items() if o.reports}
    ratio = against_fastest(f"greedy k-means++ {label}", costs, is_disturbed(outcomes))
    names = names_of(COMPETITORS)
    time_cells = cells(names, best, lambda o: f"{1e3 * best_seconds(o):.0f} ({1e3 * median(values(o, 'seconds')):.0f})")
    return [label, *time_cells, times(ratio)], [label, *cells(names, best, potential)], ratio


def potential(outcome: Outcome) -> str:
    found = values(outcome, "potential")
    return f"{fmean(found):.4g} ± {stdev(found):.2g}"


def run(options: Options) -> Result:
    races = {size: run_case(size, options) for size in (QUICK_SHAPES if options.quick else SHAPES)}
    made = [rows(size, outcomes) for size, outcomes in races.items()]
    foot, names = timing_notes(list(races.values())), names_of(COMPETITORS)
    header = ["n, d, k", *names]
    speed = Table(
        "Greedy k-means++, float32: ms, best (median)",
        [*header, "fastest peer / coterie"],
        [times_row for times_row, _, _ in made],
        foot,
    )
    quality = Table(
        "Potential of the seeds, mean ± sd over seeds",
        header,
        [q for _, q, _ in made],
        failures(list(races.values())),
    )
    numbers = {shape(*size): raw(outcomes) for size, outcomes in races.items()}
    return Result([speed, quality], [ratio for _, _, ratio in made if ratio], numbers)


if __name__ == "__main__":
    main("seeding", run)
