"""What a user waits for in a fresh process, with nothing compiled before and with a warm compile cache.

Cold means that the folder of compiled kernels is empty; files of the operating system are cached either way.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from benchmarks.competitors import COTERIE, SKLEARN, Competitor
from benchmarks.harness import (
    Options,
    Outcome,
    Race,
    against_fastest,
    cells,
    is_disturbed,
    main,
    names_of,
    own_bytecode,
    race,
    raw,
    timing_notes,
)
from benchmarks.report import Ratio, Result, Table

COMPETITORS = (COTERIE, SKLEARN)
SIZES = {"150 x 4, k = 3": (150, 4, 3), "100k x 16, k = 64": (100_000, 16, 64)}
QUICK_SIZES = {"150 x 4, k = 3": (150, 4, 3)}
STEPS = {
    "package": "import the package",
    "estimator": "then import KMeans",
    "first": "first fit",
    "second": "second fit",
}


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: seconds of each step. Nothing here may import NumPy before the library does."""
    if competitor.estimator is None:
        raise TypeError(f"{competitor.key} has no estimator class")
    begin = perf_counter()
    import_module(competitor.package)
    package = perf_counter() - begin
    begin = perf_counter()
    kmeans = competitor.estimator()
    estimator = perf_counter() - begin

    from benchmarks import data

    n, d, k = case["size"]
    X = data.blobs(n, d, k, data.OVERLAPPING)
    report = {"package": package, "estimator": estimator}
    for step in ("first", "second"):
        begin = perf_counter()
        kmeans(k, n_init=1, random_state=0).fit(X)
        report[step] = perf_counter() - begin
    return report


def run_case(size: tuple[int, int, int], rounds: int, options: Options) -> dict[str, Race]:
    """Every round starts from an empty kernel cache, once; its second visit finds the cache warm."""
    merged: dict[str, Race] = {"cold": {}, "warm": {}}
    with TemporaryDirectory(prefix="benchmarks-") as folder:
        bytecode = own_bytecode(folder)
        fill = {**bytecode, "NUMBA_CACHE_DIR": str(Path(folder, "fill"))}
        visit(size, options, fill)
        for turn in range(rounds):
            env = {**bytecode, "NUMBA_CACHE_DIR": str(Path(folder, f"numba{turn}"))}
            for kept in merged.values():
                collect(kept, visit(size, options, env))
    return merged


def visit(size: tuple[int, int, int], options: Options, env: dict[str, str]) -> Race:
    return race("bench_start:measure", {"size": size}, COMPETITORS, 1, options=options, env=env)


def collect(kept: Race, found: Race) -> None:
    for key, outcome in found.items():
        whole = kept.setdefault(key, Outcome())
        whole.reports += outcome.reports
        whole.error = whole.error or outcome.error


def middle(outcome: Outcome, step: str) -> float:
    return float(median(report[step] for report in outcome.reports))


def until_first_result(outcome: Outcome) -> float:
    return middle(outcome, "package") + middle(outcome, "estimator") + middle(outcome, "first")


def show(outcome: Outcome, step: str) -> str:
    return f"{middle(outcome, step):.3f}"


def rows(label: str, cache: str, outcomes: Race) -> list[list[str]]:
    made = []
    for step, words in STEPS.items():
        shown = cells(names_of(COMPETITORS), outcomes, partial(show, step=step))
        made.append([label, cache, words, *shown])
    return made


def ratio(label: str, cache: str, outcomes: Race) -> Ratio | None:
    costs = {key: until_first_result(o) for key, o in outcomes.items() if o.reports}
    what = f"fresh process to first result, {label}, {cache} cache"
    return against_fastest(what, costs, is_disturbed(outcomes))


def run(options: Options) -> Result:
    lines: list[list[str]] = []
    races: dict[str, Race] = {}
    ratios = []
    for label, size in (QUICK_SIZES if options.quick else SIZES).items():
        for cache, outcomes in run_case(size, options.turns(5), options).items():
            lines += rows(label, cache, outcomes)
            races[f"{label} {cache}"] = outcomes
            ratios.append(ratio(label, cache, outcomes))
    header = ["table", "kernel cache", "step", *names_of(COMPETITORS)]
    table = Table("First call in a fresh process: seconds, median", header, lines, timing_notes(list(races.values())))
    numbers = {name: raw(outcomes) for name, outcomes in races.items()}
    return Result([table], [r for r in ratios if r], numbers)


if __name__ == "__main__":
    main("start", run)
