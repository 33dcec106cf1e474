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
    state = ops.new_state(*X.shape, 4)
    ops.two_nearest(table, centers, state)
    objective = ops.swap_costs(table, u, state, chosen, totals, owners)
    assert objective == pytest.approx(total(kind, X, w, centers))
    assert (w[chosen] > 0).all()
    for j in range(4):
        others = np.delete(centers, j, axis=0)
        assert totals[j, 5] == pytest.approx(total(kind, X, w, others))
        for q, row in enumerate(chosen):
            assert totals[j, q] == pytest.approx(total(kind, X, w, np.concatenate([others, X[[row]]])))


@pytest.mark.parametrize("kind, row_passes", [*((kind, 0) for kind in ops.KINDS[:4]), ("means", 9)])
def test_swaps_leave_a_local_optimum(kind, row_passes):
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
    base, state = (ops.new_state(*X.shape, 3) for _ in range(2))
    found, passes, failures, has_gained = ops.swap_rounds(
        table, rng.random((20, 16)), 6, 3, row_passes, 100, 0.0, 0.0, 1e-6, base, state, centers, objective
    )
    assert found < 0.5 * objective
    assert has_gained
    assert failures == 3
    assert passes > 0
    assert found == pytest.approx(total(kind, X, np.ones(90), centers[0]))
    np.testing.assert_allclose(run(table, centers[1], 100)[0], centers[0], atol=1e-4)  # from its initial centers


def second(kind, X, centers):
    return np.sort(costs(kind, X, centers), axis=1)[:, 1]


@pytest.mark.parametrize("kind", ops.KINDS[:4])
@pytest.mark.parametrize("n, d, k", [(300, 3, 20), (700, 9, 40), (60, 2, 3)])
def test_rows_are_assigned_in_parts_as_if_all_centers_were_compared(kind, n, d, k):
    """Including equal distances, of which the first center gets the row."""
    X, w = rows(kind, n, d, k)
    X = np.round(4 * X) / 4  # sums without rounding
    table, state, rng = ops.as_table(X, w, kind), ops.new_state(n, d, k), np.random.default_rng(1)
    state.centers[:] = X[rng.choice(n, k)]
    state.is_moved[:] = True
    for moved in (range(k), [1], [1, 2], [0], range(k), [k - 1, 0]):
        state.centers[list(moved)] = X[rng.choice(n, len(moved))]
        state.is_moved[list(moved)] = True
        ops.reassign(table, k, state)
        all_costs = costs(kind, X, state.centers)
        np.testing.assert_array_equal(state.nearest, all_costs.argmin(axis=1))
        np.testing.assert_allclose(state.near, all_costs.min(axis=1), rtol=1e-12)
    ops.two_nearest(table, state.centers, state)
    np.testing.assert_allclose(state.second, second(kind, X, state.centers), rtol=1e-12)


def move_rows(X, w, labels, centers):
    """Move single rows, one after the other, where the objective decreases most; return the labels."""
    labels, centers = labels.copy(), centers.copy()
    weight = np.bincount(labels, w, len(centers))
    for i in range(len(X)):
        a = labels[i]
        if w[i] == 0 or np.count_nonzero(labels == a) == 1 or weight[a] <= w[i]:
            continue
        squares = ((X[i] - centers) ** 2).sum(axis=1)
        change = squares * weight / (weight + w[i])
        change[a] = squares[a] * weight[a] / (weight[a] - w[i]) * (1 - ops.MIN_DECREASE)
        j = change.argmin()
        if j != a:
            labels[i], weight[a], weight[j] = j, weight[a] - w[i], weight[j] + w[i]
            for c in (a, j):
                centers[c] = np.average(X[labels == c], axis=0, weights=w[labels == c])
    return labels


@pytest.mark.parametrize("n, d, k", [(200, 2, 40), (120, 7, 30), (50, 3, 2)])
@pytest.mark.parametrize("weighted", [False, True])
def test_single_rows_are_moved_as_by_a_simple_implementation(n, d, k, weighted):
    X, w = rows("means", n, d, k)
    w = w + 0.25 if weighted else np.ones(n)
    table, state = ops.as_table(X, w), ops.new_state(n, d, k)
    state.centers[:] = run(table, X[:k], 100)[0]
    ops.complete(table, k, state)
    before, changes = state.labels.copy(), ops.move_rows(table, k, state)
    expected = move_rows(X, w, before, run(table, X[:k], 100)[0])
    np.testing.assert_array_equal(state.labels, expected)
    assert changes >= np.count_nonzero(before != expected)
    assert changes > 0 or k == 2
    np.testing.assert_allclose(state.weight, np.bincount(expected, w, k))
    for j in range(k):
        np.testing.assert_allclose(state.centers[j], np.average(X[expected == j], axis=0, weights=w[expected == j]))


def test_rows_of_an_empty_and_of_a_single_row_cluster_stay_valid():
    X = np.array([[0.0], [0.1], [5.0], [100.0]])
    table, state = ops.as_table(X, None), ops.new_state(4, 1, 4)
    state.centers[:] = [[0.05], [5.0], [100.0], [900.0]]
    ops.complete(table, 4, state)
    assert ops.move_rows(table, 4, state) == 1  # into the empty cluster
    assert sorted(state.count) == [1, 1, 1, 1]
    assert ops.move_rows(table, 4, state) == 0


def test_moves_of_rows_and_descents_alternate_until_none_helps():
    X, w = rows("means", 300, 4, 40)
    w += 0.5
    table, state = ops.as_table(X, w), ops.new_state(300, 4, 40)
    start, objective = run(table, X[:40], 100)[:2]
    centers = start.copy()
    end, steps = ops.polish(table, 1000, 100, 0.0, 0.0, 0.0, state, centers, objective)
    assert end < objective
    assert 3 < steps < 1000
    assert end == pytest.approx(total("means", X, w, centers), rel=1e-12)
    state.centers[:] = centers
    ops.complete(table, 40, state)
    assert ops.move_rows(table, 40, state) == 0


def test_rows_that_are_equally_well_off_in_two_clusters_do_not_change_for_ever():
    """A pass over single rows that lowers the objective by nothing is the last one."""
    X = np.array([[0.0], [1.0], [2.0]]).repeat(4, axis=0) @ np.ones((1, 2))
    table, state = ops.as_table(X, None), ops.new_state(12, 2, 2)
    start, objective = run(table, X[[0, 4]], 100)[:2]
    steps = ops.polish(table, 1000, 100, 0.0, 0.0, 0.0, state, start, objective)[1]
    assert steps < 20


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
