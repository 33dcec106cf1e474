"""Clusters are numbered by their first rows, whichever way they were found, in labels, models and exports alike."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coterie
from coterie.algorithms import ALGORITHMS
from coterie.core.progress import silent
from coterie.core.protocols import last_step
from coterie.jobs import Job, PredictJob, fit_job, predict
from coterie.jobs.job_table import job_table
from coterie.persistence.renumber import renumbered
from coterie.preparation.fit_preparation import prepare
from fuzz.exported import ENGINES
from public_estimators import CLASSES, seeded

RNG = np.random.default_rng(0)
BY_FIRST_ROWS = [0, 1, 2, *RNG.permutation(np.repeat([0, 1, 2], [19, 39, 29])).tolist()]
X = 10 * np.eye(3)[BY_FIRST_ROWS] + RNG.normal(0, 0.3, (90, 3))
FRAME = pd.DataFrame(X, columns=list("abc"))
KEPT = (  # classes whose clusters keep the numbers of the fit
    coterie.AgglomerativeClustering, coterie.BayesianGaussianMixture, coterie.DBSCAN, coterie.DivisiveClustering,
    coterie.HDBSCAN,
)  # fmt: skip
ORDER = np.array([2, 0, 1])
WAYS = {
    "k": {"k": 3},
    "automatic k": {},
    "range of k": {"k": (2, 4)},
    "another seed": {"k": 3, "seed": 5},
    "search": {"k": 3, "options": {"search": "fast"}},
    "one start": {"k": 3, "seed": 9, "options": {"n_init": 1}},
    "sample": {"k": 3, "sample": 60},
    "Dask": {"k": 3, "engine": "dask"},
    **{name: {"k": 3, "algorithm": name} for name, each in ALGORITHMS.items() if not (each.finds_k or each.series)},
    "balanced": {"k": 3, "algorithm": "balanced", "options": {"size_min": 10, "size_max": 50}},
}
del WAYS["bayes-gmm"]  # its prior depends on the order of the components


@pytest.mark.parametrize("name", WAYS)
def test_the_same_clusters_have_the_same_numbers_whichever_way_they_were_found(name):
    result = Job(FRAME, **WAYS[name]).run()
    assert result.labels.tolist() == BY_FIRST_ROWS
    assert [cluster.rows for cluster in result.clusters] == [20, 40, 30]


@pytest.mark.parametrize("algorithm", ["kmeans", "bisecting", "spherical", "fuzzy", "gmm", "kmedoids", "mixture"])
def test_model_files_and_exports_give_the_numbers_of_the_labels(algorithm, tmp_path):
    table, model = tmp_path / "x.csv", tmp_path / "m.safetensors"
    FRAME.to_csv(table, index=False)
    labels = Job(table, algorithm=algorithm, k=3, output=tmp_path / "labels.csv", model=model).run().labels
    assert pl.read_csv(tmp_path / "labels.csv")["cluster"].to_list() == labels.tolist() == BY_FIRST_ROWS
    assert predict(PredictJob(model, table)).labels.tolist() == BY_FIRST_ROWS
    loaded = coterie.load(model)
    assert np.asarray(last_step(loaded).labels_).tolist() == BY_FIRST_ROWS
    if algorithm in ("kmeans", "spherical", "gmm"):
        assert ENGINES["python"](loaded, pl.DataFrame(FRAME)) == BY_FIRST_ROWS
        assert ENGINES["duckdb"](loaded, pl.DataFrame(FRAME)) == BY_FIRST_ROWS


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind not in KEPT])
def test_an_estimator_with_other_numbers_is_the_same_estimator(kind, tmp_path):
    model = seeded(kind, 3).fit(X)
    new = renumbered(model, np.argsort(ORDER))
    assert model.predict(X).tolist() == ORDER[new.predict(X)].tolist()
    assert np.asarray(model.labels_).tolist() == ORDER[new.labels_].tolist()
    for method in ("transform", "predict_proba"):
        if hasattr(model, method):
            np.testing.assert_allclose(getattr(model, method)(X)[:, ORDER], getattr(new, method)(X), atol=1e-12)
    coterie.save(new, tmp_path / "m.safetensors")
    assert coterie.load(tmp_path / "m.safetensors").predict(X).tolist() == new.predict(X).tolist()


@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical", "EVE"])
def test_gaussian_mixtures_of_every_form_have_as_many_columns_as_components(structure):
    """Then an axis of columns is as long as one of components."""
    model = coterie.GaussianMixture(3, covariance_type=structure, random_state=0).fit(X)
    new = renumbered(model, np.argsort(ORDER))
    np.testing.assert_allclose(model.score_samples(X), new.score_samples(X))
    np.testing.assert_allclose(model.predict_proba(X)[:, ORDER], new.predict_proba(X))


@pytest.mark.parametrize("algorithm", ["kmeans", "minibatch", "gmm"])
def test_an_animation_ends_with_the_numbers_of_the_labels(algorithm, tmp_path):
    job = Job(FRAME, algorithm=algorithm, k=3)
    table = job_table(job, silent)
    prepared = prepare(table, job, ALGORITHMS[algorithm], silent)
    fit_and_choice = fit_job.fit_clusters(job, prepared, silent, recorded=True)
    content = fit_job.describe(job, table, prepared, *fit_and_choice, silent)
    steps = content.fitted.recording.trace().steps
    assert steps[-1].labels.tolist() == content.labels.tolist() == BY_FIRST_ROWS
    rows = content.prepared.rows.X
    for j, center in enumerate(steps[-1].centers):
        np.testing.assert_allclose(center, rows[content.labels == j].mean(axis=0), atol=0.1)
