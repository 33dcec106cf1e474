"""Runs of all kinds of centers within one call, compared with loops over NumPy arrays."""

import numpy as np
import pytest

from coterie.kernels.cpu import center_runs as ops
from kernels import naive

KINDS = pytest.mark.parametrize("kind", ops.KINDS)


def costs(kind, X, centers):
    """Costs (n, k) of rows at single centers."""
    if kind == "medians":
        return np.abs(X[:, None] - centers).sum(axis=2)
    squares = naive.squares(X, centers)
    return np.sqrt(squares) if kind == "geometric medians" else squares


def total(kind, X, w, centers, m=2.0):
    if kind == "fuzzy means":
        return naive.fuzzy(X, w, centers, m)[2]
    return float(w @ costs(kind, X, centers).min(axis=1))


def weighted_median(x, w):
    order = np.argsort(x, kind="stable")
    x, below = x[order], np.cumsum(w[order])
    i = np.flatnonzero(below >= below[-1] / 2)[0]
    return (x[i] + x[np.flatnonzero(below > below[-1] / 2)[0]]) / 2


def step(kind, X, w, centers, m=2.0):
    """The centers after one iteration, for clusters that have rows."""
    if kind == "fuzzy means":
        weight, sum_dx, _ = naive.fuzzy(X, w, centers, m)
        return centers + sum_dx / weight[:, None]
    labels, moved = costs(kind, X, centers).argmin(axis=1), centers.copy()
    for j in range(len(centers)):
        rows, v = X[labels == j], w[labels == j]
        keep = v > 0
        rows, v = rows[keep], v[keep]
        if kind == "medians":
            moved[j] = [weighted_median(column, v) for column in rows.T]
        elif kind == "geometric medians":
            ratio = v / np.linalg.norm(rows - centers[j], axis=1)
            moved[j] = ratio @ rows / ratio.sum()
        else:
            mean = v @ rows / v.sum()
            moved[j] = mean / np.linalg.norm(mean) if kind == "directions" else mean
    return moved


def rows(kind, n=300, d=3, k=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    if kind == "directions":
        X /= np.linalg.norm(X, axis=1)[:, None]
    return X, rng.integers(0, 4, size=n).astype(float)


def run(table, start, steps, path=0, to_beat=np.inf, hope=np.inf):
    params, objective, gains = np.stack([start, start])[None], np.empty(1), np.empty((2, 1))
    state = ops.new_state(*table.X.shape, len(start), path)
    passes = ops.center_runs(table, steps, 0.0, 0.0, to_beat, hope, state, params, objective, gains)
    return params[0, 0], objective[0], gains[:, 0], passes, state


@KINDS
@pytest.mark.parametrize("m", [2.0, 1.5])
@pytest.mark.parametrize("n, d", [(300, 3), (40, 9), (700, 1)])
def test_iterations_are_those_of_a_simple_implementation(kind, m, n, d):
    X, w = rows(kind, n, max(d, 2) if kind == "directions" else d)
    start = step(kind, X, w, X[np.flatnonzero(w)[[0, 9, 11, 14]]] + 1e-3, m)
    expected = start
    for steps in range(4):
        centers, objective, _, _, _ = run(ops.as_table(X, w, kind, m), start, steps)
        np.testing.assert_allclose(centers, expected, rtol=1e-8, atol=1e-10)
        assert objective == pytest.approx(total(kind, X, w, expected, m), rel=1e-8)
        expected = step(kind, X, w, expected, m)


@KINDS
def test_the_path_of_a_run_leads_to_its_end_and_goes_down(kind):
    X, w = rows(kind)
    table = ops.as_table(X, w, kind)
    centers, objective, gains, passes, state = run(table, step(kind, X, w, X[:4] + 1e-3), 50, path=51)
    assert passes > 2
    np.testing.assert_array_equal(state.path[passes - 1], centers)
    assert state.values[passes - 1] == objective
    assert (np.diff(state.values[:passes]) <= 1e-9 * objective).all()
    assert gains[1] >= 0


@pytest.mark.parametrize("values, median", [([1.0, 2.0, 4.0, 9.0], 3.0), ([1.0, 1.0, 5.0], 1.0), ([7.0], 7.0)])
def test_a_median_between_two_values_is_their_mean(values, median):
    X = np.array(values)[:, None]
    assert run(ops.as_table(X, None, "medians"), np.array([[0.0]]), 5)[0].item() == median


def test_a_center_on_a_row_that_is_the_geometric_median_stays():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    np.testing.assert_array_equal(run(ops.as_table(X, None, "geometric medians"), X[:1], 20)[0], X[:1])


@pytest.mark.parametrize("kind", ops.KINDS[:4])
def test_the_costs_of_swaps_are_those_of_all_rows(kind):
    X, w = rows(kind)
    table, centers = ops.as_table(X, w, kind), X[:4] + 0.1
    chosen, owners, totals = np.empty(5, np.int64), np.empty(5, np.int64), np.empty((4, 6))
    u = np.random.default_rng(1).random(5)
    objective = ops.swap_costs(table, centers, u, ops.new_state(*X.shape, 4), chosen, totals, owners)
    assert objective == pytest.approx(total(kind, X, w, centers))
    assert (w[chosen] > 0).all()
    for j in range(4):
        others = np.delete(centers, j, axis=0)
        assert totals[j, 5] == pytest.approx(total(kind, X, w, others))
        for q, row in enumerate(chosen):
            assert totals[j, q] == pytest.approx(total(kind, X, w, np.concatenate([others, X[[row]]])))


@pytest.mark.parametrize("kind", ops.KINDS[:4])
def test_swaps_leave_a_local_optimum(kind):
    """Two centers in one of three distant groups, one between the others."""
    groups = np.array([[9.0, 1.0], [1.0, 9.0], [-9.0, 1.0]])
    rng = np.random.default_rng(2)
    X = np.repeat(groups, 30, axis=0) + 0.1 * rng.normal(size=(90, 2))
    X = X / np.linalg.norm(X, axis=1)[:, None] if kind == "directions" else X
    start = np.array([X[0], X[1], X[30:].mean(axis=0)])
    start[2] /= np.linalg.norm(start[2]) if kind == "directions" else 1.0
    table = ops.as_table(X, None, kind)
    stuck, objective = run(table, start, 100)[:2]
    centers = np.stack([stuck, start])
    state = ops.new_state(*X.shape, 3)
    found, passes, failures, has_gained = ops.swap_rounds(
        table, rng.random((20, 16)), 6, 3, 100, 0.0, 1e-9, 1e-6, state, centers, objective
    )
    assert found < 0.5 * objective
    assert has_gained
    assert failures == 3
    assert passes > 0
    assert found == pytest.approx(total(kind, X, np.ones(90), centers[0]))
    np.testing.assert_allclose(run(table, centers[1], 100)[0], centers[0], atol=1e-4)  # from its initial centers


def test_a_run_behind_the_best_is_abandoned():
    X, w = rows("means")
    table = ops.as_table(X, w)
    whole = run(table, X[:4], 100)
    early = run(table, X[:4], 100, to_beat=0.0, hope=1.0)
    assert early[3] < whole[3]
    assert early[2][1] > 0


def test_fewer_distinct_rows_than_centers_have_an_objective_of_zero():
    X = np.repeat([[0.0, 1.0], [3.0, 1.0]], 5, axis=0)
    for kind in (kind for kind in ops.KINDS if kind != "directions"):
        table, params = ops.as_table(X, None, kind), np.empty((3, 2, 4, 2))
        ops.seeds(table, np.random.default_rng(0).random((3, 7)), ops.new_state(10, 2, 4), params)
        for start in params[:, 0]:
            assert run(table, start, 50)[1] == pytest.approx(0.0, abs=1e-20)
