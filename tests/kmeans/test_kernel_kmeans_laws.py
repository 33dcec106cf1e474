"""Kernel K-means: invariances, and the Nyström approximation."""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise

from coterie import KernelKMeans
from coterie.data.memory import MemorySource
from coterie.kmeans import kernel_kmeans as estimator
from coterie.kmeans import nystrom
from coterie.kmeans.kernel_functions import Precomputed, diagonal_and_duplicates
from coterie.kmeans.kernel_lloyd import IndefiniteKernelLloyd
from kmeans.kernel_cases import (
    BY_NAME,
    NAMES,
    WEIGHTED,
    apart,
    blobs,
    cost_of,
    descent,
    gram,
    indefinite,
    some_labels,
    some_weights,
    squares_to_means,
)
from kmeans.kmeans_cases import SINGLE
from many_parts import many_parts


@pytest.mark.parametrize("kernel", ["rbf", "sigmoid"])
@SINGLE
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_matrix_that_is_kept_changes_the_speed_not_the_result(kernel, dtype, form, monkeypatch):
    X, w = form(blobs(600).astype(dtype)), some_weights(600)
    kept = KernelKMeans(5, kernel=kernel, random_state=0).fit(X, sample_weight=w)
    monkeypatch.setattr(estimator, "STORED", 0)
    anew = KernelKMeans(5, kernel=kernel, random_state=0).fit(X, sample_weight=w)
    np.testing.assert_array_equal(kept.history_, anew.history_)
    np.testing.assert_array_equal(kept.labels_, anew.labels_)
    np.testing.assert_array_equal(kept.transform(X), anew.transform(X))


def test_no_room_for_the_matrix_is_no_error(monkeypatch):
    X = blobs(300)
    kept = KernelKMeans(3, random_state=0).fit(X)

    monkeypatch.setattr("coterie.kmeans.kernel_functions.np", FullMemory())
    anew = KernelKMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(kept.labels_, anew.labels_)
    assert kept.inertia_ == anew.inertia_


class FullMemory:
    """NumPy, out of memory."""

    def __getattr__(self, name):
        return getattr(np, name)

    def empty(self, *shape):
        raise MemoryError


def test_features_that_are_not_kept_are_the_same_features(monkeypatch):
    X, w = blobs(4200), some_weights(4200)
    options = {"approximation": "nystrom", "n_landmarks": 30, "random_state": 0}
    kept = KernelKMeans(4, **options).fit(X, sample_weight=w)
    labelled = KernelKMeans(4, init=some_labels(4200, 4), **options).fit(X)
    monkeypatch.setattr(nystrom, "STORED", 0)
    anew = KernelKMeans(4, **options).fit(X, sample_weight=w)
    np.testing.assert_array_equal(kept.history_, anew.history_)
    np.testing.assert_array_equal(kept.labels_, anew.labels_)
    np.testing.assert_array_equal(kept.transform(X), anew.transform(X))
    again = KernelKMeans(4, init=some_labels(4200, 4), **options).fit(X)
    np.testing.assert_array_equal(labelled.history_, again.history_)


@pytest.mark.parametrize("kernel", ["rbf", "sigmoid"])
@pytest.mark.parametrize("approximation", ["exact", "nystrom"])
@SINGLE
def test_threads_change_nothing(kernel, approximation, dtype, monkeypatch):
    X = blobs(1300).astype(dtype)
    many_parts(monkeypatch, X)
    monkeypatch.setattr(nystrom, "PART_ROWS", 256)
    options = {"kernel": kernel, "approximation": approximation, "n_landmarks": 50, "random_state": 0}
    alone = KernelKMeans(6, n_jobs=1, **options).fit(X)
    together = KernelKMeans(6, n_jobs=3, **options).fit(X)
    np.testing.assert_array_equal(together.history_, alone.history_)
    np.testing.assert_array_equal(together.labels_, alone.labels_)
    np.testing.assert_array_equal(together.landmarks_, alone.landmarks_)
    np.testing.assert_array_equal(together.transform(X), alone.transform(X))


@BY_NAME
@pytest.mark.parametrize("seed", range(3))
def test_weight_two_is_the_row_twice(kernel, seed):
    X = blobs(200, k=2, seed=seed)
    options = {"kernel": kernel, "init": "farthest", "tol": 0}
    heavy = KernelKMeans(5, **options).fit(X, sample_weight=np.repeat([1.0, 2.0], 100))
    twice = KernelKMeans(5, **options).fit(np.r_[X, X[100:]])
    assert heavy.inertia_ == pytest.approx(twice.inertia_, rel=1e-9)
    np.testing.assert_array_equal(heavy.labels_, twice.labels_[:200])
    np.testing.assert_array_equal(twice.labels_[100:200], twice.labels_[200:])


@pytest.mark.parametrize("approximation", ["exact", "nystrom"])
def test_rows_of_weight_zero_count_for_nothing(approximation):
    X = apart()
    w = np.arange(len(X)) % 3 > 0
    options = {"approximation": approximation, "init": "farthest", "random_state": 0}
    ignored = KernelKMeans(3, **options).fit(X, sample_weight=w)
    absent = KernelKMeans(3, **options).fit(X[w])
    np.testing.assert_array_equal(ignored.labels_[w], absent.labels_)
    assert ignored.inertia_ == pytest.approx(absent.inertia_, rel=1e-9)
    np.testing.assert_array_equal(ignored.labels_, absent.predict(X))
    assert w[ignored.landmarks_].all()


def test_the_size_of_the_weights_does_not_matter():
    X, w = blobs(300).astype(np.float32), some_weights(300)
    small, large = (KernelKMeans(3, random_state=0).fit(X, sample_weight=w * size) for size in (2.0**-400, 2.0**400))
    np.testing.assert_array_equal(small.labels_, large.labels_)
    assert small.inertia_ * 2.0**800 == pytest.approx(large.inertia_)


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_rises_though_the_kernel_is_of_no_space(seed, weighted):
    K, w = indefinite(300, seed), some_weights(300, weighted)
    model = KernelKMeans(5, kernel="precomputed", tol=0, random_state=seed).fit(K, sample_weight=w)
    assert len(model.history_) > 5
    assert (np.diff(model.history_) <= 0).all()
    assert model.converged_
    np.testing.assert_array_equal(model.predict(K), model.labels_)


@pytest.mark.parametrize("finish", [True, False], ids=["", "batch steps only"])
def test_steps_that_would_raise_it_are_not_taken(finish):
    K, w = indefinite(300), np.ones(300)
    labels, costs = some_labels(300, 5), []
    for _ in range(20):
        costs.append(cost_of(K, w, labels, 5))
        labels = squares_to_means(K, w, labels, 5).argmin(axis=1)
    assert (np.diff(costs) > 0).any()  # or the rest would show nothing
    model = IndefiniteKernelLloyd(5, Precomputed(), some_labels(300, 5), stored=True, finish=finish)
    found, _ = descent(model, K, y=diagonal_and_duplicates(np.diag(K), np.arange(300)))
    assert found.converged
    assert found.history[0] == pytest.approx(costs[0])
    assert (np.diff(found.history) <= 0).all()
    assert not finish or found.history[-1] < min(costs)


@pytest.mark.parametrize("kernel", NAMES)
@WEIGHTED
def test_name_function_and_matrix_are_one_kernel(kernel, weighted):
    X = blobs(600)
    w = some_weights(600, weighted)
    gamma = {"gamma": 0.1} if kernel in ("rbf", "poly", "sigmoid") else {}
    function = partial(pairwise.pairwise_kernels, metric=kernel, filter_params=True, degree=3, coef0=1, **gamma)
    named = KernelKMeans(4, kernel=kernel, random_state=0, **gamma).fit(X, sample_weight=w)
    own = KernelKMeans(4, kernel=function, random_state=0).fit(X, sample_weight=w)
    matrix = KernelKMeans(4, kernel="precomputed", random_state=0).fit(function(X), sample_weight=w)
    for other in (own, matrix):
        np.testing.assert_array_equal(named.labels_, other.labels_)
        assert named.inertia_ == pytest.approx(other.inertia_, rel=1e-9)
    new = blobs(50, seed=1)
    np.testing.assert_array_equal(named.predict(new), own.predict(new))
    np.testing.assert_array_equal(named.predict(new), matrix.predict(function(new, X)))
    np.testing.assert_allclose(named.transform(new), own.transform(new), atol=1e-7)
    np.testing.assert_allclose(named.transform(X), matrix.transform(function(X)), atol=1e-7)
    assert matrix.score(function(X), sample_weight=w) == pytest.approx(-matrix.inertia_)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
@SINGLE
def test_features_of_all_rows_are_exact(kernel, dtype):
    X = (apart() - 3).astype(dtype)
    options = {"kernel": kernel, "init": some_labels(len(X), 3)}
    exact = KernelKMeans(3, approximation="exact", **options).fit(X)
    full = KernelKMeans(3, approximation="nystrom", n_landmarks=len(X), **options).fit(X)
    atol = (1e-6 if dtype == np.float64 else 1e-2) * exact.transform(X).max()
    np.testing.assert_array_equal(exact.labels_, full.labels_)
    assert full.inertia_ == pytest.approx(exact.inertia_, rel=1e-6 if dtype == np.float64 else 1e-2)
    np.testing.assert_allclose(full.transform(X), exact.transform(X), atol=atol)


def test_few_landmarks_are_different_rows_that_explain_the_others():
    X = np.r_[apart(), np.repeat(apart()[:1], 500, axis=0)]  # rows drawn blindly would be that one most of the time
    model = KernelKMeans(3, kernel="rbf", approximation="nystrom", n_landmarks=60, random_state=0).fit(X)
    assert len(np.unique(X[model.landmarks_], axis=0)) == len(model.landmarks_)
    K, found = gram("rbf", X), model._features.of(X)
    blind = np.random.default_rng(0).choice(len(X), 60, replace=False)
    worse = nystrom._whitened(model._kernel, MemorySource(X).pick(blind)).of(X)
    left, blindly = (np.trace(K - phi @ phi.T) for phi in (found, worse))
    assert 0 <= left < 0.5 * blindly


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
@pytest.mark.parametrize("init", ["k-means++", "forgy", "random", "random_partition", "farthest", "labels", "callable"])
@pytest.mark.parametrize("approximation", ["exact", "nystrom"])
def test_every_start_finds_groups_that_are_far_apart(kernel, init, approximation):
    X = apart()
    given = {
        "labels": some_labels(len(X), 3),
        "callable": lambda X, k, rng: rng.permutation(np.arange(len(X)) % (k if X.shape == (180, 3) else 1)),
    }
    options = {"kernel": kernel, "approximation": approximation, "n_init": 20, "random_state": 0}
    model = KernelKMeans(3, init=given.get(init, init), **options).fit(X)
    assert len(np.unique(model.labels_.reshape(3, 60), axis=1).T) == 1
    assert len(set(model.labels_)) == 3


@SINGLE
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_far_from_the_origin_are_as_good_as_near_ones(kernel, dtype):
    X = np.round(blobs(400) * 16) / 16
    far = 2.0**30 if dtype == np.float64 else 2.0**12
    near = KernelKMeans(4, kernel=kernel, random_state=0).fit(X.astype(dtype))
    moved = KernelKMeans(4, kernel=kernel, random_state=0).fit((X + far).astype(dtype))
    assert (near.labels_ == moved.labels_).mean() > 0.99
    assert moved.inertia_ == pytest.approx(near.inertia_, rel=1e-6 if dtype == np.float64 else 1e-4)


def test_gamma_by_its_names():
    X = blobs(100) * [1, 2, 3] + 50
    for kernel, gamma, wanted in [
        ("rbf", None, 1 / X.var(axis=0).sum()),
        ("rbf", "scale", 1 / X.var(axis=0).sum()),
        ("rbf", "auto", 1 / 3),
        ("poly", None, 1 / 3),
        ("sigmoid", None, 1 / 3),
        ("rbf", 2, 2.0),
    ]:
        assert KernelKMeans(2, kernel=kernel, gamma=gamma, random_state=0).fit(X / 100).gamma_ == pytest.approx(
            wanted * (1e4 if wanted == 1 / X.var(axis=0).sum() else 1)
        )
    assert KernelKMeans(2, kernel="linear", random_state=0).fit(X).gamma_ is None


def test_auto_is_exact_for_few_rows_only(monkeypatch):
    assert KernelKMeans(2, random_state=0).fit(blobs(100)).approximation_ == "exact"
    monkeypatch.setattr(estimator, "EXACT_UP_TO", 99)
    assert KernelKMeans(2, random_state=0).fit(blobs(100)).approximation_ == "nystrom"
    K = gram("rbf", blobs(100))
    assert KernelKMeans(2, kernel="precomputed", random_state=0).fit(K).approximation_ == "exact"


def test_frames_and_pickles():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(blobs(200), columns=["a", "b", "c"])
    for approximation in ("exact", "nystrom"):
        model = KernelKMeans(3, approximation=approximation, random_state=0).fit(frame)
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(frame), model.labels_)
        named = model.set_output(transform="pandas").transform(frame)
        assert list(named.columns) == ["kernelkmeans0", "kernelkmeans1", "kernelkmeans2"]


@pytest.mark.parametrize("kernel", ["poly", lambda X, Y: X @ Y.T])
def test_a_fitted_model_does_not_change_with_the_rows_it_was_given(kernel):
    X = blobs(100)
    model = KernelKMeans(3, kernel=kernel, random_state=0).fit(X)
    new = blobs(30, seed=1)
    before = model.predict(new)
    X[:] = 0
    np.testing.assert_array_equal(model.predict(new), before)


def test_a_callback_sees_the_objective_and_ends_the_fit():
    seen = []
    model = KernelKMeans(5, random_state=0, callback=lambda p: seen.append(p.objective) or len(seen) == 3).fit(blobs())
    assert model.history_.tolist() == seen
    assert model.n_iter_ == 2
    np.testing.assert_array_equal(model.predict(blobs()), model.labels_)
