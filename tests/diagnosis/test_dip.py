"""The dip against its definition as a linear program, its properties, and its p-values against simulation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from coterie.diagnosis.dip import QUANTILES, SHARES, SIZES, _chain, dip, dip_test, p_value


def dip_of(values):
    return dip(*np.unique(values, return_counts=True))


def naive_dip(values):
    """Return the smallest t such that a unimodal distribution function is within t of the empirical one everywhere.

    Unknowns: the distribution function at each number, its limit from the left at the mode, where it may jump, and t.
    """
    x, count = np.unique(values, return_counts=True)
    upper = np.cumsum(count) / count.sum()
    lower = upper - count / count.sum()
    return min(_with_mode_at(k, x, lower, upper) for k in range(len(x)))


def _with_mode_at(k, x, lower, upper):
    m = len(x)
    left_limit, t = m, m + 1
    rows, bounds = [], []

    def require(bound, **terms):
        row = np.zeros(m + 2)
        for name, factor in terms.items():
            row[int(name[1:])] += factor
        rows.append(row)
        bounds.append(bound)

    def near(unknown, value):
        require(value, **{f"_{unknown}": 1, f"_{t}": -1})
        require(-value, **{f"_{unknown}": -1, f"_{t}": -1})

    for i in range(m):
        near(left_limit if i == k else i, lower[i])
        near(i, upper[i])
    require(0, **{f"_{left_limit}": 1, f"_{k}": -1})
    for unknowns, at, sign in ((([*range(k), left_limit]), x[: k + 1], 1), ([*range(k, m)], x[k:], -1)):
        for a, b in pairwise(unknowns):
            require(0, **{f"_{a}": 1, f"_{b}": -1})
        for i in range(len(unknowns) - 2):
            first, second = at[i + 1] - at[i], at[i + 2] - at[i + 1]
            a, b, c = unknowns[i : i + 3]  # slopes rise before the mode, fall after it
            require(0, **{f"_{a}": -sign * second, f"_{b}": sign * (first + second), f"_{c}": -sign * first})
    result = linprog(np.eye(m + 2)[t], A_ub=np.array(rows), b_ub=bounds, bounds=[(0, 1)] * (m + 2))
    return result.fun


@pytest.mark.parametrize("seed", range(12))
def test_the_dip_is_the_distance_to_the_nearest_distribution_with_one_mode(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 16))
    for values in (rng.normal(size=n), rng.uniform(size=n) ** 3, np.r_[rng.normal(size=n), rng.normal(size=n) + 9]):
        assert dip_of(values) == pytest.approx(naive_dip(values), abs=1e-7)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=2, max_size=14).filter(lambda values: len(set(values)) > 1))
def test_the_dip_of_repeated_numbers_matches_its_definition(values):
    assert dip_of(np.array(values, float)) == pytest.approx(naive_dip(np.array(values, float)), abs=1e-7)


def test_bounds_are_reached():
    assert dip_of(np.arange(10.0)) == 1 / 20  # evenly spaced numbers have the smallest dip
    assert dip_of(np.repeat([0.0, 1.0], 50)) == 1 / 4  # two points have the largest dip
    assert dip_of(np.ones(7)) == 0.5 / 7


@given(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=2, max_size=60, unique=True))
@settings(deadline=None)
def test_the_dip_is_within_its_bounds_and_symmetric(values):
    x = np.array(values)
    assert 0.5 / len(x) - 1e-12 <= dip_of(x) <= 0.25
    assert dip_of(-x) == pytest.approx(dip_of(x), abs=1e-9)


def test_the_dip_does_not_depend_on_scale_and_origin():
    x = np.random.default_rng(0).normal(size=300)
    assert dip_of(3 * x + 7) == pytest.approx(dip_of(x), rel=1e-9)


@pytest.mark.parametrize("n", [5, 40, 300])
def test_p_values_of_uniform_numbers_are_uniform(n):
    """Also for n between the sizes of the table. Shares of 400 draws are within four standard deviations."""
    rng = np.random.default_rng(n)
    p = np.array([p_value(dip_of(rng.uniform(size=n)), n) for _ in range(400)])
    for level in (0.02, 0.1, 0.25):
        assert abs((p <= level).mean() - level) <= 4 * np.sqrt(level * (1 - level) / 400)


def test_the_table_of_quantiles_is_monotone():
    assert (np.diff(QUANTILES, axis=1) >= 0).all()
    assert (np.diff(SHARES) < 0).all()
    assert QUANTILES.shape == (len(SIZES), len(SHARES))
    p = [p_value(value, 100) for value in np.linspace(0.001, 0.25, 200)]
    assert p[0] == 1
    assert (np.diff(p) <= 0).all()
    assert p[-1] > 0


def test_one_mode_passes_and_two_modes_do_not():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.normal(size=400)
        assert dip_test(x).p > 0.5
        assert dip_test(np.r_[x, rng.normal(size=400) + 5]).p < 1e-6


def test_rounding_does_not_create_modes():
    x = np.random.default_rng(0).normal(size=1000)
    assert dip_test(x.round(1)).p > 0.5
    assert dip_test(np.r_[x, x + 6].round(1)).p < 1e-6


def test_duplicates_add_no_information():
    x = np.random.default_rng(1).normal(size=200)
    once, thrice = dip_test(x), dip_test(np.repeat(x, 3))
    assert thrice.n == once.n
    assert thrice.value == pytest.approx(once.value)


def test_a_chain_of_vertices_ends_even_if_rounding_skips_its_end():
    before = [0, 0, 0, 1, 3]  # 2 is not a vertex before 4
    assert _chain(before, 4, 1).tolist() == [4, 3, 1]
    assert _chain(before, 4, 2).tolist() == [4, 3, 2]
