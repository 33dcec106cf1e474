"""Every function of a model and rows warns if the rows are unlike those of the fit, and of no others."""

from inspect import signature

import numpy as np
import pytest
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import (
    DBSCAN,
    GaussianMixture,
    KMeans,
    SphericalKMeans,
    TimeSeriesKMeans,
    diagnosis,
    explanation,
    make_report,
    plots,
)
from coterie.datasets import make_blobs
from coterie.errors import UnlikeRowsWarning
from coterie.metrics.model_labels import labels_by
from public_estimators import CLASSES, seeded

pytest.importorskip("matplotlib")

UNITS, ORIGIN = np.array([3.0, 40.0]), np.array([100.0, 5000.0])
SCALED = make_blobs(150, 2, centers=[[-3, 0], [3, 0], [0, 5]], cluster_std=0.6, random_state=0)[0] / 3
ROWS = SCALED * UNITS + ORIGIN
CENTERED = SCALED * 1e4  # in both directions from the mean, so that the clusters are not all one
TIMES = np.linspace(0, 6, 12)
SERIES = np.concatenate([np.sin(TIMES) + 0.1 * SCALED[:50, :1], np.cos(TIMES) + 0.1 * SCALED[:50, 1:]])

OTHERS = (DBSCAN, SphericalKMeans, TimeSeriesKMeans)  # of one radius, of directions and of series
MODELS = {
    **{kind.__name__: seeded(kind) for kind in CLASSES if kind not in OTHERS},
    "DBSCAN": DBSCAN(eps=0.4),
    "scikit-learn": SklearnKMeans(3, n_init=1, random_state=0),
}


def fitted_for(name):
    """A model that the function draws, rows like those of its fit, and unlike ones."""
    if name == "series":
        model = TimeSeriesKMeans(2, random_state=0).fit(SERIES)
        return model, SERIES[::2], SERIES * 1000 + 5000
    kind = GaussianMixture if name in ("ellipses", "responsibilities") else KMeans
    unlike = CENTERED if name == "silhouette" else ROWS[1:]  # which has no silhouettes of one cluster
    return kind(3, random_state=0).fit(SCALED), SCALED[::2], unlike


def functions_of_models():
    """All public functions with a model and rows, as functions of these."""
    for package in (diagnosis, explanation, plots):
        for name in package.__all__:
            function = getattr(package, name)
            if not isinstance(function, type) and {"model", "X"} <= set(signature(function).parameters):
                yield name, lambda model, X, function=function: function(model=model, X=X)
    yield "make_report", lambda model, X: make_report(X, model, random_state=0)


FUNCTIONS = dict(functions_of_models())


def test_these_are_the_functions_of_models_and_rows():
    figures = {"clusters", "ellipses", "profiles", "responsibilities", "series", "silhouette", "voronoi"}
    assert {"diagnose", "explain", "make_report", *figures} == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_warns_of_rows_in_other_units_and_not_of_some_rows(name):
    model, some, unlike = fitted_for(name)
    FUNCTIONS[name](model, some)
    with pytest.warns(UnlikeRowsWarning, match="X is unlike the rows that .* was fitted to") as caught:
        FUNCTIONS[name](model, unlike)
    assert [warning.filename for warning in caught if warning.category is UnlikeRowsWarning] == [__file__]


@pytest.mark.parametrize("name", MODELS)
def test_rows_in_other_units_are_unlike_those_of_every_model(name):
    model = MODELS[name].fit(SCALED)
    with pytest.warns(UnlikeRowsWarning):
        labels_by(model, ROWS, len(ROWS))
    if name != "DBSCAN":  # its radius is for the scaled rows
        with pytest.warns(UnlikeRowsWarning):
            labels_by(model.fit(ROWS), SCALED, len(SCALED))


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if hasattr(type(model), "transform")])
def test_rows_far_from_all_centers_are_unlike_in_any_number_of_clusters(name):
    model = MODELS[name].fit(SCALED)
    if hasattr(model, "cluster_centers_"):
        with pytest.warns(UnlikeRowsWarning):
            labels_by(model, CENTERED, len(CENTERED))


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_the_fit_some_of_them_and_rows_that_drifted_are_not_unlike(name):
    """Pytest raises every warning."""
    model = MODELS[name].fit(SCALED)
    labels = np.asarray(model.labels_)
    drifted = SCALED + 0.5 * SCALED.std(axis=0)
    clusters = [SCALED[labels == j] for j in range(3)]
    single = [SCALED[[i]] for i in (0, int(np.abs(SCALED).sum(axis=1).argmax()))]
    for rows in (SCALED, SCALED[::-1], SCALED[:20], np.repeat(SCALED, 4, axis=0), drifted, *clusters, *single):
        labels_by(model, rows, len(rows))


def test_single_outliers_of_the_fit_and_perfect_fits_are_not_unlike():
    outlier = np.array([[500.0, 0.0]])
    model = SklearnKMeans(2, init=[[0.0, 0.0], [0.1, 0.0]], n_init=1, max_iter=1).fit(np.concatenate([SCALED, outlier]))
    labels_by(model, outlier, 1)
    distinct = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], 20, axis=0)
    near = distinct + np.random.default_rng(0).normal(0, 0.1, distinct.shape)
    labels_by(KMeans(3, random_state=0).fit(distinct), near, len(near))


def test_a_pipeline_takes_rows_as_they_were():
    model = make_pipeline(StandardScaler(), KMeans(3, random_state=0)).fit(ROWS)
    labels_by(model, ROWS, len(ROWS))
    with pytest.warns(UnlikeRowsWarning):
        labels_by(model, SCALED, len(SCALED))


def test_wide_rows_of_one_cloud_are_not_far_from_its_centers():
    rng = np.random.default_rng(0)
    model = KMeans(2, random_state=0).fit(rng.normal(size=(200, 300)))
    labels_by(model, rng.normal(size=(200, 300)), 200)
