"""The kernel of K-means with two clusters against NumPy."""

import numpy as np
import pytest

from coterie.kernels.cpu import two_means as compiled
from coterie.kernels.plain import two_means as plain


def table(n, d, dtype, shift=0.0):
    rng = np.random.default_rng(n + d)
    return (shift + rng.normal(size=(n, d)) + 2.0 * rng.integers(0, 2, (n, 1))).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (37, 3), (512, 4), (1500, 7), (5000, 16)])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1000.0])
@pytest.mark.parametrize("max_iter", [0, 1, 2, 100])
def test_the_compiled_kernel_gives_the_centers_of_numpy(n, d, dtype, is_weighted, shift, max_iter):
    X = table(n, d, dtype, shift)
    w = np.random.default_rng(0).integers(0, 3, n).astype(float) + (np.arange(n) < 2) if is_weighted else None
    arguments = X, w, X[:2].copy(), 0.5, 1e-6 * d, max_iter
    (ours, n_iter), (theirs, n_plain) = compiled.two_means(*arguments), plain.two_means(*arguments)
    assert ours.dtype == theirs.dtype == np.float64
    assert abs(n_iter - n_plain) <= (0 if dtype == np.float64 else 1)
    if n_iter == n_plain:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=16 * np.finfo(dtype).eps * np.abs(X).max())


@pytest.mark.parametrize("kernels", [compiled, plain])
def test_one_more_iteration_does_not_move_the_centers(kernels):
    X, tol = table(3000, 5, np.float64), 1e-8
    centers, n_iter = kernels.two_means(X, None, X[:2].copy(), 1.0, tol, 1000)
    assert 1 < n_iter < 1000
    labels = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    means = np.stack([X[labels == j].mean(axis=0) for j in range(2)])
    assert ((means - centers) ** 2).sum() <= tol * (1 + 1e-6)


@pytest.mark.parametrize("kernels", [compiled, plain])
def test_a_cluster_does_not_become_empty(kernels):
    X = np.zeros((700, 3))
    start = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    centers, n_iter = kernels.two_means(X, None, start, 1.0, 0.0, 10)
    assert n_iter == 0
    np.testing.assert_array_equal(centers, start)


@pytest.mark.parametrize("kernels", [compiled, plain])
def test_weight_two_is_the_row_twice(kernels):
    X = table(600, 3, np.float64)
    w = np.where(np.arange(600) % 3 == 0, 2.0, 1.0)
    weighted, _ = kernels.two_means(X, w, X[:2].copy(), 1.0, 1e-10, 100)
    repeated, _ = kernels.two_means(np.repeat(X, w.astype(int), axis=0), None, X[:2].copy(), 1.0, 1e-10, 100)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-12)
