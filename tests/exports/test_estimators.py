"""Estimators fitted in Python: each is exported with the labels of `predict`, or rejected with what to do instead."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.cluster import KMeans as OtherKMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import coterie
from coterie.algorithms import ESTIMATORS
from coterie.errors import ParameterError
from coterie.exports.model_rule import REASONS, SCORES
from exports.engines import ENGINES
from persistence.fitted import NAMES, fitted

N_NEW = 1500
MATRICES_OF_PATTERNS = "GaussianMixture holes"  # only Python can invert the matrices of each pattern
REJECTED_METRICS = (
    "chebyshev", "correlation", "cosine", "gower", "hamming", "jaccard", "mahalanobis", "minkowski", "mixed",
    "precomputed", "series",
)  # fmt: skip


def estimator_of(model):
    return model.steps[-1][1] if hasattr(model, "steps") else model


def is_exported(name):
    kind, _, option = name.partition(" ")
    return kind not in REASONS and not (kind == "KMedoids" and option in REJECTED_METRICS)


def new_rows(rows, seed=0):
    """Random rows in and around the range of the rows of the fit, in their type, with missing values if these have any."""
    values = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
    rng = np.random.default_rng(seed)
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


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", filter(is_exported, NAMES))
def test_labels_are_those_of_predict(name, engine):
    model, rows = fitted(name)
    if name == MATRICES_OF_PATTERNS and engine != "python":
        with pytest.raises(ParameterError, match=r"missing='ignore' and full or tied .*: export it to Python"):
            ENGINES[engine](model, as_frame(model, new_rows(rows)))
        return
    new = new_rows(rows)
    assert ENGINES[engine](model, as_frame(model, new)) == predicted(model, new)


@pytest.mark.parametrize("form", ["EII", "VII", "EEI", "VVI", "VVV", "EEE"])
def test_mixtures_that_ignore_missing_values(form):
    rows = fitted("KMeans holes")[1]
    model = coterie.GaussianMixture(3, covariance_type=form, missing="ignore", random_state=0).fit(rows)
    new = new_rows(rows)
    engines = ENGINES if form not in ("VVV", "EEE") else ["python"]
    for engine in engines:
        assert ENGINES[engine](model, as_frame(model, new)) == predicted(model, new), engine


def test_every_estimator_is_exported_or_rejected():
    assert {*SCORES, *REASONS} == set(ESTIMATORS)
    assert not {*SCORES} & {*REASONS}


@pytest.mark.parametrize("name", [name for name in NAMES if not is_exported(name)])
@pytest.mark.parametrize("to", ["sql", "onnx", "python"])
def test_what_cannot_be_exported_is_rejected_by_name_with_what_to_do(name, to):
    model, _ = fitted(name)
    with pytest.raises(ParameterError, match=rf"^{name.split()[0]} .*cannot be exported: .*Or use coterie predict"):
        coterie.export(model, to)


def test_other_objects_and_steps_are_rejected():
    X = fitted("KMeans")[1]
    with pytest.raises(ParameterError, match=r"got OtherModel\. These can be exported: .*KMeans"):
        coterie.export(type("OtherModel", (OtherKMeans,), {})(2).fit(X), "sql")
    with pytest.raises(ParameterError, match=r"^model must be .* got KMeans"):
        coterie.export(OtherKMeans(2).fit(X), "sql")
    with pytest.raises(ParameterError, match="a Pipeline with PCA cannot be exported: only SimpleImputer"):
        coterie.export(make_pipeline(PCA(2), coterie.KMeans(2)).fit(X), "sql")
    holes = fitted("KMeans holes")[1]
    with pytest.raises(ParameterError, match="without add_indicator"):
        coterie.export(make_pipeline(SimpleImputer(add_indicator=True), coterie.KMeans(2)).fit(holes), "sql")
    with pytest.raises(NotFittedError):
        coterie.export(coterie.KMeans(2), "sql")
    with pytest.raises(ParameterError, match="to must be 'sql' or 'onnx' or 'python'; got 'pmml'"):
        coterie.export(coterie.KMeans(2).fit(X), "pmml")
    with pytest.raises(ParameterError, match="dialect must be 'duckdb' or"):
        coterie.export(coterie.KMeans(2).fit(X), "sql", dialect="oracle")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["far", "tiny", "huge", "wide", "single"])
def test_tables_of_other_scales_and_sizes(kind, engine):
    rng = np.random.default_rng(1)
    rows = {
        "far": 1e8 + rng.integers(0, 9, (200, 3)),
        "tiny": 1e-200 * rng.normal(size=(200, 3)),
        "huge": 1e200 * rng.normal(size=(200, 3)),
        "wide": rng.normal(size=(200, 300)),
        "single": (1e3 + rng.normal(size=(200, 4))).astype(np.float32),
    }[kind]
    models = [coterie.KMeans(5, random_state=0), coterie.GaussianMixture(2, covariance_type="diag", random_state=0)]
    for model in models:
        model.fit(rows)
        assert ENGINES[engine](model, as_frame(model, rows)) == predicted(model, rows)


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


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_predict_rejects_have_no_cluster(engine):
    X = np.array([[1.0, 2.0], [2.0, 1.0], [8.0, 9.0], [9.0, 9.5]])
    frame = pl.DataFrame({"x0": [1.0, None, np.inf, 9.0, 0.0], "x1": [1.0, 1.0, 1.0, -np.inf, 0.0]})
    model = coterie.KMeans(2, random_state=0).fit(X)
    near = int(model.predict([[0.0, 0.0]])[0])
    assert ENGINES[engine](model, frame) == [near, None, None, None, near]
    model = coterie.KMeans(2, random_state=0, missing="ignore").fit(X)
    assert ENGINES[engine](model, frame) == [near, near, None, None, near]
    nothing = pl.DataFrame({"x0": [None], "x1": [None]}, schema={"x0": pl.Float64, "x1": pl.Float64})
    assert ENGINES[engine](model, nothing) == [None]
    directions = coterie.SphericalKMeans(2, random_state=0).fit(X)
    first = int(directions.predict([[1.0, 1.0]])[0])
    assert ENGINES[engine](directions, frame) == [first, None, None, None, None]


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


def test_more_columns_or_clusters_than_a_statement_can_have():
    rng = np.random.default_rng(0)
    model = coterie.KMeans(2, random_state=0).fit(rng.normal(size=(5, 901)))
    with pytest.raises(
        ParameterError, match=r"the model has 901 columns and 2 clusters.*: export it to ONNX or Python"
    ):
        coterie.export(model, "sql")
    new = rng.normal(size=(20, 901))
    for engine in ("python", "onnx"):
        assert ENGINES[engine](model, as_frame(model, new)) == predicted(model, new)
    model = coterie.KMeans(2, random_state=0).fit(rng.normal(size=(5, 900)))
    for engine in ("sqlite", "duckdb"):
        assert ENGINES[engine](model, as_frame(model, new[:, 1:])) == predicted(model, new[:, 1:])
