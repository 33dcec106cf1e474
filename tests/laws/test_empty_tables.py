"""A table without rows, without columns, or that is none is an `InputError`, wherever a table can be given."""

import inspect
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import coterie
from coterie import distances, hierarchy, metrics, selection
from coterie.errors import InputError

TABLES = {
    "no rows": np.empty((0, 3)),
    "no columns": np.empty((5, 0)),
    "nothing": np.empty((0, 0)),
    "an empty list": [],
    "empty lists": [[], []],
    "None": None,
    "one number": 3.0,
    "sparse": sparse.csr_array((0, 3)),
    "a frame without rows": pl.DataFrame({"a": []}, schema={"a": pl.Float64}),
    "a frame without columns": pl.DataFrame(),
}
X = np.random.default_rng(0).normal(size=(20, 3))
NEEDED = {"Mixture": (2, "gaussian")}
ESTIMATORS = [name for name in coterie.__all__ if hasattr(getattr(coterie, name), "fit")]
VERBS = ("predict", "predict_proba", "transform", "score", "score_samples", "partial_fit", "bic", "fit_predict")
OF_TABLES = {
    name: getattr(metrics, name)
    for name in metrics.__all__
    if inspect.isfunction(getattr(metrics, name)) and "X" in inspect.signature(getattr(metrics, name)).parameters
}
CALLS = {
    **{f"metrics.{name}": function for name, function in OF_TABLES.items()},
    "hierarchy.linkage": hierarchy.linkage,
    "distances.pairwise": distances.pairwise,
    "choose_k": coterie.choose_k,
    "diagnose": coterie.diagnose,
    "sweep": lambda X: selection.sweep(coterie.KMeans(), X, [2]),
    "stability": lambda X: selection.stability(coterie.KMeans(), X, [2]),
    "gap_statistic": lambda X: selection.gap_statistic(X, [2]),
    "mixture_table": lambda X: selection.mixture_table(X, [2]),
    "tendency": lambda X: selection.tendency(X, [2]),
    "x_means": selection.x_means,
    "g_means": selection.g_means,
}


@contextmanager
def rejected(what):
    """The block raises an `InputError`; `what` is told where it does not."""
    try:
        yield
    except InputError:
        return
    pytest.fail(f"{what} was accepted")


def new(name):
    return getattr(coterie, name)(*NEEDED.get(name, ()))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_rejects_an_empty_table(name):
    for what, table in TABLES.items():
        with rejected(what):
            new(name).fit(table)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_answer_of_a_fitted_estimator_rejects_an_empty_table(name):
    model = new(name).fit(X)
    for verb in VERBS:
        for what, table in TABLES.items() if hasattr(model, verb) else ():
            with rejected(f"{verb}: {what}"):
                getattr(model, verb)(table)


@pytest.mark.parametrize("name", CALLS)
def test_every_function_of_a_table_rejects_an_empty_one(name):
    function = CALLS[name]
    takes_labels = "labels" in inspect.signature(function).parameters
    for what, table in TABLES.items():
        labels = (np.zeros(np.shape(table)[0] if np.ndim(table) else 0, dtype=int),) if takes_labels else ()
        with rejected(what):
            function(table, *labels)
