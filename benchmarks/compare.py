"""Whether a change made something slower: this checkout and another one in turns.

``python -m benchmarks.compare ../before`` runs the work of `bench_cold`, and K-means and mixtures of several shapes,
with the package of each checkout. Both use the benchmarks of this one. The best of all rounds counts: later calls,
and the first call in a process, whose kernels an earlier process has compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import bench_cold, bench_families, data
from benchmarks.bench_cold import OURS, Row, cold, warm
from benchmarks.competitors import COTERIE, COTERIE_LLOYD, COTERIE_MIXTURE, Competitor, MixturePlan, Plan, relative_fit
from benchmarks.harness import ROOT, Options, Outcome, Race, options_from, parser, race, timing_notes
from benchmarks.report import Table, count, markdown

HERE, OTHER = "this checkout", "the other"
COMPETITORS = tuple(Competitor(key, "coterie", lambda X, plan: None) for key in (HERE, OTHER))
LLOYD = [(2_000_000, 2, 8), (1_000_000, 16, 64), (500_000, 32, 256), (200_000, 128, 256), (50_000, 384, 1000)]
FITS = [(200_000, 16, 64), (100_000, 32, 256), (500_000, 8, 20), (50_000, 128, 100)]
MIXTURE_SEARCHES = [(200, 4, 3), (2_000, 8, 5)]
CENTER_SEARCHES = [(150, 4, 3), (500, 8, 5), (2_000, 8, 5), (2_000, 10, 12), (5_000, 16, 12)]
SEARCHES: dict[str, tuple[str, dict[str, Any], list[tuple[int, int, int]]]] = {
    "Gaussian mixture": ("GaussianMixture", {}, MIXTURE_SEARCHES),
    "K-medians": ("KMedians", {}, CENTER_SEARCHES),
    "K-medians by l2": ("KMedians", {"metric": "l2"}, CENTER_SEARCHES),
    "spherical K-means": ("SphericalKMeans", {}, CENTER_SEARCHES),
    "fuzzy c-means": ("FuzzyCMeans", {}, CENTER_SEARCHES),
    "K-medoids": ("KMedoids", {}, [*CENTER_SEARCHES, (10_000, 16, 3)]),
}  # defaults, which search for a better optimum
SMALL = (2_000, 4, 5)


def rows_and_start(n: int, d: int, k: int, *, iterations: int, tol: float, dtype: str = "float32") -> tuple[Any, ...]:
    X = data.blobs(n, d, k, data.OVERLAPPING, dtype=dtype)
    return X, Plan(k, iterations, tol, data.random_rows(X, k))


def mixture(n: int, d: int, k: int, *, form: str) -> tuple[Any, ...]:
    X = data.blobs(n, d, k, data.OVERLAPPING, dtype="float64")
    return X, MixturePlan(k, form, 10, 0.0, data.mixture_start(X, k, form))


def groups_of(n: int, d: int, k: int) -> tuple[Any, ...]:
    return *bench_cold.groups(n, d, k), k


def counts(n: int, d: int, k: int, *, family: str) -> tuple[Any, ...]:
    X, labels = bench_families.rows(family, n, d, k)
    return X, bench_families.Plan(family, k, labels)


def rows() -> Iterator[tuple[str, Row]]:
    """All work, by name."""
    for size in LLOYD:
        make = partial(rows_and_start, iterations=8, tol=0.0)
        yield f"8 Lloyd iterations, {' x '.join(map(count, size))}", Row(size, SMALL, make, {OURS: COTERIE_LLOYD.fit})
    for size in FITS:
        make = partial(rows_and_start, iterations=100, tol=1e-4)
        yield f"K-means fit, {' x '.join(map(count, size))}", Row(size, SMALL, make, {OURS: COTERIE.fit})
    yield (
        "mini-batch K-means",
        Row((200_000, 16, 50), SMALL, bench_cold.blobs, {OURS: _from_rows(relative_fit("coterie", "MiniBatchKMeans"))}),
    )
    for form in ("full", "diag"):
        make = partial(mixture, form=form)
        yield f"Gaussian mixture, {form}", Row((200_000, 16, 20), SMALL, make, {OURS: COTERIE_MIXTURE.fit})
    for name, (estimator, options, sizes) in SEARCHES.items():
        for size in sizes:
            label = f"{name} with its search, {' x '.join(map(count, size))}"
            yield label, Row(size, (60, 2, 2), groups_of, {OURS: partial(_searched, estimator, options)})
    for family in ("poisson", "bernoulli"):
        make = partial(counts, family=family)
        yield f"{family} mixture", Row((50_000, 16, 10), SMALL, make, {OURS: bench_families.coterie})
    yield from bench_cold.ROWS.items()


def _from_rows(fit: Any) -> Any:
    return lambda X, k: fit(X, Plan(k, 100, 0.0, None, 0))


def _searched(estimator: str, options: dict[str, Any], X: Any, k: int) -> Any:
    import coterie

    return getattr(coterie, estimator)(k, random_state=0, **options).fit(X)


def measure(competitor: Competitor, case: dict[str, Any]) -> dict[str, Any]:
    """Worker: as `bench_cold.measure`, with the package that is first in the path."""
    import coterie

    row = dict(rows())[case["row"]]
    return {"calls": bench_cold.calls(row, OURS, case["quick"]), "package": str(Path(coterie.__file__).parent)}


def line(label: str, outcomes: Race) -> list[str]:
    ours, theirs = outcomes[HERE], outcomes[OTHER]
    if not (ours.reports and theirs.reports):
        return [label, *("failed" if not outcome.reports else "" for outcome in (ours, theirs)), "", "", ""]
    return [label, *_columns(ours, theirs, warm), *_columns(ours, theirs, cold)]


def _columns(ours: Outcome, theirs: Outcome, seconds: Any) -> list[str]:
    before, now = seconds(theirs), seconds(ours)
    return [f"{before:.3g}", f"{now:.3g}", f"{now / before:.2f}"]


def compare(other: Path, names: list[str], options: Options) -> Table:
    """A table of the seconds of both checkouts."""
    here, there = (
        replace(competitor, env={"PYTHONPATH": str(root / "src"), "NUMBA_CACHE_DIR": str(root / ".venv" / "numba")})
        for competitor, root in zip(COMPETITORS, (ROOT, other.resolve()), strict=True)
    )
    races = dict[str, Race]()
    for label, row in rows():
        if OURS in row.works and (not names or any(name in label for name in names)):
            case = {"row": label, "quick": options.quick}
            races[label] = race("compare:measure", case, [here, there], options.turns(3), options=options)
            print(*line(label, races[label]), flush=True)
    header = ["work", "later calls: before", "now", "now / before", "first call: before", "now", "now / before"]
    return Table(
        "Seconds, best", header, [line(label, outcomes) for label, outcomes in races.items()],
        timing_notes(list(races.values())),
    )  # fmt: skip


if __name__ == "__main__":
    arguments = parser("Compare this checkout with another one.")
    arguments.add_argument("other", type=Path, help="a checkout of another state")
    arguments.add_argument("names", nargs="*", help="parts of the names of the work; default: all")
    given = arguments.parse_args()
    print(markdown(compare(given.other, given.names, options_from(given))))
