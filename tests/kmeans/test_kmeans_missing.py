"""K-means on rows with holes: everything goes by what was observed."""

import pickle
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import KMeans, seeding
from coterie.core.errors import InputError, ParameterError

SINGLE = pytest.mark.parametrize("dtype", [np.float64, np.float32])
# NumPy kernels; compiled kernels
SIZES = pytest.mark.parametrize("n, d, k", [(90, 3, 4), (4000, 10, 6)], ids=["small", "large"])
STARTS = tuple(seeding.METHODS)
WEIGHT_CHECKS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


def groups(n, d, k, seed=0, apart=4.0):
    """Rows about k places, and the place of each."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    return rng.normal(size=(n, d)) + apart * rng.normal(size=(k, d))[labels], labels


def with_holes(X, share=0.3, seed=1):
    """Each value is missing with this chance, but one of every row."""
    rng = np.random.default_rng(seed)
    gaps = rng.random(X.shape) < share
    gaps[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    return np.where(gaps, np.nan, X).astype(X.dtype)


def gappy(n, d, k, share=0.3, seed=0):
    return with_holes(groups(n, d, k, seed)[0], share)


def squares(X, centers, v=1.0):
    difference = np.asarray(X, np.float64)[:, None] - np.asarray(centers, np.float64)
    return (v * np.where(np.isnan(difference), 0.0, difference) ** 2).sum(axis=2)


def means(X, w, labels, otherwise):
    """Of each cluster and column over the rows that have a value; where none has, what stands in `otherwise`."""
    made = np.array(otherwise, np.float64)
    for j in range(len(made)):
        for t in range(X.shape[1]):
            rows = (labels == j) & ~np.isnan(X[:, t])
            if w[rows].sum() > 0:
                made[j, t] = np.average(X[rows, t].astype(np.float64), weights=w[rows])
    return made


def naive_fit(X, w, centers, v=1.0):
    """Lloyd in loops until no row moves; how often it went round, too."""
    labels, rounds = None, 0
    while True:
        found = squares(X, centers, v).argmin(axis=1)
        if labels is not None and np.array_equal(found, labels):
            return centers, labels, rounds
        labels, rounds = found, rounds + 1
        centers = means(X, w, labels, centers)


def observing(k, **options):
    return KMeans(k, missing="ignore", **({"random_state": 0} | options))


def refused(error, *words):
    """Expects `error`, with every one of `words` (regular expressions) in its message."""
    return pytest.raises(error, match=re.compile("".join(f"(?=.*{word})" for word in words), re.DOTALL))


# What a fit is


@SIZES
@SINGLE
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("v", [False, True], ids=["", "columns weighted"])
def test_attributes_belong_together(n, d, k, dtype, weighted, v):
    X = gappy(n, d, k).astype(dtype)
    w = np.random.default_rng(2).random(n) if weighted else np.ones(n)
    v = np.random.default_rng(3).lognormal(size=d) if v else np.ones(d)
    model = observing(k, metric_weights=v, tol=0, max_iter=1000).fit(X, sample_weight=w)
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
    X, w = gappy(n, d, k, share), np.random.default_rng(2).random(n)
    start = groups(n, d, k)[0][:k]
    centers, labels, rounds = naive_fit(X, w, start)
    model = observing(k, init=start, tol=0, max_iter=1000).fit(X, sample_weight=w)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-9)
    assert model.n_iter_ == rounds


@SIZES
@SINGLE
@pytest.mark.parametrize("init", STARTS)
def test_without_a_hole_it_is_kmeans_to_the_last_bit(n, d, k, dtype, init):
    X = groups(n, d, k)[0].astype(dtype)
    one, other = observing(k, init=init).fit(X), KMeans(k, init=init, random_state=0).fit(X)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    np.testing.assert_array_equal(one.history_, other.history_)
    np.testing.assert_array_equal(one.predict(X[::-1]), other.predict(X[::-1]))
    np.testing.assert_allclose(one.transform(X), other.transform(X), rtol=1e-6)
    assert one.score(X) == pytest.approx(other.score(X), rel=1e-6)


@pytest.mark.parametrize("options", [{"search": "fast"}, {"algorithm": "exact"}, {"algorithm": "bounds"}])
def test_without_a_hole_every_option_serves(options):
    X = groups(12, 2, 3)[0]
    one, other = observing(3, **options).fit(X), KMeans(3, random_state=0, **options).fit(X)
    assert one.inertia_ == other.inertia_
    np.testing.assert_array_equal(one.labels_, other.labels_)


def test_one_column_without_a_hole_is_still_exact():
    x = np.random.default_rng(0).normal(size=(500, 1))
    assert observing(9).fit(x).inertia_ == KMeans(9).fit(x).inertia_


@SIZES
def test_a_model_fitted_without_holes_answers_for_rows_that_have_some(n, d, k):
    X = groups(n, d, k)[0]
    model, holes = observing(k).fit(X), with_holes(X)
    far = squares(holes, model.cluster_centers_)
    np.testing.assert_array_equal(model.predict(holes), far.argmin(axis=1))
    np.testing.assert_allclose(model.transform(holes), np.sqrt(far), rtol=1e-9)
    assert model.score(holes) == pytest.approx(-far.min(axis=1).sum())


def test_groups_that_lie_apart_are_found_though_half_of_the_values_are_missing():
    X, labels = groups(3000, 12, 5, apart=8.0)
    assert adjusted_rand_score(observing(5, n_init=5).fit(with_holes(X, 0.5)).labels_, labels) > 0.99


def test_scikit_learns_distances_scaled_up_for_what_is_missing_have_the_same_nearest():
    X = gappy(400, 5, 4)
    model = observing(4).fit(X)
    share = (~np.isnan(X)).sum(axis=1, keepdims=True) / 5
    theirs = nan_euclidean_distances(X, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(X), theirs * np.sqrt(share), rtol=1e-6)
    np.testing.assert_array_equal(model.labels_, theirs.argmin(axis=1))


# Laws


def test_weight_two_is_the_row_twice():
    X, w = gappy(900, 4, 3), np.random.default_rng(3).integers(0, 4, 900)
    start = groups(900, 4, 3)[0][:3]
    heavy = observing(3, init=start).fit(X, sample_weight=w)
    often = observing(3, init=start).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(heavy.cluster_centers_, often.cluster_centers_, rtol=1e-9)
    assert heavy.inertia_ == pytest.approx(often.inertia_)


@SINGLE
def test_the_order_of_the_columns_does_not_matter(dtype):
    X, order = gappy(3000, 9, 5).astype(dtype), np.random.default_rng(4).permutation(9)
    start = groups(3000, 9, 5)[0][:5]
    one = observing(5, init=start).fit(X)
    other = observing(5, init=start[:, order]).fit(np.ascontiguousarray(X[:, order]))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.cluster_centers_[:, order], other.cluster_centers_, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("factor", [2.0**-40, 2.0**30])
def test_units_change_nothing_but_the_units(factor):
    X = gappy(3000, 6, 5)
    one, other = observing(5).fit(X), observing(5).fit(X * factor)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.cluster_centers_ * factor, other.cluster_centers_)
    assert one.inertia_ * factor**2 == other.inertia_


@SINGLE
def test_far_from_the_origin_it_finds_the_same(dtype):
    X = np.round(gappy(3000, 6, 5) * 16) / 16  # so that adding 2^16 loses no digit
    start = np.round(groups(3000, 6, 5)[0][:5] * 16) / 16
    near = observing(5, init=start).fit(X.astype(dtype))
    far = observing(5, init=start + 2.0**16).fit((X + 2.0**16).astype(dtype))
    assert far.inertia_ == pytest.approx(near.inertia_, rel=1e-9 if dtype == np.float64 else 1e-3)
    assert adjusted_rand_score(far.labels_, near.labels_) > (0.999999 if dtype == np.float64 else 0.99)


@SIZES
def test_columns_of_weight_zero_are_not_looked_at(n, d, k):
    X, start = groups(n, d, k)[0], groups(n, d, k, seed=5)[0][:k]
    X = np.hstack([with_holes(X[:, :-1]), with_holes(X, 0.5, seed=9)[:, -1:]])
    v = np.append(np.ones(d - 1), 0.0)
    model = observing(k, metric_weights=v, init=start).fit(X)
    alone = observing(k, init=start[:, :-1]).fit(np.ascontiguousarray(X[:, :-1]))
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_allclose(model.cluster_centers_[:, :-1], alone.cluster_centers_)
    assert model.inertia_ == pytest.approx(alone.inertia_)
    wanted = means(X, np.ones(n), model.labels_, model.cluster_centers_)
    np.testing.assert_allclose(model.cluster_centers_, wanted)


def test_a_column_of_weight_zero_that_a_cluster_has_no_value_of_gets_the_mean_of_all():
    X = np.array([[0, 1.0], [1, 3], [10, np.nan], [11, np.nan]])
    model = observing(2, metric_weights=[1, 0]).fit(X)
    assert sorted(model.cluster_centers_.tolist()) == [[0.5, 2.0], [10.5, 2.0]]


@SIZES
def test_weights_of_columns_are_scaled_columns(n, d, k):
    X, v = gappy(n, d, k), np.random.default_rng(8).lognormal(size=d)
    start = groups(n, d, k)[0][:k]
    model = observing(k, metric_weights=v, init=start).fit(X)
    by_hand = observing(k, init=start * np.sqrt(v)).fit(X * np.sqrt(v))
    np.testing.assert_array_equal(model.labels_, by_hand.labels_)
    np.testing.assert_allclose(model.cluster_centers_ * np.sqrt(v), by_hand.cluster_centers_)


@SIZES
@SINGLE
@pytest.mark.parametrize("init", STARTS)
def test_frozen_centers_stay(n, d, k, dtype, init):
    X, frozen = gappy(n, d, k).astype(dtype), groups(n, d, k)[0][:2].astype(dtype)
    model = observing(k, frozen_centers=frozen, init=init).fit(X)
    np.testing.assert_array_equal(model.cluster_centers_[:2], frozen)
    wanted = means(X, np.ones(n), model.labels_, model.cluster_centers_)[2:]
    np.testing.assert_allclose(model.cluster_centers_[2:], wanted, atol=0.1)
    assert (np.diff(model.history_) <= 1e-6 * model.history_[0]).all()


def test_a_column_that_a_cluster_has_no_value_of_stays_where_it_was():
    X = np.array([[0.0, 5], [1, 7], [10, np.nan], [11, np.nan]])
    model = observing(2, init=[[0.0, 5], [10, 42]]).fit(X)
    assert model.cluster_centers_.tolist() == [[0.5, 6.0], [10.5, 42.0]]
    assert model.inertia_ == 3.0


def test_several_threads_give_the_bits_of_one():
    X = gappy(60_000, 8, 7)
    one, *others = (observing(7, n_jobs=n).fit(X) for n in (1, 2, 5))
    for other in others:
        np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)
        np.testing.assert_array_equal(one.history_, other.history_)


# Starts, and clusters that lose their rows


@SIZES
@SINGLE
@pytest.mark.parametrize("init", STARTS)
def test_every_start_gives_centers_without_holes(n, d, k, dtype, init):
    X = gappy(n, d, k, share=0.8).astype(dtype)
    seen = []
    model = observing(k, init=init, callback=lambda progress: seen.append(progress.params)).fit(X)
    assert all(np.isfinite(centers).all() for centers in seen)
    assert model.cluster_centers_.dtype == dtype
    assert (np.diff(model.history_) <= 1e-6 * model.history_[0]).all()
    assert np.unique(model.labels_).size == k


def test_a_start_that_is_a_row_has_the_mean_of_the_column_in_its_holes():
    X = np.array([[0, np.nan], [0, np.nan], [9, 1.0], [9, 4]])
    starts = []
    observing(2, init="farthest", callback=lambda progress: starts.append(progress.params)).fit(X)
    assert {tuple(row) for row in starts[0].tolist()} <= {(0.0, 2.5), (9.0, 1.0), (9.0, 4.0)}
    assert [0.0, 2.5] in starts[0].tolist()


def test_the_mean_in_the_holes_is_that_of_the_weighted_rows():
    X = np.array([[0, np.nan], [0, np.nan], [9, 1.0], [9, 4]])
    starts = []
    model = observing(2, init="farthest", callback=lambda progress: starts.append(progress.params))
    model.fit(X, sample_weight=[1, 1, 2, 1])
    assert [0.0, 2.0] in starts[0].tolist()


@SIZES
def test_an_empty_cluster_starts_anew_at_the_row_that_costs_most(n, d, k):
    X = gappy(n, d, k)
    start = np.vstack([groups(n, d, k)[0][: k - 2], np.full((2, d), 1e4)])
    seen = []
    model = observing(k, init=start, tol=0, callback=lambda progress: seen.append(progress.params)).fit(X)
    far = squares(X, start)
    own = squares(X, np.vstack([means(X, np.ones(n), far.argmin(axis=1), start)]))[np.arange(n), far.argmin(axis=1)]
    worst = X[np.argmax(own)]
    wanted = np.where(np.isnan(worst), np.nanmean(X, axis=0), worst)
    np.testing.assert_allclose(seen[1][k - 2], wanted)
    assert np.unique(model.labels_).size == k
    assert (np.diff(model.history_) <= 0).all()


def test_a_start_by_a_callable_sees_the_rows_as_they_are():
    X, seen = gappy(300, 3, 4), []

    def init(X, n_clusters, random_state):
        seen.append(X)
        return np.nan_to_num(X[:n_clusters])

    observing(4, init=init, n_init=1).fit(X)
    np.testing.assert_array_equal(seen[0], X)


def test_equal_rows_with_equal_holes_are_one_row():
    X = np.repeat([[0.0, np.nan], [np.nan, 5.0], [9.0, 9.0]], 20, axis=0)
    with pytest.warns(match="clusters have rows"):
        model = observing(5).fit(X)
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
    assert (np.diff(model.history_) <= 1e-12 * model.history_[0]).all()


# Where rows come from


def expected(X, k=4):
    return observing(k, n_jobs=1).fit(X)


def test_a_mapped_file_gives_what_memory_gives(tmp_path):
    X = gappy(3000, 5, 4)
    np.save(tmp_path / "rows.npy", X)
    model = observing(4).fit(str(tmp_path / "rows.npy"))
    np.testing.assert_array_equal(model.cluster_centers_, expected(X).cluster_centers_)
    np.testing.assert_array_equal(model.predict(tmp_path / "rows.npy"), model.labels_)


@pytest.mark.parametrize("options", [{}, {"metric_weights": [1, 2, 3, 4, 0]}, {"init": "farthest"}])
def test_a_dask_array_gives_what_memory_gives(options):
    da = pytest.importorskip("dask.array")
    X, w = gappy(3000, 5, 4), np.random.default_rng(1).random(3000)
    lazy = da.from_array(X, chunks=(700, 3))
    start = {"init": groups(3000, 5, 4)[0][:4]} | options
    model, wanted = (observing(4, **start).fit(rows, sample_weight=w) for rows in (lazy, X))
    np.testing.assert_allclose(model.cluster_centers_, wanted.cluster_centers_, rtol=1e-9)
    assert isinstance(model.labels_, da.Array)
    np.testing.assert_array_equal(model.labels_.compute(), wanted.labels_)
    np.testing.assert_allclose(model.transform(lazy).compute(), wanted.transform(X), rtol=1e-6, atol=1e-9)
    assert model.score(lazy, sample_weight=w) == pytest.approx(-model.inertia_)


@pytest.mark.parametrize("init", STARTS)
def test_every_start_works_on_a_dask_array(init):
    da = pytest.importorskip("dask.array")
    model = observing(4, init=init, n_init=2).fit(da.from_array(gappy(600, 4, 4), chunks=(200, -1)))
    assert np.isfinite(model.cluster_centers_).all()


def frames(X):
    """As tables, in which a hole may be NaN, null or NA."""
    names = [f"x{t}" for t in range(X.shape[1])]
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame(X, columns=names)
    nulls = {name: [None if np.isnan(x) else float(x) for x in X[:, t]] for t, name in enumerate(names)}
    yield from (frame, frame.convert_dtypes(), polars.DataFrame(X, schema=names), polars.DataFrame(nulls))


def test_tables_may_have_holes_of_any_kind():
    X = gappy(200, 3, 4)
    wanted = expected(X)
    for frame in frames(X):
        model = observing(4).fit(frame)
        np.testing.assert_array_equal(model.cluster_centers_, wanted.cluster_centers_)
        np.testing.assert_array_equal(model.predict(frame), wanted.labels_)
        assert model.feature_names_in_.tolist() == ["x0", "x1", "x2"]


def test_copies_and_pickles_say_the_same():
    X = gappy(300, 3, 4)
    model = observing(4).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    np.testing.assert_array_equal(clone(model).fit(X).cluster_centers_, model.cluster_centers_)


# What is refused


def test_by_default_nan_is_refused_with_the_option_that_would_take_it():
    with refused(InputError, r"NaN: column \d \(\d+\)", r"KMeans\(missing='ignore'\)"):
        KMeans(2).fit(gappy(30, 3, 2))


@pytest.mark.parametrize("verb", ["predict", "transform", "score"])
@pytest.mark.parametrize("rows, words", [([17], ["1 row of X is NaN", "row 17"]), ([4, 9], ["2 rows", "row 4"])])
def test_rows_of_which_nothing_was_observed_are_refused(verb, rows, words):
    X = gappy(30, 3, 2)
    model = observing(2).fit(X)
    X[rows] = np.nan
    with refused(InputError, *words, "every column", "drop"):
        observing(2).fit(X)
    with refused(InputError, *words, "every column", "drop"):
        getattr(model, verb)(X)


def test_the_first_row_of_which_nothing_was_observed_is_counted_over_all_blocks():
    da = pytest.importorskip("dask.array")
    X = gappy(300, 3, 2)
    X[[250, 277]] = np.nan
    for rows in (X, da.from_array(X, chunks=(100, -1))):
        with refused(InputError, "2 rows of X are NaN in every column", "the first is row 250"):
            observing(2).fit(rows)


def test_a_row_of_weight_zero_may_be_all_holes():
    X = gappy(40, 3, 2)
    w = np.ones(40)
    X[7], w[7] = np.nan, 0
    kept = np.delete(np.arange(40), 7)
    model, wanted = observing(2, init="farthest").fit(X, sample_weight=w), observing(2, init="farthest").fit(X[kept])
    np.testing.assert_allclose(model.cluster_centers_, wanted.cluster_centers_)
    np.testing.assert_array_equal(model.labels_[kept], wanted.labels_)


def test_columns_of_which_nothing_was_observed_are_named():
    X = gappy(30, 3, 2)
    X[:, 1] = np.nan
    X[:, [0, 2]] = 1.0
    with refused(InputError, "NaN in every row: column 1", "Drop"):
        observing(2).fit(X)
    with refused(InputError, "NaN in every row: b", "Drop"):
        observing(2).fit(pytest.importorskip("pandas").DataFrame(X, columns=list("abc")))


def test_new_rows_may_all_lack_a_column():
    model = observing(2).fit(gappy(30, 3, 2))
    X = gappy(5, 3, 2, share=0.0)
    X[:, 1] = np.nan
    np.testing.assert_array_equal(model.predict(X), squares(X, model.cluster_centers_).argmin(axis=1))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_no_hole(value):
    X = gappy(30, 3, 2)
    X[4, 1] = value
    with refused(InputError, r"infinity: column 1 \(1\)"):
        observing(2).fit(X)
    with refused(InputError, r"infinity: column 1 \(1\)"):
        observing(2).fit(gappy(30, 3, 2)).predict(X)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_are_refused(form):
    with refused(InputError, "sparse", r"KMeans\(missing='ignore'\)", "toarray"):
        observing(2).fit(form(np.eye(5)))


@pytest.mark.parametrize("options", [{"algorithm": "exact"}, {"algorithm": "bounds"}, {"search": "fast"}])
@pytest.mark.parametrize("X", [gappy(30, 3, 2), gappy(4000, 8, 2)], ids=["small", "large"])
def test_options_that_holes_rule_out_are_named_with_the_remedy(options, X):
    (name, value), *_ = options.items()
    with refused(ParameterError, f"{name}='{value}'", "missing='ignore'", "use", "impute"):
        observing(2, **options).fit(X)


@pytest.mark.parametrize("name", ["init", "frozen_centers"])
def test_centers_may_have_no_holes(name):
    centers = np.zeros((2, 3))
    centers[0, 1] = np.nan
    with refused(ParameterError, name, "NaN"):
        observing(2, **{name: centers}).fit(gappy(30, 3, 2))


def test_a_callable_may_return_no_holes():
    with refused(ParameterError, "init", "NaN"):
        observing(2, init=lambda X, k, random_state: np.full((k, 3), np.nan)).fit(gappy(30, 3, 2))


@pytest.mark.parametrize("value", ["drop", None, True])
def test_other_words_for_missing_are_refused(value):
    with refused(ParameterError, "missing must be 'error' or 'ignore'", re.escape(repr(value))):
        KMeans(2, missing=value).fit(gappy(30, 3, 2))


# The contract of scikit-learn


def test_tags_say_what_is_allowed():
    strict, lenient = KMeans().__sklearn_tags__().input_tags, observing(2).__sklearn_tags__().input_tags
    assert (strict.allow_nan, strict.sparse) == (False, True)
    assert (lenient.allow_nan, lenient.sparse) == (True, False)


def what_chance_rules_out(estimator):
    reason = "the start is drawn at random: repeated rows give other draws than weighted ones"
    return {} if estimator.init == "farthest" else dict.fromkeys(WEIGHT_CHECKS, reason)


@parametrize_with_checks(
    [observing(3, n_init=1), observing(3, init="farthest")], expected_failed_checks=what_chance_rules_out
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)
