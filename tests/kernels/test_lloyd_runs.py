"""Many runs of K-means in one call, compared with loops over NumPy arrays."""

import numpy as np
import pytest

from coterie.kernels.cpu.lloyd_runs import lloyd_runs, numbers_per_run
from kernels import naive


def draw(mass, u):
    """Row drawn in proportion to its mass."""
    return min(int(np.searchsorted(np.cumsum(mass), u * mass.sum(), side="right")), np.flatnonzero(mass)[-1])


def plusplus(X, w, k, u):
    """Greedy k-means++ from uniform numbers."""
    count = (len(u) - 1) // max(k - 1, 1)
    centers = [X[draw(w, u[0])]]
    for j in range(1, k):
        near = naive.squares(X, centers).min(axis=1)
        if not (w * near).any():
            centers.append(centers[0])
            continue
        candidates = [draw(w * near, each) for each in u[1 + (j - 1) * count : 1 + j * count]]
        potentials = [w @ np.minimum(near, naive.squares(X, X[[row]])[:, 0]) for row in candidates]
        centers.append(X[candidates[int(np.argmin(potentials))]])
    return np.array(centers)


def run(X, w, centers, max_iter, tol):
    """Lloyd's algorithm, ending with means."""
    k, before, has_converged = len(centers), None, False
    for step in range(max_iter + 1):
        squares = naive.squares(X, centers)
        labels, near = squares.argmin(axis=1), squares.min(axis=1)
        means = centers.copy()
        for j in range(k):
            if w[labels == j].sum() > 0:
                means[j] = np.average(X[labels == j], axis=0, weights=w[labels == j])
        if (before is not None and np.array_equal(labels, before)) or has_converged or step == max_iter:
            break
        for j in range(k):
            if w[labels == j].sum() == 0:
                far = int(np.argmax(w * near))
                means[j], near[far] = X[far], 0.0
        before, has_converged = labels, ((means - centers) ** 2).sum() <= tol
        centers = means
    return means, labels, float(w @ ((X - means[labels]) ** 2).sum(axis=1))


CASES = {
    "blobs": (300, 3, 4, 2, False),
    "weights": (300, 3, 4, 2, True),
    "more rows than a block": (1000, 2, 5, 1, True),
    "many columns": (60, 70, 3, 3, False),
    "one center": (20, 2, 1, 1, True),
}


@pytest.mark.parametrize("n, d, k, count, is_weighted", CASES.values(), ids=CASES)
@pytest.mark.parametrize("max_iter, tol", [(0, 0.0), (3, 0.0), (100, 0.0), (100, 1e-2)])
def test_runs_are_those_of_a_simple_implementation(n, d, k, count, is_weighted, max_iter, tol):
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d)) + 4 * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    w = rng.integers(0, 4, size=n).astype(float) if is_weighted else None
    u = rng.random((4, numbers_per_run(k, count)))
    runs = lloyd_runs(X, w, k, u, max_iter, tol)
    w = np.ones(n) if w is None else w
    for r in range(4):
        centers, labels, objective = run(X, w, plusplus(X, w, k, u[r]), max_iter, tol)
        np.testing.assert_array_equal(runs.labels[r], labels)
        np.testing.assert_allclose(runs.centers[r], centers, rtol=1e-9, atol=1e-9)
        assert runs.objectives[r] == pytest.approx(objective, rel=1e-9)


def test_runs_start_from_given_centers():
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(200, 2)), rng.normal(size=(3, 5, 2))
    runs = lloyd_runs(X, None, 5, np.zeros((0, 1)), 50, 0.0, centers)
    for r in range(3):
        np.testing.assert_array_equal(runs.labels[r], run(X, np.ones(200), centers[r], 50, 0.0)[1])


def test_a_run_depends_on_its_own_numbers_only():
    rng = np.random.default_rng(1)
    X, u = rng.normal(size=(150, 4)), rng.random((6, numbers_per_run(4, 2)))
    together = lloyd_runs(X, None, 4, u, 100, 0.0)
    alone = [lloyd_runs(X, None, 4, u[[r]], 100, 0.0) for r in (5, 2, 0)]
    for r, single in zip((5, 2, 0), alone, strict=True):
        for a, b in zip(together, single, strict=True):
            np.testing.assert_array_equal(a[r], b[0])


def test_an_empty_cluster_moves_to_the_costliest_row():
    X = np.array([[0.0], [1.0], [2.0], [9.0]])
    runs = lloyd_runs(X, None, 3, np.zeros((0, 1)), 50, 0.0, np.array([[[0.0], [50.0], [60.0]]]))
    assert runs.objectives[0] == pytest.approx(0.5)


def test_fewer_distinct_rows_than_clusters_give_an_objective_of_zero():
    X = np.repeat([[0.0, 1.0], [3.0, 1.0]], 5, axis=0)
    runs = lloyd_runs(X, None, 4, np.random.default_rng(0).random((3, numbers_per_run(4, 2))), 50, 0.0)
    np.testing.assert_array_equal(runs.objectives, 0.0)
