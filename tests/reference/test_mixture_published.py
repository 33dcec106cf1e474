"""Gaussian mixtures that others have printed: mclust's tables, manual and book.

mclust stops EM early and tries one start. A higher likelihood than printed is no mistake, a lower one is.
"""

from functools import cache

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coterie import GaussianMixture
from coterie.families.structures import STRUCTURES
from reference.shared_data import FOLDER, load, published

SLACK = 0.1  # of a log-likelihood
DIGITS = {"iris": 4, "faithful": 3}  # that the tables print


@cache
def fitted(table, structure, k):
    return GaussianMixture(k, covariance_type=structure, search="thorough", random_state=0).fit(load(f"r/{table}"))


@cache
def labels(table):
    """The classes of the rows, numbered from 0."""
    names = np.loadtxt(FOLDER / "r" / f"{table}.labels.csv", dtype=str, skiprows=1)
    return np.unique(names, return_inverse=True)[1]


def matrices(model):
    """The covariances of the components (k, d, d), whatever form they are kept in."""
    k, d = model.means_.shape
    found = model.covariances_
    if found.shape == (d, d) and model.covariance_type == "EEE":
        return np.repeat(found[None], k, axis=0)
    if found.ndim == 1:
        found = np.repeat(found[:, None], d, axis=1)
    return found if found.ndim == 3 else found[:, :, None] * np.eye(d)


def is_clean(model, X):
    """No component on fewer rows than its shape needs, none collapsed in some direction."""
    n, d = X.shape
    enough = d + 1 if "V" in model.covariance_type[1:] else 1
    least = np.linalg.eigvalsh(np.cov(X.T, bias=True))[0]
    return (model.weights_ * n).min() >= enough and np.linalg.eigvalsh(matrices(model)).min() >= 1e-3 * least


def assert_as_printed(model, X, printed, digits, slack=SLACK):
    """Free parameters exactly; likelihood and criteria as printed or better, and consistent with each other."""
    likelihood, n = model.log_likelihood_, len(X)
    assert model.n_parameters_ == printed["df"]
    assert likelihood >= printed["loglik"] - slack
    assert model.score(X) * n == pytest.approx(likelihood, rel=1e-9)
    assert model.bic(X) == pytest.approx(-2 * likelihood + printed["df"] * np.log(n), rel=1e-9)
    # mclust's sign is the other one, and its printed numbers agree with each other to what was rounded off
    rounded_off = 1.5 * 10.0**-digits
    assert 2 * printed["loglik"] - printed["df"] * np.log(n) == pytest.approx(printed["bic"], abs=rounded_off)
    assert model.bic(X) <= -printed["bic"] + 2 * slack
    assert model.icl(X) >= model.bic(X) - 1e-9


def in_order(model, printed_weights):
    """The components in the order in which they were printed, by their weights."""
    order = np.empty(len(printed_weights), int)
    order[np.argsort(printed_weights)] = np.argsort(model.weights_)
    return order


# the tables


FEW, MANY = range(1, 4), range(4, 10)  # components


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("ks", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("table", ["iris", "faithful"])
def test_every_cell_is_at_least_as_likely_as_printed_and_clean(table, ks, structure):
    X = load(f"r/{table}")
    n = len(X)
    worse, unclean = [], []
    for k in ks:
        bic = published(f"mclust.{table}.bic")["value"][structure][str(k)]
        if bic is not None:
            model = fitted(table, structure, k)
            printed = (bic + model.n_parameters_ * np.log(n)) / 2
            if model.log_likelihood_ < printed - SLACK:
                worse.append(f"{structure},{k}: {model.log_likelihood_:.3f} < {printed:.3f}")
            if not is_clean(model, X):
                unclean.append(f"{structure},{k}")
    assert worse == []
    assert unclean == []


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("table", ["iris", "faithful"])
def test_a_single_component_is_as_printed_to_the_last_digit(table, structure):
    X = load(f"r/{table}")
    printed = published(f"mclust.{table}.bic")["value"][structure]["1"]
    model = fitted(table, structure, 1)
    assert round(-model.bic(X), DIGITS[table]) == printed


LEFT_OUT = [
    ("VEE", 5),
    ("EVV", 5),
    *(pytest.param(*cell, marks=pytest.mark.slow) for cell in (("VEE", 7), ("VEE", 9), ("EVV", 6))),
]


@pytest.mark.parametrize("structure, k", LEFT_OUT)
def test_what_is_left_out_of_the_tables_is_found_all_the_same(structure, k):
    """mclust gives no number where its one start ended in a singular covariance."""
    assert published("mclust.iris.bic")["value"][structure][str(k)] is None
    X, model = load("r/iris"), fitted("iris", structure, k)
    assert np.isfinite(model.bic(X))
    assert is_clean(model, X)


# single fits


@pytest.mark.parametrize("name", ["VEV,2", "VEV,3"])
def test_the_best_two_models_of_iris(name):
    X, printed = load("r/iris"), published("mclust.iris.models")["value"][name]
    structure, k = name.split(",")
    model = fitted("iris", structure, int(k))
    assert_as_printed(model, X, printed, 3)
    assert model.log_likelihood_ == pytest.approx(printed["loglik"], abs=0.01)
    assert -model.icl(X) == pytest.approx(printed["icl"], abs=0.05)
    assert sorted(np.bincount(model.labels_)) == sorted(printed["sizes"])
    if "pro" in printed:
        order = in_order(model, printed["pro"])
        np.testing.assert_allclose(model.weights_[order], printed["pro"], atol=1e-3)
        np.testing.assert_allclose(model.means_[order].T, printed["means_by_feature"], atol=5e-3)


def test_two_unconstrained_components_of_iris():
    X, printed = load("r/iris"), published("mclust.iris.models")["value"]["VVV,2"]
    model = fitted("iris", "VVV", 2)
    assert model.log_likelihood_ == pytest.approx(printed["loglik"], abs=1e-3)
    assert -model.bic(X) == pytest.approx(printed["bic"], abs=2e-3)
    np.testing.assert_allclose(np.sort(model.weights_), printed["pro"], atol=1e-4)


def test_the_diabetes_of_the_vignette():
    X, printed = load("r/diabetes_mclust_fixed"), published("mclust.diabetes.vignette")["value"]
    model = fitted("diabetes_mclust_fixed", "VVV", 3)
    assert_as_printed(model, X, printed, 3)
    assert model.log_likelihood_ == pytest.approx(printed["loglik"], abs=SLACK)
    assert -model.icl(X) == pytest.approx(printed["icl"], abs=1.0)
    order = in_order(model, printed["pro"])
    np.testing.assert_allclose(np.bincount(model.labels_)[order], printed["sizes"], atol=2)
    np.testing.assert_allclose(model.weights_[order], printed["pro"], atol=1e-2)
    means = np.array(printed["means_rows_fpg_glucose_insulin"]).T
    np.testing.assert_allclose(model.means_[order], means, rtol=1e-2)


@pytest.mark.parametrize("name", ["VVE,5", "VVE,6"])
def test_the_next_best_models_of_the_vignette(name):
    X, printed = load("r/diabetes_mclust_fixed"), published("mclust.diabetes.vignette")["value"]["next"][name]
    structure, k = name.split(",")
    assert fitted("diabetes_mclust_fixed", structure, int(k)).bic(X) <= -printed + 2 * SLACK


@pytest.mark.parametrize("name", ["VVE,3", "EVE,5", "VVE,4", "VVV,4"])
def test_what_other_trees_lead_mclust_to_in_the_vignette(name):
    value = published("mclust.diabetes.vignette")["value"]
    printed = (value["with_hc_VARS"] | value["with_hc_EEE"])[name]
    structure, k = name.split(",")
    X = load("r/diabetes_mclust_fixed")
    assert fitted("diabetes_mclust_fixed", structure, int(k)).bic(X) <= -printed + 2 * SLACK


def test_likelihood_ratios_of_faithful():
    printed = published("mclust.faithful.lrt")["value"]
    one, two, three = (fitted("faithful", "VVV", k).log_likelihood_ for k in (1, 2, 3))
    assert 2 * (two - one) == pytest.approx(printed["1v2"], abs=1e-2)
    assert 2 * (three - two) >= printed["2v3"] - 2 * SLACK


def test_the_density_of_faithful():
    X, printed = load("r/faithful"), published("mclust.faithful.density")["value"]
    model = fitted("faithful", "EEE", 3)
    assert_as_printed(model, X, printed, 3)
    assert model.log_likelihood_ == pytest.approx(printed["loglik"], abs=0.05)
    assert -model.icl(X) == pytest.approx(printed["icl"], abs=1.0)


def test_the_diabetes_of_the_book():
    X, printed = load("r/diabetes_rrcov"), published("mclust.book.diabetes_rrcov")["value"]
    model = fitted("diabetes_rrcov", "VVV", 3)
    assert_as_printed(model, X, printed, 1)
    order = in_order(model, printed["pro"])
    assert model.log_likelihood_ == pytest.approx(printed["loglik"], abs=SLACK)
    assert -model.icl(X) == pytest.approx(printed["icl"], abs=1.0)
    np.testing.assert_allclose(np.bincount(model.labels_)[order], printed["sizes"], atol=2)
    np.testing.assert_allclose(model.weights_[order], printed["pro"], atol=2e-2)  # EM passes them, and goes on
    assert adjusted_rand_score(labels("diabetes_rrcov"), model.labels_) == pytest.approx(printed["ari"], abs=0.02)


def test_the_hemophilia_of_the_book():
    X, printed = load("r/hemophilia"), published("mclust.book.hemophilia")["value"]
    assert fitted("hemophilia", "VVV", 2).log_likelihood_ >= printed["loglik"] - 0.01
    model = GaussianMixture(2, covariance_type="VVV", init_params="hierarchical", tol=1e-5).fit(X)  # as mclust does
    assert_as_printed(model, X, printed, 2, slack=0.01)
    order = in_order(model, printed["pro"])
    assert -model.icl(X) == pytest.approx(printed["icl"], abs=0.5)
    np.testing.assert_allclose(np.bincount(model.labels_)[order], printed["sizes"], atol=1)
    np.testing.assert_allclose(model.weights_[order], printed["pro"], atol=1e-2)
    np.testing.assert_allclose(model.means_[order], printed["means"], atol=2e-3)


def test_the_rainfall_of_the_book_has_one_column():
    X, printed = load("r/precip"), published("mclust.book.precip")["value"]
    model = fitted("precip", "V", 2)
    assert_as_printed(model, X, printed, 2, slack=0.01)
    order = in_order(model, printed["pro"])
    assert -model.icl(X) == pytest.approx(printed["icl"], abs=0.1)
    assert np.bincount(model.labels_)[order].tolist() == printed["sizes"]
    np.testing.assert_allclose(model.weights_[order], printed["pro"], atol=2e-3)
    np.testing.assert_allclose(model.means_[order, 0], printed["means"], rtol=5e-3)
    np.testing.assert_allclose(model.covariances_[order], printed["variances"], rtol=2e-2)


# species that are known


@pytest.mark.parametrize("structure, example", [("EEE", "EEE (em.html)"), ("VVV", "VVV (me.html)")])
def test_em_from_the_species_of_iris_climbs_as_far_as_printed(structure, example):
    printed = published("mclust.iris.em_from_species")["value"][example]
    model = GaussianMixture(3, covariance_type=structure, init_params=labels("iris"), reg_covar=0, tol=1e-6)
    assert printed <= model.fit(load("r/iris")).log_likelihood_ + 1e-4
    assert model.log_likelihood_ == pytest.approx(printed, abs=1e-2)


def test_known_species_give_the_classes_of_discriminant_analysis():
    X, printed = load("r/iris"), published("mclust.edda.iris")["value"]
    species = labels("iris")
    model = GaussianMixture(3, covariance_type="VEV", reg_covar=0).fit(X, known_labels=species)
    assert model.n_parameters_ == printed["df"]
    assert model.score(X) * len(X) == pytest.approx(printed["loglik"], abs=6e-5)  # of the rows without the species
    assert -model.bic(X) == pytest.approx(printed["bic"], abs=6e-5)
    assert model.log_likelihood_ < printed["loglik"]  # of rows and species
    np.testing.assert_allclose(model.means_, [X[species == j].mean(axis=0) for j in range(3)], rtol=1e-12)
    np.testing.assert_allclose(model.weights_, 1 / 3, rtol=1e-12)
