"""Kernel K-means: clusters of a space of which only products are known."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import KernelKMeans, KMeans
from coterie.core import loop
from coterie.core.errors import InputError, ParameterError
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.kmeans import kernel as estimator
from coterie.kmeans import nystrom
from coterie.kmeans.gram import Cosine, Linear, Own, Polynomial, Precomputed, Rbf, Sigmoid, facts
from coterie.kmeans.kernel_lloyd import KernelLloyd, Partition
from coterie.kmeans.kernel_moves import best_moves, exchanged

SINGLE = pytest.mark.parametrize("dtype", [np.float64, np.float32])
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
NAMES = ["linear", "rbf", "poly", "sigmoid", "cosine"]
BY_NAME = pytest.mark.parametrize("kernel", NAMES)


def blobs(n=700, d=3, k=4, seed=0):
    """More rows than a part and a tile have."""
    rng = np.random.default_rng(seed)
    return 2 * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def apart(k=3, each=60, seed=0):
    """Groups that nobody can mistake for others, around a common middle."""
    rng = np.random.default_rng(seed)
    return 10 * np.repeat(np.eye(k), each, axis=0) + rng.normal(size=(k * each, k))


def rings(n=300, seed=0):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = np.repeat([1.0, 5.0], n // 2) + 0.05 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), np.repeat([0, 1], n // 2)


def some_labels(n, k, seed=0):
    return np.random.default_rng(seed).permutation(np.arange(n) % k)


def some_weights(n, weighted=True):
    return np.random.default_rng(5).exponential(size=n) if weighted else None


def indefinite(n=300, seed=0):
    """A symmetric matrix with as many negative eigenvalues as others."""
    K = np.random.default_rng(seed).normal(size=(n, n))
    return (K + K.T) / 2


def built(kernel, X):
    """The kernel object that the estimator would make."""
    mean, total = X.mean(axis=0), X.var(axis=0).sum()
    return {
        "linear": Linear(mean, 1.0), "rbf": Rbf(mean, 1 / total), "poly": Polynomial(1 / X.shape[1], 3, 1.0),
        "sigmoid": Sigmoid(1 / X.shape[1], 1.0), "cosine": Cosine(),
    }[kernel]  # fmt: skip


def gram(kernel, X, Y=None):
    """The kernel matrix as scikit-learn has it, with the default options."""
    X = np.asarray(X, np.float64)
    Y = X if Y is None else np.asarray(Y, np.float64)
    gamma = {"gamma": 1 / X.var(axis=0).sum() if kernel == "rbf" else 1 / X.shape[1]}
    named = {"rbf": gamma, "poly": {**gamma, "degree": 3, "coef0": 1}, "sigmoid": {**gamma, "coef0": 1}}
    return pairwise.pairwise_kernels(X, Y, metric=kernel, **named.get(kernel, {}))


def squares_to_means(K, w, labels, k):
    """(n, k), straight from the definition."""
    share = np.eye(k)[labels] * w[:, None]
    share /= share.sum(axis=0)
    return np.diag(K)[:, None] - 2 * K @ share + np.einsum("ik,ij,jk->k", share, K, share, optimize=True)


def cost_of(K, w, labels, k):
    """What a partition costs."""
    return float(w @ squares_to_means(K, w, labels, k)[np.arange(len(K)), labels])


def naive(K, w, labels, k):
    """Batch kernel K-means in so many words: labels, and the objective at every step."""
    history = []
    while True:
        squares = squares_to_means(K, w, labels, k)
        found = squares.argmin(axis=1)
        history.append(w @ squares.min(axis=1))
        if (found == labels).all():
            return labels, history
        labels = found


def descent(model, X, w=None, rows=256, **how):
    source = MemorySource(X, w, chunk_rows=rows, **how)
    found = loop.fit(model, source, Serial(), rng=np.random.default_rng(0), max_iter=1000)
    return found, np.concatenate(Serial().map(partial(model.assign, found.params), source))


# twins


@BY_NAME
@SINGLE
def test_kernels_are_those_of_scikit_learn(kernel, dtype):
    X, Y = blobs(50).astype(dtype), blobs(20, seed=1).astype(dtype)
    made = built(kernel, X)
    found, diagonal = made.block(made.ready(X), made.ready(Y)) * made.factor, made.diagonal(made.ready(X)) * made.factor
    about = X.mean(axis=0) if kernel == "linear" else 0  # products about another origin, with the same distances
    rtol = 1e-10 if dtype == np.float64 else 1e-4
    wanted = gram(kernel, X - about, Y - about)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * np.abs(wanted).max())
    np.testing.assert_allclose(diagonal, np.diag(gram(kernel, X - about)), rtol=rtol, atol=rtol)


@BY_NAME
@WEIGHTED
def test_batch_steps_are_those_of_the_definition(kernel, weighted):
    X, k = blobs(), 4
    w, start = some_weights(len(X), weighted), some_labels(len(X), 4)
    model = KernelLloyd(k, built(kernel, X), start, finish=False)
    found, labels = descent(model, X, w)
    wanted, history = naive(gram(kernel, X), np.ones(len(X)) if w is None else w, start, k)
    np.testing.assert_array_equal(labels, wanted)
    np.testing.assert_allclose(found.history[: len(history)], history, rtol=1e-9)


@SINGLE
@WEIGHTED
def test_the_linear_kernel_is_kmeans(dtype, weighted):
    X = (blobs() + 3).astype(dtype)
    w, start = some_weights(len(X), weighted), some_labels(len(X), 4)
    means = np.stack(
        [np.average(X[start == j], axis=0, weights=None if w is None else w[start == j]) for j in range(4)]
    )
    plain = KMeans(4, init=means, tol=0).fit(X, sample_weight=w)
    found, labels = descent(KernelLloyd(4, Linear(X.mean(axis=0), 1.0), start, finish=False), X, w)
    assert (labels == plain.labels_).mean() > (0.999 if dtype == np.float64 else 0.99)
    assert found.objective == pytest.approx(plain.inertia_, rel=1e-9 if dtype == np.float64 else 1e-4)
    moved = KernelKMeans(4, kernel="linear", init=start, tol=0).fit(X, sample_weight=w)
    assert moved.inertia_ <= plain.inertia_ * (1 + 1e-6)  # single rows move on from there


def test_the_worth_of_a_move_is_the_difference_it_makes():
    K, w, labels = indefinite(40), some_weights(40), some_labels(40, 3)
    weight = np.bincount(labels, w)
    target, gain = best_moves(squares_to_means(K, w, labels, 3), labels, w, weight, 0.0)
    before = cost_of(K, w, labels, 3)
    for i in range(40):
        costs = []
        for j in range(3):
            tried = labels.copy()
            tried[i] = j
            costs.append(np.inf if j == labels[i] else cost_of(K, w, tried, 3))
        assert target[i] == np.argmin(costs)
        assert gain[i] == pytest.approx(before - min(costs), rel=1e-9)


def test_rows_that_move_one_by_one_each_lower_the_cost():
    K, w, labels = indefinite(60), some_weights(60), some_labels(60, 4)
    share = np.eye(4)[labels] * w[:, None]
    sums, rows = K @ share, np.arange(0, 60, 2)
    lengths = np.einsum("ik,ik->k", share, sums)
    args = w[rows], np.diag(K)[rows], K[np.ix_(rows, rows)], sums[rows], share.sum(axis=0), lengths, 1e-15
    found = exchanged(labels[rows], *args)
    costs = []
    for upto in range(len(rows) + 1):
        tried = labels.copy()
        tried[rows[:upto]] = found[:upto]
        costs.append(cost_of(K, w, tried, 4))
    assert (found != labels[rows]).any()
    changed = found != labels[rows]
    assert (np.diff(costs)[changed] < 0).all()


# what the attributes say


@BY_NAME
@SINGLE
@WEIGHTED
@pytest.mark.parametrize("approximation", ["exact", "nystrom"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_attributes_belong_together(kernel, dtype, weighted, approximation, form):
    X = form(blobs().astype(dtype))
    w = some_weights(X.shape[0], weighted)
    options = {"kernel": kernel, "approximation": approximation, "n_landmarks": 40, "random_state": 0}
    model = KernelKMeans(4, **options).fit(X, sample_weight=w)
    eps = 1e-9 if dtype == np.float64 else 1e-4
    assert model.approximation_ == approximation
    enough = {"linear": 8, "cosine": 8, "poly": 28}.get(kernel, 40)  # spaces of 3, 3 and 20 dimensions need few
    assert len(model.landmarks_) <= enough
    assert (len(model.landmarks_) > 2) == (approximation == "nystrom")
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    found = model.transform(X)
    assert found.dtype == dtype
    assert model.history_[-1] == model.inertia_
    assert len(model.history_) == model.n_iter_ + 1 > 2
    assert (np.diff(model.history_) <= eps * abs(model.history_[0])).all()
    assert model.score(X, sample_weight=w) == pytest.approx(-model.inertia_, rel=eps)
    if kernel == "sigmoid" and approximation == "exact":
        return  # squares may be negative, and then have no root
    np.testing.assert_array_equal(found.argmin(axis=1), model.labels_)
    weight = np.ones(X.shape[0]) if w is None else w
    assert model.inertia_ == pytest.approx(weight @ found.min(axis=1).astype(np.float64) ** 2, rel=10 * eps)


@BY_NAME
@WEIGHTED
def test_the_objective_and_the_distances_are_those_of_the_definition(kernel, weighted):
    X = blobs()
    w = some_weights(len(X), weighted)
    model = KernelKMeans(4, kernel=kernel, gamma=None, tol=0, random_state=0).fit(X, sample_weight=w)
    weight = np.ones(len(X)) if w is None else w
    variance = np.average((X - np.average(X, axis=0, weights=w)) ** 2, axis=0, weights=w).sum()
    K = pairwise.rbf_kernel(X, gamma=1 / variance) if kernel == "rbf" else gram(kernel, X)
    squares = squares_to_means(K, weight, model.labels_, 4)
    assert model.inertia_ == pytest.approx(weight @ squares[np.arange(len(X)), model.labels_], rel=1e-9)
    np.testing.assert_allclose(model.transform(X) ** 2, np.maximum(squares, 0), atol=1e-9 * squares.max())
    np.testing.assert_array_equal(squares.argmin(axis=1), model.labels_)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_single_row_would_lower_the_objective_of_a_finished_fit(kernel):
    X = blobs(150)
    model = KernelKMeans(5, kernel=kernel, tol=0, random_state=0).fit(X)
    K, w = gram(kernel, X), np.ones(len(X))
    squares = squares_to_means(K, w, model.labels_, 5)
    _, gain = best_moves(squares, model.labels_, w, np.bincount(model.labels_), 0.0)
    assert gain.max() < 1e-9
    plain = KernelLloyd(5, built(kernel, X), finish=False)
    assert model.inertia_ < descent(plain, X)[0].objective  # where batch steps alone had ended


def test_rings_come_apart_that_kmeans_cuts_through():
    X, truth = rings()
    model = KernelKMeans(2, gamma=0.2, n_init=5, random_state=0).fit(X)
    assert len({*zip(model.labels_.tolist(), truth.tolist(), strict=True)}) == 2
    cut = KMeans(2, n_init=5, random_state=0).fit(X)
    assert len({*zip(cut.labels_.tolist(), truth.tolist(), strict=True)}) == 4
    inner, outer = model.predict([[0.9, 0.0], [0.0, -5.2]])
    assert inner == model.labels_[0] != outer


# laws


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

    monkeypatch.setattr("coterie.kmeans.gram.np", FullMemory())
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
    monkeypatch.setattr(nystrom, "KEPT", 0)
    anew = KernelKMeans(4, **options).fit(X, sample_weight=w)
    np.testing.assert_array_equal(kept.history_, anew.history_)
    np.testing.assert_array_equal(kept.labels_, anew.labels_)
    np.testing.assert_array_equal(kept.transform(X), anew.transform(X))
    again = KernelKMeans(4, init=some_labels(4200, 4), **options).fit(X)
    np.testing.assert_array_equal(labelled.history_, again.history_)


@pytest.mark.parametrize("kernel", ["rbf", "sigmoid"])
@pytest.mark.parametrize("approximation", ["exact", "nystrom"])
@SINGLE
def test_threads_change_nothing(kernel, approximation, dtype):
    X = blobs(1300).astype(dtype)
    options = {"kernel": kernel, "approximation": approximation, "n_landmarks": 50, "random_state": 0}
    alone = KernelKMeans(6, n_jobs=1, **options).fit(X)
    for jobs in (2, 3, 8):
        together = KernelKMeans(6, n_jobs=jobs, **options).fit(X)
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
    model = Partition(5, Precomputed(), some_labels(300, 5), stored=True, finish=finish)
    found, _ = descent(model, K, y=facts(np.diag(K), np.arange(300)))
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


# edges


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
def test_every_row_its_own_cluster(kernel):
    X = apart(each=4)
    model = KernelKMeans(12, kernel=kernel, random_state=0).fit(X)
    assert sorted(model.labels_) == list(range(12))
    assert model.inertia_ == pytest.approx(0, abs=1e-12 * np.abs(gram(kernel, X)).max())


@pytest.mark.parametrize("approximation", ["exact", "nystrom"])
def test_fewer_distinct_rows_than_clusters_are_all_found_with_a_warning(approximation):
    X = np.repeat(np.eye(3), 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 3 of 5 clusters have rows: X has too few distinct rows"):
        model = KernelKMeans(5, approximation=approximation, random_state=0).fit(X)
    assert len(set(model.labels_)) == 3
    assert model.inertia_ == pytest.approx(0, abs=1e-12)
    assert np.isfinite(model.transform(X)).all()


def test_a_cluster_without_rows_starts_anew_where_rows_cost_most():
    X = np.r_[np.zeros((5, 1)), np.full((5, 1), 1.0), [[50.0]]]
    start = np.r_[np.tile([0, 1], 5), 2]  # the first two means are equally far from all: the second loses its rows
    model = KernelKMeans(3, kernel="linear", init=start).fit(X)
    assert model.inertia_ == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("start", [[0, 1], [1, 0]])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_of_equally_near_means_the_first_counts(kernel, start):
    model = KernelKMeans(2, kernel=kernel, init=start).fit([[-1.1], [1.3]])
    assert model.labels_.tolist() == start
    middle = [[np.nextafter(0.1, -1)], [0.1], [np.nextafter(0.1, 1)]]  # where rounding decides, nothing does
    assert model.predict(middle).tolist() == [0, 0, 0]


def test_rows_of_zeros_have_no_direction_and_are_refused_nowhere():
    X = np.r_[apart(), np.zeros((2, 3))]
    for form in (np.asarray, sparse.csr_array):
        model = KernelKMeans(3, kernel="cosine", random_state=0).fit(form(X))
        assert np.isfinite(model.transform(form(X))).all()
        np.testing.assert_array_equal(model.predict(form(X)), model.labels_)


def test_dense_and_sparse_rows_can_take_turns():
    X = blobs(300)
    for first, then in ((np.asarray, sparse.csr_array), (sparse.csr_array, np.asarray)):
        for kernel in NAMES:
            model = KernelKMeans(3, kernel=kernel, random_state=0).fit(first(X))
            np.testing.assert_array_equal(model.predict(then(X)), model.labels_)


@pytest.mark.filterwarnings("ignore:only .* clusters have rows")
@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.data())
def test_whatever_the_table_what_comes_out_is_finite_and_belongs_together(data):
    n, d = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 3))
    k = data.draw(st.integers(1, n))
    pool = np.array(data.draw(st.lists(st.integers(-800, 800), min_size=d * n, max_size=d * n))).reshape(n, d)
    rows = data.draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    dtype = data.draw(st.sampled_from([np.float64, np.float32, np.int16, np.bool_]))
    kernel = data.draw(st.sampled_from(NAMES))
    wide = kernel not in ("poly",) and dtype in (np.float64, np.float32)
    size = 10.0 ** data.draw(st.integers(-30, 30)) if wide else 1.0
    X = (pool[rows] * size).astype(dtype)
    w = data.draw(st.sampled_from([None, some_weights(n), 10.0 ** np.linspace(-12, 12, n)]))
    approximation = data.draw(st.sampled_from(["exact", "nystrom"]))
    init = data.draw(st.sampled_from(["k-means++", "forgy", "random_partition", "farthest"]))
    model = KernelKMeans(k, kernel=kernel, approximation=approximation, init=init, random_state=0)
    model.fit(X, sample_weight=w)
    assert np.isfinite(model.inertia_)
    assert np.isfinite(model.history_).all()
    assert np.isfinite(model.transform(X)).all()
    assert set(model.labels_) <= set(range(k))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    eps = np.finfo(np.float32 if X.dtype == np.float32 else np.float64).eps
    weight = n if w is None else w.sum()
    size = np.abs(gram(kernel, X - X.mean(axis=0, dtype=np.float64))).max() if kernel == "linear" else 1.0
    size = np.abs(gram(kernel, X)).max() if kernel == "poly" else size
    assert (np.diff(model.history_) <= 100 * eps * weight * size).all()


# refused


def test_a_matrix_that_is_no_kernel_is_refused():
    K = gram("rbf", blobs(600))
    with pytest.raises(InputError, match=r"a square X; its shape is \(600, 599\)"):
        KernelKMeans(2, kernel="precomputed").fit(K[:, :-1])
    K[580, 3] += 0.25
    with pytest.raises(
        InputError, match=r"symmetric X: X\[580, 3\] = .* differ by 0.25, the most of all; \(X \+ X.T\)"
    ):
        KernelKMeans(2, kernel="precomputed").fit(K)
    with pytest.raises(InputError, match="sparse"):
        KernelKMeans(2, kernel="precomputed").fit(sparse.csr_array(np.eye(9)))
    K[580, 3] = K[3, 580] = np.nan
    with pytest.raises(InputError, match="contains NaN"):
        KernelKMeans(2, kernel="precomputed").fit(K)


def test_distances_of_new_rows_need_their_own_products():
    X, new = blobs(100), blobs(10, seed=1)
    model = KernelKMeans(2, kernel="precomputed", random_state=0).fit(gram("linear", X))
    for verb in (model.transform, model.score):
        with pytest.raises(InputError, match=r"distances need k\(x, x\) of every row, .* or use predict"):
            verb(new @ X.T)
    assert len(model.predict(new @ X.T)) == 10


def test_a_kernel_that_gives_what_is_no_number_is_refused():
    X = blobs(50)
    for approximation in ("exact", "nystrom"):
        for kernel in (lambda X, Y: np.full((len(X), len(Y)), np.nan), lambda X, Y: np.full((len(X), len(Y)), np.inf)):
            with pytest.raises(InputError, match="the kernel gives NaN or infinity for rows of X"):
                KernelKMeans(2, kernel=kernel, approximation=approximation).fit(X)
    with pytest.raises(InputError, match="the kernel gives NaN or infinity"):
        KernelKMeans(2, kernel="poly", degree=9).fit((1e20 * X).astype(np.float32))
    with pytest.raises(InputError, match="overflows: lower gamma, or scale X"):
        KernelKMeans(2, gamma=1.0).fit((1e30 * X).astype(np.float32))


def test_a_kernel_of_the_wrong_shape_is_refused():
    with pytest.raises(ParameterError, match=r"kernel must return the products .* shape \(50, 50\); got \(50,\)"):
        KernelKMeans(2, kernel=lambda X, Y: (X * Y).sum(axis=1), approximation="exact").fit(blobs(50)[:50])


def test_a_kernel_of_ones_own_is_given_its_arguments():
    made = Own(lambda X, Y, scale: scale * X @ Y.T, {"scale": 3.0})
    np.testing.assert_allclose(made.block(np.eye(2), np.eye(2)), 3 * np.eye(2))
    model = KernelKMeans(2, kernel=made.function, kernel_params={"scale": 3.0}, random_state=0).fit(apart(2))
    plain = KernelKMeans(2, kernel="linear", random_state=0).fit(apart(2))
    assert model.inertia_ == pytest.approx(3 * plain.inertia_)


def test_dask_rows_are_refused_with_what_would_work():
    da = pytest.importorskip("dask.array")
    with pytest.raises(InputError, match=r"X is a Dask array: KernelKMeans .* pass X.compute\(\)"):
        KernelKMeans(2).fit(da.from_array(blobs(100), chunks=(50, -1)))


@pytest.mark.parametrize(
    "option, value, words",
    [
        ("n_clusters", 0, "n_clusters must be a whole number of at least 1; got 0"),
        ("n_clusters", 181, "n_clusters=181: ask for fewer"),
        ("kernel", "gaussian", "kernel must be 'linear' or 'rbf' or"),
        ("gamma", 0, "gamma must be None, 'scale', 'auto' or a finite number above 0; got 0"),
        ("gamma", "wide", "gamma must be 'scale' or 'auto'; got 'wide'"),
        ("degree", 0, "degree must be a whole number of at least 1; got 0"),
        ("coef0", "one", "coef0 must be a number; got 'one'"),
        ("kernel_params", {"a": 1}, "kernel_params are for a kernel of your own"),
        ("approximation", "best", "approximation must be 'auto' or 'exact' or 'nystrom'; got 'best'"),
        ("n_landmarks", 1, "n_landmarks must be a whole number of at least 2; got 1"),
        ("init", "best", "init must be one of 'k-means"),
        ("init", np.zeros((2, 3)), r"a label of type int for each of the 180 rows; got an array of float64 of shape"),
        ("init", np.zeros(180, int), r"in each cluster from 0 to 1; it has \[0\]"),
        ("n_init", 0, "n_init must be 'auto' or a whole number"),
        ("max_iter", 0, "max_iter must be a whole number of at least 1; got 0"),
        ("tol", -1.0, "tol must be a finite number of at least 0"),
        ("engine", "gpu", "engine must be 'auto'"),
        ("random_state", "luck", "random_state must be None"),
        ("callback", 3, "callback must be None or a function"),
    ],
)
def test_options_are_refused_with_what_they_can_be(option, value, words):
    with pytest.raises(ValueError, match=words):
        KernelKMeans(**{"n_clusters": 2, option: value}).fit(apart())


def test_a_precomputed_kernel_has_no_landmarks():
    with pytest.raises(ParameterError, match="a precomputed kernel is always exact"):
        KernelKMeans(2, kernel="precomputed", approximation="nystrom").fit(np.eye(9))


# scikit-learn


def what_chance_rules_out(model):
    if model.init == "farthest":
        return {}
    reason = "the start is drawn at random: repeated rows give other draws than weighted ones"
    return {f"check_sample_weight_equivalence_on_{form}_data": reason for form in ("dense", "sparse")}


@parametrize_with_checks(
    [
        KernelKMeans(3, random_state=0),
        KernelKMeans(3, init="farthest"),
        KernelKMeans(3, kernel="cosine", init="farthest"),
        KernelKMeans(3, init="farthest", approximation="nystrom", random_state=0),
    ],
    expected_failed_checks=what_chance_rules_out,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
