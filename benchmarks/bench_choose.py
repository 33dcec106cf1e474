"""How many clusters, by all criteria: time against the number of rows. No other library has the like."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.competitors import Competitor
from benchmarks.contest import Case, contest, timed
from benchmarks.harness import Options, main
from benchmarks.report import Result

CASES: list[Case] = [
    {"label": f"{n} x 10, {dtype}", "n": n, "k": 6, "dtype": dtype}
    for n, dtype in [
        (1_000, "float64"),
        (10_000, "float64"),
        (10_000, "float32"),
        (100_000, "float32"),
        (1_000_000, "float32"),
    ]
]
QUICK_CASES: list[Case] = [{"label": "quick", "n": 200, "k": 3, "dtype": "float64"}]


def ours(X: np.ndarray) -> int:
    from coterie import choose_k

    return choose_k(X, random_state=0).recommended


COMPETITORS = (Competitor("coterie", "coterie", ours),)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """The check is the number of clusters found."""
    rng = np.random.default_rng(0)
    centers = 4 * rng.normal(size=(case["k"], 10))
    X = (centers[rng.integers(0, case["k"], case["n"])] + rng.normal(size=(case["n"], 10))).astype(case["dtype"])
    return timed(lambda: competitor.fit(X), 1, float)


def run(options: Options) -> Result:
    cases = QUICK_CASES if options.quick else CASES
    return contest("bench_choose:measure", "Choosing K", cases, COMPETITORS, options, rounds=1, check="K")


if __name__ == "__main__":
    main("choose", run)
