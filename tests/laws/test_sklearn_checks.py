"""scikit-learn's own checks, for every public estimator as users construct it.

A check that an estimator cannot pass is listed with the reason, and with the test of this suite that holds instead.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from coterie import (
    AgglomerativeClustering,
    BalancedKMeans,
    BayesianGaussianMixture,
    BisectingKMeans,
    DivisiveClustering,
    FuzzyCMeans,
    GaussianMixture,
    KernelKMeans,
    KMeans,
    KMedians,
    KMedoids,
    MiniBatchKMeans,
    Mixture,
    SphericalKMeans,
)
from coterie.families import StudentT
from public_estimators import CLASSES

MIXTURES = (GaussianMixture, BayesianGaussianMixture, Mixture)
FIXED_START = {"n_clusters": 3, "init": "farthest"}  # these draw nothing at random: they must pass every check
ESTIMATORS = [
    *(kind() for kind in CLASSES),
    *(kind(n_components=3, random_state=0) for kind in MIXTURES),
    Mixture(n_components="auto", random_state=0),
    DivisiveClustering(3, method="bisecting", random_state=0),
    KMeans(missing="ignore"),
]
WITH_OTHER_OPTIONS = [
    GaussianMixture(4, covariance_type="VEV", init_params="k-means++", random_state=0),
    BayesianGaussianMixture(3, weight_concentration_prior_type="dirichlet_distribution", random_state=0),
    Mixture(2, StudentT(dof=4.0), random_state=0),
    AgglomerativeClustering(3, linkage="average"),
    AgglomerativeClustering(linkage="single"),
    KMedians(metric="l2"),
    KernelKMeans(approximation="nystrom", random_state=0, **FIXED_START),
    MiniBatchKMeans(batch_size=16, random_state=0, **FIXED_START),
]
WITH_FIXED_START = [  # for the checks of weights, which a random start cannot pass
    *(kind(**FIXED_START) for kind in (BisectingKMeans, FuzzyCMeans, KernelKMeans, KMeans, KMedians, SphericalKMeans)),
    BalancedKMeans(size_min=0, **FIXED_START),
    FuzzyCMeans(fuzzifier=1.2, **FIXED_START),
    KMeans(missing="ignore", **FIXED_START),
    KMedians(metric="l2", **FIXED_START),
    KernelKMeans(kernel="cosine", **FIXED_START),
]

EQUIVALENCE = tuple(f"check_sample_weight_equivalence_on_{form}_data" for form in ("dense", "sparse"))
OTHER_WEIGHT_CHECKS = (
    "check_all_zero_sample_weights_error",
    *(f"check_sample_weights_{kind}" for kind in ("pandas_series", "not_an_array", "list", "shape", "not_overwritten")),
)
ZERO_ROW_CHECKS = (
    "check_estimators_dtypes",
    *(f"check_estimator_sparse_{kind}" for kind in ("tag", "array", "matrix")),
)

CHANCE = "the start is drawn at random: repeated rows give other draws than weighted ones"
BATCHES = "batches are rows drawn at random: repeated rows give other draws than weighted ones"
ORDER = "the check shuffles rows, and clusters are numbered by their first rows"
SIZES = "sizes count rows: a row of weight two takes one place, the row twice takes two"
NO_WEIGHTS = "method='diana' takes no weights"
NO_DIRECTION = "some rows of the check are zero in every column: they have no direction and are rejected"

WEIGHT_LAWS = {  # what holds instead of the equivalence of weights and repeated rows: the same from the same start
    AgglomerativeClustering: "hierarchy/test_agglomerative.py::test_weight_two_is_the_row_twice",
    BalancedKMeans: "kmeans/test_balanced.py::test_weights_count_in_the_objective_and_the_means_and_sizes_count_rows",
    BisectingKMeans: "kmeans/test_bisecting.py::test_weight_two_is_the_row_twice",
    DivisiveClustering: "hierarchy/test_divisive.py::test_weight_two_is_the_row_twice",
    Mixture: "mixture/test_mixture_every_family.py::test_weight_two_is_the_row_twice",
}
MODEL_LAW = "laws/test_models.py::test_weight_two_is_the_row_twice"
DIANA_LAW = "hierarchy/test_divisive.py::test_diana_rejects_weights_and_names_the_method_that_takes_them"
ZERO_ROW_LAW = "kmeans/test_spherical.py::test_rows_of_zeros_are_rejected_with_their_number_and_the_remedy"


def why_weights_are_not_repeated_rows(model):
    if isinstance(model, AgglomerativeClustering | DivisiveClustering):
        return ORDER
    if isinstance(model, BalancedKMeans) and model.size_min != 0:
        return SIZES
    if isinstance(model, MiniBatchKMeans):
        return BATCHES
    if isinstance(model, KMedoids) or getattr(model, "init", None) == "farthest":
        return None
    return None if getattr(model, "n_components", 2) in (1, "auto") else CHANCE


def what_cannot_pass(model):
    """Names of checks, each with the reason and the test that holds instead."""
    if isinstance(model, DivisiveClustering) and model.method == "diana":
        return dict.fromkeys((*OTHER_WEIGHT_CHECKS, EQUIVALENCE[0]), (NO_WEIGHTS, DIANA_LAW))
    found = {}
    reason = why_weights_are_not_repeated_rows(model)
    if reason is not None:
        found = dict.fromkeys(EQUIVALENCE, (reason, WEIGHT_LAWS.get(type(model), MODEL_LAW)))
    if isinstance(model, SphericalKMeans):
        found |= dict.fromkeys(ZERO_ROW_CHECKS, (NO_DIRECTION, ZERO_ROW_LAW))
    return found


def check(model):
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    expected = what_cannot_pass(model)
    for name, exception in failed.items():
        if name not in expected:
            raise exception
    by_chance = {name for name, (reason, _) in expected.items() if reason in (CHANCE, BATCHES)}
    there = {result["check_name"] for result in results}
    passed = [name for name in expected if name in there - failed.keys() - by_chance]
    assert passed == [], "they are listed as impossible, and pass: take them off the list"


# some tables of the checks have fewer distinct rows than the default number of clusters
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
def test_every_estimator_passes_scikit_learns_checks(model):
    check(model)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", WITH_FIXED_START, ids=repr)
def test_weights_are_repeated_rows_from_a_fixed_start(model):
    checks = [each for each in estimator_checks_generator(model) if each[1].func.__name__ in EQUIVALENCE]
    assert checks
    for estimator, equivalence in checks:
        equivalence(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", [*WITH_OTHER_OPTIONS, *WITH_FIXED_START], ids=repr)
def test_estimators_with_other_options_pass_scikit_learns_checks(model):
    check(model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("kind", MIXTURES)
def test_mixtures_pass_scikit_learns_checks_with_the_whole_search(kind, k):
    check(kind(n_components=k, random_state=0))


def test_every_public_estimator_is_checked_as_it_is_by_default():
    assert {type(model) for model in ESTIMATORS} == set(CLASSES)


def test_what_holds_instead_of_a_check_is_a_test_of_this_suite():
    laws = {
        law
        for model in [*ESTIMATORS, *WITH_OTHER_OPTIONS, *WITH_FIXED_START]
        for _, law in what_cannot_pass(model).values()
    }
    for law in laws:
        path, _, name = law.partition("::")
        source = (Path(__file__).parents[1] / path).read_text(encoding="utf-8")
        assert f"def {name}(" in source, law
