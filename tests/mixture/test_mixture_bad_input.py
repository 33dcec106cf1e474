"""What a mixture cannot use is rejected with one error that names the argument, what was found, and what to do."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from coterie import GaussianMixture
from coterie.errors import InputError, ParameterError
from coterie.families.structures import ALIASES, STRUCTURES
from coterie.mixture import Prior

ROWS = np.random.default_rng(0).normal(size=(30, 3))


def with_holes(value):
    """`ROWS` with two of `value` in column 0 and one in column 2."""
    X = ROWS.copy()
    X[[4, 9], 0] = X[7, 2] = value
    return X


def rejected(error, *words):
    """Expects `error`, with every one of `words` (regular expressions) in its message."""
    return pytest.raises(error, match=re.compile("".join(f"(?=.*{word})" for word in words), re.DOTALL))


# options


@pytest.mark.parametrize(
    "option, value, words",
    [
        ("n_components", 0, ("whole number of at least 1", "got 0")),
        ("n_components", 2.0, ("whole number", "got 2.0")),
        ("n_components", None, ("whole number", "got None")),
        ("e_step", "firm", ("'soft'", "'hard'", "'stochastic'", "got 'firm'")),
        ("missing", "drop", ("'error'", "'ignore'", "got 'drop'")),
        ("init_params", "kmeans++", ("'auto'", "'k-means\\+\\+'", "'hierarchical'", "got 'kmeans\\+\\+'")),
        ("init_params", None, ("name of a method, labels or responsibilities", "got None")),
        ("fixed", "variances", ("'weights'", "'means'", "'covariances'", "got 'variances'")),
        ("fixed", ("weights", "mean"), ("'means'", "got 'mean'")),
        ("fixed", 3, ("'means'", "got 3")),
        ("tol", -1e-9, ("at least 0", "got -1e-09")),
        ("tol", np.nan, ("at least 0", "got nan")),
        ("reg_covar", -1.0, ("at least 0", "got -1.0")),
        ("reg_covar", "small", ("number", "got 'small'")),
        ("max_iter", -1, ("at least 0", "got -1")),
        ("n_init", 0, ("at least 1", "got 0")),
        ("n_jobs", 0, ("None, a positive number of threads, or negative", "got 0")),
        ("random_state", -1, ("an integer >= 0", "got -1")),
        ("engine", "gpu", ("'serial'", "got 'gpu'")),
        ("prior", "flat", ("None, 'default'", "Prior", "got 'flat'")),
    ],
)
def test_options_are_rejected_with_what_they_can_be(option, value, words):
    with rejected(ParameterError, rf"\b{option} must be", *words):
        GaussianMixture(**{"n_components": 2, option: value}).fit(ROWS)


@pytest.mark.parametrize("name", ["banana", "vvv", None, 3])
def test_an_unknown_structure_is_answered_with_all_there_are(name):
    with rejected(ParameterError, *(f"'{known}'" for known in [*STRUCTURES, *ALIASES]), re.escape(f"got {name!r}")):
        GaussianMixture(2, covariance_type=name).fit(ROWS)


@pytest.mark.parametrize(
    "weights, words",
    [
        ([0.5, 0.6], ("sum to 1", "sum to 1.1")),
        ([1.5, -0.5], ("negative",)),
        ([1.0], (r"shape \(2,\)", r"is \(1,\)")),
        ([np.nan, 1.0], ("NaN",)),
        (["a", "b"], ("numbers",)),
    ],
)
def test_weights_that_are_invalid_are_rejected(weights, words):
    with rejected(ParameterError, "weights_init", *words):
        GaussianMixture(2, weights_init=weights).fit(ROWS)


@pytest.mark.parametrize(
    "means, words",
    [
        (np.zeros((3, 3)), (r"shape \(2, 3\)", r"is \(3, 3\)")),
        (np.zeros(3), (r"is \(3,\)",)),
        (np.full((2, 3), np.nan), ("NaN or infinity",)),
        (np.full((2, 3), np.inf), ("NaN or infinity",)),
        ("far", ("numbers",)),
    ],
)
def test_means_that_are_invalid_are_rejected(means, words):
    with rejected(ParameterError, "means_init", *words):
        GaussianMixture(2, means_init=means).fit(ROWS)


def full(matrix):
    return np.stack([np.eye(3), matrix])


@pytest.mark.parametrize(
    "name, precisions, words",
    [
        ("full", np.eye(3), (r"shape \(2, 3, 3\)", r"is \(3, 3\)")),
        ("tied", full(np.eye(3)), (r"shape \(3, 3\)", r"is \(2, 3, 3\)")),
        ("diag", np.ones(2), (r"shape \(2, 3\)", r"is \(2,\)")),
        ("spherical", np.ones((2, 3)), (r"shape \(2,\)", r"is \(2, 3\)")),
        ("full", full(np.diag([1.0, 1.0, -2.0])), ("positive definite", "component 1", "-2")),
        ("full", full(np.ones((3, 3))), ("positive definite", "component 1")),
        ("VEV", full(np.diag([1.0, 1.0, 0.0])), ("positive definite",)),
        ("full", full(np.eye(3) + np.eye(3, k=1) / 2), ("symmetric",)),
        ("tied", np.eye(3, k=1) + np.eye(3), ("symmetric",)),
        ("tied", -np.eye(3), ("positive definite", "-1")),
        ("diag", np.array([[1, 1, 1], [1, 0, 1]]), ("above 0", "minimum is 0")),
        ("spherical", [1.0, -3.0], ("above 0", "-3")),
        ("full", full(np.full((3, 3), np.nan)), ("NaN",)),
    ],
)
def test_precisions_that_are_invalid_are_rejected(name, precisions, words):
    with rejected(ParameterError, "precisions_init", *words):
        GaussianMixture(2, covariance_type=name, precisions_init=precisions).fit(ROWS)


@pytest.mark.parametrize("held, option", [("means", "means_init"), ("covariances", "precisions_init")])
def test_what_is_fixed_must_be_given(held, option):
    with rejected(ParameterError, f"fixed='{held}' needs initial values: set {option}"):
        GaussianMixture(2, fixed=held).fit(ROWS)


@pytest.mark.parametrize(
    "prior, words",
    [
        (Prior(concentration=0), ("concentration", "above 0")),
        (Prior(concentration=[1.0, 2.0, 3.0]), ("concentration", r"\(3,\)")),
        (Prior(mean=[0.0]), ("mean", r"\(1,\)")),
        (Prior(mean=[0.0, 0.0, np.nan]), ("mean", "finite")),
        (Prior(shrinkage=-1), ("shrinkage", "got -1")),
        (Prior(dof=2), ("dof", "above 2", "got 2")),
        (Prior(dof=np.inf), ("dof", "got inf")),
        (Prior(scale=-np.eye(3)), ("scale", "positive definite")),
        (Prior(scale=np.eye(2)), ("scale", r"\(2, 2\)")),
        (Prior(scale="wide"), ("scale", "numbers")),
    ],
)
def test_priors_that_are_invalid_are_rejected(prior, words):
    with rejected(ParameterError, "prior", *words):
        GaussianMixture(2, prior=prior).fit(ROWS)


# rows, labels, responsibilities


@pytest.mark.parametrize("value, what", [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_values_that_are_not_finite_are_counted_column_by_column(value, what):
    with rejected(InputError, rf"X contains {what}: column 0 \(2\), column 2 \(1\)", "drop these rows"):
        GaussianMixture(2).fit(with_holes(value))


def test_sparse_rows_are_rejected_with_the_way_to_dense_ones():
    with rejected(InputError, "X is sparse", "toarray"):
        GaussianMixture(2).fit(sparse.csr_array(ROWS))


def test_nan_is_rejected_with_the_option_that_would_allow_it_and_infinity_even_then():
    with rejected(InputError, "missing='ignore'"):
        GaussianMixture(2).fit(with_holes(np.nan))
    with rejected(InputError, r"X contains infinity: column 0 \(2\), column 2 \(1\)"):
        GaussianMixture(2, missing="ignore").fit(with_holes(np.inf))


def test_more_components_than_rows_are_rejected_with_both_numbers():
    with rejected(InputError, "n_samples=30", "n_components=31", "use n_components <= 30"):
        GaussianMixture(31).fit(ROWS)
    weight = np.zeros(30)
    weight[:3] = 1
    with rejected(InputError, "n_samples=3,", "weight above 0", "n_components=4"):
        GaussianMixture(4).fit(ROWS, sample_weight=weight)


@pytest.mark.parametrize(
    "known, words",
    [
        (np.r_[np.zeros(29, int), 2], ("from 0 to n_components - 1 = 1", "-1 if", "got 2")),
        (np.r_[np.zeros(29, int), -2], ("-1 if", "got -2")),
        (np.r_[np.zeros(29, int), 2**32], ("n_components - 1 = 1",)),
        (np.r_[np.zeros(29), 0.5], ("whole numbers", "0.5")),
        (np.r_[np.zeros(29), np.nan], ("whole numbers", "nan")),
        (np.r_[np.zeros(29), np.inf], ("whole numbers", "inf")),
        (["cat"] * 30, ("whole numbers", "cat")),
        (np.zeros(29, int), ("each of the 30 rows", r"\(29,\)")),
        (np.zeros((30, 1), int), ("one label for each row", r"\(30, 1\)")),
    ],
    ids=["too large", "too small", "far too large", "half", "NaN", "infinite", "text", "too few", "two dimensions"],
)
def test_known_labels_that_are_invalid_are_rejected(known, words):
    for verb in (GaussianMixture(2).fit, GaussianMixture(2).partial_fit):
        with rejected(InputError, "known_labels must", *words):
            verb(ROWS, known_labels=known)


@pytest.mark.parametrize(
    "start, words",
    [
        (np.r_[np.zeros(29, int), 2], ("from 0 to n_components - 1 = 1", "got 0 to 2")),
        (np.full(30, -1), ("from 0 to n_components - 1 = 1", "got -1")),
        (np.full(30, 0.5), ("whole numbers",)),
        (np.zeros(29, int), ("each of the 30 rows", r"\(29,\)")),
        (np.full((29, 2), 0.5), ("each of the 30 rows", r"\(29, 2\)")),
        (np.full((30, 3), 1 / 3), ("n_components=2", r"\(30, 3\)")),
        (np.full((30, 2), 0.6), ("sum to 1",)),
        (np.tile([1.5, -0.5], (30, 1)), ("negative",)),
        (np.full((30, 2), np.nan), ("sum to 1",)),
    ],
)
def test_starts_that_are_invalid_are_rejected(start, words):
    with rejected(ValueError, "init_params", *words):
        GaussianMixture(2, init_params=start).fit(ROWS)


@pytest.mark.parametrize("weight, words", [(-np.ones(30), ("negative",)), (np.zeros(30), ("zero for every row",))])
def test_row_weights_that_are_invalid_are_rejected(weight, words):
    with rejected(InputError, "sample_weight", *words):
        GaussianMixture(2).fit(ROWS, sample_weight=weight)


# after the fit


VERBS = ["predict", "predict_proba", "score_samples", "score", "uncertainty", "entropy", "bic", "aic", "icl"]


@pytest.mark.parametrize("verb", VERBS)
def test_other_columns_or_values_than_could_be_fitted_are_rejected(verb):
    model = GaussianMixture(2, random_state=0).fit(ROWS)
    with rejected(ValueError, "X has 2 features", "expecting 3 features"):
        getattr(model, verb)(ROWS[:, :2])
    with rejected(InputError, r"X contains NaN: column 0 \(2\)"):
        getattr(model, verb)(with_holes(np.nan))


def test_another_number_of_columns_is_rejected_by_batches():
    model = GaussianMixture(2, random_state=0).partial_fit(ROWS)
    with rejected(ValueError, "X has 2 features", "expecting 3 features"):
        model.partial_fit(ROWS[:, :2])


@pytest.mark.parametrize("verb", [*VERBS, "sample", "cdf", "quantile"])
def test_what_was_never_fitted_says_so(verb):
    rows = 2 if verb == "sample" else ROWS
    with rejected(NotFittedError, "GaussianMixture instance is not fitted", "Call 'fit'"):
        getattr(GaussianMixture(2), verb)(rows)
    with rejected(NotFittedError, "not fitted"):
        GaussianMixture(2, missing="ignore").impute(ROWS)


def test_what_needs_one_column_or_gaps_says_so():
    model = GaussianMixture(2, random_state=0).fit(ROWS)
    for verb in (model.cdf, model.quantile):
        with rejected(ParameterError, f"{verb.__name__} is for mixtures of one column", "has 3"):
            verb([0.5])
    with rejected(ParameterError, "impute needs missing='ignore'"):
        model.impute(ROWS)
    one = GaussianMixture(2, random_state=0).fit(ROWS[:, :1])
    for q in (-0.1, 1.1, np.nan):
        with rejected(ParameterError, "q must be between 0 and 1"):
            one.quantile([0.5, q])
    for n in (0, 1.5):
        with rejected(ParameterError, "n_samples must be a whole number of at least 1"):
            model.sample(n)


def test_a_warm_start_from_another_kind_of_fit_is_rejected_with_the_remedy():
    for other in ({"n_components": 3}, {"covariance_type": "diag"}):
        model = GaussianMixture(2, random_state=0, warm_start=True).fit(ROWS)
        with rejected(ParameterError, "warm_start", "set warm_start=False"):
            model.set_params(**other).fit(ROWS)


def test_a_fit_that_fails_leaves_the_earlier_one_as_it_was():
    model = GaussianMixture(2, random_state=0).fit(ROWS)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    for options, rows in (({}, with_holes(np.nan)), ({"n_components": 31}, ROWS), ({"means_init": [[0]]}, ROWS)):
        with pytest.raises(ValueError):
            model.set_params(**options).fit(rows)
        model.set_params(n_components=2, means_init=None)
    for name, value in before.items():
        assert getattr(model, name) is value, name
    np.testing.assert_array_equal(model.predict(ROWS), before["labels_"])
