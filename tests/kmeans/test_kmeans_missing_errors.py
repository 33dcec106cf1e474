"""Holes that no fit can use are refused with the remedy."""

import re

import numpy as np
import pytest
from scipy import sparse

from coterie import KMeans
from coterie.core.errors import InputError, ParameterError
from kmeans.error_cases import refused
from kmeans.missing_values import gappy, observing, squares

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
