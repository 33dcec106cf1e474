"""Initialisation of K-means with missing values, for all kinds of tables."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans
from kmeans.kmeans_cases import SINGLE
from kmeans.missing_values import SIZES, STARTS, groups, kmeans_ignoring_missing, means, rows_with_missing, squares

# Starts, and clusters that lose their rows


@SIZES
@SINGLE
@pytest.mark.parametrize("init", STARTS)
def test_every_initialisation_gives_centers_without_missing_values(n, d, k, dtype, init):
    X = rows_with_missing(n, d, k, share=0.8).astype(dtype)
    seen = []
    model = kmeans_ignoring_missing(k, init=init, callback=lambda progress: seen.append(progress.params)).fit(X)
    assert all(np.isfinite(centers).all() for centers in seen)
    assert model.cluster_centers_.dtype == dtype
    assert (np.diff(model.history_) <= 1e-6 * model.history_[0]).all()
    assert np.unique(model.labels_).size == k


def test_missing_values_of_a_row_that_becomes_a_center_are_column_means():
    X = np.array([[0, np.nan], [0, np.nan], [9, 1.0], [9, 4]])
    starts = []
    kmeans_ignoring_missing(2, init="farthest", callback=lambda progress: starts.append(progress.params)).fit(X)
    assert {tuple(row) for row in starts[0].tolist()} <= {(0.0, 2.5), (9.0, 1.0), (9.0, 4.0)}
    assert [0.0, 2.5] in starts[0].tolist()


def test_these_column_means_are_weighted():
    X = np.array([[0, np.nan], [0, np.nan], [9, 1.0], [9, 4]])
    starts = []
    model = kmeans_ignoring_missing(2, init="farthest", callback=lambda progress: starts.append(progress.params))
    model.fit(X, sample_weight=[1, 1, 2, 1])
    assert [0.0, 2.0] in starts[0].tolist()


@SIZES
def test_an_empty_cluster_is_moved_to_the_costliest_row(n, d, k):
    X = rows_with_missing(n, d, k)
    start = np.vstack([groups(n, d, k)[0][: k - 2], np.full((2, d), 1e4)])
    seen = []
    model = kmeans_ignoring_missing(k, init=start, tol=0, callback=lambda progress: seen.append(progress.params)).fit(X)
    far = squares(X, start)
    own = squares(X, np.vstack([means(X, np.ones(n), far.argmin(axis=1), start)]))[np.arange(n), far.argmin(axis=1)]
    worst = X[np.argmax(own)]
    wanted = np.where(np.isnan(worst), np.nanmean(X, axis=0), worst)
    np.testing.assert_allclose(seen[1][k - 2], wanted)
    assert np.unique(model.labels_).size == k
    assert (np.diff(model.history_) <= 0).all()


def test_a_start_by_a_callable_sees_the_rows_as_they_are():
    X, seen = rows_with_missing(300, 3, 4), []

    def init(X, n_clusters, random_state):
        seen.append(X)
        return np.nan_to_num(X[:n_clusters])

    kmeans_ignoring_missing(4, init=init, n_init=1).fit(X)
    np.testing.assert_array_equal(seen[0], X)


def test_equal_rows_with_equal_missing_values_are_one_row():
    X = np.repeat([[0.0, np.nan], [np.nan, 5.0], [9.0, 9.0]], 20, axis=0)
    with pytest.warns(match="clusters have rows"):
        model = kmeans_ignoring_missing(5).fit(X)
    assert model.inertia_ == 0.0
    assert np.isfinite(model.cluster_centers_).all()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_is_missing_the_result_is_sound(data):
    n, d = data.draw(st.integers(1, 25)), data.draw(st.integers(1, 4))
    values = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, width=32))
    X = np.array(data.draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n)))
    gaps = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=d, max_size=d), min_size=n, max_size=n)))
    gaps[gaps.all(axis=1), 0] = False  # no row and no column is all holes
    gaps[0, gaps.all(axis=0)] = False
    X[gaps] = np.nan
    k, init = data.draw(st.integers(1, n)), data.draw(st.sampled_from(STARTS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of clusters without rows
        model = KMeans(k, missing="ignore", init=init, algorithm="lloyd", random_state=0).fit(X)
    far = squares(X, model.cluster_centers_)
    assert np.isfinite(model.cluster_centers_).all()
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_allclose(far[np.arange(n), model.labels_], far.min(axis=1), rtol=1e-9, atol=1e-12)
    assert model.inertia_ == pytest.approx(far.min(axis=1).sum(), rel=1e-9, abs=1e-12)
    rounding = 1e-12 * (model.history_[0] + np.nanvar(X) * X.size)
    assert (np.diff(model.history_) <= rounding).all()


# Where rows come from


def expected(X, k=4):
    return kmeans_ignoring_missing(k, n_jobs=1).fit(X)


def test_a_mapped_file_gives_what_memory_gives(tmp_path):
    X = rows_with_missing(3000, 5, 4)
    np.save(tmp_path / "rows.npy", X)
    model = kmeans_ignoring_missing(4).fit(str(tmp_path / "rows.npy"))
    np.testing.assert_array_equal(model.cluster_centers_, expected(X).cluster_centers_)
    np.testing.assert_array_equal(model.predict(tmp_path / "rows.npy"), model.labels_)


@pytest.mark.parametrize("options", [{}, {"metric_weights": [1, 2, 3, 4, 0]}, {"init": "farthest"}])
def test_a_dask_array_gives_what_memory_gives(options):
    da = pytest.importorskip("dask.array")
    X, w = rows_with_missing(3000, 5, 4), np.random.default_rng(1).random(3000)
    lazy = da.from_array(X, chunks=(700, 3))
    start = {"init": groups(3000, 5, 4)[0][:4]} | options
    model, wanted = (kmeans_ignoring_missing(4, **start).fit(rows, sample_weight=w) for rows in (lazy, X))
    np.testing.assert_allclose(model.cluster_centers_, wanted.cluster_centers_, rtol=1e-9)
    assert isinstance(model.labels_, da.Array)
    np.testing.assert_array_equal(model.labels_.compute(), wanted.labels_)
    np.testing.assert_allclose(model.transform(lazy).compute(), wanted.transform(X), rtol=1e-6, atol=1e-9)
    assert model.score(lazy, sample_weight=w) == pytest.approx(-model.inertia_)


@pytest.mark.parametrize("init", STARTS)
def test_every_start_works_on_a_dask_array(init):
    da = pytest.importorskip("dask.array")
    X = rows_with_missing(600, 4, 4)
    model = kmeans_ignoring_missing(4, init=init, n_init=2).fit(da.from_array(X, chunks=(200, -1)))
    far = squares(X, model.cluster_centers_)
    np.testing.assert_array_equal(model.labels_.compute(), far.argmin(axis=1))
    assert model.inertia_ == pytest.approx(far.min(axis=1).sum())
    assert (np.diff(model.history_) <= 0).all()


def frames(X):
    """Tables in which a missing value is NaN, null or NA."""
    names = [f"x{t}" for t in range(X.shape[1])]
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame(X, columns=names)
    nulls = {name: [None if np.isnan(x) else float(x) for x in X[:, t]] for t, name in enumerate(names)}
    yield from (frame, frame.convert_dtypes(), polars.DataFrame(X, schema=names), polars.DataFrame(nulls))


def test_tables_may_have_missing_values_of_any_kind():
    X = rows_with_missing(200, 3, 4)
    wanted = expected(X)
    for frame in frames(X):
        model = kmeans_ignoring_missing(4).fit(frame)
        np.testing.assert_array_equal(model.cluster_centers_, wanted.cluster_centers_)
        np.testing.assert_array_equal(model.predict(frame), wanted.labels_)
        assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"]


def test_copies_and_pickles_say_the_same():
    X = rows_with_missing(300, 3, 4)
    model = kmeans_ignoring_missing(4).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(clone(model).fit(X).cluster_centers_, model.cluster_centers_)
