"""K-means with weights of any size, and with rows far from the origin."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans
from kmeans.kmeans_cases import SINGLE, SIZES, groups, objective, squares

# weights


@SIZES
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_of_weight_zero_are_as_if_they_were_not_there(n, d, k, form):
    X = groups(n, d, k)
    weight = np.random.default_rng(3).integers(0, 3, size=n).astype(float)
    kept = weight > 0
    start = X[kept][:k]
    with_zeros = KMeans(k, init=start, tol=0, max_iter=1000).fit(form(X), sample_weight=weight)
    without = KMeans(k, init=start, tol=0, max_iter=1000).fit(form(X[kept]), sample_weight=weight[kept])
    np.testing.assert_allclose(with_zeros.cluster_centers_, without.cluster_centers_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(with_zeros.labels_[kept], without.labels_)
    assert with_zeros.inertia_ == pytest.approx(without.inertia_, rel=1e-9)


@SIZES
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_weight_two_is_the_row_twice(n, d, k, form):
    X = groups(n, d, k)
    times = np.random.default_rng(3).integers(0, 4, size=n)
    weighted = KMeans(k, init=X[:k], tol=0, max_iter=1000).fit(form(X), sample_weight=times)
    repeated = KMeans(k, init=X[:k], tol=0, max_iter=1000).fit(form(np.repeat(X, times, axis=0)))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-9)
    assert weighted.n_iter_ == repeated.n_iter_


def test_weight_two_is_the_row_twice_from_the_start_that_leaves_nothing_to_chance():
    X = groups(200, 3, 5)
    times = np.random.default_rng(3).integers(0, 4, size=200)
    weighted = KMeans(5, init="farthest").fit(X, sample_weight=times)
    repeated = KMeans(5, init="farthest").fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-9, atol=1e-12)


@SINGLE
@pytest.mark.parametrize("factor", [1e-12, 1e-3, 1e12])
@pytest.mark.parametrize("n, d", [(90, 2), (4000, 8)])
def test_the_size_of_all_weights_together_changes_nothing_but_the_objective(n, d, factor, dtype):
    X = groups(n, d, 5).astype(dtype)
    weight = np.random.default_rng(3).random(n)
    one, other = (KMeans(5, init=X[:5]).fit(X, sample_weight=w) for w in (weight, factor * weight))
    np.testing.assert_allclose(other.cluster_centers_, one.cluster_centers_, rtol=1e-5, atol=1e-5)
    assert other.inertia_ == pytest.approx(factor * one.inertia_, rel=1e-5)


# numbers far out


@pytest.mark.parametrize("n, d, k", [(300, 2, 4), (6000, 8, 6), (3000, 8, 20)], ids=["small", "large", "bounds"])
@pytest.mark.parametrize("init", ["k-means++", "farthest"])
def test_single_precision_rows_far_from_the_origin_get_the_labels_of_double_precision(n, d, k, init):
    X = (np.random.default_rng(0).normal(size=(n, d)) + 1e6).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # centers round to a sixteenth here, and may go in circles
        model = KMeans(k, init=init, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, squares(X, model.cluster_centers_).argmin(axis=1))
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-5)
    assert len(np.unique(model.labels_)) == k
    middle = KMeans(k, init=init, random_state=0).fit(X.astype(np.float64) - 1e6).inertia_
    assert model.inertia_ < 1.2 * middle


@pytest.mark.parametrize("n, d, k", [(300, 2, 4), (6000, 8, 6)], ids=["small", "large"])
def test_sparse_rows_far_from_the_origin_get_the_labels_of_dense_ones(n, d, k):
    X = np.random.default_rng(0).normal(size=(n, d)) + 1e6
    model = KMeans(k, init=X[:k]).fit(sparse.csr_array(X))
    np.testing.assert_array_equal(model.labels_, squares(X, model.cluster_centers_).argmin(axis=1))
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-6)


@SINGLE
@pytest.mark.parametrize("size", [1e-30, 1e30])
@pytest.mark.parametrize("n, d", [(90, 2), (4000, 8)])
def test_the_unit_of_the_columns_changes_nothing(n, d, size, dtype):
    """A power of two as the unit, so that not one digit differs."""
    X = groups(n, d, 5).astype(dtype)
    unit = dtype(2.0 ** np.round(np.log2(size)))
    one, other = (KMeans(5, random_state=0).fit(rows) for rows in (X, X * unit))
    np.testing.assert_array_equal(other.labels_, one.labels_)
    np.testing.assert_array_equal(other.cluster_centers_, one.cluster_centers_ * unit)
    assert other.inertia_ == pytest.approx(one.inertia_ * float(unit) ** 2, rel=1e-12)


@pytest.mark.parametrize("n, d", [(90, 2), (5000, 8)])
def test_one_row_far_beyond_all_others_is_labelled_and_paid_for(n, d):
    X = groups(n, d, 4) * 1e-10
    X[n - 5] = 1e150
    model = KMeans(4, init=X[:4]).fit(X)
    assert set(model.labels_) <= set(range(4))
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-9)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
