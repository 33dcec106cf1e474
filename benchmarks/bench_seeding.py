"""Greedy k-means++ and the default seeds of K-means: time, and how good the seeds are over several random states."""

from __future__ import annotations

from functools import partial
from statistics import fmean, median, stdev
from time import perf_counter
from typing import Any

import numpy as np

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
SEEDS, QUICK_SEEDS = 20, 4


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
        if competitor.key == COTERIE.key:
            draws[-1] |= default_seeds(X, case["k"], seed)
    return {"draws": draws}


def default_seeds(X: np.ndarray, k: int, seed: int) -> dict[str, float]:
    """The seeds of a default fit on one thread, and one iteration from them."""
    from coterie import seeding
    from coterie.data.memory import MemorySource
    from coterie.engines.local import Serial
    from coterie.kmeans.lloyd import Lloyd

    source, engine, model = MemorySource(X), Serial(), Lloyd(k)
    begin = perf_counter()
    centers = seeding.start("auto", source, engine, np.random.default_rng(seed), k, 1.0)
    seconds, iterations = perf_counter() - begin, []
    for _ in range(3):
        memos = model.initial_memos(source)
        begin = perf_counter()
        engine.scan(partial(model.e_step, centers), source, memos)
        iterations.append(perf_counter() - begin)
    found = {"seconds": seconds, "iteration": min(iterations), "potential": data.inertia(X, centers)}
    return {f"default_{name}": value for name, value in found.items()}


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


def default_row(size: tuple[int, int, int], outcomes: Race) -> list[str]:
    ours = outcomes[COTERIE.key]
    seconds, iteration = (min(values(ours, f"default_{name}"), default=np.nan) for name in ("seconds", "iteration"))
    relative = np.mean(values(ours, "default_potential")) / np.mean(values(ours, "potential"))
    milliseconds = [f"{1e3 * value:.1f}" for value in (seconds, iteration)]
    return [shape(*size), *milliseconds, f"{seconds / iteration:.1f}", f"{relative:.3f}"]


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
    default = Table(
        "Seeds of the default fit, float32, one thread; potential relative to greedy k-means++, mean over seeds",
        ["n, d, k", "seeds, ms", "iteration, ms", "iterations", "potential"],
        [default_row(size, outcomes) for size, outcomes in races.items()],
    )
    numbers = {shape(*size): raw(outcomes) for size, outcomes in races.items()}
    return Result([speed, quality, default], [ratio for _, _, ratio in made if ratio], numbers)


if __name__ == "__main__":
    main("seeding", run)
