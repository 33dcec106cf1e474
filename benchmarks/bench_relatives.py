"""Relatives of K-means: mini-batches, bisections, directions. Time, and what the centers are worth."""

from __future__ import annotations

from statistics import fmean, median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from benchmarks import data
from benchmarks.competitors import BISECTING, MINIBATCH, SPHERICAL, Competitor, Plan
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

Size = tuple[int, int, int]  # n, d, k


class Relative(NamedTuple):
    title: str
    competitors: tuple[Competitor, ...]
    sizes: list[Size]
    quick: Size
    max_iter: int
    tol: float
    directions: bool = False  # rows of unit length, and a start that all share


RELATIVES = [
    Relative(
        "Mini-batches of 1024 rows until each library thinks it is done",
        MINIBATCH,
        [(200_000, 16, 50), (1_000_000, 32, 100)],
        (20_000, 16, 50),
        100,
        0.0,
    ),
    Relative("Bisections", BISECTING, [(100_000, 16, 50), (500_000, 8, 100)], (10_000, 16, 20), 300, 1e-4),
    Relative(
        "Directions, 20 iterations",
        SPHERICAL,
        [(200_000, 64, 100), (500_000, 16, 50)],
        (10_000, 32, 20),
        20,
        0.0,
        directions=True,
    ),
]
SEEDS, QUICK_SEEDS = 5, 2


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: this turn's share of the seeds, after a fit of some rows that loads what is to be loaded."""
    X = data.load(case["folder"], "X")
    start = data.load(case["folder"], "start") if case["directions"] else None
    competitor.fit(X[: 100 * case["k"]], Plan(case["k"], 2, 0.0, start))
    draws = []
    for seed in range(case["turn"], case["n_seeds"], case["rounds"]):
        begin = perf_counter()
        fitted = competitor.fit(X, Plan(case["k"], case["max_iter"], case["tol"], start, seed))
        seconds = perf_counter() - begin
        centers = unit(fitted.centers) if case["directions"] else fitted.centers
        draws.append({"seed": seed, "seconds": seconds, "inertia": data.inertia(X, centers)})
    return {"draws": draws}


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def values(outcome: Outcome, what: str) -> list[float]:
    return [draw[what] for report in outcome.reports for draw in report["draws"]]


def middle_seconds(outcome: Outcome) -> float:
    """Of the seeds, which are different work each."""
    return median(values(outcome, "seconds"))


def run_case(relative: Relative, size: Size, options: Options) -> Race:
    n, d, k = size
    rounds, n_seeds = options.turns(5, quick=1), QUICK_SEEDS if options.quick else SEEDS
    X = data.blobs(n, d, k, data.OVERLAPPING)
    X = unit(X) if relative.directions else X
    with data.shared(X=X, start=data.random_rows(X, k)) as folder:
        case = {
            "folder": folder, "k": k, "n_seeds": n_seeds, "rounds": rounds, "max_iter": relative.max_iter,
            "tol": relative.tol, "directions": relative.directions,
        }  # fmt: skip
        return race("bench_relatives:measure", case, relative.competitors, rounds, options=options)


def row(relative: Relative, size: Size, outcomes: Race) -> tuple[list[str], Ratio | None]:
    best = best_variant(outcomes, middle_seconds)
    label = shape(*size)
    costs = {name: middle_seconds(o) for name, o in best.items() if o.reports}
    ratio = against_fastest(f"{relative.title} {label}", costs, is_disturbed(outcomes))
    shown = cells(names_of(relative.competitors), best, lambda o: f"{1e3 * middle_seconds(o):.0f}; {worth(o, best)}")
    return [label, *shown, times(ratio)], ratio


def worth(outcome: Outcome, best: dict[str, Outcome]) -> str:
    """Mean inertia, in parts of the lowest one."""
    lowest = min(fmean(values(o, "inertia")) for o in best.values() if o.reports)
    return f"{fmean(values(outcome, 'inertia')) / lowest:.4f}" if lowest > 0 else NONE


def run(options: Options) -> Result:
    tables, ratios, numbers = [], [], {}
    for relative in RELATIVES:
        sizes = [relative.quick] if options.quick else relative.sizes
        races = {size: run_case(relative, size, options) for size in sizes}
        made = [row(relative, size, outcomes) for size, outcomes in races.items()]
        header = ["n, d, k", *names_of(relative.competitors), "fastest peer / coterie"]
        title = f"{relative.title}, float32: ms, median of the seeds; inertia / lowest"
        tables.append(Table(title, header, [line for line, _ in made], timing_notes(list(races.values()))))
        ratios += [ratio for _, ratio in made if ratio]
        numbers |= {f"{relative.title} {shape(*size)}": raw(outcomes) for size, outcomes in races.items()}
    return Result(tables, ratios, numbers)


if __name__ == "__main__":
    main("relatives", run)
