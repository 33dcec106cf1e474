"""Missing values that a fit cannot use are rejected with a remedy."""

import re

import numpy as np
import pytest
from scipy import sparse

from coterie import KMeans
from coterie.errors import InputError, ParameterError
from kmeans.error_cases import rejects
from kmeans.missing_values import kmeans_ignoring_missing, rows_with_missing, squares

# Errors


def test_by_default_nan_is_rejected_with_the_option_that_would_take_it():
    with rejects(InputError, r"NaN: column \d \(\d+\)", r"KMeans\(missing='ignore'\)"):
        KMeans(2).fit(rows_with_missing(30, 3, 2))


@pytest.mark.parametrize("verb", ["predict", "transform", "score"])
@pytest.mark.parametrize("rows, words", [([17], ["row 17 of X"]), ([4, 9], ["2 rows", "first at index 4"])])
def test_rows_without_observed_values_are_rejected(verb, rows, words):
    X = rows_with_missing(30, 3, 2)
    model = kmeans_ignoring_missing(2).fit(X)
    X[rows] = np.nan
    with rejects(InputError, *words, "every column", "drop"):
        kmeans_ignoring_missing(2).fit(X)
    with rejects(InputError, *words, "every column", "drop"):
        getattr(model, verb)(X)


def test_the_first_row_without_observed_values_is_counted_over_all_blocks():
    da = pytest.importorskip("dask.array")
    X = rows_with_missing(300, 3, 2)
    X[[250, 277]] = np.nan
    for rows in (X, da.from_array(X, chunks=(100, -1))):
        with rejects(InputError, "2 rows of X, the first at index 250, are NaN in every column"):
            kmeans_ignoring_missing(2).fit(rows)


def test_a_row_of_weight_zero_may_be_all_missing():
    X = rows_with_missing(40, 3, 2)
    w = np.ones(40)
    X[7], w[7] = np.nan, 0
    kept = np.delete(np.arange(40), 7)
    model, wanted = (
        kmeans_ignoring_missing(2, init="farthest").fit(X, sample_weight=w),
        kmeans_ignoring_missing(2, init="farthest").fit(X[kept]),
    )
    np.testing.assert_allclose(model.cluster_centers_, wanted.cluster_centers_)
    np.testing.assert_array_equal(model.labels_[kept], wanted.labels_)


def test_columns_without_observed_values_are_named():
    X = rows_with_missing(30, 3, 2)
    X[:, 1] = np.nan
    X[:, [0, 2]] = 1.0
    with rejects(InputError, "NaN in every row: column 1", "Drop"):
        kmeans_ignoring_missing(2).fit(X)
    with rejects(InputError, "NaN in every row: b", "Drop"):
        kmeans_ignoring_missing(2).fit(pytest.importorskip("pandas").DataFrame(X, columns=list("abc")))


def test_new_rows_may_all_lack_a_column():
    model = kmeans_ignoring_missing(2).fit(rows_with_missing(30, 3, 2))
    X = rows_with_missing(5, 3, 2, share=0.0)
    X[:, 1] = np.nan
    np.testing.assert_array_equal(model.predict(X), squares(X, model.cluster_centers_).argmin(axis=1))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_not_a_missing_value(value):
    X = rows_with_missing(30, 3, 2)
    X[4, 1] = value
    with rejects(InputError, r"infinity: column 1 \(1\)"):
        kmeans_ignoring_missing(2).fit(X)
    with rejects(InputError, r"infinity: column 1 \(1\)"):
        kmeans_ignoring_missing(2).fit(rows_with_missing(30, 3, 2)).predict(X)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_are_rejected(form):
    with rejects(InputError, "sparse", r"KMeans\(missing='ignore'\)", "toarray"):
        kmeans_ignoring_missing(2).fit(form(np.eye(5)))


@pytest.mark.parametrize("options", [{"algorithm": "exact"}, {"algorithm": "bounds"}, {"search": "fast"}])
@pytest.mark.parametrize("X", [rows_with_missing(30, 3, 2), rows_with_missing(4000, 8, 2)], ids=["small", "large"])
def test_options_without_support_for_missing_values_are_rejected(options, X):
    (name, value), *_ = options.items()
    with rejects(ParameterError, f"{name}='{value}'", "does not support missing values", "use", "impute"):
        kmeans_ignoring_missing(2, **options).fit(X)


@pytest.mark.parametrize("name", ["init", "frozen_centers"])
def test_centers_must_not_have_missing_values(name):
    centers = np.zeros((2, 3))
    centers[0, 1] = np.nan
    with rejects(ParameterError, name, "NaN"):
        kmeans_ignoring_missing(2, **{name: centers}).fit(rows_with_missing(30, 3, 2))


def test_a_callable_must_not_return_missing_values():
    with rejects(ParameterError, "init", "NaN"):
        kmeans_ignoring_missing(2, init=lambda X, k, random_state: np.full((k, 3), np.nan)).fit(
            rows_with_missing(30, 3, 2)
        )


@pytest.mark.parametrize("value", ["drop", None, True])
def test_other_words_for_missing_are_rejected(value):
    with rejects(ParameterError, "missing must be 'error' or 'ignore'", re.escape(repr(value))):
        KMeans(2, missing=value).fit(rows_with_missing(30, 3, 2))


# The contract of scikit-learn


def test_tags_say_what_is_allowed():
    strict, lenient = KMeans().__sklearn_tags__().input_tags, kmeans_ignoring_missing(2).__sklearn_tags__().input_tags
    assert (strict.allow_nan, strict.sparse) == (False, True)
    assert (lenient.allow_nan, lenient.sparse) == (True, False)
