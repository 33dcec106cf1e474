"""Every iterative estimator says how its fit went: `n_iter_`, `converged_`, `history_`, and its objective."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import coterie
from coterie.algorithms import ESTIMATORS
from coterie.core.progress import Progress
from coterie.selection.resampling import count_option

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3)) + 6 * rng.integers(0, 3, size=(90, 1))
OBJECTIVES = ("inertia_", "objective_", "log_likelihood_", "lower_bound_")  # the first that an estimator has
ITERATIVE = [name for name in ESTIMATORS if "max_iter" in getattr(coterie, name)().get_params()]


def fitted(name, k=3, **options):
    estimator = getattr(coterie, name)(random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.set_params(**{count_option(estimator): k}).fit(X)


def test_all_estimators_but_those_with_trees_are_iterative():
    assert set(ESTIMATORS) - set(ITERATIVE) == {"AgglomerativeClustering", "DBSCAN", "DivisiveClustering", "HDBSCAN"}


@pytest.mark.parametrize("name", ITERATIVE)
def test_a_fit_has_its_iterations_its_convergence_its_history_and_its_objective(name):
    states = []
    model = fitted(name, callback=states.append)
    assert {type(state) for state in states} == {Progress}
    assert isinstance(model.n_iter_, int)
    assert model.n_iter_ > 0
    assert model.converged_ is True
    objective = next(getattr(model, attribute) for attribute in OBJECTIVES if hasattr(model, attribute))
    assert isinstance(objective, float)
    documentation = type(model).__doc__
    assert all(attribute in documentation for attribute in ("n_iter_", "converged_", "history_"))
    history = model.history_
    assert len(history) > 0
    if name == "MiniBatchKMeans":  # of batches
        assert len(history) == model.n_steps_
    elif isinstance(history, np.ndarray):  # one value at the start, and one after each iteration
        assert len(history) == model.n_iter_ + 1
        assert history[-1] == pytest.approx(objective, rel=1e-12)
    else:
        last = history.log_likelihood if hasattr(model, "log_likelihood_") else history.lower_bound
        assert last[-1] == pytest.approx(objective, rel=1e-9)


@pytest.mark.parametrize(
    "name, options",
    [
        ("BisectingKMeans", {"max_iter": 1, "init": "forgy", "n_init": 1}),
        ("KMeans", {"max_iter": 1, "init": "forgy", "n_init": 1}),
        ("MiniBatchKMeans", {"max_iter": 1, "batch_size": 10, "max_no_improvement": None}),
    ],
)
def test_a_fit_that_max_iter_ends_has_not_converged(name, options):
    assert fitted(name, k=8, **options).converged_ is False
