"""What holds for every fit, on any table."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
from sklearn.base import clone

from fuzz import containers, estimators, tables
from fuzz.call import attempt
from fuzz.estimators import ALL, KINDS, benign_problem, having, problem, results
from fuzz.finding import LawBroken, Rejected, require, require_finite, require_same
from fuzz.law import Case, law

ANSWERS = ("predict", "predict_proba", "transform", "score_samples", "score")
UNBOUNDED = ("dof", "degrees_of_freedom")  # infinite for a Student t that is normal
SQUARES = ("inertia", "objective", "history", "covariance", "precision", "scale", "score")  # may not be representable


def fit(model: Any, X: Any, w: Any = None) -> Any:
    """The fitted model; ends the case if the library rejects the table with its own error."""
    return attempt(model.fit, X) if w is None else attempt(model.fit, X, sample_weight=w)


def require_same_results(model: Any, other: Any, what: str) -> None:
    """All fitted attributes must have the same bits."""
    expected = results(other)
    actual = results(model)
    require(actual.keys() == expected.keys(), f"{what}: attributes {sorted(actual)} and {sorted(expected)}")
    for name, value in expected.items():
        require_same(actual[name], value, f"{what}: {name}")


def squares_are_representable(X: Any, w: Any) -> bool:
    """Whether sums of weighted squares of the rows, and what they are divided by, have exponents of their type."""
    limit = 0.4 * np.log2(np.finfo(X.dtype).max)
    sizes = np.abs(X[X != 0]).astype(float)
    weights = np.ones(1) if w is None else w[w > 0]
    exponents = np.log2(np.r_[1.0, sizes.min(initial=1.0), sizes.max(initial=1.0)])
    return bool(np.abs(exponents).max() < limit and np.abs(np.log2(weights)).max() < 400)


def squares(model: Any) -> tuple[str, ...]:
    """Names of results in squared units of the rows, or their inverse."""
    names = SQUARES
    if getattr(model, "metric", None) == "softdtw":  # it is a square itself
        names += ("transform",)
    if getattr(model, "method", None) == "bisecting":  # heights are inertias
        names += ("linkage_matrix", "distances")
    return (*names, "gamma") if hasattr(model, "gamma_") else names


@law(ALL, weight=6)
def fits_are_finite_and_labels_are_predictions(case: Case) -> None:
    estimator, X, w = problem(case)
    model = fit(estimator, X, w)
    unchecked = UNBOUNDED if squares_are_representable(X, w) else UNBOUNDED + squares(model)
    if getattr(X, "dtype", None) == np.float32:
        unchecked += ("precision",)  # of a column that is constant but for rounding; a RangeWarning names them
    for name, value in results(model).items():
        if not any(part in name for part in unchecked):
            require_finite(value, name)
    k = getattr(model, "n_clusters", None) or getattr(model, "n_components", 1)
    require(model.labels_.shape == (len(X),), f"labels_ has shape {model.labels_.shape} for {len(X)} rows")
    require(model.labels_.min() >= 0 and model.labels_.max() < k, f"labels_ from {model.labels_.min()} up, k={k}")
    for name in ANSWERS:
        if hasattr(model, name):
            answer = attempt(getattr(model, name), X)
            if not any(part in name for part in unchecked):
                require_finite(answer, f"{name}(X)")
            if name == "predict" and KINDS[case.subject].labels_are_predictions:
                require_same(answer, model.labels_, "predict(X) is not labels_")


@law(ALL)
def plain_tables_are_never_rejected(case: Case) -> None:
    estimator, X = benign_problem(case)
    try:
        fit(estimator, X)
    except Rejected as error:
        raise LawBroken(f"rejected: {error}") from error


@law(having("history_falls"), weight=3)
def the_objective_never_rises(case: Case) -> None:
    estimator, X, w = problem(case)
    model = fit(estimator, X, w)
    history = np.asarray(model.history_, dtype=float)
    rounding = 1e-9 if X.dtype == np.float64 else 1e-5
    # a center is rounded to the type of the rows, which costs up to the square of that rounding, or as much for medians
    weight = float(len(X) if w is None else w.sum())
    size = 1.0 if case.subject == "SphericalKMeans" else np.float64(np.abs(X).max())  # which scales rows to length one
    ulp = np.float64(np.finfo(X.dtype).eps) * size
    with np.errstate(over="ignore"):
        slack = ulp if case.subject == "KMedians" else ulp**2
        allowed = rounding * np.abs(history[:-1]) + weight * X.shape[1] * slack
    # an objective that has no representation in the units of the data is infinite
    require((history[1:] <= history[:-1] + allowed).all(), f"history_ rises: {history}")


@law(["GaussianMixture", "BayesianGaussianMixture", "Mixture"], weight=2)
def the_likelihood_never_falls(case: Case) -> None:
    """With the prior, after each E-step, unless a component had to be repaired."""
    estimator, X, w = problem(case)
    history = fit(estimator, X, w).history_
    if getattr(history, "events", ()):
        return
    values = history.lower_bound
    if hasattr(history, "log_likelihood"):
        values = (history.log_likelihood + history.log_prior)[history.step == "E"]
    weight = float(len(X) if w is None else w.sum())
    allowed = (1e-9 if X.dtype == np.float64 else 1e-5) * (np.abs(values[:-1]) + weight * np.log2(2 + np.abs(X).max()))
    require(
        (np.diff(values) >= -allowed).all(), f"the objective falls by {-np.diff(values).min(initial=0.0):g}: {values}"
    )


@law(having("has_engine"), weight=2)
def threads_change_nothing(case: Case) -> None:
    n = case.draw.one_of([50, 300, 3000]) if case.subject in ("KMeans", "MiniBatchKMeans", "SphericalKMeans") else 60
    estimator = estimators.build(case, n, engine="serial")
    X = estimators.rows(case, estimator, tables.hostile(case.draw, n, case.draw.integer(1, 6)))
    w = tables.weights(case.draw, n)
    alone = fit(estimator, X, w)
    for n_jobs in (1, 2, 3):
        together = fit(clone(estimator).set_params(engine="threads", n_jobs=n_jobs), X, w)
        require_same_results(together, alone, f"engine='threads', n_jobs={n_jobs}")


@law(ALL, weight=2)
def a_second_fit_gives_the_same_bits(case: Case) -> None:
    """Also after a fit to other rows, and after pickling."""
    estimator, X, w = problem(case)
    first = fit(estimator, X, w)
    again = clone(estimator)
    if case.draw.happens(0.5) and len(X) > 3:
        again = fit(again, X[::-1][: max(3, len(X) // 2)])
    require_same_results(fit(again, X, w), first, "second fit")
    copy = pickle.loads(pickle.dumps(first))
    require_same(copy.predict(X), first.predict(X), "predictions of the pickled model")


@law(ALL)
def y_is_ignored(case: Case) -> None:
    estimator, X, w = problem(case)
    model = fit(clone(estimator), X, w)
    n = len(X)
    kind = case.draw.one_of(["whole", "text", "real"])
    y = {"whole": np.arange(n) % 3, "text": np.array(["a", "b"] * n)[:n], "real": case.draw.rng.normal(size=n)}[kind]
    other = attempt(clone(estimator).fit, X, y) if w is None else attempt(clone(estimator).fit, X, y, sample_weight=w)
    require_same_results(other, model, f"fit(X, y) with y of {kind} values")


@law([name for name in ALL if name != "KernelKMeans"], weight=2)
def labels_do_not_depend_on_other_rows(case: Case) -> None:
    """Few rows have other kernels than many. Sums of kernel values can cancel to less than their rounding errors."""
    estimator, X, w = problem(case)
    model = fit(estimator, X, w)
    labels = attempt(model.predict, X)
    many = attempt(model.predict, np.tile(X, (1 + 2000 // len(X), 1)))
    require_same(many[: len(X)], labels, "predict of many rows")
    for i in case.draw.rng.permutation(len(X))[:10]:
        require_same(attempt(model.predict, X[i : i + 1]), labels[i : i + 1], f"predict of row {i}")


@law(ALL, weight=2)
def containers_change_nothing(case: Case) -> None:
    estimator, X, w = problem(case)
    model = fit(clone(estimator), X, w)
    container = case.draw.one_of(containers.DENSE)
    case.note(f"container: {container.__name__}")
    other = container(X)
    require_same_results(fit(clone(estimator), other, w), model, container.__name__)
    require_same(attempt(model.predict, X), attempt(model.predict, X.copy()), "predict")


@law(having("sparse"), weight=2)
def sparse_rows_are_the_same_rows(case: Case) -> None:
    """Sums of sparse rows round differently, so objectives are compared, of one pass from the same centers."""
    k, d = case.draw.integer(1, 5), case.draw.integer(2, 12)
    n = case.draw.integer(k, 80)
    X = np.where(case.draw.rng.random((n, d)) < 0.3, tables.blobs(case.draw, n, d), 0.0)
    X[: n // 10] = 0.0  # rows without a value
    estimator = estimators.build(case, n, n_clusters=k)
    if case.subject == "SphericalKMeans":
        X[:, 0] += 1.0
    model = fit(clone(estimator), containers.csr(X))
    require_finite(model.cluster_centers_, "cluster_centers_")
    require_same(model.predict(containers.csr(X)), model.labels_, "predict(X) is not labels_ for sparse rows")


@law(having("missing"), weight=2)
def missing_values_are_left_out(case: Case) -> None:
    n = case.draw.integer(4, 120)
    options = {"search": "none", "search_budget": None, "algorithm": "auto"} if case.subject == "KMeans" else {}
    estimator = estimators.build(case, n, missing="ignore", **options)
    X = tables.with_missing(case.draw, tables.hostile(case.draw, n, case.draw.integer(2, 6), scaled=False))
    model = fit(estimator, X, tables.weights(case.draw, n))
    for name, value in results(model).items():
        if "kl" not in name:
            require_finite(value, name)
    require_same(attempt(model.predict, X), model.labels_, "predict(X) is not labels_")
