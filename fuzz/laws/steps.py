"""What holds for every pass of every fit: an engine that checks each step against its definition."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from coterie.core.protocols import Chunk
from coterie.core.stats import Stats
from coterie.engines.local import Serial
from fuzz import estimators, tables
from fuzz.estimators import having
from fuzz.finding import require, require_close, require_same
from fuzz.law import Case, law
from fuzz.laws.fits import fit

# BisectingKMeans fits parts of the rows, and BalancedKMeans divides all rows at once
STEPS = tuple(name for name in having("has_engine") if name not in ("BisectingKMeans", "BalancedKMeans"))
NOT_SUMS = ("moved",)  # counts rows that changed cluster since the last pass, which a memo knows
LOG_DENSITIES = ("log_likelihood", "bound")


class CheckingEngine(Serial):
    """The serial engine; `check(step, chunk, stats)` sees every E-step with its result."""

    def __init__(self, check: Any) -> None:
        object.__setattr__(self, "check", check)

    def scan(self, step: Any, source: Any, memos: Any) -> Any:
        if getattr(getattr(step, "func", None), "__name__", "") == "e_step":
            step = partial(self._checked, step)
        return super().scan(step, source, memos)

    def _checked(self, step: Any, chunk: Chunk, memo: Any = None) -> Any:
        stats, memo = step(chunk, memo)
        self.check(step, chunk, stats)
        return stats, memo


def numbers(stats: Stats, prefix: str = "") -> dict[str, Any]:
    """The arrays of statistics by name."""
    found: dict[str, Any] = {}
    for name, value in zip(stats.__dataclass_fields__, stats.leaves(), strict=True):
        if isinstance(value, Stats):
            found.update(numbers(value, f"{prefix}{name}."))
        elif value is not None and name not in NOT_SUMS:
            found[prefix + name] = np.asarray(value)
    return found


def run(case: Case, check: Any) -> None:
    """Fit the subject of the case with that check of every E-step."""
    n = case.draw.integer(2, 60) if case.draw.happens(0.7) else case.draw.integer(300, 1500)
    n = min(n, 40) if case.subject == "TimeSeriesKMeans" else n
    d = case.draw.integer(1, 6)
    changed: dict[str, Any] = {"engine": CheckingEngine(check), "max_iter": 5, "n_init": 1}
    if case.subject == "KMeans":
        changed |= {"search": "none", "search_budget": None}
        if n >= 300 and case.draw.happens(0.7):  # so large that bounds are used
            changed, n, d = changed | {"n_clusters": 64, "max_iter": 30}, 2 * n, 16
    estimator = estimators.build(case, n, **changed)
    X = estimators.rows(case, estimator, tables.hostile(case.draw, n, d, scaled=False))
    w = tables.weights(case.draw, n)
    fit(estimator, X, None if w is not None and not 1e-9 < w.max() < 1e9 else w)


def taken(chunk: Chunk, rows: Any, w: Any = None) -> Chunk:
    """Some rows of a chunk, with new weights if there are any."""
    weights = chunk.w if w is None else w
    weights = None if weights is None else weights[rows]
    return Chunk(chunk.X[rows], weights, chunk.part, None if chunk.y is None else chunk.y[rows])


def weights_of(chunk: Chunk) -> Any:
    return np.ones(chunk.X.shape[0]) if chunk.w is None else chunk.w


# memos of KernelKMeans are sums that each pass corrects: equal up to rounding
@law([name for name in STEPS if name != "KernelKMeans"], weight=3)
def a_memo_never_changes_a_result(case: Case) -> None:
    def check(step: Any, chunk: Chunk, stats: Stats) -> None:
        plain, _ = step(chunk, None)
        for name, value in numbers(plain).items():
            require_same(numbers(stats)[name], value, f"{name} with a memo and without")

    run(case, check)


@law(STEPS)
def an_empty_chunk_gives_zero_statistics(case: Case) -> None:
    def check(step: Any, chunk: Chunk, stats: Stats) -> None:
        for name, value in numbers(step(taken(chunk, slice(0)), None)[0]).items():
            require(not np.any(value), f"{name} of no rows is {value}")

    run(case, check)


@law(STEPS)
def statistics_add_up(case: Case) -> None:
    def check(step: Any, chunk: Chunk, stats: Stats) -> None:
        cut = chunk.X.shape[0] // 3
        first, rest = (step(taken(chunk, rows), None)[0] for rows in (slice(cut), slice(cut, None)))
        require_alike(first + rest, step(chunk, None)[0], chunk, "in two chunks")

    run(case, check)


@law(STEPS)
def weight_two_is_the_row_twice(case: Case) -> None:
    def check(step: Any, chunk: Chunk, stats: Stats) -> None:
        w = weights_of(chunk)
        heavy, _ = step(chunk._replace(w=2.0 * w), None)
        doubled, _ = step(taken(chunk, np.repeat(np.arange(len(w)), 2), w), None)
        require_alike(doubled, heavy, chunk, "each row twice")

    run(case, check)


@law(STEPS)
def weight_zero_is_no_row(case: Case) -> None:
    def check(step: Any, chunk: Chunk, stats: Stats) -> None:
        w = weights_of(chunk)
        w = np.where(np.arange(len(w)) % 3 == 0, 0.0, w)
        kept = np.flatnonzero(w)
        if len(kept):
            ignored, _ = step(chunk._replace(w=w), None)
            require_alike(ignored, step(taken(chunk, kept, w), None)[0], chunk, "rows of weight zero")

    run(case, check)


def require_alike(actual: Stats, expected: Stats, chunk: Chunk, what: str) -> None:
    """Statistics must agree up to the rounding of sums, whose terms are as large as the rows and their weights.

    A log density is rounded as a number of about one, also where it is almost zero: kernels take logarithms of sums
    of probabilities near one.
    """
    rounding = 1e-9 if chunk.X.dtype == np.float64 else 1e-4
    weight, size = float(weights_of(chunk).sum()), float(np.abs(chunk.X).max(initial=0.0))
    for name, value in numbers(expected).items():
        terms = weight * (max(size, 1.0) if name in LOG_DENSITIES else size)
        allowed = rounding * max(float(np.abs(value).max(initial=0.0)), terms)
        require_close(numbers(actual)[name], value, f"{name}, {what}", rounding, allowed)
