"""Choosing K, diagnosis and generated data: sound, the same every time, on any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import coterie
from coterie import datasets, hierarchy, selection
from fuzz import tables
from fuzz.call import attempt
from fuzz.estimators import numbers_in
from fuzz.finding import require, require_close, require_finite, require_same
from fuzz.law import Case, law

Array = np.ndarray[Any, Any]


def _choose(X: Array, n_jobs: int) -> Any:
    return coterie.choose_k(X, range(1, 5), budget="quick", random_state=0, n_jobs=n_jobs).recommended


CALLS: dict[str, Callable[[Array, int], Any]] = {
    "choose_k": _choose,
    "diagnose": lambda X, n_jobs: [
        (name, check.value) for name, check in coterie.diagnose(X, random_state=0, n_jobs=n_jobs).checks.items()
    ],
    "selection.gap_statistic": lambda X, n_jobs: selection.gap_statistic(
        X, range(1, 4), n_references=3, random_state=0, n_jobs=n_jobs
    ),
    "selection.g_means": lambda X, n_jobs: selection.g_means(X, k_max=4, random_state=0, n_jobs=n_jobs).labels,
    "selection.x_means": lambda X, n_jobs: selection.x_means(X, k_max=4, random_state=0, n_jobs=n_jobs).labels,
    "selection.stability": lambda X, n_jobs: (
        selection.stability(coterie.KMeans(n_init=1), X, range(2, 4), n_resamples=3, random_state=0, n_jobs=n_jobs).mean
    ),
    "selection.tendency": lambda X, n_jobs: (
        selection.tendency(X, (2, 3), n_references=2, random_state=0, n_jobs=n_jobs).silhouettes
    ),
    "selection.mixture_table": lambda X, n_jobs: (
        selection.mixture_table(X, range(1, 3), structures=["EII", "VVI"], random_state=0, n_jobs=n_jobs).log_likelihood
    ),
    "selection.sweep": lambda X, n_jobs: (
        selection.sweep(coterie.KMeans(n_init=1, random_state=0, n_jobs=n_jobs), X, range(1, 4)).objectives
    ),
    "selection.dendrogram_gap": lambda X, n_jobs: selection.dendrogram_gap(hierarchy.linkage(X, n_jobs=n_jobs)).jumps,
}
# NaN or None where a fit or a check is not possible; objectives can be too large for the units of the rows.
MAY_BE_UNDEFINED = ("selection.mixture_table", "selection.sweep", "diagnose")
WITHOUT_UNIT: dict[str, Callable[[Array, int], Any]] = {
    **{name: CALLS[name] for name in CALLS if name not in ("selection.mixture_table", "diagnose")},
    "selection.gap_statistic": lambda X, n_jobs: (
        selection.gap_statistic(X, range(1, 4), n_references=3, random_state=0, n_jobs=n_jobs).gap
    ),
    "selection.sweep": lambda X, n_jobs: (
        selection.sweep(coterie.KMeans(n_init=1, random_state=0, n_jobs=n_jobs), X, range(1, 4)).labels
    ),
}


def plain(value: Any) -> dict[str, Array]:
    """The numbers of a result, by name."""
    return numbers_in("result", value)


@law(CALLS, weight=2, hypothesis=False)
def choices_are_sound_on_any_table(case: Case) -> None:
    n, d = case.draw.integer(1, 80), case.draw.integer(1, 4)
    X = tables.hostile(case.draw, n, d)
    case.note(f"X: {X.shape} of {X.dtype}, from {X.min():g} to {X.max():g}")
    call = CALLS[case.subject]
    result = plain(attempt(call, X, 1))
    if case.subject not in MAY_BE_UNDEFINED:
        for name, value in result.items():
            require_finite(value, name)
    other = plain(attempt(call, X, 3))
    require(result.keys() == other.keys(), f"n_jobs=3: {sorted(result)} and {sorted(other)}")
    for name, value in result.items():
        require_same(other[name], value, f"n_jobs=3: {name}")


@law(WITHOUT_UNIT, hypothesis=False)
def a_power_of_two_changes_no_choice(case: Case) -> None:
    """Multiplying all rows by 2^p changes no label, index or number of clusters."""
    n, d = case.draw.integer(10, 80), case.draw.integer(1, 4)
    X, p = tables.benign(case.draw, n, d), case.draw.integer(-900, 900)
    case.note(f"X: {X.shape} * 2^{p}")
    call = WITHOUT_UNIT[case.subject]
    result, scaled = plain(attempt(call, X, 1)), plain(attempt(call, np.ldexp(X, p), 1))
    for name, value in result.items():
        require_close(scaled[name], value, f"{name} of X * 2^{p}", 1e-6, 1e-9)


@law(["selection.kneedle", "selection.second_derivative"], weight=2)
def knees_are_at_points_of_the_curve(case: Case) -> None:
    n = case.draw.integer(3, 20)
    x = np.arange(1.0, n + 1)
    y = case.draw.one_of([np.cumsum(case.draw.rng.exponential(size=n)), case.draw.integers(0, 5, (n,)) * 1.0, 1 / x])
    y = y * 10.0 ** case.draw.integer(-100, 100)
    knee = attempt(selection.kneedle, x, y).x
    require(knee is None or knee in x, f"the knee {knee} is not a point of the curve")
    bend = attempt(selection.second_derivative, x, y)
    require(bend is None or bend in x, f"the bend {bend} is not a point of the curve")


@law([f"datasets.{name}" for name in ("make_blobs", "make_gaussians", "make_moons", "make_rings")])
def generated_data_has_the_shape_that_was_asked_for(case: Case) -> None:
    make = getattr(datasets, case.subject.partition(".")[2])
    n, dtype = case.draw.integer(1, 60), case.draw.one_of([np.float32, np.float64])
    X, y, *_ = attempt(make, n, random_state=case.draw.integer(0, 9), dtype=dtype)
    require(X.shape == (n, 2) and y.shape == (n,) and X.dtype == dtype, f"X {X.shape} of {X.dtype}, y {y.shape}")
    require_finite(X, "X")


@law(["datasets.load_demo", "datasets.demo_file", "datasets.write_demo", "datasets.DEMOS", "datasets.DemoTable"])
def bundled_tables_are_whole(case: Case) -> None:
    name = case.draw.one_of(sorted(datasets.DEMOS))
    table = attempt(datasets.load_demo, name)
    lengths = {len(column) for column in table.data.values()}
    require(tuple(table.data) == table.columns and len(lengths) == 1, f"columns of {name}: {lengths}")
    path = attempt(datasets.write_demo, name, datasets.demo_file(name), overwrite=True)
    written = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    require(len(written) == lengths.pop(), f"{len(written)} rows of {name} were written")
