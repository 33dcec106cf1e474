"""The code and the command line of a report reproduce its result."""

import shlex
from dataclasses import fields

import numpy as np
import polars as pl
import pytest

from coterie import jobs
from coterie.cli import commands
from coterie.jobs import ChooseJob, CompareJob, Job, ReportJob
from coterie.jobs.command_line import command_line
from coterie.report.html import Absent
from report.pages import HOSTILE, blobs, mixed, run


@pytest.fixture(autouse=True)
def without_slow_parts(monkeypatch):
    """Skip the slow parts of reports, which these tests do not need."""
    for name in ("resampling_stability", "diagnosis"):
        monkeypatch.setattr(f"coterie.report.build.reliability.{name}", lambda *_: Absent("not looked at"))


WITH_MISSING = [None, 1.0, 2.0, 5.0] * 75


def csv(folder, separator=",", decimals=".", encoding="utf-8"):
    frame = pl.read_parquet(blobs(folder, y=WITH_MISSING))
    path = folder / "table.csv"
    frame.write_csv(path, separator=separator, decimal_comma=decimals == ",", null_value="NA")
    path.write_bytes(("ø" + path.read_text(encoding="utf-8")).encode(encoding))
    return path


def workbook(folder):
    with pytest.importorskip("xlsxwriter").Workbook(folder / "table.xlsx") as book:
        book.add_worksheet("about").write(0, 0, "about")
        pl.read_parquet(blobs(folder)).write_excel(book, "rows", position=(1, 0))
    return folder / "table.xlsx"


def database(folder):
    with pytest.importorskip("duckdb").connect(str(folder / "tables.db")) as connection:
        connection.execute(f"CREATE TABLE \"a.csv\" AS SELECT * FROM '{blobs(folder)}'")
    return f"duckdb:///{folder}/tables.db?table=a.csv"


CASES = {
    "K-means": lambda folder: Job(blobs(folder), k=3),
    "robust, filled": lambda folder: Job(blobs(folder, y=WITH_MISSING), k=3, scale="robust", missing="median"),
    "minmax, dropped": lambda folder: Job(blobs(folder, y=WITH_MISSING), k=3, scale="minmax", missing="drop"),
    "missing values": lambda folder: Job(blobs(folder, y=WITH_MISSING), k=4, missing="ignore"),
    "weights and dropped rows": lambda folder: Job(
        blobs(folder, y=WITH_MISSING, w=np.arange(300) % 4), k=3, weight="w", missing="drop", seed=3
    ),
    "categories with missing values": lambda folder: Job(
        blobs(folder, y=WITH_MISSING, c=["a", "b", None] * 100), k=3, one_hot=("c",), missing="drop"
    ),
    "a sample": lambda folder: Job(blobs(folder, w=np.arange(300) % 4 + 1), k=3, sample=80, weight="w", seed=2),
    "a mixture": lambda folder: Job(blobs(folder), k=3, algorithm="gmm", options={"covariance": "diag", "n_init": 2}),
    "mixed column types": lambda folder: Job(mixed(folder), k=3, algorithm="mixture"),
    "K-means, K chosen": lambda folder: Job(blobs(folder), k=(2, 5), budget="quick", seed=3),
    "K-means with options, K chosen": lambda folder: Job(
        blobs(folder), k=(2, 4), budget="quick", options={"n_init": 3, "max_iter": 7}
    ),
    "a mixture, K chosen": lambda folder: Job(blobs(folder), k=(2, 4), algorithm="gmm", budget="quick"),
    "weights of zero, K chosen": lambda folder: Job(
        blobs(folder, w=np.arange(300) % 4), k=(2, 4), weight="w", budget="quick"
    ),
    "a sample, K chosen": lambda folder: Job(blobs(folder), k=(2, 4), sample=80, budget="quick", seed=2),
    "a tree": lambda folder: Job(blobs(folder), k=3, algorithm="average", options={"metric": "manhattan"}),
    "noise and filled values": lambda folder: Job(
        blobs(folder, y=WITH_MISSING), algorithm="hdbscan", options={"min_cluster_size": 60}, missing="median"
    ),
    "medoids": lambda folder: Job(blobs(folder), k=3, algorithm="kmedoids"),
    "text with missing values": lambda folder: Job(csv(folder), k=3, missing="drop", exclude=("øid",)),
    "text, semicolons, commas": lambda folder: Job(csv(folder, ";", ","), k=3, missing="mean"),
    "a query": lambda folder: Job(csv(folder), k=3, missing="drop", sql="select * from data limit 200"),
    "a sheet of a workbook": lambda folder: Job(workbook(folder), k=3, sheet="rows", header_row=2),
    "a table of a database": lambda folder: Job(database(folder), k=3, report=folder / "r.html"),
    "missing values, K chosen": lambda folder: Job(
        blobs(folder, y=WITH_MISSING), k=(2, 4), missing="ignore", budget="quick"
    ),
    "old text": lambda folder: Job(csv(folder, encoding="cp1252"), k=3, missing="drop"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_code_gives_the_same_labels(case, tmp_path):
    job = CASES[case](tmp_path)
    result, report = run(jobs.Job(**{**vars(job), "report": tmp_path / "r.html"}))
    code = report.reproduce.python
    names: dict = {}
    exec(compile(code, "<report>", "exec"), names)
    is_used = result.labels >= -1 if result.noise else result.labels >= 0  # rows that were dropped have the label -1
    np.testing.assert_array_equal(names["labels"], result.labels[is_used])


def test_the_code_of_arrays_and_of_hostile_names(tmp_path):
    X = pl.read_parquet(blobs(tmp_path)).select("x0", "x1", "x2").to_numpy().astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    pl.DataFrame({name: X[:, j % 3] * (j + 1) for j, name in enumerate(HOSTILE)}).write_parquet(tmp_path / "h.parquet")
    for name, scale in (("x.npy", "standard"), ("h.parquet", "auto")):
        job = Job(tmp_path / name, k=3, scale=scale, report=tmp_path / "r.html", force=True)
        result, report = run(job)
        names: dict = {}
        exec(report.reproduce.python, names)
        np.testing.assert_array_equal(names["labels"], result.labels)


def test_the_code_of_a_choice_and_of_a_comparison(tmp_path):
    path = blobs(tmp_path)
    names: dict = {}
    job = ChooseJob(path, k=(2, 5), criteria=("silhouette", "elbow"), report=tmp_path / "c.html", algorithm="ward")
    result, report = run(job)
    exec(report.reproduce.python.replace("print(choice)", ""), names)
    assert names["choice"].recommended == result.choice.recommended
    result, report = run(CompareJob(path, algorithms=("kmeans", "ward"), k=3, report=tmp_path / "d.html"))
    exec(report.reproduce.python, names)
    assert [len(labels) for labels in names["labels"]] == [300, 300]


def test_no_code_where_there_was_no_fit(tmp_path):
    _, report = run(ReportJob(blobs(tmp_path, label=[0, 1, 2] * 100), labels="label", output=tmp_path / "r.html"))
    assert isinstance(report.reproduce.python, Absent)


def test_the_fingerprint_changes_with_the_data(tmp_path):
    prints = []
    for n in (300, 301):
        _, report = run(Job(blobs(tmp_path, n=n), k=3, report=tmp_path / "r.html", force=True))
        prints.append(report.reproduce.fingerprint.split()[-1])
    assert len(prints[0]) == 64
    assert prints[0] != prints[1]


OUT = ("report", "static", "output", "model", "animate", "force", "checkpoint", "threads", "strict")
LINES = {
    "fit": lambda path: Job(
        path, k=(2, 5), algorithm="gmm", columns=("x0", "x1"), exclude=("x 2",), scale="none", missing="drop", seed=7,
        options={"covariance": "VVE", "n_init": 3}, budget="quick", sample=100, weight="w", id="id",
    ),
    "choose-k": lambda path: ChooseJob(path, k="auto", criteria=("gap", "bic"), one_hot=("c",), budget="thorough"),
    "compare": lambda path: CompareJob(path, algorithms=("kmeans", "ward"), k=(2, 4)),
    "report": lambda path: ReportJob(path, labels="it's a label"),
}  # fmt: skip


@pytest.mark.parametrize("verb", LINES)
def test_the_command_line_means_the_same_job(verb, tmp_path, monkeypatch):
    job = LINES[verb](tmp_path / "a table.csv")
    seen = []
    for name in ("run", "choose", "compare", "report"):
        monkeypatch.setattr(jobs, name, lambda job, progress=None: seen.append(job))
    monkeypatch.setattr(commands, "show", lambda *_: None)
    words = shlex.split(command_line(job))
    assert words[:2] == ["coterie", verb]
    commands.call(words[1:])
    (again,) = seen
    for field in fields(job):
        if field.name not in OUT:
            assert getattr(again, field.name) == getattr(job, field.name), field.name
