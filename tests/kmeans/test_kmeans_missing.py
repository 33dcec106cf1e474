"""K-means with missing values: distances and means over the observed values."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import nan_euclidean_distances

from coterie import KMeans
from kmeans.kmeans_cases import SINGLE
from kmeans.missing_values import (
    SIZES,
    STARTS,
    groups,
    kmeans_ignoring_missing,
    means,
    rows_with_missing,
    squares,
    with_missing,
)
from many_parts import many_parts


def naive_fit(X, w, centers, v=1.0):
    """Lloyd's algorithm in loops until no row changes cluster, and the number of iterations."""
    labels, rounds = None, 0
    while True:
        found = squares(X, centers, v).argmin(axis=1)
        if labels is not None and np.array_equal(found, labels):
            return centers, labels, rounds
        labels, rounds = found, rounds + 1
        centers = means(X, w, labels, centers)


# What a fit is


@SIZES
@SINGLE
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("v", [False, True], ids=["", "columns weighted"])
def test_attributes_belong_together(n, d, k, dtype, weighted, v):
    X = rows_with_missing(n, d, k).astype(dtype)
    w = np.random.default_rng(2).random(n) if weighted else np.ones(n)
    v = np.random.default_rng(3).lognormal(size=d) if v else np.ones(d)
    model = kmeans_ignoring_missing(k, metric_weights=v, tol=0, max_iter=1000).fit(X, sample_weight=w)
    far, eps = squares(X, model.cluster_centers_, v), 1e-9 if dtype == np.float64 else 1e-4
    assert model.cluster_centers_.dtype == dtype
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_allclose(far[np.arange(n), model.labels_], far.min(axis=1), rtol=eps, atol=eps)
    assert model.inertia_ == pytest.approx(w @ far.min(axis=1), rel=eps)
    assert model.score(X, sample_weight=w) == pytest.approx(-model.inertia_, rel=eps)
    found = model.transform(X)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.sqrt(far), rtol=eps, atol=eps)
    assert (np.diff(model.history_) <= eps * model.history_[0]).all()
    wanted = means(X, w, model.labels_, model.cluster_centers_)
    np.testing.assert_allclose(model.cluster_centers_, wanted, atol=10 * eps)


@SIZES
@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
def test_it_is_what_loops_find_from_the_same_start(n, d, k, share):
    X, w = rows_with_missing(n, d, k, share), np.random.default_rng(2).random(n)
    start = groups(n, d, k)[0][:k]
    centers, labels, rounds = naive_fit(X, w, start)
    model = kmeans_ignoring_missing(k, init=start, tol=0, max_iter=1000).fit(X, sample_weight=w)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-9)
    assert model.n_iter_ == rounds


@SIZES
@SINGLE
@pytest.mark.parametrize("init", STARTS)
def test_without_missing_values_it_is_kmeans_to_the_last_bit(n, d, k, dtype, init):
    X = groups(n, d, k)[0].astype(dtype)
    one, other = kmeans_ignoring_missing(k, init=init).fit(X), KMeans(k, init=init, random_state=0).fit(X)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    np.testing.assert_array_equal(one.history_, other.history_)
    np.testing.assert_array_equal(one.predict(X[::-1]), other.predict(X[::-1]))
    np.testing.assert_allclose(one.transform(X), other.transform(X), rtol=1e-6)
    assert one.score(X) == pytest.approx(other.score(X), rel=1e-6)


@pytest.mark.parametrize("options", [{"search": "fast"}, {"algorithm": "exact"}, {"algorithm": "bounds"}])
def test_without_missing_values_every_option_works(options):
    X = groups(12, 2, 3)[0]
    one, other = kmeans_ignoring_missing(3, **options).fit(X), KMeans(3, random_state=0, **options).fit(X)
    assert one.inertia_ == other.inertia_
    np.testing.assert_array_equal(one.labels_, other.labels_)


def test_one_column_without_missing_values_is_still_exact():
    x = np.random.default_rng(0).normal(size=(500, 1))
    assert kmeans_ignoring_missing(9).fit(x).inertia_ == KMeans(9).fit(x).inertia_


@SIZES
def test_a_model_fitted_without_missing_values_predicts_rows_that_have_some(n, d, k):
    X = groups(n, d, k)[0]
    model, incomplete = kmeans_ignoring_missing(k).fit(X), with_missing(X)
    far = squares(incomplete, model.cluster_centers_)
    np.testing.assert_array_equal(model.predict(incomplete), far.argmin(axis=1))
    np.testing.assert_allclose(model.transform(incomplete), np.sqrt(far), rtol=1e-9)
    assert model.score(incomplete) == pytest.approx(-far.min(axis=1).sum())


def test_groups_that_lie_apart_are_found_though_half_of_the_values_are_missing():
    X, labels = groups(3000, 12, 5, apart=8.0)
    assert adjusted_rand_score(kmeans_ignoring_missing(5, n_init=5).fit(with_missing(X, 0.5)).labels_, labels) > 0.99


def test_scikit_learns_distances_scaled_up_for_what_is_missing_have_the_same_nearest():
    X = rows_with_missing(400, 5, 4)
    model = kmeans_ignoring_missing(4).fit(X)
    share = (~np.isnan(X)).sum(axis=1, keepdims=True) / 5
    theirs = nan_euclidean_distances(X, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(X), theirs * np.sqrt(share), rtol=1e-6)
    np.testing.assert_array_equal(model.labels_, theirs.argmin(axis=1))


# Laws


def test_weight_two_is_the_row_twice():
    X, w = rows_with_missing(900, 4, 3), np.random.default_rng(3).integers(0, 4, 900)
    start = groups(900, 4, 3)[0][:3]
    heavy = kmeans_ignoring_missing(3, init=start).fit(X, sample_weight=w)
    often = kmeans_ignoring_missing(3, init=start).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(heavy.cluster_centers_, often.cluster_centers_, rtol=1e-9)
    assert heavy.inertia_ == pytest.approx(often.inertia_)


@SINGLE
def test_the_order_of_the_columns_does_not_matter(dtype):
    X, order = rows_with_missing(3000, 9, 5).astype(dtype), np.random.default_rng(4).permutation(9)
    start = groups(3000, 9, 5)[0][:5]
    one = kmeans_ignoring_missing(5, init=start).fit(X)
    other = kmeans_ignoring_missing(5, init=start[:, order]).fit(np.ascontiguousarray(X[:, order]))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.cluster_centers_[:, order], other.cluster_centers_, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**30])
def test_units_change_nothing_but_the_units(factor):
    X = rows_with_missing(3000, 6, 5)
    one, other = kmeans_ignoring_missing(5).fit(X), kmeans_ignoring_missing(5).fit(X * factor)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.cluster_centers_ * factor, other.cluster_centers_)
    assert one.inertia_ * factor**2 == other.inertia_


@SINGLE
def test_far_from_the_origin_it_finds_the_same(dtype):
    X = np.round(rows_with_missing(3000, 6, 5) * 16) / 16  # so that adding 2^16 loses no digit
    start = np.round(groups(3000, 6, 5)[0][:5] * 16) / 16
    near = kmeans_ignoring_missing(5, init=start).fit(X.astype(dtype))
    far = kmeans_ignoring_missing(5, init=start + 2.0**16).fit((X + 2.0**16).astype(dtype))
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-9 if dtype == np.float64 else 1e-3)
    assert adjusted_rand_score(far.labels_, near.labels_) > (0.999999 if dtype == np.float64 else 0.99)


@SIZES
def test_columns_of_weight_zero_are_not_looked_at(n, d, k):
    X, start = groups(n, d, k)[0], groups(n, d, k, seed=5)[0][:k]
    X = np.hstack([with_missing(X[:, :-1]), with_missing(X, 0.5, seed=9)[:, -1:]])
    v = np.append(np.ones(d - 1), 0.0)
    model = kmeans_ignoring_missing(k, metric_weights=v, init=start).fit(X)
    alone = kmeans_ignoring_missing(k, init=start[:, :-1]).fit(np.ascontiguousarray(X[:, :-1]))
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_allclose(model.cluster_centers_[:, :-1], alone.cluster_centers_)
    assert model.inertia_ == pytest.approx(alone.inertia_)
    wanted = means(X, np.ones(n), model.labels_, model.cluster_centers_)
    np.testing.assert_allclose(model.cluster_centers_, wanted)


def test_a_column_of_weight_zero_that_a_cluster_has_no_value_of_gets_the_mean_of_all():
    X = np.array([[0, 1.0], [1, 3], [10, np.nan], [11, np.nan]])
    model = kmeans_ignoring_missing(2, metric_weights=[1, 0]).fit(X)
    assert sorted(model.cluster_centers_.tolist()) == [[0.5, 2.0], [10.5, 2.0]]


@SIZES
def test_weights_of_columns_are_scaled_columns(n, d, k):
    X, v = rows_with_missing(n, d, k), np.random.default_rng(8).lognormal(size=d)
    start = groups(n, d, k)[0][:k]
    model = kmeans_ignoring_missing(k, metric_weights=v, init=start).fit(X)
    by_hand = kmeans_ignoring_missing(k, init=start * np.sqrt(v)).fit(X * np.sqrt(v))
    np.testing.assert_array_equal(model.labels_, by_hand.labels_)
    np.testing.assert_allclose(model.cluster_centers_ * np.sqrt(v), by_hand.cluster_centers_)


@SIZES
@SINGLE
@pytest.mark.parametrize("init", STARTS)
def test_frozen_centers_stay(n, d, k, dtype, init):
    X, frozen = rows_with_missing(n, d, k).astype(dtype), groups(n, d, k)[0][:2].astype(dtype)
    model = kmeans_ignoring_missing(k, frozen_centers=frozen, init=init).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_[:2], frozen)
    wanted = means(X, np.ones(n), model.labels_, model.cluster_centers_)[2:]
    np.testing.assert_allclose(model.cluster_centers_[2:], wanted, atol=0.1)
    assert (np.diff(model.history_) <= 1e-6 * model.history_[0]).all()


def test_a_column_that_a_cluster_has_no_value_of_stays_where_it_was():
    X = np.array([[0.0, 5], [1, 7], [10, np.nan], [11, np.nan]])
    model = kmeans_ignoring_missing(2, init=[[0.0, 5], [10, 42]]).fit(X)
    assert model.cluster_centers_.tolist() == [[0.5, 6.0], [10.5, 42.0]]
    assert model.inertia_ == 3.0


def test_several_threads_give_the_bits_of_one(monkeypatch):
    X = rows_with_missing(2400, 8, 7)
    many_parts(monkeypatch, X)
    one, *others = (kmeans_ignoring_missing(7, n_jobs=n).fit(X) for n in (1, 2, 5))
    for other in others:
        np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
        np.testing.assert_array_equal(one.history_, other.history_)
