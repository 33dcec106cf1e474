"""Jobs on a cluster: the workers read the files and write the clusters; a sample describes them."""

from __future__ import annotations

import time

import numpy as np
import polars as pl
import pytest

from coterie import Job, load
from coterie.errors import InputError, ParameterError
from coterie.jobs import cluster_rows, fit_job
from coterie.metrics import adjusted_rand_score
from local_cluster import local_cluster

distributed = pytest.importorskip("distributed")

rng = np.random.default_rng(0)
TRUTH = rng.integers(3, size=1200)
ROWS = rng.normal(size=(1200, 2)) + 9.0 * np.array([[0, 0], [1, 2], [3, -1]])[TRUTH] * [1.0, 100.0]


@pytest.fixture(scope="module")
def cluster():
    with local_cluster() as cluster:
        yield cluster


@pytest.fixture
def year(tmp_path):
    folder = tmp_path / "year"
    folder.mkdir()
    frame = pl.DataFrame(ROWS, schema=["a", "b"]).with_columns(w=pl.Series(1.0 + TRUTH % 2), city=pl.lit("Rome"))
    for i, part in enumerate(frame.iter_slices(500)):
        part.write_parquet(folder / f"{i}.parquet")
    return folder


@pytest.fixture
def job(cluster, year, monkeypatch):
    def not_here(*_):
        raise AssertionError("the table is read in this process")

    monkeypatch.setattr(fit_job, "job_table", not_here)
    engine = f"dask:{cluster.scheduler_address}"
    return lambda path=year, **options: Job(
        path, **{"k": 3, "engine": engine, "columns": ("a", "b"), "options": {"n_init": 1}, **options}
    )


def test_workers_read_the_files_and_write_the_clusters(job, tmp_path):
    pattern, model = tmp_path / "labels" / "*.parquet", tmp_path / "model.safetensors"
    result = job(output=pattern, model=model, report=tmp_path / "report.html").run()
    written = pl.read_parquet(pattern)["cluster"].to_numpy()
    np.testing.assert_array_equal(written, result.labels)
    assert adjusted_rand_score(TRUTH, written) == 1.0
    assert [cluster.rows for cluster in result.clusters] == np.bincount(written).tolist()
    assert any("city" in note for note in result.notes)
    np.testing.assert_array_equal(load(model).predict(pl.DataFrame(ROWS, schema=["a", "b"])), written)
    assert (tmp_path / "report.html").exists()


def test_the_fit_and_the_sizes_are_of_all_rows_and_the_rest_is_of_a_sample(job, year, monkeypatch):
    whole = job(year / "*.parquet").run()
    monkeypatch.setattr(cluster_rows, "SAMPLE_ROWS", 200)
    result = job(year / "*.parquet").run()
    assert (result.rows, result.rows_used, len(result.labels)) == (1200, 1200, 1200)
    assert any("a random sample of 200 rows" in note for note in result.notes)
    assert sorted(each.rows for each in result.clusters) == sorted(each.rows for each in whole.clusters)
    assert sum(each.share for each in result.clusters) == pytest.approx(1.0)


def test_weights_are_a_column_of_the_files(job, year):
    weighted, unweighted = (job(year / "0.parquet", weight=name, scale="none").run() for name in ("w", None))
    own = ROWS[:500] - np.array([ROWS[:500][weighted.labels == k].mean(axis=0) for k in range(3)])[weighted.labels]
    w = 1.0 + TRUTH[:500] % 2
    assert unweighted.scores["inertia"] == pytest.approx((own**2).sum())
    assert weighted.scores["inertia"] == pytest.approx(w @ (own**2).sum(axis=1))


@pytest.mark.parametrize("options", [{"output": "table.csv"}, {"sample": 100}], ids=str)
def test_what_needs_all_rows_here_is_rejected_with_the_reason(job, options):
    with pytest.raises(ParameterError, match=r"labels/\*.parquet|needs the rows in one memory"):
        job(**options).run()


def test_missing_values_are_named(job, tmp_path):
    pl.DataFrame({"a": [*ROWS[:, 0], np.nan], "b": [*ROWS[:, 1], 1.0]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="a"):
        job(tmp_path / "x.parquet").run()
    assert job(tmp_path / "x.parquet", missing="mean").run().rows_used == 1201


def test_the_progress_shows_workers_and_rows_per_second(job):
    stages = []
    job().run(callback=lambda progress: stages.append(progress.step))
    assert any("on 2 workers" in stage and "rows/s" in stage for stage in stages)


def test_ctrl_c_frees_the_cluster(job, cluster):
    def press(progress):
        if "rows/s" in progress.step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job().run(callback=press)
    with distributed.Client(cluster) as client:
        deadline = time.monotonic() + 5
        while any(client.has_what().values()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(client.has_what().values())
