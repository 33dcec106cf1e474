"""Balanced K-means: general properties."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import BalancedKMeans, KMeans
from coterie.core.progress import Progress
from coterie.errors import ParameterError
from kmeans.balanced_cases import cost_of, groups
from kmeans.kmeans_cases import SINGLE
from many_parts import many_parts

FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
# NumPy kernels; compiled kernels, in several parts
SIZES = pytest.mark.parametrize("n, d, k", [(90, 3, 4), (20_000, 8, 7)], ids=["small", "large"])
QUICK = settings(max_examples=60, deadline=None)


def partitions(n, k, least, most):
    for labels in itertools.product(range(k), repeat=n):
        labels = np.array(labels)
        size = np.bincount(labels, minlength=k)
        if (least <= size).all() and (size <= most).all():
            yield labels


# what the attributes say


@SIZES
@SINGLE
@FORMS
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_attributes_belong_together(n, d, k, dtype, form, weighted):
    X = groups(n, d, k).astype(dtype)
    w = np.random.default_rng(2).random(n) + 0.1 if weighted else None
    model = BalancedKMeans(k, random_state=0).fit(form(X), sample_weight=w)
    eps = 1e-9 if dtype == np.float64 else 1e-5
    assert model.cluster_centers_.shape == (k, d)
    assert model.cluster_centers_.dtype == dtype
    assert model.labels_.dtype == np.int32
    np.testing.assert_array_equal(model.cluster_sizes_, np.bincount(model.labels_))
    assert set(model.cluster_sizes_) <= {n // k, -(-n // k)}
    assert model.inertia_ == pytest.approx(cost_of(X, model.labels_, model.cluster_centers_, w), rel=eps)
    assert model.history_[-1] == model.inertia_
    assert len(model.history_) == model.n_iter_ + 1
    assert (np.diff(model.history_) <= eps * model.history_[:-1]).all()
    assert -model.score(form(X), sample_weight=w) <= model.inertia_ * (1 + eps)


def test_predict_gives_the_nearest_center_and_knows_no_sizes():
    X = groups(200, 3, 4)
    model = BalancedKMeans(4, random_state=0).fit(X)
    nearest = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X), nearest)
    assert (nearest != model.labels_).any()
    np.testing.assert_allclose(model.transform(X).argmin(axis=1), nearest)
    assert (model.predict(np.repeat(X[:1], 500, axis=0)) == nearest[0]).all()


def test_a_converged_fit_is_at_means_and_at_the_cheapest_assignment():
    X = groups(300, 3, 4)
    model = BalancedKMeans(4, tol=0, random_state=0).fit(X)
    assert model.converged_
    for j in range(4):
        np.testing.assert_allclose(model.cluster_centers_[j], X[model.labels_ == j].mean(axis=0), rtol=1e-9)
    squares = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    own = squares[np.arange(300), model.labels_]
    for a, b in itertools.permutations(range(4), 2):  # no exchange of two rows pays
        out, back = np.flatnonzero(model.labels_ == a), np.flatnonzero(model.labels_ == b)
        assert (squares[out, b] - own[out]).min() + (squares[back, a] - own[back]).min() >= -1e-9


# laws


@st.composite
def tasks(draw):
    """Rows with duplicates, and feasible sizes."""
    n = draw(st.integers(1, 25))
    k = draw(st.integers(1, min(n, 5)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    steps = draw(st.sampled_from([1, 2, 3, None]))  # how many values a column has
    X = rng.normal(size=(n, 2)) if steps is None else 1e6 + rng.integers(steps, size=(n, 2)) / 3
    size = np.bincount(rng.integers(k, size=n), minlength=k)
    least, most = np.maximum(size - rng.integers(0, 3, k), 0), size + rng.integers(0, 3, k)
    w = draw(st.sampled_from([None, rng.random(n) + 0.1]))
    return X, least, most, w


@given(tasks())
@QUICK
def test_sizes_always_hold_and_the_objective_never_rises(task):
    X, least, most, w = task
    k = len(least)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of empty clusters
        model = BalancedKMeans(k, size_min=least, size_max=most, random_state=0).fit(X, sample_weight=w)
    size = np.bincount(model.labels_, minlength=k)
    assert (least <= size).all()
    assert (size <= most).all()
    np.testing.assert_array_equal(size, model.cluster_sizes_)
    assert (np.diff(model.history_) <= 1e-12 * model.history_[:-1]).all()
    assert np.isfinite(model.cluster_centers_).all()
    assert model.inertia_ == pytest.approx(cost_of(X, model.labels_, model.cluster_centers_, w), rel=1e-9, abs=1e-9)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_every_division_is_the_cheapest_of_all(seed):
    rng = np.random.default_rng(seed)
    n, k = 7, 3
    X, w = rng.normal(size=(n, 2)), rng.random(n) + 0.1
    size = np.bincount(rng.integers(k, size=n), minlength=k)
    least, most = np.maximum(size - 1, 0), size + 1
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        BalancedKMeans(
            k, size_min=least, size_max=most, init=X[:k], callback=lambda p: seen.append(p) and None
        ).fit(X, sample_weight=w)  # fmt: skip
    assert len(seen) > 0
    for progress in seen:
        assert isinstance(progress, Progress)
        cheapest = min(cost_of(X, labels, progress.params.centers, w) for labels in partitions(n, k, least, most))
        assert progress.objective == pytest.approx(cheapest, rel=1e-9)


@SIZES
@SINGLE
@FORMS
def test_free_sizes_are_kmeans(n, d, k, dtype, form):
    X = form(groups(n, d, k).astype(dtype))
    free = BalancedKMeans(k, size_min=0, random_state=3).fit(X)
    plain = KMeans(k, search="none", random_state=3).fit(X)
    np.testing.assert_array_equal(free.labels_, plain.labels_)
    np.testing.assert_allclose(
        free.cluster_centers_, plain.cluster_centers_, rtol=1e-9 if dtype == np.float64 else 1e-5
    )
    assert free.inertia_ == pytest.approx(plain.inertia_, rel=1e-9 if dtype == np.float64 else 1e-5)
    assert free.n_iter_ == plain.n_iter_


@SINGLE
@FORMS
def test_threads_change_nothing(form, dtype, monkeypatch):
    X = form(groups(2400, 24, 6).astype(dtype))
    many_parts(monkeypatch, X)
    alone, together = (BalancedKMeans(6, random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 5))
    np.testing.assert_array_equal(together.labels_, alone.labels_)
    np.testing.assert_array_equal(together.cluster_centers_, alone.cluster_centers_)
    np.testing.assert_array_equal(together.history_, alone.history_)


@SIZES
def test_dense_and_sparse_rows_give_the_same(n, d, k):
    X = groups(n, d, k)
    X[np.random.default_rng(4).random(X.shape) < 0.5] = 0
    dense = BalancedKMeans(k, init=X[:k]).fit(X)
    thin = BalancedKMeans(k, init=X[:k]).fit(sparse.csr_array(X))
    assert thin.inertia_ == pytest.approx(dense.inertia_, rel=1e-9)
    np.testing.assert_allclose(dense.cluster_centers_, thin.cluster_centers_, atol=1e-9)


def test_float32_rows_are_divided_as_float64_would():
    X = groups(300, 3, 4).astype(np.float32)
    start = X[:4]
    single, double = (BalancedKMeans(4, init=start, max_iter=1, tol=1e9).fit(X.astype(t)) for t in (np.float32, float))
    np.testing.assert_array_equal(single.labels_, double.labels_)


@pytest.mark.parametrize("scale, shift", [(1e-150, 0.0), (1e150, 0.0), (1.0, 1e6)])
def test_where_and_how_large_the_rows_are_does_not_matter(scale, shift):
    X = groups(60, 2, 3)
    plain = BalancedKMeans(3, init=X[:3]).fit(X)
    moved = BalancedKMeans(3, init=X[:3] * scale + shift).fit(X * scale + shift)
    np.testing.assert_array_equal(plain.labels_, moved.labels_)


def test_a_start_far_away_takes_its_share_of_the_rows():
    X = groups(60, 2, 3)
    model = BalancedKMeans(3, init=np.stack([*X[:2], np.full(2, 1e140)])).fit(X)
    assert model.cluster_sizes_.tolist() == [20, 20, 20]
    assert np.abs(model.cluster_centers_).max() < np.abs(X).max()


@pytest.mark.parametrize("far", [1e155, 1e200])
def test_initial_centers_whose_squares_overflow_are_rejected(far):
    X = groups(60, 2, 3)
    with pytest.raises(ParameterError, match="init has a center so far from the rows that squared distances overflow"):
        BalancedKMeans(3, init=np.stack([*X[:2], np.full(2, far)])).fit(X)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_size_of_the_weights_does_not_matter(scale):
    X, w = groups(60, 2, 3), np.random.default_rng(0).random(60)
    plain = BalancedKMeans(3, init=X[:3]).fit(X, sample_weight=w)
    scaled = BalancedKMeans(3, init=X[:3]).fit(X, sample_weight=w * scale)
    np.testing.assert_array_equal(plain.labels_, scaled.labels_)


def test_weights_count_in_the_objective_and_the_means_and_sizes_count_rows():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    even = BalancedKMeans(2, init=[[0.0], [3.0]]).fit(X)
    assert even.cluster_centers_.ravel().tolist() == [0.5, 2.5]
    heavy = BalancedKMeans(2, init=[[0.0], [3.0]]).fit(X, sample_weight=[3.0, 1.0, 1.0, 1.0])
    assert heavy.cluster_sizes_.tolist() == [2, 2]
    assert heavy.cluster_centers_.ravel().tolist() == [0.25, 2.5]


def test_rows_of_weight_zero_take_no_place_and_go_to_the_nearest_center():
    X, extra = groups(90, 3, 3), groups(40, 3, 3, seed=8)
    alone = BalancedKMeans(3, init=X[:3]).fit(X)
    both = BalancedKMeans(3, init=X[:3]).fit(np.r_[X, extra], sample_weight=np.repeat([1.0, 0.0], [90, 40]))
    np.testing.assert_allclose(alone.cluster_centers_, both.cluster_centers_, rtol=1e-12)
    np.testing.assert_array_equal(both.labels_[:90], alone.labels_)
    np.testing.assert_array_equal(both.labels_[90:], both.predict(extra))
    np.testing.assert_array_equal(both.cluster_sizes_, alone.cluster_sizes_)


def test_more_initialisations_are_never_worse():
    X = groups(300, 2, 8)
    one, many = (BalancedKMeans(8, init="forgy", n_init=n, random_state=0).fit(X) for n in (1, 8))
    assert many.inertia_ <= one.inertia_
    assert many.inertia_ == pytest.approx(cost_of(X, many.labels_, many.cluster_centers_), rel=1e-9)
    assert set(many.cluster_sizes_) <= {37, 38}
