"""The K-medoids estimator."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from coterie import KMedoids, machine
from coterie.distances import pairwise
from coterie.errors import InputError, ParameterError
from coterie.medoids import kmedoids
from many_parts import many_strips

rng = np.random.default_rng(11)
X = np.concatenate([rng.normal(size=(40, 3)) + shift for shift in (0, 8, 16)])


def halved(x, y):
    total = 0.0
    for i in range(len(x)):
        total += abs(x[i] - y[i])
    return total / 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", halved, "gower"])
def test_answers_agree(metric, dtype):
    rows = (X + 1).astype(dtype)
    model = KMedoids(3, metric=metric, random_state=0).fit(rows)
    D = pairwise(rows, metric=metric)[:, model.medoid_indices_].astype(np.float64)
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    np.testing.assert_array_equal(model.labels_, D.argmin(axis=1))
    np.testing.assert_allclose(model.transform(rows), D, rtol=1e-5, atol=1e-6)
    assert model.inertia_ == pytest.approx(D.min(axis=1).sum(), rel=1e-5)
    assert model.score(rows) == pytest.approx(-model.inertia_)
    assert (np.diff(model.history_) <= 0).all()


def test_distances_are_as_good_as_rows():
    by_rows = KMedoids(3, random_state=0).fit(X)
    D = pairwise(X)
    by_distances = KMedoids(3, metric="precomputed", random_state=0).fit(D)
    np.testing.assert_array_equal(by_rows.medoid_indices_, by_distances.medoid_indices_)
    np.testing.assert_array_equal(by_distances.predict(D[:7]), by_rows.labels_[:7])
    assert by_distances.cluster_centers_ is None
    np.testing.assert_array_equal(by_rows.cluster_centers_, X[by_rows.medoid_indices_])


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_nothing(n_jobs, monkeypatch):
    many_strips(monkeypatch, 1 << 12)
    rows = np.concatenate([X, X[:, ::-1]])
    one, many = (KMedoids(5, random_state=3, n_jobs=jobs).fit(rows) for jobs in (1, n_jobs))
    np.testing.assert_array_equal(many.medoid_indices_, one.medoid_indices_)
    np.testing.assert_array_equal(many.labels_, one.labels_)
    assert many.inertia_ == one.inertia_


@pytest.mark.parametrize("objective", ["deviation", "silhouette"])
def test_weight_two_is_the_row_twice(objective):
    w = rng.integers(0, 3, size=len(X))
    options = {"n_clusters": 3, "init": "build", "objective": objective}
    weighted, repeated = KMedoids(**options).fit(X, sample_weight=w), KMedoids(**options).fit(np.repeat(X, w, axis=0))
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)
    assert weighted.silhouette_ == pytest.approx(repeated.silhouette_)
    np.testing.assert_array_equal(
        np.sort(weighted.cluster_centers_, axis=0), np.sort(repeated.cluster_centers_, axis=0)
    )
    assert (w[weighted.medoid_indices_] > 0).all()


def test_the_number_of_clusters_by_silhouette():
    model = KMedoids("auto", objective="silhouette", random_state=0).fit(X)
    assert len(model.medoid_indices_) == 3
    assert len(set(model.labels_[:40])) == 1
    assert model.silhouette_ > KMedoids(4, objective="silhouette", random_state=0).fit(X).silhouette_


def test_a_sample_finds_clear_clusters():
    rows = np.concatenate([rng.normal(size=(2000, 2)) + shift for shift in (0, 20, 40, 60)])
    exact = KMedoids(4, random_state=0).fit(rows)
    sample = KMedoids(4, random_state=0, approximation="sample").fit(rows)
    assert (exact.approximation_, sample.approximation_) == ("exact", "sample")
    assert sample.inertia_ <= 1.03 * exact.inertia_
    np.testing.assert_array_equal(sample.predict(rows), sample.labels_)


def test_distances_that_do_not_fit_in_memory_are_recomputed_or_sampled(monkeypatch):
    whole = KMedoids(3, random_state=0).fit(X)
    monkeypatch.setattr(machine, "SMALL_OBJECT", 0)
    monkeypatch.setattr(machine, "free_memory", lambda: 1000)
    again = KMedoids(3, random_state=0).fit(X)
    np.testing.assert_array_equal(whole.labels_, again.labels_)
    assert again.approximation_ == "exact"
    monkeypatch.setattr(kmedoids, "EXACT_ROWS", 100)
    assert KMedoids(3, random_state=0).fit(X).approximation_ == "sample"


def test_frames_of_mixed_columns_by_gower():
    frame = pd.DataFrame({"size": [1.0, 1.2, 9.0, 9.3, None], "kind": ["a", "a", "b", "b", "b"]})
    model = KMedoids(2, metric="gower", init="build").fit(frame)
    assert model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3] == model.labels_[4]
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    assert model.cluster_centers_ is None


def test_one_cluster_and_as_many_as_rows():
    one = KMedoids(1).fit(X)
    assert one.inertia_ == pytest.approx(pairwise(X).sum(axis=1).min())
    assert one.silhouette_ == 0
    each = KMedoids(len(X), init="random", n_init=1).fit(X)
    assert each.inertia_ == 0
    assert sorted(each.medoid_indices_) == list(range(len(X)))


def test_rows_that_are_all_alike():
    model = KMedoids(3, random_state=0).fit(np.ones((10, 2)))
    assert model.inertia_ == 0
    assert len(set(model.medoid_indices_.tolist())) == 3
    assert (model.labels_ == 0).all()


@pytest.mark.parametrize("objective", ["deviation", "silhouette"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_swaps_whose_gain_is_rounding_are_not_made(objective, dtype):
    """With a medoid in every group of equal rows the loss is 0; sums of distances in another order differ from it."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, w = np.repeat(rng.normal(size=(6, 3)), 20, axis=0).astype(dtype), rng.random(120)
        model = KMedoids(6, objective=objective, random_state=seed).fit(X, sample_weight=w)
        assert model.inertia_ == 0
        assert model.n_iter_ <= 2


def test_tight_groups_far_apart_have_their_best_medoids():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [2.0**40]], 15, axis=0) + rng.integers(0, 1000, size=(30, 1)) / 1024
    model = KMedoids(2, random_state=0).fit(X)
    assert model.inertia_ == sum(np.abs(group - np.sort(group, axis=0)[7]).sum() for group in (X[:15], X[15:]))


def test_given_medoids_are_the_start():
    best = KMedoids(3, init="build").fit(X)
    again = KMedoids(3, init=best.medoid_indices_).fit(X)
    assert again.n_iter_ == 1
    np.testing.assert_array_equal(again.medoid_indices_, best.medoid_indices_)


def test_progress_and_stopping():
    seen = []
    KMedoids(3, random_state=0, search="none", callback=seen.append).fit(X)
    assert [progress.iteration for progress in seen] == list(range(1, len(seen) + 1))
    seen.clear()
    KMedoids(3, random_state=0, callback=seen.append).fit(X)
    assert sorted({progress.run for progress in seen}) == [0, 1]  # the search, and swaps from its result
    assert (np.diff([progress.objective for progress in seen]) <= 0).all()
    model = KMedoids(6, init=np.arange(6), callback=lambda progress: True).fit(X)
    assert model.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="max_iter=1 passes: raise max_iter"):
        KMedoids(6, init=np.arange(6), max_iter=1).fit(X)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1"),
        ({"n_clusters": "auto"}, "n_clusters='auto' needs objective='silhouette'"),
        ({"n_clusters": 1, "objective": "silhouette"}, "n_clusters must be a whole number of at least 2"),
        ({"objective": "loss"}, "objective must be 'deviation' or 'silhouette'"),
        ({"init": "pam"}, "init must be 'build'"),
        ({"init": [0, 1]}, "the indices of n_clusters=8 different rows"),
        ({"n_clusters": 2, "init": [3, 3]}, "2 different rows"),
        ({"n_clusters": 2, "init": [3, 300]}, "indices of rows of weight above 0, from 0 to 119"),
        ({"n_init": 0}, "n_init must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"approximation": "fast"}, "approximation must be"),
        ({"metric": "precomputed", "approximation": "sample"}, "approximation='sample' needs rows"),
        ({"metric": "precomputed", "metric_params": {"p": 1}}, "takes no metric_params"),
        ({"metric": "euclid"}, "metric must be one of"),
        ({"objective": "silhouette", "n_clusters": "auto", "max_clusters": 1}, "max_clusters must be"),
    ],
)
def test_bad_options_are_said(options, message):
    with pytest.raises(ParameterError, match=message):
        KMedoids(**options).fit(X)


@pytest.mark.parametrize(
    "D, message",
    [
        (np.ones((3, 4)), r"needs a square X.*\(3, 4\)"),
        ([[0, 1], [2, 0]], r"X is not symmetric: X\[0, 1\] is 1 and X\[1, 0\] is 2"),
        ([[0, -1], [-1, 0]], r"2 distances that are negative, the first at \[0, 1\]"),
        ([[0, np.nan], [1, 0]], r"1 distances that are not finite, the first at \[0, 1\]"),
        ([[1.0, 1], [1, 0]], r"X\[0, 0\] is 1: the distance of an object to itself must be 0"),
        ([["a"]], "needs X to contain numbers only"),
    ],
)
def test_bad_distances_are_said(D, message):
    with pytest.raises(InputError, match=message):
        KMedoids(1, metric="precomputed").fit(D)


def test_new_rows_must_be_like_the_old_ones():
    with pytest.raises(ValueError, match="features"):
        KMedoids(2).fit(X).predict(X[:, :2])
    with pytest.raises(InputError, match="the 120 objects of the fit"):
        KMedoids(2, metric="precomputed").fit(pairwise(X)).predict(np.ones((2, 5)))
    with pytest.raises(InputError, match="are fewer than n_clusters=3"):
        KMedoids(3).fit(X, sample_weight=np.r_[1, 1, np.zeros(118)])


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 10**6), st.sampled_from(["lab", "build", "k-medoids++"]))
def test_any_small_table(n, k, seed, init):
    D = np.random.default_rng(seed).integers(0, 4, size=(n, n)).astype(float)
    D = np.triu(D, 1) + np.triu(D, 1).T
    k = min(k, n)
    model = KMedoids(k, metric="precomputed", init=init, random_state=seed).fit(D)
    assert len(set(model.medoid_indices_.tolist())) == k
    assert model.inertia_ == D[:, model.medoid_indices_].min(axis=1).sum()
    assert np.isfinite(model.history_).all()
