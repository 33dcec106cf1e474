"""The cached state of a solution equals a full computation after every kind of move."""

import time

import numpy as np
import pytest

from coterie.kmeans import global_search


def new_search(n, d, k, seed, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3 * rng.integers(0, 3, size=(n, d))
    w = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    rows = global_search.Rows(X, w, np.zeros(d), 1.0, 1.0)
    limit = global_search.WorkLimit(np.inf, time.perf_counter() + 60)
    search = global_search.KMeansSearch(rows, k, rng, limit, lambda progress: False, 0)
    search.start(X[rng.choice(n, k, replace=False)])
    return search


def check(search):
    s, X, w, k = search.current, search.X, search.w, search.k
    search.ops.evaluate_moves(X, w, s, search.moves, search.rng.random(k), search.limit.spent)
    squares = ((X[:, None] - s.centers) ** 2).sum(axis=2)
    rows = np.arange(len(X))
    near = squares.min(axis=1)
    np.testing.assert_allclose(s.square, near, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(squares[rows, s.labels], near, rtol=1e-9, atol=1e-12)
    others = squares.copy()
    others[rows, s.labels] = np.inf
    np.testing.assert_allclose(s.second_square, others.min(axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(others[rows, s.second], s.second_square, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(s.count, np.bincount(s.labels, minlength=k))
    np.testing.assert_allclose(s.weight, np.bincount(s.labels, w, k), atol=1e-9)
    sums = np.stack([np.bincount(s.labels, w * column, k) for column in X.T], axis=1)
    np.testing.assert_allclose(s.sums, sums, atol=1e-8)
    np.testing.assert_allclose(s.columns, s.centers.T)
    assert s.state[0] == pytest.approx((w * near).sum(), rel=1e-12)
    loss = np.bincount(s.labels, w * (s.second_square - s.square), k)
    np.testing.assert_allclose(search.moves.loss, loss, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n, d, k", [(60, 1, 4), (200, 2, 12), (400, 7, 25), (120, 3, 60), (50, 2, 2)])
def test_memory_is_exact_after_every_kind_of_move(n, d, k, weighted):
    search = new_search(n, d, k, 0, weighted)
    check(search)
    for jumps in (1, 2, min(5, k // 2)):
        search.kick(jumps)
        check(search)
        before = search.objective
        search.descend()
        assert search.objective <= before * (1 + 1e-12)
        check(search)
        search._polish()
        check(search)


def test_a_descent_goes_down_step_by_step():
    search = new_search(500, 3, 20, 1, False)
    values = []
    search.callback = lambda progress: values.append(search.objective)
    search.descend()
    assert len(values) > 1
    assert values == sorted(values, reverse=True)


def test_work_in_short_calls_is_the_same_work():
    """The length of a call only determines how often Ctrl-C is checked."""
    one, two = new_search(300, 3, 15, 2, False), new_search(300, 3, 15, 2, False)
    two.iterations_per_call = 1
    for each in (one, two):
        each.kick(3)
    np.testing.assert_array_equal(one.current.labels, two.current.labels)
    assert one.objective == two.objective


def test_splits_halve_a_cluster_as_the_formula_says():
    search = new_search(300, 2, 6, 3, True)
    check(search)
    m, s = search.moves, search.current
    for j in range(6):
        rows = s.labels == j
        near = np.minimum(
            ((search.X[rows] - m.left[j]) ** 2).sum(axis=1), ((search.X[rows] - m.right[j]) ** 2).sum(axis=1)
        )
        cost = (search.w[rows] * s.square[rows]).sum()
        assert 0 < m.gain[j] <= cost * (1 + 1e-9)
        assert (search.w[rows] * near).sum() <= cost - m.gain[j] + 1e-9 * cost  # rows nearest to the halves, or better
