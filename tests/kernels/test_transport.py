"""Clusters of given sizes at the least cost: against other solvers, and by the prices that prove it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog

from coterie import kernels
from coterie.kernels.cpu import transport as cpu
from coterie.kernels.plain import transport as plain

KERNELS = pytest.mark.parametrize("ops", [plain, cpu], ids=["plain", "cpu"])
QUICK = settings(max_examples=60, deadline=None)


@st.composite
def problems(draw, most_rows=30):
    """Costs with many ties or few, bounds that can be kept, prices from nowhere."""
    n = draw(st.integers(1, most_rows))
    k = draw(st.integers(1, min(n, 6)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    costs = draw(st.sampled_from([rng.random, lambda s: rng.integers(0, 3, s).astype(float), np.zeros]))((n, k))
    if draw(st.booleans()):
        costs[rng.integers(n, size=n // 2)] = costs[0]
    size = np.bincount(rng.integers(k, size=n), minlength=k)  # sizes that add up, and bounds around them
    loose = draw(st.sampled_from([0, 1, n]))
    least, most = np.maximum(size - rng.integers(0, loose + 1, k), 0), size + rng.integers(0, loose + 1, k)
    prices = draw(st.sampled_from([np.zeros, rng.normal, rng.random]))
    return costs, least, most, prices(k) if prices is np.zeros else prices(size=k)


def solved(ops, costs, least, most, prices=None, labels=None):
    n, k = costs.shape
    prices = np.zeros(k) if prices is None else prices.copy()
    labels = np.full(n, -1, np.int32) if labels is None else labels.copy()
    ops.transport(costs, least, most, prices, labels)
    return prices, labels


def cost_of(costs, labels):
    return costs[np.arange(len(labels)), labels].sum()


def by_assignment(costs, least, most):
    """The least cost, by one column for every place; places that must be taken are made cheap."""
    k = costs.shape[1]
    place = np.concatenate([np.repeat(np.arange(k), least), np.repeat(np.arange(k), most - least)])
    table = costs[:, place].copy()
    table[:, : least.sum()] -= 1e3
    rows, columns = linear_sum_assignment(table)
    return costs[rows, place[columns]].sum()


def by_linear_program(costs, least, most):
    n, k = costs.shape
    once = sparse.kron(sparse.eye_array(n), np.ones((1, k)))
    size = sparse.kron(np.ones((1, n)), sparse.eye_array(k))
    found = linprog(
        costs.ravel(),
        A_ub=sparse.vstack([size, -size]),
        b_ub=np.concatenate([most, -least]),
        A_eq=once,
        b_eq=np.ones(n),
        method="highs",
    )
    return found.fun


def assert_proven(costs, least, most, prices, labels, eps=1e-9):
    """Sizes hold, and the prices show that no division is cheaper: complementary slackness."""
    size = np.bincount(labels, minlength=len(least))
    assert (least <= size).all()
    assert (size <= most).all()
    total = costs + prices
    eps = eps * max(np.abs(costs).max(), 1.0)
    assert (total[np.arange(len(labels)), labels] <= total.min(axis=1) + eps).all()
    np.testing.assert_array_equal(size[prices > eps], most[prices > eps])
    np.testing.assert_array_equal(size[prices < -eps], least[prices < -eps])


@KERNELS
@given(problems())
@QUICK
def test_no_division_is_cheaper(ops, problem):
    costs, least, most, guess = problem
    prices, labels = solved(ops, costs, least, most, guess)
    assert_proven(costs, least, most, prices, labels)
    assert cost_of(costs, labels) == pytest.approx(by_assignment(costs, least, most), abs=1e-9)


@KERNELS
@pytest.mark.parametrize("seed", range(3))
def test_a_linear_program_finds_no_cheaper_division(ops, seed):
    rng = np.random.default_rng(seed)
    costs = rng.exponential(size=(200, 7)) * rng.exponential(size=7)
    least, most = np.array([0, 5, 60, 0, 10, 0, 0]), np.array([3, 200, 70, 20, 10, 90, 40])
    prices, labels = solved(ops, costs, least, most)
    assert_proven(costs, least, most, prices, labels)
    assert cost_of(costs, labels) == pytest.approx(by_linear_program(costs, least, most), rel=1e-9)


@given(problems(most_rows=60))
@QUICK
def test_compiled_and_plain_divide_at_the_same_cost(problem):
    costs, least, most, guess = problem
    ours, theirs = (solved(ops, costs, least, most, guess)[1] for ops in (cpu, plain))
    assert cost_of(costs, ours) == pytest.approx(cost_of(costs, theirs), abs=1e-9)


@pytest.mark.parametrize("k", [2, 7, 40])
@pytest.mark.parametrize("spread", [0.0, 3.0], ids=["one group", "groups"])
def test_many_rows_are_divided_at_the_least_cost(k, spread):
    """Enough for prices of a part of the rows, and for lists that run out."""
    rng = np.random.default_rng(k)
    n = 20_000
    X = rng.normal(size=(n, 3)) + spread * rng.normal(size=(5, 3))[np.sort(rng.integers(5, size=n))]
    costs = ((X[:, None] - X[rng.choice(n, k)]) ** 2).sum(axis=2)
    least, most = np.full(k, n // k), np.full(k, -(-n // k))
    prices, labels = solved(cpu, costs, least, most)
    assert_proven(costs, least, most, prices, labels)


def test_lists_that_run_out_are_made_anew():
    """All rows want the first cluster, most must leave it: far more than a list holds."""
    rng = np.random.default_rng(0)
    costs = np.stack([np.zeros(5000), 1 + rng.random(5000)], axis=1)
    size = np.array([1000, 4000])
    prices, labels = solved(cpu, costs, size, size)
    assert_proven(costs, size, size, prices, labels)
    assert costs[labels == 1, 1].max() < costs[labels == 0, 1].min()


@KERNELS
def test_the_prices_of_a_result_give_the_result_again(ops):
    rng = np.random.default_rng(1)
    costs, size = rng.random((60, 4)), np.full(4, 15)
    prices, labels = solved(ops, costs, size, size)
    again, same = solved(ops, costs, size, size, prices, labels)
    np.testing.assert_array_equal(labels, same)
    np.testing.assert_array_equal(prices, again)


@KERNELS
@given(problems())
@QUICK
def test_sizes_that_do_not_bind_leave_every_row_where_it_is_cheapest(ops, problem):
    costs, _, _, guess = problem
    n, k = costs.shape
    _, labels = solved(ops, costs, np.zeros(k, np.int64), np.full(k, n), guess)
    np.testing.assert_array_equal(costs[np.arange(n), labels], costs.min(axis=1))


@KERNELS
def test_rows_that_are_all_alike_fill_the_places(ops):
    costs, size = np.ones((30, 3)), np.array([4, 20, 6])
    prices, labels = solved(ops, costs, size, size)
    np.testing.assert_array_equal(np.bincount(labels), size)
    np.testing.assert_array_equal(prices, 0)


@KERNELS
def test_a_row_stays_where_others_are_no_cheaper(ops):
    labels = np.array([2, 0, 1, 1, 2, 0], np.int32)
    size = np.full(3, 2)
    np.testing.assert_array_equal(solved(ops, np.zeros((6, 3)), size, size, labels=labels)[1], labels)


@KERNELS
@pytest.mark.parametrize("n", [1, 2, 40])
def test_as_many_clusters_as_rows_are_an_assignment(ops, n):
    costs, one = np.random.default_rng(n).random((n, n)), np.ones(n, np.int64)
    prices, labels = solved(ops, costs, one, one)
    assert sorted(labels) == list(range(n))
    assert_proven(costs, one, one, prices, labels)
    assert cost_of(costs, labels) == pytest.approx(by_assignment(costs, one, one), abs=1e-9)


@KERNELS
def test_one_cluster_takes_all_rows(ops):
    _, labels = solved(ops, np.random.default_rng(0).random((9, 1)), np.array([9]), np.array([9]))
    assert not labels.any()


@KERNELS
@pytest.mark.parametrize("scale", [1e-280, 1e-9, 1e9, 1e280])
def test_the_size_of_the_costs_does_not_matter(ops, scale):
    rng = np.random.default_rng(3)
    costs, size = rng.random((40, 4)), np.full(4, 10)
    plain_labels = solved(ops, costs, size, size)[1]
    scaled = solved(ops, costs * scale, size, size)[1]
    assert cost_of(costs, scaled) == pytest.approx(cost_of(costs, plain_labels), rel=1e-12)


@KERNELS
def test_costs_that_are_not_numbers_are_rejected(ops):
    with pytest.raises(FloatingPointError, match="costs must be finite"):
        solved(ops, np.full((6, 3), np.nan), np.full(3, 2), np.full(3, 2))


@pytest.mark.usefixtures("compiled_kernels")
def test_what_is_small_needs_no_compiler():
    assert kernels.select("transport", 150, 3) is plain
    assert kernels.select("transport", 150_000, 3) is cpu
