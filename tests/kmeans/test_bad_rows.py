"""Invalid rows are rejected with an error that states what was found and what to do."""

import re

import numpy as np
import pytest
from scipy import sparse

from coterie import KMeans, MiniBatchKMeans
from coterie.errors import InputError, ParameterError
from kmeans.error_cases import ROWS, as_frame, rejects, with_missing
from kmeans.kmeans_cases import BOTH

# X: values


@BOTH
@pytest.mark.parametrize("value, what", [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_values_that_are_not_finite_are_counted_column_by_column(kind, value, what):
    with rejects(InputError, rf"X contains {what}: column 0 \(2\), column 2 \(1\)", "drop those rows"):
        kind(2).fit(with_missing(value))


@BOTH
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_values_that_are_not_finite_are_named_by_the_columns_of_a_frame(kind, library):
    frame = as_frame(pytest.importorskip(library), with_missing(np.nan), ("age", "height", "income"))
    with rejects(InputError, r"X contains NaN: age \(2\), income \(1\)"):
        kind(2).fit(frame)


@BOTH
def test_values_that_are_not_finite_are_found_in_sparse_rows(kind):
    with rejects(InputError, r"X contains NaN: column 0 \(2\), column 2 \(1\)"):
        kind(2).fit(sparse.csr_array(with_missing(np.nan)))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_one_value_that_is_not_finite_is_found_among_many_rows(form):
    X = np.random.default_rng(1).normal(size=(5000, 8))
    X[4321, 5] = np.nan
    with rejects(InputError, r"NaN: column 5 \(1\)\."):
        KMeans(2).fit(form(X))


def test_a_value_that_is_not_finite_is_rejected_even_in_a_row_of_weight_zero():
    weight = np.ones(30)
    weight[[4, 7, 9]] = 0
    with rejects(InputError, r"NaN: column 0 \(2\)"):
        KMeans(2).fit(with_missing(np.nan), sample_weight=weight)


@BOTH
@pytest.mark.parametrize("verb", ["predict", "transform", "score"])
def test_values_that_are_not_finite_are_rejected_after_the_fit_too(kind, verb):
    model = kind(2, random_state=0).fit(ROWS)
    with rejects(InputError, r"X contains infinity: column 0 \(2\), column 2 \(1\)"):
        getattr(model, verb)(with_missing(np.inf))


def test_values_whose_squares_overflow_are_rejected_with_the_remedy_where_they_are_not_fitted():
    with rejects(InputError, "X has values up to about", "divide X by a power of two first"):
        MiniBatchKMeans(2).partial_fit(ROWS * 1e200)


@BOTH
@pytest.mark.parametrize(
    "X, found",
    [
        ([["a", "b"], ["c", "d"], ["e", "f"]], "'a'"),
        (np.array([[1, "x"], [2, "y"], [3, "z"]], dtype=object), "'x'"),
    ],
    ids=["strings", "object array"],
)
def test_text_is_rejected_by_the_name_of_the_argument(kind, X, found):
    with rejects(ValueError, r"\bX\b", found):
        kind(2).fit(X)


@BOTH
def test_complex_numbers_are_rejected(kind):
    with rejects(InputError, "Complex data not supported", "separate columns"):
        kind(2).fit(ROWS + 1j)
    with rejects(InputError, "sample_weight must be numbers"):
        kind(2).fit(ROWS, sample_weight=np.full(len(ROWS), 1j))
    with rejects(ParameterError, "init must be .* numbers"):
        kind(2, init=ROWS[:2] + 1j).fit(ROWS)


# X: shape


@BOTH
@pytest.mark.parametrize("shape, found", [((0, 3), r"0 sample\(s\)"), ((5, 0), r"0 feature\(s\)")])
def test_an_empty_table_is_rejected_with_its_shape(kind, shape, found):
    with rejects(ValueError, found, re.escape(f"shape={shape}")):
        kind(2).fit(np.empty(shape))


@BOTH
@pytest.mark.parametrize("library", [None, "pandas", "polars"])
def test_a_single_column_without_a_second_dimension_is_rejected_with_the_remedy(kind, library):
    X = np.arange(10.0)
    if library is not None:
        X = pytest.importorskip(library).Series(X)
    with rejects(ValueError, "(?i:2D|two dimensions|one dimension|1D|table|Series)"):
        kind(2).fit(X)


@BOTH
def test_more_clusters_than_rows_are_rejected_with_both_numbers(kind):
    with rejects(InputError, "n_samples=30", "n_clusters=31", "fewer"):
        kind(31).fit(ROWS)


@BOTH
def test_more_clusters_than_rows_of_positive_weight_are_rejected(kind):
    weight = np.zeros(30)
    weight[:3] = 1
    with rejects(InputError, "n_samples=3 ", "weight above 0", "n_clusters=4"):
        kind(4).fit(ROWS, sample_weight=weight)


@BOTH
def test_another_number_of_columns_than_fitted_is_rejected_with_both_numbers(kind):
    model = kind(2, random_state=0).fit(ROWS)
    for verb in (model.predict, model.transform, model.score):
        with rejects(ValueError, "X has 2 features", "expecting 3 features"):
            verb(ROWS[:, :2])


def test_another_number_of_columns_is_rejected_by_partial_fit_too():
    model = MiniBatchKMeans(2, random_state=0).partial_fit(ROWS)
    with rejects(ValueError, "X has 2 features", "expecting 3 features"):
        model.partial_fit(ROWS[:, :2])


# X: frames


@BOTH
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_other_columns_than_fitted_are_rejected_by_name(kind, library):
    frames = pytest.importorskip(library)
    model = kind(2, random_state=0).fit(as_frame(frames, ROWS, ("a", "b", "c")))
    with rejects(ValueError, "unseen at fit time", "- d", "now missing", "- c"):
        model.predict(as_frame(frames, ROWS, ("a", "b", "d")))
    with rejects(ValueError, "same order"):
        model.predict(as_frame(frames, ROWS, ("b", "a", "c")))


@BOTH
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_text_are_rejected_by_name(kind, library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"size": [1.0, 2.0, 3.0], "town": ["Bonn", "Rome", "Oslo"]})
    with rejects(InputError, "not numbers: 'town'", "Drop them, or encode them"):
        kind(2).fit(frame)


def test_columns_of_dates_and_categories_are_rejected_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "size": [1.0, 2.0],
            "day": pandas.to_datetime(["2020-01-01", "2020-01-02"]),
            "kind": pandas.Categorical(["a", "b"]),
        }
    )
    with rejects(InputError, "'day'", "'kind'", "Drop them, or encode them"):
        KMeans(2).fit(frame)


def test_two_columns_of_one_name_are_rejected_by_name():
    pandas = pytest.importorskip("pandas")
    with rejects(InputError, r"\bX\b", r"\ba\b"):
        KMeans(2).fit(pandas.DataFrame(ROWS, columns=["a", "b", "a"]))


# X: files and Dask


@BOTH
def test_a_file_that_is_not_there_is_named(kind, tmp_path):
    with rejects(InputError, "no file", r"nowhere\.npy"):
        kind(2).fit(tmp_path / "nowhere.npy")


@BOTH
def test_a_file_of_another_kind_is_rejected_with_the_remedy(kind, tmp_path):
    (tmp_path / "rows.doc").write_text("a,b\n1,2\n")
    with rejects(InputError, r"cannot read .*rows\.doc", r"tables end in", r"\.npy"):
        kind(2).fit(str(tmp_path / "rows.doc"))


@pytest.mark.parametrize("content", [b"", b"1,2,3\n4,5,6\n"], ids=["empty", "text"])
def test_a_file_that_is_no_array_is_rejected_by_name(content, tmp_path):
    (tmp_path / "rows.npy").write_bytes(content)
    with rejects(InputError, r"rows\.npy", r"(is empty|not an \.npy file)"):
        KMeans(2).fit(tmp_path / "rows.npy")


def test_a_dask_array_of_unknown_length_is_rejected_with_the_remedy():
    da = pytest.importorskip("dask.array")
    X = da.from_array(ROWS, chunks=(10, 3))
    unknown = X[X[:, 0] > 0]
    with rejects(InputError, "X has shape", "nan", "Dask array with two known dimensions", "compute_chunk_sizes"):
        KMeans(2).fit(unknown)
