"""Invalid arguments get one clear error, never one from the inside of the library."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import coterie
from coterie import distances, families, hierarchy, metrics, selection
from fuzz import estimators, tables
from fuzz.call import expect_error
from fuzz.draw import Draw
from fuzz.estimators import ALL
from fuzz.finding import LawBroken, Rejected
from fuzz.law import Case, law
from fuzz.laws.fits import fit

NEVER_VALID: tuple[Any, ...] = (object(), "", "no such value", b"bytes", -1.5, float("nan"), {}, 1j)
FREE = (  # arguments that take any object, or ignore it
    "verbose", "checkpoint", "warm_start", "accelerate", "compute_full_tree", "compute_distances", "memory", "y",
    "names", "table", "kernel_params",
)  # fmt: skip
NO_TABLES: tuple[Callable[[Draw], Any], ...] = (  # valid lists of series, and no tables
    lambda draw: np.zeros((2, 2, 2)),
    lambda draw: [[1.0, 2.0], [3.0]],
    lambda draw: np.zeros(5),
)
BAD_TABLES: tuple[Callable[[Draw], Any], ...] = (
    lambda draw: np.full((5, 2), np.nan),
    lambda draw: np.where(np.eye(6, 3) > 0, np.inf, 1.0),
    lambda draw: np.zeros((0, 3)),
    lambda draw: np.zeros((5, 0)),
    lambda draw: [["a", "b"], ["c", "d"]],
    lambda draw: np.array([[1, "x"], [2, "y"]], dtype=object),
    lambda draw: np.array([[1 + 2j, 3.0]] * 4),
    lambda draw: None,
    lambda draw: "no such file.csv",
    lambda draw: 7,
    lambda draw: sparse.csr_array((0, 3)),
    lambda draw: sparse.csr_array(np.array([[np.nan, 1.0], [0.0, 2.0]])),
)
BAD_WEIGHTS: tuple[Callable[[int], Any], ...] = (
    lambda n: np.zeros(n),
    lambda n: -np.ones(n),
    lambda n: np.full(n, np.nan),
    lambda n: np.full(n, np.inf),
    lambda n: np.ones(n + 1),
    lambda n: np.ones((n, 2)),
    lambda n: ["a"] * n,
    lambda n: 1j * np.ones(n),
)


def reject(what: str, function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """The call must raise an allowed error."""
    try:
        expect_error(function, *args, **options)
    except Rejected:
        return
    raise LawBroken(f"accepted: {what}")


# options that are read only where others have these values
READ_WITH: dict[str, dict[str, Any]] = {
    "n_jobs": {"engine": "threads"},
    "bisecting_strategy": {"method": "bisecting"},
    "init": {"method": "bisecting"},
    "n_init": {"method": "bisecting"},
    "random_state": {"method": "bisecting"},
    "degree": {"kernel": "poly"},
    "coef0": {"kernel": "poly"},
    "n_landmarks": {"approximation": "nystrom"},
    "max_clusters": {"objective": "silhouette", "n_clusters": "auto"},
}
EMPTY_IS_VALID = ("metric_params", "fixed", "must_link", "cannot_link")  # no parameters, no links


@law(ALL, weight=3)
def invalid_options_are_rejected(case: Case) -> None:
    known = getattr(coterie, case.subject)().get_params()
    name, value = case.draw.one_of([name for name in known if name not in FREE]), case.draw.one_of(NEVER_VALID)
    is_valid = (name in EMPTY_IS_VALID and not value) or (name == "coef0" and value == -1.5)  # of kernels, any number
    if is_valid:
        value = 1j
    needed = {option: needed for option, needed in READ_WITH.get(name, {}).items() if option in known}
    case.note(f"{name}={value!r}")
    reject(f"{name}={value!r}", getattr(coterie, case.subject)(**{**needed, name: value}).fit, valid_rows(case))


def valid_rows(case: Case) -> Any:
    """Whole numbers above zero, which every estimator takes."""
    return np.abs(np.round(tables.blobs(case.draw, 12, 3))) + 1.0 + np.eye(12, 3)


@law(ALL, weight=3)
def invalid_tables_are_rejected(case: Case) -> None:
    choices = BAD_TABLES if case.subject == "TimeSeriesKMeans" else BAD_TABLES + NO_TABLES
    X = case.draw.one_of(choices)(case.draw)
    case.note(f"X = {X!r}")
    reject(f"X = {X!r}", estimators.build(case, 4).fit, X)
    model = fit(getattr(coterie, case.subject)(), valid_rows(case))
    reject(f"predict(X) of X = {X!r}", model.predict, X)


@law([name for name in ALL if name != "Mixture"])
def invalid_weights_are_rejected(case: Case) -> None:
    X = tables.blobs(case.draw, 12, 3)
    w = case.draw.one_of(BAD_WEIGHTS)(12)
    case.note(f"sample_weight = {w!r}")
    reject(f"sample_weight = {w!r}", estimators.build(case, 12).fit, X, sample_weight=w)


@law([name for name in ALL if name != "TimeSeriesKMeans"])  # whose series may have other lengths
def columns_must_be_those_of_the_fit(case: Case) -> None:
    X = valid_rows(case)
    model = fit(getattr(coterie, case.subject)(), X)
    reject("rows with a column more", model.predict, np.column_stack([X, X[:, :1]]))


FUNCTIONS: dict[str, Any] = {
    **{f"metrics.{name}": getattr(metrics, name) for name in metrics.__all__},
    **{f"distances.{name}": getattr(distances, name) for name in ("pairwise", "dtw", "soft_dtw", "dba", "dtw_path")},
    **{
        f"hierarchy.{name}": getattr(hierarchy, name)
        for name in hierarchy.__all__
        if name[0].islower() and name != "check_tree"
    },
    **{
        f"selection.{name}": getattr(selection, name)
        for name in selection.__all__
        if name[0].islower() and name not in ("stability", "sweep", "choose_k")
    },
    **{
        f"families.{name}": getattr(families, name)
        for name in ("Poisson", "Gaussian", "Gamma", "Bernoulli", "StudentT", "Multinomial", "Categorical")
    },
    "choose_k": coterie.choose_k,
    "diagnose": coterie.diagnose,
    "explain": coterie.explain,
    "load": coterie.load,
}


@law(FUNCTIONS, weight=2)
def functions_reject_nonsense_with_a_clear_error(case: Case) -> None:
    """Random nonsense for every required argument, and for one option."""
    function = FUNCTIONS[case.subject]
    parameters = inspect.signature(function).parameters.values()
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = [p.name for p in plain if p.default is p.empty]
    chosen = {name: _nonsense(case.draw) for name in required}
    optional = [p.name for p in plain if p.default is not p.empty and p.name not in FREE]
    if optional and case.draw.happens(0.5):
        chosen[case.draw.one_of(optional)] = _nonsense(case.draw)
    case.note(f"{case.subject}(**{chosen!r})")
    if case.subject.startswith("families."):
        expect_error(lambda **options: function(**options).fit(_nonsense(case.draw)), **chosen)
    else:
        expect_error(function, **chosen)


def _nonsense(draw: Draw) -> Any:
    table = draw.one_of(BAD_TABLES + NO_TABLES)(draw)
    small = draw.one_of([np.ones((3, 4)), np.array([[0.0, 1.0, 1.0, 2.0]]), np.arange(4), [0, 0, 1, 1], 0, 1, -1])
    return draw.one_of([table, small, draw.one_of(NEVER_VALID)])
