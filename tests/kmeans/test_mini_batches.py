"""Mini-batch K-means."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans, MiniBatchKMeans
from kmeans.kmeans_cases import SINGLE, STARTS, groups, in_order, islands, objective, squares


@SINGLE
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n, d, k", [(60, 3, 4), (4000, 8, 5)], ids=["small", "large"])
def test_partial_fit_moves_every_center_by_the_formula(n, d, k, dtype, weighted):
    rng = np.random.default_rng(8)
    centers = groups(k, d, k).astype(dtype)
    model = MiniBatchKMeans(k, init=centers.copy(), reassignment_ratio=0.0)
    seen, expected = np.zeros(k), centers.astype(np.float64)
    for step in range(5):
        batch = groups(n, d, k, seed=step).astype(dtype)
        weight = rng.integers(0, 3, size=n).astype(float) if weighted else np.ones(n)
        model.partial_fit(batch, sample_weight=weight if weighted else None)
        labels = squares(batch, expected).argmin(axis=1)
        for j in range(k):
            b = weight[labels == j].sum()
            if b > 0:
                mean = np.average(batch[labels == j].astype(np.float64), axis=0, weights=weight[labels == j])
                expected[j] += b / (seen[j] + b) * (mean - expected[j])
                seen[j] += b
        rounding = 1e-12 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(model.cluster_centers_, expected, rtol=rounding, atol=rounding)
        np.testing.assert_array_equal(model.counts_, seen)
        expected = model.cluster_centers_.astype(np.float64)  # both go on from the same bits
    assert model.n_steps_ == 5


def test_a_center_is_the_mean_of_all_rows_that_ever_joined_it():
    X, means = islands()
    model = MiniBatchKMeans(3, init=means.round(-2), reassignment_ratio=0.0)
    for batch in (X[::3], X[1::3], X[2::3]):
        model.partial_fit(batch)
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=1e-12)
    assert model.counts_.tolist() == [20, 20, 20]


def test_partial_fit_leaves_labels_and_inertia_of_the_last_batch():
    X = groups(90, 2, 3)
    model = MiniBatchKMeans(3, random_state=0).partial_fit(X).partial_fit(X[:40])
    np.testing.assert_array_equal(model.labels_, model.predict(X[:40]))
    assert model.inertia_ == pytest.approx(objective(X[:40], model.cluster_centers_), rel=1e-12)


def test_partial_fit_goes_on_from_a_fit():
    X = groups(200, 2, 3)
    model = MiniBatchKMeans(3, random_state=0, reassignment_ratio=0.0).fit(X)
    centers, seen, steps = model.cluster_centers_.copy(), model.counts_.copy(), model.n_steps_
    model.partial_fit(X[:1])
    j = int(squares(X[:1], centers).argmin())
    expected = centers.copy()
    expected[j] += (X[0] - centers[j]) / (seen[j] + 1)
    np.testing.assert_allclose(model.cluster_centers_, expected, rtol=1e-12)
    assert model.counts_.sum() == seen.sum() + 1
    assert model.n_steps_ == steps + 1


def test_fit_forgets_what_partial_fit_learned():
    X = groups(200, 2, 3)
    fresh = MiniBatchKMeans(3, random_state=0).fit(X)
    used = MiniBatchKMeans(3, random_state=0).partial_fit(X + 50).fit(X)
    np.testing.assert_array_equal(used.cluster_centers_, fresh.cluster_centers_)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("seed", range(3))
def test_mini_batches_come_within_a_tenth_of_whole_passes_on_blobs(seed, form):
    X = groups(5000, 4, 6, seed=seed, apart=5.0)
    whole = KMeans(6, n_init=10, random_state=seed).fit(X)
    start = whole.cluster_centers_ + np.random.default_rng(seed).normal(size=(6, 4))  # the same basin, not its bottom
    small = MiniBatchKMeans(6, init=start, batch_size=256, random_state=seed).fit(form(X))
    assert small.inertia_ < 1.1 * whole.inertia_
    assert small.inertia_ == pytest.approx(objective(X, small.cluster_centers_), rel=1e-9)
    np.testing.assert_array_equal(small.labels_, small.predict(form(X)))


@pytest.mark.parametrize("init", STARTS)
def test_mini_batches_find_groups_that_are_far_apart(init):
    X, means = islands()
    model = MiniBatchKMeans(3, init=init, n_init=20, batch_size=30, random_state=0).fit(np.tile(X, (20, 1)))
    np.testing.assert_allclose(in_order(model.cluster_centers_), in_order(means), atol=0.5)


def test_mini_batch_history_has_one_cost_a_batch():
    X = groups(2000, 3, 4)
    model = MiniBatchKMeans(4, batch_size=100, random_state=0, max_iter=3, max_no_improvement=None).fit(X)
    assert model.n_steps_ == len(model.history_) == 3 * 2000 // 100
    assert model.n_iter_ == 3
    assert model.history_[-1] == pytest.approx(model.inertia_ / 2000, rel=0.5)


def test_batches_that_bring_nothing_more_end_the_fit():
    X = groups(2000, 3, 4)
    patient, tired = (
        MiniBatchKMeans(4, batch_size=100, random_state=0, max_iter=50, max_no_improvement=m).fit(X) for m in (None, 3)
    )
    assert patient.n_steps_ == 50 * 20
    assert tired.n_steps_ < 200


def test_a_dead_center_moves_to_rows():
    X, _ = islands()
    start = np.array([[50.0, 0.0], [0.0, 100.0], [1e6, 1e6]])  # nearest to no row
    with pytest.warns(ConvergenceWarning, match="only 2 of 3 clusters have rows: raise reassignment_ratio"):
        stuck = MiniBatchKMeans(3, init=start, batch_size=30, reassignment_ratio=0.0, random_state=0).fit(X)
    moved = MiniBatchKMeans(3, init=start, batch_size=30, random_state=0).fit(X)
    assert stuck.cluster_centers_[2].tolist() == [1e6, 1e6]
    assert np.abs(moved.cluster_centers_).max() < 200
    assert moved.inertia_ < stuck.inertia_


def test_a_dead_center_does_not_move_to_a_row_of_weight_zero():
    X, _ = islands()
    X = np.r_[X, np.full((60, 2), 1e4)]
    weight = np.repeat([1.0, 0.0], 60)
    start = np.array([[0.0, 0.0], [0.0, 100.0], [1e6, 1e6]])
    for seed in range(10):
        model = MiniBatchKMeans(3, init=start, n_init=1, random_state=seed).partial_fit(X, sample_weight=weight)
        assert np.abs(model.cluster_centers_).max() < 200


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_mini_batches_ignore_rows_of_weight_zero(form):
    X = np.r_[groups(300, 2, 3), groups(300, 2, 3) + 1000]
    weight = np.repeat([1.0, 0.0], 300)
    model = MiniBatchKMeans(3, batch_size=100, random_state=0).fit(form(X), sample_weight=weight)
    assert model.cluster_centers_.max() < 500
    assert model.inertia_ == pytest.approx(objective(X[:300], model.cluster_centers_), rel=1e-9)


@pytest.mark.parametrize("init", STARTS)
def test_mini_batches_find_the_few_rows_that_count(init):
    X = groups(1000, 2, 3)
    weight = np.zeros(1000)
    weight[:3] = 1.0
    model = MiniBatchKMeans(3, init=init, batch_size=20, random_state=1).fit(X, sample_weight=weight)
    assert model.cluster_centers_.shape == (3, 2)
    assert model.inertia_ == pytest.approx(objective(X[:3], model.cluster_centers_), rel=1e-9)


def test_heavy_rows_pull_mini_batch_centers():
    X, _ = islands()
    weight = np.repeat([100.0, 1.0, 1.0], 20)
    model = MiniBatchKMeans(1, init=[[0.0, 0.0]], batch_size=60, max_no_improvement=None, random_state=0)
    model.fit(X, sample_weight=weight)
    seen = np.average(X, axis=0, weights=weight)
    assert np.abs(seen - X.mean(axis=0)).min() > 30
    np.testing.assert_allclose(model.cluster_centers_[0], seen, atol=0.5)
