"""`predict` tells rows and columns that are unlike the training data."""

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.datasets import make_blobs
from coterie.jobs import Job, PredictJob, ReportJob, predict, report, run

X, Y = make_blobs(400, 3, centers=3, random_state=0)
NEW, _ = make_blobs(4000, 3, centers=3, random_state=0)
NAMES = ["recency", "visits", "spend"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unusual")
    write(folder / "fit.parquet", X)
    write(folder / "new.parquet", NEW[2000:])
    far = NEW[2000:2100].copy()
    far[:10, 0] *= 100_000
    write(folder / "far.parquet", far)
    moved = NEW[2000:].copy()
    moved[:, 0] += 40
    write(folder / "moved.parquet", moved)
    return folder


def write(path, rows):
    pl.DataFrame(rows, schema=NAMES).write_parquet(path)


@pytest.mark.parametrize("method", ["kmeans", "gmm", "ward", "kmedoids", "mixture", "spherical", "fuzzy"])
def test_rows_far_from_all_of_the_fit_are_unusual_and_few_others(folder, tmp_path, method):
    model, out = tmp_path / "m.safetensors", tmp_path / "out.csv"
    run(Job(folder / "fit.parquet", k=3, algorithm=method, model=model))
    usual = predict(PredictJob(model, folder / "new.parquet"))
    assert usual.unusual <= 0.02 * 2000
    assert not any("moved" in warning for warning in usual.warnings)
    if method == "spherical":  # the length of a row does not matter
        return
    far = predict(PredictJob(model, folder / "far.parquet", output=out))
    flags = pl.read_csv(out)["unusual"].to_list()
    assert all(flags[:10])
    assert sum(flags[10:]) <= 2
    assert far.unusual == sum(flags)
    assert far.warnings[0].startswith(f"{sum(flags)} rows of 100 are unlike the training data: see the column unusual")


def test_a_column_that_moved_is_told_with_numbers(folder, tmp_path):
    model = tmp_path / "m.safetensors"
    run(Job(folder / "fit.parquet", k=3, model=model))
    warnings = predict(PredictJob(model, folder / "moved.parquet")).warnings
    moved = [warning for warning in warnings if "moved" in warning]
    assert len(moved) == 1
    assert moved[0].startswith('column "recency" moved: its median is ')
    assert "of the rows are outside its range" in moved[0]
    described = report(ReportJob(folder / "moved.parquet", model=model, output=tmp_path / "r.html"))
    assert moved[0] in described.warnings


def test_the_limit_is_stored_and_older_models_have_none(folder, tmp_path):
    model = tmp_path / "m.safetensors"
    run(Job(folder / "fit.parquet", k=3, model=model))
    pipeline = coterie.load(model)
    summary = pipeline[-1].training_summary_
    assert (summary.score, summary.columns, summary.rows) == ("distance", tuple(NAMES), 400)
    assert summary.quantiles.shape == summary.shares.shape == (3, 11)
    np.testing.assert_allclose(summary.quantiles[:, 5], np.median(X, axis=0))
    del pipeline[-1].training_summary_
    coterie.save(pipeline, model, overwrite=True)
    result = predict(PredictJob(model, folder / "far.parquet", output=tmp_path / "out.csv"))
    assert result.unusual is None
    assert result.added == ("cluster",)


def test_few_rows_and_equal_rows_have_limits(tmp_path):
    for rows in ([[0.0, 1.0], [9.0, 9.0]], [[0.0, 1.0]] * 5 + [[9.0, 9.0]] * 5):
        path, model = tmp_path / "few.parquet", tmp_path / "m.safetensors"
        pl.DataFrame(rows, schema=["a", "b"], orient="row").write_parquet(path)
        run(Job(path, k=2, model=model, force=True))
        assert predict(PredictJob(model, path)).unusual == 0
