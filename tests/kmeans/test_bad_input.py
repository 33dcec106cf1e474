"""What cannot be used is refused with one error that names the argument, what was found, and what to do."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from coterie import KMeans, MiniBatchKMeans
from coterie.core.errors import InputError, ParameterError

BOTH = pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])
ROWS = np.random.default_rng(0).normal(size=(30, 3))


def with_holes(value):
    """`ROWS` with two of `value` in column 0 and one in column 2."""
    X = ROWS.copy()
    X[[4, 9], 0] = X[7, 2] = value
    return X


def as_frame(library, X, names):
    return library.DataFrame({name: X[:, j] for j, name in enumerate(names)})


def refused(error, *words):
    """Expects `error`, with every one of `words` (regular expressions) in its message."""
    return pytest.raises(error, match=re.compile("".join(f"(?=.*{word})" for word in words), re.DOTALL))


# X: values


@BOTH
@pytest.mark.parametrize("value, what", [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_values_that_are_not_finite_are_counted_column_by_column(kind, value, what):
    with refused(InputError, rf"X contains {what}: column 0 \(2\), column 2 \(1\)", "drop those rows"):
        kind(2).fit(with_holes(value))


@BOTH
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_values_that_are_not_finite_are_named_by_the_columns_of_a_frame(kind, library):
    frame = as_frame(pytest.importorskip(library), with_holes(np.nan), ("age", "height", "income"))
    with refused(InputError, r"X contains NaN: age \(2\), income \(1\)"):
        kind(2).fit(frame)


@BOTH
def test_values_that_are_not_finite_are_found_in_sparse_rows(kind):
    with refused(InputError, r"X contains NaN: column 0 \(2\), column 2 \(1\)"):
        kind(2).fit(sparse.csr_array(with_holes(np.nan)))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_one_value_that_is_not_finite_is_found_among_many_rows(form):
    X = np.random.default_rng(1).normal(size=(5000, 8))
    X[4321, 5] = np.nan
    with refused(InputError, r"NaN: column 5 \(1\)\."):
        KMeans(2).fit(form(X))


def test_a_value_that_is_not_finite_is_refused_even_in_a_row_of_weight_zero():
    weight = np.ones(30)
    weight[[4, 7, 9]] = 0
    with refused(InputError, r"NaN: column 0 \(2\)"):
        KMeans(2).fit(with_holes(np.nan), sample_weight=weight)


@BOTH
@pytest.mark.parametrize("verb", ["predict", "transform", "score"])
def test_values_that_are_not_finite_are_refused_after_the_fit_too(kind, verb):
    model = kind(2, random_state=0).fit(ROWS)
    with refused(InputError, r"X contains infinity: column 0 \(2\), column 2 \(1\)"):
        getattr(model, verb)(with_holes(np.inf))


def test_values_whose_squares_overflow_are_refused_with_the_remedy():
    with refused(InputError, "X holds values so large", "divide the columns"):
        KMeans(2).fit(ROWS * 1e200)


@BOTH
@pytest.mark.parametrize(
    "X, found",
    [
        ([["a", "b"], ["c", "d"], ["e", "f"]], "'a'"),
        (np.array([[1, "x"], [2, "y"], [3, "z"]], dtype=object), "'x'"),
    ],
    ids=["strings", "object array"],
)
def test_text_is_refused_by_the_name_of_the_argument(kind, X, found):
    with refused(ValueError, r"\bX\b", found):
        kind(2).fit(X)


@BOTH
def test_complex_numbers_are_refused(kind):
    with refused(ValueError, "(?i:complex)"):
        kind(2).fit(ROWS + 1j)


# X: shape


@BOTH
@pytest.mark.parametrize("shape, found", [((0, 3), r"0 sample\(s\)"), ((5, 0), r"0 feature\(s\)")])
def test_an_empty_table_is_refused_with_its_shape(kind, shape, found):
    with refused(ValueError, found, re.escape(f"shape={shape}")):
        kind(2).fit(np.empty(shape))


@BOTH
@pytest.mark.parametrize("library", [None, "pandas", "polars"])
def test_a_single_column_without_a_second_dimension_is_refused_with_the_remedy(kind, library):
    X = np.arange(10.0)
    if library is not None:
        X = pytest.importorskip(library).Series(X)
    with refused(ValueError, "(?i:2D|two dimensions|one dimension|1D|table|Series)"):
        kind(2).fit(X)


@BOTH
def test_more_clusters_than_rows_are_refused_with_both_numbers(kind):
    with refused(InputError, "n_samples=30", "n_clusters=31", "fewer"):
        kind(31).fit(ROWS)


@BOTH
def test_more_clusters_than_rows_that_count_are_refused(kind):
    weight = np.zeros(30)
    weight[:3] = 1
    with refused(InputError, "n_samples=3 ", "weight above 0", "n_clusters=4"):
        kind(4).fit(ROWS, sample_weight=weight)


@BOTH
def test_another_number_of_columns_than_fitted_is_refused_with_both_numbers(kind):
    model = kind(2, random_state=0).fit(ROWS)
    for verb in (model.predict, model.transform, model.score):
        with refused(ValueError, "X has 2 features", "expecting 3 features"):
            verb(ROWS[:, :2])


def test_another_number_of_columns_is_refused_by_partial_fit_too():
    model = MiniBatchKMeans(2, random_state=0).partial_fit(ROWS)
    with refused(ValueError, "X has 2 features", "expecting 3 features"):
        model.partial_fit(ROWS[:, :2])


# X: frames


@BOTH
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_other_columns_than_fitted_are_refused_by_name(kind, library):
    frames = pytest.importorskip(library)
    model = kind(2, random_state=0).fit(as_frame(frames, ROWS, ("a", "b", "c")))
    with refused(ValueError, "unseen at fit time", "- d", "now missing", "- c"):
        model.predict(as_frame(frames, ROWS, ("a", "b", "d")))
    with refused(ValueError, "same order"):
        model.predict(as_frame(frames, ROWS, ("b", "a", "c")))


@BOTH
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_text_are_refused_by_name(kind, library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"size": [1.0, 2.0, 3.0], "town": ["Bonn", "Rome", "Oslo"]})
    with refused(InputError, "not numbers: 'town'", "Drop them, or encode them"):
        kind(2).fit(frame)


def test_columns_of_dates_and_categories_are_refused_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "size": [1.0, 2.0],
            "day": pandas.to_datetime(["2020-01-01", "2020-01-02"]),
            "kind": pandas.Categorical(["a", "b"]),
        }
    )
    with refused(InputError, "'day'", "'kind'", "Drop them, or encode them"):
        KMeans(2).fit(frame)


def test_two_columns_of_one_name_are_refused_by_name():
    pandas = pytest.importorskip("pandas")
    with refused(InputError, r"\bX\b", r"\ba\b"):
        KMeans(2).fit(pandas.DataFrame(ROWS, columns=["a", "b", "a"]))


# X: files and Dask


@BOTH
def test_a_file_that_is_not_there_is_named(kind, tmp_path):
    with refused(InputError, "X", "no file", r"nowhere\.npy"):
        kind(2).fit(tmp_path / "nowhere.npy")


@BOTH
def test_a_file_of_another_kind_is_refused_with_the_remedy(kind, tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with refused(InputError, r"X is the path .*rows\.csv", r"only \.npy files", "load others first"):
        kind(2).fit(str(tmp_path / "rows.csv"))


@pytest.mark.parametrize("content", [b"", b"1,2,3\n4,5,6\n"], ids=["empty", "text"])
def test_a_file_that_is_no_array_is_refused_by_name(content, tmp_path):
    (tmp_path / "rows.npy").write_bytes(content)
    with refused(InputError, r"X: .*rows\.npy", "cannot be read"):
        KMeans(2).fit(tmp_path / "rows.npy")


def test_a_dask_array_of_unknown_length_is_refused_with_the_remedy():
    da = pytest.importorskip("dask.array")
    X = da.from_array(ROWS, chunks=(10, 3))
    unknown = X[X[:, 0] > 0]
    with refused(InputError, "X must be a Dask array of two known dimensions", "nan", "compute_chunk_sizes"):
        KMeans(2).fit(unknown)


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
        (np.zeros(30), ("zero for every row", "at least one row must count")),
        (["heavy"] * 30, ("must be numbers",)),
    ],
    ids=["negative", "NaN", "infinite", "too few", "two dimensions", "all zero", "text"],
)
def test_weights_that_cannot_be_are_refused(kind, weight, words):
    with refused(InputError, "sample_weight", *words):
        kind(2).fit(ROWS, sample_weight=weight)


@BOTH
def test_weights_that_cannot_be_are_refused_by_score(kind):
    model = kind(2, random_state=0).fit(ROWS)
    with refused(InputError, "sample_weight", "each of the 30 rows"):
        model.score(ROWS, sample_weight=np.ones(5))


# options


@BOTH
@pytest.mark.parametrize("k", [0, -3, 2.0, "8", None, True, [2]])
def test_a_number_of_clusters_that_is_no_count_is_refused(kind, k):
    with refused(ParameterError, "n_clusters must be a whole number of at least 1", re.escape(f"got {k!r}")):
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
        ("n_jobs", 0, ("None, positive, or negative", "got 0")),
        ("n_jobs", "two", ("got 'two'",)),
        ("random_state", -1, ("number from 0 up", "RandomState or a Generator", "got -1")),
        ("random_state", "luck", ("got 'luck'",)),
        ("init", "kmeans++", ("'k-means\\+\\+'", "'forgy'", "'random_partition'", "'farthest'", "got 'kmeans\\+\\+'")),
        ("engine", "gpu", ("'auto', 'serial', 'threads', 'dask'", "got 'gpu'")),
        ("engine", "dask", ("needs a Dask array", "from_array")),
        ("engine", 3, ("sum, scan and map", "got 3")),
    ],
)
def test_options_are_refused_with_what_they_can_be(kind, option, value, words):
    with refused(ParameterError, rf"\b{option} must be", *words):
        kind(2, **{option: value}).fit(ROWS)


@pytest.mark.parametrize(
    "option, value, choices",
    [
        ("algorithm", "elkan", ("'auto'", "'lloyd'", "'bounds'", "'exact'")),
        ("search", "tabu", ("'none'",)),
        ("missing", "drop", ("'error'",)),
        ("metric_weights", "equal", ("None",)),
    ],
)
def test_choices_of_kmeans_are_listed_when_another_is_asked_for(option, value, choices):
    with refused(ParameterError, rf"\b{option} must be", *choices, f"got {value!r}"):
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
def test_options_of_mini_batches_are_refused_with_their_least_value(option, value, least):
    with refused(ParameterError, rf"\b{option} must be", f"at least {least}", f"got {value}"):
        MiniBatchKMeans(2, **{option: value}).fit(ROWS)


@BOTH
@pytest.mark.parametrize("shape", [(3, 3), (2, 2), (2,), (2, 3, 1), ()])
def test_a_start_of_a_wrong_shape_is_refused_with_both_shapes(kind, shape):
    with refused(ParameterError, "init must be n_clusters=2 centers of 3 columns", re.escape(str(shape))):
        kind(2, init=np.zeros(shape)).fit(ROWS)


@BOTH
def test_a_start_that_a_callable_makes_of_a_wrong_shape_is_refused(kind):
    with refused(ParameterError, "init must be n_clusters=2 centers of 3 columns", r"\(5, 3\)"):
        kind(2, init=lambda X, k, random_state: X[:5]).fit(ROWS)


@BOTH
def test_a_start_that_is_not_finite_is_refused(kind):
    with refused(ValueError, "init", "NaN"):
        kind(2, init=np.full((2, 3), np.nan)).fit(ROWS)


# the state of the estimator


@BOTH
@pytest.mark.parametrize("verb", ["predict", "transform", "score"])
def test_what_was_never_fitted_says_so(kind, verb):
    with refused(NotFittedError, f"{kind.__name__} instance is not fitted", "Call 'fit'"):
        getattr(kind(2), verb)(ROWS)


def fitted_state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@BOTH
@pytest.mark.parametrize(
    "options, X, weight",
    [
        ({}, np.c_[with_holes(np.nan), ROWS], None),
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
        model.fit(as_frame(pandas, with_holes(np.nan), ("d", "e", "f")))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]


def test_a_batch_that_fails_leaves_the_model_as_it_was():
    model = MiniBatchKMeans(2, random_state=0).partial_fit(ROWS)
    centers, steps = model.cluster_centers_.copy(), model.n_steps_
    with pytest.raises(InputError):
        model.partial_fit(with_holes(np.nan))
    np.testing.assert_array_equal(model.cluster_centers_, centers)
    assert model.n_steps_ == steps


@BOTH
def test_a_failed_first_fit_leaves_the_estimator_unfitted(kind):
    model = kind(2)
    with pytest.raises(InputError):
        model.fit(with_holes(np.nan))
    with pytest.raises(NotFittedError):
        model.predict(ROWS)
