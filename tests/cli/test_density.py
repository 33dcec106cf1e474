"""Noise on the command line: each row of the table in docs/density.md about files and text."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import coterie
from coterie import jobs
from coterie.datasets import make_blobs
from coterie.errors import InputError, ParameterError
from coterie.jobs import (
    ChooseJob,
    CompareJob,
    Job,
    PredictJob,
    ReportJob,
)
from coterie.preparation.column_selection import UNUSUAL

OPTIONS = {"min_cluster_size": 12, "min_samples": 5}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    X, _ = make_blobs(150, centers=[[0.0, 0.0], [3.0, 1.0]], cluster_std=0.3, random_state=0)
    rows = np.concatenate([X, [[9.0, 9.0], [-9.0, 4.0], [7.0, -8.0]]])
    path = tmp_path_factory.mktemp("density") / "blobs.csv"
    pl.DataFrame(rows, schema=["x", "y"]).write_csv(path)
    return path


@pytest.fixture(scope="module")
def fitted(table):
    folder = table.parent
    job = Job(
        table, algorithm="hdbscan", scale="none", options=OPTIONS, output=folder / "out.csv", names=("auto",),
        model=folder / "model.safetensors", profiles=folder / "profiles.csv",
    )  # fmt: skip
    return jobs.run(job), folder


def test_noise_is_a_line_of_its_own_and_is_left_out_of_the_clusters(fitted):
    result, folder = fitted
    assert result.k == len(result.clusters) == 2
    assert result.noise == 3
    assert sum(cluster.rows for cluster in result.clusters) == 150
    assert sum(cluster.share for cluster in result.clusters) == pytest.approx(150 / 153)
    assert result.labels[-3:].tolist() == [-1, -1, -1]
    line = next(line for line in str(result).splitlines() if line.split()[:1] == ["noise"])
    assert line.split()[1:3] == ["3", "2.0%"]
    profiles = pl.read_csv(folder / "profiles.csv")
    assert profiles["rows"].sum() == 150


def test_the_output_has_minus_one_the_name_noise_and_probability_zero(fitted):
    _, folder = fitted
    out = pl.read_csv(folder / "out.csv")
    noise = out.filter(pl.col("cluster") == -1)
    assert noise["cluster_name"].unique().to_list() == ["noise"]
    assert noise["cluster_probability"].to_list() == [0.0] * 3
    assert (out.filter(pl.col("cluster") >= 0)["cluster_probability"] > 0).all()


def test_a_model_file_predicts_noise_which_is_unusual(fitted, table):
    _, folder = fitted
    model = folder / "model.safetensors"
    prediction = jobs.predict(PredictJob(model, table, output=folder / "predicted.csv", proba=True))
    assert prediction.sizes[-1] == 3
    assert "noise" in str(prediction)
    out = pl.read_csv(folder / "predicted.csv")
    assert out.filter(pl.col("cluster") == -1)[UNUSUAL].all()
    assert jobs.inspect(model).clusters == 2


def test_a_report_of_the_fit_and_of_its_model_leaves_noise_out_of_the_clusters(fitted, table):
    result, folder = fitted
    page = folder / "fit.html"
    jobs.run(Job(table, algorithm="hdbscan", scale="none", options=OPTIONS, report=page))
    html = page.read_text(encoding="utf-8")
    assert "3 rows are noise (2.0% of the rows), in no cluster." in html
    assert "Reachability plot" in html
    assert "Condensed tree" in html
    again = jobs.report(ReportJob(table, model=folder / "model.safetensors", output=folder / "model.html"))
    assert [one.rows for one in again.clusters] == [one.rows for one in result.clusters]


def test_dbscan_chooses_a_radius_unless_one_is_set(table):
    automatic = jobs.run(Job(table, algorithm="dbscan", scale="none"))
    given = jobs.run(Job(table, algorithm="dbscan", scale="none", options={"eps": 0.8}))
    assert automatic.options["eps"] == "auto"
    assert (given.k, given.noise) == (2, 3)
    assert (automatic.k, automatic.noise) == (2, 3)


def test_shares_are_shares_of_the_weight(table):
    frame = pl.read_csv(table).with_columns(w=pl.Series([1.0] * 150 + [0.5] * 3))
    result = jobs.run(Job(frame, algorithm="dbscan", scale="none", options={"eps": 0.8}, weight="w"))
    assert result.noise == 3
    assert sum(cluster.share for cluster in result.clusters) == pytest.approx(150 / 151.5)


def test_exports_are_rejected(fitted):
    _, folder = fitted
    with pytest.raises(ParameterError, match="HDBSCAN cannot be exported"):
        coterie.export(coterie.load(folder / "model.safetensors"), to="sql")


@pytest.mark.parametrize("algorithm", ["hdbscan", "dbscan"])
def test_commands_about_k_say_that_it_is_found(table, algorithm):
    with pytest.raises(ParameterError, match=f"-k is not for {algorithm}, which finds the number of clusters"):
        jobs.run(Job(table, algorithm=algorithm, k=3))
    with pytest.raises(ParameterError, match=f"{algorithm} finds the number of clusters itself"):
        jobs.choose(ChooseJob(table, algorithm=algorithm))
    with pytest.raises(ParameterError, match=f"{algorithm} cannot be compared"):
        jobs.compare(CompareJob(table, algorithms=("kmeans", algorithm)))


def test_a_table_without_clusters_is_an_error_with_a_remedy(table):
    with pytest.raises(InputError, match="HDBSCAN found no clusters: all rows are noise"):
        jobs.run(Job(table, algorithm="hdbscan", options={"min_cluster_size": 100}))
