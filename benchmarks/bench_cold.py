"""The first call in a fresh process beside later ones, for work that users often do once.

Packages are imported before the first call, and compiled kernels and bytecode are on disk. So it includes loading the
kernels, and memory that the process uses for the first time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks import bench_density, bench_distances, bench_families, bench_fuzzy, bench_linkage, bench_metrics, data
from benchmarks.competitors import Competitor, Plan, coterie_plusplus, relative_fit, sklearn_plusplus
from benchmarks.harness import (
    Options,
    Outcome,
    Race,
    against_fastest,
    best_variant,
    is_disturbed,
    main,
    own_bytecode,
    race,
    raw,
    timing_notes,
)
from benchmarks.report import NONE, Ratio, Result, Table, count, times

OURS = "coterie"
MIN_SECONDS, MAX_REPEATS = 2.0, 5  # of later calls
Work = Callable[..., Any]


class Row(NamedTuple):
    """Work of several libraries on the same input."""

    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    make: Callable[..., tuple[Any, ...]]  # input from sizes
    works: Mapping[str, Work]  # by library: a function of the input


def blobs(n: int, d: int, k: int, dtype: str = "float32") -> tuple[Any, ...]:
    return data.blobs(n, d, k, data.OVERLAPPING, dtype=dtype), k


def directions(n: int, d: int, k: int) -> tuple[Any, ...]:
    X = data.blobs(n, d, k, data.OVERLAPPING)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, Plan(k, 20, 0.0, data.random_rows(X, k))


def normal_rows(n: int, d: int) -> tuple[Any, ...]:
    return (np.random.default_rng(0).normal(size=(n, d)),)


def labelled(n: int, d: int, k: int) -> tuple[Any, ...]:
    return (*blobs(n, d, k)[:1], np.random.default_rng(0).integers(0, k, n))


def groups(n: int, d: int, k: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return (4 * rng.normal(size=(k, d))[rng.integers(0, k, n)] + rng.normal(size=(n, d)),)


def fuzzy_start(n: int, d: int, k: int) -> tuple[Any, ...]:
    X, _ = blobs(n, d, k, "float64")
    start = data.random_rows(X, k) + 0.01
    return X, start, bench_fuzzy.memberships(X, start, 2.0), 2.0


def counts(n: int, d: int, k: int) -> tuple[Any, ...]:
    X, labels = bench_families.rows("multinomial, sparse", n, d, k)
    return X, bench_families.Plan("multinomial, sparse", k, labels)


def bisecting(package: str) -> Work:
    fit = relative_fit(package, "BisectingKMeans")
    return lambda X, k: fit(X, Plan(k, 300, 1e-4, None, 0))


def directional(name: str) -> Work:
    return relative_fit("coterie", name)


def choose(budget: str) -> Work:
    def work(X: np.ndarray) -> int:
        from coterie import choose_k

        return choose_k(X, budget=budget, random_state=0).recommended

    return work


def tree(library: Callable[..., np.ndarray], method: str) -> Work:
    return lambda X: library(X, method)


def distances(metric: str) -> Work:
    return lambda X: bench_distances.ours(X, metric)


LINKAGE = {OURS: bench_linkage.ours, "fastcluster": bench_linkage.fastcluster}
SILHOUETTE = {
    OURS: partial(bench_metrics.ours, "silhouette"),
    "scikit-learn": partial(bench_metrics.sklearn, "silhouette"),
}
SEEDING = {OURS: lambda X, k: coterie_plusplus(X, k, 0), "scikit-learn": lambda X, k: sklearn_plusplus(X, k, 0)}
BISECTING = {OURS: bisecting("coterie"), "scikit-learn": bisecting("sklearn.cluster")}
DENSITY = {OURS: bench_density.ours, "scikit-learn": bench_density.sklearn, "hdbscan": bench_density.hdbscan}
ROWS: dict[str, Row] = {
    **{
        name: Row(
            (20_000, 2), (1_000, 2), normal_rows,
            {library: partial(fit, method=method) for library, fit in DENSITY.items() if library in libraries},
        )
        for name, method, libraries in [
            ("HDBSCAN", "hdbscan", (OURS, "scikit-learn", "hdbscan")), ("DBSCAN", "dbscan", (OURS, "scikit-learn")),
        ]
    },
    "bisecting K-means": Row((100_000, 16, 50), (2_000, 4, 5), blobs, BISECTING),
    "bisecting K-means, many rows": Row((1_000_000, 16, 64), (3_000, 4, 5), blobs, BISECTING),
    "choose_k, 'quick'": Row((3_000, 8, 6), (200, 2, 3), groups, {OURS: choose("quick")}),
    "choose_k, 'normal'": Row((10_000, 10, 6), (200, 2, 3), groups, {OURS: choose("normal")}),
    "greedy k-means++": Row((500_000, 16, 64), (2_000, 4, 5), blobs, SEEDING),
    "spherical K-means, 20 iterations": Row(
        (500_000, 16, 50), (2_000, 4, 5), directions,
        {OURS: directional("SphericalKMeans"), "coterie's KMeans": directional("KMeans")},
    ),
    "silhouette": Row((50_000, 16, 10), (500, 4, 3), labelled, SILHOUETTE),
    "fuzzy c-means, 20 iterations, float64": Row(
        (100_000, 8, 10), (2_000, 4, 3), fuzzy_start,
        {OURS: bench_fuzzy.coterie, "scikit-fuzzy": bench_fuzzy.scikit_fuzzy},
    ),
    "distances by a user's function": Row(
        (8_000, 10), (300, 3), normal_rows, {OURS: distances("own"), "coterie's 'manhattan'": distances("manhattan")}
    ),
    "sparse multinomial mixture": Row(
        (100_000, 10_000, 20), (2_000, 500, 5), counts,
        {OURS: bench_families.coterie, "NumPy": bench_families.numpy},
    ),
    **{
        f"{method} linkage, float64": Row(
            (20_000, 10), (300, 3), normal_rows, {name: tree(library, method) for name, library in LINKAGE.items()}
        )
        for method in ("complete", "average", "single", "ward")
    },
}  # fmt: skip
PACKAGES = {
    OURS: "coterie", "scikit-learn": "sklearn", "fastcluster": "fastcluster", "scikit-fuzzy": "skfuzzy",
    "hdbscan": "hdbscan", "NumPy": "numpy", "coterie's KMeans": "coterie", "coterie's 'manhattan'": "coterie",
}  # fmt: skip
COMPETITORS = tuple(Competitor(name, package, lambda X, plan: None) for name, package in PACKAGES.items())


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    return {"calls": calls(ROWS[case["row"]], competitor.name, case["quick"])}


def calls(row: Row, library: str, quick: bool) -> list[tuple[float, float]]:
    """Worker: seconds and CPU seconds of the first call and of later ones, after one on few rows for the imports."""
    work = row.works[library]
    quietly(work, row.make(*row.quick))
    inputs = row.make(*(row.quick if quick else row.sizes))
    made: list[tuple[float, float]] = []
    while len(made) < 2 or (len(made) <= MAX_REPEATS and sum(wall for wall, _ in made[1:]) < MIN_SECONDS):
        begin, cpu = perf_counter(), process_time()
        quietly(work, inputs)
        made.append((perf_counter() - begin, process_time() - cpu))
    return made


def quietly(work: Work, inputs: tuple[Any, ...]) -> None:
    """A call that may stop before it converges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work(*inputs)


def cold(outcome: Outcome, column: int = 0) -> float:
    """Best first call: wall (column 0) or CPU (1) seconds."""
    return min(report["calls"][0][column] for report in outcome.reports)


def warm(outcome: Outcome, column: int = 0) -> float:
    return min(call[column] for report in outcome.reports for call in report["calls"][1:])


def line(label: str, size: tuple[int, ...], outcomes: Race) -> tuple[list[str], list[Ratio]]:
    sizes = " x ".join(map(count, size))
    ratios, cells = [], list[str]()
    for name, cost in (("first call", cold), ("later calls", warm)):
        best = best_variant(outcomes, cost)
        costs = {library: cost(outcome) for library, outcome in best.items() if outcome.reports}
        ratio = against_fastest(f"{label} {sizes}, {name}", costs, is_disturbed(outcomes))
        ratios += [ratio] if ratio else []
        ours = best.get(OURS)
        shown = f"{cost(ours):.3g} ({cost(ours, 1):.3g})" if ours is not None and ours.reports else "failed"
        cells += [shown, NONE if ratio is None else f"{ratio.theirs:.3g} {ratio.peer}", times(ratio)]
    return [f"{label}, {sizes}", *cells], ratios


def run(options: Options) -> Result:
    races: dict[str, Race] = {}
    with TemporaryDirectory(prefix="benchmarks-") as folder:
        for label, row in ROWS.items():
            competitors = [competitor for competitor in COMPETITORS if competitor.name in row.works]
            case, env = {"row": label, "quick": options.quick}, own_bytecode(folder)
            races[label] = race("bench_cold:measure", case, competitors, options.turns(3), options=options, env=env)
    sizes = {label: row.quick if options.quick else row.sizes for label, row in ROWS.items()}
    made = [line(label, sizes[label], outcomes) for label, outcomes in races.items()]
    header = [
        "work", "first call: coterie (CPU)", "fastest peer", "peer / coterie",
        "later calls: coterie (CPU)", "fastest peer", "peer / coterie",
    ]  # fmt: skip
    table = Table(
        "First call in a fresh process, and later calls: seconds, best", header, [cells for cells, _ in made],
        timing_notes(list(races.values())),
    )  # fmt: skip
    numbers = {label: raw(outcomes) for label, outcomes in races.items()}
    return Result([table], [ratio for _, ratios in made for ratio in ratios], numbers)


if __name__ == "__main__":
    main("cold", run)
