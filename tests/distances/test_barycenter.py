"""Averages of series: the objective never rises, and the result is no worse than the initial series."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from coterie.distances import dba, dtw, dtw_path, soft_dtw
from coterie.distances.windows import Itakura
from coterie.errors import InputError, ParameterError


def bumps(n=12, channels=1, seed=0):
    """The same peak, at random times and speeds."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        length, shift, width = rng.integers(25, 40), rng.uniform(8, 16), rng.uniform(2, 4)
        t = np.arange(length)[:, None]
        found.append(
            np.exp(-(((t - shift) / width) ** 2)) * np.arange(1, channels + 1) + rng.normal(0, 0.05, (length, channels))
        )
    return found


def total(center, series, weights=None, **how):
    weights = np.ones(len(series)) if weights is None else weights
    return sum(w * dtw(x, center, **how) ** 2 for w, x in zip(weights, series, strict=True))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("window", [None, 6, Itakura(3.0)], ids=str)
def test_no_step_raises_the_objective(channels, window):
    series = bumps(channels=channels)
    weights = np.random.default_rng(1).random(len(series))
    sums = [total(series[0], series, weights, window=window)]
    for steps in (1, 2, 3, 5, 20):
        center = dba(series, weights, window=window, init=series[0], max_iter=steps, tol=0.0)
        sums.append(total(center, series, weights, window=window))
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(sums))
    assert sums[-1] < sums[0]


def test_one_step_is_the_mean_of_the_aligned_values():
    series, start = bumps(5), bumps(6, seed=3)[5][:, 0]
    met = [[] for _ in start]
    for x in series:
        for i, j in dtw_path(start, x).path:
            met[i].append(x[j, 0])
    center = dba(series, init=start, max_iter=1, tol=0.0)
    np.testing.assert_allclose(center, [np.mean(values) for values in met], rtol=1e-12)


def test_equal_series_are_their_own_average():
    x = bumps(1)[0][:, 0]
    np.testing.assert_allclose(dba([x, x, x]), x, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(dba([x]), x)


def test_without_warping_it_is_the_mean():
    X = np.random.default_rng(0).normal(size=(9, 20))
    w = np.arange(9.0)
    np.testing.assert_allclose(dba(X, w, window=0), np.average(X, axis=0, weights=w), rtol=1e-12)


def test_weight_two_is_the_series_twice_and_weight_zero_is_none():
    series = bumps(6)
    twice = dba(series, [2, 1, 1, 1, 1, 1], init=series[2])
    np.testing.assert_allclose(twice, dba([series[0], *series], init=series[2]), rtol=1e-12)
    none = dba(series, [0, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(none, dba(series[1:]), rtol=1e-12)


def test_it_starts_at_the_most_central_series():
    series = [[0, 0, 9], [0, 1, 2], [0, 1, 2, 2], [0, 2, 2]]
    assert len(dba(series, max_iter=1)) in (3, 4)
    assert total(dba(series), series) <= min(total(x, series) for x in series)


def test_any_number_of_threads_gives_the_same_bits():
    series = bumps(300)
    alone = dba(series, max_iter=3, n_jobs=1)
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(dba(series, max_iter=3, n_jobs=n_jobs), alone)


@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_the_soft_average_is_a_minimum_of_the_soft_objective(gamma):
    series = bumps(6)
    start = series[0][:, 0]

    def objective(center):
        return sum(soft_dtw(x, center, gamma) for x in series)

    center = dba(series, gamma=gamma, init=start, tol=1e-12)
    assert objective(center) < objective(start)
    rng = np.random.default_rng(0)
    for _ in range(5):
        assert objective(center + 1e-2 * rng.normal(size=len(center))) > objective(center)


@pytest.mark.parametrize("power", [-900, -300, -40, 40, 300, 900])
@pytest.mark.parametrize("gamma", [None, 0.5])
@pytest.mark.parametrize("has_init", [False, True])
def test_a_power_of_two_changes_only_the_exponent(power, gamma, has_init):
    series, w = bumps(5), np.arange(1.0, 6.0)
    init = np.linspace(-1.0, 1.0, 20) if has_init else None
    center = dba(series, w, gamma=gamma, init=init)
    np.testing.assert_array_equal(dba(series, np.ldexp(w, power), gamma=gamma, init=init), center)
    if gamma is None or abs(power) <= 300:
        gamma = None if gamma is None else np.ldexp(gamma, 2 * power)
        init = None if init is None else np.ldexp(init, power)
        found = dba([np.ldexp(x, power) for x in series], w, gamma=gamma, init=init)
        np.testing.assert_array_equal(found, np.ldexp(center, power))


@pytest.mark.parametrize(("gamma", "power"), [(1e-320, 500), (1e300, 0), (1e300, -500)])
def test_a_gamma_too_far_from_the_squares_is_an_error(gamma, power):
    with pytest.raises(InputError, match="too far from the squares of the series"):
        dba([np.ldexp(x, power) for x in bumps(5)], gamma=gamma)


@pytest.mark.parametrize(("gamma", "power"), [(1e-320, -500), (1e-320, 0), (1e200, 0), (1e300, 500)])
def test_averages_are_finite_for_any_other_gamma(gamma, power):
    assert np.isfinite(dba([np.ldexp(x, power) for x in bumps(5)], gamma=gamma)).all()


def test_the_type_and_shape_are_those_of_the_series():
    assert dba([x.astype(np.float32)[:, 0] for x in bumps(3)]).dtype == np.float32
    assert dba(bumps(3, channels=2)).shape[1] == 2


def test_what_cannot_be_averaged_is_rejected():
    with pytest.raises(InputError, match="weights must be 2 finite numbers >= 0"):
        dba([[1, 2], [2, 3]], [1, -1])
    with pytest.raises(InputError, match="init has 2 channels and series has 1"):
        dba([[1, 2], [2, 3]], init=np.zeros((3, 2)))
    with pytest.raises(InputError, match="series has no series"):
        dba([])
    with pytest.raises(ParameterError, match="one pair of series"):
        dba([[1, 2], [2, 3]], window=np.ones((2, 2), bool))
    with pytest.raises(ParameterError, match="gamma must be"):
        dba([[1, 2], [2, 3]], gamma=0)
