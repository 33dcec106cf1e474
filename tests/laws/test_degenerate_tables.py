"""Tables that are discrete, duplicated or rank-deficient: every mixture climbs, warns of nothing and stays finite."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coterie import BayesianGaussianMixture, GaussianMixture, Mixture
from coterie.families import Gaussian, Product, StudentT
from coterie.families.structures import STRUCTURES

rng = np.random.default_rng(0)
CLOUD = rng.normal(size=(60, 3))
TABLES = {
    "counts": rng.poisson(0.4, (120, 3)).astype(float),
    "few distinct rows": np.repeat(rng.normal(size=(5, 3)), [1, 4, 9, 20, 26], axis=0),
    "one distinct row": np.full((20, 2), 3.0),
    "a constant column": np.column_stack([CLOUD, np.full(60, 7.0)]),
    "a column twice": np.column_stack([CLOUD, CLOUD[:, 0]]),
    "a sum of columns": np.column_stack([CLOUD, CLOUD @ [1.0, 2.0, 3.0]]),
    "zeros and ones": (rng.random((80, 4)) < 0.2).astype(float),
    "duplicates in a cloud": np.concatenate([CLOUD, np.zeros((40, 3))]),
    "rounded, far away": np.round(CLOUD) * 1e-3 + 1e6,
    "more columns than rows": rng.normal(size=(8, 12)),
}


def halves(family, other):
    """The first columns of a table have one family, the others another."""
    return lambda d: Product([(family, range(d // 2)), (other, range(d // 2, d))])


EACH = {"init_params": "random_from_data"}
FAMILIES = ("von_mises_fisher", "poisson", "multinomial", "categorical", "bernoulli", "exponential", "gamma")
MODELS = {
    **{
        f"GaussianMixture {name}": lambda d, s=name: GaussianMixture(3, covariance_type=s, **EACH)
        for name in STRUCTURES
    },
    "GaussianMixture prior": lambda d: GaussianMixture(3, prior="default", **EACH),
    "GaussianMixture missing": lambda d: GaussianMixture(3, missing="ignore", **EACH),
    **{
        f"Bayesian {form}": lambda d, form=form: BayesianGaussianMixture(3, covariance_type=form, **EACH)
        for form in ("full", "tied", "diag", "spherical")
    },
    "student_t": lambda d: Mixture(3, "student_t", **EACH),
    "student_t diag": lambda d: Mixture(3, StudentT(structure="diag"), **EACH),
    "student_t, dof 4": lambda d: Mixture(3, StudentT(dof=4.0), **EACH),
    "student_t, dof 1/2": lambda d: Mixture(3, StudentT(dof=0.5), **EACH),
    "student_t, no floor": lambda d: Mixture(3, StudentT(reg_covar=0.0), **EACH),
    **{name: lambda d, name=name: Mixture(3, name, **EACH) for name in FAMILIES},
    "product": lambda d: Mixture(3, halves(Gaussian(), StudentT())(d), **EACH),
    "product diag": lambda d: Mixture(3, halves(Gaussian("diag"), Gaussian("spherical"))(d), **EACH),
    "product missing": lambda d: Mixture(3, halves(Gaussian("diag"), "poisson")(d), missing="ignore", **EACH),
    "auto": lambda d: Mixture("auto", Gaussian()),
    "auto diag": lambda d: Mixture("auto", Gaussian("diag")),
}
RUNS = [  # dtype, whether rows have weights, options
    (np.float64, False, {}),
    (np.float32, True, {}),
    (np.float64, True, {"accelerate": True}),
]


def rows_for(name, X):
    """The table with values that the model takes, as many of them equal as before."""
    if name == "gamma":
        return np.abs(X) + 1.0
    if name in ("exponential", "von_mises_fisher"):
        return np.abs(X) + (name == "von_mises_fisher")
    if name in FAMILIES:
        X = np.abs(np.round(X)) % (2 if name == "bernoulli" else 50)
        return X + (np.arange(X.shape[1]) == 0) if name == "multinomial" else X
    if name == "product missing":
        X = np.where(np.arange(X.shape[1]) < X.shape[1] // 2, X, np.abs(np.round(X)))
    if name.endswith("missing"):
        gaps = np.random.default_rng(5).random(X.shape) < 0.15
        return np.where(gaps & ~gaps.all(axis=1, keepdims=True), np.nan, X)
    return X


def climb(name, X, dtype, weighted, options, seed=0, max_iter=40):
    """Fits, and checks that the objective never falls and all that comes out is finite."""
    X = rows_for(name, X).astype(dtype)
    w = np.random.default_rng(9).exponential(size=len(X)) if weighted else None
    model = MODELS[name](X.shape[1]).set_params(random_state=seed, max_iter=max_iter, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, sample_weight=w)  # an ObjectiveRoseWarning is an error
    history = model.history_
    objective = history.lower_bound
    if hasattr(history, "log_prior"):
        objective = (history.log_likelihood + history.log_prior)[history.step == "E"]
    off = 1e-9 if dtype == np.float64 else 1e-5
    if not getattr(history, "events", ()):  # of components that had to start anew
        assert (np.diff(objective) >= -off * (len(X) + np.abs(objective[1:]))).all()
    for values in (objective, *leaves(model), model.predict_proba(X), model.score_samples(X)):
        assert np.isfinite(values).all()
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    return model


def leaves(model):
    """The arrays of numbers that users see of a mixture."""
    found = getattr(model, "components_", None)
    parts = found.values() if isinstance(found, dict) else [found or (model.means_, model.covariances_)]
    return [model.weights_, *(array for part in parts for array in part)]


@pytest.mark.parametrize("name", MODELS)
def test_every_mixture_climbs_on_degenerate_tables(name):
    runs = [run for run in RUNS if "auto" not in name or not run[2]]
    for i, X in enumerate(TABLES.values()):
        climb(name, X, *runs[i % len(runs)])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_mixture_climbs_on_degenerate_tables_in_every_way(name):
    runs = [run for run in RUNS if "auto" not in name or not run[2]]
    for X, run, seed in product(TABLES.values(), runs, range(3)):
        climb(name, X, *run, seed=seed, max_iter=300)


@pytest.mark.parametrize("seed", [3, 6, 8, 9, 11])
def test_students_t_of_counts_climbs_and_keeps_its_floor(seed):
    X = np.random.default_rng(seed).poisson(0.4, (200, 3)).astype(float)
    model = Mixture(3, "student_t", random_state=seed, max_iter=2000).fit(X)
    objective = (model.history_.log_likelihood + model.history_.log_prior)[model.history_.step == "E"]
    assert (np.diff(objective) >= -1e-9 * np.abs(objective[1:])).all()
    assert (model.components_.dof >= 1.0).all()
    floor = 1e-6 * X.var(axis=0) / 3 / model.weights_[:, None]  # as if the rows of an average component varied by it
    assert (np.diagonal(model.components_.scale, axis1=1, axis2=2) >= (1 - 1e-6) * floor).all()


@pytest.mark.parametrize("structure", ["full", "diag"])
def test_a_component_of_equal_rows_is_at_the_floor_and_nowhere_else(structure):
    X = np.repeat([[0.0, 0.0], [5.0, 1.0]], 30, axis=0)
    labels = np.repeat([0, 1], 30)
    model = Mixture(2, StudentT(structure=structure), init_params=labels).fit(X)
    np.testing.assert_allclose(model.components_.location, [[0.0, 0.0], [5.0, 1.0]], atol=1e-12)
    expected = 1e-6 * X.var(axis=0)  # two components of equal weight: each is an average one
    scale = model.components_.scale
    own = np.diagonal(scale, axis1=1, axis2=2) if structure == "full" else scale
    np.testing.assert_allclose(own, [expected, expected], rtol=1e-6)
    np.testing.assert_array_equal(model.labels_, labels)
    again = Mixture(2, StudentT(structure=structure), init_params=labels).fit(X, sample_weight=np.full(60, 1e-9))
    np.testing.assert_allclose(again.components_.scale, scale, rtol=1e-6, atol=1e-12)
