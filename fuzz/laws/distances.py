"""Distances equal SciPy's, series the recursions that define them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from coterie import distances
from coterie.distances import as_distance, dba, dtw, dtw_path, pairwise, register, soft_dtw
from coterie.distances.distance import _HOME
from fuzz import tables, twins
from fuzz.call import attempt
from fuzz.finding import Rejected, require, require_close, require_finite, require_same
from fuzz.law import Case, law

Array = np.ndarray[Any, Any]

METRICS = tuple(_HOME)  # without those that other cases have registered
IN_SCIPY = {"manhattan": "cityblock"}
NOT_IN_SCIPY = ("gower", "dtw", "jaccard", "haversine", "nan_euclidean")  # SciPy's jaccard is that of booleans only


@law(["distances.pairwise"], weight=12)
def pairwise_distances_are_those_of_scipy(case: Case) -> None:
    metric = case.draw.one_of([name for name in METRICS if name not in NOT_IN_SCIPY])
    n, d = case.draw.integer(1, 30), case.draw.integer(1, 8)
    X = case.draw.one_of([tables.blobs, tables.grid, tables.counts, tables.heavy_tails])(case.draw, n, d)
    Y = case.draw.one_of([X[: n // 2 + 1], tables.blobs(case.draw, 5, d)])
    options: dict[str, Any] = {"p": case.draw.one_of([1.5, 3.0])} if metric == "minkowski" else {}
    if metric == "mahalanobis":
        root = case.draw.rng.normal(size=(d, d + 3))
        options = {"cov": root @ root.T}
    case.note(f"metric {metric!r}, {n} and {len(Y)} rows of {d} columns")
    actual = attempt(pairwise, X, Y, metric, **options)
    if metric == "mahalanobis":
        options = {"VI": np.linalg.inv(options["cov"])}
    with np.errstate(all="ignore"):
        expected = cdist(X, Y, IN_SCIPY.get(metric, metric), **options)
    defined = np.isfinite(expected)  # the cosine of a row of zeros is not
    require_close(actual[defined], expected[defined], metric, 1e-7, 1e-9 * max(1.0, float(np.abs(X).max()) ** 2))
    require_finite(actual, f"pairwise of {metric}")


@law(["distances.pairwise"], weight=8)
def forms_of_pairwise_agree(case: Case) -> None:
    """Condensed, into an array, on any number of threads, of float32."""
    metric = case.draw.one_of([name for name in METRICS if name not in ("dtw", "mahalanobis")])
    n, d = case.draw.integer(1, 40), case.draw.integer(1, 6)
    X = tables.hostile(case.draw, n, d)
    case.note(f"metric {metric!r} of {n} rows, from {X.min():g} to {X.max():g}")
    whole = attempt(pairwise, X, metric=metric, n_jobs=1)
    require(whole.dtype == X.dtype, f"distances of {X.dtype} rows are {whole.dtype}")
    require_finite(whole, f"pairwise of {metric}")
    require_same(whole, whole.T, "distances of the rows of X among themselves")
    require(not np.diagonal(whole).any(), "the distance of a row from itself is not 0")
    require_same(attempt(pairwise, X, metric=metric, n_jobs=3), whole, "n_jobs=3")
    require_same(attempt(pairwise, X, metric=metric, condensed=True), whole[np.triu_indices(n, 1)], "condensed")
    room = np.empty_like(whole)
    require_same(attempt(pairwise, X, metric=metric, out=room), whole, "out")


def largest_gap(x: Any, y: Any) -> float:
    """The Chebyshev distance, as a user would write it."""
    gap = 0.0
    for i in range(len(x)):
        gap = max(gap, abs(x[i] - y[i]))
    return gap


@cache
def registered() -> str:
    """The name of a distance of our own. It is compiled once a process."""
    register("largest gap", largest_gap)
    return "largest gap"


@law(["distances.as_distance", "distances.register", "distances.Distance"])
def registered_distances_are_used_by_name(case: Case) -> None:
    X = tables.blobs(case.draw, case.draw.integer(1, 12), case.draw.integer(1, 4))
    require(isinstance(as_distance(registered()), distances.Distance), "a registered name is not a Distance")
    expected = attempt(pairwise, X, metric="chebyshev")
    require_close(attempt(pairwise, X, metric=registered()), expected, "own function", 1e-12)


def two_series(case: Case) -> tuple[Array, Array]:
    channels = case.draw.integer(1, 3)
    shape = case.draw.integer(1, 14), case.draw.integer(1, 14)
    kind = case.draw.one_of([tables.blobs, tables.grid, tables.far_from_origin])
    return kind(case.draw, shape[0], channels), kind(case.draw, shape[1], channels)


@law(["distances.dtw", "distances.dtw_path"], weight=6)
def dtw_is_the_plain_recursion(case: Case) -> None:
    x, y = two_series(case)
    cost = case.draw.one_of(["squared", "absolute"])
    window = case.draw.one_of([None, case.draw.integer(0, 4)]) if len(x) == len(y) else None
    case.note(f"lengths {len(x)} and {len(y)}, cost {cost!r}, window {window}")
    table = twins.dtw_table(x, y, cost, np.inf if window is None else window)
    expected = np.sqrt(table[-1, -1]) if cost == "squared" else table[-1, -1]
    value = attempt(dtw, x, y, window=window, cost=cost)
    require_close(value, expected, "dtw", 1e-9)
    require_close(attempt(dtw, y, x, window=window, cost=cost), value, "dtw(y, x)", 1e-9)
    warping = attempt(dtw_path, x, y, window=window, cost=cost)
    require_close(warping.cost, table, "cost of dtw_path", 1e-9)
    steps = np.diff(warping.path, axis=0)
    require((warping.path[0] == 0).all() and (warping.path[-1] == [len(x) - 1, len(y) - 1]).all(), "ends of the path")
    require(((steps >= 0) & (steps <= 1)).all() and (steps.sum(axis=1) > 0).all(), "steps of the path")
    local = np.abs(x[warping.path[:, 0]] - y[warping.path[:, 1]])
    spent = (local**2).sum() if cost == "squared" else local.sum()
    require_close(spent, table[-1, -1], "cost along the path", 1e-8, 1e-12)


@law(["distances.soft_dtw"], weight=3)
def soft_dtw_is_the_plain_recursion(case: Case) -> None:
    x, y = two_series(case)
    gamma = case.draw.one_of([0.01, 0.5, 1.0, 10.0])
    case.note(f"lengths {len(x)} and {len(y)}, gamma {gamma}")
    size = max(1.0, float(np.abs(x - y.mean()).max()) ** 2)
    require_close(attempt(soft_dtw, x, y, gamma), twins.soft_dtw(x, y, gamma), "soft_dtw", 1e-7, 1e-9 * size)
    require(abs(attempt(soft_dtw, x, x, gamma, divergence=True)) <= 1e-7 * size, "divergence of a series from itself")


@law(["distances.dba"], weight=2)
def a_barycenter_costs_no_more_than_its_start(case: Case) -> None:
    length, channels = case.draw.integer(1, 8), case.draw.integer(1, 2)
    series = [tables.blobs(case.draw, length, channels) for _ in range(case.draw.integer(1, 6))]
    start = series[0]
    found = attempt(dba, series, init=start, max_iter=10)
    require_finite(found, "dba")
    costs = [sum(dtw(each, center.reshape(length, channels)) ** 2 for each in series) for center in (found, start)]
    require(costs[0] <= costs[1] * (1 + 1e-9) + 1e-12, f"the barycenter costs {costs[0]}, its start {costs[1]}")


@law(["distances.dba"], weight=1)
def a_barycenter_of_scaled_series_differs_by_the_scale(case: Case) -> None:
    length, gamma = case.draw.integer(1, 8), case.draw.one_of([None, 0.1, 10.0])
    series = [tables.blobs(case.draw, length, 1) for _ in range(case.draw.integer(1, 6))]
    p = case.draw.integer(-900, 900) if gamma is None else case.draw.integer(-300, 300)
    case.note(f"gamma {gamma}, series * 2^{p}")
    scaled_gamma = None if gamma is None else float(np.ldexp(gamma, 2 * p))
    scaled = attempt(dba, [np.ldexp(each, p) for each in series], gamma=scaled_gamma, max_iter=10)
    require_same(scaled, np.ldexp(attempt(dba, series, gamma=gamma, max_iter=10), p), f"dba of series * 2^{p}")


@law(["distances.pairwise"], weight=2)
def distances_of_scaled_rows_differ_by_the_scale(case: Case) -> None:
    metric = case.draw.one_of(["euclidean", "manhattan", "chebyshev", "cosine", "correlation", "gower", "sqeuclidean"])
    power = {"sqeuclidean": 2}.get(metric, 0 if metric in ("cosine", "correlation", "gower") else 1)
    X, p = tables.blobs(case.draw, 12, case.draw.integer(2, 5)), case.draw.integer(-900, 900)
    if not -1000 < power * p < 990:
        raise Rejected("the result is not representable")
    case.note(f"metric {metric!r}, X * 2^{p}")
    scaled = attempt(pairwise, np.ldexp(X, p), metric=metric)
    require_close(scaled, np.ldexp(attempt(pairwise, X, metric=metric), power * p), f"{metric} of X * 2^{p}", 1e-9)
