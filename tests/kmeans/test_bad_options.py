"""Invalid weights and options are rejected by name, and a failed fit changes nothing."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from coterie import KMeans, MiniBatchKMeans
from coterie.errors import InputError, ParameterError
from kmeans.error_cases import ROWS, as_frame, rejects, with_missing
from kmeans.kmeans_cases import BOTH

# sample_weight


@BOTH
@pytest.mark.parametrize(
    "weight, words",
    [
        (np.r_[np.ones(28), -1.0, -2.0], ("negative", "2 are", "first at row 28")),
        (np.r_[1.0, np.nan, np.ones(28)], ("NaN", "1 are", "first at row 1")),
        (np.r_[np.inf, np.ones(29)], ("infinite", "first at row 0")),
        (np.ones(29), ("each of the 30 rows", r"\(29,\)")),
        (np.ones((30, 1)), ("each of the 30 rows", r"\(30, 1\)")),
        (np.zeros(30), ("zero for every row", "at least one weight must be positive")),
        (["heavy"] * 30, ("must be numbers",)),
    ],
    ids=["negative", "NaN", "infinite", "too few", "two dimensions", "all zero", "text"],
)
def test_invalid_weights_are_rejected(kind, weight, words):
    with rejects(InputError, "sample_weight", *words):
        kind(2).fit(ROWS, sample_weight=weight)


@BOTH
def test_invalid_weights_are_rejected_by_score(kind):
    model = kind(2, random_state=0).fit(ROWS)
    with rejects(InputError, "sample_weight", "each of the 30 rows"):
        model.score(ROWS, sample_weight=np.ones(5))


# options


@BOTH
@pytest.mark.parametrize("k", [0, -3, 2.0, "8", None, True, [2]])
def test_an_invalid_number_of_clusters_is_rejected(kind, k):
    with rejects(ParameterError, "n_clusters must be a whole number of at least 1", re.escape(f"got {k!r}")):
        kind(k).fit(ROWS)


@BOTH
@pytest.mark.parametrize(
    "option, value, words",
    [
        ("n_init", 0, ("at least 1", "got 0")),
        ("n_init", 1.5, ("whole number", "got 1.5")),
        ("n_init", "often", ("auto", "got 'often'")),
        ("max_iter", 0, ("at least 1", "got 0")),
        ("max_iter", "all", ("whole number", "got 'all'")),
        ("tol", -1e-9, ("at least 0", "got -1e-09")),
        ("tol", np.nan, ("at least 0", "got nan")),
        ("tol", "small", ("number", "got 'small'")),
        ("n_jobs", 0, ("None, a positive number of threads, or negative", "got 0")),
        ("n_jobs", "two", ("got 'two'",)),
        ("random_state", -1, ("an integer >= 0", "RandomState or a Generator", "got -1")),
        ("random_state", "luck", ("got 'luck'",)),
        ("init", "kmeans++", ("'k-means\\+\\+'", "'forgy'", "'random_partition'", "'farthest'", "got 'kmeans\\+\\+'")),
        ("engine", "gpu", ("'auto', 'serial', 'threads', 'dask', 'ray'", "got 'gpu'")),
        ("engine", "dask", ("requires a Dask array", "from_array")),
        ("engine", 3, ("sum, scan and map", "got 3")),
    ],
)
def test_invalid_options_are_rejected_with_the_valid_values(kind, option, value, words):
    with rejects(ParameterError, rf"\b{option} must be", *words):
        kind(2, **{option: value}).fit(ROWS)


@BOTH
def test_an_invalid_number_of_threads_is_rejected_where_there_are_no_threads(kind):
    with rejects(ParameterError, r"\bn_jobs must be", "got 'two'"):
        kind(2, engine="serial", n_jobs="two").fit(ROWS)


@pytest.mark.parametrize(
    "option, value, choices",
    [
        ("algorithm", "hamerly", ("'auto'", "'lloyd'", "'bounds'", "'exact'")),
        ("search", "tabu", ("'none'",)),
        ("missing", "drop", ("'error'",)),
        ("metric_weights", "equal", ("None",)),
    ],
)
def test_choices_of_kmeans_are_listed_when_another_is_asked_for(option, value, choices):
    with rejects(ParameterError, rf"\b{option} must be", *choices, f"got {value!r}"):
        KMeans(2, **{option: value}).fit(ROWS)


@pytest.mark.parametrize(
    "option, value, least",
    [
        ("batch_size", 0, 1),
        ("init_size", 1, 2),
        ("max_no_improvement", -1, 0),
        ("reassignment_ratio", -0.1, 0),
    ],
)
def test_invalid_options_of_mini_batches_are_rejected_with_their_minimum(option, value, least):
    with rejects(ParameterError, rf"\b{option} must be", f"at least {least}", f"got {value}"):
        MiniBatchKMeans(2, **{option: value}).fit(ROWS)


@BOTH
@pytest.mark.parametrize("shape", [(3, 3), (2, 2), (2,), (2, 3, 1), ()])
def test_initial_centers_of_a_wrong_shape_are_rejected_with_both_shapes(kind, shape):
    with rejects(ParameterError, "init must be n_clusters=2 centers of 3 columns", re.escape(str(shape))):
        kind(2, init=np.zeros(shape)).fit(ROWS)


@BOTH
def test_initial_centers_of_a_wrong_shape_from_a_callable_are_rejected(kind):
    with rejects(ParameterError, "init must be n_clusters=2 centers of 3 columns", r"\(5, 3\)"):
        kind(2, init=lambda X, k, random_state: X[:5]).fit(ROWS)


@BOTH
def test_initial_centers_that_are_not_finite_are_rejected(kind):
    with rejects(ValueError, "init", "NaN"):
        kind(2, init=np.full((2, 3), np.nan)).fit(ROWS)


# the state of the estimator


@BOTH
@pytest.mark.parametrize("verb", ["predict", "transform", "score"])
def test_what_was_never_fitted_says_so(kind, verb):
    with rejects(NotFittedError, f"{kind.__name__} instance is not fitted", "Call 'fit'"):
        getattr(kind(2), verb)(ROWS)


def fitted_state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@BOTH
@pytest.mark.parametrize(
    "options, X, weight",
    [
        ({}, np.c_[with_missing(np.nan), ROWS], None),
        ({}, np.c_[ROWS, ROWS], -np.ones(30)),
        ({}, ROWS[:1, :2], None),
        ({"init": "kmeans++"}, np.c_[ROWS, ROWS], None),
        ({"init": np.zeros((9, 9))}, np.c_[ROWS, ROWS], None),
        ({"n_clusters": 31}, np.c_[ROWS, ROWS], None),
        ({"random_state": -1}, np.c_[ROWS, ROWS], None),
        ({"engine": "gpu"}, np.c_[ROWS, ROWS], None),
    ],
    ids=["NaN", "weights", "too few rows", "name of init", "shape of init", "K > n", "random_state", "engine"],
)
def test_a_fit_that_fails_leaves_the_earlier_one_as_it_was(kind, options, X, weight):
    model = kind(2, random_state=0).fit(ROWS)
    asked, before = model.get_params(), fitted_state(model)
    with pytest.raises(ValueError):
        model.set_params(**options).fit(X, sample_weight=weight)
    model.set_params(**asked)
    after = fitted_state(model)
    assert after.keys() == before.keys()
    for name in before:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    np.testing.assert_array_equal(model.predict(ROWS), before["labels_"])


def test_a_failed_fit_leaves_the_names_of_the_columns_as_they_were():
    pandas = pytest.importorskip("pandas")
    model = KMeans(2, random_state=0).fit(as_frame(pandas, ROWS, ("a", "b", "c")))
    with pytest.raises(InputError):
        model.fit(as_frame(pandas, with_missing(np.nan), ("d", "e", "f")))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]


def test_a_batch_that_fails_leaves_the_model_as_it_was():
    model = MiniBatchKMeans(2, random_state=0).partial_fit(ROWS)
    centers, steps = model.cluster_centers_.copy(), model.n_steps_
    with pytest.raises(InputError):
        model.partial_fit(with_missing(np.nan))
    np.testing.assert_array_equal(model.cluster_centers_, centers)
    assert model.n_steps_ == steps


@BOTH
def test_a_failed_first_fit_leaves_the_estimator_unfitted(kind):
    model = kind(2)
    with pytest.raises(InputError):
        model.fit(with_missing(np.nan))
    with pytest.raises(NotFittedError):
        model.predict(ROWS)
