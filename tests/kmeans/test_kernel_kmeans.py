"""Kernel K-means against its definition."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise

from coterie import KernelKMeans, KMeans
from coterie.kmeans.kernel_functions import Linear
from coterie.kmeans.kernel_hartigan import best_moves, move_rows
from coterie.kmeans.kernel_lloyd import KernelLloyd
from kmeans.kernel_cases import (
    BY_NAME,
    WEIGHTED,
    blobs,
    built,
    cost_of,
    descent,
    gram,
    indefinite,
    some_labels,
    some_weights,
    squares_to_means,
)
from kmeans.kmeans_cases import SINGLE


def rings(n=300, seed=0):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    radius = np.repeat([1.0, 5.0], n // 2) + 0.05 * rng.normal(size=n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), np.repeat([0, 1], n // 2)


def naive(K, w, labels, k):
    """Batch kernel K-means in NumPy: labels, and the objective of every step."""
    history = []
    while True:
        squares = squares_to_means(K, w, labels, k)
        found = squares.argmin(axis=1)
        history.append(w @ squares.min(axis=1))
        if (found == labels).all():
            return labels, history
        labels = found


# twins


@BY_NAME
@SINGLE
def test_kernels_are_those_of_scikit_learn(kernel, dtype):
    X, Y = blobs(50).astype(dtype), blobs(20, seed=1).astype(dtype)
    made = built(kernel, X)
    found, diagonal = (
        made.block(made.prepare(X), made.prepare(Y)) * made.factor,
        made.diagonal(made.prepare(X)) * made.factor,
    )
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
    found = move_rows(labels[rows], *args)
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
    cut = KMeans(2, random_state=0).fit(X)
    assert len({*zip(cut.labels_.tolist(), truth.tolist(), strict=True)}) > 2
    inner, outer = model.predict([[0.9, 0.0], [0.0, -5.2]])
    assert inner == model.labels_[0] != outer
