"""Races in which every library does the same work on the same input: time, and a number that shows it was the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.competitors import OURS, Competitor
from benchmarks.harness import (
    Options,
    Outcome,
    Race,
    against_fastest,
    best_variant,
    cells,
    is_disturbed,
    names_of,
    race,
    raw,
    timing_notes,
)
from benchmarks.report import NONE, Ratio, Result, Table, times

Case = dict[str, Any]  # JSON; has a `label`, and a `dtype` where not every library takes it


def timed(
    work: Callable[[], Any], repeats: int, check: Callable[[Any], float], *, loaded: bool = False
) -> dict[str, Any]:
    """Worker: seconds of every repeat, after a first one that loads what is to be loaded unless that is done."""
    answer = None if loaded else work()
    seconds = []
    for _ in range(repeats):
        begin = perf_counter()
        answer = work()
        seconds.append(perf_counter() - begin)
    return {"seconds": seconds, "check": check(answer)}


def quietly(model: Any, X: Any) -> Any:
    """A fit that is cut short on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def contest(
    target: str,
    title: str,
    cases: Sequence[Case],
    competitors: Sequence[Competitor],
    options: Options,
    *,
    rounds: int = 3,
    check: str = "answer",
) -> Result:
    """One row a case; ``target`` is ``module:function`` of this package, which measures one competitor.

    A report may have the time of a "first" call, with imports, beside the "seconds" of later ones.
    """
    races = [race(target, case, competitors, options.turns(rounds), options=options) for case in cases]
    made = [_row(title, case, outcomes, competitors) for case, outcomes in zip(cases, races, strict=True)]
    header = ["", *names_of(competitors), "fastest peer / coterie", f"{check}: coterie / peer"]
    form = "first; best (median)" if any("first" in report for report in _reports(races)) else "best (median)"
    table = Table(f"{title}: ms, {form}", header, [line for line, _ in made], timing_notes(races))
    numbers = {case["label"]: raw(outcomes) for case, outcomes in zip(cases, races, strict=True)}
    return Result([table], [ratio for _, ratio in made if ratio], numbers)


def _row(title: str, case: Case, outcomes: Race, competitors: Sequence[Competitor]) -> tuple[list[str], Ratio | None]:
    best = best_variant(outcomes, best_seconds)
    costs = {name: best_seconds(o) for name, o in best.items() if o.reports}
    ratio = against_fastest(f"{title} {case['label']}", costs, is_disturbed(outcomes))
    shown = cells(names_of(competitors), best, _shown)
    return [case["label"], *shown, times(ratio), _beside(best, ratio)], ratio


def _reports(races: Sequence[Race]) -> list[dict[str, Any]]:
    return [report for outcomes in races for outcome in outcomes.values() for report in outcome.reports]


def _shown(outcome: Outcome) -> str:
    later = f"{1e3 * best_seconds(outcome):.3g} ({1e3 * median_seconds(outcome):.3g})"
    first = [report["first"] for report in outcome.reports if "first" in report]
    return f"{1e3 * min(first):.3g}; {later}" if first else later


def best_seconds(outcome: Outcome) -> float:
    return min(s for report in outcome.reports for s in report["seconds"])


def median_seconds(outcome: Outcome) -> float:
    return median(s for report in outcome.reports for s in report["seconds"])


def _beside(best: Mapping[str, Outcome], ratio: Ratio | None) -> str:
    """Our answer in parts of the fastest peer's."""
    if ratio is None:
        return NONE
    ours, theirs = (best[name].reports[0]["check"] for name in (OURS, ratio.peer))
    return f"{ours / theirs:.6g}" if theirs else NONE
