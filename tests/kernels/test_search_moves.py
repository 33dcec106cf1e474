"""What a solution remembers between moves is what a search of all rows and centers would find."""

import time

import numpy as np
import pytest

from coterie.kmeans import global_search


def climb(n, d, k, seed, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3 * rng.integers(0, 3, size=(n, d))
    w = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    rows = global_search.Rows(X, w, np.zeros(d), 1.0, 1.0)
    purse = global_search.Purse(np.inf, time.perf_counter() + 60)
    made = global_search.Climb("fast", rows, k, rng, purse, lambda progress: False, 0)
    made.begin(X[rng.choice(n, k, replace=False)])
    return made


def check(made):
    s, X, w, k = made.here, made.X, made.w, made.k
    made.ops.survey(X, w, s, made.moves, made.rng.random(k), made.purse.spent)
    squares = ((X[:, None] - s.centers) ** 2).sum(axis=2)
    rows = np.arange(len(X))
    near = squares.min(axis=1)
    np.testing.assert_allclose(s.near, near, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(squares[rows, s.labels], near, rtol=1e-9, atol=1e-12)
    others = squares.copy()
    others[rows, s.labels] = np.inf
    np.testing.assert_allclose(s.far, others.min(axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(others[rows, s.other], s.far, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(s.count, np.bincount(s.labels, minlength=k))
    np.testing.assert_allclose(s.weight, np.bincount(s.labels, w, k), atol=1e-9)
    sums = np.stack([np.bincount(s.labels, w * column, k) for column in X.T], axis=1)
    np.testing.assert_allclose(s.sums, sums, atol=1e-8)
    np.testing.assert_allclose(s.columns, s.centers.T)
    assert s.state[0] == pytest.approx((w * near).sum(), rel=1e-12)
    loss = np.bincount(s.labels, w * (s.far - s.near), k)
    np.testing.assert_allclose(made.moves.loss, loss, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n, d, k", [(60, 1, 4), (200, 2, 12), (400, 7, 25), (120, 3, 60), (50, 2, 2)])
def test_memory_is_exact_after_every_kind_of_move(n, d, k, weighted):
    made = climb(n, d, k, 0, weighted)
    check(made)
    for jumps in (1, 2, min(5, k // 2)):
        made.kick(jumps)
        check(made)
        before = made.value
        made.descend()
        assert made.value <= before * (1 + 1e-12)
        check(made)
        made._polish()
        check(made)
    made.keep()
    made.kick(1)
    made.go_home()
    check(made)


def test_a_descent_goes_down_step_by_step():
    made = climb(500, 3, 20, 1, False)
    values = []
    made.watch = lambda progress: values.append(made.value)
    made.descend()
    assert len(values) > 1
    assert values == sorted(values, reverse=True)


def test_work_in_short_calls_is_the_same_work():
    """Only how often Ctrl-C is listened for."""
    one, two = climb(300, 3, 15, 2, False), climb(300, 3, 15, 2, False)
    two.breath = 1
    for each in (one, two):
        each.kick(3)
    np.testing.assert_array_equal(one.here.labels, two.here.labels)
    assert one.value == two.value


def test_splits_halve_a_cluster_as_the_formula_says():
    made = climb(300, 2, 6, 3, True)
    check(made)
    m, s = made.moves, made.here
    for j in range(6):
        rows = s.labels == j
        near = np.minimum(((made.X[rows] - m.left[j]) ** 2).sum(axis=1), ((made.X[rows] - m.right[j]) ** 2).sum(axis=1))
        cost = (made.w[rows] * s.near[rows]).sum()
        assert 0 < m.gain[j] <= cost * (1 + 1e-9)
        assert (made.w[rows] * near).sum() <= cost - m.gain[j] + 1e-9 * cost  # rows nearest to the halves, or better
