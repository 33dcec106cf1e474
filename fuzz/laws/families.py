"""Families: densities are SciPy's, fits are maxima, weights are repeated rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from coterie import families, mixture
from fuzz import tables
from fuzz.call import attempt
from fuzz.estimators import in_support
from fuzz.finding import require, require_close, require_finite
from fuzz.law import Case, law

Array = np.ndarray[Any, Any]

NAMES = {"Bernoulli": "bernoulli", "Categorical": "categorical", "Exponential": "exponential", "Gamma": "gamma",
         "Gaussian": "gaussian", "Multinomial": "multinomial", "Poisson": "poisson", "StudentT": "student_t",
         "VonMisesFisher": "von_mises_fisher"}  # fmt: skip
FAMILIES = [f"families.{name}" for name in (*NAMES, "Product")]
IN_SCIPY: dict[str, Callable[[Any, Array], Array]] = {
    "Poisson": lambda f, X: stats.poisson(f.rate_).logpmf(X).sum(axis=1),
    "Bernoulli": lambda f, X: stats.bernoulli(f.probability_).logpmf(X).sum(axis=1),
    "Exponential": lambda f, X: stats.expon(scale=1 / f.rate_).logpdf(X).sum(axis=1),
    "Gamma": lambda f, X: stats.gamma(f.shape_, scale=1 / f.rate_).logpdf(X).sum(axis=1),
    "Gaussian": lambda f, X: stats.multivariate_normal(f.mean_, f.covariance_, allow_singular=True).logpdf(X),
    "StudentT": lambda f, X: stats.multivariate_t(f.location_, f.scale_, f.dof_, allow_singular=True).logpdf(X),
}


def maker(case: Case, columns: int) -> Callable[[], Any]:
    """Makes the family that is the subject of the case, always with the same options."""
    name = case.subject.partition(".")[2]
    if name == "Product":
        return lambda: families.Product([("poisson", [0]), ("gaussian", list(range(1, columns)))])
    options: dict[str, Any] = {}
    if name in ("Gaussian", "StudentT"):
        options["structure"] = case.draw.one_of(["full", "diag"])
    case.note(f"{name}(**{options})")
    return lambda: getattr(families, name)(**options)


def support(case: Case, X: Array) -> Array:
    """`X` changed to values that the family takes."""
    name = case.subject.partition(".")[2]
    if name == "Product":
        return np.column_stack([in_support("poisson", X[:, :1]), X[:, 1:]])
    X = in_support(NAMES[name], X)
    if name == "Multinomial":
        X[:, 0] += 1.0  # a row of zeros is no draw
    if name == "VonMisesFisher":
        X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    return X


@law(FAMILIES, weight=3)
def densities_are_those_of_scipy(case: Case) -> None:
    X = support(case, tables.blobs(case.draw, case.draw.integer(12, 60), case.draw.integer(2, 3)))
    family = attempt(maker(case, X.shape[1])().fit, X)
    values = attempt(family.log_prob, X)
    require_finite(values, "log_prob")
    name = case.subject.partition(".")[2]
    if name in IN_SCIPY and np.ndim(getattr(family, "covariance_", getattr(family, "scale_", np.eye(1)))) == 2:
        require_close(values, IN_SCIPY[name](family, X), "log_prob", 1e-6, 1e-6)


def rows_with_one_maximum(case: Case, low: int, high: int) -> np.ndarray:
    """From `low` to `high` rows on which the likelihood has one maximum.

    That of Student's t has several on rows in clusters, and none if a row has a large share of the weight.
    """
    d = case.draw.integer(2, 3)
    if case.subject == "families.StudentT":
        return support(case, case.draw.rng.normal(size=(case.draw.integer(low + 12, high + 12), d)))
    return support(case, tables.blobs(case.draw, case.draw.integer(low, high), d))


@law(FAMILIES, weight=3)
def a_fit_is_a_maximum(case: Case) -> None:
    """No other parameters, such as those fitted to other rows, make the rows more likely."""
    X = rows_with_one_maximum(case, 8, 60)
    n, d = X.shape
    w = case.draw.one_of([None, case.draw.rng.integers(1, 4, size=n).astype(float)])
    new = maker(case, d)
    family = attempt(new().fit, X, w)
    weights = np.ones(n) if w is None else w
    best = float(weights @ attempt(family.log_prob, X))
    rows = np.sort(case.draw.rng.integers(n, size=n))
    try:
        other = new().fit(X[rows])
        value = float(weights @ other.log_prob(X))
    except ValueError:
        return  # a sample may lack a category that the rows have
    require(value <= best + 1e-6 * max(1.0, abs(best)), f"log-likelihood {best}; {value} with other parameters")


@law(FAMILIES)
def weights_of_families_are_repeated_rows(case: Case) -> None:
    X = rows_with_one_maximum(case, 8, 40)
    n, d = X.shape
    w = case.draw.rng.integers(0, 4, size=n)
    w[:6] = 1
    new = maker(case, d)
    weighted = attempt(new().fit, X, w.astype(float))
    repeated = attempt(new().fit, np.repeat(X, w, axis=0))
    there = w > 0
    require_close(weighted.log_prob(X[there]), repeated.log_prob(X[there]), "log_prob", 1e-5, 1e-4)


@law(FAMILIES, weight=3)
def families_are_finite_on_any_table(case: Case) -> None:
    n, d = case.draw.integer(1, 60), case.draw.integer(2, 4)
    X = support(case, tables.hostile(case.draw, n, d, scaled=False).astype(float))
    case.note(f"X: {X.shape}, from {X.min():g} to {X.max():g}")
    family = attempt(maker(case, d)().fit, X, tables.weights(case.draw, n))
    require_finite(attempt(family.log_prob, X), "log_prob")
    rows = attempt(family.sample, 5, random_state=0)
    require(np.shape(rows) == (5, d), f"sample(5) has shape {np.shape(rows)} for {d} columns")
    require_finite(rows, "sample")


@law(["families.as_family", "families.Family", "families.ExponentialFamily"])
def families_have_names(case: Case) -> None:
    name = case.draw.one_of(list(NAMES.values()))
    family = attempt(families.as_family, name)
    require(isinstance(family, families.Family) and families.as_family(family) is family, f"as_family({name!r})")


PRIORS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "families.GammaPrior": (lambda draw: families.GammaPrior(draw.one_of([1.0, 3.0]), 2.0), "Poisson"),
    "families.BetaPrior": (lambda draw: families.BetaPrior(draw.one_of([1.0, 3.0]), 2.0), "Bernoulli"),
    "families.DirichletPrior": (lambda draw: families.DirichletPrior(draw.one_of([1.0, 3.0])), "Multinomial"),
    "mixture.Prior": (lambda draw: mixture.Prior(shrinkage=draw.one_of([0.01, 2.0])), "Gaussian"),
}


@law(PRIORS)
def priors_lower_the_likelihood(case: Case) -> None:
    """The most probable parameters make the rows at most as likely as the likeliest ones do."""
    make, name = PRIORS[case.subject]
    X = in_support(NAMES[name], tables.blobs(case.draw, case.draw.integer(12, 60), 3))
    if name == "Multinomial":
        X[:, 0] += 1.0
    plain = attempt(getattr(families, name)().fit, X)
    believed = attempt(getattr(families, name)().fit, X, prior=make(case.draw))
    values = [float(attempt(each.log_prob, X).sum()) for each in (believed, plain)]
    require_finite(values, "log-likelihood")
    require(values[0] <= values[1] + 1e-6 * abs(values[1]), f"with a prior {values[0]}, without {values[1]}")
