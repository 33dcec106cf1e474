"""A target `y` changes no fit of any public estimator, as everywhere in scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import GaussianMixture, Mixture
from coterie.families import Poisson
from public_estimators import CLASSES, seeded

X, SPECIES = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
rng = np.random.default_rng(0)
TARGETS = {
    "species": SPECIES,
    "text": NAMES.tolist(),
    "random labels": rng.integers(-1, 7, size=len(X)),
    "random numbers": np.where(rng.random(len(X)) < 0.1, np.nan, rng.normal(size=len(X))),
    "several columns": rng.normal(size=(len(X), 2)),
}
MODELS = [
    *(seeded(kind) for kind in CLASSES),
    Mixture(3, Poisson(), random_state=0),
    Mixture(2, "student_t", random_state=0),
    Mixture(n_components="auto", random_state=0),
]
EVERY = pytest.mark.parametrize("model", MODELS, ids=repr)
FOLDS = KFold(2, shuffle=True, random_state=0)


def assert_same(a, b):
    """That two fitted values are equal, to the last bit, whatever they are made of."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        assert_same(list(a.values()), list(b.values()))
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif isinstance(a, np.ndarray | np.generic | float | int | str | None):
        np.testing.assert_array_equal(a, b)
    else:
        assert_same(vars(a), vars(b))


def assert_same_fit(one, other):
    shown = [{name: value for name, value in vars(model).items() if name.endswith("_")} for model in (one, other)]
    assert shown[0]
    assert_same(*shown)


def rows_of(model):
    """Rows that the model takes."""
    return np.round(X) if isinstance(getattr(model, "family", None), Poisson) else X


@EVERY
def test_a_target_changes_no_fit(model):
    rows = rows_of(model)
    plain = clone(model).fit(rows)
    for y in (None, *TARGETS.values()):
        again = clone(model)
        np.testing.assert_array_equal(again.fit_predict(rows, y), plain.labels_)
        assert_same_fit(again, plain)


@pytest.mark.parametrize("model", [model for model in MODELS if hasattr(model, "partial_fit")], ids=repr)
def test_a_target_changes_no_batch(model):
    rows = rows_of(model)[np.random.default_rng(1).permutation(len(X))]
    plain = clone(model).partial_fit(rows[:100]).partial_fit(rows[100:])
    for y in (SPECIES, NAMES):
        assert_same_fit(clone(model).partial_fit(rows[:100], y[:100]).partial_fit(rows[100:], y[100:]), plain)


@EVERY
def test_a_grid_search_scores_fits_that_never_saw_the_target(model):
    rows = rows_of(model)
    pipeline = make_pipeline(StandardScaler() if rows is X else "passthrough", model)
    search = GridSearchCV(pipeline, {}, scoring="adjusted_rand_score", cv=FOLDS, refit=False).fit(rows, NAMES)
    for fold, (train, test) in enumerate(FOLDS.split(rows)):
        found = clone(pipeline).fit(rows[train]).predict(rows[test])
        assert search.cv_results_[f"split{fold}_test_score"][0] == adjusted_rand_score(NAMES[test], found)


@pytest.mark.parametrize("kind", [GaussianMixture, Mixture])
def test_labels_that_are_known_reach_the_fit_by_their_own_name(kind):
    model = kind(n_components=3, random_state=0)
    known = clone(model).fit(X, known_labels=SPECIES)
    counts = np.bincount(SPECIES) / len(SPECIES)
    np.testing.assert_allclose(known.weights_, counts, rtol=1e-12)
    assert adjusted_rand_score(SPECIES, known.labels_) > adjusted_rand_score(SPECIES, clone(model).fit(X).labels_)
    np.testing.assert_array_equal(clone(model).fit_predict(X, NAMES, known_labels=SPECIES), known.labels_)
    assert_same(clone(model).partial_fit(X, known_labels=SPECIES).weights_, known.weights_)
    assert_same(clone(model).fit_trace(X, known_labels=SPECIES).model.weights_, known.weights_)
