"""How K-means and its mini-batch form behave."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from coterie import KMeans, MiniBatchKMeans
from coterie.core.errors import FitInterruptedWarning
from coterie.data import as_source

STARTS = ["k-means++", "forgy", "random", "random_partition", "farthest"]
BOTH = pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
SINGLE = pytest.mark.parametrize("dtype", [np.float64, np.float32])
# Up to 131072 multiply-adds are done by NumPy, more by compiled kernels; 16 clusters and more have bounds.
SIZES = pytest.mark.parametrize("n, d, k", [(90, 2, 4), (4000, 8, 5), (3000, 8, 20)], ids=["small", "large", "bounds"])


def squares(X, centers):
    """Squared distances in float64, column by column."""
    total = np.zeros((len(X), len(centers)))
    for x, c in zip(np.asarray(X, np.float64).T, np.asarray(centers, np.float64).T, strict=True):
        total += (x[:, None] - c) ** 2
    return total


def objective(X, centers, weight=None):
    return float(
        np.average(squares(X, centers).min(axis=1), weights=weight) * (len(X) if weight is None else sum(weight))
    )


def groups(n, d, k, seed=0, apart=4.0):
    """`n` rows in `k` overlapping groups."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[rng.integers(k, size=n)]


def islands():
    """Three groups of 20 rows that nobody can mistake for others, and their means."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [100, 0], [0, 100]], 20, axis=0)
    return X, X.reshape(3, 20, 2).mean(axis=1)


def in_order(centers):
    return centers[np.lexsort(centers.T)]


# special numbers of clusters


@SINGLE
@pytest.mark.parametrize("n, d", [(50, 3), (30_000, 8)])
def test_one_cluster_is_the_mean_and_costs_the_total_sum_of_squares(n, d, dtype):
    X = groups(n, d, 3).astype(dtype)
    model = KMeans(1, random_state=0).fit(X)
    wide = X.astype(np.float64)
    rounding = 1e-12 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(model.cluster_centers_[0], wide.mean(axis=0), rtol=rounding, atol=rounding)
    assert model.inertia_ == pytest.approx(((wide - wide.mean(axis=0)) ** 2).sum(), rel=10 * rounding)
    assert not model.labels_.any()


@pytest.mark.parametrize("init", STARTS)
def test_as_many_clusters_as_rows_cost_nothing(init):
    X = groups(25, 3, 4)
    model = KMeans(25, init=init, random_state=0).fit(X)
    assert model.inertia_ == 0
    assert sorted(model.labels_) == list(range(25))
    np.testing.assert_array_equal(model.cluster_centers_[model.labels_], X)


# rows that are alike


@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_fewer_distinct_rows_than_clusters_are_all_found_with_a_warning(init, form):
    X = np.repeat([[0.0, 0.0], [1.0, 5.0], [9.0, 2.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 3 of 5 clusters have rows: X has too few distinct rows"):
        model = KMeans(5, init=init, random_state=0).fit(form(X))
    assert model.inertia_ == 0
    assert np.isfinite(model.cluster_centers_).all()
    np.testing.assert_array_equal(model.cluster_centers_[model.labels_], X)


@pytest.mark.parametrize("n", [3, 30_000], ids=["small", "large"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_equally_near_centers_give_the_first(n, form):
    X = np.tile([[0.0], [1.0], [2.0]], (n // 3, 8))
    start = np.repeat([[2.0], [0.0]], 8, axis=1)
    model = KMeans(2, init=start, callback=lambda progress: True).fit(form(X))
    np.testing.assert_array_equal(model.labels_, np.tile([1, 0, 0], n // 3))


def test_constant_columns_change_nothing():
    X = groups(80, 2, 3)
    padded = np.c_[np.full(80, 7.0), X[:, 0], np.zeros(80), X[:, 1]]
    alone = KMeans(3, init=X[:3]).fit(X)
    beside = KMeans(3, init=padded[:3]).fit(padded)
    np.testing.assert_array_equal(beside.labels_, alone.labels_)
    np.testing.assert_array_equal(beside.cluster_centers_[:, [0, 2]], np.tile([7.0, 0.0], (3, 1)))
    np.testing.assert_allclose(beside.cluster_centers_[:, [1, 3]], alone.cluster_centers_, rtol=1e-12)


def test_a_table_of_one_value_is_one_cluster():
    model = KMeans(1).fit(np.full((5, 2), 3.5))
    assert model.inertia_ == 0
    assert model.cluster_centers_.tolist() == [[3.5, 3.5]]


# empty clusters


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("copies", [1, 200], ids=["small", "large"])
def test_a_center_far_from_everything_starts_anew_where_it_helps(form, copies):
    X, means = islands()
    X = np.tile(X, (copies, 1))
    start = np.array([[50.0, 0.0], [0.0, 100.0], [1e6, 1e6]])  # nearest to no row
    left_alone = objective(X, KMeans(2, init=start[:2]).fit(X).cluster_centers_)
    model = KMeans(3, init=start).fit(form(X))
    assert set(model.labels_) == {0, 1, 2}
    assert model.inertia_ < left_alone / 10
    np.testing.assert_allclose(in_order(model.cluster_centers_), in_order(means), rtol=1e-9)


def test_several_empty_clusters_start_at_different_rows():
    X, _ = islands()
    start = np.array([[1e6, 1e6], [0.0, 0.0], [-1e6, 1e6]])
    model = KMeans(3, init=start).fit(X)
    assert set(model.labels_) == {0, 1, 2}
    assert model.inertia_ < objective(X, KMeans(2, init=start[:2]).fit(X).cluster_centers_)


def test_an_empty_cluster_starts_at_the_costliest_row():
    X = np.array([[0.0], [1.0], [2.0], [9.0]])  # mean 3: the row 9 costs most
    starts = []
    KMeans(2, init=[[1.0], [1e6]], callback=lambda progress: starts.append(progress.params.copy())).fit(X)
    assert starts[1].tolist() == [[3.0], [9.0]]


def test_an_empty_cluster_does_not_start_at_a_row_of_weight_zero():
    X = np.array([[0.0], [1.0], [2.0], [9.0], [50.0]])
    starts = []
    model = KMeans(2, init=[[1.0], [1e6]], callback=lambda progress: starts.append(progress.params.copy()))
    model.fit(X, sample_weight=[1, 1, 1, 1, 0])
    assert starts[1].tolist() == [[3.0], [9.0]]


# starts


@pytest.mark.parametrize("init", STARTS)
def test_every_start_finds_groups_that_are_far_apart(init):
    X, means = islands()
    model = KMeans(3, init=init, n_init=20, random_state=0).fit(X)
    np.testing.assert_allclose(in_order(model.cluster_centers_), in_order(means), rtol=1e-9)
    assert model.converged_


def runs(**options):
    """The starts a fit makes."""
    seen = set()
    KMeans(2, random_state=0, callback=lambda progress: seen.add(progress.run), **options).fit(groups(40, 2, 2))
    return seen


@pytest.mark.parametrize(
    "init, count", [("k-means++", 1), ("farthest", 1), ("forgy", 10), ("random", 10), ("random_partition", 10)]
)
def test_auto_is_ten_starts_where_one_could_be_bad_luck(init, count):
    assert runs(init=init) == set(range(count))


def test_auto_is_one_start_for_given_centers():
    assert runs(init=np.array([[0.0, 0.0], [1.0, 1.0]])) == {0}


def test_as_many_starts_are_made_as_asked_for():
    assert runs(n_init=3) == {0, 1, 2}


def test_the_best_start_is_kept():
    X = groups(300, 2, 8)
    ends = {}
    model = KMeans(8, init="forgy", n_init=8, random_state=0, callback=lambda p: ends.__setitem__(p.run, p.objective))
    model.fit(X)
    assert len(set(ends.values())) > 1  # otherwise there is nothing to choose
    assert model.inertia_ == min(ends.values())


@pytest.mark.parametrize("kind, options", [(KMeans, {}), (MiniBatchKMeans, {"max_iter": 1, "reassignment_ratio": 0.0})])
def test_an_array_is_where_the_centers_start(kind, options):
    X, _ = islands()
    start = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    model = kind(3, init=start, random_state=0, **options).fit(X)
    np.testing.assert_array_equal(model.labels_, np.repeat([0, 1, 2], 20))
    assert start.tolist() == [[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]]


def test_the_first_report_is_of_the_start_itself():
    X = groups(50, 3, 3)
    first = []
    KMeans(3, init=X[[4, 8, 2]], callback=lambda progress: first.append(progress)).fit(X)
    np.testing.assert_array_equal(first[0].params, X[[4, 8, 2]])
    assert (first[0].run, first[0].iteration) == (0, 0)
    assert first[0].objective == pytest.approx(objective(X, X[[4, 8, 2]]), rel=1e-12)


@BOTH
def test_a_callable_is_given_rows_number_and_random_state(kind):
    X = groups(50, 3, 3)
    given = []

    def start(rows, n_clusters, random_state):
        given.append((rows, n_clusters, random_state))
        return rows[:n_clusters]

    model = kind(3, init=start, n_init=1, random_state=5).fit(X)
    rows, n_clusters, random_state = given[0]
    assert rows.shape[1] == 3
    assert n_clusters == 3
    assert random_state is not None
    assert model.cluster_centers_.shape == (3, 3)


def test_a_callable_is_asked_for_every_start():
    X = groups(300, 2, 8)
    starts = [X[i : i + 8] for i in (0, 50, 100, 150)]
    ends = [KMeans(8, init=start).fit(X).inertia_ for start in starts]
    assert min(ends) < ends[0]  # otherwise the first would do
    left = iter(starts)
    model = KMeans(8, init=lambda rows, k, random_state: next(left), n_init=4).fit(X)
    assert model.inertia_ == min(ends)


def test_k_means_plus_plus_does_not_start_twice_at_one_row():
    X = np.repeat(np.arange(6.0)[:, None], 50, axis=0)
    for seed in range(20):
        starts = []
        model = KMeans(6, algorithm="lloyd", random_state=seed, callback=lambda p, to=starts: to.append(p.params))
        model.fit(X)
        assert sorted(starts[0][:, 0]) == list(range(6))


def test_farthest_leaves_nothing_to_chance():
    X = groups(500, 3, 6)
    found = [KMeans(6, init="farthest", random_state=seed).fit(X).cluster_centers_ for seed in (0, 1, None)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_farthest_starts_at_the_row_farthest_from_the_mean_then_from_those_there_are():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [4.5]])  # mean 3.5; farthest 10, then 0, then 4.5
    starts = []
    KMeans(3, init="farthest", algorithm="lloyd", callback=lambda progress: starts.append(progress.params)).fit(X)
    assert starts[0].tolist() == [[10.0], [0.0], [4.5]]


@pytest.mark.parametrize("init", STARTS)
def test_rows_of_weight_zero_are_no_starts(init):
    X = np.r_[groups(30, 2, 3), groups(30, 2, 3, seed=9) + 1000]
    weight = np.repeat([1.0, 0.0], 30)
    for seed in range(5):
        starts = []
        model = KMeans(4, init=init, n_init=1, random_state=seed, callback=lambda p, to=starts: to.append(p.params))
        model.fit(X, sample_weight=weight)
        assert starts[0].max() < 500


# what the attributes say


@SIZES
@SINGLE
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_attributes_belong_together(n, d, k, dtype, form, weighted):
    X = groups(n, d, k).astype(dtype)
    weight = np.random.default_rng(2).random(n) if weighted else None
    model = KMeans(k, init=X[:k]).fit(form(X), sample_weight=weight)
    np.testing.assert_array_equal(model.labels_, model.predict(form(X)))
    assert model.labels_.dtype == np.int32
    rounding = 1e-9 if dtype == np.float64 else 1e-5
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_, weight), rel=rounding)
    assert model.history_[-1] == model.inertia_
    assert len(model.history_) == model.n_iter_ + 1
    assert (np.diff(model.history_) <= rounding * model.history_[0]).all()
    assert model.converged_
    assert model.score(form(X), sample_weight=weight) == pytest.approx(-model.inertia_, rel=rounding)


@SIZES
@SINGLE
def test_labels_are_the_nearest_centers_as_float64_finds_them(n, d, k, dtype):
    X = groups(n, d, k).astype(dtype)
    model = KMeans(k, init=X[:k]).fit(X)
    np.testing.assert_array_equal(model.labels_, squares(X, model.cluster_centers_).argmin(axis=1))


@SIZES
def test_centers_are_the_means_of_their_rows_when_nothing_changes_any_more(n, d, k):
    X = groups(n, d, k)
    weight = np.random.default_rng(2).random(n)
    model = KMeans(k, init=X[:k], tol=0, max_iter=1000).fit(X, sample_weight=weight)
    means = [np.average(X[model.labels_ == j], axis=0, weights=weight[model.labels_ == j]) for j in range(k)]
    np.testing.assert_allclose(model.cluster_centers_, means, rtol=1e-9, atol=1e-9)


@SIZES
@SINGLE
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_transform_is_the_distance_to_every_center(n, d, k, dtype, form):
    X = groups(n, d, k).astype(dtype)
    model = KMeans(k, init=X[:k]).fit(X)
    found = model.transform(form(X))
    assert found.dtype == dtype
    rounding = 1e-10 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(found, np.sqrt(squares(X, model.cluster_centers_)), rtol=rounding, atol=rounding)


@BOTH
@SINGLE
def test_centers_have_the_type_of_the_rows(kind, dtype):
    X = groups(60, 2, 3).astype(dtype)
    assert kind(3, random_state=0).fit(X).cluster_centers_.dtype == dtype


def test_whole_numbers_have_centers_in_between():
    model = KMeans(1).fit(np.array([[1], [2]]))
    assert model.cluster_centers_.tolist() == [[1.5]]


@BOTH
def test_fit_predict_is_the_labels_of_the_fit(kind):
    X = groups(60, 2, 3)
    weight = np.arange(60.0)
    model = kind(3, random_state=0)
    np.testing.assert_array_equal(model.fit_predict(X, sample_weight=weight), model.labels_)
    np.testing.assert_array_equal(kind(3, random_state=0).fit(X, sample_weight=weight).labels_, model.labels_)


@BOTH
def test_score_is_minus_the_objective_of_the_rows_given(kind):
    X, other = groups(60, 2, 3), groups(40, 2, 3, seed=4)
    weight = np.linspace(0, 2, 40)
    model = kind(3, random_state=0).fit(X)
    assert model.score(other) == pytest.approx(-objective(other, model.cluster_centers_), rel=1e-12)
    assert model.score(other, sample_weight=weight) == pytest.approx(
        -objective(other, model.cluster_centers_, weight), rel=1e-12
    )


def test_single_precision_rows_are_predicted_by_a_double_precision_model():
    X = groups(200, 3, 4)
    model = KMeans(4, random_state=0).fit(X)
    single = X.astype(np.float32)
    np.testing.assert_array_equal(model.predict(single), squares(single, model.cluster_centers_).argmin(axis=1))


# iterations


def test_running_out_of_iterations_warns_with_the_remedy():
    X = groups(300, 2, 6, apart=1.0)
    with pytest.warns(ConvergenceWarning, match="KMeans did not converge in max_iter=1.*raise max_iter"):
        model = KMeans(6, init=X[:6], max_iter=1).fit(X)
    assert model.n_iter_ == 1
    assert len(model.history_) == 2
    assert not model.converged_
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-12)


def test_a_large_tolerance_ends_the_fit_earlier():
    X = groups(300, 2, 6, apart=1.0)
    patient, hasty = (KMeans(6, init=X[:6], tol=tol).fit(X) for tol in (0, 10.0))
    assert hasty.converged_
    assert hasty.n_iter_ == 1 < patient.n_iter_
    np.testing.assert_array_equal(hasty.history_, patient.history_[:2])


def test_bounds_change_the_speed_not_the_result():
    X = groups(3000, 8, 20, apart=2.0)
    plain, bounded = (KMeans(20, init=X[:20], algorithm=name).fit(X) for name in ("lloyd", "bounds"))
    assert plain.n_iter_ > 3
    np.testing.assert_array_equal(bounded.labels_, plain.labels_)
    np.testing.assert_array_equal(bounded.cluster_centers_, plain.cluster_centers_)
    np.testing.assert_array_equal(bounded.history_, plain.history_)


# callbacks


def test_the_callback_sees_every_iteration():
    X = groups(100, 2, 4)
    seen = []
    model = KMeans(4, init=X[:4], callback=seen.append).fit(X)
    assert [progress.iteration for progress in seen] == list(range(model.n_iter_ + 1))
    assert [progress.objective for progress in seen] == model.history_.tolist()
    np.testing.assert_array_equal(seen[-1].params, model.cluster_centers_)


@pytest.mark.parametrize("last", [0, 2])
def test_the_callback_can_end_the_fit_without_a_warning(last):
    X = groups(300, 2, 6, apart=1.0)
    model = KMeans(6, init="forgy", n_init=5, random_state=0, callback=lambda progress: progress.iteration == last)
    model.fit(X)
    assert model.n_iter_ == last
    assert not model.converged_
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-12)


def interrupt_at(run, iteration):
    def callback(progress):
        if (progress.run, progress.iteration) == (run, iteration):
            raise KeyboardInterrupt

    return callback


def fit_or_fail(model, X):
    """An interrupt that is passed on fails the test, instead of ending all tests."""
    try:
        model.fit(X)
    except KeyboardInterrupt:
        pytest.fail("the interrupt was passed on")


@pytest.mark.parametrize("iteration", [0, 2])
def test_an_interrupted_fit_keeps_what_it_reached(iteration):
    X = groups(300, 2, 6, apart=1.0)
    whole = KMeans(6, init=X[:6]).fit(X)
    model = KMeans(6, init=X[:6], callback=interrupt_at(0, iteration))
    with pytest.warns(FitInterruptedWarning, match="best result so far is kept"):
        fit_or_fail(model, X)
    assert model.history_.tolist() == whole.history_[: iteration + 1].tolist()
    assert not model.converged_
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-12)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_an_interrupted_fit_keeps_the_best_of_the_earlier_starts():
    X = groups(300, 2, 8)
    options = {"init": "forgy", "random_state": 0}
    ends = {}
    KMeans(8, n_init=3, callback=lambda p: ends.__setitem__(p.run, p.objective), **options).fit(X)
    model = KMeans(8, n_init=10, callback=interrupt_at(3, 0), **options)
    with pytest.warns(FitInterruptedWarning):
        fit_or_fail(model, X)
    assert model.inertia_ == min(ends.values())


def test_an_interrupt_before_there_is_any_result_is_passed_on():
    def start(X, k, random_state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KMeans(3, init=start).fit(groups(30, 2, 3))


def test_other_errors_of_a_callback_are_passed_on():
    def callback(progress):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        KMeans(3, callback=callback).fit(groups(30, 2, 3))


def test_an_interrupted_mini_batch_fit_keeps_what_it_reached():
    X = groups(300, 2, 6)
    model = MiniBatchKMeans(6, batch_size=20, random_state=0, callback=interrupt_at(0, 3))
    with pytest.warns(FitInterruptedWarning):
        fit_or_fail(model, X)
    assert model.n_steps_ == 3
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_verbose_prints_every_iteration(capsys):
    X = groups(100, 2, 4)
    model = KMeans(4, init=X[:4], verbose=2).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_ + 1
    assert lines[0].startswith("start 1, iteration 0: objective ")
    assert float(lines[-1].split()[-1]) == pytest.approx(model.inertia_, rel=1e-5)
    KMeans(4, init=X[:4]).fit(X)
    assert capsys.readouterr().out == ""


# chance


@BOTH
@pytest.mark.parametrize("init", ["k-means++", "forgy", "random_partition"])
@pytest.mark.parametrize("n", [100, 20_000])
def test_the_same_seed_gives_the_same_bits(kind, init, n):
    X = groups(n, 4, 5)
    options = {"init": init, "n_init": 2, "random_state": 42}
    one, two = kind(5, **options).fit(X), kind(5, **options).fit(X)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.inertia_ == two.inertia_


@BOTH
def test_another_seed_gives_another_start(kind):
    X = groups(300, 2, 8, apart=1.0)
    found = {kind(8, random_state=seed, max_iter=1000).fit(X).inertia_ for seed in range(5)}
    assert len(found) > 1


@BOTH
@pytest.mark.parametrize(
    "make", [lambda: np.random.RandomState(3), lambda: np.random.default_rng(3), lambda: np.int64(3), lambda: None]
)
def test_every_form_of_random_state_is_taken(kind, make):
    X = groups(100, 2, 3)
    one, two = (kind(3, random_state=make()).fit(X) for _ in range(2))
    if make() is not None:
        np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert np.isfinite(two.inertia_)


def test_the_number_of_threads_changes_nothing():
    X = groups(120_000, 4, 5)
    assert len(as_source(X).parts()) > 3
    found = [KMeans(5, random_state=0, n_jobs=jobs, engine=engine).fit(X)
             for jobs, engine in ((1, "threads"), (2, "threads"), (3, "auto"), (None, "serial"))]  # fmt: skip
    for other in found[1:]:
        np.testing.assert_array_equal(other.cluster_centers_, found[0].cluster_centers_)
        np.testing.assert_array_equal(other.labels_, found[0].labels_)
        assert other.inertia_ == found[0].inertia_


# weights


@SIZES
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_of_weight_zero_are_as_if_they_were_not_there(n, d, k, form):
    X = groups(n, d, k)
    weight = np.random.default_rng(3).integers(0, 3, size=n).astype(float)
    kept = weight > 0
    start = X[kept][:k]
    with_zeros = KMeans(k, init=start, tol=0, max_iter=1000).fit(form(X), sample_weight=weight)
    without = KMeans(k, init=start, tol=0, max_iter=1000).fit(form(X[kept]), sample_weight=weight[kept])
    np.testing.assert_allclose(with_zeros.cluster_centers_, without.cluster_centers_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(with_zeros.labels_[kept], without.labels_)
    assert with_zeros.inertia_ == pytest.approx(without.inertia_, rel=1e-9)


@SIZES
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_weight_two_is_the_row_twice(n, d, k, form):
    X = groups(n, d, k)
    times = np.random.default_rng(3).integers(0, 4, size=n)
    weighted = KMeans(k, init=X[:k], tol=0, max_iter=1000).fit(form(X), sample_weight=times)
    repeated = KMeans(k, init=X[:k], tol=0, max_iter=1000).fit(form(np.repeat(X, times, axis=0)))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-9)
    assert weighted.n_iter_ == repeated.n_iter_


def test_weight_two_is_the_row_twice_from_the_start_that_leaves_nothing_to_chance():
    X = groups(200, 3, 5)
    times = np.random.default_rng(3).integers(0, 4, size=200)
    weighted = KMeans(5, init="farthest").fit(X, sample_weight=times)
    repeated = KMeans(5, init="farthest").fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-9, atol=1e-12)


@SINGLE
@pytest.mark.parametrize("factor", [1e-12, 1e-3, 1e12])
@pytest.mark.parametrize("n, d", [(90, 2), (4000, 8)])
def test_the_size_of_all_weights_together_changes_nothing_but_the_objective(n, d, factor, dtype):
    X = groups(n, d, 5).astype(dtype)
    weight = np.random.default_rng(3).random(n)
    one, other = (KMeans(5, init=X[:5]).fit(X, sample_weight=w) for w in (weight, factor * weight))
    np.testing.assert_allclose(other.cluster_centers_, one.cluster_centers_, rtol=1e-5, atol=1e-5)
    assert other.inertia_ == pytest.approx(factor * one.inertia_, rel=1e-5)


# numbers far out


@pytest.mark.parametrize("n, d, k", [(300, 2, 4), (6000, 8, 6), (3000, 8, 20)], ids=["small", "large", "bounds"])
@pytest.mark.parametrize("init", ["k-means++", "farthest"])
def test_single_precision_rows_far_from_the_origin_get_the_labels_of_double_precision(n, d, k, init):
    X = (np.random.default_rng(0).normal(size=(n, d)) + 1e6).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # centers round to a sixteenth here, and may go in circles
        model = KMeans(k, init=init, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, squares(X, model.cluster_centers_).argmin(axis=1))
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-5)
    assert len(np.unique(model.labels_)) == k
    middle = KMeans(k, init=init, random_state=0).fit(X.astype(np.float64) - 1e6).inertia_
    assert model.inertia_ < 1.2 * middle


@pytest.mark.parametrize("n, d, k", [(300, 2, 4), (6000, 8, 6)], ids=["small", "large"])
def test_sparse_rows_far_from_the_origin_get_the_labels_of_dense_ones(n, d, k):
    X = np.random.default_rng(0).normal(size=(n, d)) + 1e6
    model = KMeans(k, init=X[:k]).fit(sparse.csr_array(X))
    np.testing.assert_array_equal(model.labels_, squares(X, model.cluster_centers_).argmin(axis=1))
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-6)


@SINGLE
@pytest.mark.parametrize("size", [1e-30, 1e30])
@pytest.mark.parametrize("n, d", [(90, 2), (4000, 8)])
def test_the_unit_of_the_columns_changes_nothing(n, d, size, dtype):
    """A power of two as the unit, so that not one digit differs."""
    X = groups(n, d, 5).astype(dtype)
    unit = dtype(2.0 ** np.round(np.log2(size)))
    one, other = (KMeans(5, random_state=0).fit(rows) for rows in (X, X * unit))
    np.testing.assert_array_equal(other.labels_, one.labels_)
    np.testing.assert_array_equal(other.cluster_centers_, one.cluster_centers_ * unit)
    assert other.inertia_ == pytest.approx(one.inertia_ * float(unit) ** 2, rel=1e-12)


@pytest.mark.parametrize("n, d", [(90, 2), (5000, 8)])
def test_one_row_far_beyond_all_others_is_labelled_and_paid_for(n, d):
    X = groups(n, d, 4) * 1e-10
    X[n - 5] = 1e150
    model = KMeans(4, init=X[:4]).fit(X)
    assert set(model.labels_) <= set(range(4))
    assert model.inertia_ == pytest.approx(objective(X, model.cluster_centers_), rel=1e-9)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


# mini-batches


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
    weight = np.where(np.arange(60) % 2, 100.0, 1.0)
    model = MiniBatchKMeans(1, init=[[0.0, 0.0]], batch_size=60, max_no_improvement=None, random_state=0)
    model.fit(X, sample_weight=weight)
    seen = np.average(X, axis=0, weights=weight)
    np.testing.assert_allclose(model.cluster_centers_[0], seen, atol=3)
