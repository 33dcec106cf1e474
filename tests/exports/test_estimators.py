"""Estimators fitted in Python: each is exported with the labels of `predict`, or rejected with what to do instead."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans as OtherKMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

import coterie
from coterie.algorithms import ESTIMATORS
from coterie.errors import ParameterError
from coterie.exports import sql
from coterie.exports.model_rule import REASONS, SCORES
from fuzz.exported import ENGINES, WITH_POSTGRESQL

rng = np.random.default_rng(0)
LABELS = np.repeat([0, 1, 2], 30)
X = rng.normal(size=(90, 3)) + 3.0 * LABELS[:, None]
SINGLE = X.astype(np.float32)
HOLES = np.where(np.arange(270).reshape(90, 3) % 7 == 1, np.nan, X)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
ROWS = X[[0, 40, 80]]
STRUCTURES = (
    "EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV",
)  # fmt: skip
N_NEW = 1000


def mixture(structure="VVV", **options):
    """A mixture that starts at the labels and ends after one iteration: no search."""
    return coterie.GaussianMixture(3, covariance_type=structure, init_params=LABELS, tol=1e9, **options)


def bayesian(form):
    return coterie.BayesianGaussianMixture(3, covariance_type=form, init_params=LABELS, tol=1e9)


KMEANS = coterie.KMeans(3, init=ROWS)
CASES = {  # name: model, rows of the fit
    "KMeans": (KMEANS, X),
    "KMeans float32": (KMEANS, SINGLE),
    "KMeans frame": (KMEANS, FRAME),
    "KMeans weights of columns": (coterie.KMeans(3, init=ROWS, metric_weights=[1, 2, 0]), X),
    "KMeans frozen": (coterie.KMeans(3, init=ROWS[1:], frozen_centers=ROWS[:1]), X),
    "KMeans missing": (coterie.KMeans(3, init=ROWS, missing="ignore"), HOLES),
    "MiniBatchKMeans": (coterie.MiniBatchKMeans(3, init=ROWS, random_state=0), X),
    "BisectingKMeans": (coterie.BisectingKMeans(7, random_state=0), X),
    "BalancedKMeans": (coterie.BalancedKMeans(3, init=ROWS), X),
    "SphericalKMeans": (coterie.SphericalKMeans(3, init=ROWS, search="none"), X),
    "SphericalKMeans float32": (coterie.SphericalKMeans(3, init=ROWS, search="none"), SINGLE),
    "KMedians": (coterie.KMedians(3, init=ROWS, search="none"), X),
    "KMedians l2": (coterie.KMedians(3, init=ROWS, search="none", metric="l2"), X),
    "FuzzyCMeans": (coterie.FuzzyCMeans(3, init=ROWS, search="none"), X),
    **{
        f"KMedoids {metric}": (coterie.KMedoids(3, metric=metric, search="none"), X)
        for metric in ("euclidean", "sqeuclidean", "manhattan")
    },
    **{f"GaussianMixture {name}": (mixture(name), X) for name in STRUCTURES},
    "GaussianMixture float32": (mixture(), SINGLE),
    "GaussianMixture weight 0": (mixture(fixed="weights", weights_init=[0.5, 0.0, 0.5]), X),
    **{f"GaussianMixture {name} missing": (mixture(name, missing="ignore"), HOLES) for name in STRUCTURES},
    **{f"Bayesian {form}": (bayesian(form), X) for form in ("full", "tied", "diag", "spherical")},
    "SimpleImputer": (make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), KMEANS), HOLES),
    "SimpleImputer last": (make_pipeline(StandardScaler(), SimpleImputer(), KMEANS), HOLES),
    "MinMaxScaler": (make_pipeline(MinMaxScaler(), mixture()), FRAME),
    "RobustScaler": (make_pipeline(RobustScaler(), StandardScaler(), coterie.BisectingKMeans(4, random_state=0)), X),
    **{
        f"{scaler}": (make_pipeline(scaler, KMEANS), X + 50)
        for scaler in (
            StandardScaler(with_mean=False),
            StandardScaler(with_std=False),
            RobustScaler(with_centering=False, unit_variance=True),
            RobustScaler(with_scaling=False),
            MinMaxScaler(feature_range=(2, 5)),
        )
    },
    "StandardScaler float32": (make_pipeline(StandardScaler(), KMEANS), SINGLE),
}
WITH_MATRICES = [f"GaussianMixture {name} missing" for name in STRUCTURES if not name.endswith("I")]
METRICS = {  # of K-medoids that cannot be exported, with their parameters
    "chebyshev": {}, "cosine": {}, "gower": {}, "mahalanobis": {}, "minkowski": {"p": 3}, "precomputed": {},
    "euclidean": {"w": [1, 2, 1]},
}  # fmt: skip


@cache
def fitted(name):
    model, rows = CASES[name]
    return clone(model).fit(rows), rows


def new_rows(rows):
    """Random rows around the range of the rows of a fit, in their type; with missing values if these have some."""
    values, rng = np.asarray(rows, dtype=np.float64), np.random.default_rng(0)
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    new = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), (N_NEW, len(low)))
    if np.isnan(values).any():
        new[rng.random(new.shape) < 0.2] = np.nan
        new = new[~np.isnan(new).all(axis=1)]
    return new.astype(getattr(rows, "dtype", np.float64))


def as_frame(model, new):
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(new.shape[1])])
    return pl.DataFrame({str(name): new[:, j].astype(np.float64) for j, name in enumerate(names)}).fill_nan(None)


def predicted(model, new):
    names = getattr(model, "feature_names_in_", None)
    return model.predict(new if names is None else pd.DataFrame(new, columns=names)).tolist()


@pytest.mark.parametrize("name", CASES)
def test_labels_are_those_of_predict(name):
    model, rows = fitted(name)
    new = new_rows(rows)
    frame, expected = as_frame(model, new), predicted(model, new)
    for engine, labels_of in ENGINES.items():
        if name in WITH_MATRICES and engine != "python":
            with pytest.raises(ParameterError, match=r"missing='ignore' and full or tied .*: export it to Python"):
                labels_of(model, frame)
        else:
            assert labels_of(model, frame) == expected, engine


def test_every_estimator_is_exported_or_rejected():
    assert {*SCORES, *REASONS} == set(ESTIMATORS)
    assert not {*SCORES} & {*REASONS}


@pytest.mark.parametrize("name", REASONS)
@pytest.mark.parametrize("to", ["sql", "onnx", "python"])
def test_what_cannot_be_exported_is_rejected_by_name_with_what_to_do(name, to):
    message = rf"^{name} cannot be exported: .*\. Export (\w*KMeans|GaussianMixture)\b.*\. Or use coterie predict"
    with pytest.raises(ParameterError, match=message):
        coterie.export(getattr(coterie, name)(), to)


@pytest.mark.parametrize("metric", METRICS)
def test_other_distances_of_k_medoids_are_rejected(metric):
    rows = np.abs(X[:, :1] - X[:, 0]) if metric == "precomputed" else X
    model = coterie.KMedoids(3, metric=metric, metric_params=METRICS[metric], search="none").fit(rows)
    with pytest.raises(ParameterError, match=f"^KMedoids with metric='{metric}'.* cannot be exported: only euclidean"):
        coterie.export(model, "sql")


def test_other_objects_and_steps_are_rejected():
    with pytest.raises(ParameterError, match=r"got OtherModel\. These can be exported: .*KMeans"):
        coterie.export(type("OtherModel", (OtherKMeans,), {})(2).fit(X), "sql")
    with pytest.raises(ParameterError, match=r"^model must be .* got KMeans"):
        coterie.export(OtherKMeans(2).fit(X), "sql")
    with pytest.raises(ParameterError, match="a Pipeline with PCA cannot be exported: only SimpleImputer"):
        coterie.export(make_pipeline(PCA(2), coterie.KMeans(2)).fit(X), "sql")
    with pytest.raises(ParameterError, match="without add_indicator"):
        coterie.export(make_pipeline(SimpleImputer(add_indicator=True), coterie.KMeans(2)).fit(HOLES), "sql")
    with pytest.raises(NotFittedError):
        coterie.export(coterie.KMeans(2), "sql")
    with pytest.raises(ParameterError, match="to must be 'sql' or 'onnx' or 'python'; got 'pmml'"):
        coterie.export(coterie.KMeans(2).fit(X), "pmml")
    with pytest.raises(ParameterError, match="dialect must be 'duckdb' or"):
        coterie.export(coterie.KMeans(2).fit(X), "sql", dialect="oracle")


SCALES = {"far": (1e8, 3.0), "tiny": (0.0, 1e-140), "huge": (0.0, 1e140), "single": (1e3, 1.0)}


@pytest.mark.parametrize("kind", SCALES)
def test_rows_far_from_the_origin_and_of_any_scale(kind):
    offset, scale = SCALES[kind]
    rows = offset + scale * np.round(X, 1)
    rows = rows.astype(np.float32) if kind == "single" else rows
    for model in (coterie.KMeans(3, init=rows[[0, 40, 80]]), mixture("EEI"), coterie.KMedians(3, init=rows[:3])):
        model.fit(rows)
        assert (kind in ("tiny", "huge")) == bool(model._scale.rows)
        for engine, labels_of in ENGINES.items():
            assert labels_of(model, as_frame(model, rows)) == predicted(model, rows), engine


@pytest.mark.parametrize("engine", ENGINES)
def test_of_equally_near_centers_the_first_is_chosen(engine):
    grid = np.stack(np.meshgrid(np.arange(-3.0, 4), np.arange(-3.0, 4)), axis=-1).reshape(-1, 2)
    corners = np.array([[1.0, -1], [-1, 1], [-1, -1], [1, 1]])
    for kind in (coterie.KMeans, coterie.KMedians):
        model = kind(4, init=corners, max_iter=1).fit(corners)
        labels = ENGINES[engine](model, as_frame(model, grid))
        assert labels == predicted(model, grid)
        assert labels[24] == 0  # the origin, which is equally near to all
    tree = coterie.BisectingKMeans(4, random_state=0).fit(corners)
    assert ENGINES[engine](tree, as_frame(tree, grid)) == predicted(tree, grid)


@pytest.mark.parametrize("engine", WITH_POSTGRESQL)
def test_rows_that_predict_rejects_have_no_cluster(engine):
    X = np.array([[1.0, 2.0], [2.0, 1.0], [8.0, 9.0], [9.0, 9.5]])
    frame = pl.DataFrame({"x0": [1.0, None, np.inf, 9.0, 0.0], "x1": [1.0, 1.0, 1.0, -np.inf, 0.0]})
    model = coterie.KMeans(2, random_state=0).fit(X)
    near = int(model.predict([[0.0, 0.0]])[0])
    assert WITH_POSTGRESQL[engine](model, frame) == [near, None, None, None, near]
    model = coterie.KMeans(2, random_state=0, missing="ignore").fit(X)
    assert WITH_POSTGRESQL[engine](model, frame) == [near, near, None, None, near]
    nothing = pl.DataFrame({"x0": [None], "x1": [None]}, schema={"x0": pl.Float64, "x1": pl.Float64})
    assert WITH_POSTGRESQL[engine](model, nothing) == [None]
    directions = coterie.SphericalKMeans(2, random_state=0).fit(X)
    first = int(directions.predict([[1.0, 1.0]])[0])
    assert WITH_POSTGRESQL[engine](directions, frame) == [first, None, None, None, None]


@pytest.mark.parametrize("engine", ENGINES)
def test_one_cluster_and_one_column(engine):
    X = np.array([[1.0], [2.0], [8.0]])
    models = [
        coterie.KMeans(1), coterie.KMeans(2, random_state=0), coterie.BisectingKMeans(1), coterie.GaussianMixture(1),
        coterie.GaussianMixture(2, covariance_type="V", random_state=0),
    ]  # fmt: skip
    for model in models:
        model.fit(X)
        assert ENGINES[engine](model, as_frame(model, X)) == predicted(model, X)


def test_sums_in_several_layers(monkeypatch):
    """A layer of a statement adds three terms here, so that few columns need several layers."""
    dialects = {name: replace(dialect, terms=3) for name, dialect in sql.BY_NAME.items()}
    monkeypatch.setattr(sql, "BY_NAME", dialects)
    rows = np.random.default_rng(0).normal(size=(120, 8))
    labels = {"init_params": np.arange(120) % 2, "tol": 1e9}
    models = [
        coterie.KMeans(3, init=rows[:3]),
        coterie.KMeans(3, init=rows[:3], missing="ignore"),
        coterie.SphericalKMeans(3, init=rows[:3], search="none"),
        coterie.BisectingKMeans(4, random_state=0),
        *(coterie.GaussianMixture(2, covariance_type=form, **labels) for form in ("full", "tied", "diag")),
        coterie.GaussianMixture(2, covariance_type="diag", missing="ignore", **labels),
    ]
    for model in models:
        model.fit(rows)
        for engine in ("sqlite", "duckdb", "postgresql"):
            assert WITH_POSTGRESQL[engine](model, as_frame(model, rows)) == predicted(model, rows), engine
    assert coterie.export(models[0], "sql").count("FROM (") == 4


def test_too_many_columns_for_a_statement():
    rows = np.random.default_rng(0).normal(size=(9, 1501))
    model = coterie.KMeans(2, init=rows[:2]).fit(rows)
    with pytest.raises(ParameterError, match=r"has 1,501 columns and 2 clusters, .* \(1,500 .*: export it to ONNX"):
        coterie.export(model, "sql")
    assert len(coterie.export(model, "python")) > 1501
    model = coterie.GaussianMixture(1, max_iter=0).fit(rows[:, :61])
    with pytest.raises(ParameterError, match=r"has 61 columns and 1 clusters, .* \(60 columns.*: export it to ONNX"):
        coterie.export(model, "sql")
