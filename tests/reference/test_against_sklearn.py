"""From the same start, the same answer as scikit-learn's Lloyd iterations in float64."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans as Reference

from coterie import KMeans

# Small and large work (NumPy and compiled kernels), one column, more columns than rows, and enough clusters for bounds.
SHAPES = [(60, 1, 3), (200, 2, 5), (40, 90, 4), (4000, 8, 5), (3000, 10, 24)]


def table(n, d, k, sparse_rows):
    rng = np.random.default_rng([n, d, k])
    X = rng.normal(size=(n, d)) + 2.0 * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    if sparse_rows:
        X *= rng.random(X.shape) < 0.3
        X[:k] += rng.normal(size=(k, d))  # the start: rows that differ
    return X


def both(X, k, weight, sparse_rows, tol):
    """The two fits, each with what it was given."""
    options = {"n_clusters": k, "init": X[:k].copy(), "tol": tol, "max_iter": 1000, "n_init": 1}
    rows = sparse.csr_matrix(X) if sparse_rows else X
    ours = KMeans(**options).fit(rows, sample_weight=weight)
    theirs = Reference(**options, algorithm="lloyd").fit(rows, sample_weight=weight)
    return ours, theirs


@pytest.mark.parametrize("n, d, k", SHAPES)
@pytest.mark.parametrize("sparse_rows", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_same_start_ends_in_the_same_clusters(n, d, k, sparse_rows, weighted):
    X = table(n, d, k, sparse_rows)
    weight = np.random.default_rng(n).random(n) if weighted else None
    ours, theirs = both(X, k, weight, sparse_rows, tol=0)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
    assert theirs.n_iter_ > 1  # else there was nothing to agree on
    # Both end when no label changes. They count the pass that finds so as an iteration; here it belongs to the last.
    assert ours.n_iter_ == theirs.n_iter_ - 1


@pytest.mark.parametrize("n, d, k", [(60, 1, 3), (200, 2, 5), (4000, 8, 5), (3000, 10, 24)])
@pytest.mark.parametrize("sparse_rows", [False, True], ids=["dense", "sparse"])
def test_the_tolerance_ends_both_at_the_same_iteration(n, d, k, sparse_rows):
    X = table(n, d, k, sparse_rows)
    tol = 0.02
    ours, theirs = both(X, k, None, sparse_rows, tol)
    before = KMeans(k, init=X[:k].copy(), callback=lambda progress: progress.iteration == ours.n_iter_ - 1).fit(X)
    step = ((ours.cluster_centers_ - before.cluster_centers_) ** 2).sum()
    assert step <= tol * X.var(axis=0).mean()  # it was the tolerance that ended it
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)


@pytest.mark.parametrize("n, d, k", SHAPES)
def test_predictions_and_distances_agree(n, d, k):
    X = table(n, d, k, False)
    ours, theirs = both(X, k, None, False, tol=0)
    new = np.random.default_rng(0).normal(size=(500, d)) * 3
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-7, atol=1e-7)
    assert ours.score(new) == pytest.approx(theirs.score(new), rel=1e-9)
