"""K-means with clusters of given sizes."""

import itertools
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import BalancedKMeans, KMeans
from coterie.core.errors import FitInterruptedWarning, InputError, ParameterError
from coterie.core.loop import Progress

SINGLE = pytest.mark.parametrize("dtype", [np.float64, np.float32])
FORMS = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
# NumPy kernels; compiled kernels, in several parts
SIZES = pytest.mark.parametrize("n, d, k", [(90, 3, 4), (20_000, 8, 7)], ids=["small", "large"])
QUICK = settings(max_examples=60, deadline=None)


def groups(n, d, k, seed=0, apart=4.0):
    """Groups of very different sizes."""
    rng = np.random.default_rng(seed)
    share = np.arange(1.0, k + 1) ** 2
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[rng.choice(k, p=share / share.sum(), size=n)]


def cost_of(X, labels, centers, w=None):
    squares = ((np.asarray(X, np.float64) - np.asarray(centers, np.float64)[labels]) ** 2).sum(axis=1)
    return float(squares @ (np.ones(len(squares)) if w is None else w))


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


def test_a_fit_that_settles_is_at_means_and_at_the_cheapest_division():
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
    """Rows with duplicates, and sizes that can be kept."""
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
    plain = KMeans(k, random_state=3).fit(X)
    np.testing.assert_array_equal(free.labels_, plain.labels_)
    np.testing.assert_allclose(
        free.cluster_centers_, plain.cluster_centers_, rtol=1e-9 if dtype == np.float64 else 1e-5
    )
    assert free.inertia_ == pytest.approx(plain.inertia_, rel=1e-9 if dtype == np.float64 else 1e-5)
    assert free.n_iter_ == plain.n_iter_


@SINGLE
@FORMS
def test_threads_change_nothing(form, dtype):
    X = form(groups(24_000, 24, 6).astype(dtype))
    alone = BalancedKMeans(6, random_state=0, n_jobs=1).fit(X)
    for jobs in (2, 5):
        together = BalancedKMeans(6, random_state=0, n_jobs=jobs).fit(X)
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
def test_a_start_whose_squares_overflow_is_refused(far):
    X = groups(60, 2, 3)
    with pytest.raises(ParameterError, match="init has a center so far from the rows that squares overflow"):
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


def test_more_starts_cost_no_more():
    X = groups(300, 2, 8)
    one, many = (BalancedKMeans(8, init="forgy", n_init=n, random_state=0).fit(X) for n in (1, 8))
    assert many.inertia_ <= one.inertia_
    assert many.inertia_ == pytest.approx(cost_of(X, many.labels_, many.cluster_centers_), rel=1e-9)
    assert set(many.cluster_sizes_) <= {37, 38}


# sizes


def test_sizes_of_each_cluster_keep_the_order_of_given_centers():
    X = groups(100, 2, 3)
    model = BalancedKMeans(3, size_min=[10, 20, 70], size_max=[10, 20, 70], init=X[:3]).fit(X)
    assert model.cluster_sizes_.tolist() == [10, 20, 70]


@pytest.mark.parametrize("sizes", [[70, 20, 10], [20, 10, 70], [10, 70, 20]])
def test_the_largest_size_goes_to_the_start_that_most_rows_are_near_to(sizes):
    X = np.repeat([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]], [10, 20, 70], axis=0)
    X = X + np.random.default_rng(0).normal(size=X.shape)
    model = BalancedKMeans(3, size_min=sizes, size_max=sizes, init="farthest").fit(X)
    assert model.cluster_sizes_.tolist() == sizes
    np.testing.assert_array_equal(model.labels_, model.predict(X))  # the groups as they are


def test_one_bound_leaves_the_other_open():
    X = groups(200, 2, 3)
    low = BalancedKMeans(3, size_min=40, random_state=0).fit(X).cluster_sizes_
    high = BalancedKMeans(3, size_max=90, random_state=0).fit(X).cluster_sizes_
    assert low.min() >= 40
    assert low.max() > 67
    assert high.max() <= 90
    assert high.min() < 66


@pytest.mark.parametrize("k", [1, 12])
def test_one_cluster_and_as_many_as_rows(k):
    X = groups(12, 2, 3)
    model = BalancedKMeans(k, random_state=0).fit(X)
    assert model.cluster_sizes_.tolist() == [12 // k] * k
    assert model.inertia_ == pytest.approx(12 * X.var(axis=0).sum() if k == 1 else 0.0, abs=1e-12)


def test_rows_that_are_all_alike_are_shared_out():
    model = BalancedKMeans(3, random_state=0).fit(np.full((10, 2), 0.1))
    assert sorted(model.cluster_sizes_) == [3, 3, 4]
    assert model.inertia_ == pytest.approx(0.0, abs=1e-25)
    assert model.converged_


def test_a_cluster_that_may_be_empty_is_so_where_rows_are_too_alike_with_a_warning():
    X = np.repeat([[0.0], [5.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 2 of 3 clusters have rows: size_min=1 gives each a row"):
        model = BalancedKMeans(3, size_min=0, random_state=0).fit(X)
    assert sorted(model.cluster_sizes_) == [0, 10, 10]


def test_an_empty_cluster_starts_anew_at_the_costliest_row():
    X = groups(60, 2, 3)
    far = np.full(2, 1e3)  # nearest to no row
    model = BalancedKMeans(3, size_min=0, size_max=40, init=np.stack([*X[:2], far])).fit(X)
    assert model.cluster_sizes_.min() > 0


# beside others


def test_no_worse_than_k_means_constrained_from_the_same_start():
    theirs = pytest.importorskip("k_means_constrained").KMeansConstrained
    X = groups(200, 3, 4)
    options = {"size_min": 30, "size_max": 70, "n_init": 1}
    ours = BalancedKMeans(4, init=X[:4], tol=0, **options).fit(X)
    other = theirs(4, init=X[:4].copy(), tol=0, random_state=0, **options).fit(X)
    assert ours.inertia_ <= other.inertia_ * (1 + 1e-4)  # which rounds costs


# running


def test_a_callback_hears_of_every_iteration_and_can_end_the_fit():
    heard = []
    X = groups(300, 3, 6)
    model = BalancedKMeans(6, random_state=0, callback=lambda p: heard.append(p) or len(heard) == 3).fit(X)
    assert [progress.iteration for progress in heard] == [0, 1, 2]
    assert [progress.objective for progress in heard] == model.history_.tolist()
    for progress in heard:
        labels = np.concatenate(progress.params.labels)
        assert set(np.bincount(labels)) == {50}
        assert progress.objective == pytest.approx(cost_of(X, labels, progress.params.centers), rel=1e-12)


def test_an_interrupt_keeps_the_clusters_so_far():
    def watch(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    X = groups(300, 3, 6)
    with pytest.warns(FitInterruptedWarning):
        model = BalancedKMeans(6, random_state=0, callback=watch).fit(X)
    assert model.cluster_sizes_.tolist() == [50] * 6


def test_verbose_prints_every_iteration(capsys):
    model = BalancedKMeans(3, verbose=2, random_state=0).fit(groups(100, 2, 3))
    assert len(capsys.readouterr().out.splitlines()) == model.n_iter_ + 1


def test_running_out_of_iterations_warns_with_the_remedy():
    with pytest.warns(ConvergenceWarning, match="BalancedKMeans did not converge in max_iter=1.*raise max_iter"):
        BalancedKMeans(4, max_iter=1, tol=0, random_state=0).fit(groups(300, 2, 6, apart=1.0))


def test_a_number_gives_the_same_answer_every_time():
    X = groups(400, 2, 9)
    first, again = (BalancedKMeans(9, random_state=4).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, again.labels_)


def test_frames_are_read_and_a_pickled_model_predicts_the_same():
    pandas = pytest.importorskip("pandas")
    X = groups(90, 2, 3)
    model = BalancedKMeans(3, random_state=0).fit(pandas.DataFrame(X, columns=["x", "y"]))
    assert model.feature_names_in_.tolist() == ["x", "y"]
    again = pickle.loads(pickle.dumps(model))
    frame = pandas.DataFrame(X[:5], columns=["x", "y"])
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_a_textbook_table_is_divided_without_a_compiler():
    code = (
        "import sys, numpy as np, coterie; X = np.random.default_rng(0).normal(size=(150, 4))\n"
        "coterie.BalancedKMeans(3, cannot_link=[[0, 1]]).fit(X); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# refused


@pytest.mark.parametrize(
    "options, words",
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1; got 0"),
        ({"size_min": -1}, "size_min must be None, a whole number of at least 0, or 3 of them.*got -1"),
        ({"size_min": 2.5}, "size_min must be None, a whole number of at least 0.*got 2.5"),
        ({"size_max": True}, "size_max must be None, a whole number.*got True"),
        ({"size_max": "many"}, "size_max must be None, a whole number.*got 'many'"),
        ({"size_max": [1, [2]]}, r"size_max must be None, a whole number.*got \[1, \[2\]\]"),
        ({"size_min": [1, 2]}, r"size_min must be .* or 3 of them, one a cluster; got shape \(2,\)"),
        ({"size_min": 20, "size_max": 10}, "size_min must not be above size_max; cluster 0 has 20 and 10"),
        ({"size_min": [1, 2, 9], "size_max": [90, 90, 8]}, "size_max; cluster 2 has 9 and 8"),
        ({"size_min": 31}, r"size_min asks for 93 rows in 3 clusters, but X has 90 rows .*: lower it"),
        ({"size_max": 29}, r"size_max leaves room for 87 rows in 3 clusters, but X has 90 rows .*: raise it"),
        ({"init": "best"}, "init must be one of 'k-means"),
        ({"init": np.ones((2, 3))}, "init must be n_clusters=3 centers"),
        ({"n_init": 0}, "n_init must be 'auto' or a whole number"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1; got 0"),
        ({"tol": -1.0}, "tol must be a finite number of at least 0"),
        ({"engine": "gpu"}, "engine must be 'auto'"),
        ({"callback": 3}, "callback must be None or a function"),
    ],
)
def test_options_are_refused_with_what_they_can_be(options, words):
    with pytest.raises(ParameterError, match=words):
        BalancedKMeans(**{"n_clusters": 3, **options}).fit(groups(90, 3, 3))


def test_sizes_are_judged_by_the_rows_that_have_weight():
    w = np.repeat([1.0, 0.0], [60, 30])
    with pytest.raises(ParameterError, match=r"but X has 60 rows \(of weight above 0\)"):
        BalancedKMeans(3, size_min=25).fit(groups(90, 3, 3), sample_weight=w)


def test_too_few_rows_and_holes_are_refused():
    with pytest.raises(InputError, match="n_clusters=91: ask for fewer"):
        BalancedKMeans(91).fit(groups(90, 3, 3))
    with pytest.raises(InputError, match="NaN"):
        BalancedKMeans(3).fit(np.full((9, 2), np.nan))


def test_dask_rows_are_refused_with_the_remedy_and_can_be_predicted():
    da = pytest.importorskip("dask.array")
    X = groups(90, 3, 3)
    lazy = da.from_array(X, chunks=(30, -1))
    with pytest.raises(InputError, match=r"X is a Dask array: .*X.compute\(\)"):
        BalancedKMeans(3).fit(lazy)
    model = BalancedKMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(X))


def test_a_fit_that_fails_leaves_the_earlier_one_as_it_was():
    X = groups(90, 3, 3)
    model = BalancedKMeans(3, random_state=0).fit(X)
    before = model.predict(X)
    with pytest.raises(ParameterError):
        model.set_params(size_min=99).fit(X)
    np.testing.assert_array_equal(model.predict(X), before)


# scikit-learn


def what_sizes_and_chance_rule_out(estimator):
    if estimator.size_min == 0 and estimator.init == "farthest":
        return {}
    counted = "sizes count rows: a row of weight two takes one place, the row twice takes two"
    return {f"check_sample_weight_equivalence_on_{form}_data": counted for form in ("dense", "sparse")}


@parametrize_with_checks(
    [BalancedKMeans(3, random_state=0), BalancedKMeans(3, size_min=0, init="farthest")],
    expected_failed_checks=what_sizes_and_chance_rule_out,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
