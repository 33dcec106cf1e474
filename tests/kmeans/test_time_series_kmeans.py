"""K-means for time series: objective, inputs, and results of warping. General laws run over `zoo`."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import zoo
from coterie import KMeans, TimeSeriesKMeans
from coterie.core.protocols import Chunk
from coterie.distances import dba, dtw, pairwise, soft_dtw
from coterie.distances.windows import Itakura, NoWindow, SakoeChiba
from coterie.errors import InputError, ParameterError
from coterie.kmeans.dtw_lloyd import DTWLloyd
from many_parts import weights_of_many_digits
from reference.shared_data import FOLDER, read_index

METRICS = pytest.mark.parametrize("metric", ["dtw", "softdtw", "euclidean"])


def shapes(n=60, seed=0, lengths=(24, 24)):
    """Series with two pulses at random times (up and down, down and up, or both up), and their classes."""
    rng = np.random.default_rng(seed)
    kind, found = rng.integers(3, size=n), []
    for k in kind:
        length = int(rng.integers(lengths[0], lengths[1] + 1))
        first, second = np.sort(rng.choice(np.arange(2, length - 2, 4), 2, replace=False))
        x = rng.normal(0, 0.1, length)
        x[first : first + 2] += (3, -3, 3)[k]
        x[second : second + 2] += (-3, 3, 3)[k]
        found.append(x)
    return found, kind


X, KIND = shapes()
X = np.array(X)
RAGGED, RAGGED_KIND = shapes(lengths=(18, 30))


def padded(series):
    table = np.full((len(series), max(map(len, series))), np.nan)
    for row, x in zip(table, series, strict=True):
        row[: len(x)] = x
    return table


def objective(model, series, w=None):
    """By the definition, series by series."""
    w = np.ones(len(series)) if w is None else w
    how = {"window": 0 if model.metric == "euclidean" else model.window}
    own = [model.cluster_centers_[label] for label in model.labels_]
    if model.metric == "softdtw":
        return sum(wi * soft_dtw(x, c, model.gamma, **how) for wi, x, c in zip(w, series, own, strict=True))
    return sum(wi * dtw(x, c, **how) ** 2 for wi, x, c in zip(w, series, own, strict=True))


@METRICS
def test_the_objective_is_that_of_the_centers_returned_and_never_rises(metric):
    w = np.random.default_rng(1).exponential(size=len(X))
    model = TimeSeriesKMeans(3, metric=metric, gamma=0.5, random_state=1).fit(X, sample_weight=w)
    assert model.inertia_ == model.history_[-1]
    assert model.inertia_ == pytest.approx(objective(model, X, w), rel=1e-9)
    assert model.score(X, sample_weight=w) == pytest.approx(-model.inertia_, rel=1e-12)
    assert np.all(np.diff(model.history_) <= 1e-12 * np.abs(model.history_[:-1]))
    assert model.n_iter_ == len(model.history_) - 1
    assert model.converged_


@METRICS
@pytest.mark.parametrize("window", [None, 3, Itakura(3.0)], ids=str)
def test_labels_are_those_of_the_nearest_center(metric, window):
    model = TimeSeriesKMeans(4, metric=metric, window=window, max_iter=100, random_state=0).fit(X)
    distances = model.transform(X)
    assert distances.shape == (60, 4)
    np.testing.assert_array_equal(model.labels_, distances.argmin(axis=1))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.fit_predict(X), model.labels_)
    if metric == "dtw":
        np.testing.assert_array_equal(distances, pairwise(X, model.cluster_centers_, metric="dtw", window=window))


@pytest.mark.parametrize("window", [NoWindow(), SakoeChiba(2), Itakura(2.0)], ids=lambda w: type(w).__name__)
def test_bounds_change_the_speed_not_the_labels(window):
    table = padded(RAGGED)
    model, rng = DTWLloyd(6, window=window), np.random.default_rng(0)
    for _ in range(5):
        centers = table[rng.choice(len(table), 6, replace=False)]
        centers[5] = centers[2]  # of equally near ones the first
        guess = rng.integers(6, size=len(table)).astype(np.int32)
        stats, labels = model.e_step(centers, Chunk(table, None, 0), guess)
        costs = model.distances(centers, Chunk(table, None, 0))
        np.testing.assert_array_equal(labels, costs.argmin(axis=1))
        assert stats.moved == np.count_nonzero(labels != guess)
        assert model.objective(centers, stats) == pytest.approx((costs.min(axis=1) ** 2).sum(), rel=1e-12)


def test_shapes_are_found_wherever_they_begin():
    warped = TimeSeriesKMeans(3, n_init=3, random_state=0).fit(X)
    straight = KMeans(3, n_init=10, random_state=0).fit(X)
    assert adjusted_rand_score(KIND, warped.labels_) == 1.0
    assert adjusted_rand_score(KIND, straight.labels_) < 1.0


def test_series_of_the_archive_are_separated_better_than_without_warping():
    read_index("index.json")  # skips where there is no archive
    found = np.loadtxt(FOLDER / "ts" / "SyntheticControl.csv.gz", delimiter=",", skiprows=1)[::3]
    truth = pd.read_csv(FOLDER / "ts" / "SyntheticControl.labels.csv")["label"][::3]
    warped, straight = (
        [adjusted_rand_score(truth, TimeSeriesKMeans(6, metric=m, random_state=s).fit(found).labels_) for s in range(5)]
        for m in ("dtw", "euclidean")
    )
    assert np.mean(warped) > np.mean(straight)


def test_a_list_a_padded_table_and_a_frame_give_the_same_clusters():
    table = padded(RAGGED)
    models = [
        TimeSeriesKMeans(3, random_state=0).fit(form)
        for form in (RAGGED, tuple(x.tolist() for x in RAGGED), table, table[:, :, None], pd.DataFrame(table))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.labels_, models[0].labels_)
        assert model.inertia_ == models[0].inertia_
    assert [c.shape for c in models[3].cluster_centers_] == [(len(c), 1) for c in models[0].cluster_centers_]


def test_centers_are_as_long_as_the_series_they_start_from():
    start = [RAGGED[0], RAGGED[1][:15], RAGGED[2]]
    model = TimeSeriesKMeans(3, init=start).fit(RAGGED)
    assert [len(c) for c in model.cluster_centers_] == [len(s) for s in start]
    assert isinstance(model.cluster_centers_, list)
    assert model.predict([x[:-3] for x in RAGGED]).shape == (60,)
    equal = TimeSeriesKMeans(2, init=[[0.0] * 5, [1.0] * 5]).fit(X)
    assert equal.cluster_centers_.shape == (2, 5)
    assert TimeSeriesKMeans(3, random_state=0).fit(X).cluster_centers_.shape == (3, 24)


def test_channels_are_warped_together():
    both = np.stack([X, X[:, ::-1]], axis=2)
    model = TimeSeriesKMeans(3, random_state=0).fit(both)
    assert model.cluster_centers_.shape == (3, 24, 2)
    assert model.inertia_ == pytest.approx(objective(model, both), rel=1e-9)
    np.testing.assert_array_equal(model.predict(list(both)), model.labels_)
    with pytest.raises(InputError, match="X has 1 channels, but TimeSeriesKMeans was fitted with 2"):
        model.predict(X)


def test_without_warping_it_is_kmeans():
    start = X[:3]
    series = TimeSeriesKMeans(3, metric="euclidean", init=start, tol=0).fit(X)
    plain = KMeans(3, init=start, tol=0).fit(X)
    np.testing.assert_array_equal(series.labels_, plain.labels_)
    np.testing.assert_allclose(series.cluster_centers_, plain.cluster_centers_, rtol=1e-12)
    assert series.inertia_ == pytest.approx(plain.inertia_, rel=1e-12)


def test_one_cluster_is_the_average_of_all():
    start = X[:1]
    model = TimeSeriesKMeans(1, init=start, tol=0, max_iter=200).fit(X)
    average = dba(X, init=start[0], tol=0.0, max_iter=1000)
    np.testing.assert_allclose(model.cluster_centers_[0], average, rtol=1e-9, atol=1e-9)


def test_more_steps_of_averaging_end_no_higher_in_fewer_iterations():
    start = X[:3]
    one, many = (TimeSeriesKMeans(3, init=start, max_iter_barycenter=steps).fit(X) for steps in (1, 20))
    assert many.n_iter_ <= one.n_iter_
    assert many.history_[1] <= one.history_[1]


def test_a_table_to_predict_has_the_columns_of_fit_and_a_list_need_not():
    model = TimeSeriesKMeans(3, random_state=0).fit(X)
    assert model.n_features_in_ == 24
    with pytest.raises(InputError, match=r"X has 20 features, but .* list: list\(X\)"):
        model.predict(X[:, :20])
    np.testing.assert_array_equal(model.predict(list(X)), model.labels_)
    assert model.predict(list(X[:, :20])).shape == (60,)
    model.fit(list(X))
    assert not hasattr(model, "n_features_in_")
    assert model.predict(X[:, :20]).shape == (60,)


@pytest.mark.parametrize(
    "metric, series",
    [("dtw", X), ("dtw", padded(RAGGED)), ("softdtw", X), ("softdtw", padded(RAGGED)), ("euclidean", X)],
    ids=["dtw", "dtw-ragged", "softdtw", "softdtw-ragged", "euclidean"],
)
def test_any_number_of_threads_gives_the_same_bits(metric, series):
    many = np.concatenate([series, series[::-1] + 0.1, series * 0.9])
    w = weights_of_many_digits(many)
    options = {"metric": metric, "random_state": 0, "max_iter": 3, "tol": 1e9}
    alone = TimeSeriesKMeans(3, n_jobs=1, **options).fit(many, sample_weight=w)
    for n_jobs in (2, 3):
        together = TimeSeriesKMeans(3, n_jobs=n_jobs, **options).fit(many, sample_weight=w)
        np.testing.assert_array_equal(together.labels_, alone.labels_)
        np.testing.assert_array_equal(together.history_, alone.history_)
        for ours, theirs in zip(together.cluster_centers_, alone.cluster_centers_, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_weight_two_is_the_series_twice():
    start = [RAGGED[int(np.argmax(kind == RAGGED_KIND))] for kind in range(3)]
    w = np.where(np.arange(60) < 20, 2.0, 1.0)
    heavy = TimeSeriesKMeans(3, init=start).fit(RAGGED, sample_weight=w)
    twice = TimeSeriesKMeans(3, init=start).fit([*RAGGED[:20], *RAGGED])
    assert heavy.inertia_ == pytest.approx(twice.inertia_, rel=1e-9)
    np.testing.assert_array_equal(heavy.labels_, twice.labels_[20:])


def test_float32_stays_float32():
    model = TimeSeriesKMeans(3, random_state=0).fit(X.astype(np.float32))
    assert model.cluster_centers_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.inertia_ == pytest.approx(objective(model, X.astype(np.float32)), rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=8), min_size=3, max_size=10),
    st.sampled_from([None, 0, 2, 0.3, Itakura(1.5)]),
    st.sampled_from(["dtw", "softdtw"]),
)
def test_any_series_are_clustered(series, window, metric):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TimeSeriesKMeans(2, metric=metric, window=window, max_iter=5, random_state=0).fit(series)
    assert set(model.labels_.tolist()) <= {0, 1}
    rounding = 1e-12 * max(1.0, float(np.abs(model.history_).max()))
    assert np.all(np.diff(model.history_) <= rounding)
    assert all(np.isfinite(center).all() for center in model.cluster_centers_)
    np.testing.assert_array_equal(model.predict(series), model.labels_)


def test_an_empty_cluster_is_moved():
    start = [X[0], X[1], np.full(24, 1e3)]
    model = TimeSeriesKMeans(3, init=start, random_state=0).fit(X)
    assert len(np.unique(model.labels_)) == 3
    assert np.all(np.diff(model.history_) <= 0)


def test_fewer_distinct_series_than_clusters_is_a_warning():
    with pytest.warns(UserWarning, match="only 2 of 3 clusters have rows"):
        model = TimeSeriesKMeans(3, random_state=0).fit([[0, 1], [0, 1], [5, 5, 5]])
    assert model.inertia_ == 0.0


def test_a_callback_sees_every_iteration_and_may_stop(capsys):
    seen = []
    model = TimeSeriesKMeans(3, random_state=0, callback=seen.append, verbose=2).fit(X)
    assert [progress.objective for progress in seen] == model.history_.tolist()
    assert capsys.readouterr().out.count("\n") == len(seen)
    stopped = TimeSeriesKMeans(3, random_state=0, callback=lambda progress: progress.iteration == 1).fit(X)
    assert stopped.n_iter_ == 1


def test_seeds_are_repeatable_and_models_survive_pickling():
    model = TimeSeriesKMeans(3, init="random", n_init=2, random_state=4).fit(RAGGED)
    again = clone(model).fit(RAGGED)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(RAGGED), model.transform(RAGGED))


def test_a_dask_array_has_a_series_a_row():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(padded(RAGGED), chunks=(20, -1))
    start = RAGGED[:3]
    model, local = (TimeSeriesKMeans(3, init=start).fit(form) for form in (rows, RAGGED))
    np.testing.assert_array_equal(np.asarray(model.labels_), local.labels_)
    assert model.inertia_ == pytest.approx(local.inertia_, rel=1e-12)


@pytest.mark.parametrize("metric", ["dtw", "softdtw"])
def test_all_series_may_be_shorter_than_the_table(metric):
    rows = padded(RAGGED)
    longer = np.c_[rows, np.full((len(rows), 2), np.nan)]
    models = [TimeSeriesKMeans(3, metric=metric, init=RAGGED[:3]).fit(form) for form in (rows, longer)]
    np.testing.assert_array_equal(*(model.labels_ for model in models))
    assert models[0].inertia_ == models[1].inertia_


def test_long_series_without_weight_do_not_matter():
    series, w = [*RAGGED, np.arange(99.0)], np.r_[np.ones(len(RAGGED)), 0.0]
    model = TimeSeriesKMeans(3, init=RAGGED[:3]).fit(series, sample_weight=w)
    alone = TimeSeriesKMeans(3, init=RAGGED[:3]).fit(RAGGED)
    np.testing.assert_array_equal(model.labels_[:-1], alone.labels_)
    assert model.inertia_ == alone.inertia_


@pytest.mark.parametrize(
    "series, message",
    [
        ([[1.0, 2.0], [3.0, np.nan, 4.0]], r"X\[1\] contains NaN at time point 1"),
        (np.array([[1.0, 2.0, 3.0], [3.0, np.nan, 4.0]]), r"X\[1\] contains NaN before its end"),
        (np.array([[1.0, 2.0], [np.nan, np.nan]]), "row 1 of X is NaN in every column"),
        (np.array([[1.0, np.inf], [1.0, 2.0]]), "contains infinity"),
        ([[1.0, 2.0], []], r"X\[1\] is empty"),
        ([np.zeros((3, 2)), np.zeros((3, 3))], r"X\[1\] has 3 channels and X\[0\] has 2"),
    ],
)
def test_invalid_series_are_rejected(series, message):
    with pytest.raises(InputError, match=message):
        TimeSeriesKMeans(2).fit(series)


def test_metric_euclidean_needs_series_of_one_length():
    with pytest.raises(InputError, match="metric='euclidean' needs series of equal length"):
        TimeSeriesKMeans(2, metric="euclidean").fit(RAGGED)
    model = TimeSeriesKMeans(2, metric="euclidean", random_state=0).fit(X)
    with pytest.raises(InputError, match="metric='euclidean' needs series of equal length"):
        model.predict(list(X[:, :-1]))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"metric": "cosine"}, "metric must be 'dtw' or 'softdtw' or 'euclidean'; got 'cosine'"),
        ({"window": -2}, "window must be None, a radius"),
        ({"window": np.ones((24, 24), bool)}, "one pair of series"),
        ({"gamma": 0}, "gamma must be a finite number above 0"),
        ({"max_iter_barycenter": 0}, "max_iter_barycenter must be a whole number of at least 1"),
        ({"init": "middle"}, "init must be 'k-means\\+\\+' or 'forgy' or 'random'; got 'middle'"),
        ({"init": [[1, 2], [2, 3]]}, "init must be n_clusters=3 series of 1 channels; got 2 series of 1 channels"),
        ({"init": print}, "init must be one of"),
        ({"metric": "euclidean", "init": [[1, 2]] * 3}, "init must be series of the same length as those in X"),
        ({"n_clusters": 0}, "n_clusters must be a whole number of at least 1"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ParameterError, match=message):
        TimeSeriesKMeans(**{"n_clusters": 3, **options}).fit(X)


def test_the_zoo_has_series():
    assert any(isinstance(param.values[0], DTWLloyd) for param in zoo.MODELS)


@pytest.mark.parametrize("gamma", [None, 0.01, 1.0, 100.0])
def test_ties_do_not_depend_on_the_number_of_rows(gamma):
    """A palindrome is as far from a series as from the same series backwards. Few rows have other kernels than many."""
    rng = np.random.default_rng(0)
    half, center = rng.random((200, 4)), rng.random((1, 8))
    X, centers = np.hstack([half, half[:, ::-1]]), np.vstack([center, center[:, ::-1]])
    model = DTWLloyd(2, gamma=gamma)
    single = [model.assign(centers, Chunk(X[i : i + 1], None, 0))[0] for i in range(200)]
    np.testing.assert_array_equal(model.assign(centers, Chunk(X, None, 0)), single)
