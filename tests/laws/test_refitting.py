"""A fit leaves nothing of an earlier one: neither its results nor what was added to the estimator after it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import coterie
from coterie.core.training_summary import TrainingSummary
from persistence.fitted import COUNTS, FRAME, STRUCTURES, UNFITTED, X, fitted
from persistence.test_round_trip import same
from public_estimators import CLASSES

SUMMARY = TrainingSummary("density", -9.0, None, None, False, (), np.empty((0, 11)), np.empty((0, 11)), 7)
DRAWS = ("KMeans generator", "KMeans random state")  # a second fit continues their random generators
SLOW = ("Mixture student_t", "Mixture von_mises_fisher", *(f"GaussianMixture {name}" for name in STRUCTURES[1:-1]))
NAMES = [name for name, (model, _) in UNFITTED.items() if not (isinstance(model, Pipeline) or name in (*DRAWS, *SLOW))]
OF_SCALE = ("KMeans", "MiniBatchKMeans", "KernelKMeans linear", "TimeSeriesKMeans", "GaussianMixture VVV")
OF_COLUMNS = ("n_features_in_", "n_parameters_", "family_")  # the same after any number of batches
ATTACHED = ("training_summary_", "cluster_names_")


def attach(model):
    model.training_summary_, model.cluster_names_ = SUMMARY, ["first", "second", "third"]
    return model


def earlier(name):
    """Another variant of the same class, or the same if it is the only one."""
    variants = [other for other in NAMES if other.split()[0] == name.split()[0]]
    return variants[variants.index(name) - 1]


def with_options(model, options):
    return model.set_params(**clone(options).get_params(deep=False))


def different(refitted, fresh):
    """Names of attributes that differ."""
    names = set(vars(refitted)) | set(vars(fresh))
    missing = object()
    return sorted(n for n in names if not same(vars(refitted).get(n, missing), vars(fresh).get(n, missing)))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_an_earlier_fit_is_left(name):
    fresh, rows = fitted(name)
    first, first_rows = UNFITTED[earlier(name)]
    model = attach(clone(first).fit(first_rows if first_rows is not rows else first_rows[::-1]))
    assert different(with_options(model, fresh).fit(rows), fresh) == []


@pytest.mark.parametrize("name", OF_SCALE)
def test_nothing_of_rows_of_another_scale_is_left(name):
    fresh, rows = fitted(name)
    model = attach(clone(fresh).fit(rows * 1e100))
    assert different(model.fit(rows), fresh) == []


SERIES = [row[: 2 + i % 2] for i, row in enumerate(X)]
NAMED = FRAME.head(90)
OTHER_FORMS = [
    (coterie.TimeSeriesKMeans(2, random_state=0), NAMED, SERIES),
    (coterie.KMedoids(2, metric="dtw", random_state=0), NAMED, SERIES),
    (coterie.AgglomerativeClustering(2, metric="dtw", linkage="average"), NAMED, SERIES),
    (coterie.DivisiveClustering(2, metric="dtw"), NAMED, SERIES),
    (coterie.KMeans(2, random_state=0), NAMED, COUNTS),
    (coterie.Mixture(2, "poisson", random_state=0), NAMED, COUNTS),
]


@pytest.mark.parametrize(
    ("model", "first", "second"), OTHER_FORMS, ids=[type(model).__name__ for model, _, _ in OTHER_FORMS]
)
def test_columns_of_a_frame_are_not_left_after_a_fit_to_other_rows(model, first, second):
    refitted = attach(clone(model).fit(first)).fit(second)
    assert different(refitted, clone(model).fit(second)) == []
    refitted.predict(second)


@pytest.mark.parametrize("kind", [each for each in CLASSES if hasattr(each, "partial_fit")], ids=lambda k: k.__name__)
def test_a_batch_drops_what_was_added_and_starts_as_a_fit(kind):
    options = {"family": "poisson"} if kind is coterie.Mixture else {}
    model = attach(kind(2, random_state=0, **options).partial_fit(COUNTS)).partial_fit(COUNTS[::2])
    assert not set(ATTACHED) & set(vars(model))
    fitted_first = attach(kind(2, random_state=0, **options).fit(COUNTS)).partial_fit(COUNTS[::2])
    assert set(vars(fitted_first)) == set(vars(model))


@pytest.mark.parametrize("kind", [each for each in CLASSES if hasattr(each, "partial_fit")], ids=lambda k: k.__name__)
def test_a_batch_leaves_no_result_of_the_fit_before_it(kind):
    options = {"family": "poisson"} if kind is coterie.Mixture else {}
    model = kind(2, random_state=0, **options).fit(COUNTS)
    before = dict(vars(model))
    for _ in range(3):  # the number of batches differs from that of the iterations before
        model.partial_fit(COUNTS[::2])
    results = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")} - set(OF_COLUMNS)
    assert sorted(name for name in results if vars(model)[name] is before.get(name)) == []


def test_a_trace_drops_what_was_added():
    model = attach(coterie.KMeans(3, random_state=0).fit(X[::2]))
    assert different(model.fit_trace(X).model, coterie.KMeans(3, random_state=0).fit(X)) == []


def test_a_fit_that_fails_changes_nothing():
    model = attach(coterie.KMeans(3, random_state=0).fit(X))
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 3), np.nan))
    assert vars(model) == before
