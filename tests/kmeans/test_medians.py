"""The K-medians estimator. General laws run over `zoo`."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import zoo
from coterie import KMeans, KMedians
from coterie.core.protocols import Chunk
from coterie.errors import InputError
from coterie.kmeans.median_models import Euclidean, Manhattan
from kmeans.median_reference import METRICS, TYPES, draws, lengths, weighted_median
from many_parts import many_parts, weights_of_many_digits

# NumPy kernels; compiled kernels
SIZES = pytest.mark.parametrize("X, k", [(zoo.SMALL, 3), (zoo.LARGE, 9)], ids=["small", "large"])


# the estimator


@METRICS
@SIZES
@TYPES
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_attributes_belong_together(X, k, dtype, metric, weighted):
    X = X.astype(dtype)
    w = draws(12).random(len(X)) if weighted else None
    model = KMedians(k, metric=metric, init=X[:k]).fit(X, sample_weight=w)
    apart, eps = lengths(X, model.cluster_centers_, metric), 1e-9 if dtype == np.float64 else 1e-4
    assert model.cluster_centers_.dtype == dtype
    assert model.labels_.dtype == np.int32
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, apart.argmin(axis=1))
    assert model.objective_ == pytest.approx(np.dot(np.ones(len(X)) if w is None else w, apart.min(axis=1)), rel=eps)
    assert model.score(X, sample_weight=w) == pytest.approx(-model.objective_, rel=eps)
    found = model.transform(X)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, apart, rtol=eps, atol=eps)
    assert model.history_[-1] == model.objective_
    assert len(model.history_) == model.n_iter_ + 1 > 2
    assert np.all(np.diff(model.history_) <= 0.01 * eps * model.history_[:-1])
    assert model.converged_


@SIZES
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_centers_are_the_medians_of_their_rows_when_nothing_moves_any_more(X, k, weighted):
    w = draws(13).integers(0, 3, size=len(X)) + 0.0 if weighted else np.ones(len(X))
    model = KMedians(k, init=X[:k], tol=0).fit(X, sample_weight=w)
    for j, center in enumerate(model.cluster_centers_):
        mine = model.labels_ == j
        wanted = [weighted_median(column, w[mine]) for column in X[mine].T]
        np.testing.assert_allclose(center, wanted, rtol=1e-15)


@SIZES
def test_no_geometric_median_nearby_is_better(X, k):
    model = KMedians(k, metric="l2", init=X[:k], tol=1e-12).fit(X)
    for j, center in enumerate(model.cluster_centers_):
        mine, rng = X[model.labels_ == j], draws(j)
        best = lengths(mine, [center], "l2").sum()
        for size in (1e-3, 1e-1):
            assert best <= lengths(mine, [center + size * rng.normal(size=X.shape[1])], "l2").sum()


@METRICS
def test_one_far_outlier_does_not_move_the_centers_much(metric):
    X = np.concatenate([draws(14).normal(size=(200, 2)), draws(15).normal(size=(200, 2)) + 20.0])
    start, far = X[[0, 200]], np.array([[30.0, 1e4]])
    clean = KMedians(2, metric=metric, init=start).fit(X)
    model = KMedians(2, metric=metric, init=start).fit(np.concatenate([X, far]))
    squares = KMeans(2, init=start).fit(np.concatenate([X, far]))
    assert np.abs(model.cluster_centers_ - clean.cluster_centers_).max() < 0.1
    assert np.abs(squares.cluster_centers_ - clean.cluster_centers_).max() > 10.0


def test_in_one_column_both_metrics_have_the_same_objective():
    X = zoo.SMALL[:, :1].copy()
    one, two = (KMedians(1, metric=m, tol=0, max_iter=1000).fit(X) for m in ("l1", "l2"))
    assert one.cluster_centers_[0, 0] == np.median(X)
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-6)


@METRICS
@SIZES
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(X, k, metric):
    w = draws(16).integers(0, 3, size=len(X))
    options = {"n_clusters": k, "metric": metric, "init": X[:k] + 0.1, "tol": 1e-9}
    weighted = KMedians(**options).fit(X, sample_weight=w)
    repeated = KMedians(**options).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-6, atol=1e-6)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, w), repeated.labels_)


@METRICS
@TYPES
def test_any_number_of_threads_gives_the_same_bits(metric, dtype, monkeypatch):
    X = draws(17).normal(size=(2100, 6)).astype(dtype)
    many_parts(monkeypatch, X)
    w = weights_of_many_digits(X)
    ways = {"n_jobs": 5}, {"engine": "serial"}
    fits = [KMedians(5, metric=metric, random_state=0, tol=1e-2, **way).fit(X, sample_weight=w) for way in ways]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.cluster_centers_, fits[0].cluster_centers_)
        np.testing.assert_array_equal(other.history_, fits[0].history_)
        np.testing.assert_array_equal(other.labels_, fits[0].labels_)


@METRICS
def test_dask_arrays_give_what_arrays_give(metric):
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(zoo.SMALL, chunks=(400, -1))
    model = KMedians(4, metric=metric, init=zoo.SMALL[:4])
    here, there = clone(model).fit(zoo.SMALL), clone(model).fit(lazy)
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(there.labels_.compute(), here.labels_)
    np.testing.assert_allclose(there.transform(lazy).compute(), here.transform(zoo.SMALL), rtol=1e-9)


@METRICS
def test_float32_is_near_float64(metric):
    double = KMedians(3, metric=metric, init="farthest").fit(zoo.SMALL + 100)
    single = KMedians(3, metric=metric, init="farthest").fit((zoo.SMALL + 100).astype(np.float32))
    np.testing.assert_allclose(single.cluster_centers_, double.cluster_centers_, rtol=1e-4)
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-5)


@METRICS
def test_an_empty_cluster_is_moved_to_the_costliest_row(metric):
    X = np.concatenate([draws(18).normal(size=(50, 2)), [[40.0, 40.0], [300.0, 0.0]]])
    w = np.ones(52)
    w[50] = 20.0  # costs most, though it is not the farthest
    seen = []
    start = np.array([[0.0, 0.0], [-1e6, -1e6]])
    KMedians(2, metric=metric, init=start, callback=lambda p: seen.append(p.params.copy())).fit(X, sample_weight=w)
    assert seen[1][1].tolist() == X[50].tolist()
    model = KMedians(2, metric=metric, init=start).fit(X, sample_weight=w)
    assert set(model.labels_) == {0, 1}
    assert np.all(np.diff(model.history_) <= 0)


@METRICS
def test_fewer_distinct_rows_than_clusters_are_all_found_with_a_warning(metric):
    X = np.repeat([[0.0, 1.0], [2.0, 2.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 2 of 3 clusters have rows: X has too few distinct rows"):
        model = KMedians(3, metric=metric, random_state=0).fit(X)
    assert model.objective_ == 0


@METRICS
def test_as_many_clusters_as_rows_cost_nothing(metric):
    X = np.arange(12.0).reshape(6, 2)
    model = KMedians(6, metric=metric, init="farthest").fit(X)
    assert model.objective_ == 0
    assert sorted(model.labels_.tolist()) == list(range(6))


@METRICS
@pytest.mark.parametrize("init", ["k-means++", "forgy", "random", "random_partition", "farthest"])
def test_every_start_finds_groups_that_are_far_apart(init, metric):
    X = np.repeat([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]], 30, axis=0) + draws(19).normal(size=(90, 2))
    model = KMedians(3, metric=metric, init=init, n_init=10, random_state=0).fit(X)
    assert len(np.unique(model.labels_.reshape(3, 30), axis=1).T) == 1
    assert len(set(model.labels_)) == 3


@METRICS
def test_rows_of_any_size_give_numbers(metric):
    for size in (1e-140, 1e140):
        X = zoo.SMALL[:100] * size
        model = KMedians(3, metric=metric, init=X[:3]).fit(X)
        plain = KMedians(3, metric=metric, init=zoo.SMALL[:3]).fit(zoo.SMALL[:100])
        np.testing.assert_allclose(model.cluster_centers_ / size, plain.cluster_centers_, rtol=1e-6)


@pytest.mark.parametrize("model", [Manhattan(4), Euclidean(4)], ids=["l1", "l2"])
def test_rows_and_centers_may_be_of_different_types(model):
    X, centers = zoo.SMALL[:50].astype(np.float32), zoo.SMALL[:4]
    stats, _ = model.e_step(centers, Chunk(X, None, 0))
    wide, _ = model.e_step(centers, Chunk(X.astype(np.float64), None, 0))
    assert model.objective(centers, stats) == model.objective(centers, wide)


@METRICS
def test_a_pickled_model_answers_the_same(metric):
    model = KMedians(3, metric=metric, random_state=0).fit(zoo.SMALL)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(zoo.SMALL), model.transform(zoo.SMALL))


def test_a_callback_that_says_stop_ends_the_fit_without_a_warning():
    model = KMedians(4, search="none", random_state=0, callback=lambda progress: progress.iteration == 1).fit(zoo.LARGE)
    assert model.n_iter_ == 1
    assert not model.converged_


# Errors


def test_sparse_rows_are_rejected_with_the_remedy():
    with pytest.raises(InputError, match=r"KMedians needs dense rows \(X.toarray\(\)"):
        KMedians(4).fit(zoo.COUNTS)


@pytest.mark.parametrize(
    "option, value, words",
    [
        ("n_clusters", 0, "n_clusters must be a whole number of at least 1; got 0"),
        ("n_clusters", 1201, "n_clusters=1201: use n_clusters <= 1200"),
        ("metric", "l3", "metric must be 'l1' or 'l2'; got 'l3'"),
        ("metric", None, "metric must be 'l1' or 'l2'; got None"),
        ("init", "best", "init must be one of 'auto', 'k-means"),
        ("init", np.ones((3, 3)), r"init must be n_clusters=2 centers of 3 columns, shape \(2, 3\)"),
        ("n_init", 0, "n_init must be 'auto' or a whole number"),
        ("max_iter", 0, "max_iter must be a whole number of at least 1; got 0"),
        ("tol", -1.0, "tol must be a finite number of at least 0"),
        ("engine", "gpu", "engine must be 'auto'"),
        ("random_state", "luck", "random_state must be None"),
        ("callback", 3, "callback must be None or a function"),
    ],
)
def test_invalid_options_are_rejected_with_the_valid_values(option, value, words):
    with pytest.raises(ValueError, match=words):
        KMedians(**{"n_clusters": 2, option: value}).fit(zoo.SMALL)
