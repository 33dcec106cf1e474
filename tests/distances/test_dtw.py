"""Dynamic time warping: against the recursion that defines it, and the laws of its paths and windows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.distances import dtw, dtw_path, pairwise
from coterie.distances.search import lb_keogh, lb_kim, nearest
from coterie.distances.series import as_series, concatenated
from coterie.distances.windows import Itakura, NoWindow, SakoeChiba, as_window
from coterie.errors import InputError, ParameterError, RangeWarning
from coterie.kernels.cpu import dtw as cpu
from coterie.kernels.plain import dtw as plain
from many_parts import PAIRWISE

WINDOWS = [None, 0, 1, 4, 0.0, 0.2, 1.0, Itakura(1.0), Itakura(1.5), Itakura(3)]
COSTS = ["squared", "absolute"]


def series(lengths, channels=1, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, channels)).cumsum(axis=0).astype(dtype) for n in lengths]


def defined(x, y, allowed, cost):
    """The recursion of the textbook, cell by cell."""
    table = {(-1, -1): 0.0}
    for i in range(len(x)):
        for j in range(len(y)):
            if allowed(i, j):
                apart = np.abs(x[i].astype(float) - y[j])
                own = float(apart.sum() if cost == "absolute" else (apart**2).sum())
                table[i, j] = own + min(table.get(c, np.inf) for c in ((i - 1, j), (i - 1, j - 1), (i, j - 1)))
    total = table[len(x) - 1, len(y) - 1]
    return total if cost == "absolute" else np.sqrt(total)


def in_band(radius, n, m):
    return lambda i, j: -radius + min(0, m - n) <= j - i <= radius + max(0, m - n)


numbers = st.floats(-1e3, 1e3, width=32)
one_channel = st.lists(numbers, min_size=1, max_size=12)
windows = st.one_of(
    st.none(), st.integers(0, 12), st.floats(0, 1), st.floats(1, 5).map(Itakura), st.sampled_from(WINDOWS)
)


@settings(max_examples=60, deadline=None)
@given(one_channel, one_channel, st.integers(0, 12), st.sampled_from(COSTS))
def test_it_is_the_recursion(x, y, radius, cost):
    a, b = np.array(x)[:, None], np.array(y)[:, None]
    everywhere = defined(a, b, lambda i, j: True, cost)
    assert dtw(x, y, cost=cost) == pytest.approx(everywhere, rel=1e-12)
    banded = defined(a, b, in_band(radius, len(x), len(y)), cost)
    assert dtw(x, y, window=radius, cost=cost) == pytest.approx(banded, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(one_channel, one_channel, windows, st.sampled_from(COSTS))
def test_it_is_symmetric_and_zero_for_a_series_and_itself(x, y, window, cost):
    assert dtw(x, y, window=window, cost=cost) == dtw(y, x, window=window, cost=cost)
    assert dtw(x, x, window=window, cost=cost) == 0.0


@settings(max_examples=60, deadline=None)
@given(one_channel, one_channel, windows, st.sampled_from(COSTS))
def test_a_path_steps_from_the_first_to_the_last_time_points_within_the_window(x, y, window, cost):
    table, path = dtw_path(x, y, window=window, cost=cost)
    assert path[0].tolist() == [0, 0]
    assert path[-1].tolist() == [len(x) - 1, len(y) - 1]
    assert {tuple(step) for step in np.diff(path, axis=0)} <= {(0, 1), (1, 0), (1, 1)}
    low, high = as_window(window).band(len(x), len(y))
    assert all(low[i] <= j < high[i] for i, j in path)
    apart = np.abs(np.array(x)[path[:, 0]] - np.array(y)[path[:, 1]])
    walked = apart.sum() if cost == "absolute" else (apart**2).sum()
    assert table[-1, -1] == pytest.approx(walked, rel=1e-12)
    found = dtw(x, y, window=window, cost=cost)
    assert found == (table[-1, -1] if cost == "absolute" else np.sqrt(table[-1, -1]))


@settings(max_examples=40, deadline=None)
@given(one_channel, one_channel, st.sampled_from(COSTS))
def test_a_wider_window_never_makes_it_larger(x, y, cost):
    by_radius = [dtw(x, y, window=r, cost=cost) for r in (0, 1, 2, 5, 12)]
    by_slope = [dtw(x, y, window=Itakura(s), cost=cost) for s in (1.0, 1.3, 2.0, 9.0)]
    for found in (by_radius, by_slope):
        assert found == sorted(found, reverse=True)
        assert found[-1] >= dtw(x, y, cost=cost)
    assert by_radius[-1] == dtw(x, y, cost=cost)


def test_window_zero_is_no_warping():
    x, y = series([30, 30], channels=2)
    assert dtw(x, y, window=0) == pytest.approx(np.linalg.norm(x - y), rel=1e-13)
    assert dtw(x, y, window=0, cost="absolute") == pytest.approx(np.abs(x - y).sum(), rel=1e-13)
    X = np.random.default_rng(0).normal(size=(40, 25))
    np.testing.assert_allclose(pairwise(X, metric="dtw", window=0), pairwise(X), rtol=1e-12)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), windows)
def test_a_window_has_a_path_and_is_the_same_from_both_sides(n, m, window):
    window = as_window(window)
    low, high = window.band(n, m)
    assert low[0] == 0
    assert high[-1] == m
    assert (low < high).all()
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    assert (low[1:] <= high[:-1]).all()
    there, back = plain.window_mask(low, high, n, m), plain.window_mask(*window.band(m, n), m, n)
    np.testing.assert_array_equal(there, back.T)


def test_the_parallelogram_of_itakura_is_where_slopes_allow():
    low, high = Itakura(2.0).band(9, 9)
    assert low.tolist() == [0, 1, 1, 2, 2, 3, 4, 6, 8]
    assert high.tolist() == [1, 3, 5, 6, 7, 7, 8, 8, 9]


def test_a_share_of_the_longer_series_is_a_radius():
    x, y = series([40, 50])
    assert dtw(x, y, window=0.1) == dtw(x, y, window=5)
    assert dtw(x, y, window=1.0) == dtw(x, y)


@pytest.mark.parametrize(
    "share, length, radius", [(0.1, 6, 0), (0.1, 30, 3), (0.29, 100, 29), (0.3, 10, 3), (0.19, 10, 1)]
)
def test_a_share_allows_at_most_that_many_time_points(share, length, radius):
    for one, other in zip(SakoeChiba(share).band(length, length), SakoeChiba(radius).band(length, length), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_table_of_cells_is_a_window():
    x, y = series([20, 26])
    band = as_window(3).band(20, 26)
    assert dtw(x, y, window=plain.window_mask(*band, 20, 26)) == dtw(x, y, window=3)
    cells = np.ones((2, 3), bool)
    cells[0, 2] = False
    allowed = defined(np.array([[1.0], [5.0]]), np.array([[1.0], [5.0], [5.0]]), lambda i, j: cells[i, j], "squared")
    assert dtw([1, 5], [1, 5, 5], window=cells) == allowed


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("window", [NoWindow(), SakoeChiba(3), Itakura(2.2)], ids=["everywhere", "band", "itakura"])
def test_compiled_and_plain_kernels_agree_to_the_last_bit(dtype, channels, absolute, window, monkeypatch):
    monkeypatch.setattr(plain, "SMALL", 4096)  # NumPy computes a few series at once
    ragged = isinstance(window, NoWindow)
    A = concatenated(series([17, 5, 1] if ragged else [17] * 3, channels, dtype, seed=1))
    B = concatenated(series([*range(1, 38)] if ragged else [23] * 37, channels, dtype, seed=2))
    low, high = window.band(17, int(B.length.max()))
    got, want = np.empty((3, 37), dtype), np.empty((3, 37), dtype)
    for limited in (False, True):
        bound = np.full(37, np.median(want), dtype) if limited else np.empty(0, dtype)
        for ops, out in ((cpu, got), (plain, want)):
            arguments = (A.values, A.start, A.length, B.values, B.start, B.length, low, high, absolute, bound)
            ops.path_costs(*arguments, out)
        np.testing.assert_array_equal(got, want)
    assert np.isinf(got).any()
    assert np.isfinite(got).any()
    x, y = A(0), B(36)
    tables = [ops.accumulated_costs(x, y, low, high, absolute) for ops in (cpu, plain)]
    np.testing.assert_array_equal(*tables)
    envelopes = [ops.envelope(x, *window.band(int(B.length.max()), 17)) for ops in (cpu, plain)]
    np.testing.assert_array_equal(*envelopes)
    bounds = [np.empty(37), np.empty(37)]
    for ops, out in zip((cpu, plain), bounds, strict=True):
        ops.lower_bounds(x, *envelopes[0], B.values, B.start, B.length, absolute, out)
    np.testing.assert_allclose(*bounds, rtol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(
    "window, n, m",
    [(NoWindow(), 19, None), (SakoeChiba(2), 19, 31), (Itakura(4.0), 19, 31), (Itakura(1.0), 5, 60)],
    ids=["everywhere", "band", "itakura", "steep"],
)
def test_compiled_and_plain_alignments_agree(channels, window, n, m):
    center = concatenated(series([n], channels, seed=1))(0)
    B = concatenated(series([*range(1, 38)] if m is None else [m] * 37, channels, seed=2))
    low, high = window.band(n, int(B.length.max()))
    w = np.random.default_rng(0).random(37)
    found = []
    for ops in (cpu, plain):
        sums = np.zeros((n, channels)), np.zeros(n), np.empty(37)
        ops.align(center, B.values, B.start, B.length, w, low, high, *sums)
        found.append(sums)
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    assert (found[0][1] >= w.sum() * (1 - 1e-12)).all()  # every time point of the center is aligned to every series


def test_tables_made_in_blocks_give_the_same_alignment():
    """Of two lengths: one whose tables are kept, one whose tables are not; the path is that of one table."""
    for n, m, window in ((150, 170, 40), (1300, 1200, None), (1300, 1200, 400)):
        x, y = (concatenated(series([length], seed=length))(0) for length in (n, m))
        low, high = as_window(window).band(n, m)
        sums = np.zeros((n, 1)), np.zeros(n), np.empty(1)
        cpu.align(x, y, np.zeros(1, np.int64), np.array([m]), np.ones(1), low, high, *sums)
        table, path = dtw_path(x, y, window=window)
        assert sums[2][0] == table[-1, -1]
        np.testing.assert_array_equal(sums[1], np.bincount(path[:, 0], minlength=n))
        np.testing.assert_allclose(sums[0][:, 0], np.bincount(path[:, 0], (y[path[:, 1]] - x[path[:, 0]])[:, 0], n))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("cost", COSTS)
def test_pairwise_is_dtw_of_all_pairs(window, cost):
    X, Y = series([12, 30, 7, 30, 1], 2, seed=1), series([30, 9, 7, 12], 2, seed=2)
    want = [[dtw(x, y, window=window, cost=cost) for y in Y] for x in X]
    np.testing.assert_array_equal(pairwise(X, Y, metric="dtw", window=window, cost=cost), want)
    np.testing.assert_array_equal(pairwise(Y, X, metric="dtw", window=window, cost=cost), np.transpose(want))
    D = pairwise(X, metric="dtw", window=window, cost=cost)
    np.testing.assert_array_equal(D, D.T)
    np.testing.assert_array_equal(
        D[np.triu_indices(5, 1)], pairwise(X, metric="dtw", condensed=True, window=window, cost=cost)
    )


@pytest.mark.parametrize("window", [None, 5])
def test_any_number_of_threads_gives_the_same_bits(window, monkeypatch):
    monkeypatch.setattr(PAIRWISE, "MIRRORED", 30)
    X = series(np.random.default_rng(0).integers(20, 60, size=90))
    alone = pairwise(X, metric="dtw", window=window, n_jobs=1)
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(pairwise(X, metric="dtw", window=window, n_jobs=n_jobs), alone)


def test_a_list_a_padded_table_and_a_frame_are_the_same_series():
    X = series([4, 9, 6, 9])
    padded = np.full((4, 9), np.nan)
    for row, x in zip(padded, X, strict=True):
        row[: len(x)] = x[:, 0]
    want = pairwise(X, metric="dtw")
    flat = [x[:, 0].tolist() for x in X]
    for form in (flat, tuple(flat), padded, padded[:, :, None], pd.DataFrame(padded), np.array(X, dtype=object)):
        np.testing.assert_array_equal(pairwise(form, metric="dtw"), want)
    many = series([4, 9, 6], channels=3)
    padded = np.full((3, 9, 3), np.nan)
    for row, x in zip(padded, many, strict=True):
        row[: len(x)] = x
    np.testing.assert_array_equal(pairwise(padded, metric="dtw"), pairwise(many, metric="dtw"))


def test_float32_is_kept_and_mixed_with_float64_widened():
    X = np.random.default_rng(0).normal(size=(30, 50)).astype(np.float32)
    D = pairwise(X, metric="dtw", window=5)
    assert D.dtype == np.float32
    np.testing.assert_allclose(D, pairwise(X.astype(np.float64), metric="dtw", window=5), rtol=1e-5)
    assert pairwise(X[:3], X[3:6].astype(np.float64), metric="dtw").dtype == np.float64


@settings(max_examples=60, deadline=None)
@given(one_channel, one_channel, windows, st.sampled_from(COSTS), st.floats(0, 2))
def test_what_is_above_the_best_so_far_is_infinite(x, y, window, cost, share):
    found = dtw(x, y, window=window, cost=cost)
    assert dtw(x, y, window=window, cost=cost, best_so_far=found) == found
    best = found * share
    assert dtw(x, y, window=window, cost=cost, best_so_far=best) == (found if found <= best else np.inf)


@settings(max_examples=100, deadline=None)
@given(one_channel, one_channel, windows, st.sampled_from(COSTS))
def test_bounds_are_never_above_the_distance(x, y, window, cost):
    found = dtw(x, y, window=window, cost=cost) * (1 + 1e-12)
    assert lb_kim(x, y, cost=cost) <= found
    assert lb_keogh(x, y, window=window, cost=cost) <= found
    assert lb_keogh(y, x, window=window, cost=cost) <= found


def test_bounds_are_those_of_the_definitions():
    x, y = [0.0, 1.0, 0.0, 2.0], [1.0, 3.0, -2.0, 2.0]
    assert lb_kim(x, y) == 1.0
    # ends 1 and 0; between them y leaves [0, 1] by 2 and [0, 2] by 2
    assert lb_keogh(x, y, window=1) == pytest.approx(3.0)
    assert lb_keogh(x, y, window=1, cost="absolute") == pytest.approx(1 + 2 + 2)


@pytest.mark.parametrize("window", [None, 2, 0.1, Itakura(2.0)], ids=str)
@pytest.mark.parametrize("cost", COSTS)
def test_the_nearest_series_is_that_of_measuring_all(window, cost):
    rng = np.random.default_rng(4)
    centers = series(rng.integers(10, 30, size=12), 2, seed=5)
    X = [centers[i] + rng.normal(scale=0.3, size=centers[i].shape) for i in rng.integers(12, size=70)]
    X += [centers[3], centers[7]]
    centers.append(centers[3])  # of two that are equally near, the first
    D = pairwise(X, centers, metric="dtw", window=window, cost=cost)
    index, distance = nearest(X, centers, window=window, cost=cost)
    np.testing.assert_array_equal(index, D.argmin(axis=1))
    np.testing.assert_array_equal(distance, D.min(axis=1))


def test_series_are_cut_and_taken_by_number_without_a_copy():
    X = as_series(series([3, 5, 4]))
    assert len(X[1:]) == 2
    np.testing.assert_array_equal(X[1:](0), X(1))
    np.testing.assert_array_equal(X[np.array([2, 0])](0), X(2))
    assert X[1:].values is X.values


WRONG_SERIES = [
    (([], [1, 2]), "x is empty: a series needs at least one value"),
    (([1, np.nan, 2], [1, 2]), "x contains NaN at time point 1: fill it in"),
    (([1, 2], [1, np.inf]), "y contains infinity at time point 1: clip it"),
    ((np.zeros((3, 2)), np.zeros((3, 1))), "x has 2 channels and y has 1: both need the same"),
    (
        (np.zeros((3, 2, 2)), [1, 2]),
        r"x must be a series \(length,\) or \(length, channels\); its shape is \(3, 2, 2\)",
    ),
    ((["a", "b"], [1, 2]), "x must contain numbers"),
    (([1.7e308, 0], [-1.7e308, 3]), "distances float64 cannot represent"),
]


@pytest.mark.parametrize("pair, message", WRONG_SERIES)
def test_series_that_cannot_be_measured_are_rejected(pair, message):
    with pytest.raises(InputError, match=message), np.errstate(over="ignore"):
        dtw(*pair)


@pytest.mark.parametrize(
    "X, message",
    [
        ([[1, 2], [3, np.nan, 4]], r"X\[1\] contains NaN at time point 1"),
        (np.array([[1.0, 2.0], [np.nan, 1.0]]), r"X\[1\] contains NaN at time point 0"),
        (np.array([[1.0, 2.0], [np.nan, np.nan]]), r"X\[1\] is empty \(all values are NaN\)"),
        ([[1, 2], []], r"X\[1\] is empty"),
        ([], "X has no series"),
        ([1, 2, 3], r"X is one series, but several are expected: pass \[X\]"),
        (np.arange(3.0), r"pass \[X\] if it is one series"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], r"X\[1\] has 1 channels and X\[0\] has 2"),
        (7, "must be a list of series"),
    ],
)
def test_what_is_not_series_is_rejected(X, message):
    with pytest.raises(InputError, match=message):
        pairwise(X, metric="dtw")


def test_channels_of_both_sides_must_agree():
    with pytest.raises(InputError, match="X has 2 channels and Y has 1"):
        pairwise(np.zeros((2, 3, 2)), np.zeros((2, 3)), metric="dtw")


@pytest.mark.parametrize("window", [-1, 1.5, -0.1, True, "wide", np.nan, [1, 2]])
def test_invalid_windows_are_rejected(window):
    with pytest.raises(ParameterError, match="window must be None, a radius"):
        dtw([1, 2], [1, 2], window=window)


@pytest.mark.parametrize(
    "cells, message",
    [
        (np.ones((2, 3), bool), r"shape \(3, 3\) of the cost matrix; its shape is \(2, 3\)"),
        (np.array([[1, 0, 0], [0, 0, 0], [0, 0, 1]], bool), "allows no cell for one time point of x"),
        (np.array([[1, 0, 1], [1, 1, 1], [1, 1, 1]], bool), "contiguous"),
        (np.array([[1, 0, 0], [0, 0, 1], [0, 0, 1]], bool), "allows no path"),
        (np.array([[0, 1, 0], [0, 1, 0], [0, 0, 1]], bool), "allows no path"),
    ],
)
def test_a_table_of_cells_without_a_path_is_rejected(cells, message):
    with pytest.raises(ParameterError, match=message):
        dtw([1, 2, 3], [1, 2, 3], window=cells)


def test_other_parameters_are_checked():
    with pytest.raises(ParameterError, match="cost must be 'squared' or 'absolute'; got 'cubic'"):
        dtw([1], [1], cost="cubic")
    with pytest.raises(ParameterError, match="best_so_far must be a number >= 0"):
        dtw([1], [1], best_so_far=-1)
    with pytest.raises(ParameterError, match="slope must be a finite number >= 1"):
        Itakura(0.5)
    with pytest.raises(ParameterError, match="one pair of series"):
        pairwise([[1, 2], [2, 3]], metric="dtw", window=np.ones((2, 2), bool))


@pytest.mark.parametrize("power", [-1000, -565, 565, 1000])
@pytest.mark.parametrize("cost", ["squared", "absolute"])
def test_series_times_a_power_of_two(cost, power):
    """Squares of series of 1e-170 underflow, those of 1e170 overflow: they are divided by a power of two before."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(12, 2)), rng.normal(size=(9, 2))
    a, b = np.ldexp(x, power), np.ldexp(y, power)
    for window in (None, 4):
        expected = dtw(x, y, window=window, cost=cost)
        assert dtw(a, b, window=window, cost=cost) == np.ldexp(expected, power)
        limit = np.ldexp(expected, power)
        assert dtw(a, b, window=window, cost=cost, best_so_far=limit) == limit
        assert dtw(a, b, window=window, cost=cost, best_so_far=0.99 * limit) == np.inf
        assert lb_keogh(a, b, window=window, cost=cost) == np.ldexp(lb_keogh(x, y, window=window, cost=cost), power)
    assert lb_kim(a, b, cost=cost) == np.ldexp(lb_kim(x, y, cost=cost), power)
    labels, distances = nearest([a, b], [b, a], cost=cost)
    assert labels.tolist() == [1, 0]
    assert distances.tolist() == [0, 0]
    _, distances = nearest([a], [b], cost=cost)
    assert distances[0] == np.ldexp(dtw(x, y, cost=cost), power)


def test_a_path_is_right_at_any_scale():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=12), rng.normal(size=9)
    expected = dtw_path(x, y)
    with pytest.warns(RangeWarning, match="cannot be represented in float64"):
        np.testing.assert_array_equal(dtw_path(np.ldexp(x, -600), np.ldexp(y, -600)).path, expected.path)
    scaled = dtw_path(np.ldexp(x, 400), np.ldexp(y, 400))
    np.testing.assert_array_equal(scaled.path, expected.path)
    np.testing.assert_array_equal(scaled.cost, np.ldexp(expected.cost, 800))
    with pytest.raises(InputError, match="squares overflow"):
        dtw_path(np.ldexp(x, 600), np.ldexp(y, 600))


def test_best_so_far_may_be_any_number():
    assert dtw([0.0, 1.0], [0.0, 3.0], best_so_far=1e300) == 2.0
    assert dtw([0.0, 1.0], [0.0, 3.0], best_so_far=np.inf) == 2.0
