"""K-means with weights of the columns."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from coterie import KMeans
from coterie.errors import InputError, ParameterError
from many_parts import many_parts, weights_of_many_digits

SINGLE = pytest.mark.parametrize("dtype", [np.float64, np.float32])
FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
# NumPy kernels; compiled kernels; compiled kernels with bounds
SIZES = pytest.mark.parametrize("n, d, k", [(90, 3, 4), (4000, 8, 5), (3000, 30, 20)], ids=["small", "large", "bounds"])


def groups(n, d, k, seed=0, apart=4.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[rng.integers(k, size=n)]


def column_weights(d, zeros=0):
    v = np.random.default_rng(8).lognormal(size=d)
    v[:zeros] = 0
    return v


def squares(X, centers, v):
    return (v * (np.asarray(X, np.float64)[:, None] - np.asarray(centers, np.float64)) ** 2).sum(axis=2)


@SIZES
@SINGLE
@FORMS
@pytest.mark.parametrize("zeros", [0, 1], ids=["", "a column of weight 0"])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_attributes_belong_together(n, d, k, dtype, form, zeros, weighted):
    X, v = groups(n, d, k).astype(dtype), column_weights(d, zeros)
    w = np.random.default_rng(2).random(n) if weighted else np.ones(n)
    model = KMeans(k, metric_weights=v, tol=0, max_iter=1000, random_state=0).fit(form(X), sample_weight=w)
    far, eps = squares(X, model.cluster_centers_, v), 1e-9 if dtype == np.float64 else 1e-4
    assert model.cluster_centers_.dtype == dtype
    np.testing.assert_array_equal(model.labels_, model.predict(form(X)))
    np.testing.assert_allclose(far[np.arange(n), model.labels_], far.min(axis=1), rtol=eps, atol=eps)
    assert model.inertia_ == pytest.approx(w @ far.min(axis=1), rel=eps)
    assert model.score(form(X), sample_weight=w) == pytest.approx(-model.inertia_, rel=eps)
    found = model.transform(form(X))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.sqrt(far), rtol=eps, atol=eps)
    assert (np.diff(model.history_) <= eps * model.history_[0]).all()
    means = [np.average(X[model.labels_ == j], axis=0, weights=w[model.labels_ == j]) for j in range(k)]
    np.testing.assert_allclose(model.cluster_centers_, means, atol=10 * eps)


@SIZES
@SINGLE
@FORMS
def test_it_is_kmeans_on_scaled_columns(n, d, k, dtype, form):
    X, v = groups(n, d, k).astype(dtype), column_weights(d)
    weighted = KMeans(k, metric_weights=v, random_state=0).fit(form(X))
    scaled = KMeans(k, random_state=0).fit(form((X * np.sqrt(v)).astype(dtype)))
    np.testing.assert_array_equal(weighted.labels_, scaled.labels_)
    np.testing.assert_array_equal(weighted.history_, scaled.history_)
    eps = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(weighted.cluster_centers_ * np.sqrt(v), scaled.cluster_centers_, rtol=eps, atol=eps)


def test_weights_of_one_change_nothing():
    X = groups(300, 3, 5)
    plain, weighted = (KMeans(5, metric_weights=v, random_state=0).fit(X) for v in (None, np.ones(3)))
    np.testing.assert_array_equal(plain.cluster_centers_, weighted.cluster_centers_)
    np.testing.assert_array_equal(plain.labels_, weighted.labels_)
    assert plain.inertia_ == weighted.inertia_


def test_a_column_of_weight_two_is_the_column_twice():
    X = groups(300, 3, 5)
    heavy = KMeans(5, metric_weights=[1, 1, 2], init=X[:5]).fit(X)
    twice = np.c_[X, X[:, 2]]
    doubled = KMeans(5, init=twice[:5]).fit(twice)
    np.testing.assert_array_equal(heavy.labels_, doubled.labels_)
    np.testing.assert_allclose(heavy.cluster_centers_, doubled.cluster_centers_[:, :3], rtol=1e-9)


@FORMS
def test_a_column_of_weight_zero_is_ignored_and_averaged(form):
    X = np.c_[1e6 * np.random.default_rng(0).normal(size=300), groups(300, 2, 3)]
    model = KMeans(3, metric_weights=[0, 1, 1], init=X[:3]).fit(form(X))
    without = KMeans(3, init=X[:3, 1:]).fit(X[:, 1:])
    np.testing.assert_array_equal(model.labels_, without.labels_)
    np.testing.assert_allclose(model.cluster_centers_[:, 1:], without.cluster_centers_, rtol=1e-12)
    means = [X[model.labels_ == j, 0].mean() for j in range(3)]
    np.testing.assert_allclose(model.cluster_centers_[:, 0], means, rtol=1e-9)


def test_row_weight_two_is_the_row_twice():
    X, v = groups(400, 3, 5), [0.0, 2.0, 0.5]
    heavy = KMeans(5, init="farthest", metric_weights=v).fit(X, sample_weight=np.repeat([1.0, 2.0], 200))
    twice = KMeans(5, init="farthest", metric_weights=v).fit(np.r_[X, X[200:]])
    np.testing.assert_allclose(heavy.cluster_centers_, twice.cluster_centers_, atol=1e-12)


@FORMS
@SINGLE
def test_threads_change_nothing(form, dtype, monkeypatch):
    X, v = form(groups(2400, 30, 9).astype(dtype)), column_weights(30, zeros=2)
    many_parts(monkeypatch, X)
    w = weights_of_many_digits(X)
    alone, together = (
        KMeans(9, metric_weights=v, random_state=0, n_jobs=jobs).fit(X, sample_weight=w) for jobs in (1, 3)
    )
    np.testing.assert_array_equal(alone.cluster_centers_, together.cluster_centers_)
    np.testing.assert_array_equal(alone.labels_, together.labels_)
    assert alone.inertia_ == together.inertia_


def test_dense_and_sparse_rows_give_the_same():
    X, v = groups(4000, 8, 5), column_weights(8, zeros=1)
    X[np.random.default_rng(4).random(X.shape) < 0.5] = 0
    dense, thin = (KMeans(5, init="farthest", metric_weights=v).fit(rows) for rows in (X, sparse.csr_array(X)))
    np.testing.assert_array_equal(dense.labels_, thin.labels_)
    np.testing.assert_allclose(dense.cluster_centers_, thin.cluster_centers_, atol=1e-9)


def test_dask_rows_give_the_same():
    da = pytest.importorskip("dask.array")
    X, v = groups(600, 4, 5), [0.0, 1.0, 2.0, 3.0]
    lazy = da.from_array(X, chunks=(150, -1))
    model = KMeans(5, init=X[:5], metric_weights=v).fit(lazy)
    plain = KMeans(5, init=X[:5], metric_weights=v).fit(X)
    np.testing.assert_array_equal(model.predict(lazy).compute(), plain.labels_)
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, atol=1e-9)


@FORMS
def test_the_rows_given_are_not_changed(form):
    X = form(groups(300, 3, 3))
    before = X.copy()
    KMeans(3, metric_weights=[1, 2, 3], random_state=0).fit(X).predict(X)
    assert abs(X - before).max() == 0


def test_frozen_centers_are_in_the_units_of_the_rows_to_the_last_bit():
    X = groups(300, 3, 5)
    frozen = np.array([[0.1, 0.2, 0.3], [0.7, 0.9, 1.1]])
    model = KMeans(5, metric_weights=[0.0, 3.0, 0.7], frozen_centers=frozen, tol=0, random_state=0).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_[:2], frozen)
    far = squares(X, model.cluster_centers_, np.array([0.0, 3.0, 0.7]))
    np.testing.assert_array_equal(model.labels_, far.argmin(axis=1))
    assert model.inertia_ == pytest.approx(far.min(axis=1).sum(), rel=1e-9)


def test_one_column_keeps_its_optimum():
    X = groups(90, 1, 4)
    plain, heavy = (KMeans(4, metric_weights=v).fit(X) for v in (None, [4.0]))
    np.testing.assert_allclose(heavy.cluster_centers_, plain.cluster_centers_, rtol=1e-12)
    assert heavy.inertia_ == pytest.approx(4 * plain.inertia_, rel=1e-12)


def test_a_search_uses_them():
    X, v = groups(300, 3, 6), np.array([0.1, 5.0, 1.0])
    model = KMeans(6, search="fast", metric_weights=v, random_state=0).fit(X)
    plain = KMeans(6, metric_weights=v, random_state=0).fit(X)
    assert model.inertia_ <= plain.inertia_
    assert model.inertia_ == pytest.approx(squares(X, model.cluster_centers_, v).min(axis=1).sum(), rel=1e-9)


def test_a_fitted_model_keeps_its_weights_whatever_is_set_later():
    X, v = groups(300, 3, 5), [1.0, 9.0, 0.1]
    model = KMeans(5, metric_weights=v, random_state=0).fit(X)
    for other in (model.set_params(metric_weights=None), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.labels_)
    model.fit(X)
    np.testing.assert_array_equal(model.predict(X), KMeans(5, random_state=0).fit(X).labels_)
    again = clone(KMeans(5, metric_weights=v, random_state=0)).fit(X)
    assert again.get_params()["metric_weights"] == v


@pytest.mark.parametrize(
    "v, words",
    [
        ("equal", "got 'equal'"),
        (1.0, "got 1.0"),
        ([1.0, 2.0], r"its shape is \(2,\)"),
        (np.ones((3, 1)), r"its shape is \(3, 1\)"),
        ([1.0, -1.0, 1.0], r"got \[1.0, -1.0, 1.0\]"),
        ([1.0, np.nan, 1.0], "got .*nan"),
        ([np.inf, 1.0, 1.0], "got .*inf"),
        ([0.0, 0.0, 0.0], "not all 0; got"),
    ],
)
def test_invalid_weights_are_rejected(v, words):
    model = KMeans(3, random_state=0).fit(groups(90, 3, 3))
    before = model.cluster_centers_
    with pytest.raises(ParameterError, match=f"metric_weights must be None or 3 numbers >= 0, one per column.*{words}"):
        model.set_params(metric_weights=v).fit(groups(90, 3, 3))
    np.testing.assert_array_equal(model.cluster_centers_, before)


def test_the_number_of_columns_is_checked_after_the_fit_too():
    model = KMeans(3, metric_weights=[1, 2, 3], random_state=0).fit(groups(90, 3, 3))
    with pytest.raises(ValueError, match="2 features"):
        model.predict(np.zeros((4, 2)))


def test_weights_that_make_values_overflow_are_rejected():
    X = groups(90, 2, 3).astype(np.float32)
    with pytest.raises(InputError), np.errstate(over="ignore"):
        KMeans(3, metric_weights=[1e80, 1.0]).fit(X)
