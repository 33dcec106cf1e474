"""K-means results, also for equal rows and empty clusters."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans
from kmeans.kmeans_cases import BOTH, SINGLE, SIZES, STARTS, groups, in_order, islands, objective, squares

# special numbers of clusters


@SINGLE
@pytest.mark.parametrize("n, d", [(50, 3), (30_000, 8)])
def test_one_cluster_is_the_mean_and_costs_the_total_sum_of_squares(n, d, dtype):
    X = groups(n, d, 3).astype(dtype)
    model = KMeans(1, random_state=0).fit(X)
    wide = X.astype(np.float64)
    rounding = 1e-12 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(model.cluster_centers_[0], wide.mean(axis=0), rtol=rounding, atol=rounding)
    assert model.inertia_ == pytest.approx(((wide - wide.mean(axis=0)) ** 2).sum(), rel=10 * rounding)
    assert not model.labels_.any()


@pytest.mark.parametrize("init", STARTS)
def test_as_many_clusters_as_rows_cost_nothing(init):
    X = groups(25, 3, 4)
    model = KMeans(25, init=init, random_state=0).fit(X)
    assert model.inertia_ == 0
    assert sorted(model.labels_) == list(range(25))
    np.testing.assert_array_equal(model.cluster_centers_[model.labels_], X)


# rows that are alike


@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_fewer_distinct_rows_than_clusters_are_all_found_with_a_warning(init, form):
    X = np.repeat([[0.0, 0.0], [1.0, 5.0], [9.0, 2.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 3 of 5 clusters have rows: X has too few distinct rows"):
        model = KMeans(5, init=init, random_state=0).fit(form(X))
    assert model.inertia_ == 0
    assert np.isfinite(model.cluster_centers_).all()
    np.testing.assert_array_equal(model.cluster_centers_[model.labels_], X)


@pytest.mark.parametrize("n", [3, 30_000], ids=["small", "large"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_equally_near_centers_give_the_first(n, form):
    X = np.tile([[0.0], [1.0], [2.0]], (n // 3, 8))
    start = np.repeat([[2.0], [0.0]], 8, axis=1)
    model = KMeans(2, init=start, callback=lambda progress: True).fit(form(X))
    np.testing.assert_array_equal(model.labels_, np.tile([1, 0, 0], n // 3))


def test_constant_columns_change_nothing():
    X = groups(80, 2, 3)
    padded = np.c_[np.full(80, 7.0), X[:, 0], np.zeros(80), X[:, 1]]
    alone = KMeans(3, init=X[:3]).fit(X)
    beside = KMeans(3, init=padded[:3]).fit(padded)
    np.testing.assert_array_equal(beside.labels_, alone.labels_)
    np.testing.assert_array_equal(beside.cluster_centers_[:, [0, 2]], np.tile([7.0, 0.0], (3, 1)))
    np.testing.assert_allclose(beside.cluster_centers_[:, [1, 3]], alone.cluster_centers_, rtol=1e-12)


def test_a_table_of_one_value_is_one_cluster():
    model = KMeans(1).fit(np.full((5, 2), 3.5))
    assert model.inertia_ == 0
    assert model.cluster_centers_.tolist() == [[3.5, 3.5]]


# empty clusters


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("copies", [1, 200], ids=["small", "large"])
def test_a_center_far_from_everything_starts_anew_where_it_helps(form, copies):
    X, means = islands()
    X = np.tile(X, (copies, 1))
    start = np.array([[50.0, 0.0], [0.0, 100.0], [1e6, 1e6]])  # nearest to no row
    left_alone = objective(X, KMeans(2, init=start[:2]).fit(X).cluster_centers_)
    model = KMeans(3, init=start).fit(form(X))
    assert set(model.labels_) == {0, 1, 2}
    assert model.inertia_ < left_alone / 10
    np.testing.assert_allclose(in_order(model.cluster_centers_), in_order(means), rtol=1e-9)


def test_several_empty_clusters_start_at_different_rows():
    X, _ = islands()
    start = np.array([[1e6, 1e6], [0.0, 0.0], [-1e6, 1e6]])
    model = KMeans(3, init=start).fit(X)
    assert set(model.labels_) == {0, 1, 2}
    assert model.inertia_ < objective(X, KMeans(2, init=start[:2]).fit(X).cluster_centers_)


def test_an_empty_cluster_starts_at_the_costliest_row():
    X = np.array([[0.0], [1.0], [2.0], [9.0]])  # mean 3: the row 9 costs most
    starts = []
    KMeans(2, init=[[1.0], [1e6]], callback=lambda progress: starts.append(progress.params.copy())).fit(X)
    assert starts[1].tolist() == [[3.0], [9.0]]


def test_an_empty_cluster_does_not_start_at_a_row_of_weight_zero():
    X = np.array([[0.0], [1.0], [2.0], [9.0], [50.0]])
    starts = []
    model = KMeans(2, init=[[1.0], [1e6]], callback=lambda progress: starts.append(progress.params.copy()))
    model.fit(X, sample_weight=[1, 1, 1, 1, 0])
    assert starts[1].tolist() == [[3.0], [9.0]]


# what the attributes say


@SIZES
@SINGLE
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_attributes_belong_together(n, d, k, dtype, form, weighted):
    X = groups(n, d, k).astype(dtype)
    weight = np.random.default_rng(2).random(n) if weighted else None
    model = KMeans(k, init=X[:k]).fit(form(X), sample_weight=weight)
    np.testing.assert_array_equal(model.labels_, model.predict(form(X)))
    assert model.labels_.dtype == np.int32
    rounding = 1e-9 if dtype == np.float64 else 1e-5
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_, weight), rel=rounding)
    assert model.history_[-1] == model.inertia_
    assert len(model.history_) == model.n_iter_ + 1
    assert (np.diff(model.history_) <= rounding * model.history_[0]).all()
    assert model.converged_
    assert model.score(form(X), sample_weight=weight) == pytest.approx(-model.inertia_, rel=rounding)


@SIZES
@SINGLE
def test_labels_are_the_nearest_centers_as_float64_finds_them(n, d, k, dtype):
    X = groups(n, d, k).astype(dtype)
    model = KMeans(k, init=X[:k]).fit(X)
    np.testing.assert_array_equal(model.labels_, squares(X, model.cluster_centers_).argmin(axis=1))


@SIZES
def test_centers_are_the_means_of_their_rows_when_nothing_changes_any_more(n, d, k):
    X = groups(n, d, k)
    weight = np.random.default_rng(2).random(n)
    model = KMeans(k, init=X[:k], tol=0, max_iter=1000).fit(X, sample_weight=weight)
    means = [np.average(X[model.labels_ == j], axis=0, weights=weight[model.labels_ == j]) for j in range(k)]
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=1e-9, atol=1e-9)


@SIZES
@SINGLE
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_transform_is_the_distance_to_every_center(n, d, k, dtype, form):
    X = groups(n, d, k).astype(dtype)
    model = KMeans(k, init=X[:k]).fit(X)
    found = model.transform(form(X))
    assert found.dtype == dtype
    rounding = 1e-10 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(found, np.sqrt(squares(X, model.cluster_centers_)), rtol=rounding, atol=rounding)


@BOTH
@SINGLE
def test_centers_have_the_type_of_the_rows(kind, dtype):
    X = groups(60, 2, 3).astype(dtype)
    assert kind(3, random_state=0).fit(X).cluster_centers_.dtype == dtype


def test_whole_numbers_have_centers_in_between():
    model = KMeans(1).fit(np.array([[1], [2]]))
    assert model.cluster_centers_.tolist() == [[1.5]]


@BOTH
def test_fit_predict_is_the_labels_of_the_fit(kind):
    X = groups(60, 2, 3)
    weight = np.arange(60.0)
    model = kind(3, random_state=0)
    np.testing.assert_array_equal(model.fit_predict(X, sample_weight=weight), model.labels_)
    np.testing.assert_array_equal(kind(3, random_state=0).fit(X, sample_weight=weight).labels_, model.labels_)


@BOTH
def test_score_is_minus_the_objective_of_the_rows_given(kind):
    X, other = groups(60, 2, 3), groups(40, 2, 3, seed=4)
    weight = np.linspace(0, 2, 40)
    model = kind(3, random_state=0).fit(X)
    assert model.score(other) == pytest.approx(-objective(other, model.cluster_centers_), rel=1e-12)
    assert model.score(other, sample_weight=weight) == pytest.approx(
        -objective(other, model.cluster_centers_, weight), rel=1e-12
    )


def test_single_precision_rows_are_predicted_by_a_double_precision_model():
    X = groups(200, 3, 4)
    model = KMeans(4, random_state=0).fit(X)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(model.predict(single), squares(single, model.cluster_centers_).argmin(axis=1))
