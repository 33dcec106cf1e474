"""Soft dynamic time warping: against sums over all paths, its limits, and its gradient."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.distances import dtw, dtw_path, soft_dtw
from coterie.distances.dtw import as_pair
from coterie.distances.series import concatenated
from coterie.distances.soft_dtw import soft_kernels_for
from coterie.distances.windows import Itakura, NoWindow, SakoeChiba, as_window
from coterie.errors import InputError, ParameterError
from coterie.kernels.cpu import soft_dtw as cpu
from coterie.kernels.plain import soft_dtw as plain

WINDOWS = [NoWindow(), SakoeChiba(1), Itakura(2.0)]
short = st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=5)


def soft_gradient(x, y, gamma=1.0, *, window=None):
    """`soft_dtw` and its gradient with respect to `x`, (length, channels), by the kernel that averages series."""
    A, B = (series.astype(np.float64) for series in as_pair(x, y))
    sum_dx, weight, cost = np.zeros(A(0).shape), np.zeros(int(A.length[0])), np.empty(1)
    low, high = as_window(window).band(int(A.length[0]), int(B.length[0]))
    align = soft_kernels_for(A, B).soft_align
    align(A(0), B.values, B.start, B.length, np.ones(1), low, high, gamma, sum_dx, weight, cost)
    return float(cost[0]), -2.0 * sum_dx


def costs_of_all_paths(x, y, i=0, j=0):
    """The definition, by a sum over all paths."""
    own = (x[i] - y[j]) ** 2
    if (i, j) == (len(x) - 1, len(y) - 1):
        return [own]
    ways = [(i + 1, j), (i, j + 1), (i + 1, j + 1)]
    return [own + rest for a, b in ways if a < len(x) and b < len(y) for rest in costs_of_all_paths(x, y, a, b)]


@settings(max_examples=40, deadline=None)
@given(short, short, st.floats(0.05, 50))
def test_it_is_the_soft_minimum_over_all_paths(x, y, gamma):
    costs = np.array(costs_of_all_paths(x, y))
    want = costs.min() - gamma * np.log(np.exp((costs.min() - costs) / gamma).sum())
    assert soft_dtw(x, y, gamma) == pytest.approx(want, rel=1e-9, abs=1e-9 * gamma)


@settings(max_examples=40, deadline=None)
@given(short, short, st.sampled_from([None, 1, 0.4, Itakura(2.0)]))
def test_towards_gamma_zero_it_is_the_square_of_dtw(x, y, window):
    hard = dtw(x, y, window=window) ** 2
    soft = [soft_dtw(x, y, gamma, window=window) for gamma in (1e-6, 0.1, 1.0, 10.0)]
    assert soft[0] == pytest.approx(hard, rel=1e-9, abs=1e-4)
    assert soft == sorted(soft, reverse=True)
    assert soft[0] <= hard + 1e-9 * (1 + hard)


@settings(max_examples=40, deadline=None)
@given(short, short)
def test_the_divergence_is_symmetric_not_negative_and_zero_for_equal_series(x, y):
    apart = soft_dtw(x, y, divergence=True)
    assert apart >= -1e-9
    assert apart == pytest.approx(soft_dtw(y, x, divergence=True), abs=1e-9)
    assert soft_dtw(x, x, divergence=True) == 0.0


@pytest.mark.parametrize("gamma", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: type(window).__name__)
def test_the_gradient_is_that_of_finite_differences(gamma, window):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 2)), rng.normal(size=(9, 2))
    value, gradient = soft_gradient(x, y, gamma, window=window)
    assert value == pytest.approx(soft_dtw(x, y, gamma, window=window), rel=1e-12)
    step = 1e-5
    for at in np.ndindex(x.shape):
        there, back = x.copy(), x.copy()
        there[at] += step
        back[at] -= step
        slope = (soft_dtw(there, y, gamma, window=window) - soft_dtw(back, y, gamma, window=window)) / (2 * step)
        assert gradient[at] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("n, m, channels", [(1, 1, 1), (1, 6, 1), (8, 3, 2), (30, 41, 3)])
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: type(window).__name__)
def test_compiled_and_plain_kernels_agree(n, m, channels, window):
    rng = np.random.default_rng(1)
    x, y = (concatenated([rng.normal(size=(length, channels))])(0) for length in (n, m))
    low, high = window.band(n, m)
    for gamma in (0.01, 1.0, 30.0):
        found = []
        for ops in (cpu, plain):
            sums, value = (np.zeros((n, channels)), np.zeros(n), np.empty(1)), np.empty((1, 1))
            series = np.zeros(1, np.int64), np.array([m])
            ops.soft_align(x, y, *series, np.array([1.5]), low, high, gamma, *sums)
            ops.soft_path_costs(x, np.zeros(1, np.int64), np.array([n]), y, *series, low, high, gamma, value)
            assert value[0, 0] == pytest.approx(sums[2][0], rel=1e-10, abs=1e-10)
            found.append(sums)
        assert (found[0][1] >= 1.5 - 1e-9).all()  # every path contains every time point
        for got, want in zip(*found, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("gamma", [0, -1.0, np.inf, np.nan, True, "soft"])
def test_gamma_must_be_above_zero(gamma):
    with pytest.raises(ParameterError, match="gamma must be a finite number above 0"):
        soft_dtw([1, 2], [1, 2], gamma)


@pytest.mark.parametrize("size", [1e6, 1e9, 1e14, 1e120])
@pytest.mark.parametrize("ops", [cpu, plain], ids=["compiled", "numpy"])
def test_if_costs_are_large_relative_to_gamma_the_alignment_is_the_best_path(ops, size):
    rng = np.random.default_rng(2)
    x, y = (concatenated([size * rng.normal(size=(length, 2))])(0) for length in (12, 15))
    low, high = NoWindow().band(12, 15)
    sum_dx, met, cost = np.zeros((12, 2)), np.zeros(12), np.empty(1)
    ops.soft_align(x, y, np.zeros(1, np.int64), np.array([15]), np.ones(1), low, high, 1.0, sum_dx, met, cost)
    path = dtw_path(x, y).path
    np.testing.assert_array_equal(met, np.bincount(path[:, 0]))
    assert cost[0] == pytest.approx(dtw(x, y) ** 2, rel=1e-12)
    np.testing.assert_allclose(sum_dx, [(y[path[path[:, 0] == i, 1]] - x[i]).sum(axis=0) for i in range(12)], 1e-12)


def test_series_too_large_for_squares_are_one_clear_error():
    x, y = np.ldexp(np.arange(5.0), 600), np.ldexp(np.arange(4.0), 600)
    for call in (soft_dtw, partial(soft_dtw, divergence=True)):
        with pytest.raises(InputError, match="squares overflow"):
            call(x, y)


def test_small_series_have_the_value_of_equal_ones():
    """Squares of 1e-170 are negligible relative to gamma: all paths have the same cost."""
    x, y = np.arange(5.0), np.arange(4.0)
    assert soft_dtw(x * 1e-170, y * 1e-170) == soft_dtw(x * 0, y * 0)
