"""What was judged is what comes out: one silhouette for all, and the fit that K was chosen by."""

import json
from functools import cache

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import silhouette_score as peer

from coterie.algorithms import ALGORITHMS
from coterie.cli import main
from coterie.datasets import make_blobs
from coterie.jobs import CompareJob, Job, compare, run
from coterie.metrics import adjusted_rand_score
from coterie.report.html import Absent

SWEPT = [name for name, how in ALGORITHMS.items() if how.has_sweep and not (how.mixed or how.series)]
METRICS = {"kmeans": "euclidean", "kmedians": "manhattan", "spherical": "cosine", "ward": "euclidean"}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Clusters that overlap: restarts end in different places."""
    X, _ = make_blobs(100, 4, centers=9, cluster_std=2.5, random_state=3)
    path = tmp_path_factory.mktemp("chosen") / "x.parquet"
    pl.DataFrame(X + 30, schema=list("abcd")).write_parquet(path)
    return path


@pytest.fixture(scope="module")
def chosen(table):
    """A function of the algorithm: the result for a chosen K; its labels and its model are in files."""

    @cache
    def result_of(method):
        files = {"output": table.parent / f"{method}.npy", "model": table.parent / f"{method}.safetensors"}
        return run(Job(table, algorithm=method, k=(3, 4), budget="quick", **files))

    return result_of


@pytest.fixture(autouse=True)
def without_the_rest(monkeypatch):
    for name in ("resampling_stability", "diagnosis"):
        monkeypatch.setattr(f"coterie.report.build.reliability.{name}", lambda *_: Absent("not looked at"))


def objective_of(result):
    scores = result.scores
    return scores.get("inertia", scores.get("objective"))


@pytest.mark.parametrize("method", SWEPT)
def test_the_fit_is_the_one_that_k_was_chosen_by(table, chosen, tmp_path, method):
    result = chosen(method)
    row = next(row for row in result.choice.table if row["k"] == result.k)
    assert row["recommended"]
    if objective_of(result) is not None:
        assert objective_of(result) == pytest.approx(row["objective"], rel=1e-12)
    overall = np.average([one.silhouette for one in result.clusters], weights=[one.rows for one in result.clusters])
    assert overall == pytest.approx(row["silhouette"], abs=1e-9)
    model = table.parent / f"{method}.safetensors"
    assert main(["predict", str(model), str(table), "-o", str(tmp_path / "again.npy"), "-q"]) == 0
    np.testing.assert_array_equal(np.load(table.parent / f"{method}.npy"), result.labels)
    if method not in ("balanced", "average", "complete", "weighted", "single", "median", "centroid", "ward"):
        assert adjusted_rand_score(np.load(tmp_path / "again.npy"), result.labels) == 1.0


def test_a_fit_that_continues_others_states_no_iterations(table, capsys):
    assert main(["fit", str(table), "-k", "3:4", "--budget", "quick"]) == 5  # the rows have no clear K
    out = capsys.readouterr().out
    assert "K-means, k = " in out
    assert "iteration" not in out
    assert run(Job(table, k=4)).iterations >= 1


def test_a_fit_of_its_own_would_end_elsewhere(tmp_path):
    """Rows without clusters have many local optima: only the judged fit itself has its objective."""
    np.save(tmp_path / "x.npy", np.random.default_rng(5).normal(size=(300, 6)))
    result = run(Job(tmp_path / "x.npy", k=(14, 15), budget="quick"))
    objective = {row["k"]: row["objective"] for row in result.choice.table}[result.k]
    alone = run(Job(tmp_path / "x.npy", k=result.k))
    assert objective_of(result) == pytest.approx(objective, rel=1e-12)
    assert objective_of(alone) != pytest.approx(objective, rel=1e-6)


@pytest.mark.parametrize(
    "method, extra", [("kmeans", "report"), ("gmm", "report"), ("ward", "report"), ("kmeans", "animate")]
)
def test_a_file_that_is_asked_for_changes_no_result(table, chosen, tmp_path, method, extra):
    plain = chosen(method)
    with_file = run(Job(table, algorithm=method, k=(3, 4), budget="quick", **{extra: tmp_path / "x.html"}))
    np.testing.assert_array_equal(plain.labels, with_file.labels)
    assert plain.clusters == with_file.clusters
    assert plain.scores == with_file.scores


@pytest.mark.parametrize("method", METRICS)
def test_silhouettes_go_by_the_distance_of_the_model(table, method):
    result = run(Job(table, algorithm=method, k=3))
    X = pl.read_parquet(table).to_numpy()
    X = X if method == "spherical" else (X - X.mean(axis=0)) / X.std(axis=0)  # directions keep their units
    means = [one.silhouette for one in result.clusters]
    overall = np.average(means, weights=[one.rows for one in result.clusters])
    assert overall == pytest.approx(peer(X, result.labels, metric=METRICS[method]), abs=1e-9)


def test_the_terminal_json_and_the_report_say_the_same_silhouettes(table, tmp_path, capsys):
    how = ["fit", str(table), "-k", "3", "-a", "kmedians"]
    found = []
    for extra in ([], ["--report", str(tmp_path / "r.html")]):
        assert main([*how, *extra, "--json"]) == 0
        found.append([one["silhouette"] for one in json.loads(capsys.readouterr().out)["clusters"]])
    assert found[0] == found[1]
    assert main(how) == 0
    shown = capsys.readouterr().out
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for value in found[0]:
        assert f"{value:.2f}" in shown
        assert f"{value:.2f}" in page


def test_a_comparison_has_the_k_means_that_k_was_chosen_by(table):
    """No number is clear: one cluster is recommended, and the comparison uses the runner-up."""
    assert run(Job(table, budget="quick")).k == 1
    compared = compare(CompareJob(table, algorithms=("kmeans", "ward")))
    best = next(one for one in compared.runs if one.method == "kmeans")
    swept = run(Job(table, k=(1, 10), budget="quick")).choice.table
    assert best.k == 3
    assert best.inertia == pytest.approx(next(row["objective"] for row in swept if row["k"] == 3), rel=1e-12)


def test_options_of_the_algorithm_hold_while_k_is_chosen(tmp_path):
    table = tmp_path / "two.parquet"
    X, _ = make_blobs(50, 2, centers=3, random_state=3)
    pl.DataFrame(X, schema=list("ab")).write_parquet(table)
    result = run(Job(table, algorithm="gmm", k=(2, 3), budget="quick", options={"covariance": "diag"}))
    assert result.options["covariance_type"] == "diag"
    result = run(Job(table, algorithm="gmm", k=(2, 3), budget="quick", options={"covariance": "auto"}))
    assert result.options["covariance_type"] != "auto"


def test_two_identical_runs_write_identical_files(table, tmp_path):
    files = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        names = {
            "output": "out.csv", "model": "m.safetensors", "report": "r.html", "animate": "a.html",
        }  # fmt: skip
        run(Job(table, k=(3, 4), budget="quick", **{key: tmp_path / folder / name for key, name in names.items()}))
        compare(CompareJob(table, algorithms=("kmeans", "ward"), k=3, report=tmp_path / folder / "c.html"))
        files.append({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()})
    assert len(files[0]) == 5
    assert files[0] == files[1]
