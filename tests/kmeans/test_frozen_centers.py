"""K-means with fixed centers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans
from coterie.errors import InputError, ParameterError
from many_parts import many_parts, weights_of_many_digits

STARTS = pytest.mark.parametrize("init", ["k-means++", "forgy", "random", "random_partition", "farthest"])
SINGLE = pytest.mark.parametrize("dtype", [np.float64, np.float32])
FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
# NumPy kernels; compiled kernels; compiled kernels with bounds
SIZES = pytest.mark.parametrize("n, d, k", [(90, 2, 4), (4000, 8, 5), (3000, 30, 20)], ids=["small", "large", "bounds"])


def groups(n, d, k, seed=0, apart=4.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[rng.integers(k, size=n)]


def squares(X, centers):
    return ((np.asarray(X, np.float64)[:, None] - np.asarray(centers, np.float64)) ** 2).sum(axis=2)


@SIZES
@STARTS
@SINGLE
@FORMS
def test_frozen_centers_never_move(n, d, k, init, dtype, form):
    X = groups(n, d, k).astype(dtype)
    frozen = np.random.default_rng(9).normal(size=(2, d)) * 3
    seen = []
    model = KMeans(
        k, init=init, n_init=1, frozen_centers=frozen, random_state=0, callback=lambda p: seen.append(p.params)
    )
    model.fit(form(X))
    for centers in (*seen, model.cluster_centers_):
        np.testing.assert_array_equal(centers[:2], frozen.astype(dtype))
    assert not np.array_equal(seen[0][2:], seen[-1][2:])
    assert model.cluster_centers_.shape == (k, d)


@SIZES
@SINGLE
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_attributes_belong_together(n, d, k, dtype, weighted):
    X = groups(n, d, k).astype(dtype)
    w = np.random.default_rng(2).random(n) if weighted else np.ones(n)
    model = KMeans(k, frozen_centers=X[:2], tol=0, max_iter=1000, random_state=0).fit(X, sample_weight=w)
    far, eps = squares(X, model.cluster_centers_), 1e-9 if dtype == np.float64 else 1e-5
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, far.argmin(axis=1))
    assert model.inertia_ == pytest.approx(w @ far.min(axis=1), rel=eps)
    assert (np.diff(model.history_) <= eps * model.history_[0]).all()
    means = [np.average(X[model.labels_ == j], axis=0, weights=w[model.labels_ == j]) for j in range(2, k)]
    np.testing.assert_allclose(model.cluster_centers_[2:], means, atol=100 * eps)


def test_bounds_change_the_speed_not_the_result():
    X = groups(6000, 30, 20)
    plain, bounded = (
        KMeans(20, frozen_centers=X[:3], algorithm=how, random_state=0).fit(X) for how in ("lloyd", "bounds")
    )
    np.testing.assert_array_equal(plain.cluster_centers_, bounded.cluster_centers_)
    np.testing.assert_array_equal(plain.history_, bounded.history_)


@FORMS
def test_threads_change_nothing(form, monkeypatch):
    X = form(groups(2400, 30, 9))
    many_parts(monkeypatch, X)
    w = weights_of_many_digits(X)
    alone, together = (
        KMeans(9, frozen_centers=np.ones((2, 30)), random_state=0, n_jobs=jobs).fit(X, sample_weight=w)
        for jobs in (1, 3)
    )
    np.testing.assert_array_equal(alone.cluster_centers_, together.cluster_centers_)
    assert alone.inertia_ == together.inertia_


def test_weight_two_is_the_row_twice():
    X = groups(400, 3, 5)
    options = {"init": "farthest", "frozen_centers": np.zeros((1, 3))}
    heavy = KMeans(5, **options).fit(X, sample_weight=np.repeat([1.0, 2.0], 200))
    twice = KMeans(5, **options).fit(np.r_[X, X[200:]])
    np.testing.assert_allclose(heavy.cluster_centers_, twice.cluster_centers_, atol=1e-12)


def test_dense_and_sparse_rows_give_the_same():
    X = groups(4000, 8, 5)
    X[np.random.default_rng(4).random(X.shape) < 0.5] = 0
    dense, thin = (
        KMeans(5, init="farthest", frozen_centers=np.ones((2, 8))).fit(form(X))
        for form in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_array_equal(dense.labels_, thin.labels_)
    np.testing.assert_allclose(dense.cluster_centers_, thin.cluster_centers_, atol=1e-9)


def test_dask_rows_give_the_same():
    da = pytest.importorskip("dask.array")
    X = groups(600, 4, 5)
    for init in ("k-means++", "farthest"):
        model = KMeans(5, init=init, frozen_centers=X[:2], random_state=0).fit(da.from_array(X, chunks=(600, -1)))
        plain = KMeans(5, init=init, frozen_centers=X[:2], random_state=0, engine="serial").fit(X)
        np.testing.assert_array_equal(model.cluster_centers_[:2], X[:2])
        np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, atol=1e-9)


@pytest.mark.parametrize("init", ["k-means++", "farthest"])
def test_initial_centers_avoid_frozen_centers(init):
    islands = np.random.default_rng(1).normal(size=(5, 20, 2)) + 100 * np.arange(5)[:, None, None]
    for seed in range(10):
        model = KMeans(5, init=init, frozen_centers=[[0.0, 0.0], [200.0, 200.0]], random_state=seed)
        model.fit(islands.reshape(-1, 2))
        assert sorted(model.cluster_centers_[:, 0].round(-2)) == [0, 100, 200, 300, 400]


def test_a_center_that_is_frozen_where_it_would_end_changes_nothing():
    X = groups(300, 2, 4)
    free = KMeans(4, tol=0, random_state=0).fit(X)
    held = KMeans(4, tol=0, init=free.cluster_centers_[2:], frozen_centers=free.cluster_centers_[:2]).fit(X)
    np.testing.assert_allclose(held.cluster_centers_, free.cluster_centers_, rtol=1e-9)
    assert held.inertia_ == pytest.approx(free.inertia_, rel=1e-9)


def test_an_array_and_a_callable_start_the_others():
    X, given = groups(90, 2, 4), []

    def init(rows, k, random_state):
        given.append(k)
        return X[:2]

    called = KMeans(4, init=init, n_init=1, frozen_centers=X[5:7]).fit(X)
    array = KMeans(4, init=X[:2], frozen_centers=X[5:7]).fit(X)
    assert given == [2]
    np.testing.assert_array_equal(called.cluster_centers_, array.cluster_centers_)


def test_if_all_centers_are_frozen_rows_are_only_labelled():
    X = groups(90, 2, 4)
    model = KMeans(3, frozen_centers=X[:3]).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_, X[:3])
    np.testing.assert_array_equal(model.labels_, squares(X, X[:3]).argmin(axis=1))
    assert model.converged_


def test_a_frozen_center_without_rows_stays_without_a_warning():
    X = groups(90, 2, 3)
    model = KMeans(3, frozen_centers=[[1e6, 1e6]], random_state=0).fit(X)
    assert model.cluster_centers_[0].tolist() == [1e6, 1e6]
    assert set(model.labels_) == {1, 2}


def test_a_free_center_without_rows_is_moved():
    X = groups(90, 2, 3)
    model = KMeans(3, init=[[1e6, 1e6], [0.0, 0.0]], frozen_centers=[[1.0, 1.0]]).fit(X)
    assert set(model.labels_) == {0, 1, 2}


def test_if_every_row_is_a_frozen_center_the_others_stay_empty_with_a_warning():
    X = np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 0 of 1 clusters have rows"):
        model = KMeans(3, frozen_centers=X[[0, 9]], random_state=0).fit(X)
    assert model.inertia_ == 0


def test_there_may_be_fewer_rows_than_frozen_centers():
    model = KMeans(4, frozen_centers=[[0.0], [5.0], [9.0]], random_state=0).fit([[1.0], [20.0]])
    assert model.labels_.tolist() == [0, 3]
    with pytest.raises(InputError, match=r"n_samples=2 rows.*n_clusters=4 minus 1 frozen centers: use n_clusters <= 3"):
        KMeans(4, frozen_centers=[[0.0]]).fit([[1.0], [20.0]])


@pytest.mark.parametrize(
    "frozen, words",
    [
        (np.zeros((4, 2)), r"1 to n_clusters=3 centers of 2 columns; its shape is \(4, 2\)"),
        (np.zeros((0, 2)), r"its shape is \(0, 2\)"),
        (np.zeros((1, 3)), r"its shape is \(1, 3\)"),
        (np.zeros(2), r"its shape is \(2,\)"),
        ([[np.nan, 0.0]], "contains NaN or infinity"),
        ("these", r"must be None or numbers \(f, 2\); got 'these'"),
    ],
)
def test_invalid_frozen_centers_are_rejected(frozen, words):
    with pytest.raises(ParameterError, match=f"frozen_centers.*{words}"):
        KMeans(3, frozen_centers=frozen).fit(groups(90, 2, 3))


def test_initial_centers_for_all_clusters_are_rejected_with_the_number_of_free_ones():
    X = groups(90, 2, 3)
    with pytest.raises(ParameterError, match=r"init must be 2, n_clusters=3 minus 1 frozen centers of 2 columns"):
        KMeans(3, init=X[:3], frozen_centers=X[:1]).fit(X)


def test_a_search_is_rejected():
    X = groups(90, 2, 3)
    with pytest.raises(ParameterError, match=r"frozen_centers require search='auto' or 'none'.*got search='fast'"):
        KMeans(3, search="fast", frozen_centers=X[:1]).fit(X)


def test_the_exact_algorithm_is_rejected_and_one_column_is_not_solved_by_it():
    X = groups(90, 1, 3)
    with pytest.raises(ParameterError, match="algorithm='exact' does not support frozen_centers"):
        KMeans(3, algorithm="exact", frozen_centers=X[:1]).fit(X)
    assert KMeans(3, frozen_centers=[[0.25]], random_state=0).fit(X).cluster_centers_[0].tolist() == [0.25]


def test_clones_keep_the_frozen_centers_and_the_array_given_is_not_changed():
    X = groups(90, 2, 3)
    frozen = X[:1].copy()
    model = KMeans(3, frozen_centers=frozen, random_state=0).fit(X)
    np.testing.assert_array_equal(clone(model).fit(X).cluster_centers_, model.cluster_centers_)
    np.testing.assert_array_equal(frozen, X[:1])
    model.cluster_centers_[0] = 7
    np.testing.assert_array_equal(frozen, X[:1])
